"""Placements in which no cell holds exactly one record: what remains if nobody stands alone.

Cells of the same volume are alike. Let `N` cells have volume `v` each; choose `j` cells that hold one record each,
whatever the others hold, and take them away again and again (inclusion and exclusion):

    sum over j of (-1)^j C(N, j) v^j ways((N - j) v, n - j)    (times n! / (n - j)! if records are told apart)

Where cells have several volumes, a region is told by how many of each it has: the digits of one whole number, so that
it adds up over disjoint regions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import comb, gcd, nan, perm

from unblur.counting.exact import ExactCount
from unblur.counting.problem import Problem, Records
from unblur.counting.weights import Family, Series, solutions
from unblur.grid import Box, Free, Grid

MOST_KINDS = 4
"""With cells of more volumes than this, telling them apart takes longer than it saves."""
MOST_REMEMBERED = 100_000


@dataclass(frozen=True)
class Kinds:
    """The volumes that cells have, and the base in which their numbers are told."""

    records: Records
    volumes: tuple[int, ...]
    base: int
    """More than there are cells of any volume."""

    def code(self, cells: Mapping[int, int], unit: int) -> int:
        """Tell by one number how many cells there are of each volume, which is told in units."""
        return sum(cells.get(volume * unit, 0) * self.base**place for place, volume in enumerate(self.volumes))

    def ways(self, code: int, n: int) -> int:
        """Count the ways to place n records in a region so that nobody is alone."""
        return _ways(self, code, len(self.volumes), n)


def count_nobody_alone(problem: Problem, grid: Grid, records: Records) -> int:
    """Count the raw data sets in which no cell holds exactly one record."""
    cells = {free.pieces: grid.cell_volumes(free) for free in problem.free.values()}
    volumes = sorted(set().union(*cells.values()))
    if len(volumes) > MOST_KINDS:
        return ExactCount(problem, _series(problem.size, cells, records)).count()
    # Where records are told apart, so many times as large cells have so many times the ways for each of them.
    unit = gcd(*volumes) or 1 if records == "any" else 1
    free_cells = sum(free.cells for free in problem.free.values())
    base = 2 ** free_cells.bit_length() if len(volumes) > 1 else 1
    kinds = Kinds(records, tuple(volume // unit for volume in volumes), base)
    codes = {pieces: kinds.code(found, unit) for pieces, found in cells.items()}
    labelled = solutions(records).labelled
    family = Family(labelled, lambda free: codes[free.pieces], kinds.ways, log2=lambda code, n: nan)
    return int(unit**problem.size) * ExactCount(problem, family).count()


def _series(size: int, cells: Mapping[tuple[Box, ...], Mapping[int, int]], records: Records) -> Series:
    """Weights that are told number by number, for cells of many volumes."""
    ways = solutions(records).formula

    def one(free: Free) -> tuple[int, ...]:
        return series.join(
            [
                series.power(tuple(0 if n == 1 else ways(volume, n) for n in range(size + 1)), times)
                for volume, times in cells[free.pieces].items()
            ]
        )

    series = Series(solutions(records).labelled, size, one)
    return series


@lru_cache(maxsize=MOST_REMEMBERED)
def _ways(kinds: Kinds, code: int, volumes: int, n: int) -> int:
    if volumes == 1:
        return _equal_cells(kinds.records, kinds.volumes[0], code, n)
    cells, rest = divmod(code, kinds.base ** (volumes - 1))
    volume = kinds.volumes[volumes - 1]
    return sum(
        _equal_cells(kinds.records, volume, cells, j)
        * _ways(kinds, rest, volumes - 1, n - j)
        * (comb(n, j) if kinds.records == "any" else 1)
        for j in range(n + 1)
    )


@lru_cache(maxsize=MOST_REMEMBERED)
def _equal_cells(records: Records, volume: int, cells: int, n: int) -> int:
    """Count them for cells of one volume."""
    family, total = solutions(records), 0
    for j in range(min(n, cells) + 1):
        single = comb(cells, j) * volume**j * (perm(n, j) if family.labelled else 1)
        total += (-1) ** j * single * family.ways((cells - j) * volume, n - j)
    return total
