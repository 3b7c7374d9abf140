"""What is known of one component: its count or an estimate, odds per cell, and draws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from unblur.counting.numbers import Count
from unblur.counting.placements import Cell, Placements
from unblur.counting.problem import Records
from unblur.counting.weights import solutions, split_ways
from unblur.grid import Box, Grid
from unblur.joint.blending import Blend, as_fraction
from unblur.joint.estimating import Estimate, Estimator
from unblur.joint.exact import Solved
from unblur.joint.program import Component
from unblur.joint.proposing import Counts, Proposal, propose

Odds = list[Fraction] | list[float]
"""The odds of 0, 1, 2, … records; floating-point numbers where states are too many for exact ones."""
SMALL = 20_000
"""States for the draws of a class alone."""


@dataclass(frozen=True)
class Part:
    """A component that is solved, or a class alone, or one of which there is an estimate."""

    grid: Grid
    component: Component
    records: Records
    solved: Solved | Blend | None = None
    estimate: Estimate | None = None
    estimator: Estimator | None = field(default=None, repr=False)

    @property
    def exact(self) -> bool:
        """Whether the count is known."""
        return self.estimate is None

    @cached_property
    def count(self) -> Count | None:
        """The raw data sets; None if there is only an estimate."""
        if self.estimate:
            return None
        return Count.of(self.solved.solutions) if self.solved else self.classes[0].count_solutions()

    @cached_property
    def combinations(self) -> Count | None:
        """The ways to say how many records each cell holds; None if there is only an estimate."""
        if self.estimate:
            return None
        return Count.of(self.solved.combinations) if self.solved else self.classes[0].count_combinations()

    @cached_property
    def classes(self) -> list[Placements]:
        """Each class on its own."""
        return [Placements(self.grid, target.problem, self.records) for target in self.component.targets]

    def sample(self, number: int, rng: np.random.Generator) -> Counts:
        """Draw numbers of records per group, a row for each draw."""
        if self.solved:
            return self.solved.sample(number, rng)
        if self.estimator:
            return self.estimator.samples(number, rng)
        if len(self.component.groups) == 1:
            return np.full((number, 1), self.component.system.sizes[0])
        return self._alone.sample(number, rng)

    @cached_property
    def _alone(self) -> Proposal:
        return propose(self.grid, self.component, frozenset(), self.records, most_states=SMALL, known={})

    def cell_odds(self, owner: int, cell: Cell) -> Odds | None:
        """The odds that a cell holds 0, 1, 2, … records of a class (its place here); None if there is an estimate."""
        if self.estimate:
            return None
        if not self.solved:
            return self.classes[owner].cell_odds(cell)
        group = self._group_of(owner, cell)
        return [Fraction(1)] if group is None else self._in_cell(self.solved.held(group), group, self._volume(cell))

    def all_odds(self, owner: int) -> Iterator[tuple[Cell, Odds]]:
        """The odds of every free cell of a class; those of a group depend on the volume of the cell only."""
        for group in self.groups_of(owner):
            held, known = self._held(group), dict[int, Odds]()
            for piece in self.component.groups[group].pieces:
                for cell in self.grid.cells(piece):
                    volume = self._volume(cell)
                    if volume not in known:
                        known[volume] = self._in_cell(held, group, volume)
                    yield cell, known[volume]

    def _held(self, group: int) -> Odds:
        """The odds that a group holds 0, 1, 2, … records; where there is an estimate, their share among the draws."""
        if self.solved:
            return self.solved.held(group)
        assert self.estimator
        drawn = self.estimator.plausible[:, group]
        return [int(n) / len(drawn) for n in np.bincount(drawn)]

    def _volume(self, cell: Cell) -> int:
        return self.grid.volume(tuple((position, position + 1) for position in cell))

    def _in_cell(self, held: Odds, group: int, here: int) -> Odds:
        """Share out what a group holds: inside it, every placement is as good as any other."""
        family, whole = solutions(self.records), self.component.groups[group].volume
        shares = [
            [Fraction(split_ways(j, n, here, whole - here, family), family.ways(whole, n)) for j in range(n + 1)]
            if chance
            else []
            for n, chance in enumerate(held)
        ]
        columns = [[row[j] if j < len(row) else Fraction(0) for row in shares] for j in range(len(held))]
        chances = [as_fraction(p) for p in held]
        odds = [sum((p * q for p, q in zip(chances, column, strict=True)), Fraction(0)) for column in columns]
        while len(odds) > 1 and not odds[-1]:
            odds.pop()
        return odds if all(isinstance(p, Fraction) for p in held) else [float(p) for p in odds]

    def _group_of(self, owner: int, cell: Cell) -> int | None:
        for group in self.groups_of(owner):
            for piece in self.component.groups[group].pieces:
                if all(a <= x < b for x, (a, b) in zip(cell, piece, strict=True)):
                    return group
        return None

    def groups_of(self, owner: int) -> list[int]:
        """The groups of a class."""
        return [group for group, other in enumerate(self.component.system.owners) if other == owner]

    def certain(self, owner: int) -> dict[Cell, int] | None:
        """Cells that hold records of a class for sure, and at least how many; None if there is an estimate."""
        if self.estimate:
            return None
        if not self.solved:
            return self.classes[owner].certain()
        found = Counter[Cell]()
        if not self.solved.solutions:
            return {}
        for group in self.groups_of(owner):
            leaves = {leaf for piece in self.component.groups[group].pieces for leaf in self._leaves(piece)}
            if len(leaves) == 1:
                found[leaves.pop()] += min(self.solved.possible(group))
        alone = self.classes[owner].certain()
        return {leaf: n for leaf in {**found, **alone} if (n := max(found[leaf], alone.get(leaf, 0)))}

    def _leaves(self, piece: Box) -> Iterator[Cell]:
        """The first leaf that a box touches, and the last."""
        yield self.grid.leaf([first for first, _ in piece])
        yield self.grid.leaf([end - 1 for _, end in piece])

    def impossible(self, owner: int) -> Iterator[Cell] | None:
        """Free cells of a class that hold none of its records for sure; None if there is an estimate."""
        if self.estimate:
            return None
        empty = [self.component.groups[group] for group in self.empty(owner)]
        return (cell for free in empty for piece in free.pieces for cell in self.grid.cells(piece))

    def empty(self, owner: int) -> list[int]:
        """The groups that hold no record of a class for sure."""
        return [
            group for group in self.groups_of(owner) if self.solved and max(self.solved.possible(group), default=0) == 0
        ]

    def singling_out(self, owner: int) -> Fraction | None:
        """The probability that some cell holds exactly one record of a class; None if that takes too long."""
        if self.estimate or self.grid.has_points:
            return None
        if not self.solved:
            return self.classes[owner].singling_out_odds()
        return self.solved.singling_out(owner)
