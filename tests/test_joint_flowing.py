"""Whole numbers flow without what all of them have in common."""

from __future__ import annotations

from math import comb, log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import examples
from tests.test_joint_reach import systems, vectors, weigh
from unblur.joint.flow import Flow
from unblur.joint.flowing import Whole
from unblur.joint.frontier import explore
from unblur.joint.plan import System

TWO = System((5, 2), (0, 0, 1, 1), ((4, frozenset({0, 2})), (4, frozenset({1, 3}))))
"""Two classes that fill each other's limits."""


@settings(max_examples=examples(100), deadline=None)
@given(
    systems(),
    st.lists(st.lists(st.integers(0, 60), min_size=4, max_size=4), min_size=12, max_size=12),
    st.sampled_from([1, 6, 35]),
    st.booleans(),
)
def test_counts_are_right_whatever_divides_them(
    system: System, drawn: list[list[int]], unit: int, labelled: bool
) -> None:
    """Also where some numbers of records have no way at all."""
    ways = [[1, *(unit**n * number for n, number in enumerate(row, 1))] for row in drawn[: len(system.owners)]]
    flow = Flow(explore(system, range(len(system.owners))), ways, labelled)
    assert flow.count() == sum(weigh(system, ways, labelled, counts) for counts in vectors(system))


def test_powers_of_a_volume_are_taken_out() -> None:
    layers = explore(TWO, range(4))
    ways = [[(volume * 10**9) ** n for n in range(6)] for volume in (2, 3, 5, 7)]
    kind = Whole(ways, True, layers)
    assert kind.divisor == 10 ** (9 * (5 + 2))
    assert max(int(kind.table(layer).max()) for layer in layers) < 10**9
    flow = Flow(layers, ways, labelled=True)
    assert flow.count() == sum(weigh(TWO, ways, True, counts) for counts in vectors(TWO))


@pytest.mark.parametrize("labelled", [True, False])
def test_distinct_points_have_a_factor_for_each_group_that_must_hold_some(labelled: bool) -> None:
    layers = explore(TWO, range(4))
    ways = [[comb(volume * 10**9, n) for n in range(6)] for volume in (2, 3, 5, 7)]
    # The class of five records does not fit in one group.
    assert log2(Whole(ways, labelled, layers).divisor) > 2.5 * log2(10**9)
    flow = Flow(layers, ways, labelled)
    assert flow.count() == sum(weigh(TWO, ways, labelled, counts) for counts in vectors(TWO))
