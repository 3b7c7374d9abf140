from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import unblur
from tests.strategies import random_case
from tests.test_anonymizing import CONFIG, as_table, people
from unblur.config import Config
from unblur.errors import TableError
from unblur.reading import read_release
from unblur.release import EquivalenceClass

Write = Callable[[str, str | bytes], Path]


def sizes(classes: tuple[EquivalenceClass, ...]) -> dict[tuple[Any, ...], int]:
    return {(each.state, each.segment): each.size for each in classes}


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_a_release_is_read_back_as_it_was_made(tmp_path: Path, ending: str) -> None:
    made = unblur.anonymize(people(), CONFIG)
    made.save(tmp_path / f"r.{ending}")
    read = read_release(tmp_path / f"r.{ending}", tmp_path / "r.toml")
    assert sizes(read.classes) == sizes(made.classes)
    assert (read.outliers, read.rows) == (made.outliers, 200)
    assert read.sha256 is not None
    assert len(read.sha256) == 64


@pytest.mark.parametrize("seed", range(25))
def test_labels_of_all_kinds_of_hierarchies_are_found_again(seed: int) -> None:
    lattice, records, k = random_case(seed)
    config, _, table = as_table(lattice, records)
    made = unblur.anonymize(table, Config(k, config.quasi_identifiers))
    read = read_release(made.to_arrow(), made.config)
    assert sizes(read.classes) == sizes(made.classes)
    assert read.outliers == made.outliers
    order = [lattice.key(each.state) for each in read.classes]
    assert order == sorted(order), "in the order of the attack"


@pytest.mark.parametrize(
    "label",
    ["[0, 20[", "[0, 20)", "0-19", "[0.0, 20.0[", " [0,20[ ", "<20", "[0, 20]", "[0, 19]", "]-1, 19]"],
)
def test_intervals_are_read_in_every_dialect(label: str) -> None:
    config = {"k": 2, "quasi_identifiers": [CONFIG["quasi_identifiers"][0]]}  # type: ignore[index]
    (found,) = read_release(pa.table({"age": [label] * 3}), config).classes
    assert (found.state, found.segment, found.size) == ((2,), (0,), 3)


def test_rows_at_the_root_are_outliers_however_it_is_written() -> None:
    config = {"k": 2, "quasi_identifiers": [CONFIG["quasi_identifiers"][0]]}  # type: ignore[index]
    read = read_release(pa.table({"age": ["*", "[0, 80[", "[0, 80)", " * "]}), config)
    assert (read.outliers, read.classes) == (4, ())


def test_a_label_on_two_layers_belongs_to_the_finer_one() -> None:
    interval = {"cuts": [0, 10, 20, 30], "fanouts": [2]}
    config = {"k": 2, "quasi_identifiers": [{"name": "x", "interval": interval}]}
    (found,) = read_release(pa.table({"x": ["[20, 30["] * 2}), config).classes
    assert (found.state, found.segment) == ((1,), (2,))


def test_raw_values_are_labels_only_where_layer_0_is_allowed() -> None:
    entry = {**CONFIG["quasi_identifiers"][1], "finest_layer": 0}  # type: ignore[index]
    (found,) = read_release(pa.table({"weight": ["70.5", "70.50"]}), {"k": 2, "quasi_identifiers": [entry]}).classes
    assert (found.state, found.segment, found.size) == ((0,), (81,), 2)
    with pytest.raises(TableError, match="a label that its hierarchy does not have"):
        read_release(pa.table({"weight": ["70.5"]}), {"k": 2, "quasi_identifiers": [CONFIG["quasi_identifiers"][1]]})  # type: ignore[index]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("age;weight\n", "there are no rows, only a header"),
        ("age\n[0, 10[\n", "there is no column 'weight'"),
        ("age;weight\n*;*\nSECRET;*\nSECRET;*\n", r"column 'age': row 2: a label that its .* not have \(2 such rows\)"),
        ("age;weight\n*;*\n;*\n", r"column 'age': row 2: a label that its hierarchy does not have \(1 such row\)"),
        ("age;weight\n[0, 11[;*\n", r"column 'age': row 1: a label"),
    ],
)
def test_what_is_no_release_is_refused(write: Write, table: str, message: str) -> None:
    with pytest.raises(TableError, match=message) as caught:
        read_release(write("r.csv", table), CONFIG)
    assert "SECRET" not in str(caught.value)


def test_numbers_of_a_typed_column_match_labels_without_decimals(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("1;odd;*\n2;even;*\n3;odd;*\n")
    config = {"k": 2, "quasi_identifiers": [{"name": "n", "hierarchy": str(tmp_path / "h.csv")}]}
    pd.DataFrame({"n": [1.0, 1.0, 3.0, 3.0]}).to_parquet(tmp_path / "r.parquet")
    assert [each.size for each in unblur.read_release(tmp_path / "r.parquet", config).classes] == [2, 2]
