"""Tables from anywhere: files, standard input, data frames, databases, clusters.

Every table becomes an Ibis expression. A file is first made a Parquet file in a private folder, unless it is one, so
that each row has a number and every later look at it reads only the columns it needs. Text stays text: a CSV file's
columns are read as text, whatever they look like.
"""

from __future__ import annotations

import difflib
import gzip
import os
import re
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit
from zipfile import BadZipFile

from unblur.csvfile import Dialect, detect_dialect, detect_encoding, transcode
from unblur.engines import Engine, engine_errors, engine_of
from unblur.errors import MissingExtraError, OutputError, TableError

if TYPE_CHECKING:
    import ibis
    import pyarrow as pa

PREFIX = "__unblur"
"""How the names of our helper columns begin."""
ROW = f"{PREFIX}_row"
"""The helper column that numbers the rows of a file or data frame, from 0."""


def _private_folder() -> Path:
    """Make a folder that only its owner can read, in the place that TMPDIR names and nowhere else."""
    chosen = os.environ.get("TMPDIR")
    if chosen and not (os.path.isdir(chosen) and os.access(chosen, os.W_OK)):
        raise OutputError(f"TMPDIR: {chosen} is not a folder that can be written to")
    try:
        return Path(tempfile.mkdtemp(prefix="unblur-", dir=chosen))
    except OSError as error:
        raise OutputError(f"no folder for temporary files: {error.strerror or error}") from error


class Workspace:
    """A private folder for temporary files, an embedded DuckDB that spills into it, and connections; gone after use."""

    def __init__(self, *, threads: int | None = None) -> None:
        self._resources = ExitStack()
        self.folder = _private_folder()
        self._resources.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self._threads = threads or os.cpu_count() or 1
        self.close = weakref.finalize(self, self._resources.close)

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @cached_property
    def duckdb(self) -> Any:
        """An Ibis connection to an embedded DuckDB that holds at most about a gigabyte in memory."""
        import ibis

        connection = ibis.duckdb.connect(
            threads=self._threads,
            memory_limit=f"{max(1024, 256 * self._threads)}MB",
            temp_directory=str(self.folder / "spill"),
        )
        self._resources.callback(connection.disconnect)
        return connection

    def defer(self, action: Callable[..., object], *arguments: object, **options: object) -> None:
        """Do something when the workspace closes, whatever comes of it."""

        def attempt() -> None:
            with suppress(Exception):
                action(*arguments, **options)

        self._resources.callback(attempt)

    def connect(self, address: str) -> Any:
        """Connect to a database or cluster, for reading; a database shows one and the same state until the end."""
        import ibis

        scheme = address.partition("://")[0]
        if scheme == "pyspark":
            return _spark(address)  # the session may be the user's own: it is left running
        backend = ibis.connect(address, **({"read_only": True} if scheme == "duckdb" else {}))
        self._resources.callback(backend.disconnect)
        if backend.name == "postgres":
            self._resources.enter_context(backend.con.transaction(force_rollback=True))
            backend.raw_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").close()
        return backend


@dataclass(frozen=True)
class Table:
    """Rows to be read, and how to speak of them."""

    rows: ibis.Table
    name: str
    """For messages."""
    workspace: Workspace
    numbered: bool = False
    """Whether the column `ROW` numbers the rows; a database's rows have no order."""
    separator: str | None = None
    """The separator of a CSV file."""
    notes: tuple[str, ...] = ()
    """What was assumed in reading it."""
    path: Path | None = None
    """The file it was read from."""
    steady: bool = True
    """Whether two looks at it surely see the same rows."""

    def __post_init__(self) -> None:
        check_names(self.columns, self.name)

    @property
    def columns(self) -> list[str]:
        """The names of the table's own columns."""
        return [name for name in self.rows.columns if not (self.numbered and name == ROW)]

    @cached_property
    def engine(self) -> Engine:
        """The engine that has the rows."""
        return engine_of(self.rows, self.workspace)

    def fetch(self, rows: ibis.Table) -> pa.Table:
        """Bring a small result to Python."""
        with engine_errors(self.name):
            return self.engine.fetch(rows)

    def require(self, name: str) -> None:
        """Refuse a column that is not there, with the likeliest of those that are."""
        if name not in self.columns:
            close = difflib.get_close_matches(name, self.columns, 1, 0.5)
            listed = ", ".join(self.columns[:12]) + (", …" if len(self.columns) > 12 else "")
            hint = f"; did you mean {close[0]!r}?" if close else f"; it has: {listed}"
            raise TableError(f"{self.name}: there is no column {name!r}{hint}")


