"""The exact engine: states and moves of a component are found once, then asked for counts, odds and samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import islice
from math import comb

import numpy as np
from numpy.typing import NDArray

from unblur.counting.problem import Records
from unblur.counting.weights import COMBINATIONS, Family, Series, solutions
from unblur.grid import Free, Grid
from unblur.joint.flow import Flow
from unblur.joint.flowing import Table
from unblur.joint.front import Layer, OutOfReach
from unblur.joint.frontier import MOST_MOVES, MOST_STATES, explore
from unblur.joint.ordering import Order, good_orders
from unblur.joint.plan import System
from unblur.joint.tightening import tighten

TRIES = ((0, 1, 120, 1), (1, 2, 24, 1), (1, 9, 24, 2), (1, 9, 5, 2), (1, 9, 1, 1))
"""Of these orders, from and up to, with this part of the limits, so many are tried: bad ones are given up early.

The very first order, found at once, is for what is easy.
"""
HOPELESS = 1
"""With a guess of more than so many times the states that there may be, an order is not tried."""
ROUGHLY_HOPELESS = 2.5e9
"""The very first order has a guess that is far too large; with so many times more, no others are looked for."""
ROUNDING = 1e-9
"""What floating-point shares are surely good to."""
MOST_GROUPS = 300
"""With more groups, no order is good enough."""


@dataclass(frozen=True)
class Solved:
    """A system whose states are known, and what is free in each of its groups."""

    grid: Grid
    system: System
    groups: Sequence[Free]
    records: Records
    layers: Sequence[Layer]

    @cached_property
    def solutions(self) -> int:
        """Count the raw data sets."""
        return self.flow.count()

    @cached_property
    def combinations(self) -> int:
        """Count the ways to say how many records each cell holds."""
        return self._with(COMBINATIONS).count()

    @cached_property
    def flow(self) -> Flow:
        """The flow of raw data sets."""
        return self._with(solutions(self.records))

    def _with(self, family: Family) -> Flow:
        return Flow(self.layers, [self._table(family, group) for group in range(len(self.groups))], family.labelled)

    def _table(self, family: Family, group: int) -> Table:
        region, size = family.of(self.groups[group]), self.system.sizes[self.system.owners[group]]
        return [family.ways(region, n) for n in range(size + 1)]

    def held(self, group: int) -> list[Fraction] | list[float]:
        """The odds that a group holds 0, 1, 2, … records; exact unless there are too many states."""
        return self.flow.held(group)

    def possible(self, group: int) -> list[int]:
        """The numbers of records that a group may hold."""
        return self.flow.possible(group)

    def without_singles(self, owner: int) -> int:
        """Count the raw data sets in which no cell holds exactly one record of a class."""
        return self._without_singles(owner).count()

    def singling_out(self, owner: int) -> Fraction:
        """The odds that some cell holds exactly one record of a class; exact unless there are too many states."""
        if not self.flow.small:
            share = self._without_singles(owner).share(self.flow)
            # Close to nothing and to all, rounding could make something certain that is not.
            if 0 < share < 1 - ROUNDING:
                return 1 - Fraction(share)
        return 1 - Fraction(self.without_singles(owner), self.solutions)

    def _without_singles(self, owner: int) -> Flow:
        family = solutions(self.records)
        size = self.system.sizes[owner]
        series = Series(family.labelled, size, lambda free: ())
        tables = list(self.flow.ways)
        for group, free in enumerate(self.groups):
            if self.system.owners[group] == owner:
                alone = [
                    series.power(tuple(0 if n == 1 else family.ways(volume, n) for n in range(size + 1)), cells)
                    for volume, cells in self.grid.cell_volumes(free).items()
                ]
                tables[group] = series.join(alone)
        return Flow(self.layers, tables, family.labelled)

    def sample(self, number: int, rng: np.random.Generator) -> NDArray[np.int16]:
        """Draw the numbers of records per group, a row for each draw."""
        return self.flow.sample(number, rng)


def solve(
    grid: Grid,
    system: System,
    groups: Sequence[Free],
    records: Records,
    *,
    most_states: int = MOST_STATES,
    most_moves: int = MOST_MOVES,
) -> Solved:
    """Find the states of a system, with the first of some orders that is good enough; raise `OutOfReach` if none is."""
    if len(system.owners) > MOST_GROUPS:
        raise OutOfReach(f"{len(system.owners):,} groups")
    tight = replace(tighten(system), kinds=_kinds(grid, groups))
    orders, known = good_orders(tight), list[Order]()
    for start, end, part, most in TRIES:
        known += islice(orders, end - len(known))
        guess = min(order.states for order in known)
        if guess > most_states * (HOPELESS if start else ROUGHLY_HOPELESS):
            raise OutOfReach(f"about {guess:.0e} states")
        hopeful = [each for each in known[start:end] if not start or each.states <= HOPELESS * most_states / part]
        hopeful.sort(key=lambda each: each.cost)
        for order in hopeful[:most]:
            try:
                layers = explore(tight, order.groups, most_states=most_states // part, most_moves=most_moves // part)
            except OutOfReach:
                continue
            return Solved(grid, system, groups, records, layers)
    raise OutOfReach(
        f"{len(system.owners)} groups and {len(system.limits)} limits have more than {most_states:,} states"
    )


def _kinds(grid: Grid, groups: Sequence[Free]) -> tuple[int, ...]:
    """Number groups by all that is ever counted of them: points, cells, and how many cells have how many points."""
    roughly = Counter((group.volume, group.cells) for group in groups)
    numbers: dict[Hashable, int] = {}

    def number(group: Free) -> int:
        key: Hashable = group.volume, group.cells
        if roughly[group.volume, group.cells] > 1:
            key = key, tuple(sorted(grid.cell_volumes(group).items()))
        return numbers.setdefault(key, len(numbers))

    return tuple(map(number, groups))


def weight_of(system: System, groups: Sequence[Free], records: Records, counts: Sequence[int]) -> int:
    """Count the raw data sets that have given numbers of records in the groups."""
    family, left, total = solutions(records), list(system.sizes), 1
    for free, owner, n in zip(groups, system.owners, counts, strict=True):
        total *= family.ways(family.of(free), n) * (comb(left[owner], n) if family.labelled else 1)
        left[owner] -= n
    return total
