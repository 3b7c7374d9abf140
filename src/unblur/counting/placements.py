"""What is left plausible for one class: counts, odds per cell, samples, and all placements in turn.

Inside a block every placement of its records is as good as any other, so the odds of a cell follow from those of its
block: how many records the block holds, times the chance that so many of them fall in the cell.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod

from unblur.counting.alone import count_nobody_alone
from unblur.counting.certain import Rooms, held, keeps_rules, least_held, room
from unblur.counting.exact import ExactCount
from unblur.counting.numbers import Count
from unblur.counting.problem import Block, Problem, Records
from unblur.counting.weights import COMBINATIONS, Family, solutions, split_ways
from unblur.grid import Box, Free, Grid

Cell = tuple[int, ...]
"""A cell by its positions on the axes."""
MOST_RECORDS = 150
MOST_PRODUCTS = 2_000_000
"""Larger classes, or more scattered ones, are not asked for the odds of a cell that holds one record."""
MOST_CELLS = 10_000
"""Blocks of more cells are not searched for cells that are certain because all others are full."""


@dataclass(frozen=True)
class Placements:
    """All ways to place the records of a class that the release leaves open."""

    grid: Grid
    problem: Problem
    records: Records

    @cached_property
    def solutions(self) -> int:
        """Count the raw data sets: the paper's CRA_solutions."""
        return self._exact.count()

    @cached_property
    def combinations(self) -> int:
        """Count the placements that differ in how many records some cell holds."""
        return ExactCount(self.problem, COMBINATIONS).count()

    def count_solutions(self) -> Count:
        """Count the raw data sets, if only by their logarithm."""
        return self._count(solutions(self.records))

    def count_combinations(self) -> Count:
        """Count the combinations, if only by their logarithm."""
        return self._count(COMBINATIONS)

    def _count(self, family: Family) -> Count:
        if not self.problem.constrained:
            return family.count(sum(family.of(free) for free in self.problem.free.values()), self.problem.size)
        return Count.of(self.solutions if family is solutions(self.records) else self.combinations)

    def allows(self, placement: Mapping[Cell, int]) -> bool:
        """Whether this is one of the placements."""
        children: Counter[tuple[int, int]] = Counter()
        for cell, n in placement.items():
            block = self.block_of(cell)
            if block is None or (self.records == "distinct" and n > self._volume(cell)):
                return False
            children.update(dict.fromkeys(enumerate(block), n))
        return sum(placement.values()) == self.problem.size and keeps_rules(self.problem, children)

    def certain(self) -> dict[Cell, int]:
        """The leaves (cells, unless these are finer) that hold records in every placement, and at least how many."""
        groups = self._groups()
        if len(self.problem.blocks) == 1:
            return dict.fromkeys(groups, self.problem.size) or self._crowded()
        least = zip(groups, least_held(self._rooms, tuple(groups.values())), strict=True) if groups else ()
        return {leaf: n for leaf, n in least if n} | self._crowded()

    def _groups(self) -> dict[Cell, frozenset[Block]]:
        """The blocks that lie in a single leaf, leaf by leaf."""
        if not self.grid.has_points:  # cells are leaves
            alone = {block: self.problem.free[block] for block in self.problem.blocks}
            return {
                tuple(first for first, _ in free.pieces[0]): frozenset([block])
                for block, free in alone.items()
                if free.cells == 1
            }
        groups: dict[Cell, set[Block]] = defaultdict(set)
        for block in self.problem.blocks:
            touched = {self.grid.leaves(piece) for piece in self.problem.free[block].pieces}
            if len(touched) == 1 and self.grid.count_cells(box := touched.pop()) == 1:
                groups[tuple(first for first, _ in box)].add(block)
        return {leaf: frozenset(blocks) for leaf, blocks in groups.items()}

    def _crowded(self) -> dict[Cell, int]:
        """Cells that distinct records must fill because the others of their block are full."""
        found: dict[Cell, int] = {}
        if self.records == "any" or self.grid.has_points:
            return found
        for block in self.problem.blocks:
            free = self.problem.free[block]
            if not 1 < free.cells <= min(MOST_CELLS, self.problem.size):  # every other cell has room for a record
                continue
            if free.volume - max(self.grid.cell_volumes(free)) < self.problem.size:
                (least,) = least_held(self._rooms, (frozenset([block]),))
                for cell in self._cells(free) if least else ():
                    others = free.volume - self._volume(cell)
                    if (n := least - room(others, self.problem.size, self.records)) > 0:
                        found[cell] = n
        return found

    @cached_property
    def _rooms(self) -> Rooms:
        return Rooms.of(self.problem, self.records)

    def block_odds(self, block: Block) -> list[Fraction]:
        """The probability that a block holds 0, 1, 2, … records, up to the most it can hold."""
        if block not in self._odds:
            self._odds[block] = self.held([block])
        return self._odds[block]

    def held(self, blocks: Sequence[Block]) -> list[Fraction]:
        """The probability that some blocks together hold 0, 1, 2, … records, up to the most they can hold."""
        return held(self.problem, blocks, self.records)

    def cell_odds(self, cell: Cell) -> list[Fraction]:
        """The probability that a cell holds 0, 1, 2, … records."""
        block = self.block_of(cell)
        if block is None:
            return [Fraction(1)]
        here = self._volume(cell)
        whole = self.problem.free[block].volume
        family, odds = solutions(self.records), [Fraction(0)] * (self.problem.size + 1)
        for n, chance in enumerate(self.block_odds(block)):
            if chance:
                for j in range(n + 1):
                    odds[j] += chance * Fraction(split_ways(j, n, here, whole - here, family), family.ways(whole, n))
        while len(odds) > 1 and not odds[-1]:
            odds.pop()
        return odds

    def block_of(self, cell: Cell) -> Block | None:
        """Find the block of a free cell; None if the cell is not free."""
        for block in self.problem.blocks:
            if any(_holds(piece, cell) for piece in self.problem.free[block].pieces):
                return block
        return None

    @cached_property
    def singling_out(self) -> Fraction:
        """The probability that at least one cell holds exactly one record."""
        return 1 - Fraction(count_nobody_alone(self.problem, self.grid, self.records), self.solutions)

    def singling_out_odds(self) -> Fraction | None:
        """The same, unless it would take too long, or cells are finer than what people call a cell."""
        if self.grid.has_points:
            return None
        if sum(free.cells for free in self.problem.free.values()) == 1:
            return Fraction(int(self.problem.size == 1))
        pieces = sum(len(free.pieces) for free in self.problem.free.values())
        work = (pieces + prod(fanout + 1 for fanout in self.problem.fanouts)) * self.problem.size**2
        small = self.problem.size <= MOST_RECORDS and work <= MOST_PRODUCTS
        return self.singling_out if small else None

    def sample(self, rng: random.Random) -> Counter[Cell]:
        """Draw one placement, each raw data set being as likely as any other: the number of records per cell."""
        fixed: dict[Block, int] = {}
        for block in self.problem.blocks:
            if sum(fixed.values()) == self.problem.size:
                break
            counts = self._exact.distribution(block, fixed)
            fixed[block] = _choose(counts, rng)
        drawn: Counter[Cell] = Counter()
        for block, n in fixed.items():
            drawn.update(self._draw(self.problem.free[block], n, rng))
        return drawn

    def _draw(self, free: Free, n: int, rng: random.Random) -> Iterator[Cell]:
        """Draw n raw records from a region, and tell their cells."""
        seen: set[tuple[Cell, int]] = set()
        volumes = [self.grid.volume(piece) for piece in free.pieces]
        while n:
            cell = self.grid.random_cell(free.pieces[_choose(volumes, rng)], rng)
            if self.records == "distinct":
                point = (cell, rng.randrange(self._volume(cell)))
                if point in seen:
                    continue
                seen.add(point)
            n -= 1
            yield cell

    def enumerate(self) -> Iterator[dict[Cell, int]]:
        """Go through all placements, in a fixed order."""
        for fixed in self._block_counts({}, 0):
            yield from self._fill_blocks(list(fixed.items()), {})

    def _block_counts(self, fixed: Mapping[Block, int], place: int) -> Iterator[dict[Block, int]]:
        if place == len(self.problem.blocks):
            if sum(fixed.values()) == self.problem.size:
                yield dict(fixed)
            return
        block = self.problem.blocks[place]
        for n, count in enumerate(self._exact.distribution(block, fixed)):
            if count:
                yield from self._block_counts({**fixed, block: n}, place + 1)

    def _fill_blocks(self, blocks: list[tuple[Block, int]], filled: dict[Cell, int]) -> Iterator[dict[Cell, int]]:
        if not blocks:
            yield filled
            return
        (block, n), *others = blocks
        for counts in self._compositions(self._cells(self.problem.free[block]), n):
            yield from self._fill_blocks(others, filled | counts)

    def _compositions(self, cells: list[Cell], n: int) -> Iterator[dict[Cell, int]]:
        if n == 0:
            yield {}
        elif cells:
            first, *others = cells
            volume = self._volume(first)
            for here in range(min(n, volume) if self.records == "distinct" else n, -1, -1):
                for rest in self._compositions(others, n - here):
                    yield ({first: here} if here else {}) | rest

    def _cells(self, free: Free) -> list[Cell]:
        return sorted(cell for piece in free.pieces for cell in self.grid.cells(piece))

    def _volume(self, cell: Cell) -> int:
        return self.grid.volume(tuple((position, position + 1) for position in cell))

    @cached_property
    def _exact(self) -> ExactCount:
        return ExactCount(self.problem, solutions(self.records))

    @cached_property
    def _odds(self) -> dict[Block, list[Fraction]]:
        return {}


def published_solutions(volume: int, size: int, records: Records) -> Count:
    """Count the raw data sets that the label alone leaves open: the paper's LR_solutions."""
    return solutions(records).count(volume, size)


def _holds(box: Box, cell: Cell) -> bool:
    return all(first <= position < last for (first, last), position in zip(box, cell, strict=True))


def _choose(counts: list[int], rng: random.Random) -> int:
    """Draw an index with a chance in proportion to its count: exactly, however large the counts are."""
    point = rng.randrange(sum(counts))
    for index, count in enumerate(counts):
        if point < count:
            return index
        point -= count
    raise AssertionError("the counts add up to more than any point")
