from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings

from tests.strategies import examples, hierarchies
from unblur.errors import HierarchyError
from unblur.hierarchy import Hierarchy, from_cuts, from_rows, halves


def decimals(*numbers: float | str) -> list[Decimal]:
    return [Decimal(str(number)) for number in numbers]


@given(hierarchies())
@settings(max_examples=examples(200))
def test_every_layer_partitions_the_values(tree: Hierarchy) -> None:
    values = np.arange(tree.values)
    for layer in range(tree.height + 1):
        above = tree.climb(values, 0, layer)
        lengths = [tree.length(layer, rank) for rank in range(tree.nodes(layer))]
        assert np.bincount(above, minlength=tree.nodes(layer)).tolist() == lengths
        assert sum(lengths) == tree.values


@given(hierarchies())
@settings(max_examples=examples(200))
def test_children_are_what_climbs_to_their_parent(tree: Hierarchy) -> None:
    for layer in range(1, tree.height + 1):
        for rank in range(tree.nodes(layer)):
            children = list(tree.children(layer, rank))
            assert children
            assert set(tree.climb(np.array(children), layer - 1, layer).tolist()) == {rank}
        assert sum(len(tree.children(layer, r)) for r in range(tree.nodes(layer))) == tree.nodes(layer - 1)


def test_equal_halves_have_two_to_the_layers_less_one_leaves() -> None:
    weight = halves(Decimal(30), Decimal(190), step=Decimal("0.5"), layers=4)
    assert (weight.nodes(1), weight.nodes(4), weight.values, weight.length(1, 0)) == (8, 1, 320, 40)
    assert weight.labels[0][:2] == ("[30.0, 50.0[", "[50.0, 70.0[")
    assert weight.interval(2, 3) == (Decimal(150), Decimal(190))


def test_the_last_group_of_a_layer_may_be_smaller_and_a_root_is_added() -> None:
    tree = from_cuts(decimals(0, 10, 20, 30, 40, 50), fanouts=[3])
    assert tree.labels[1:] == (("[0, 30[", "[30, 50["), ("*",))


def test_no_root_is_added_where_one_node_is_left() -> None:
    assert from_cuts(decimals(0, 10, 20), fanouts=[2]).labels == (("[0, 10[", "[10, 20["), ("[0, 20[",))
    assert from_cuts(decimals(0, 10)).labels == (("[0, 10[",),)


@pytest.mark.parametrize(
    ("low", "high", "step", "layers", "message"),
    [
        ("0", "100", "1", 4, "multiple of 8"),
        ("5", "5", "1", 2, "low must be below high"),
        ("0", "8", "0", 2, "step must be above 0"),
        ("0", "8", "1", 0, "layers must be"),
        ("0", "8", "1", 99, "layers must be"),
        ("0", "1e17", "1", 2, "too fine"),
    ],
)
def test_impossible_halves_are_refused(low: str, high: str, step: str, layers: int, message: str) -> None:
    with pytest.raises(HierarchyError, match=message):
        halves(Decimal(low), Decimal(high), step=Decimal(step), layers=layers)


@pytest.mark.parametrize(
    ("cuts", "fanouts", "step", "message"),
    [
        ([0], [], 1, "two cuts"),
        ([0, 5, 5], [], 1, "cuts must rise; 5 follows 5"),
        ([0, 9, 5], [], 1, "cuts must rise; 5 follows 9"),
        ([0, 2.5], [], 1, "not 0 plus a multiple of the step 1"),
        ([0, 5, 9], [1], 1, "fan-out must be 2 or more"),
        ([0, 5, 9], [2, 2], 1, "too many"),
        (list(range(5000)), [], 1, "4,999 leaves are too many"),
    ],
)
def test_impossible_cuts_are_refused(cuts: list[float], fanouts: list[int], step: int, message: str) -> None:
    with pytest.raises(HierarchyError, match=message):
        from_cuts(decimals(*cuts), fanouts=fanouts, step=Decimal(step))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "no rows"),
        ([["a"]], "one column only"),
        ([["a", "x", "*"], ["b", "*"]], "row 2: 2 columns, but row 1 has 3"),
        ([["a", "*"], ["b", "*"], ["a", "*"]], "row 3: the same value as in row 1"),
        (
            [["a", "x", "p", "*"], ["b", "x", "q", "*"]],
            "row 2: 'x' in column 2 has two parents: here 'q', in row 1 'p'",
        ),
        ([["a", "x", "*"], ["b", "x ", "*"]], "row 2: the label in column 2 differs from that in row 1 only by blanks"),
        ([["a", "x", "*"], [" a", "y", "*"]], "row 2: the label in column 1 differs from that in row 1 only by blanks"),
        ([["a", "x"], ["b", "y"]], "row 2: the last column must be the same in all rows"),
    ],
)
def test_rows_that_are_no_tree_are_refused(rows: list[list[str]], message: str) -> None:
    with pytest.raises(HierarchyError, match=message):
        from_rows(rows)


def test_values_on_a_cut_belong_to_the_right_hand_interval() -> None:
    tree = halves(Decimal(0), Decimal("1.6"), step=Decimal("0.1"), layers=5)
    cuts = tree.thresholds

    def leaf(value: float) -> int:
        return int(np.searchsorted(cuts, value, side="right")) - 1

    assert [leaf(0.1 * i) for i in range(16)] == list(range(16))
    assert leaf(0.7 + 0.1) == 8, "0.7 + 0.1 is a little less than 0.8"
    assert leaf(0.1 + 0.2) == 3
    assert leaf(0.7999) == 7
