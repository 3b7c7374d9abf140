"""How the exact joint engine keeps its states few: limits that follow, guesses, and rows that agree."""

from __future__ import annotations

from itertools import combinations
from math import comb, exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import examples
from tests.test_joint_reach import systems, vectors
from unblur.joint import rehearsing
from unblur.joint.flow import Flow
from unblur.joint.frontier import explore
from unblur.joint.guessing import CloseGuess, RoughGuess
from unblur.joint.merging import kinds, merge
from unblur.joint.plan import System
from unblur.joint.tightening import least, tighten

COVERED = System((3, 3), (0, 0, 1, 1), ((2, frozenset({0, 2})), (2, frozenset({1, 3}))))
"""Two classes of three in two places that hold two each: there is no room for six."""


@settings(max_examples=examples(200), deadline=None)
@given(systems())
def test_limits_that_follow_change_no_solution(system: System) -> None:
    tight = tighten(system)
    assert set(vectors(tight)) == set(vectors(system))
    assert (tight.sizes, tight.owners) == (system.sizes, system.owners)


def test_two_limits_that_cover_a_class_leave_the_rest_to_the_others() -> None:
    system = System((3, 2), (0, 0, 1, 1), ((2, frozenset({0, 2})), (2, frozenset({1, 3}))))
    # Four places less three records of the first class leave one for the second, which has two.
    assert (1, frozenset({2, 3})) in tighten(system).limits
    assert not list(vectors(system))


def test_dead_ends_are_not_begun() -> None:
    """A hub, then two classes that need room beside it."""
    limits = tuple((4, frozenset({hub, leaf})) for hub, leaf in ((0, 3), (1, 4), (1, 5), (2, 6)))
    system = System((4, 6, 6), (0, 0, 0, 1, 1, 2, 2), limits)
    before, after = (explore(each, range(7)) for each in (system, tighten(system)))
    assert Flow(before, [[1] * 7] * 7, labelled=False).count() == Flow(after, [[1] * 7] * 7, labelled=False).count()
    assert 2 * sum(len(layer.target) for layer in after) < sum(len(layer.target) for layer in before)


def test_no_limit_is_stated_that_nothing_can_keep() -> None:
    assert all(most >= 0 for most, _ in tighten(COVERED).limits)
    assert Flow(explore(tighten(COVERED), range(4)), [[1] * 4] * 4, labelled=False).count() == 0


def test_a_limit_within_another_is_left_out() -> None:
    wide, narrow, tighter = (3, frozenset({0, 1, 2})), (3, frozenset({0, 1})), (2, frozenset({0, 1}))
    assert least([narrow, wide]) == [wide]
    assert least([tighter, wide, tighter]) == [wide, tighter]


@settings(max_examples=examples(100), deadline=None)
@given(systems())
def test_the_close_guess_lists_what_a_class_can_hold(system: System) -> None:
    close, rough = CloseGuess(system), RoughGuess(system)
    for owner, size in enumerate(system.sizes):
        own = [group for group, other in enumerate(system.owners) if other == owner]
        limits = [limit for limit, (_, members) in enumerate(system.limits) if members & set(own)]
        alone = System((size,), (0,) * len(own), tuple((system.limits[n][0], _within(system, n, own)) for n in limits))
        held = {tuple(sum(row[g] for g in _within(system, n, own)) for n in limits) for row in vectors(alone)}
        lines = tuple((limit, 0) for limit in limits)
        assert round(exp(close.vectors(owner, lines))) == max(1, len(held))
        assert rough.vectors(owner, lines) >= close.vectors(owner, lines) - 1e-9
        for n, limit in enumerate(limits):
            assert close.caps[limit][owner] == max((each[n] for each in held), default=0)
    for first, second in combinations(range(len(system.sizes)), 2):
        assert close.agreeing(first, second) <= 0


def _within(system: System, limit: int, own: list[int]) -> frozenset[int]:
    return frozenset(place for place, group in enumerate(own) if group in system.limits[limit][1])


