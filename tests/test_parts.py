from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import unblur
from unblur.errors import OutputError, TableError, UnblurWarning
from unblur.sources import open_table
from unblur.tables import ROW
from unblur.workspace import Workspace

CONFIG: dict[str, Any] = {
    "k": 2,
    "quasi_identifiers": [{"name": "age", "interval": {"low": 0, "high": 80, "layers": 3}}],
}


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    with Workspace(threads=2) as workspace:
        yield workspace


def put(folder: Path, name: str, **columns: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def read(source: Any, workspace: Workspace) -> list[dict[str, Any]]:
    table = open_table(source, workspace)
    rows = table.rows.to_pyarrow().sort_by(ROW)
    assert rows[ROW].to_pylist() == list(range(rows.num_rows))
    found: list[dict[str, Any]] = rows.drop_columns(ROW).to_pylist()
    return found


def test_a_folder_is_read_by_name_all_the_way_down_but_for_notes(tmp_path: Path, workspace: Workspace) -> None:
    put(tmp_path, "b.parquet", id=[3, 4])
    put(tmp_path, "a/y.parquet", id=[2])
    put(tmp_path, "a/x.parquet", id=[1])
    put(tmp_path, "_temporary/z.parquet", id=[9])
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".b.parquet.crc").write_bytes(b"crc")
    assert [row["id"] for row in read(tmp_path, workspace)] == [1, 2, 3, 4]


def test_a_pattern_chooses_files(tmp_path: Path, workspace: Workspace) -> None:
    for number in (1, 2, 3):
        put(tmp_path, f"part-{number}.parquet", id=[number])
    put(tmp_path, "other.parquet", id=[9])
    assert [row["id"] for row in read(f"{tmp_path}/part-[12].parquet", workspace)] == [1, 2]


def test_of_a_folder_only_tables_are_read_and_it_is_said(tmp_path: Path, workspace: Workspace) -> None:
    (tmp_path / "a.csv").write_text("id;age\n1;5\n")
    (tmp_path / "b.CSV.gz").write_bytes(gzip.compress(b"id;age\n2;6\n"))
    for name in ("s.toml", "notes.txt", "picture.png"):
        (tmp_path / name).write_text("k = 2\n")
    table = open_table(tmp_path, workspace)
    assert table.rows.to_pyarrow().num_rows == 2
    (note,) = table.notes
    assert note.startswith(f"{tmp_path}: 3 files with another ending (such as notes.txt) left out; CSV, TSV and")


def test_a_folder_without_tables_is_refused(tmp_path: Path, workspace: Workspace) -> None:
    (tmp_path / "s.toml").write_text("k = 2\n")
    with pytest.raises(
        TableError, match=r"no tables in this folder, only 1 file with another ending \(such as s\.toml"
    ):
        open_table(tmp_path, workspace)


def test_a_pattern_reads_what_it_matches_but_no_config(tmp_path: Path, workspace: Workspace) -> None:
    (tmp_path / "a.txt").write_text("id;age\n1;5\n")
    (tmp_path / "b").write_text("id;age\n2;6\n")
    assert [row["id"] for row in read(f"{tmp_path}/*", workspace)] == ["1", "2"]
    (tmp_path / "s.toml").write_text("k = 2\n")
    with pytest.raises(TableError, match=r"s\.toml: not a table, but it matches the pattern"):
        open_table(f"{tmp_path}/*", workspace)


def test_csv_files_may_differ_in_dialect_order_of_columns_and_packing(tmp_path: Path, workspace: Workspace) -> None:
    (tmp_path / "1.csv").write_text("id;age\n007;5\n")
    (tmp_path / "2.csv").write_bytes("age,id\n6,\xfc8\n".encode("cp1252"))
    (tmp_path / "3.csv.gz").write_bytes(gzip.compress(b"id;age\n009;7\n"))
    expected = [{"id": "007", "age": "5"}, {"id": "\xfc8", "age": "6"}, {"id": "009", "age": "7"}]
    assert read(tmp_path, workspace) == expected


