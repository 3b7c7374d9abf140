from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

from tests.literal import LiteralRecoder
from tests.strategies import Record, examples, histogram_of, random_case, recoding_cases
from unblur.hierarchy import halves
from unblur.lattice import Lattice
from unblur.recoding import Recoding, global_recoding, local_recoding


def as_literal(recoding: Recoding) -> list[tuple[tuple[int, ...], dict[Record, int]]]:
    return [(step.state, {each.segment: each.size for each in step.classes}) for step in recoding.iterations]


def agree(lattice: Lattice, records: list[Record], k: int) -> Recoding:
    classes, remaining = LiteralRecoder(lattice, k).recode(records)
    recoding = local_recoding(histogram_of(lattice, records), lattice, k=k)
    assert as_literal(recoding) == classes
    assert recoding.suppressed == len(remaining)
    return recoding


def test_one_pass_equals_the_literal_algorithms_on_thousands_of_tables() -> None:
    recodings = [agree(*random_case(seed)) for seed in range(examples(2000))]
    decided_by_c3 = sum(any(step.rivals for step in recoding.iterations) for recoding in recodings)
    open_ties = sum(any(step.open_tie for step in recoding.iterations) for recoding in recodings)
    assert decided_by_c3 > 200 and open_ties > 50, "the cases must include ties"


@given(recoding_cases())
@settings(max_examples=examples(300), deadline=None)
def test_one_pass_equals_the_literal_algorithms(case: tuple[Lattice, list[Record], int]) -> None:
    agree(*case)


@given(recoding_cases())
@settings(max_examples=examples(200), deadline=None)
def test_every_record_is_in_a_class_of_at_least_k_or_suppressed(case: tuple[Lattice, list[Record], int]) -> None:
    lattice, records, k = case
    histogram = histogram_of(lattice, records)
    recoding = local_recoding(histogram, lattice, k=k)
    assert all(each.size >= k for each in recoding.classes)
    assert sum(each.size for each in recoding.classes) + recoding.suppressed == len(records)
    for number, each in enumerate(recoding.classes):
        cells = recoding.class_of_cell == number
        assert histogram.counts[cells].sum() == each.size
        for i, tree in enumerate(lattice.hierarchies):
            above = tree.climb(histogram.nodes[i][cells], lattice.finest[i], each.state[i])
            assert set(above.tolist()) == {each.segment[i]}, "every label covers its value"


def test_the_paper_s_order_of_permuted_states_is_decided_by_what_remains() -> None:
    tree = halves(Decimal(0), Decimal(8), layers=3)
    lattice = Lattice([tree, tree], (1, 1))
    # Two records per cell along a row and along a column: (1, 2) and (2, 1) tie, both can make a class of 4.
    records: list[Record] = [(0, 0), (1, 1), (0, 2), (1, 3), (4, 6), (5, 7), (6, 6), (7, 7)]
    recoding = agree(lattice, records, 4)
    first = recoding.iterations[0]
    assert {first.state, *first.rivals} == {(1, 2), (2, 1)}
    assert set(first.c3) == {(1, 2), (2, 1)}


def test_wide_codes_do_not_overflow() -> None:
    trees = [halves(Decimal(0), Decimal(2**20), layers=2) for _ in range(5)]
    lattice = Lattice(trees, (0,) * 5)
    rng = np.random.default_rng(0)
    records = [tuple(int(v) for v in rng.integers(0, 2**20, 5)) for _ in range(30)] * 2
    recoding = local_recoding(histogram_of(lattice, records), lattice, k=2)
    assert recoding.iterations[0].state == (0,) * 5
    assert len(recoding.classes) == 30


def test_codes_too_wide_for_64_bits_never_merge_cells() -> None:
    trees = [halves(Decimal(0), Decimal(2**44), layers=2) for _ in range(2)]
    lattice = Lattice(trees, (0, 0))
    values = np.unique(np.random.default_rng(0).integers(0, 2**44, 100_000)).tolist()
    histogram = histogram_of(lattice, list(zip(values, reversed(values), strict=True)))
    recoding = local_recoding(histogram, lattice, k=2)
    assert all(each.state != (0, 0) for each in recoding.classes), "all cells differ in their raw values"


@given(recoding_cases())
@settings(max_examples=examples(200), deadline=None)
def test_global_recoding_is_the_cheapest_state_within_the_limit(case: tuple[Lattice, list[Record], int]) -> None:
    lattice, records, k = case
    limit = Fraction(1, 10)
    judge = LiteralRecoder(lattice, k)

    def suppressed(state: tuple[int, ...]) -> int:
        return sum(size for size in judge.apply(state, records).values() if size < k)

    fitting = [s for s in lattice.states() if s != lattice.top and suppressed(s) <= limit * len(records)]
    recoding = global_recoding(histogram_of(lattice, records), lattice, k=k, suppression_limit=limit)
    if not fitting:
        assert recoding.iterations == ()
        assert recoding.suppressed == len(records)
    else:
        best = min(fitting, key=lambda s: judge.criteria(s, records))
        assert recoding.iterations[0].state == best
        assert recoding.suppressed == recoding.iterations[0].left == suppressed(best)


@pytest.mark.parametrize("k", [2, 100])
def test_fewer_records_than_k_are_all_suppressed(k: int) -> None:
    lattice = Lattice([halves(Decimal(0), Decimal(8), layers=2)], (1,))
    recoding = local_recoding(histogram_of(lattice, [(1,)]), lattice, k=k)
    assert recoding.iterations == () and recoding.suppressed == 1 and recoding.class_of_cell.tolist() == [-1]
