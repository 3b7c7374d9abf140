"""States that are mirror images of each other: counts, odds and draws against trying everything."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import examples
from tests.test_joint_reach import WAYS, systems, vectors, weigh
from unblur.joint import flow as flow_module
from unblur.joint.flow import Flow
from unblur.joint.folding import Mirror, images, mirrors
from unblur.joint.frontier import explore
from unblur.joint.plan import Plan, System

TWINS = System(
    sizes=(4, 3),
    owners=(0, 0, 0, 1, 1, 1),
    limits=((3, frozenset({0, 3})), (3, frozenset({1, 4})), (3, frozenset({2, 5}))),
    kinds=(0, 0, 0, 1, 1, 1),
)
"""Two classes of three groups each; three limits that nothing tells apart."""
SKEWED = System(
    sizes=(3, 3, 3),
    owners=(0, 0, 0, 1, 1, 1, 2, 2, 2),
    limits=(
        *((4, frozenset({column, column + 3, column + 6})) for column in range(3)),
        (1, frozenset({0})),
        (2, frozenset({1})),
    ),
    kinds=(0, 0, 0, 1, 1, 1, 2, 2, 2),
)
"""Once the first class is filled nothing tells the three limits apart; but by then they are not equally full."""


@st.composite
def twins(draw: st.DrawFn) -> System:
    """Every class has pairs of groups that are alike; limits come in pairs, too, or hold both of a pair, or one.

    The limits of a pair need not allow the same.
    """
    sizes = draw(
        st.lists(st.integers(1, 4), min_size=1, max_size=3) | st.lists(st.integers(1, 7), max_size=2, min_size=1)
    )
    owners = [owner for owner in range(len(sizes)) for _ in range(draw(st.integers(1, 2)))]
    pairs = st.frozensets(st.integers(0, len(owners) - 1), min_size=1, max_size=3)
    limits = set[tuple[int, frozenset[int]]]()
    for most, more, chosen in draw(st.lists(st.tuples(st.integers(0, 6), st.integers(-2, 2), pairs), max_size=3)):
        limits |= {(max(0, most + more * side), frozenset(2 * pair + side for pair in chosen)) for side in (0, 1)}
    for most, chosen in draw(st.lists(st.tuples(st.integers(0, 4), pairs), max_size=2)):
        sides = draw(st.sampled_from([(0, 1), (0,), (1,)]))
        limits.add((most, frozenset(2 * pair + side for pair in chosen for side in sides)))
    doubled = [owner for owner in owners for _ in range(2)]
    return System(tuple(sizes), tuple(doubled), tuple(limits), tuple(group // 2 for group in range(len(doubled))))


def agrees_with_everything(system: System, order: list[int], ways: list[list[int]], *, labelled: bool) -> Flow:
    flow = Flow(explore(system, order), ways, labelled)
    weights = {counts: weigh(system, ways, labelled, counts) for counts in vectors(system)}
    total = sum(weights.values())
    assert flow.count() == total
    for group in order if total else ():
        found = Counter[int]()
        for counts, weight in weights.items():
            found[counts[group]] += weight
        assert [p for p in flow.held(group) if p] == [Fraction(found[n], total) for n in sorted(found) if found[n]]
        assert flow.possible(group) == [n for n in sorted(found) if found[n]]
    if total:
        assert all(weights[tuple(row)] > 0 for row in flow.sample(20, np.random.default_rng(1)).tolist())
    return flow


@settings(max_examples=examples(120), deadline=None)
@given(twins(), st.randoms(use_true_random=False), st.booleans())
def test_limits_in_pairs_give_what_trying_everything_gives(system: System, rng: object, labelled: bool) -> None:
    order = list(range(len(system.owners)))
    rng.shuffle(order)  # type: ignore[attr-defined]
    agrees_with_everything(
        system, order, [[*WAYS[kind % len(WAYS)], 2, 0, 3] for kind in system.kinds], labelled=labelled
    )


@settings(max_examples=examples(80), deadline=None)
@given(systems(), st.randoms(use_true_random=False), st.booleans())
def test_groups_all_of_a_kind_give_what_trying_everything_gives(system: System, rng: object, labelled: bool) -> None:
    order = list(range(len(system.owners)))
    rng.shuffle(order)  # type: ignore[attr-defined]
    alike = replace(system, kinds=(0,) * len(order))
    agrees_with_everything(alike, order, [WAYS[0]] * len(order), labelled=labelled)


def test_mirror_images_are_followed_once() -> None:
    order = [0, 1, 2, 3, 4, 5]
    folded = agrees_with_everything(TWINS, order, [WAYS[0]] * 6, labelled=True)
    assert any(layer.mirrored is not None for layer in folded.layers)
    plain = explore(replace(TWINS, kinds=()), order)
    assert sum(layer.states for layer in folded.layers) < 0.7 * sum(layer.states for layer in plain)
    assert all(layer.mirrored is None for layer in plain)


@pytest.mark.parametrize("labelled", [True, False])
def test_mirrors_are_used_one_after_the_other(labelled: bool) -> None:
    ways = [WAYS[0]] * 3 + [WAYS[2]] * 3 + [WAYS[0]] * 3
    flow = agrees_with_everything(SKEWED, list(range(9)), ways, labelled=labelled)
    assert sum(layer.mirrored is not None for layer in flow.layers) > 1
    assert flow.held(3) != flow.held(4) != flow.held(5)
    weights = {counts: weigh(SKEWED, ways, labelled, counts) for counts in vectors(SKEWED)}
    means = np.array(list(weights)).T @ np.array(list(weights.values())) / sum(weights.values())
    drawn = flow.sample(20_000, np.random.default_rng(1)).mean(axis=0)
    np.testing.assert_allclose(drawn, means, atol=0.03)


@pytest.mark.parametrize(
    ("sizes", "limits"),
    [
        ((1, 4), ((4, frozenset({0, 3})), (1, frozenset({1, 4})))),
        ((1, 8), ((5, frozenset({0, 3})), (2, frozenset({1, 4})))),
    ],
)
def test_no_limit_gets_more_room_than_it_has_from_the_start(
    sizes: tuple[int, ...], limits: tuple[tuple[int, frozenset[int]], ...]
) -> None:
    """The one that allows less is the one that gets the smaller room: the rest of the engine relies on it."""
    for each in (limits, limits[::-1]):
        system = System(sizes, (0, 0, 0, 1, 1, 1), each, (0, 0, 0, 1, 1, 1))
        agrees_with_everything(system, list(range(6)), [[1] * 9] * 6, labelled=False)


def test_the_same_tables_are_found_in_mirrors_as_without() -> None:
    """Many mirrors at a time, more than are used at once; and nothing is gone through twice because rooms are equal."""
    limits = tuple((4, frozenset(range(column, 15, 5))) for column in range(5))
    system = System(
        (4, 4, 4), tuple(group // 5 for group in range(15)), limits, tuple(group // 5 for group in range(15))
    )
    ways = [[1, 3, 5, 7, 2]] * 15
    folded, plain = (
        Flow(explore(each, range(15)), ways, labelled=True) for each in (system, replace(system, kinds=()))
    )
    assert folded.count() == plain.count()
    assert [folded.held(group) for group in range(15)] == [plain.held(group) for group in range(15)]
    assert [folded.possible(group) for group in range(15)] == [plain.possible(group) for group in range(15)]
    bundles, states = (sum(len(paths.state) for paths in each._whole._before()) for each in (folded, plain))
    assert bundles <= 1.1 * states


def test_groups_of_other_kinds_do_not_change_places() -> None:
    """What is counted tells them apart."""
    ways = [*[WAYS[0]] * 5, WAYS[1]]
    agrees_with_everything(replace(TWINS, kinds=(0, 0, 0, 1, 1, 2)), [0, 1, 2, 3, 4, 5], ways, labelled=False)


def test_draws_are_as_likely_as_they_are_worth() -> None:
    """Chi-squared, where states are mirrored again and again."""
    flow = Flow(explore(TWINS, range(6)), [WAYS[0]] * 6, labelled=True)
    weights = {counts: weigh(TWINS, [WAYS[0]] * 6, True, counts) for counts in vectors(TWINS)}
    number, total = 20_000, sum(weights.values())
    found = Counter(map(tuple, flow.sample(number, np.random.default_rng(1)).tolist()))
    assert found.keys() <= weights.keys()
    means = {counts: number * weight / total for counts, weight in weights.items()}
    assert sum((found[counts] - mean) ** 2 / mean for counts, mean in means.items()) < 2 * len(weights) + 20


def test_floating_point_odds_follow_the_mirrors(monkeypatch: pytest.MonkeyPatch) -> None:
    layers, ways = explore(TWINS, range(6)), [WAYS[0]] * 6
    exact = [Flow(layers, ways, labelled=True).held(group) for group in range(6)]
    monkeypatch.setattr(flow_module, "FEW_STATES", 0)
    rough = [Flow(layers, ways, labelled=True).held(group) for group in range(6)]
    for odds, others in zip(rough, exact, strict=True):
        np.testing.assert_allclose(np.array(odds, float), np.array(others, float), rtol=1e-10)
        assert {type(p) for p in odds} == {float}


def test_mirrors_are_the_pairs_of_limits_that_nothing_tells_apart() -> None:
    plan = Plan.of(TWINS)
    for group in range(3):
        plan.step(group)
    found = mirrors(plan, free=())
    assert [(each.lines[0][1], each.lines[1][1]) for each in found] == [(0, 1), (0, 2), (1, 2)]
    assert found[0].image == (0, 1, 2, 4, 3, 5)
    assert [each.lines for each in mirrors(plan, free=(2,))] == [(("limit", 0), ("limit", 1))]


def test_each_set_of_mirrors_has_its_image() -> None:
    """The one that was used last is looked up first."""
    swaps = [Mirror((("limit", a), ("limit", b)), image) for (a, b), image in zip(
        pairwise(range(3)), [(1, 0, 2), (0, 2, 1)], strict=True
    )]  # fmt: skip
    assert images(swaps, 3).tolist() == [[0, 1, 2], [1, 0, 2], [0, 2, 1], [1, 2, 0]]
