from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.strategies import category_hierarchies, interval_hierarchies
from unblur.arx.hierarchy_csv import read_hierarchy, write_hierarchy
from unblur.errors import HierarchyError
from unblur.hierarchy import Hierarchy, IntervalHierarchy

Write = Callable[[str, str | bytes], Path]


@pytest.mark.parametrize("separator", [";", ",", "\t", "|"])
def test_the_separator_is_detected(write: Write, separator: str) -> None:
    text = "male;a person, male;*\nfemale;a person, female;*\n" if separator == ";" else "male|x|*\nfemale|y|*\n"
    tree = read_hierarchy(write("sex.csv", text.replace("|", separator)))
    assert (tree.values, tree.nodes(1), tree.height) == (2, 2, 2)


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(write: Write) -> None:
    tree = read_hierarchy(write("sex.csv", "\ufeffmännlich;*\r\nweiblich;*\r\n".encode()))
    assert tree.label(0, 0) == "männlich"


def test_other_encodings_are_read(write: Write) -> None:
    assert read_hierarchy(write("sex.csv", "männlich;*\nweiblich;*\n".encode("cp1252"))).label(0, 0) == "männlich"


def test_interval_labels_become_intervals(write: Write) -> None:
    tree = read_hierarchy(write("h.csv", "7;[0, 10[;[0, 20[;*\n12;[10, 20[;[0, 20[;*\n33;[30, 40[;[20, 40[;*\n"))
    assert isinstance(tree, IntervalHierarchy)
    assert [int(bound) for bound in tree.bounds] == [0, 10, 20, 30, 40]
    assert tree.labels[0] == ("[0, 10[", "[10, 20[", "[20, 30[", "[30, 40["), "nobody has [20, 30[, but it exists"
    assert tree.step == 1
    assert any("put back" in note for note in tree.notes)


def test_the_step_is_the_resolution_of_the_numbers_or_as_given(write: Write) -> None:
    path = write("h.csv", "0.25;[0.0, 0.5[;*\n0.7;[0.5, 1.0[;*\n")
    assert read_hierarchy(path).values == 100
    assert read_hierarchy(path, step=Decimal("0.05")).values == 20


def test_closed_labels_that_touch_are_half_open(write: Write) -> None:
    tree = read_hierarchy(write("h.csv", "3;[0, 10];*\n10;[10, 20];*\n"))
    assert isinstance(tree, IntervalHierarchy)
    assert [int(bound) for bound in tree.bounds] == [0, 10, 20]


def test_labels_that_do_not_hold_their_values_are_plain_names(write: Write) -> None:
    tree = read_hierarchy(write("age.csv", "4;0-4;*\n5;0-4;*\n6;5-9;*\n"))
    assert tree.kind == "categories"
    assert "row 2" in tree.notes[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("a;x;*\nb;*\n", "row 2: 2 columns, but row 1 has 3"),
        ("a;*\na;*\n", "row 2: the same value as in row 1"),
        ("a;x;p;*\nb;x;q;*\n", "row 2: 'x' in column 2 has two parents: here 'q', in row 1 'p'"),
        ("1;[0, 10[;*\n8;[5, 20[;*\n", r"column 2: \[0, 10\) and \[5, 20\) overlap"),
        ("1;[0, 10[;*\n18;[15, 20[;*\n", r"column 2: a gap, no interval covers \[10, 15\)"),
        ("1;[0, 10[;[0, 15[;*\n12;[10, 20[;[0, 15[;*\n", r"column 2: an interval reaches beyond \[0, 15\)"),
    ],
)
def test_a_file_that_is_no_hierarchy_is_refused(write: Write, text: str, message: str) -> None:
    with pytest.raises(HierarchyError, match=message) as caught:
        read_hierarchy(write("h.csv", text))
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(HierarchyError, match=r"none\.csv: No such file"):
        read_hierarchy(tmp_path / "none.csv")


def same(tree: Hierarchy, again: Hierarchy) -> bool:
    return (tree.labels, tree.parents) == (again.labels, again.parents)


@given(interval_hierarchies())
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_interval_hierarchy_survives_the_file(tmp_path: Path, tree: Hierarchy) -> None:
    write_hierarchy(tree, tmp_path / "h.csv")
    assert same(read_hierarchy(tmp_path / "h.csv", step=Decimal(1)), tree)


@given(category_hierarchies())
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_hierarchy_of_categories_survives_the_file(tmp_path: Path, tree: Hierarchy) -> None:
    write_hierarchy(tree, tmp_path / "h.csv")
    assert read_hierarchy(tmp_path / "h.csv") == tree


@pytest.mark.parametrize("rows", ["1e9999999;[0, 10[;*\n5;[0, 10[;*\n", "5;[0, 1e999999[;*\n7;[0, 1e999999[;*\n"])
def test_numbers_beyond_all_reckoning_are_refused_in_a_line(write: Write, rows: str) -> None:
    with pytest.raises(HierarchyError) as refused:
        read_hierarchy(write("h.csv", rows))
    assert "\n" not in str(refused.value)
