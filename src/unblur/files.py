"""Tables in files.

A file is first made a Parquet file in a private folder, unless it is one, so that each row has a number and every later
look at it reads only the columns it needs. Text stays text: a CSV file's columns are read as text, whatever they look
like. What a file is, its first bytes tell, not its name.
"""

from __future__ import annotations

import gzip
import re
import shutil
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from itertools import islice
from pathlib import Path
from typing import Any, Literal
from zipfile import BadZipFile

from unblur.csvfile import Dialect, detect_dialect, detect_encoding, transcode
from unblur.engines import no_space
from unblur.errors import TableError
from unblur.tables import ROW, FileStamp, Table, check_names
from unblur.workspace import Workspace, sql_path, sql_text


@dataclass(frozen=True, slots=True)
class Prepared:
    """A file as Parquet, which it may have been before, and what was found out about it."""

    parquet: Path
    kind: Literal["CSV", "Parquet", "Excel"]
    separator: str | None = None
    notes: tuple[str, ...] = ()
    stamps: tuple[FileStamp, ...] = ()


def open_file(path: Path, name: str, workspace: Workspace, columns: Sequence[str], encoding: str | None) -> Table:
    """Open a file of any kind that is read; `name` is what messages call it."""
    return _numbered(prepare(path, name, workspace, columns, encoding), name, workspace)


def prepare(path: Path, name: str, workspace: Workspace, columns: Sequence[str], encoding: str | None) -> Prepared:
    """Make a file a Parquet file, in the workspace, unless it is one."""
    with path.open("rb") as file:
        start = file.read(8)
    if not start:
        raise TableError(f"{name}: the file is empty; a header line and rows are needed")
    if start.startswith(b"\x1f\x8b"):
        unpacked = workspace.new_path("unpacked")
        _unpack(path, unpacked, name)
        prepared = prepare(unpacked, name, workspace, columns, encoding)
        if prepared.parquet != unpacked:
            unpacked.unlink()
        return prepared
    if start.startswith(b"PAR1"):
        return Prepared(path, "Parquet", stamps=(FileStamp.of(path),))
    if start.startswith(b"PK\x03\x04"):
        return _prepare_excel(path, name, workspace)
    if start.startswith(b"\xd0\xcf\x11\xe0"):
        raise TableError(f"{name}: an old Excel file; save it as .xlsx or CSV")
    return _prepare_csv(path, name, workspace, columns, encoding)


def _unpack(path: Path, target: Path, name: str) -> None:
    with gzip.open(path) as packed, target.open("wb") as file:
        try:
            shutil.copyfileobj(packed, file)
        except EOFError:
            raise TableError(f"{name}: the packed file is cut off") from None
        except (gzip.BadGzipFile, zlib.error):
            raise TableError(f"{name}: the packed file is damaged") from None


def _prepare_csv(path: Path, name: str, workspace: Workspace, columns: Sequence[str], encoding: str | None) -> Prepared:
    given, notes = path, []
    if encoding is None:
        encoding = detect_encoding(path)
        if encoding == "cp1252":
            notes.append(f"{name}: not UTF-8, read as Windows-1252; --encoding NAME says otherwise")
    if encoding not in ("utf-8", "utf-8-sig"):
        text = workspace.new_path("utf-8")
        transcode(path, text, encoding=encoding)
        path, encoding = text, "utf-8"
    try:
        dialect = detect_dialect(path, encoding=encoding, columns=columns)
    except TableError as error:
        raise TableError(str(error).replace(str(path), name)) from error
    check_names(dialect.header, name)
    parquet = workspace.new_path("table.parquet")
    _csv_to_parquet(path, parquet, dialect, name, workspace)
    if path != given:
        path.unlink()
    return Prepared(parquet, "CSV", dialect.separator, tuple(notes))


def _csv_to_parquet(path: Path, parquet: Path, dialect: Dialect, name: str, workspace: Workspace) -> None:
    import duckdb

    columns = ", ".join(f"{sql_text(column)}: 'VARCHAR'" for column in dialect.header)
    reader = (
        f"read_csv({sql_path(path, workspace)}, columns = {{{columns}}}, header = true, auto_detect = false, "
        f"skip = {dialect.skipped_lines}, "
        f"delim = {sql_text(dialect.separator)}, quote = {sql_text(dialect.quote)}, escape = {sql_text(dialect.quote)})"
    )
    try:
        workspace.duckdb.raw_sql(f"COPY (FROM {reader}) TO {sql_text(str(parquet))} (FORMAT parquet)")
    except duckdb.Error as error:
        raise TableError(f"{name}: {_csv_problem(error, dialect)}") from None


