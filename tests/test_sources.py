from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import ibis
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from openpyxl import Workbook

from unblur.errors import MissingExtraError, TableError
from unblur.sources import open_table
from unblur.tables import ROW
from unblur.workspace import Workspace

Write = Callable[[str, str | bytes], Path]

ROWS = [("007", "1.50", "2024-03-17", 'say "hi"'), ("008", None, "17.3.24", "a;b\nc"), (" x ", "NULL", "1e3", "é")]
CSV = 'id;n;when;note\n007;1.50;2024-03-17;"say ""hi"""\n008;;17.3.24;"a;b\nc"\n x ;NULL;1e3;é\n'


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    with Workspace(threads=2) as workspace:
        yield workspace


def rows_of(source: Any, workspace: Workspace) -> list[tuple[Any, ...]]:
    table = open_table(source, workspace)
    rows = table.rows.to_pyarrow()
    if table.numbered:
        rows = rows.sort_by(ROW).drop_columns(ROW)
    return [tuple(row.values()) for row in rows.to_pylist()]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_text_in_a_csv_file_stays_as_it_is(write: Write, workspace: Workspace, encoding: str, newline: str) -> None:
    text = CSV.replace("\nc", "\rc").replace("\n", newline).replace("\rc", "\nc")
    assert rows_of(write("t.csv", text.encode(encoding)), workspace) == ROWS


def test_an_encoding_that_had_to_be_guessed_is_said(write: Write, workspace: Workspace) -> None:
    assert "Windows-1252" in open_table(write("t.csv", CSV.encode("cp1252")), workspace).notes[0]
    with Workspace() as other:
        assert open_table(write("t.csv", CSV.encode("cp1252")), other, encoding="latin-1").notes == ()


def test_names_with_pattern_characters_quotes_and_blanks_are_just_names(write: Write, workspace: Workspace) -> None:
    assert rows_of(write("it's [final] *?.csv", CSV), workspace) == ROWS


def test_packed_files_and_wrong_endings_are_no_matter(write: Write, workspace: Workspace) -> None:
    assert rows_of(write("t.dat", gzip.compress(CSV.encode())), workspace) == ROWS


def test_standard_input_is_read(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CSV.encode())))
    assert rows_of("-", workspace) == ROWS


def test_parquet_keeps_its_types(tmp_path: Path, workspace: Workspace) -> None:
    rows = [(1, 2.5, date(2024, 3, 17), "007"), (2, None, None, None)]
    pq.write_table(
        pa.table(list(map(list, zip(*rows, strict=True))), names=["i", "x", "d", "t"]), tmp_path / "t.parquet"
    )
    assert rows_of(tmp_path / "t.parquet", workspace) == rows


def test_excel_cells_become_the_text_that_is_seen(tmp_path: Path, workspace: Workspace) -> None:
    book = Workbook()
    for row in [
        ("id", "n", "when", "ok"),
        ("007", 12.5, date(2024, 3, 17), True),
        ("008", 30.0, None, None),
        (None,) * 4,
    ]:
        book.worksheets[0].append(row)
    book.create_sheet("other")
    book.save(tmp_path / "t.xlsx")
    assert rows_of(tmp_path / "t.xlsx", workspace) == [("007", "12.5", "2024-03-17", "TRUE"), ("008", "30", None, None)]
    with Workspace() as another:
        assert "first of 2 sheets" in open_table(tmp_path / "t.xlsx", another).notes[0]


FRAME = {"a": [3, 1, 2], "b": ["x", "y", None]}


@pytest.mark.parametrize(
    "frame",
    [pd.DataFrame(FRAME, index=[9, 9, 9]), pl.DataFrame(FRAME), pa.table(FRAME)],
    ids=["pandas", "polars", "arrow"],
)
def test_data_frames_keep_their_order(frame: Any, workspace: Workspace) -> None:
    assert rows_of(frame, workspace) == [(3, "x"), (1, "y"), (2, None)]


def test_an_expression_is_taken_as_it_is(workspace: Workspace) -> None:
    assert sorted(rows_of(ibis.memtable(pa.table({"a": [2, 1]})), workspace)) == [(1,), (2,)]


def test_a_duckdb_file_is_read_by_url(tmp_path: Path, workspace: Workspace) -> None:
    connection = ibis.duckdb.connect(tmp_path / "x.duckdb")
    connection.raw_sql("CREATE SCHEMA s; CREATE TABLE s.t AS SELECT 1 AS a; CREATE TABLE u AS SELECT 2 AS a")
    connection.disconnect()
    assert rows_of(f"duckdb://{tmp_path}/x.duckdb#s.t", workspace) == [(1,)]
    assert rows_of(f"duckdb://{tmp_path}/x.duckdb#u", workspace) == [(2,)]
    with pytest.raises(TableError, match=r"duckdb://…#v: there is no such table"):
        open_table(f"duckdb://{tmp_path}/x.duckdb#v", workspace)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", b"", "the file is empty"),
        ("t.csv", b"a;b;a\n1;2;3\n", "the column 'a' is there twice"),
        ("t.csv", b"a;b;A\n1;2;3\n", "'A' is there beside 'a', which differs only in case"),
        ("t.csv", b"a;;c\n1;2;3\n", "column 2 has no name"),
        ("t.csv", b"a;b\n1;2\nSECRET\n3;4\n", "line 3 has 1 fields, but the header has 2"),
        ("t.csv", b'a;b\n1;"SECRET\n3;4\n', "quote that is not closed"),
        ("t.parquet", b"PAR1 and nothing more", "not a Parquet file"),
        ("t.xlsx", b"PK\x03\x04 and nothing more", "not an Excel workbook"),
        ("t.xls", b"\xd0\xcf\x11\xe0 and nothing more", "an old Excel file"),
        ("t.csv", b"\x00\x01\x02\x03\x04", "not a text file"),
    ],
)
def test_files_that_cannot_be_read_are_refused_without_their_values(
    write: Write, workspace: Workspace, name: str, content: bytes, message: str
) -> None:
    path = write(name, content)
    with pytest.raises(TableError, match=message) as caught:
        open_table(path, workspace)
    assert str(path) in str(caught.value)
    assert "SECRET" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("no-such-file.csv", "no-such-file.csv: no such file"),
        ("postgres://me:SECRET@127.0.0.1:1/db", "name the table after a #"),
        ("postgres://me:SECRET@127.0.0.1:1/db#t", "postgres://…#t: cannot be opened .the server cannot be reached"),
        ("nosuch://x#t", "nosuch://…#t: cannot be opened"),
        (42, "an object of type int is no table; accepted are"),
        (pd.DataFrame({"a": [1, "SECRET", 3.5]}), "column 'a' mixes types"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "'a' is there twice"),
    ],
)
def test_sources_that_cannot_be_opened_are_refused(source: Any, message: str, workspace: Workspace) -> None:
    with pytest.raises(TableError, match=message) as caught:
        open_table(source, workspace)
    assert "SECRET" not in str(caught.value)


