"""The exact joint engine against the slow and obvious way, and the estimate against the exact engine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from functools import cache, partial
from itertools import islice
from math import comb, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.plausible import attack_on, release_of
from tests.strategies import examples
from unblur.attacking import Attack
from unblur.counting.deadline import OutOfTime, deadline
from unblur.hierarchy import halves
from unblur.joint import estimating
from unblur.joint.estimating import Estimator
from unblur.joint.exact import solve
from unblur.joint.flow import Flow
from unblur.joint.front import OutOfReach
from unblur.joint.frontier import explore
from unblur.joint.ordering import good_orders
from unblur.joint.plan import System
from unblur.joint.program import Component, joint_program
from unblur.joint.proposing import propose
from unblur.joint.tightening import tighten
from unblur.lattice import Lattice

WAYS = [[1, 3, 5, 7, 2], [1, 2, 0, 4, 1], [1, 1, 1, 1, 1]]
"""What groups may be worth: some numbers of records have no way."""


def vectors(system: System) -> Iterator[tuple[int, ...]]:
    """All numbers of records per group, by trying everything."""

    def fill(group: int, left: list[int], counts: list[int]) -> Iterator[tuple[int, ...]]:
        if group == len(system.owners):
            if not any(left) and all(sum(counts[g] for g in members) <= most for most, members in system.limits):
                yield tuple(counts)
            return
        owner = system.owners[group]
        for n in range(left[owner] + 1):
            left[owner] -= n
            yield from fill(group + 1, left, [*counts, n])
            left[owner] += n

    return fill(0, list(system.sizes), [])


@st.composite
def systems(draw: st.DrawFn) -> System:
    """Some classes with a few groups each, and limits that join some of them."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    owners = [owner for owner in range(len(sizes)) for _ in range(draw(st.integers(1, 3)))]
    members = st.frozensets(st.integers(0, len(owners) - 1), min_size=1, max_size=4)
    limits = draw(st.lists(st.tuples(st.integers(0, 4), members), max_size=6, unique_by=lambda each: each[1]))
    return System(tuple(sizes), tuple(owners), tuple(limits))