def _csv_problem(error: Exception, dialect: Dialect) -> str:
    """Say what is wrong with a CSV file, without the line that DuckDB quotes."""
    message = str(error)
    line = re.search(r"CSV Error on Line: (\d+)", message)
    where = f"line {line[1]}" if line else "the file"
    if counts := re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message):
        return f"{where} has {counts[2]} fields, but the header has {counts[1]}"
    if "Invalid unicode" in message:
        return f"{where} is not UTF-8 text; name the encoding with --encoding"
    if "Maximum line size" in message:
        return f"{where} is longer than 2 MB"
    if "unterminated quote" in message:
        return f"{where} has a quote that is not closed"
    if no_space(error):
        return "no space left for temporary files (TMPDIR names another folder)"
    mixed = "" if dialect.even_lines else ": some lines end with LF, some with CRLF; save it with one of them"
    return f"{where} cannot be read as CSV{mixed}"


def _prepare_excel(path: Path, name: str, workspace: Workspace) -> Prepared:
    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    parquet = workspace.new_path("table.parquet")
    with path.open("rb") as file:  # openpyxl would judge a path by its ending
        try:
            book = load_workbook(file, read_only=True, data_only=True)
        except (InvalidFileException, BadZipFile, KeyError, OSError, ValueError) as error:
            raise TableError(f"{name}: not an Excel workbook (.xlsx)") from error
        try:
            _sheet_to_parquet(book.worksheets[0], parquet, name)
            sheets = len(book.worksheets)
        finally:
            book.close()
    notes = (f"{name}: only the first of {sheets} sheets is read",) if sheets > 1 else ()
    return Prepared(parquet, "Excel", notes=notes)


def _sheet_to_parquet(sheet: Any, parquet: Path, name: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sheet.reset_dimensions()  # what a file says of its own size may be wrong
    rows = (texts for row in sheet.iter_rows() if any(texts := [_cell_text(cell) for cell in row]))
    header = [text or "" for text in next(rows, [])]
    while header and not header[-1]:
        header.pop()
    if not header:
        raise TableError(f"{name}: the first sheet is empty; a header row and rows are needed")
    check_names(header, name)
    schema = pa.schema([(column, pa.string()) for column in header])
    with pq.ParquetWriter(parquet, schema) as writer:
        for chunk in _chunks(rows, 10_000):
            columns = [[row[i] if i < len(row) else None for row in chunk] for i in range(len(header))]
            writer.write_table(pa.table(columns, schema=schema))


def _chunks(rows: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while chunk := list(islice(rows, size)):
        yield chunk


def _cell_text(cell: Any) -> str | None:
    """Write a cell of a sheet as text: dates in ISO form, whole numbers with the leading zeros of their format."""
    value = cell.value
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        zeros = cell.number_format or ""
        return str(int(value)).zfill(len(zeros) if set(zeros) == {"0"} else 0)
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ")
    return value.isoformat() if isinstance(value, date | time) else str(value)


def _numbered(file: Prepared, name: str, workspace: Workspace) -> Table:
    """Open a Parquet file with a number for each row."""
    read_types(file.parquet, name, workspace)
    source = f"read_parquet({sql_path(file.parquet, workspace)})"
    workspace.duckdb.raw_sql(f"CREATE TEMP VIEW unblur_table AS SELECT *, file_row_number AS {ROW} FROM {source}")
    rows, facts = workspace.duckdb.table("unblur_table"), (file.separator, file.notes)
    return Table(rows, name, workspace, True, *facts, parquets=(file.parquet,), stamps=file.stamps)


def read_types(parquet: Path, name: str, workspace: Workspace) -> dict[str, str]:
    """Find the names and types of a Parquet file's columns."""
    import duckdb

    try:
        found = workspace.duckdb.con.execute(f"DESCRIBE FROM read_parquet({sql_path(parquet, workspace)})").fetchall()
    except duckdb.Error:
        raise TableError(f"{name}: not a Parquet file that can be read") from None
    types = {row[0]: row[1] for row in found}
    check_names(list(types), name)
    for used in ("file_row_number", "file_index"):
        if used in map(str.lower, types):
            raise TableError(f"{name}: the column {used!r} has a name that is used here; rename it")
    return types
