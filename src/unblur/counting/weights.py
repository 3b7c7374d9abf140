"""What is counted: for a region, how many ways there are to place n records in it.

Placing records in two disjoint regions convolves these numbers. Three families stay within themselves, so that a region
is described by a single number that adds up:

- distinct points: `C(V, n)`, by Vandermonde's identity;
- any points, records told apart: `V^n`, by the binomial theorem (*labelled*: choosing which records go where counts);
- numbers per cell: `C(N + n - 1, n)`.

For anything else (say, no cell with exactly one record) a region is described by the numbers themselves, up to the size
of the class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial, reduce
from math import comb, inf, log, log1p, log2, pi
from operator import mul
from typing import Any, Protocol

import numpy as np

from unblur.counting.deadline import check
from unblur.counting.numbers import Count
from unblur.counting.problem import Records
from unblur.grid import Box, Free

MANY = 50
"""From so many records on, a binomial coefficient is told by Stirling's series."""


class Weights(Protocol):
    """How to describe a region, join regions, and count placements in one."""

    @property
    def labelled(self) -> bool:
        """Whether records are told apart: then placing `n` and `m` of them in two regions has `C(n + m, n)` ways."""
        ...

    def of(self, free: Free) -> Any:
        """Describe a region."""
        ...

    def join(self, regions: Sequence[Any]) -> Any:
        """Describe the union of disjoint regions."""
        ...

    def without(self, whole: Any, part: Any) -> Any:
        """Describe a region without a part of it."""
        ...

    def ways(self, region: Any, n: int) -> int:
        """Count the ways to place n records in a region."""
        ...


@dataclass(frozen=True)
class Family:
    """Weights that are told by one number per region."""

    labelled: bool
    measure: Callable[[Free], int]
    formula: Callable[[Any, int], Any]
    """For a region, or for each of an array of them."""
    log2: Callable[[int, int], float]
    """The logarithm of the formula, without the number itself."""
    scales: bool = False
    """Whether a region u times as large has u^n times the ways."""

    def of(self, free: Free) -> int:
        return self.measure(free)

    def join(self, regions: Sequence[int]) -> int:
        return sum(regions)

    def without(self, whole: int, part: int) -> int:
        return whole - part

    def ways(self, region: int, n: int) -> int:
        return self.formula(region, n)  # type: ignore[no-any-return]

    def count(self, region: int, n: int) -> Count:
        """Count the ways to place n records in a region; many records may make a number too long to write down."""
        return _count(self, region, n)


@lru_cache(maxsize=10_000)
def _count(family: Family, region: int, n: int) -> Count:
    """The same number is the same object, so that its digits are found once."""
    return Count(family.log2(region, n), None, partial(family.formula, region, n))


def _power(volume: Any, n: int) -> Any:
    return volume**n


_COMB = np.frompyfunc(comb, 2, 1)


def _subsets(volume: Any, n: int) -> Any:
    return comb(volume, n) if isinstance(volume, int) else _COMB(volume, n)


def _multisets(cells: Any, n: int) -> Any:
    return _subsets(cells + (n - 1), n) if n else 1


DISTINCT = Family(labelled=False, measure=lambda free: free.volume, formula=_subsets, log2=lambda v, n: log2_comb(v, n))
ANY = Family(
    labelled=True,
    measure=lambda free: free.volume,
    formula=_power,
    log2=lambda volume, n: n * log2(volume) if volume else _log2_if(n == 0),
    scales=True,
)
COMBINATIONS = Family(
    labelled=False,
    measure=lambda free: free.cells,
    formula=_multisets,
    log2=lambda cells, n: log2_comb(cells + n - 1, n) if cells else _log2_if(n == 0),
)


def log2_comb(m: int, n: int) -> float:
    """The logarithm of a binomial coefficient: by Stirling's series, whose next term is below 1e-15, if n is large.

    All large terms have the same sign, so nothing cancels.
    """
    if n > m:
        return -inf
    n = min(n, m - n)
    if n < MANY:
        return log2(comb(m, n))
    rest = m - n
    large = n * log(m / n) - rest * log1p(-n / m) if m < 2**1000 else n * (log(m) - log(n)) + n
    series = sum(sign * _stirling(each) for sign, each in ((1, m), (-1, n), (-1, rest)))
    return (large + (log(m) - log(rest) - log(2 * pi * n)) / 2 + series) / log(2)


