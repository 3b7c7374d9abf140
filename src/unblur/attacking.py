"""The attack: what the published classes say about where their records are.

It takes a `Release` and nothing else. For every class, and for the outliers, it states the counting `Problem`: the
cells that earlier classes have emptied are not free, and no child of a node can hold as many records as would have made
a class of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

import numpy as np

from unblur.counting.exact import estimated_work
from unblur.counting.problem import Block, Problem
from unblur.grid import Box, Free, Grid, Span
from unblur.hierarchy import Ranks
from unblur.lattice import State
from unblur.mechanisms import Inference
from unblur.release import EquivalenceClass, Release

MOST_BLOCKS = 100_000
MOST_WORK = 30_000_000
"""A problem of more blocks or steps than this is made smaller: the widest attributes' constraints are dropped."""


@dataclass(frozen=True)
class Target:
    """A class, or the outliers, with what may be inferred about it."""

    subject: EquivalenceClass
    takers: tuple[int, ...]
    """The classes, by index, that surely came before and overlap it."""
    box: Box
    problem: Problem
    dropped: tuple[int, ...] = ()
    """Attributes whose constraint was left out because it has too many children: counts are then upper bounds."""


@dataclass(frozen=True)
class Attack:
    """Everything that may be inferred from a release under a mechanism, class by class."""

    release: Release
    inference: Inference

    @cached_property
    def grid(self) -> Grid:
        return Grid(self.release.config.lattice)

    @cached_property
    def boxes(self) -> list[Box]:
        return [self.grid.box(each.state, each.segment) for each in self.release.classes]

    def targets(self) -> Iterator[Target]:
        """State the problem of every class."""
        for number in range(len(self.release.classes)):
            yield self.target(number)

    def target(self, number: int) -> Target:
        """State the problem of one class."""
        return self._state(self.release.classes[number], self.overlaps[number])

    def outliers(self) -> Target | None:
        """State the problem of the suppressed records; None if there are none."""
        if not self.release.outliers:
            return None
        lattice = self.release.config.lattice
        subject = EquivalenceClass(lattice.top, (0,) * len(lattice.top), self.release.outliers)
        return self._state(subject, range(len(self.release.classes)))

    def _state(self, subject: EquivalenceClass, takers: Sequence[int]) -> Target:
        box = self.grid.box(subject.state, subject.segment)
        taken = [self.boxes[number] for number in takers]
        bound = self.inference.bound(subject.state)
        children = self._children(subject) if bound is not None and subject.size >= bound else {}
        dropped = []
        while bound is not None and _too_much(subject.size, bound, children):
            widest = max(children, key=lambda attribute: len(children[attribute]))
            del children[widest]
            dropped.append(widest)
        free = dict(self._blocks(box, children, taken))
        fanouts = tuple(len(spans) for spans in children.values())
        problem = Problem(subject.size, fanouts, free, bound)
        return Target(subject, tuple(takers), box, problem, tuple(dropped))

    def _children(self, subject: EquivalenceClass) -> dict[int, list[Span]]:
        finest = self.release.config.lattice.finest
        return {
            attribute: self.grid.children(attribute, layer, rank)
            for attribute, (layer, rank) in enumerate(zip(subject.state, subject.segment, strict=True))
            if layer > finest[attribute]
        }

    def _blocks(
        self, box: Box, children: Mapping[int, list[Span]], taken: Sequence[Box]
    ) -> Iterator[tuple[Block, Free]]:
        for block in product(*(range(len(spans)) for spans in children.values())):
            part = list(box)
            for (attribute, spans), child in zip(children.items(), block, strict=True):
                part[attribute] = spans[child]
            yield block, self.grid.free(tuple(part), taken)

    @cached_property
    def overlaps(self) -> list[list[int]]:
        """For every class, the earlier classes that overlap it.

        Two classes overlap if their nodes lie on one branch in every attribute: if they have the same ancestors in the
        join of their states. So classes are matched state by state, not pair by pair.
        """
        by_state: dict[State, list[int]] = defaultdict(list)
        for number, each in enumerate(self.release.classes):
            by_state[each.state].append(number)
        found: list[list[int]] = [[] for _ in self.release.classes]
        for later, earlier in product(by_state, by_state):
            if self.inference.before(earlier, later):
                join = tuple(map(max, later, earlier))
                here = self._segments_at(by_state[later], join)
                there: dict[tuple[int, ...], list[int]] = defaultdict(list)
                for number, segment in zip(by_state[earlier], self._segments_at(by_state[earlier], join), strict=True):
                    there[segment].append(number)
                for number, segment in zip(by_state[later], here, strict=True):
                    found[number] += there.get(segment, ())
        return [sorted(numbers) for numbers in found]

    def _segments_at(self, numbers: Sequence[int], state: State) -> list[tuple[int, ...]]:
        lattice = self.release.config.lattice
        columns: list[Ranks] = []
        for attribute, tree in enumerate(lattice.hierarchies):
            ranks = np.array([self.release.classes[n].segment[attribute] for n in numbers], dtype=np.int64)
            start = self.release.classes[numbers[0]].state[attribute]
            columns.append(tree.climb(ranks, start, state[attribute]))
        return list(zip(*(column.tolist() for column in columns), strict=True))


def _too_much(size: int, bound: int, children: Mapping[int, list[Span]]) -> bool:
    fanouts = [len(spans) for spans in children.values()]
    return prod(fanouts) > MOST_BLOCKS or estimated_work(size, bound, fanouts) > MOST_WORK