PACKINGS: dict[str, Callable[[str], bytes]] = {
    "plain": lambda text: text.encode(),
    "packed": lambda text: gzip.compress(text.encode()),
    "windows": lambda text: text.encode("cp1252"),
    "both": lambda text: gzip.compress(text.encode("cp1252")),
}


@settings(max_examples=25, deadline=None)
@given(packings=st.lists(st.sampled_from(sorted(PACKINGS)), min_size=2, max_size=5))
@example(packings=["plain", "packed", "plain"])
@example(packings=["plain", "windows", "plain"])
@example(packings=["both", "plain", "plain"])
@example(packings=["plain", "plain", "both"])
def test_no_part_is_taken_for_another(tmp_path_factory: pytest.TempPathFactory, packings: list[str]) -> None:
    folder = tmp_path_factory.mktemp("packed")
    for number, packing in enumerate(packings):
        text = f"id;age\n\xfc{number}a;5\n\xfc{number}b;6\n"
        (folder / f"{number}.csv{'.gz' * (packing in ('packed', 'both'))}").write_bytes(PACKINGS[packing](text))
    with Workspace(threads=2) as workspace:
        found = [row["id"] for row in read(folder, workspace)]
    assert found == [f"\xfc{number}{row}" for number in range(len(packings)) for row in "ab"]


@pytest.mark.filterwarnings("ignore::unblur.UnblurWarning")
@settings(max_examples=15, deadline=None)
@given(sizes=st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any))
def test_several_files_give_what_one_file_gives(tmp_path_factory: pytest.TempPathFactory, sizes: list[int]) -> None:
    folder = tmp_path_factory.mktemp("parts")
    start = 0
    for number, size in enumerate(sizes):
        ids = range(start, start + size)
        put(
            folder,
            f"{number}.parquet",
            id=pa.array(ids, pa.int64()),
            age=pa.array([7 * i % 80 for i in ids], pa.int64()),
        )
        start += size
    whole = pa.table({"id": range(start), "age": [7 * i % 80 for i in range(start)]})
    with unblur.anonymize(folder, CONFIG) as several, unblur.anonymize(whole, CONFIG) as one:
        assert several.to_arrow() == one.to_arrow()


def test_whole_numbers_may_be_of_different_sizes(tmp_path: Path, workspace: Workspace) -> None:
    put(tmp_path, "1.parquet", id=pa.array([1], pa.int8()))
    put(tmp_path, "2.parquet", id=pa.array([2**40], pa.int64()))
    assert [row["id"] for row in read(tmp_path, workspace)] == [1, 2**40]


def test_a_file_without_rows_counts_for_nothing(tmp_path: Path, workspace: Workspace) -> None:
    put(tmp_path, "1.parquet", id=pa.array([], pa.string()))
    put(tmp_path, "2.parquet", id=[5])
    (tmp_path / "3.parquet").touch()
    table = open_table(tmp_path, workspace)
    assert table.rows.to_pyarrow().num_rows == 1
    assert table.notes == (f"{tmp_path}/3.parquet: the file is empty, and left out",)


def test_what_is_wrong_with_one_of_several_files_is_told_with_its_name(tmp_path: Path) -> None:
    first = put(tmp_path, "1.parquet", id=[1], age=[5])
    second = tmp_path / "2.parquet"
    for columns, message in (
        (
            {"id": [2], "age": ["six"]},
            f"{second}: column 'age' holds VARCHAR, but BIGINT in {first}; write it with one",
        ),
        ({"id": [2], "age": [6.5]}, f"{second}: column 'age' holds DOUBLE, but BIGINT in {first}; write it with one"),
        ({"id": [2]}, f"{second}: there is no column 'age', which {first} has"),
        ({"id": [2], "age": [6], "sex": ["f"]}, f"{first}: there is no column 'sex', which {second} has"),
        ({"id": [2, 3], "age": [6, 99]}, f"{tmp_path}: column 'age': 2.parquet row 2: a value outside [0, 80) (1 such"),
    ):
        put(tmp_path, "2.parquet", **columns)
        with pytest.raises(TableError) as caught:
            unblur.anonymize(tmp_path, CONFIG)
        assert str(caught.value).startswith(message)


