from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import examples
from unblur import dictionaries, reading
from unblur.dictionaries import count_labels
from unblur.errors import TableError
from unblur.sources import open_table
from unblur.workspace import Workspace

Rows = list[tuple[str | None, ...]]
NAMES = ["age", "sex"]
LABELS = st.sampled_from([None, "", "*", "[0, 10[", "[10, 20[", "weiblich", "männlich", "x" * 300])
ROWS: st.SearchStrategy[Rows] = st.lists(st.tuples(LABELS, LABELS), max_size=60)
WRITING = st.fixed_dictionaries(
    {
        "use_dictionary": st.sampled_from([True, True, ["age"], False]),
        "row_group_size": st.sampled_from([1, 7, 60]),
        "data_page_size": st.sampled_from([1, 2**20]),
        "write_batch_size": st.sampled_from([1, 1024]),
        "dictionary_pagesize_limit": st.sampled_from([1, 20, 2**20]),
        "compression": st.sampled_from(["none", "snappy"]),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
    }
)
KINDS = st.sampled_from(
    [
        pa.string(),
        pa.large_string(),
        *(pa.dictionary(kind, pa.string()) for kind in (pa.int8(), pa.uint32(), pa.int64())),
    ]
)


def counted(groups: pa.Table) -> Counter[tuple[Any, ...]]:
    rows = [tuple(row.values()) for row in groups.to_pylist()]
    assert len({row[:-1] for row in rows}) == len(rows), "each group stands there once"
    return Counter({row[:-1]: row[-1] for row in rows})


def put(path: Path, rows: Rows, kind: pa.DataType | None = None, **options: Any) -> Path:
    columns = {name: pa.array([row[i] for row in rows], pa.string()) for i, name in enumerate(NAMES)}
    table = pa.table({name: column.cast(kind or pa.string()) for name, column in columns.items()})
    pq.write_table(table, path, **options)
    return path


def count(paths: Sequence[Path], names: Sequence[str] = NAMES) -> pa.Table | None:
    return count_labels(paths, names, threads=2)


@given(st.lists(st.tuples(ROWS, WRITING, KINDS), min_size=1, max_size=3), st.sampled_from([1, 5, 2**16]))
@settings(max_examples=examples(150), deadline=None)
def test_rows_are_grouped_as_by_the_engine(
    tmp_path_factory: pytest.TempPathFactory, files: list[tuple[Rows, dict[str, Any], pa.DataType]], batch: int
) -> None:
    folder = tmp_path_factory.mktemp("files")
    paths = [put(folder / f"{n}.parquet", rows, kind, **how) for n, (rows, how, kind) in enumerate(files)]
    expected = Counter(row for rows, _, _ in files for row in rows)
    with pytest.MonkeyPatch.context() as patch, Workspace(threads=2) as workspace:
        patch.setattr(dictionaries, "BATCH", batch)
        table = open_table(folder, workspace)
        found = count(paths)
        assert found is None or counted(found) == expected
        assert counted(reading._groups(table, NAMES, None)) == expected
        patch.setattr(reading, "count_labels", lambda *paths, **options: None)
        assert counted(reading._groups(table, NAMES, None)) == expected


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_files_that_duckdb_writes_are_counted_by_their_dictionaries(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"t.{form}"
    texts = "'[' || i % 7 || ', 9['  AS age, CASE WHEN i % 3 > 0 THEN i % 3 || '' END AS sex"
    duckdb.execute(f"COPY (SELECT {texts} FROM range(5000) AS t(i)) TO '{path}' (FORMAT {form})")
    with Workspace(threads=2) as workspace:
        found = count(open_table(path, workspace).parquets)
    assert found is not None
    assert counted(found) == Counter((f"[{i % 7}, 9[", str(i % 3) if i % 3 else None) for i in range(5000))


def test_what_is_no_text_with_a_dictionary_is_left_to_the_engine(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    for column in (pa.array([1, 2]), pa.array([b"a", b"b"]), pa.array([["a"], ["b"]])):
        pq.write_table(pa.table({"age": column, "sex": ["f", "m"]}), path)
        assert count([path]) is None
    assert count([put(path, [("a", "b")], use_dictionary=False)]) is None
    pq.write_table(pa.table({"age": pa.array([{"of": "a"}]), "sex": ["f"]}), path)
    assert count([path], ["age.of", "sex"]) is None


def test_too_many_combinations_are_left_to_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = put(tmp_path / "1.parquet", [("a", "b"), ("c", "d")])
    other = put(tmp_path / "2.parquet", [("e", "f"), ("g", "h")])
    monkeypatch.setattr(dictionaries, "MOST_COMBINATIONS", 9)  # a missing label counts, too
    assert count([one]) is not None
    assert count([one, other]) is None, "in both together"
    monkeypatch.setattr(dictionaries, "MOST_COMBINATIONS", 8)
    assert count([one]) is None


def test_what_cannot_be_read_is_left_to_the_engine_which_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    rows: Rows = [(f"[{a}, {a + 1}[", "*") for a in rng.integers(0, 100, 50_000).tolist()]
    path = put(tmp_path / "t.parquet", rows, row_group_size=5_000)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 5_000] = rng.bytes(5_000)
    path.write_bytes(content)
    assert count([path]) is None
    assert count([tmp_path / "gone.parquet"]) is None
    config = {"k": 2, "quasi_identifiers": [{"name": "age", "interval": {"low": 0, "high": 80, "layers": 3}}]}
    with pytest.raises(TableError) as caught:
        reading.read_release(path, config)
    monkeypatch.setattr(reading, "count_labels", lambda *paths, **options: None)
    with pytest.raises(TableError) as expected:
        reading.read_release(path, config)
    assert str(caught.value) == str(expected.value)


def test_texts_that_are_none_are_left_to_the_engine(tmp_path: Path) -> None:
    wrong = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"age": wrong, "sex": ["f"]}), path)
    assert count([path]) is None


@pytest.mark.parametrize("number", [-1, 2, 2**31 - 1])
def test_numbers_that_stand_for_no_label_are_noticed(number: int) -> None:
    assert dictionaries._numbers(pa.array([0, 1, None], pa.int32()), 2).tolist() == [0, 1, 2]
    for others in ([0], [0, None]):
        with pytest.raises(dictionaries._Unsuited):
            dictionaries._numbers(pa.array([*others, number], pa.int32()), 2)


def test_progress_counts_up_to_all_rows(tmp_path: Path) -> None:
    paths, seen = [put(tmp_path / f"{n}.parquet", [("a", "b")] * 50, row_group_size=1) for n in (1, 2)], []
    assert count_labels(paths, NAMES, threads=2, progress=lambda *each: seen.append(each)) is not None
    assert [of for _, of in seen] == [100] * len(seen)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert len(seen) > 10
    assert seen[-1] == (100, 100)


def test_an_interrupt_ends_it(tmp_path: Path) -> None:
    def stop(done: int, of: int) -> None:
        raise KeyboardInterrupt

    path = put(tmp_path / "t.parquet", [("a", "b")] * 50, row_group_size=1)
    with pytest.raises(KeyboardInterrupt):
        count_labels([path], NAMES, threads=2, progress=stop)
