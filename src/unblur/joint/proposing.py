"""Draws from a simpler system: some limits are dropped, and the groups that only these told apart are merged.

Every data set of the full system is one of the simpler system, where all are equally likely. So the share of draws that
keep the dropped limits, times the count of the simpler system, is the count of the full one; and the draws that do are
uniform draws from it. The more limits are kept, the larger is the share, and the more the exact engine has to do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod
from random import Random
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from unblur.counting.placements import Placements
from unblur.counting.problem import Records
from unblur.counting.weights import solutions, split_ways
from unblur.grid import Free, Grid
from unblur.joint.exact import Solved, solve
from unblur.joint.front import OutOfReach
from unblur.joint.frontier import MOST_RECORDS
from unblur.joint.plan import System
from unblur.joint.program import Component
from unblur.joint.tightening import least

Counts = NDArray[np.int16]
"""Records per group, a row for each draw."""


@dataclass(frozen=True)
class Proposal:
    """Independent parts, each of some classes of a component, in which the kept limits hold."""

    component: Component
    parts: tuple[Part, ...]
    kept: frozenset[int]

    @cached_property
    def solutions(self) -> int:
        """Count the raw data sets: a certain upper bound for the component."""
        return prod(part.solutions for part in self.parts)

    def sample(self, number: int, rng: np.random.Generator) -> Counts:
        """Draw from the simpler system."""
        drawn = np.zeros((number, len(self.component.groups)), np.int16)
        for part in self.parts:
            drawn[:, part.groups] = part.sample(number, rng)
        return drawn

    @cached_property
    def dropped(self) -> list[int]:
        """The limits that draws may break."""
        return [number for number in range(len(self.component.system.limits)) if number not in self.kept]

    def broken(self, drawn: Counts) -> NDArray[np.bool_]:
        """For each draw and each dropped limit, whether it is broken."""
        return drawn.astype(np.float32) @ self._inside > self._most

    @cached_property
    def _inside(self) -> NDArray[np.float32]:
        """Which group lies in which dropped limit: small numbers, exact as floating-point ones, which multiply fast."""
        inside = np.zeros((len(self.component.groups), len(self.dropped)), np.float32)
        for column, number in enumerate(self.dropped):
            inside[sorted(self.component.system.limits[number][1]), column] = 1
        return inside

    @cached_property
    def _most(self) -> NDArray[np.float32]:
        return np.array([self.component.system.limits[number][0] for number in self.dropped], np.float32)


class Part(Protocol):
    """Some classes of a component, drawn together."""

    groups: list[int]

    @property
    def solutions(self) -> int:
        """How many ways there are to place their records."""

    def sample(self, number: int, rng: np.random.Generator) -> Counts:
        """Draw records per group."""


@dataclass
class MergedPart:
    """Classes whose kept limits the exact engine can handle."""

    solved: Solved
    merged: list[list[int]]
    """The groups of the component that each group of the solved system stands for."""
    free: Sequence[Free]
    """What is free in the groups of the component."""
    records: Records

    def __post_init__(self) -> None:
        self.groups = [group for members in self.merged for group in members]

    @property
    def solutions(self) -> int:
        return self.solved.solutions

    def sample(self, number: int, rng: np.random.Generator) -> Counts:
        drawn = self.solved.sample(number, rng)
        columns: list[NDArray[np.int16]] = []
        for column, splits in zip(drawn.T, self._splits, strict=True):
            left = column
            for upto in splits:
                here = (rng.random(number)[:, None] >= upto[left]).sum(axis=1).astype(np.int16)
                columns.append(here)
                left = left - here
            columns.append(left)
        return np.stack(columns, axis=1)

    @cached_property
    def _splits(self) -> list[list[NDArray[np.float64]]]:
        """For each merged group, how records are shared out: one group after the other against all that follow."""
        found: list[list[NDArray[np.float64]]] = []
        family = solutions(self.records)
        for members, owner in zip(self.merged, self.solved.system.owners, strict=True):
            size, rest = self.solved.system.sizes[owner], sum(family.of(self.free[group]) for group in members)
            found.append([])
            for group in members[:-1]:
                here = family.of(self.free[group])
                rest -= here
                table = np.ones((size + 1, size + 1))
                for n in range(size + 1):
                    ways = [split_ways(j, n, here, rest, family) for j in range(n + 1)]
                    if sum(ways):
                        table[n, : n + 1] = np.cumsum([float(Fraction(each, sum(ways))) for each in ways])
                        table[n, n:] = 1.0
                found[-1].append(table)
        return found


@dataclass
class ClassPart:
    """One class whose heavy children count together: drawn from its own problem."""

    placements: Placements
    groups: list[int]
    free: Sequence[Free]

    @property
    def solutions(self) -> int:
        return self.placements.solutions

    def sample(self, number: int, rng: np.random.Generator) -> Counts:
        own = Random(int(rng.integers(2**62)))
        drawn = np.zeros((number, len(self.groups)), np.int16)
        for row in range(number):
            for cell, n in self.placements.sample(own).items():
                drawn[row, self._group_of(cell)] += n
        return drawn

    def _group_of(self, cell: tuple[int, ...]) -> int:
        if cell not in self._found:
            self._found[cell] = next(
                place
                for place, group in enumerate(self.groups)
                for piece in self.free[group].pieces
                if all(a <= x < b for x, (a, b) in zip(cell, piece, strict=True))
            )
        return self._found[cell]

    @cached_property
    def _found(self) -> dict[tuple[int, ...], int]:
        return {}


def propose(
    grid: Grid,
    component: Component,
    kept: frozenset[int],
    records: Records,
    *,
    most_states: int,
    known: dict[object, Part],
) -> Proposal:
    """Make a proposal with the given limits, and what each class knows of itself; raises `OutOfReach`."""
    system = component.system
    parts = []
    for owners in connected(len(system.sizes), [{system.owners[g] for g in system.limits[n][1]} for n in kept]):
        limits = frozenset(n for n in kept if system.owners[min(system.limits[n][1])] in owners)
        key = (tuple(owners), limits)
        if key not in known:
            known[key] = _part(grid, component, owners, sorted(limits), records, most_states)
        parts.append(known[key])
    return Proposal(component, tuple(parts), kept)


def _part(
    grid: Grid, component: Component, owners: Sequence[int], kept: Sequence[int], records: Records, most_states: int
) -> Part:
    first = component.targets[owners[0]]
    if len(owners) == 1 and not kept:
        if first.problem.together or first.subject.size > MOST_RECORDS:
            return _class_part(grid, component, owners[0], records)
        try:
            return _merged_part(grid, component, owners, kept, records, most_states)
        except OutOfReach:
            return _class_part(grid, component, owners[0], records)
    return _merged_part(grid, component, owners, kept, records, most_states)


def _class_part(grid: Grid, component: Component, owner: int, records: Records) -> Part:
    groups = [group for group, other in enumerate(component.system.owners) if other == owner]
    return ClassPart(Placements(grid, component.targets[owner].problem, records), groups, component.groups)


def _merged_part(
    grid: Grid, component: Component, owners: Sequence[int], kept: Sequence[int], records: Records, most_states: int
) -> Part:
    system = component.system
    limits = _limits(system, owners, kept)
    merged: dict[tuple[int, tuple[int, ...]], list[int]] = defaultdict(list)
    for group, owner in enumerate(system.owners):
        if owner in owners:
            merged[owner, tuple(n for n, (_, members) in enumerate(limits) if group in members)].append(group)
    place = {owner: index for index, owner in enumerate(owners)}
    numbered = enumerate(limits)
    smaller_limits = tuple(
        (most, frozenset(g for g, (_, signature) in enumerate(merged) if n in signature)) for n, (most, _) in numbered
    )
    smaller = System(
        tuple(system.sizes[owner] for owner in owners), tuple(place[owner] for owner, _ in merged), smaller_limits
    )
    free = [grid.measure([p for g in groups for p in component.groups[g].pieces]) for groups in merged.values()]
    solved = solve(grid, smaller, free, records, most_states=most_states, most_moves=10 * most_states)
    return MergedPart(solved, list(merged.values()), component.groups, records)


def _limits(system: System, owners: Sequence[int], kept: Sequence[int]) -> list[tuple[int, frozenset[int]]]:
    """The kept limits, and what the dropped ones say of a single class, as far as it follows from no other."""
    found = {system.limits[n] for n in kept}
    for owner in owners:
        whole = frozenset(group for group, other in enumerate(system.owners) if other == owner)
        found |= {(most, here) for most, all_ in system.limits if system.sizes[owner] > most and (here := all_ & whole)}
    return least(found)


def connected(number: int, sets: Iterator[set[int]] | Sequence[set[int]]) -> list[list[int]]:
    """Part so many things into those that sets join."""
    label = list(range(number))
    for members in sets:
        joined = {label[each] for each in members}
        label = [min(joined) if each in joined else each for each in label]
    return [[thing for thing in range(number) if label[thing] == each] for each in sorted(set(label))]
