from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.literal import LiteralRecoder
from tests.strategies import examples, lattices
from unblur import walk
from unblur.errors import ConfigError
from unblur.hierarchy import from_cuts, halves
from unblur.lattice import Lattice, State
from unblur.walk import Walk


@given(lattices())
@settings(max_examples=examples(200), deadline=None)
def test_groups_are_all_states_in_the_order_of_loss_and_criteria(lattice: Lattice) -> None:
    judge = LiteralRecoder(lattice, 2)
    nobody = [tuple(0 for _ in lattice.hierarchies)]
    groups = list(lattice.groups())
    keys = [{judge.criteria(state, nobody)[:3] for state in group} for group in groups]
    assert all(len(key) == 1 for key in keys), "states of a group tie"
    assert [next(iter(key)) for key in keys] == sorted(set().union(*keys)), "groups rise, and no two tie"
    assert sorted(chain(*groups)) == sorted(lattice.states())
    assert all(list(group) == sorted(group) for group in groups), "lattice order within a group"
    assert groups[0] == (lattice.finest,)


def test_permuted_layers_of_equal_attributes_tie() -> None:
    tree = halves(Decimal(0), Decimal(1024), layers=4)
    assert ((1, 2, 3), (1, 3, 2), (2, 1, 3), (2, 3, 1), (3, 1, 2), (3, 2, 1)) in list(
        Lattice([tree] * 3, (1, 1, 1)).groups()
    )


def test_the_loss_is_that_of_the_formula() -> None:
    trees = [halves(Decimal(1), Decimal(1001), layers=3), halves(Decimal(0), Decimal(1200), layers=3)]
    lattice = Lattice(trees, (1, 1))
    expected = ((1 + 249 / 999) * (1 + 299 / 1199)) ** 0.5 - 1
    assert lattice.loss((1, 1)) == pytest.approx(expected, rel=1e-12)
    assert lattice.loss(lattice.top) == 1
    assert lattice.c1((1, 2)) == 3
    assert lattice.c2((1, 2)) == Fraction(1, 2)


def test_an_attribute_with_a_single_value_loses_nothing() -> None:
    lattice = Lattice([from_cuts([Decimal(0), Decimal(1)])], (0,))
    assert lattice.loss((0,)) == lattice.loss((1,)) == 0


def test_too_many_states_are_refused_with_their_count() -> None:
    tree = halves(Decimal(0), Decimal(64), layers=7)
    Lattice([tree] * 10, (1,) * 10).check_size()
    with pytest.raises(ConfigError, match=r"1,073,741,824 states \(8 x 8 x .*at most 1,000,000,000 are .*: drop attr"):
        Lattice([tree] * 10, (0,) * 10).check_size()


@given(lattices())
@settings(max_examples=examples(200), deadline=None)
def test_a_walk_goes_through_the_groups(lattice: Lattice) -> None:
    assert list(Walk(lattice)) == list(lattice.groups())


@given(lattices(), st.integers(1, 5), st.integers(1, 20))
@settings(max_examples=examples(200), deadline=None)
def test_bands_tear_no_tie_apart(lattice: Lattice, few: int, many: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walk, "FEW", few)
        patch.setattr(walk, "MANY", many)
        assert list(Walk(lattice)) == list(lattice.groups())


def test_a_walk_over_thousands_of_tied_states_goes_through_the_groups() -> None:
    lattice = Lattice([halves(Decimal(0), Decimal(64), layers=4)] * 7, (1,) * 7)
    assert lattice.size > 3 * walk.FEW
    assert list(Walk(lattice)) == list(lattice.groups())


@given(lattices(), st.integers(0, 2**32 - 1), st.integers(1, 50))
@settings(max_examples=examples(200), deadline=None)
def test_states_crossed_out_on_the_way_are_left_out_with_all_finer_ones(lattice: Lattice, seed: int, few: int) -> None:
    rng, states = np.random.default_rng(seed), list(lattice.states())
    crossed, met = [], []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walk, "FEW", few)
        way = Walk(lattice)
        for tied in way:
            met.append(tied)
            if rng.random() < 0.5:
                crossed.append((len(met), states[rng.integers(len(states))]))
                way.cross_out(crossed[-1][1])
                assert way.is_crossed_out(crossed[-1][1]) or lattice.key(crossed[-1][1]) < lattice.key(tied[0])
    left = list(lattice.groups())
    for number, tied in enumerate(met):
        known = [state for after, state in crossed if after <= number]
        left = [tuple(s for s in group if not any(finer(s, state) for state in known)) for group in left]
        left = [group for group in left if group]
        assert left.pop(0) == tied
    known = [state for _, state in crossed]
    assert all(any(finer(s, state) for state in known) for group in left for s in group)


def finer(state: State, other: State) -> bool:
    return all(mine <= its for mine, its in zip(state, other, strict=True))