def test_a_missing_extra_comes_with_its_install_command(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'unblur\[pyspark\]'"):
        open_table("pyspark://#t", workspace)


def test_the_workspace_leaves_nothing_behind(write: Write) -> None:
    with Workspace() as workspace:
        open_table(write("t.csv", CSV), workspace)
        folder = workspace.folder
        assert oct(folder.stat().st_mode)[-3:] == "700"
    assert not folder.exists()
    forgotten = Workspace()
    folder = forgotten.folder
    del forgotten
    assert not folder.exists()


def test_one_cell_in_apostrophes_does_not_make_them_quotes(write: Write, workspace: Workspace) -> None:
    path = write("t.csv", "a;b\n1;'x'\n5;'t Hooft\n6;kept\n7;y'\n")
    assert [row[1] for row in rows_of(path, workspace)] == ["'x'", "'t Hooft", "kept", "y'"]


def test_blank_lines_before_the_header_and_long_fields_are_read(write: Write, workspace: Workspace) -> None:
    assert rows_of(write("t.csv", f"\n\na;b\n1;{'x' * 500_000}\n"), workspace) == [("1", "x" * 500_000)]


def test_a_line_of_several_megabytes_is_refused_for_what_it_is(write: Write, workspace: Workspace) -> None:
    with pytest.raises(TableError, match="line 2 is longer than 2 MB"):
        open_table(write("t.csv", f"a;b\n1;{'x' * 3_000_000}\n"), workspace)


def test_excel_is_read_from_standard_input_whatever_size_it_claims(
    tmp_path: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = Workbook()
    for row in [("a", "b"), *((i, i) for i in range(6))]:
        book.worksheets[0].append(row)
    book.save(tmp_path / "t.xlsx")
    with ZipFile(tmp_path / "t.xlsx") as packed, ZipFile(tmp_path / "lying.xlsx", "w") as lying:
        for name in packed.namelist():
            lying.writestr(name, packed.read(name).replace(b'ref="A1:B7"', b'ref="A1:B3"'))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((tmp_path / "lying.xlsx").read_bytes())))
    assert len(rows_of("-", workspace)) == 6


def test_a_named_index_is_a_column(workspace: Workspace) -> None:
    frame = pd.DataFrame({"a": [1, 2]}, index=pd.Index(["x", "y"], name="id"))
    assert rows_of(frame, workspace) == [(1, "x"), (2, "y")]


@pytest.mark.parametrize("name", ["__unblur_row", "__UNBLUR_code_0", "__unblur"])
def test_names_of_our_own_are_refused_from_every_source(name: str, workspace: Workspace) -> None:
    frame = pa.table({name: [1], "b": [2]})
    for source in (frame, ibis.memtable(frame)):
        with pytest.raises(TableError, match="has a name that is used here; rename it"):
            open_table(source, workspace)


def test_a_cut_off_packed_file_is_refused(write: Write, workspace: Workspace) -> None:
    with pytest.raises(TableError, match="the packed file is cut off"):
        open_table(write("t.csv.gz", gzip.compress(CSV.encode() * 100)[:-20]), workspace)


def test_leading_zeros_of_an_excel_format_are_kept(tmp_path: Path, workspace: Workspace) -> None:
    book = Workbook()
    book.worksheets[0].append(("zip", "n"))
    book.worksheets[0].append((7, 50))
    book.worksheets[0]["A2"].number_format = "00000"
    book.save(tmp_path / "t.xlsx")
    assert rows_of(tmp_path / "t.xlsx", workspace) == [("00007", "50")]


def test_the_separator_line_that_excel_writes_is_no_header(write: Write, workspace: Workspace) -> None:
    assert rows_of(write("t.csv", "sep=,\r\na,b\r\n1,2\r\n"), workspace) == [("1", "2")]


def test_mixed_line_ends_and_a_wrong_encoding_are_told(write: Write, workspace: Workspace) -> None:
    with pytest.raises(TableError, match="some lines end with LF, some with CRLF"):
        open_table(write("t.csv", "a;b\r\n1;2\n3;4\r\n5;6\n"), workspace)
    with pytest.raises(TableError, match="not UTF-8 text; name the encoding"):
        open_table(write("u.csv", "a;b\n1;ä\n".encode("latin-1")), workspace, encoding="utf-8")