def open_table(source: Any, workspace: Workspace, *, columns: Sequence[str] = (), encoding: str | None = None) -> Table:
    """Open a path, `-`, a URL with `#table`, a data frame or an Ibis expression; `columns` are names to expect."""
    if isinstance(source, str) and source == "-":
        spooled = workspace.folder / "standard-input"
        with spooled.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        return _open_file(spooled, "standard input", workspace, columns, encoding)
    if isinstance(source, str) and re.match(r"[a-z][a-z0-9+]*://", source):
        return _open_url(source, workspace)
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if not path.is_file():
            problem = "a folder, not a file" if path.is_dir() else "no such file"
            raise TableError(f"{path}: {problem}; CSV, TSV, Parquet and Excel files are read")
        try:
            return replace(_open_file(path, str(path), workspace, columns, encoding), path=path)
        except EOFError:
            raise TableError(f"{path}: the packed file is cut off") from None
        except OSError as error:
            raise TableError(f"{path}: {error.strerror or error}") from error
    if type(source).__module__.startswith("ibis."):
        return Table(source, "the expression", workspace, steady=False)
    return _open_frame(source, workspace)


def check_names(names: Sequence[str], where: str) -> None:
    """Refuse columns without a name, two of one name (engines do not tell upper from lower case), and our own names."""
    seen: dict[str, str] = {}
    for number, name in enumerate(names, 1):
        if not name:
            raise TableError(f"{where}: column {number} has no name in the header")
        if "\n" in name or "\r" in name:
            raise TableError(f"{where}: column {number} has a line break in its name; rename it")
        if name.lower().startswith(PREFIX):
            raise TableError(f"{where}: the column {name!r} has a name that is used here; rename it")
        if (other := seen.get(name.lower())) is not None:
            how = "twice" if other == name else f"beside {other!r}, which differs only in case"
            raise TableError(f"{where}: the column {name!r} is there {how}")
        seen[name.lower()] = name


def _open_file(path: Path, name: str, workspace: Workspace, columns: Sequence[str], encoding: str | None) -> Table:
    with path.open("rb") as file:
        start = file.read(8)
    if not start:
        raise TableError(f"{name}: the file is empty; a header line and rows are needed")
    if start.startswith(b"\x1f\x8b"):
        unpacked = workspace.folder / "unpacked"
        with gzip.open(path) as packed, unpacked.open("wb") as file:
            shutil.copyfileobj(packed, file)
        return _open_file(unpacked, name, workspace, columns, encoding)
    if start.startswith(b"PAR1"):
        return _numbered(path, name, workspace)
    if start.startswith(b"PK\x03\x04"):
        return _open_excel(path, name, workspace)
    if start.startswith(b"\xd0\xcf\x11\xe0"):
        raise TableError(f"{name}: an old Excel file; save it as .xlsx or CSV")
    return _open_csv(path, name, workspace, columns, encoding)


def _open_csv(path: Path, name: str, workspace: Workspace, columns: Sequence[str], encoding: str | None) -> Table:
    notes = []
    if encoding is None:
        encoding = detect_encoding(path)
        if encoding == "cp1252":
            notes.append(f"{name}: not UTF-8, read as Windows-1252; --encoding NAME says otherwise")
    if encoding not in ("utf-8", "utf-8-sig"):
        text = workspace.folder / "utf-8"
        transcode(path, text, encoding=encoding)
        path, encoding = text, "utf-8"
    try:
        dialect = detect_dialect(path, encoding=encoding, columns=columns)
    except TableError as error:
        raise TableError(str(error).replace(str(path), name)) from error
    check_names(dialect.header, name)
    parquet = workspace.folder / "table.parquet"
    _csv_to_parquet(path, parquet, dialect, name, workspace)
    return _numbered(parquet, name, workspace, separator=dialect.separator, notes=tuple(notes))