@pytest.mark.parametrize("content", [b"id;age\n2;6\n", b"PAR1 and no more", b""])
def test_files_of_two_kinds_are_refused_and_empty_ones_said(tmp_path: Path, content: bytes) -> None:
    put(tmp_path, "1.parquet", id=[1, 2], age=[5, 5])
    second = tmp_path / "2.parquet"
    second.write_bytes(content)
    if not content:
        with pytest.warns(UnblurWarning, match=r"2\.parquet: the file is empty, and left out"):
            assert unblur.anonymize(tmp_path, CONFIG).rows == 2
        return
    with pytest.raises(TableError, match=r"2\.parquet: (CSV, but .* is Parquet|not a Parquet file that can be read)"):
        unblur.anonymize(tmp_path, CONFIG)


def test_a_packed_file_that_is_cut_off_or_damaged_is_told_by_its_name(tmp_path: Path, workspace: Workspace) -> None:
    whole = gzip.compress(b"id;age\n" + b"".join(b"%d;5\n" % n for n in range(1000)))
    (tmp_path / "1.csv").write_text("id;age\n1;5\n")
    for content, problem in ((whole[:300], "cut off"), (whole[:300] + bytes(200) + whole[500:], "damaged")):
        (tmp_path / "2.csv.gz").write_bytes(content)
        with pytest.raises(TableError, match=rf"2\.csv\.gz: the packed file is {problem}$"):
            open_table(tmp_path, workspace)


def test_no_files_is_an_error(tmp_path: Path, workspace: Workspace) -> None:
    with pytest.raises(TableError, match="no files in this folder"):
        open_table(tmp_path, workspace)
    with pytest.raises(TableError, match="no file matches this pattern"):
        open_table(f"{tmp_path}/*.csv", workspace)
    (tmp_path / "1.csv").touch()
    with pytest.raises(TableError, match="all files are empty"):
        open_table(tmp_path, workspace)


def test_a_release_in_parts_is_audited_against_a_table_in_parts(tmp_path: Path) -> None:
    raw, published = tmp_path / "raw", tmp_path / "published"
    for number in range(3):
        put(raw, f"{number}.parquet", id=[2 * number, 2 * number + 1], age=[5, 60])
    with unblur.anonymize(raw, CONFIG) as release:
        rows = release.to_arrow()
        put(published, "a.parquet", **{name: rows[name][:2] for name in rows.column_names})
        put(published, "b.parquet", **{name: rows[name][2:] for name in rows.column_names})
        audit = unblur.audit(unblur.read_release(published, release.config), truth=raw)
    assert audit.summary.compound == 0
    assert not audit.problems


def test_a_release_does_not_go_into_the_folder_that_is_read(tmp_path: Path) -> None:
    put(tmp_path, "1.parquet", age=[5, 6])
    with unblur.anonymize(tmp_path, CONFIG) as release, pytest.raises(OutputError, match="lies in the folder"):
        release.save(tmp_path / "release.parquet")


@pytest.mark.parametrize(
    ("pattern", "target", "refused"),
    [
        ("raw/*.parquet", "raw/release.parquet", True),
        ("link/*.parquet", "raw/release.parquet", True),
        ("*/*.parquet", "raw/release.parquet", True),
        ("**/*.parquet", "raw/deep/release.parquet", True),
        ("raw/**", "raw/release.parquet", True),
        ("raw/*", "raw/release.csv", True),
        ("raw/*.parquet", "raw/deep/release.parquet", False),
        ("raw/[0-9].parquet", "raw/release.parquet", False),
        ("raw/*.parquet", "release.parquet", False),
    ],
)
def test_a_release_does_not_go_where_a_pattern_would_find_it(
    tmp_path: Path, pattern: str, target: str, refused: bool
) -> None:
    put(tmp_path, "raw/1.parquet", age=[5, 6])
    (tmp_path / "raw/deep").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "raw")
    out = tmp_path / target
    with unblur.anonymize(f"{tmp_path}/{pattern}", CONFIG) as release:
        if not refused:
            release.save(out)
            return
        with pytest.raises(OutputError, match=r"release\.\w+: all that matches .* is input; choose another path"):
            release.save(out)
    assert not out.exists()
