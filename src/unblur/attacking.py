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
from math import prod

from unblur.arx.inference import ArxInference
from unblur.arx.settings import ArxSettings
from unblur.config import Mechanism
from unblur.counting.exact import estimated_work
from unblur.counting.problem import Block, Problem
from unblur.grid import Box, Free, Grid, Span
from unblur.mechanisms import (
    GreedyInference,
    Inference,
    IterativeInference,
    NoInference,
    Order,
    PaperInference,
)
from unblur.overlaps import overlapping_pairs
from unblur.release import EquivalenceClass, Release

FEW_BLOCKS = 400
"""Where children are the raw values of a leaf, more blocks are not worth it: hardly ever do k records share a value."""
MOST_CHILDREN = 64
MOST_BLOCKS = 5_000
"""A problem of more children of a node, or more blocks, is made smaller: the constraint of the widest is dropped."""
EFFORT = 30_000_000
"""So many steps, about half a second, may be spent on counting a class; beyond, constraints are dropped likewise."""
_Part = tuple[Block, int, int, Box]
"""A part of a piece in its first attributes: the children it lies in, volume, cells, and spans."""


def inference_of(mechanism: Mechanism, release: Release, order: Order = "sound") -> Inference:
    """Say what may be inferred from a release that was made by a mechanism."""
    lattice, k = release.config.lattice, release.config.k
    if mechanism.name == "paper":
        return PaperInference(lattice, k, order)
    if mechanism.name == "unknown":
        return NoInference()
    if mechanism.name == "greedy":
        constant = mechanism.settings.get("requirement") == "constant"
        return GreedyInference(release, constant=constant)
    if mechanism.name == "arx" and not mechanism.settings.get("gs_factor"):
        return ArxInference(release, ArxSettings.of(mechanism, k))
    # With a gsFactor above 0 ARX weighs suppression, too: a cheaper state need not have been unusable.
    return IterativeInference(lattice)


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
    effort: int = EFFORT

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

    def is_free_cell(self, number: int) -> bool:
        """Whether a class is a single cell that no other may have taken: then there is nothing to count."""
        lattice = self.grid.lattice
        return (
            self.release.classes[number].state == lattice.finest
            and not self.overlaps[number]
            and not self.grid.has_points
        )

    def outliers(self) -> Target | None:
        """State the problem of the suppressed records; None if there are none."""
        if not self.release.outliers:
            return None
        lattice = self.release.config.lattice
        subject = EquivalenceClass(lattice.top, (0,) * len(lattice.top), self.release.outliers)
        takers = [n for n, each in enumerate(self.release.classes) if self.inference.before(each, subject)]
        return self._state(subject, takers)

    def _state(self, subject: EquivalenceClass, takers: Sequence[int]) -> Target:
        box = self.grid.box(subject.state, subject.segment)
        problem, dropped = self.pose(subject, takers, self.inference.bound(subject))
        return Target(subject, tuple(takers), box, problem, dropped)

    def pose(
        self, subject: EquivalenceClass, takers: Sequence[int], bound: int | None, *, most_children: int | None = None
    ) -> tuple[Problem, tuple[int, ...]]:
        """Pose the problem of a class: classes that took cells, and a bound for nodes of up to so many children.

        Also tells the attributes that were left out because counting would take too long.
        """
        children = self._children(subject) if bound is not None and subject.size >= bound else {}
        if most_children is not None:
            children = {attribute: spans for attribute, spans in children.items() if len(spans) <= most_children}
        dropped = []
        while children and bound is not None and self._too_much(subject, bound, children):
            raw = [attribute for attribute in children if subject.state[attribute] == 1]
            widest = max(raw or children, key=lambda attribute: len(children[attribute]))
            del children[widest]
            dropped.append(widest)
        box = self.grid.box(subject.state, subject.segment)
        free = self._blocks(box, children, [self.boxes[number] for number in takers])
        fanouts = tuple(len(spans) for spans in children.values())
        return Problem(subject.size, fanouts, free, bound, self.release.config.k), tuple(dropped)

    def _children(self, subject: EquivalenceClass) -> dict[int, Sequence[Span]]:
        lattice = self.grid.lattice
        found = {
            attribute: self.grid.children(attribute, layer, rank)
            for attribute, (layer, rank) in enumerate(zip(subject.state, subject.segment, strict=True))
            if layer > lattice.finest[attribute]
        }
        if subject.state != lattice.top:
            return found
        # Where the root has an only child of the same label, nobody can tell which of them the outliers are at.
        trees = lattice.hierarchies
        return {
            attribute: spans
            for attribute, spans in found.items()
            if len(spans) > 1 or trees[attribute].highest(subject.state[attribute] - 1, 0) < subject.state[attribute]
        }

    def _blocks(self, box: Box, children: Mapping[int, Sequence[Span]], taken: Sequence[Box]) -> dict[Block, Free]:
        """Part what is free of a box into blocks."""
        if not children and not taken:
            return {(): self.grid.measure([box])}
        parts: dict[tuple[int, Span], list[_Part]] = {}
        found: dict[Block, list[tuple[int, int, Box]]] = defaultdict(list)
        for piece in self.grid.pieces(box, taken):
            cut: list[_Part] = [((), 1, 1, ())]
            for place in enumerate(piece):
                if place not in parts:
                    parts[place] = list(self._parts(*place, children.get(place[0])))
                cut = [(b + d, v * w, m * n, x + y) for b, v, m, x in cut for d, w, n, y in parts[place]]
            for block, volume, cells, part in cut:
                found[block].append((volume, cells, part))
        return {block: _joined(pieces) for block, pieces in found.items()}

    def _parts(self, attribute: int, whole: Span, children: Sequence[Span] | None) -> Iterator[_Part]:
        """Part a span among the children that it overlaps."""
        for child, (a, b) in enumerate([whole] if children is None else children):
            span = max(a, whole[0]), min(b, whole[1])
            if span[0] < span[1]:
                block = () if children is None else (child,)
                yield block, self.grid.axis_volume(attribute, span), span[1] - span[0], (span,)

    @cached_property
    def overlaps(self) -> list[list[int]]:
        """For every class, the classes that surely came before and overlap it."""
        classes, before = self.release.classes, self.inference.before
        found: list[list[int]] = [[] for _ in classes]
        for one, other in overlapping_pairs(self.boxes).tolist():
            if before(classes[one], classes[other]):
                found[other].append(one)
            elif before(classes[other], classes[one]):
                found[one].append(other)
        return [sorted(numbers) for numbers in found]

    def _too_much(self, subject: EquivalenceClass, bound: int, children: Mapping[int, Sequence[Span]]) -> bool:
        fanouts, k = [len(spans) for spans in children.values()], self.release.config.k
        most = FEW_BLOCKS if any(subject.state[attribute] == 1 for attribute in children) else MOST_BLOCKS
        if max(fanouts, default=0) > MOST_CHILDREN or prod(fanouts) > most:
            return True
        return estimated_work(subject.size, bound, fanouts, k) > self.effort


def _joined(pieces: Sequence[tuple[int, int, Box]]) -> Free:
    volumes, cells, boxes = zip(*pieces, strict=True)
    return Free(sum(volumes), sum(cells), boxes)
