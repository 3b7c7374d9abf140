"""Placements without a heavy child, counted with machine integers: many terms at a time, no records told in advance.

The inclusion and exclusion is that of `exact`, laid out as arrays. A region is a whole number (its volume, its cells,
or a code of several such numbers) that adds up over disjoint regions; if it is long it is parted into several, which do
so, too. A term chooses a heavy child in each of n attributes; its row has the 2^n regions inside and outside of them.
Equal rows are counted once, with the number of their terms.

How many ways there are to place a few records outside is found modulo 2^64, where arrays just wrap around, and, if the
numbers may be longer, modulo as many primes as tell them apart (Chinese remainders). All operations are sums and
products, so the remainders are exact, and a bound of the result says how many are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import combinations
from math import comb, isqrt, prod
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unblur.counting.deadline import check

Numbers = NDArray[np.int64]
Words = NDArray[np.uint64]
Ways = Callable[[Any, int], Any]
"""How many ways there are to place n records in a region, or in each of an array of Python's numbers."""
WORD = 2**64
BITS = 62
"""Bits of the longest number that regions are told by."""
MOST_REMEMBERED = 20_000
"""How many counts to remember: many classes of a release are alike."""
FEW_ROWS = 200
"""So many rows may be equal without being looked at."""
FEW_NUMBERS = 5_000
MOST_NUMBERS = 1_000_000
"""How many numbers to hold at a time: for all terms at once to be worth it, and at most."""


def count_light(blocks: NDArray[Any], size: int, bound: int, ways: Ways, *, labelled: bool) -> int:
    """Count, for blocks with an axis per attribute; classes that differ only in the order of children are alike."""
    ordered = _ordered(part(blocks))
    return _remembered(ordered.shape, ordered.tobytes(), size, bound, ways, labelled)


def part(blocks: NDArray[Any]) -> Numbers:
    """Part Python's number of each block into several, along an axis of their own, so that no sum is too long."""
    if blocks.dtype != object:
        return blocks[..., None]
    longest, width = int(blocks.sum()).bit_length(), _width(blocks.size)
    parts = [(blocks >> low & (1 << width) - 1).astype(np.int64) for low in range(0, max(longest, 1), width)]
    return np.stack(parts, axis=-1)


def join(rows: Numbers, blocks: int) -> NDArray[Any]:
    """Make Python's numbers again."""
    result = rows[..., 0].astype(object)
    for place in range(1, rows.shape[-1]):
        result = result + (rows[..., place].astype(object) << place * _width(blocks))
    return result


def _width(blocks: int) -> int:
    """How many bits a number may have so that so many of them add up."""
    return BITS - blocks.bit_length()


@lru_cache(maxsize=MOST_REMEMBERED)
def _remembered(shape: tuple[int, ...], blocks: bytes, size: int, bound: int, ways: Ways, labelled: bool) -> int:
    return Light(size, bound, ways, labelled).count(np.frombuffer(blocks, dtype=np.int64).reshape(shape))


def forget() -> None:
    """Forget all that is remembered, so that time can be measured."""
    _remembered.cache_clear()
    _remembered_terms.cache_clear()


def _ordered(blocks: Numbers) -> Numbers:
    """Put children, then attributes, in the order of what is free in them."""
    attributes, sums = range(blocks.ndim - 1), []
    for axis in attributes:
        free = blocks.sum(axis=tuple(other for other in attributes if other != axis)).tolist()
        order = sorted(range(len(free)), key=free.__getitem__)
        blocks = blocks.take(order, axis=axis)
        sums.append([free[child] for child in order])
    return blocks.transpose(*sorted(attributes, key=sums.__getitem__), blocks.ndim - 1)


