from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unblur.arx.hierarchy_csv import read_hierarchy
from unblur.building.drafts import Draft, interval_entry
from unblur.building.inferring import Domain, infer, infer_intervals
from unblur.building.profiling import Column
from unblur.errors import HierarchyError, TableError
from unblur.hierarchy import Hierarchy, IntervalHierarchy, from_cuts, halves
from unblur.sources import open_table
from unblur.workspace import Workspace

from .strategies import interval_hierarchies


def guess(*labels: str, **domain: str) -> IntervalHierarchy:
    return infer_intervals("x", labels, Domain(**{end: Decimal(value) for end, value in domain.items()}))[0]


def all_labels(tree: Hierarchy) -> set[str]:
    return {label for layer in tree.labels for label in layer}


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    with Workspace(threads=1) as found:
        yield found


def infer_from(values: Any, workspace: Workspace) -> Draft:
    return infer(Column(open_table(pa.table({"x": values}), workspace), "x"))


@given(st.data(), interval_hierarchies())
def test_the_guess_has_every_label_that_was_seen(data: st.DataObject, tree: IntervalHierarchy) -> None:
    labels = sorted(all_labels(tree) - {"*"})
    seen = data.draw(st.lists(st.sampled_from(labels), min_size=1, unique=True))
    numbers = data.draw(st.lists(st.integers(0, tree.values - 1).map(str), max_size=3))
    found = guess(*seen, *numbers)
    assert set(seen) <= all_labels(found)
    assert all(found.low <= Decimal(number) < found.high for number in numbers)


@settings(deadline=None)
@given(st.data(), interval_hierarchies())
def test_a_guess_survives_its_file(data: st.DataObject, tree: IntervalHierarchy) -> None:
    labels = sorted(all_labels(tree) - {"*"})
    found = guess(*data.draw(st.lists(st.sampled_from(labels), min_size=1, unique=True)))
    if found.height == 1:
        return  # a single interval: no tree to speak of
    with Workspace() as workspace:
        Draft("x", found, 1).save(workspace.folder / "x.csv")
        again = read_hierarchy(workspace.folder / "x.csv", step=found.step)
    assert isinstance(again, IntervalHierarchy)
    assert (again.labels, again.parents, again.bounds) == (found.labels, found.parents, found.bounds)


@given(
    st.integers(-500, 500), st.integers(1, 60), st.sampled_from(["1", "0.1", "0.01"]), st.integers(1, 6), st.booleans()
)
def test_equal_halves_are_recognized_from_all_their_labels(
    low: int, units: int, step: str, layers: int, root: bool
) -> None:
    width = Decimal(step) * units * 2 ** (layers - 1)
    tree = halves(Decimal(low), Decimal(low) + width, step=Decimal(step), layers=layers)
    labels = all_labels(tree) - (set() if root or layers == 1 else {tree.labels[-1][0]})
    found = guess(*labels)
    assert found.bounds == tree.bounds
    assert found.labels[: layers - 1] == tree.labels[: layers - 1]
    if root:
        assert found.labels == tree.labels


def test_even_labels_become_cuts_and_fanouts() -> None:
    found = guess("[0, 5[", "[15, 20[", "[0, 15[", "[30, 45[")
    assert interval_entry(found) == ("{ cuts = [0, 5, 10, 15, 20, 25, 30, 35, 40, 45], fanouts = [3], step = 1 }")
    assert found.labels[-1] == ("*",)


def test_groups_are_counted_from_where_the_widest_label_begins() -> None:
    assert guess("[20, 40[", "[40, 80[").low == 0


def test_uneven_labels_are_kept_and_gaps_are_filled() -> None:
    found = guess("[0, 18[", "[40, 65[", "[0, 40[")
    assert found.labels == (("[0, 18[", "[18, 40[", "[40, 65["), ("[0, 40[", "[40, 65["), ("*",))
    assert interval_entry(guess("[0, 10[", "[10, 30[", "[30, 75[")) is not None


@pytest.mark.parametrize(
    "labels, bounds",
    [
        (["[0, 10)", "[10, 20)"], (0, 10, 20)),
        (["(0, 10]", "(10, 20]"], (1, 11, 21)),
        (["0-9", "10-19"], (0, 10, 20)),
        (["0–9", "10–19"], (0, 10, 20)),
        (["[0, 10]", "[10, 20]"], (0, 10, 20)),
        (["]0, 10]", "]10, 20]"], (1, 11, 21)),
        (["0.0-9.9", "10.0-19.9"], (0, 10, 20)),
    ],
)
def test_every_dialect_is_read(labels: list[str], bounds: tuple[int, ...]) -> None:
    assert guess(*labels).bounds == bounds


