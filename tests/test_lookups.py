from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import unblur
from unblur import lookups
from unblur.engines import DuckDBEngine
from unblur.lookups import keeps_order, look_up, place_among
from unblur.sources import open_table
from unblur.workspace import Workspace

HIERARCHY = "a;vowel;*\nb;consonant;*\nc;consonant;*\ne;vowel;*\n"


def config(folder: Path, **more: Any) -> dict[str, Any]:
    (folder / "letters.csv").write_text(HIERARCHY)
    return {
        "k": 2,
        "quasi_identifiers": [
            {"name": "letter", "hierarchy": str(folder / "letters.csv"), "finest_layer": 1},
            {"name": "age", "interval": {"low": 0, "high": 80, "layers": 3}},
            {"name": "weight", "interval": {"low": 30, "high": 110, "step": 0.5, "layers": 4}},
        ],
    } | more


@pytest.fixture
def engine() -> Iterator[DuckDBEngine]:
    with Workspace(threads=2) as workspace:
        yield DuckDBEngine(workspace.duckdb, workspace)


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", "e", "x", "", None]),
        st.integers(-3, 90) | st.none(),
        st.integers(50, 230).map(lambda n: n / 2) | st.none(),
    ),
    min_size=1,
    max_size=40,
)


@pytest.mark.filterwarnings("ignore::unblur.UnblurWarning")
@settings(max_examples=12, deadline=None)
@given(rows=ROWS)
def test_a_lookup_finds_what_a_join_finds(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, ...]]
) -> None:
    letters, ages, weights = zip(*rows, strict=True)
    table = pa.table(
        {
            "id": range(len(rows)),
            "letter": pa.array(letters, pa.string()),
            "age": pa.array(ages, pa.int64()),
            "weight": pa.array(weights, pa.float64()),
        }
    )
    folder = tmp_path_factory.mktemp("lookup")
    with unblur.anonymize(table, config(folder), missing="suppress") as found:
        looked_up = found.to_arrow()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lookups, "MOST_PLACES", 0)
        with unblur.anonymize(table, config(folder), missing="suppress") as joined:
            assert joined.to_arrow() == looked_up
    plain = ibis.memtable(table)  # an expression has no order, and is joined throughout
    with unblur.anonymize(plain, config(folder), missing="suppress", order_by="id") as expression:
        assert expression.to_arrow() == looked_up


def test_many_combinations_are_numbered_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    names = [f"q{i}" for i in range(8)]
    table = pa.table({"id": range(400)} | {name: rng.integers(0, 2, 400) * 100 for name in names})
    wide = [{"name": name, "interval": {"cuts": [*range(0, 129, 2)], "fanouts": [64]}} for name in names]
    settings_: dict[str, Any] = {"k": 2, "quasi_identifiers": wide}
    with unblur.anonymize(table, settings_, recoding="global", suppression_limit=1) as release:
        assert isinstance(release.table.engine, DuckDBEngine)
        assert keeps_order(release.published, release.table.engine)
        found = release.to_arrow()
    monkeypatch.setattr(lookups, "MOST_PLACES", 1000)
    with unblur.anonymize(table, settings_, recoding="global", suppression_limit=1) as release:
        assert isinstance(release.table.engine, DuckDBEngine)
        assert not keeps_order(release.published, release.table.engine)
        assert release.to_arrow() == found


@pytest.mark.parametrize("kind", ["csv", "parquet", "folder"])
def test_rows_of_many_groups_keep_their_order_on_several_threads(tmp_path: Path, kind: str) -> None:
    letter = "['a', 'b', 'c', 'e'][1 + (hash(i) % 4)::BIGINT]"
    columns = f"i AS id, {letter} AS letter, hash(i + 1) % 80 AS age, 30 + (hash(i + 2) % 160) / 2 AS weight"
    options = "FORMAT csv" if kind == "csv" else "FORMAT parquet, ROW_GROUP_SIZE 4096"
    source, size = tmp_path / kind, 10_000 if kind == "folder" else 100_000
    if kind == "folder":
        source.mkdir()
    for start in range(0, 100_000, size):
        file = source / f"{start:06}.parquet" if kind == "folder" else source
        duckdb.sql(f"COPY (SELECT {columns} FROM range({start}, {start + size}) t(i)) TO '{file}' ({options})")
    with unblur.anonymize(source, config(tmp_path), threads=4) as release:
        assert isinstance(release.table.engine, DuckDBEngine)
        assert keeps_order(release.published, release.table.engine)
        release.save(tmp_path / "r.parquet")
        assert release.to_arrow()["id"].cast(pa.int64()).to_pylist() == list(range(100_000))
    query = f"SELECT count(*) FROM '{tmp_path}/r.parquet' WHERE id::BIGINT = file_row_number"
    assert duckdb.execute(query).fetchall() == [(100_000,)]


def test_a_join_is_not_taken_to_keep_the_order(tmp_path: Path) -> None:
    duckdb.sql(f"COPY (SELECT i AS id FROM range(10) t(i)) TO '{tmp_path}/t.parquet'")
    with Workspace() as workspace:
        table = open_table(tmp_path / "t.parquet", workspace)
        assert isinstance(table.engine, DuckDBEngine)
        other = table.engine.push({"id": np.arange(10)})
        assert keeps_order(table.rows, table.engine)
        assert not keeps_order(table.rows.inner_join(other, "id"), table.engine)
        assert not keeps_order(table.rows.order_by("id"), table.engine)


def test_entries_are_found_at_their_places(engine: DuckDBEngine) -> None:
    rows = engine.push({"at": np.array([2, 0, 0, 1])})
    found = engine.fetch(look_up(rows, rows["at"], {"number": np.array([5, 6, 7])}, engine))
    assert found["number"].to_pylist() == [7, 5, 5, 6]


@pytest.mark.parametrize(
    ("values", "keys", "places"),
    [
        (["b", "a", " a", "it's"], ["a", "b", "A", None, " a", "it's", ""], [2, 1, 0, 0, 3, 4, 0]),
        ([0.0, 1.5, 1e300], [-0.0, 0.0, 1.5, 1.25, None, float("nan"), 1e300], [1, 1, 2, 0, 0, 0, 3]),
    ],
)
def test_the_place_of_a_key_is_found(engine: DuckDBEngine, values: Any, keys: list[Any], places: list[int]) -> None:
    rows = engine.push({"key": keys})
    assert engine.fetch(rows.select(place=place_among(values, rows["key"], engine)))["place"].to_pylist() == places