def _csv_to_parquet(path: Path, parquet: Path, dialect: Dialect, name: str, workspace: Workspace) -> None:
    import duckdb

    columns = ", ".join(f"{sql_text(column)}: 'VARCHAR'" for column in dialect.header)
    reader = (
        f"read_csv({sql_path(path, workspace)}, columns = {{{columns}}}, header = true, auto_detect = false, "
        f"skip = {dialect.blank_lines}, "
        f"delim = {sql_text(dialect.separator)}, quote = {sql_text(dialect.quote)}, escape = {sql_text(dialect.quote)})"
    )
    try:
        workspace.duckdb.raw_sql(f"COPY (FROM {reader}) TO {sql_text(str(parquet))} (FORMAT parquet)")
    except duckdb.Error as error:
        raise TableError(f"{name}: {_csv_problem(str(error))}") from None


def _csv_problem(message: str) -> str:
    """Say what is wrong with a CSV file, without the line that DuckDB quotes."""
    line = re.search(r"CSV Error on Line: (\d+)", message)
    where = f"line {line[1]}" if line else "the file"
    if counts := re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message):
        return f"{where} has {counts[2]} fields, but the header has {counts[1]}"
    if "Maximum line size" in message:
        return f"{where} is longer than 2 MB"
    if "unterminated quote" in message:
        return f"{where} has a quote that is not closed"
    if "No space left" in message or "File too large" in message:
        return "no space left for temporary files (TMPDIR names another folder)"
    return f"{where} cannot be read as CSV"


def _open_excel(path: Path, name: str, workspace: Workspace) -> Table:
    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    parquet = workspace.folder / "table.parquet"
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
    return _numbered(parquet, name, workspace, notes=notes)


def _sheet_to_parquet(sheet: Any, parquet: Path, name: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sheet.reset_dimensions()  # what a file says of its own size may be wrong
    rows = (row for row in sheet.iter_rows(values_only=True) if any(cell is not None for cell in row))
    header = [_cell_text(cell) or "" for cell in next(rows, ())]
    while header and not header[-1]:
        header.pop()
    if not header:
        raise TableError(f"{name}: the first sheet is empty; a header row and rows are needed")
    check_names(header, name)
    schema = pa.schema([(column, pa.string()) for column in header])
    with pq.ParquetWriter(parquet, schema) as writer:
        for chunk in _chunks(rows, 10_000):
            texts = [[_cell_text(row[i]) if i < len(row) else None for row in chunk] for i in range(len(header))]
            writer.write_table(pa.table(texts, schema=schema))


def _chunks(rows: Iterator[Any], size: int) -> Iterator[list[Any]]:
    from itertools import islice

    while chunk := list(islice(rows, size)):
        yield chunk


def _cell_text(cell: object) -> str | None:
    """Write a cell of a sheet as Excel's CSV export would, dates in ISO form."""
    if cell is None:
        return None
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, datetime) and cell.time() == time():
        return cell.date().isoformat()
    if isinstance(cell, date | datetime):
        return cell.isoformat(*(" ",) if isinstance(cell, datetime) else ())
    return str(cell)


def _numbered(parquet: Path, name: str, workspace: Workspace, **facts: Any) -> Table:
    """Open a Parquet file with a number for each row."""
    import duckdb

    connection = workspace.duckdb
    source = f"read_parquet({sql_path(parquet, workspace)})"
    try:
        columns = [row[0] for row in connection.con.execute(f"DESCRIBE FROM {source}").fetchall()]
        check_names(columns, name)
        if "file_row_number" in map(str.lower, columns):
            raise TableError(f"{name}: the column 'file_row_number' has a name that is used here; rename it")
        connection.raw_sql(f"CREATE TEMP VIEW unblur_table AS SELECT *, file_row_number AS {ROW} FROM {source}")
        return Table(connection.table("unblur_table"), name, workspace, numbered=True, **facts)
    except duckdb.Error:
        raise TableError(f"{name}: not a Parquet file that can be read") from None


