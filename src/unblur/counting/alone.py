"""Placements in which no cell holds exactly one record: what remains if nobody stands alone.

Let `N` cells have the same volume `v`; choose `j` cells that hold one record each, whatever the others hold, and take
them away again and again (inclusion and exclusion):

    sum over j of (-1)^j C(N, j) v^j ways((N - j) v, n - j)    (times n! / (n - j)! if records are told apart)

Where cells have several volumes: `n` records can be put one by one into a cell in `v^n` ways (`v (v - 1) …` if they are
distinct), and in none for `n = 1`. Cells side by side multiply the generating functions `e^(vx) - vx`, or
`(1 + x)^v - vx`. So their logarithms add up, and the coefficients of these times `n!`, the *cumulants*, too. They are
polynomials in `v`; at `v^m` stands

    - sum over j of C(n, j) (j - 1)! (-1)^(n - j) c(n - j, m - j) j^(m - j)    (-(-1)^n (n - 1)! more for m = 1)

with Stirling's numbers `c` of the first kind, unsigned; if records are told apart, only `m = n` is left of it. So all
that matters of a region are the sums of the powers of its cells' volumes: the digits of one whole number, which adds up
over disjoint regions. Of many records there are too many such sums: then the generating functions themselves are
multiplied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import comb, factorial, nan
from typing import Any

import numpy as np

from unblur.counting.exact import ExactCount
from unblur.counting.problem import Problem, Records
from unblur.counting.weights import Family, Series, solutions
from unblur.grid import Box, Free, Grid

MANY = 12
"""Of more records than this, unlike cells are told by series: there would be too many powers of their volumes."""
MOST_REMEMBERED = 1_000
MOST_WAYS = 100_000
STEP = 16
"""Digits take so many bits, or a multiple of it: like classes then have like codes."""


@dataclass(frozen=True)
class Code:
    """Tells a region by one number, of whose digits its cumulants are sums."""

    records: Records
    rows: tuple[tuple[int, ...], ...]
    """For each digit, the cumulants that it adds, for 0, 1, 2, … records."""
    widths: tuple[int, ...]
    """How many bits each digit takes; the last one has no end."""

    def of(self, digits: Sequence[int]) -> int:
        """Write the number."""
        code = 0
        for digit, width in zip(digits[::-1], (0, *self.widths[::-1]), strict=True):
            code = code << width | digit
        return code

    def ways(self, code: Any, n: int) -> Any:
        """Count the ways to place n records so that nobody is alone in a region, or in each of an array of regions."""
        digits = []
        for width in self.widths:
            digits.append(code & (1 << width) - 1)
            code = code >> width
        told = list(zip(self.rows, (*digits, code), strict=True))
        cumulants = [sum(row[m] * digit for row, digit in told if row[m]) for m in range(n + 1)]
        ways: list[Any] = [1]
        for m in range(1, n + 1):
            ways.append(sum(comb(m - 1, j - 1) * cumulants[j] * ways[m - j] for j in range(2, m + 1) if m - j != 1))
        return ways[n] // factorial(n) if self.records == "distinct" else ways[n]


def count_nobody_alone(problem: Problem, grid: Grid, records: Records) -> int:
    """Count the raw data sets in which no cell holds exactly one record."""
    if problem.size == 1:
        return 0
    if problem.size > MANY and not grid.is_even:
        cells = {free.pieces: grid.cell_volumes(free) for free in problem.free.values()}
        return ExactCount(problem, _series(problem.size, cells, records)).count()
    # Where records are told apart, so many times as large cells have so many times the ways for each of them.
    unit = grid.unit if records == "any" else 1
    if grid.is_even:
        codes = {free.pieces: free.cells for free in problem.free.values()}
        ways = _in_equal_cells(records, grid.unit // unit)
    else:
        rows = cumulants(records, problem.size)
        powers = [m for m, row in enumerate(rows) if any(row)]
        sums = {free.pieces: grid.power_sums(free, problem.size) for free in problem.free.values()}
        digits = {pieces: [found[m] // unit**m for m in powers] for pieces, found in sums.items()}
        widths = [-(-sum(each).bit_length() // STEP) * STEP for each in zip(*digits.values(), strict=True)]
        code = _code(records, tuple(rows[m] for m in powers), tuple(widths[:-1]))
        codes, ways = {pieces: code.of(each) for pieces, each in digits.items()}, code.ways
    family = Family(solutions(records).labelled, lambda free: codes[free.pieces], ways, log2=lambda code, n: nan)
    return int(unit**problem.size) * ExactCount(problem, family).count()


def _series(size: int, cells: Mapping[tuple[Box, ...], Mapping[int, int]], records: Records) -> Series:
    """Weights that are told number by number."""
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
def _in_equal_cells(records: Records, volume: int) -> Callable[[Any, int], Any]:
    """Tell how to count for so many cells of one volume, or for each of an array of such numbers."""
    family = solutions(records)

    def ways(cells: Any, n: int) -> Any:
        return remembered(cells, n) if isinstance(cells, int) else counted(cells, n, int(np.max(cells, initial=0)))

    def counted(cells: Any, n: int, most: int) -> Any:
        total, single = 0, 1
        for j in range(min(n, most) + 1):
            others = max(cells - j, 0) if isinstance(cells, int) else np.maximum(cells - j, 0)
            total = total + single * family.formula(others * volume, n - j)
            single = -single * (cells - j) // (j + 1) * (volume * (n - j if family.labelled else 1))
        return total

    remembered = lru_cache(maxsize=MOST_WAYS)(lambda cells, n: counted(cells, n, cells))
    return ways


@lru_cache(maxsize=MOST_REMEMBERED)
def _code(records: Records, rows: tuple[tuple[int, ...], ...], widths: tuple[int, ...]) -> Code:
    """The same code is the same object, by which counts are remembered."""
    return Code(records, rows, widths)


@lru_cache(maxsize=MOST_REMEMBERED)
def cumulants(records: Records, size: int) -> tuple[tuple[int, ...], ...]:
    """For each power of a cell's volume, what it adds to the cumulants for 0, 1, 2, … records."""
    columns = [_cumulant(records, n) + (0,) * (size - n) for n in range(size + 1)]
    return tuple(zip(*columns, strict=True))


@lru_cache(maxsize=MOST_REMEMBERED)
def _cumulant(records: Records, n: int) -> tuple[int, ...]:
    """The coefficients of a cell's cumulant at the powers of its volume."""
    numbers = [0] * (n + 1)
    if n > 1:
        for m in range(1, n + 1) if records == "distinct" else [n]:
            for j in range(1, m + 1):
                number = comb(n, j) * factorial(j - 1) * _stirling(n - j, m - j) * int(j ** (m - j))
                numbers[m] += number if (n - j) % 2 else -number
        if records == "distinct":
            numbers[1] += factorial(n - 1) if n % 2 else -factorial(n - 1)
    return tuple(numbers)


@cache
def _stirling(n: int, k: int) -> int:
    """The permutations of n things that have k cycles."""
    if n == k:
        return 1
    return _stirling(n - 1, k - 1) + (n - 1) * _stirling(n - 1, k) if k > 0 else 0