@settings(max_examples=examples(60), deadline=None)
@given(systems(), st.booleans())
def test_shares_without_whole_numbers_are_right_to_ten_digits(system: System, labelled: bool) -> None:
    layers, huge = explore(system, range(len(system.owners))), 10**400
    whole = Flow(layers, [[1, huge, huge**2, huge**3, huge**4]] * len(system.owners), labelled)
    part = Flow(layers, [[1, 0, huge**2 // 3, huge**3 // 7, huge**4 // 9]] * len(system.owners), labelled)
    if whole.count():
        assert part.share(whole) == pytest.approx(float(Fraction(part.count(), whole.count())), rel=1e-10, abs=0)
        assert whole.share(whole) == 1


@settings(max_examples=examples(120), deadline=None)
@given(systems(), st.randoms(use_true_random=False), st.booleans())
def test_every_order_gives_what_trying_everything_gives(system: System, rng: object, labelled: bool) -> None:
    """Counts, odds, possible numbers and draws, whatever falls apart on the way."""
    order = list(range(len(system.owners)))
    rng.shuffle(order)  # type: ignore[attr-defined]
    ways = [WAYS[group % len(WAYS)] for group in order]
    flow = Flow(explore(system, order), ways, labelled)
    weights = {counts: weigh(system, ways, labelled, counts) for counts in vectors(system)}
    total = sum(weights.values())
    assert flow.count() == total
    if not total:
        return
    for group in order:
        found: dict[int, int] = defaultdict(int)
        for counts, weight in weights.items():
            found[counts[group]] += weight
        odds = flow.held(group)
        assert [p for p in odds if p] == [Fraction(found[n], total) for n in sorted(found) if found[n]]
        assert flow.possible(group) == [n for n in sorted(found) if found[n]]
    drawn = flow.sample(20, np.random.default_rng(1)).tolist()
    assert all(weights[tuple(row)] > 0 for row in drawn)


def weigh(system: System, ways: list[list[int]], labelled: bool, counts: tuple[int, ...]) -> int:
    left, total = list(system.sizes), 1
    for group, n in enumerate(counts):
        owner = system.owners[group]
        total *= ways[group][n] * (comb(left[owner], n) if labelled else 1)
        left[owner] -= n
    return total


def test_branches_are_drawn_as_often_as_they_are_worth() -> None:
    """A hub and two leaves that share nothing but it: chi-squared."""
    system = System(
        (3, 3, 3), (0, 0, 1, 1, 2, 2), ((4, frozenset({0, 2})), (3, frozenset({1, 4})), (4, frozenset({1, 5})))
    )
    ways = [WAYS[0]] * 6
    flow = Flow(explore(system, range(6)), ways, labelled=False)
    assert any(len(layer.branches) > 1 for layer in flow.layers)
    weights = {counts: prod(WAYS[0][n] for n in counts) for counts in vectors(system)}
    number, total = 20_000, sum(weights.values())
    found: dict[tuple[int, ...], int] = defaultdict(int)
    for row in flow.sample(number, np.random.default_rng(1)).tolist():
        found[tuple(row)] += 1
    assert set(found) <= set(weights)
    means = {counts: number * weight / total for counts, weight in weights.items()}
    assert sum((found[counts] - mean) ** 2 / mean for counts, mean in means.items()) < 2 * len(weights) + 20


@cache
def bell(heights: tuple[int, ...], rows: int, k: int) -> tuple[Attack, Component]:
    """The largest component of a bell-shaped table."""
    sizes = np.array([2 ** (height - 1) * (1000 + 37 * i) for i, height in enumerate(heights)])
    trees = [halves(Decimal(0), Decimal(int(n)), layers=h) for n, h in zip(sizes, heights, strict=True)]
    shares = np.random.default_rng(1).normal(0.5, 0.15, (rows, len(sizes)))
    records = np.clip((shares * sizes).astype(np.int64), 0, sizes - 1).tolist()
    attack = attack_on(release_of(Lattice(trees, (1,) * len(trees)), [tuple(row) for row in records], k))
    return attack, max(joint_program(attack).components, key=lambda each: (len(each.targets), len(each.groups)))


def test_orders_hold_every_group_once_and_agree() -> None:
    _, component = bell((3, 3, 3), 500, 6)
    orders = list(islice(good_orders(component.system), 6))
    counts = set()
    for order in orders:
        assert sorted(order.groups) == list(range(len(component.groups)))
        layers = explore(component.system, order.groups)
        # The guess is no bound; but it is of use.
        assert max(layer.states for layer in layers) < 100 * order.states
        counts.add(Flow(layers, [[1] * 10] * len(component.groups), labelled=False).count())
    assert len({tuple(order.groups) for order in orders}) > 1 == len(counts)


@pytest.mark.parametrize(
    ("heights", "rows", "k", "most"), [((4, 3, 3), 800, 7, 2_000_000), ((3, 3, 3), 500, 7, 2_000_000)]
)
def test_the_paper_s_sizes_are_within_reach(heights: tuple[int, ...], rows: int, k: int, most: int) -> None:
    attack, component = bell(heights, rows, k)
    solved = solve(attack.grid, component.system, component.groups, "distinct")
    assert sum(len(layer.target) for layer in solved.layers) < most
    assert solved.solutions > 0


def test_orders_are_tried_up_to_the_limits_and_not_beyond() -> None:
    """The same count, however many tries it takes; and none, if not even the best order is good enough."""
    attack, component = bell((4, 3, 3), 800, 7)
    count = partial(solve, attack.grid, component.system, component.groups, "distinct")
    tight = tighten(component.system)
    orders = list(islice(good_orders(tight), 4))
    peaks = [max(layer.states for layer in explore(tight, order.groups)) for order in orders]
    states, peak = min((order.states, peak) for order, peak in zip(orders[1:], peaks[1:], strict=True))
    with_effort = count(most_states=max(peak, int(states)))
    assert with_effort.solutions == count().solutions
    with pytest.raises(OutOfReach, match="states"):
        count(most_states=min(peaks) - 1)


def test_hopeless_systems_are_refused_without_trying() -> None:
    attack, component = bell((3, 3, 3, 3), 500, 5)
    with pytest.raises(OutOfReach, match="about"):
        solve(attack.grid, component.system, component.groups, "any")


def test_a_deadline_holds_on_the_way() -> None:
    attack, component = bell((4, 3, 3), 800, 7)
    solved = solve(attack.grid, component.system, component.groups, "any")
    for action in (
        lambda: solve(attack.grid, component.system, component.groups, "any"),
        lambda: solved.flow.count(),
        lambda: solved.sample(1, np.random.default_rng(1)),
    ):
        with pytest.raises(OutOfTime), deadline(0.0):
            action()


def most_misses(runs: int, error: float) -> int:
    """So many misses are exceeded with a chance of less than one in a million, if each run misses with this chance."""
    tail, misses = 1.0, -1
    while tail > 1e-6:
        misses += 1
        tail -= comb(runs, misses) * error**misses * (1 - error) ** (runs - misses)
    return misses


@pytest.mark.parametrize(("rows", "k"), [(800, 3), (800, 5), (500, 6)])
def test_intervals_cover(monkeypatch: pytest.MonkeyPatch, rows: int, k: int) -> None:
    """Few draws, many runs: of the first look's intervals, one in forty may miss."""
    monkeypatch.setattr(estimating, "FIRST_LOOK", 400)
    monkeypatch.setattr(estimating, "BATCH", 400)
    attack, component = bell((3, 3, 3), rows, k)
    simplest = propose(attack.grid, component, frozenset(), "distinct", most_states=100_000, known={})
    monkeypatch.setattr(estimating, "_choose", lambda *given: simplest)
    exact, runs = solve(attack.grid, component.system, component.groups, "distinct").solutions, examples(100)
    misses = 0
    for seed in range(runs):
        estimate = Estimator(attack.grid, component, "distinct", seed=seed, error=0.05).run(60, precision=float("inf"))
        assert estimate.drawn == 400 and 0 < estimate.kept < 400
        low, high = estimate.interval
        misses += not low <= exact <= high
    assert misses <= most_misses(runs, 0.025)


@pytest.mark.parametrize(("heights", "rows", "k"), [((3, 3, 3), 500, 7), ((4, 3, 3), 800, 6), ((4, 3, 3), 800, 7)])
def test_count_and_estimate_agree(heights: tuple[int, ...], rows: int, k: int) -> None:
    attack, component = bell(heights, rows, k)
    exact = solve(attack.grid, component.system, component.groups, "distinct").solutions
    estimate = Estimator(attack.grid, component, "distinct", seed=1, error=1e-6).run(4, precision=0.1)
    low, high = estimate.interval
    assert low <= exact <= high
    assert estimate.at_least <= exact <= estimate.at_most
    assert 0.5 < estimate.value / exact < 2
