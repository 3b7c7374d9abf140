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

from unblur.counting.exact import ExactCount
from unblur.counting.numbers import Count
from unblur.counting.problem import Block, Problem, Records
from unblur.counting.weights import COMBINATIONS, Family, Marked, Series, solutions, split_ways
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
        held: Counter[tuple[int, int]] = Counter()
        for cell, n in placement.items():
            block = self.block_of(cell)
            if block is None or (self.records == "distinct" and n > self._volume(cell)):
                return False
            held.update(dict.fromkeys(enumerate(block), n))
        return sum(placement.values()) == self.problem.size and self._keeps_rules(held)

    def _keeps_rules(self, held: Mapping[tuple[int, int], int]) -> bool:
        """Whether the children may hold so many records."""
        by_attribute: dict[int, list[int]] = defaultdict(list)
        for (attribute, _), n in held.items():
            by_attribute[attribute].append(n)
        return all(map(self.problem.allows, by_attribute.values()))

    def certain(self) -> dict[Cell, int]:
        """The leaves (cells, unless these are finer) that hold records in every placement, and at least how many."""
        groups = self._groups()
        left = set(groups)
        for leaf, blocks in groups.items():
            if leaf in left and (taken := self._put_elsewhere(blocks)) is not None:
                left = {each for each in left if groups[each] & taken}
        least = {leaf: self._least(groups[leaf]) for leaf in left}
        return {leaf: n for leaf, n in least.items() if n} | self._crowded()

    def _groups(self) -> dict[Cell, frozenset[Block]]:
        """The blocks that lie in a single leaf, leaf by leaf."""
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
            most = max(self.grid.cell_volumes(free))
            if 1 < free.cells <= MOST_CELLS and free.volume - most < self.problem.size:
                least = self._least(frozenset([block]))
                for cell in self._cells(free) if least else ():
                    if (n := least - self._room(free.volume - self._volume(cell))) > 0:
                        found[cell] = n
        return found

    def _put_elsewhere(self, avoided: frozenset[Block]) -> set[Block] | None:
        """Try to place all records without some blocks: fill the others one by one; None if that does not succeed."""
        if self.problem.size == self.problem.bound and (found := self._scattered(avoided)):
            return found
        for blocks in (self.problem.blocks, self.problem.blocks[::-1]):
            left, held, taken = self.problem.size, Counter[tuple[int, int]](), set()
            for block in blocks:
                if left and block not in avoided and (n := min(left, self._space(block, held))) > 0:
                    taken.add(block)
                    left -= n
                    held.update(dict.fromkeys(enumerate(block), n))
            if not left and self._keeps_rules(held):
                return taken
        return None

    def _scattered(self, avoided: frozenset[Block]) -> set[Block] | None:
        """Where only all records are too many for a child: a block, and one apart from it in each attribute."""
        blocks = [block for block in self.problem.blocks if block not in avoided]
        if not blocks:
            return None
        first, found = blocks[0], {blocks[0]}
        for attribute, child in enumerate(first):
            if all(block[attribute] == child for block in found):
                apart = next((block for block in blocks if block[attribute] != child), None)
                if apart is None:
                    return None
                found.add(apart)
        left = self.problem.size - len(found) + 1
        return found if left > 0 and self._room(self.problem.free[first].volume) >= left else None

    def _space(self, block: Block, held: Mapping[tuple[int, int], int]) -> int:
        """How many records a block can take beside those that its children hold."""
        room = self._room(self.problem.free[block].volume)
        if self.problem.bound is None:
            return room
        return min([room, *(self.problem.bound - 1 - held[child] for child in enumerate(block))])

    def _room(self, volume: int) -> int:
        """How many of the class's records fit in a volume."""
        return min(volume, self.problem.size) if self.records == "distinct" or not volume else self.problem.size

    def _least(self, blocks: frozenset[Block]) -> int:
        """The fewest records that some blocks may hold together."""
        if len(blocks) == len(self.problem.blocks):
            return self.problem.size
        if len(blocks) > 1:
            return next(n for n, chance in enumerate(self.held(sorted(blocks))) if chance)
        (block,) = blocks
        return next(n for n in range(self.problem.size + 1) if self._exact.count({block: n}))

    def block_odds(self, block: Block) -> list[Fraction]:
        """The probability that a block holds 0, 1, 2, … records, up to the most it can hold."""
        if block not in self._odds:
            self._odds[block] = self.held([block])
        return self._odds[block]

    def held(self, blocks: Sequence[Block]) -> list[Fraction]:
        """The probability that some blocks together hold 0, 1, 2, … records, up to the most they can hold."""
        pieces = frozenset(self.problem.free[block].pieces for block in blocks)
        marked = Marked(solutions(self.records), pieces, self.solutions.bit_length())
        return [Fraction(n, self.solutions) for n in marked.read(ExactCount(self.problem, marked).count())]

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
        series = Series(solutions(self.records).labelled, self.problem.size, lambda free: self._no_single(series, free))
        return 1 - Fraction(ExactCount(self.problem, series).count(), self.solutions)

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

    def _no_single(self, series: Series, free: Free) -> tuple[int, ...]:
        ways = solutions(self.records).formula
        parts = [
            series.power(tuple(0 if n == 1 else ways(volume, n) for n in range(self.problem.size + 1)), cells)
            for volume, cells in self.grid.cell_volumes(free).items()
        ]
        return series.join(parts)

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