def _stirling(n: int) -> float:
    """What log n! is more than the first terms of its series."""
    return 1 / (12 * n) - 1 / (360 * n**3) + 1 / (1260 * n**5)


def _log2_if(condition: bool) -> float:
    return 0.0 if condition else -inf


@dataclass(frozen=True)
class Series:
    """Weights told number by number, up to a size: a region is the tuple of its ways for 0, 1, 2, … records."""

    labelled: bool
    size: int
    one: Callable[[Free], tuple[int, ...]]
    """The numbers of a region."""

    def of(self, free: Free) -> tuple[int, ...]:
        return self.one(free)

    def join(self, regions: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        return reduce(self.product, regions, (1,) + (0,) * self.size)

    def product(self, left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
        check()
        turned = right[::-1]
        pairs = (map(mul, left, turned[self.size - n :]) for n in range(self.size + 1))
        if self.labelled:
            return tuple(sum(map(mul, row, each)) for row, each in zip(self._binomials, pairs, strict=True))
        return tuple(map(sum, pairs))

    def power(self, region: tuple[int, ...], times: int) -> tuple[int, ...]:
        """Join as many equal regions."""
        result = self.join([])
        while times:
            if times & 1:
                result = self.product(result, region)
            region, times = self.product(region, region), times >> 1
        return result

    def without(self, whole: tuple[int, ...], part: tuple[int, ...]) -> tuple[int, ...]:
        rest: list[int] = []  # part[0] is 1: no record can be placed in one way
        for n in range(self.size + 1):
            rest.append(whole[n] - sum(rest[i] * part[n - i] * self._choices(n, i) for i in range(n)))
        return tuple(rest)

    def ways(self, region: tuple[int, ...], n: int) -> int:
        return region[n]

    @cached_property
    def _binomials(self) -> list[list[int]]:
        return [[comb(n, i) for i in range(n + 1)] for n in range(self.size + 1)]

    def _choices(self, n: int, i: int) -> int:
        return comb(n, i) if self.labelled else 1


@dataclass(frozen=True)
class Marked:
    """Weights in which every record in a marked region counts as `x`: a region is two numbers, inside and outside.

    A count becomes a polynomial in `x` whose coefficient at `x^n` counts the placements with just n marked records.
    None exceeds the count of all placements, so with `x` a power of two beyond that the coefficients stand side by side
    in the digits of one whole number.
    """

    family: Family
    marked: frozenset[tuple[Box, ...]]
    """The marked regions by their pieces."""
    bits: int
    """The logarithm of `x`."""

    @property
    def labelled(self) -> bool:
        return self.family.labelled

    def of(self, free: Free) -> tuple[int, int]:
        number = self.family.of(free)
        return (number, 0) if free.pieces in self.marked else (0, number)

    def join(self, regions: Sequence[tuple[int, int]]) -> tuple[int, int]:
        return sum(inside for inside, _ in regions), sum(outside for _, outside in regions)

    def without(self, whole: tuple[int, int], part: tuple[int, int]) -> tuple[int, int]:
        return whole[0] - part[0], whole[1] - part[1]

    def ways(self, region: tuple[int, int], n: int) -> int:
        return sum(split_ways(j, n, *region, self.family) << self.bits * j for j in range(n + 1))

    def read(self, count: int) -> list[int]:
        """Read the coefficients of a count: the placements with 0, 1, 2, … marked records."""
        return [count >> self.bits * n & (1 << self.bits) - 1 for n in range(-(-count.bit_length() // self.bits))]


def split_ways(j: int, n: int, inside: int, outside: int, family: Family) -> int:
    """Count the ways to place j records inside and the rest of n outside."""
    return family.ways(inside, j) * family.ways(outside, n - j) * (comb(n, j) if family.labelled else 1)


def solutions(records: Records) -> Family:
    """Weights that count raw data sets."""
    return DISTINCT if records == "distinct" else ANY