def _open_frame(source: Any, workspace: Workspace) -> Table:
    import pyarrow as pa

    name = "the table"
    try:
        if type(source).__module__.startswith("pandas"):
            check_names([str(column) for column in source.columns], name)
            named = any(name is not None for name in source.index.names)
            frame = pa.Table.from_pandas(source, preserve_index=named)
        else:
            frame = pa.table(source)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        mixed = next((column for column in source.columns if not _one_type(source[column])), "")
        raise TableError(f"{name}: the column {str(mixed)!r} mixes types; give it one type") from None
    except (TypeError, ValueError) as error:
        accepted = "a path, a URL, a pandas or polars data frame, an Arrow table or an Ibis expression"
        raise TableError(f"a {type(source).__name__} is no table; accepted are {accepted}") from error
    check_names(frame.column_names, name)
    numbers = pa.array(range(frame.num_rows), type=pa.int64())
    workspace.duckdb.con.register("unblur_table", frame.append_column(ROW, numbers))
    return Table(workspace.duckdb.table("unblur_table"), name, workspace, numbered=True)


def _one_type(column: Any) -> bool:
    import pyarrow as pa

    try:
        pa.array(column)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return False
    return True


def _open_url(url: str, workspace: Workspace) -> Table:
    address, _, table = url.partition("#")
    scheme = address.partition("://")[0]
    name = f"{scheme}://…#{table}"  # an address may hold a password
    if not table:
        raise TableError(f"{scheme}://…: name the table after a #, as in {scheme}://…#patients")
    if scheme == "duckdb" and not Path(address.partition("://")[2]).is_file():
        raise TableError(f"{name}: no such file")
    try:
        backend = workspace.connect(address)
        if scheme == "pyspark" and table.startswith("parquet:"):
            files = table.removeprefix("parquet:")
            return Table(backend.read_parquet(files), name, workspace, path=Path(files), steady=False)
        schema, _, relation = table.rpartition(".")
        rows = backend.table(relation, database=schema or None)
        path = Path(address.partition("://")[2]) if scheme == "duckdb" else None
        return Table(rows, name, workspace, path=path, steady=scheme != "pyspark")
    except TableError:
        raise
    except ImportError as error:
        extra = scheme.replace("postgresql", "postgres")
        if extra not in ("postgres", "pyspark"):
            raise TableError(f"{name}: reading {scheme}:// needs: pip install 'ibis-framework[{scheme}]'") from error
        raise MissingExtraError(f"reading {scheme}://", extra) from error
    except Exception as error:
        if type(error).__name__ == "TableNotFound":
            raise TableError(f"{name}: there is no such table") from error
        reason = {
            "OperationalError": "the server cannot be reached, or refuses this user",
            "IOException": "not a DuckDB file, or in use by another program",
        }.get(type(error).__name__, type(error).__name__)
        raise TableError(f"{name}: cannot be opened ({reason})") from None


def _spark(address: str) -> Any:
    """Attach to the running Spark session, or start one: `pyspark://MASTER?spark.option=value`."""
    import ibis
    from pyspark.sql import SparkSession

    parts = urlsplit(address)
    builder = SparkSession.builder
    if parts.netloc:
        builder = builder.master(unquote(parts.netloc))
    for key, value in parse_qsl(parts.query):
        builder = builder.config(key, value)
    return ibis.pyspark.connect(builder.getOrCreate())


def sql_text(text: str) -> str:
    """Quote a text for SQL."""
    return "'" + text.replace("'", "''") + "'"


def sql_name(name: str) -> str:
    """Quote the name of a column for SQL."""
    return '"' + name.replace('"', '""') + '"'


def sql_path(path: Path, workspace: Workspace) -> str:
    """Quote a path for DuckDB, which would take *, ? and [ as patterns: such a file gets a plain name."""
    if re.search(r"[*?\[]", str(path)):
        plain = workspace.folder / f"input-{len(list(workspace.folder.iterdir()))}"
        plain.symlink_to(path.resolve())
        path = plain
    return sql_text(str(path))
