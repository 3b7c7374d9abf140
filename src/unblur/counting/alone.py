"""Placements in which no cell holds exactly one record: what remains if nobody stands alone.

A cell of volume `v` has `v^n` ways to take `n` records in turn (`v (v - 1) …` if they are distinct), and none for
`n = 1`. Cells side by side multiply the generating functions `e^(vx) - vx`, or `(1 + x)^v - vx`; so the logarithms of
these add up, and with them their coefficients times `n!`, the *cumulants*. A cumulant is a polynomial in `v`:

    - sum over j of C(n, j) (j - 1)! (-1)^(n - j) c(n - j, m - j) j^(m - j), the coefficient at v^m

with Stirling's numbers `c` (of the first kind, unsigned) for distinct records; for any, only `m = n` is left of it. So
all that matters of a region is the sum of the first powers of its cells' volumes: the digits of one whole number, which
adds up over disjoint regions. Where all cells are alike their number will do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import comb, factorial, nan
from typing import Any

from unblur.counting.exact import ExactCount
from unblur.counting.problem import Problem, Records
from unblur.counting.weights import Family, solutions
from unblur.grid import Grid

MOST_REMEMBERED = 1_000
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
    # Where records are told apart, so many times as large cells have so many times the ways for each of them.
    unit = grid.unit if records == "any" else 1
    rows = cumulants(records, problem.size)
    if grid.is_even:
        digits = {free.pieces: (free.cells,) for free in problem.free.values()}
        code = _code(records, (_at(rows, grid.unit // unit),), ())
    else:
        powers = [m for m, row in enumerate(rows) if any(row)]
        found = {free.pieces: grid.power_sums(free, problem.size) for free in problem.free.values()}
        digits = {pieces: tuple(sums[m] // unit**m for m in powers) for pieces, sums in found.items()}
        widths = tuple(-(-sum(each).bit_length() // STEP) * STEP for each in zip(*digits.values(), strict=True))
        code = _code(records, tuple(rows[m] for m in powers), widths[:-1])
    codes = {pieces: code.of(each) for pieces, each in digits.items()}
    family = Family(solutions(records).labelled, lambda free: codes[free.pieces], code.ways, log2=lambda code, n: nan)
    return int(unit**problem.size) * ExactCount(problem, family).count()


@lru_cache(maxsize=MOST_REMEMBERED)
def _code(records: Records, rows: tuple[tuple[int, ...], ...], widths: tuple[int, ...]) -> Code:
    """The same code is the same object, by which counts are remembered."""
    return Code(records, rows, widths)


@lru_cache(maxsize=MOST_REMEMBERED)
def cumulants(records: Records, size: int) -> tuple[tuple[int, ...], ...]:
    """For each power of a cell's volume, what it adds to the cumulants for 0, 1, 2, … records."""
    rows = [[0] * (size + 1) for _ in range(size + 1)]
    for n in range(2, size + 1):
        for m in range(1, n + 1) if records == "distinct" else [n]:
            for j in range(1, m + 1):
                number = comb(n, j) * factorial(j - 1) * _stirling(n - j, m - j) * int(j ** (m - j))
                rows[m][n] += number if (n - j) % 2 else -number
        if records == "distinct":
            rows[1][n] += factorial(n - 1) if n % 2 else -factorial(n - 1)
    return tuple(map(tuple, rows))


def _at(rows: tuple[tuple[int, ...], ...], volume: int) -> tuple[int, ...]:
    """The cumulants of a cell of so large a volume."""
    return tuple(sum(number * volume**m for m, number in enumerate(column)) for column in zip(*rows, strict=True))


@cache
def _stirling(n: int, k: int) -> int:
    """The permutations of n things that have k cycles."""
    if n == k:
        return 1
    return _stirling(n - 1, k - 1) + (n - 1) * _stirling(n - 1, k) if k > 0 else 0