@dataclass(frozen=True)
class Light:
    """How many ways are there to place some records so that no child holds as many as the bound?

    They are fewer than twice the bound.
    """

    size: int
    bound: int
    ways: Ways
    """How many ways there are to place n records in a region."""
    labelled: bool
    """Whether records are told apart."""

    def count(self, blocks: Numbers) -> int:
        """Count, for blocks with an axis per attribute, and one for the parts of a number."""
        if not self.slack:
            return self._without_slack(blocks)
        *fanouts, _ = blocks.shape
        if prod(fanouts) * (self.slack + 2) ** len(fanouts) <= FEW_NUMBERS:
            return self._add_up(_terms(blocks, None))
        return sum(self._add_up(_terms(blocks, chosen)) for chosen in range(len(fanouts) + 1))

    @property
    def slack(self) -> int:
        """How many records may lie outside a heavy child."""
        return self.size - self.bound

    def _without_slack(self, blocks: Numbers) -> int:
        """A heavy child would hold all records: only the regions inside matter.

        A row is what is inside of the choices so far, by the children of the attributes to come.
        """
        *fanouts, parts = blocks.shape
        rows, times = blocks.reshape(1, -1), np.ones(1, dtype=np.int64)
        for children in fanouts:
            length = rows.shape[1] // children
            each = rows.reshape(len(rows), children, length)
            rows = np.concatenate([each.sum(axis=1, keepdims=True), each], axis=1).reshape(-1, length)
            times = np.multiply.outer(times, [1] + [-1] * children).ravel()
            if len(rows) > FEW_ROWS or length == parts:
                rows, times = _merge(rows, times)
        ways = self.ways(join(rows, prod(fanouts)), self.size)
        return int((times.astype(object) * ways).sum())

    def _add_up(self, terms: _Terms) -> int:
        """Add up what terms stand for."""
        if not terms.places:
            return int(self.ways(terms.whole, self.size))
        if not len(terms.rows):  # they cancel
            return 0
        most = min(self.size, self.slack * terms.places)
        # The regions of a term are disjoint: placing records in them is placing them anywhere.
        largest = max(self.ways(terms.whole, n) for n in range(most + 1))
        moduli = _moduli(2 * largest * terms.number)
        table = np.empty((len(terms.regions), self.slack + 1), dtype=object)
        for n in range(self.slack + 1):
            table[:, n] = self.ways(terms.regions, n)
        sums = _combine([self._sums(terms, table, modulus)[:, : most + 1] for modulus in moduli], moduli)
        inside = terms.regions[terms.rows[terms.starts, 0]]
        return sum(
            int((outside * self.ways(inside, self.size - n)).sum()) * (comb(self.size, n) if self.labelled else 1)
            for n, outside in enumerate(sums.T)
        )

    def _sums(self, terms: _Terms, table: NDArray[Any], modulus: int) -> Words:
        """Per region inside, and number of records outside, add up the ways to place these; the remainders."""
        tables = (table % modulus).astype(np.uint64)
        batch = max(1, int(MOST_NUMBERS // (self.slack + 1) ** (terms.places + 2)))
        found = [
            _Outside(tables, terms.rows[start : start + batch], terms.places, self.slack, self.labelled, modulus).ways()
            for start in range(0, len(terms.rows), batch)
        ]
        ways = found[0] if len(found) == 1 else np.concatenate(found)
        times = (terms.times % modulus if modulus < WORD else terms.times).astype(np.uint64)
        ways = _remainder(ways * times[:, None], modulus)
        return _remainder(np.add.reduceat(ways, terms.starts, axis=0), modulus)


@dataclass(frozen=True)
class _Outside:
    """Ways to place records outside the chosen children, at most `slack` outside each, in many terms at a time.

    The attributes are taken one by one, as in `spread`. The first axis of an array is the term, the second the number
    of all records placed, the others those outside each child still to come.
    """

    tables: Words
    """The ways to place 0, 1, 2, … records in each region."""
    rows: NDArray[np.intp]
    """Per term, its regions."""
    places: int
    slack: int
    labelled: bool
    modulus: int

    def ways(self) -> Words:
        """Per term, and for each number of records outside any chosen child."""
        state = np.zeros((len(self.rows), *([self.slack + 1] * self.places)), dtype=np.uint64)
        state.reshape(len(self.rows), -1)[:, 0] = 1
        for later in _subsets(1, self.places):
            state = self._with_region(state, (0, *later), [1, *(axis + 1 for axis in later)])
        for place in range(1, self.places):
            longer = np.zeros((len(state), self.slack, *state.shape[2:]), dtype=np.uint64)
            state = np.concatenate([state, longer], axis=1)
            for later in _subsets(place + 1, self.places):
                if later:
                    state = self._with_region(state, (place, *later), [1, 2, *(axis - place + 2 for axis in later)])
            state = self._without_first(state, place)
        return state

    def _with_region(self, state: Words, region: tuple[int, ...], axes: list[int]) -> Words:
        """Place 0, 1, 2, … records in a region: they move along the axes of the children it is outside of."""
        result = state.copy()  # there is one way to place none
        for n in range(1, self.slack + 1):
            check()
            source, target = [slice(None)] * state.ndim, [slice(None)] * state.ndim
            for axis in axes:
                source[axis], target[axis] = slice(None, -n), slice(n, None)
            result[tuple(target)] += state[tuple(source)] * self._ways(region, n, state.shape[1], state.ndim)
            result = _remainder(result, self.modulus)
        return result

    def _without_first(self, state: Words, place: int) -> Words:
        """Place records outside the first child alone, and forget its count: it is within bounds."""
        upto = _remainder(np.cumsum(state, axis=2, dtype=np.uint64), self.modulus)
        result = upto[:, :, self.slack].copy()
        for n in range(1, self.slack + 1):
            within = upto[:, : state.shape[1] - n, self.slack - n]
            result[:, n:] += within * self._ways((place,), n, state.shape[1], state.ndim - 1)
            result = _remainder(result, self.modulus)
        return result

    def _ways(self, region: tuple[int, ...], n: int, length: int, axes: int) -> Words:
        """Per term and number of records placed with them, the ways to place n in a region."""
        column = sum(1 << self.places - 1 - place for place in region)
        ways: Words = self.tables[self.rows[:, column], n]
        if not self.labelled:
            return ways.reshape(-1, *([1] * (axes - 1)))
        both = _remainder(ways[:, None] * _orders(length, n, self.modulus), self.modulus)
        return both.reshape(*both.shape, *([1] * (axes - 2)))


@lru_cache(maxsize=1_000)
def _orders(length: int, n: int, modulus: int) -> Words:
    """The ways to tell which n of up to so many records are meant."""
    return np.array([comb(total, n) % modulus for total in range(n, length)], dtype=np.uint64)


@dataclass(frozen=True)
class _Terms:
    """Some terms of the inclusion and exclusion: equal ones once, in the order of the regions inside."""

    places: int
    """In how many attributes a child is chosen."""
    whole: int
    """All that is free."""
    number: int
    """How many terms there are."""
    regions: NDArray[Any]
    """All regions that occur."""
    rows: NDArray[np.intp]
    """Per term, its regions by their place among these; the one inside first."""
    times: NDArray[np.int64]
    """How many equal terms there are, with their sign."""
    starts: NDArray[np.intp]
    """Where the rows of each region inside begin."""


def _terms(blocks: Numbers, chosen: int | None) -> _Terms:
    """List the terms that choose a child in so many attributes; None for all terms, choosing or not in each."""
    return _remembered_terms(blocks.shape, blocks.tobytes(), chosen)


@lru_cache(maxsize=16)
def _remembered_terms(shape: tuple[int, ...], blocks: bytes, chosen: int | None) -> _Terms:
    """The same: a class is counted in several ways."""
    return _list_terms(np.frombuffer(blocks, dtype=np.int64).reshape(shape), chosen)


def _list_terms(blocks: Numbers, chosen: int | None) -> _Terms:
    *fanouts, parts = blocks.shape
    places = len(fanouts) if chosen is None else chosen
    found = [_regions(blocks, each, chosen is None) for each in combinations(range(len(fanouts)), places)]
    regions = np.concatenate([regions for regions, _ in found]).reshape(-1, parts)
    signs = np.concatenate([signs for _, signs in found])
    first, place = _equal(regions)
    rows, times = _merge(place.reshape(len(signs), -1), signs)
    order = rows[:, 0].argsort(kind="stable")
    rows, times = rows[order], times[order]
    _, starts = np.unique(rows[:, 0], return_index=True)
    whole = join(blocks.reshape(-1, parts).sum(axis=0), prod(fanouts))
    return _Terms(places, int(whole), len(signs), join(regions[first], prod(fanouts)), rows, times, starts)


def _regions(blocks: Numbers, attributes: tuple[int, ...], none_too: bool) -> tuple[Numbers, Numbers]:
    """Per choice of a child in each of these attributes, or of none, the regions inside and outside; and the signs."""
    others = tuple(axis for axis in range(blocks.ndim - 1) if axis not in attributes)
    regions: Numbers = np.moveaxis(blocks.sum(axis=others), -1, 0)
    signs = np.ones(1, dtype=np.int64)
    for axis in range(1, len(attributes) + 1):
        whole = regions.sum(axis=axis, keepdims=True)
        inside = np.concatenate([whole, regions], axis=axis) if none_too else regions
        regions = np.stack([inside, whole - inside], axis=-1)
        signs = np.multiply.outer(signs, [1] * none_too + [-1] * (regions.shape[axis] - none_too)).ravel()
    return np.moveaxis(regions, 0, -1).reshape(len(signs), 1 << len(attributes), -1), signs


def _merge(rows: Numbers, times: Numbers) -> tuple[Numbers, Numbers]:
    """Equal rows become one, with the sum of their times; those that cancel go."""
    first, place = _equal(rows)
    sums = np.bincount(place, weights=times).astype(np.int64)
    return rows[first[sums != 0]], sums[sums != 0]


def _equal(rows: Numbers) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where each row occurs first, and which of these it equals."""
    if rows.shape[1] == 1:
        return np.unique(rows[:, 0], return_index=True, return_inverse=True)[1:]
    _, first, place = np.unique(rows @ _multipliers(rows.shape[1]), return_index=True, return_inverse=True)
    if not np.array_equal(rows[first[place]], rows):  # two different rows may have the same sum, but hardly ever do
        _, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first, place.ravel()


@lru_cache(maxsize=100)
def _multipliers(number: int) -> Numbers:
    """Odd numbers without a pattern; sums wrap around."""
    return np.random.default_rng(0).integers(-(2**62), 2**62, number, dtype=np.int64) | 1


def _subsets(first: int, end: int) -> Iterator[tuple[int, ...]]:
    places = range(first, end)
    return (each for n in range(len(places) + 1) for each in combinations(places, n))


def _moduli(bound: int) -> list[int]:
    """Moduli whose product exceeds a bound: 2^64, then primes."""
    moduli = [WORD]
    while prod(moduli) <= bound:
        moduli.append(_prime_below(moduli[-1] if len(moduli) > 1 else 2**31))
    return moduli


@lru_cache
def _prime_below(number: int) -> int:
    """Find the next smaller prime."""
    divisors = np.arange(2, isqrt(number) + 1)
    return next(candidate for candidate in range(number - 1, 1, -1) if (candidate % divisors).all())


def _remainder(numbers: Words, modulus: int) -> Words:
    """Take remainders of sums of two products at most."""
    if modulus == WORD:
        return numbers
    word = np.uint64(modulus)
    return numbers - numbers // word * word


def _combine(remainders: list[Words], moduli: list[int]) -> NDArray[Any]:
    """Find the numbers that leave these remainders: those nearest to 0."""
    if len(moduli) == 1:
        return remainders[0].astype(np.int64).astype(object)
    product = reduce(mul, moduli)
    total = sum(
        numbers.astype(object) * (product // modulus * pow(product // modulus, -1, modulus))
        for numbers, modulus in zip(remainders, moduli, strict=True)
    )
    half = product // 2
    return (total + half) % product - half  # type: ignore[return-value]