def test_of_many_vectors_some_are_drawn_and_the_others_counted() -> None:
    """Twelve records in ten groups, each in a limit of its own."""
    system = System((12,), (0,) * 10, tuple((12, frozenset({group})) for group in range(10)))
    guess = exp(CloseGuess(system).vectors(0, tuple((limit, 0) for limit in range(10))))
    assert 0.2 < guess / comb(21, 9) < 5


@given(st.lists(st.integers(0, 5), max_size=200), st.lists(st.integers(0, 2**40), max_size=5))
def test_rows_that_agree_are_one_kind(small: list[int], large: list[int]) -> None:
    keys = np.array([*small, *large, *large], np.int64)
    first, kind = kinds(keys)
    assert sorted(keys[first].tolist()) == sorted(set(keys.tolist()))
    assert (keys[first][kind] == keys).all()
    assert all(keys.tolist().index(keys[place]) == place for place in first.tolist())


@given(st.lists(st.lists(st.integers(0, 400), min_size=12, max_size=12), min_size=1, max_size=60))
def test_rows_agree_if_all_their_columns_do(rows: list[list[int]]) -> None:
    """Twelve columns of nine bits need more than one whole number."""
    table = np.array([*rows, *rows], np.int16)
    first, kind = merge(table.T, len(table))
    assert len(first) == len({tuple(row) for row in rows})
    assert (table[first][kind] == table).all()


def test_many_rows_agree_if_all_their_wide_columns_do() -> None:
    """Numbers of states are wide: two of them and the number of a row do not fit in one whole number."""
    rng = np.random.default_rng(1)
    table = rng.integers(0, 2**31 - 1, (200_000, 3)).astype(np.int32)
    table[100_000:, 1:] = table[:100_000, 1:]
    table[150_000:] = table[:50_000]
    first, kind = merge(table.T, len(table))
    assert len(first) == 150_000
    assert (table[first][kind] == table).all()


@settings(max_examples=examples(100), deadline=None)
@given(systems(), st.randoms(use_true_random=False))
def test_a_rehearsal_changes_the_order_of_a_class_at_most(system: System, rng: object) -> None:
    order = list(range(len(system.owners)))
    rng.shuffle(order)  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rehearsing, "FEW_STATES", 1)
        patch.setattr(rehearsing, "SAMPLE", 5)
        patch.setattr(rehearsing, "BETTER", 2.0)
        layers = explore(system, order)
    assert sorted(layer.step.group for layer in layers) == sorted(order) or not list(vectors(system))
    assert Flow(layers, [[1] * 5] * len(order), labelled=False).count() == len(list(vectors(system)))


def test_what_has_room_anywhere_is_filled_late() -> None:
    """Six records in six places, and six more that may also be elsewhere."""
    shared = tuple((6, frozenset({place, 7 + place})) for place in range(6))
    system = System((6, 6), (0,) * 6 + (1,) * 7, shared)
    order = range(13)
    before = explore(system, order)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rehearsing, "FEW_STATES", 100)
        after = explore(system, order)
    first, last = ([layer.step.group for layer in each if layer.step.owner == 1] for each in (before, after))
    assert first[0] == 6 and last.index(6) > 4
    assert 4 * sum(len(layer.target) for layer in after) < 3 * sum(len(layer.target) for layer in before)
    assert Flow(before, [[1] * 7] * 13, labelled=False).count() == Flow(after, [[1] * 7] * 13, labelled=False).count()


@pytest.mark.parametrize("size", [59, 60, 61, 200, 400])
def test_large_classes_are_counted_like_small_ones(size: int) -> None:
    """Whether numbers of records fit in a byte or not: two classes, two places, one of which holds at most so many."""
    system = System((size, size), (0, 0, 1, 1), ((size, frozenset({0, 2})),))
    flow = Flow(explore(tighten(system), range(4)), [[1] * (size + 1)] * 4, labelled=False)
    assert flow.count() == comb(size + 2, 2)
