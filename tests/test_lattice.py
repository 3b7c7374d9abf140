from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import chain

import pytest
from hypothesis import given, settings

from tests.literal import LiteralRecoder
from tests.strategies import examples, lattices
from unblur.errors import ConfigError
from unblur.hierarchy import from_cuts, halves
from unblur.lattice import Lattice


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


def test_more_than_a_million_states_are_refused_with_their_count() -> None:
    tree = halves(Decimal(0), Decimal(64), layers=7)
    Lattice([tree] * 7, (1,) * 7).check_size()
    with pytest.raises(ConfigError, match=r"2,097,152 states \(8 x 8 x 8 x 8 x 8 x 8 x 8\)"):
        Lattice([tree] * 7, (0,) * 7).check_size()