def test_open_ended_labels_stay_and_their_ends_are_guessed_or_given(workspace: Workspace) -> None:
    found = guess("<18", "18-64", ">=65")
    assert found.labels == (("<18", "18-64", ">=65"), ("*",)) and [*map(int, found.bounds)] == [0, 18, 65, 112]
    assert guess("<18", "18-64", ">=65", high="120").high == 120
    assert interval_entry(found) is None
    Draft("age", found, 1).save(workspace.folder / "age.csv")
    again = read_hierarchy(workspace.folder / "age.csv")
    assert isinstance(again, IntervalHierarchy) and again.bounds == found.bounds and again.labels == found.labels


def test_labels_with_a_point_tell_that_the_step_is_no_integer() -> None:
    found = guess("[30.0, 50.0[", "[50.0, 70.0[")
    assert found.step == Decimal("0.1") and "[30.0, 50.0[" in found.labels[0]
    assert guess("[30.0, 50.0[", step="0.5").step == Decimal("0.5")


def test_a_domain_that_is_given_is_kept() -> None:
    found = guess("[20, 30[", "[30, 40[", low="0", high="80")
    assert found.low == 0 and found.high == 80 and found.nodes(1) == 8
    assert [*map(int, guess("[20, 30[", low="15", high="33").bounds)] == [15, 20, 30, 33]


@pytest.mark.parametrize(
    "labels, domain, message",
    [
        (["[0, 10[", "[5, 15["], {}, r"x: \[0, 10\[ and \[5, 15\[ overlap"),
        (["[5, 5["], {}, r"no value lies in \[5, 5\["),
        (["[0, 10["], {"low": "5"}, r"\[0, 10\[ reaches beyond the domain"),
        (["[0, 10[", "12"], {"high": "11"}, "1 raw numbers lie outside"),
        (["1", "2"], {}, "only raw numbers"),
        (["[0, 10["], {"step": "0"}, "step must be above 0"),
        (["[0, 10["], {"step": "3"}, "not 0 plus a multiple of the step 3"),
        (["[0, 10["], {"low": "3", "high": "1"}, "low must be below high"),
    ],
)
def test_labels_that_make_no_tree_are_refused(labels: list[str], domain: dict[str, str], message: str) -> None:
    with pytest.raises(HierarchyError, match=message):
        guess(*labels, **domain)


def test_raw_numbers_among_the_labels_mean_that_layer_0_is_published(workspace: Workspace) -> None:
    draft = infer_from(["[0, 10[", "[10, 20[", "7", "*", None], workspace)
    assert draft.finest_layer == 0 and draft.hierarchy.nodes(1) == 2
    assert any("cannot be seen" in note for note in draft.notes)


def test_masks_are_completed_with_every_digit(workspace: Workspace) -> None:
    draft = infer_from(["19**", "2***", "*", "****"], workspace)
    assert draft.finest_layer == 1 and draft.hierarchy.values == 10_000
    assert [draft.hierarchy.nodes(layer) for layer in (1, 2, 3)] == [100, 10, 1]
    assert {"19**", "2***"} <= all_labels(draft.hierarchy)


def test_masks_from_the_left_and_raw_codes_are_read(workspace: Workspace) -> None:
    draft = infer_from(["A1", "*2"], workspace)
    assert draft.finest_layer == 0 and draft.hierarchy.values == 260
    assert "*2" in draft.hierarchy.labels[0] and draft.hierarchy.labels[-1] == ("*",)


@pytest.mark.parametrize(
    "values, message",
    [
        (["8*", "81*"], r"masks of different length \(1 of 2 characters, 1 of 3 characters\)"),
        (["8*", "*1"], r"\*1 is masked from the left, but 8\* from the right"),
        (["ABCDEF**"], "possible codes, too many to list"),
        (["[0, 10[", "819**"], "neither an interval"),
        (["*", "*", ""], "nothing to guess from"),
        (["f", "m", "[0, 10["], r"row 1: a label that is neither an interval .* \(2 such rows\)"),
    ],
)
def test_other_labels_are_refused_without_repeating_them(values: list[str], message: str, workspace: Workspace) -> None:
    with pytest.raises((HierarchyError, TableError), match=message):
        infer_from(values, workspace)


def test_many_leaves_are_guessed_quickly() -> None:
    tree = from_cuts([Decimal(n) for n in range(2049)], fanouts=[2] * 11)
    assert guess(*all_labels(tree)) == tree
