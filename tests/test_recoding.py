from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.literal import LiteralRecoder, generalize
from tests.strategies import Record, examples, histogram_of, random_case, recoding_cases
from unblur import frontier, remaining, tallying
from unblur.hierarchy import halves
from unblur.lattice import Lattice, State
from unblur.recoding import MOST_RIVALS, Iteration, Recoding, global_recoding, local_recoding
from unblur.release import EquivalenceClass


def as_literal(recoding: Recoding) -> list[tuple[tuple[int, ...], dict[Record, int]]]:
    return [(step.state, {each.segment: each.size for each in step.classes}) for step in recoding.iterations]


def agree(lattice: Lattice, records: list[Record], k: int) -> Recoding:
    classes, remaining = LiteralRecoder(lattice, k).recode(records)
    recoding = local_recoding(histogram_of(lattice, records), lattice, k=k)
    assert as_literal(recoding) == classes
    assert recoding.suppressed == len(remaining)
    return recoding


def listing_pass(lattice: Lattice, records: list[Record], k: int) -> tuple[Iteration, ...]:
    """One pass over a list of all states, each of which is tried: slow, with all that an iteration says."""
    judge, left = LiteralRecoder(lattice, k), list(records)
    iterations: list[Iteration] = []
    for tied in lattice.groups():
        while len(left) >= k and tied != (lattice.top,):
            usable = [state for state in tied if max(judge.apply(state, left).values()) >= k]
            if not usable:
                break
            c3 = {state: judge.criteria(state, left)[3] for state in usable}
            best, *rivals = sorted(usable, key=c3.__getitem__)[: MOST_RIVALS + 1]
            groups = {segment: n for segment, n in judge.apply(best, left).items() if n >= k}
            left = [record for record in left if judge.segment(best, record) not in groups]
            classes = tuple(EquivalenceClass(best, segment, groups[segment]) for segment in sorted(groups))
            listed = {state: c3[state] for state in (best, *rivals)} if rivals else {}
            iterations.append(Iteration(best, classes, len(left), tuple(rivals), len(usable) - 1, listed))
    return tuple(iterations)


@given(recoding_cases())
@settings(max_examples=examples(200), deadline=None)
def test_what_is_not_looked_at_changes_nothing(case: tuple[Lattice, list[Record], int]) -> None:
    lattice, records, k = case
    assert local_recoding(histogram_of(lattice, records), lattice, k=k).iterations == listing_pass(lattice, records, k)


def test_what_is_not_looked_at_changes_nothing_in_wide_lattices() -> None:
    for seed in range(examples(2)):
        rng = np.random.default_rng(seed)
        sizes = [8 * int(factor) for factor in rng.choice([1, 2, 3], 5)]
        lattice = Lattice([halves(Decimal(0), Decimal(size), layers=4) for size in sizes], (seed % 2,) * 5)
        records = [tuple(int(v) for v in rng.integers(0, sizes)) for _ in range(60)]
        found = local_recoding(histogram_of(lattice, records), lattice, k=4)
        assert found.iterations == listing_pass(lattice, records, 4)


@given(recoding_cases(), st.integers(0, 3))
@settings(max_examples=examples(200), deadline=None)
def test_short_memory_and_codes_that_collide_change_nothing(
    case: tuple[Lattice, list[Record], int], most_groups: int
) -> None:
    lattice, records, k = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frontier, "MOST_REFUSALS", 2)
        patch.setattr(remaining, "MOST_GROUPS", most_groups)
        patch.setattr(tallying, "ODD", 2**62)  # so most of a node's bits are lost
        patch.setattr(tallying, "ROOM", 0)
        patch.setattr(tallying, "SPARE_ROOM", 1)  # and hardly any state has few segments
        patch.setattr(tallying, "MOST_KEPT", 2)
        found = local_recoding(histogram_of(lattice, records), lattice, k=k)
    assert found.iterations == listing_pass(lattice, records, k)


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
    counted = histogram_of(lattice, records)
    recoding = local_recoding(counted, lattice, k=k)
    assert all(each.size >= k for each in recoding.classes)
    assert sum(each.size for each in recoding.classes) + recoding.suppressed == len(records)
    for number, each in enumerate(recoding.classes):
        cells = recoding.class_of_cell == number
        assert counted.counts[cells].sum() == each.size
        for i, tree in enumerate(lattice.hierarchies):
            above = tree.climb(counted.nodes[i][cells], lattice.finest[i], each.state[i])
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
    counted = histogram_of(lattice, list(zip(values, reversed(values), strict=True)))
    recoding = local_recoding(counted, lattice, k=2)
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


def test_millions_of_states_are_recoded_with_looks_at_few() -> None:
    tree = halves(Decimal(0), Decimal(160), layers=5)
    lattice = Lattice([tree] * 9, (1,) * 9)
    rng = np.random.default_rng(0)
    records = [tuple(record) for record in rng.integers(0, 160, (16, 9)).tolist()]
    recoding = agree_with_greed(lattice, records, 5)
    assert lattice.size > 1_900_000 and len(recoding.iterations) > 1
    one = global_recoding(histogram_of(lattice, records), lattice, k=5, suppression_limit=Fraction(1, 2))
    assert lattice.key(one.iterations[0].state) > lattice.key(recoding.iterations[0].state)


def agree_with_greed(lattice: Lattice, records: list[Record], k: int) -> Recoding:
    """Check every step against all sets of k records: none has a cheaper state."""
    recoding, remaining = local_recoding(histogram_of(lattice, records), lattice, k=k), records
    for step in recoding.iterations:
        cheapest = min(lattice.key(joining(lattice, each)) for each in combinations(remaining, k))
        assert lattice.key(step.state) == cheapest
        taken = {each.segment for each in step.classes}
        remaining = [record for record in remaining if generalize(lattice.hierarchies, step.state, record) not in taken]
        assert len(remaining) == step.left
    return recoding


def joining(lattice: Lattice, records: Sequence[Record]) -> State:
    """The finest state that puts records in one group; for halves of 160 values, five layers."""
    leaves = np.array(records) // 10
    apart = np.bitwise_xor.reduce(np.stack([leaves.min(axis=0), leaves.max(axis=0)]))
    return tuple(int(each).bit_length() + 1 for each in apart)


def test_progress_is_told_in_records() -> None:
    lattice, records, k = random_case(7)
    told: list[tuple[int, int]] = []
    recoding = local_recoding(
        histogram_of(lattice, records), lattice, k=k, progress=lambda done, of: told.append((done, of))
    )
    assert told == sorted(told)
    assert told[-1] == (len(records) - recoding.suppressed, len(records))


@pytest.mark.parametrize("k", [2, 100])
def test_fewer_records_than_k_are_all_suppressed(k: int) -> None:
    lattice = Lattice([halves(Decimal(0), Decimal(8), layers=2)], (1,))
    recoding = local_recoding(histogram_of(lattice, [(1,)]), lattice, k=k)
    assert recoding.iterations == () and recoding.suppressed == 1 and recoding.class_of_cell.tolist() == [-1]
