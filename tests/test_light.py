"""Counting with machine integers, judged by trying every way to fill the blocks, and by the older way of counting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, reduce
from itertools import product
from math import comb, prod
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import examples
from unblur.config import Config
from unblur.counting.alone import Code, count_nobody_alone, cumulants
from unblur.counting.certain import Rooms, least_held
from unblur.counting.exact import ExactCount
from unblur.counting.light import BITS, Light, _combine, _equal, _moduli, _multipliers, count_light, forget, join, part
from unblur.counting.problem import Block, Problem
from unblur.counting.weights import ANY, COMBINATIONS, DISTINCT, Family, Series, solutions
from unblur.grid import Free, Grid

FAMILIES = {"any": ANY, "distinct": DISTINCT, "combinations": COMBINATIONS}


@st.composite
def problems(draw: st.DrawFn, *, most: int = 9) -> Problem:
    """Classes of up to twice the bound, in few blocks, some of which are not free."""
    fanouts = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)))
    bound = draw(st.integers(2, 4))
    size = draw(st.integers(bound, 2 * bound - 1))
    free = {}
    for block in product(*map(range, fanouts)):
        cells = draw(st.integers(0, most))
        free[block] = Free(cells * 6, cells, (tuple((child, child + 1) for child in block),))
    return Problem(size, fanouts, free, bound, bound)


def fillings(problem: Problem) -> Iterator[dict[Block, int]]:
    """Every way to say how many records each block holds, if no child reaches the bound."""
    blocks = list(problem.free)

    def fill(place: int, left: int) -> Iterator[tuple[int, ...]]:
        if place == len(blocks) - 1:
            yield (left,)
            return
        for n in range(left + 1):
            yield from ((n, *rest) for rest in fill(place + 1, left - n))

    for counts in fill(0, problem.size):
        filled = dict(zip(blocks, counts, strict=True))
        children = ((place, child) for place, fanout in enumerate(problem.fanouts) for child in range(fanout))
        if all(
            sum(n for block, n in filled.items() if block[place] == c) < (problem.bound or 0) for place, c in children
        ):
            yield filled


def by_hand(problem: Problem, family: Family) -> int:
    total = 0
    for filled in fillings(problem):
        orders = reduce(lambda done, n: (done[0] + n, done[1] * comb(done[0] + n, n)), filled.values(), (0, 1))[1]
        ways = prod(family.ways(family.of(problem.free[block]), n) for block, n in filled.items())
        total += ways * (orders if family.labelled else 1)
    return total


class Older:
    """Weights that are not told to be a family, so that the older way of counting takes them."""

    def __init__(self, family: Family) -> None:
        self._family = family

    def __getattr__(self, name: str) -> Any:
        return getattr(self._family, name)


@pytest.mark.parametrize("kind", FAMILIES)
@given(problem=problems())
@settings(max_examples=examples(30), deadline=None)
def test_counts_are_those_of_trying_every_filling(kind: str, problem: Problem) -> None:
    if comb(problem.size + len(problem.free), problem.size) < 20_000:
        assert ExactCount(problem, FAMILIES[kind]).count() == by_hand(problem, FAMILIES[kind])


@pytest.mark.parametrize("kind", FAMILIES)
@given(problem=problems(most=10**6), unit=st.sampled_from([1, 7, 10**9, 2**61]))
@settings(max_examples=examples(25), deadline=None)
def test_long_numbers_are_counted_as_the_older_way_counts_them(kind: str, problem: Problem, unit: int) -> None:
    free = {block: Free(each.volume * unit + each.cells, each.cells) for block, each in problem.free.items()}
    longer = Problem(problem.size, problem.fanouts, free, problem.bound)
    family = FAMILIES[kind]
    assert ExactCount(longer, family).count() == ExactCount(longer, Older(family)).count()


@given(problem=problems(), data=st.data())
@settings(max_examples=examples(30), deadline=None)
def test_the_order_of_children_and_attributes_does_not_matter(problem: Problem, data: st.DataObject) -> None:
    blocks = np.zeros(problem.fanouts, dtype=np.int64)
    for block, free in problem.free.items():
        blocks[block] = free.cells
    other = blocks.transpose(data.draw(st.permutations(range(blocks.ndim))))
    for axis in range(other.ndim):
        other = np.flip(other, axis=axis) if data.draw(st.booleans()) else other
    bound = problem.bound or 0
    forget()
    one = Light(problem.size, bound, COMBINATIONS.formula, labelled=False).count(part(blocks))
    assert count_light(other, problem.size, bound, COMBINATIONS.formula, labelled=False) == one


@given(st.lists(st.integers(-(10**40), 10**40), min_size=1, max_size=5))
def test_remainders_tell_numbers_apart(numbers: list[int]) -> None:
    moduli = _moduli(2 * 10**40 + 1)
    remainders = [np.array([[n % modulus for n in numbers]], dtype=np.uint64) for modulus in moduli]
    assert _combine(remainders, moduli).tolist() == [numbers]
    assert len(_moduli(2**BITS)) == 1


@given(blocks=st.lists(st.integers(0, 10**60), min_size=1, max_size=9))
def test_long_numbers_are_parted_and_joined_again(blocks: list[int]) -> None:
    parts = part(np.array(blocks, dtype=object))
    assert join(parts, len(blocks)).tolist() == blocks
    assert int(join(parts.sum(axis=0), len(blocks))) == sum(blocks)


@given(rows=st.lists(st.tuples(*[st.integers(-2, 2)] * 3), min_size=1), confused=st.booleans())
def test_equal_rows_are_found_even_if_their_sums_are_confused(rows: list[tuple[int, ...]], confused: bool) -> None:
    with patch("unblur.counting.light._multipliers", (lambda n: np.ones(n, np.int64)) if confused else _multipliers):
        first, place = _equal(np.array(rows))
    assert [rows[first[each]] for each in place] == rows
    assert len(first) == len(set(rows))


@pytest.mark.parametrize("records", ["any", "distinct"])
@given(cells=st.dictionaries(st.integers(1, 5), st.integers(1, 9), min_size=1, max_size=6), size=st.integers(2, 8))
@settings(max_examples=examples(40), deadline=None)
def test_nobody_alone_is_counted_as_cell_by_cell(records: Any, cells: dict[int, int], size: int) -> None:
    family = solutions(records)
    series = Series(family.labelled, size, lambda free: ())
    one_cell = {volume: tuple(0 if n == 1 else family.ways(volume, n) for n in range(size + 1)) for volume in cells}
    expected = series.join([one_cell[volume] for volume, number in cells.items() for _ in range(number)])
    code = Code(records, cumulants(records, size), (64,) * size)
    number = code.of([sum(number * volume**m for volume, number in cells.items()) for m in range(size + 1)])
    assert tuple(code.ways(number, n) for n in range(size + 1)) == expected
    assert all(code.ways(np.array([number], dtype=object), n) == expected[n] for n in range(size + 1))


@pytest.mark.parametrize("records", ["any", "distinct"])
@pytest.mark.parametrize("last", [40, 47])
@pytest.mark.parametrize("size", [5, 6])
def test_nobody_alone_in_a_class_is_counted_as_the_older_way_counts_it(records: Any, last: int, size: int) -> None:
    """Even cells, and cells of many volumes; two boxes are taken."""
    cuts = [[0, 10, 20, 30, 40], [0, 10, 20, 30, last], [0, 10, 20, 30, last], [0, 10, 20, 30, 40]]
    listed = [{"name": f"a{i}", "interval": {"cuts": each, "fanouts": [2]}} for i, each in enumerate(cuts)]
    grid = Grid(Config.from_dict({"k": 5, "quasi_identifiers": listed}).lattice)
    assert grid.is_even == (last == 40)
    taken = [((0, 1), (0, 4), (1, 3), (0, 2)), ((2, 4), (3, 4), (0, 4), (1, 2))]
    spans = {0: (0, 2), 1: (2, 4)}
    free = {
        block: grid.measure(list(grid.pieces(tuple(spans[child] for child in block), taken)))
        for block in product(range(2), repeat=4)
    }
    ways, problem = solutions(records).ways, Problem(size, (2,) * 4, free, 5)
    one_cell = lru_cache(lambda volume: tuple(0 if n == 1 else ways(volume, n) for n in range(size + 1)))
    series = Series(
        solutions(records).labelled,
        size,
        lambda free: series.join([series.power(one_cell(v), n) for v, n in grid.cell_volumes(free).items()]),
    )
    assert count_nobody_alone(problem, grid, records) == ExactCount(problem, series).count()


@pytest.mark.parametrize("kind", FAMILIES)
@given(regions=st.lists(st.integers(0, 10**20) | st.integers(0, 9), min_size=1), size=st.integers(0, 9))
def test_an_array_of_regions_has_the_ways_of_each(kind: str, regions: list[int], size: int) -> None:
    ways = FAMILIES[kind].formula
    found = ways(np.array(regions, dtype=object), size) + np.zeros(len(regions), dtype=object)
    assert found.tolist() == [ways(region, size) for region in regions]


@pytest.mark.parametrize("records", ["any", "distinct"])
@given(problem=problems(most=1))
@settings(max_examples=examples(40), deadline=None)
def test_what_is_certain_is_the_least_of_all_fillings(records: Any, problem: Problem) -> None:
    family = solutions(records)
    if comb(problem.size + len(problem.free), problem.size) > 5_000:
        return
    every = [
        filled
        for filled in fillings(problem)
        if all(family.ways(problem.free[block].volume, n) for block, n in filled.items())
    ]
    groups: Sequence[frozenset[Block]] = [frozenset([block]) for block in problem.blocks]
    if every and groups:
        expected = tuple(min(filled[block] for filled in every) for (block,) in groups)
        assert least_held(Rooms.of(problem, records), tuple(groups)) == expected
