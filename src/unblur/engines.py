"""What differs between the engines that hold rows: DuckDB, PostgreSQL, Spark, and whatever else Ibis reaches.

The expressions are the same everywhere. Five things are not: reading a number from text without an error, bringing a
small table to the rows, fetching a small result, keeping types that Arrow cannot carry, and streaming a large result to
a DuckDB, which writes all files.
"""

from __future__ import annotations

import io
import json
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unblur.errors import TableError
from unblur.spark import mixed_column, mixed_types

if TYPE_CHECKING:
    import ibis
    import pyarrow as pa

    from unblur.workspace import Workspace

_BLANK = " \t\r\n"
_DIGITS = r"([0-9]{1,200}([.][0-9]{0,200})?|[.][0-9]{1,200})([eE][+-]?[0-9]{1,2})?"
NUMBER = f"^[{_BLANK}]*[+-]?{_DIGITS}[{_BLANK}]*$"
"""A regular expression for texts that every engine reads as the same finite number."""
_FOREIGN = ("duckdb", "_duckdb", "psycopg", "pyspark", "py4j", "pyarrow", "ibis")
"""The packages whose errors are an engine's, not ours."""


@contextmanager
def engine_errors(name: str, paths: Sequence[Path] = ()) -> Iterator[None]:
    """Turn errors of an engine, which may quote values, into one line that names the table and the kind of error.

    `paths` are the files behind the table: which of them is damaged is told, too.
    """
    try:
        yield
    except Exception as error:
        if "Query interrupted" in str(error):  # what DuckDB makes of a signal
            raise KeyboardInterrupt from None
        if not is_foreign(error):
            raise
        if no_space(error):
            raise TableError(f"{name}: no space left for temporary files (TMPDIR names another folder)") from None
        if type(error).__name__ == "OutOfMemoryException":
            raise TableError(f"{name}: the memory does not suffice; fewer threads need less") from None
        for path in paths:
            if f'"{path}"' in str(error):
                raise TableError(f"{path}: damaged; what it holds cannot be read to the end") from None
        if "PARQUET_COLUMN_DATA_TYPE_MISMATCH" in str(error):
            raise TableError(mixed_types(name, mixed_column(error))) from None
        reason = reason_of(error) or type(error).__name__
        raise TableError(f"{name}: the engine that has the rows failed ({reason})") from None


def is_foreign(error: Exception) -> bool:
    """Whether an error is an engine's; one that dies also breaks a connection."""
    return isinstance(error, ConnectionError) or type(error).__module__.partition(".")[0] in _FOREIGN


_REASONS = {
    "terminating connection": "the server ended the connection",
    "server closed the connection": "the connection to the server was lost",
    "connection is lost": "the connection to the server was lost",
    "connection is closed": "the connection to the server was lost",
    "no connection to the server": "the connection to the server was lost",
    "PATH_NOT_FOUND": "no such path",
    "UNABLE_TO_INFER_SCHEMA": "there are no Parquet files",
    "spark.driver.maxResultSize": "a result is larger than spark.driver.maxResultSize allows",
    "ExecutorLostFailure": "Spark lost its workers",
    "SparkContext was shut down": "Spark was stopped",
    "stopped SparkContext": "Spark was stopped",
    "JAVA_GATEWAY_EXITED": "Spark could not be started; it needs Java",
    "CANNOT_READ_FILE_FOOTER": "a Parquet file is damaged",
    "FAILED_READ_FILE": "a Parquet file is damaged, or has gone",
    "Py4JNetworkError": "Spark has gone",
    "ConnectionRefusedError": "Spark has gone",
    "Job aborted due to stage failure": "a task of Spark failed again and again",
    'database ".*" does not exist': "the server has no such database",
    'role ".*" (does not exist|is not permitted)|permission denied for database': "the server refuses this user",
    "password authentication failed|no password supplied|pg_hba.conf": "the server refuses this user or password",
    "too many (connections|clients)|remaining connection slots": "the server takes no more connections",
    "the database system is": "the server is starting or stopping",
    "Is the server running|failed to resolve host|connection timeout expired": "the server cannot be reached",
}
"""Patterns of what engines say, and what we say instead; the first that is found counts."""


def reason_of(error: Exception) -> str | None:
    """Say why an engine failed without quoting it: what it says may hold values, or a password."""
    said = f"{type(error).__name__}: {error}"
    return next((reason for sign, reason in _REASONS.items() if re.search(sign, said)), None)


def no_space(error: Exception) -> bool:
    """Whether a disk was full."""
    return any(
        text in str(error) for text in ("No space left", "File too large", "Disk quota", "max_temp_directory_size")
    )


class Engine:
    """An engine of which no more is known than that Ibis reaches it."""

    def __init__(self, backend: Any, workspace: Workspace) -> None:
        self.backend, self.workspace = backend, workspace

    def number(self, column: Any) -> Any:
        """Read a column of numbers, or of text, as floating-point numbers: NULL where it holds none, or NaN."""
        import ibis

        kind = column.type()
        if kind.is_string():
            number = self._parse(column)
        elif kind.is_float32() or kind.is_float16():
            # Their 0.7 is another number in double precision: take what is written.
            number = column.cast("string").cast("float64")
        else:
            number = column.cast("float64")
        # Not left to comparisons: a bound from a file's statistics may leave NaN out.
        return number if kind.is_integer() else ibis.ifelse(number.isnan(), ibis.null("float64"), number)

    def _parse(self, text: Any) -> Any:
        import ibis

        return ibis.ifelse(text.re_search(NUMBER), text, ibis.null("string")).cast("float64")

    def push(self, columns: Mapping[str, Any]) -> ibis.Table:
        """Bring a small table to the rows."""
        import ibis

        return ibis.memtable(_plain(columns))

    def fetch(self, rows: ibis.Table) -> pa.Table:
        """Bring a small result to Python."""
        return self.backend.to_pyarrow(rows)

    def batches(self, rows: ibis.Table, size: int) -> Iterator[pa.RecordBatch]:
        """Bring a long result to Python, some rows at a time."""
        yield from self.backend.to_pyarrow_batches(rows, chunk_size=size)

    def exact(self, rows: ibis.Table, *, typed: bool) -> ibis.Table:
        """Turn columns that would not survive the way to a file into text; a typed file keeps what types it can."""
        return rows

    def stage(self, rows: ibis.Table, scratch: Path) -> tuple[Any, str]:
        """Make rows readable to a DuckDB connection, as a stream: return it, and the query that reads them.

        `scratch` is the name of a folder that may be made for this, and is removed afterwards.
        """
        connection = self.workspace.duckdb.con
        connection.register("unblur_stream", self.backend.to_pyarrow_batches(rows, chunk_size=10_000))
        return connection, "FROM unblur_stream"


class DuckDBEngine(Engine):
    """The embedded engine: everything stays where it is."""

    def _parse(self, text: Any) -> Any:
        import ibis

        # Much faster than the regular expression; only DuckDB reads 1_000 as a number.
        return ibis.ifelse(text.contains("_"), ibis.null("string"), text).try_cast("float64")

    def push(self, columns: Mapping[str, Any]) -> ibis.Table:
        import pyarrow as pa

        name, table, connection = _new_name(), pa.table(dict(columns)), self.backend.con
        connection.register(f"{name}_text", table)
        # As an ENUM a label is a small integer: joins and sorts move it faster than text.
        kinds = {field.name: _enum(table[field.name]) for field in table.schema if pa.types.is_dictionary(field.type)}
        casts = ", ".join(f'"{column}"::{kind} AS "{column}"' for column, kind in kinds.items() if kind)
        chosen = f"* REPLACE ({casts})" if casts else "*"
        connection.execute(f"CREATE TEMP TABLE {name} AS SELECT {chosen} FROM {name}_text")
        connection.unregister(f"{name}_text")
        self.workspace.defer(connection.execute, f"DROP TABLE IF EXISTS {name}")
        made: ibis.Table = self.backend.table(name)
        return made

    def fetch_ranges(self, rows: ibis.Table, number: str, ranges: Sequence[tuple[int, int]]) -> pa.Table:
        """Bring those rows to Python whose number is in one of some ranges; only there a file is read."""
        query = self.backend.compile(rows)
        parts = [f"(FROM ({query}) WHERE {number} >= {first} AND {number} < {end})" for first, end in ranges]
        return self.backend.con.execute(" UNION ALL ".join(parts)).to_arrow_table()

    def named(self, rows: ibis.Table) -> ibis.Table:
        """Give rows a name, so that what is built upon them is translated without them."""
        name = _new_name()
        self.backend.con.execute(f"CREATE TEMP VIEW {name} AS {self.backend.compile(rows)}")
        self.workspace.defer(self.backend.con.execute, f"DROP VIEW IF EXISTS {name}")
        made: ibis.Table = self.backend.table(name)
        return made

    def plan(self, rows: ibis.Table) -> dict[str, Any]:
        """Say how the rows would be found: the last step, with those before it as its children."""
        found = self.backend.con.execute(f"EXPLAIN (FORMAT json) {self.backend.compile(rows)}").fetchall()
        last: dict[str, Any] = json.loads(found[0][1])[0]
        return last

    def expected_groups(self, rows: ibis.Table) -> int:
        """How many groups DuckDB expects, which it counts as work to be done; 0 if it makes none."""
        step = self.plan(rows)
        while "GROUP_BY" not in step["name"] and step["children"]:
            step = step["children"][0]
        return int(step["extra_info"].get("Estimated Cardinality", 0)) if "GROUP_BY" in step["name"] else 0

    def stage(self, rows: ibis.Table, scratch: Path) -> tuple[Any, str]:
        return self.backend.con, self.backend.compile(rows)


class PostgresEngine(Engine):
    """A PostgreSQL server; a user who may only read suffices."""

    def push(self, columns: Mapping[str, Any]) -> ibis.Table:
        import ibis
        import psycopg.errors

        table, name = _plain(columns), _new_name()
        schema = ibis.schema(table.schema)
        try:
            with self.backend.con.transaction():
                made: ibis.Table = self.backend.create_table(name, schema=schema, temp=True)
        except (psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction):
            return self._inline(table)
        with self.backend.con.cursor() as cursor:
            with cursor.copy(f"COPY pg_temp.{name} FROM STDIN (FORMAT csv)") as sink:
                for batch in table.to_batches(max_chunksize=20_000):
                    sink.write(csv_bytes(batch))
            cursor.execute(f"ANALYZE pg_temp.{name}")
        self.workspace.defer(self.backend.drop_table, name, force=True)
        return made

    def fetch(self, rows: ibis.Table) -> pa.Table:
        return super().fetch(self.exact(rows, typed=True))

    def _inline(self, table: pa.Table) -> ibis.Table:
        """Write a small table into the query itself, for users who may not make a temporary one."""
        import ibis
        from psycopg.sql import Literal

        kinds = {"int64": "int8", "double": "float8", "string": "text"}
        arrays = ", ".join(
            f"{Literal(table[field.name].to_pylist()).as_string(self.backend.con)}::{kinds[str(field.type)]}[]"
            for field in table.schema
        )
        names = ", ".join(f'"{name}"' for name in table.column_names)
        made: ibis.Table = self.backend.sql(
            f"SELECT * FROM unnest({arrays}) AS t({names})", schema=ibis.schema(table.schema)
        )
        return made

    def batches(self, rows: ibis.Table, size: int) -> Iterator[pa.RecordBatch]:
        """Bring a long result to Python, some rows at a time."""
        yield from self.backend.to_pyarrow_batches(rows, chunk_size=size)

    def exact(self, rows: ibis.Table, *, typed: bool) -> ibis.Table:
        return rows.mutate(
            **{name: rows[name].cast("string") for name, kind in rows.schema().items() if not _survives(kind, typed)}
        )


class SparkEngine(Engine):
    """A Spark session; Ibis would go through pandas, which confuses NULL and NaN, so Arrow is used directly."""

    def _parse(self, text: Any) -> Any:
        import ibis

        return ibis.ifelse(text.re_search(NUMBER), text, ibis.null("string")).try_cast("float64")

    def push(self, columns: Mapping[str, Any]) -> ibis.Table:
        name = _new_name()
        self.backend._session.createDataFrame(_plain(columns)).createOrReplaceTempView(name)
        self.workspace.defer(self.backend._session.catalog.dropTempView, name)
        table: ibis.Table = self.backend.table(name)
        return table

    def fetch(self, rows: ibis.Table) -> pa.Table:
        return self.frame(rows).toArrow()

    def stage(self, rows: ibis.Table, scratch: Path) -> tuple[Any, str]:
        """Let Spark write Parquet files, so that its driver never holds the rows; its workers must share the folder."""
        self.frame(rows).write.parquet(scratch.as_uri())
        if not any(scratch.glob("*.parquet")):
            raise TableError(
                f"the workers of Spark do not share the folder {scratch.parent}; write where they can, "
                "with pyspark://#parquet:PATH"
            )
        pattern = str(scratch / "*.parquet").replace("'", "''")
        return self.workspace.duckdb.con, f"FROM read_parquet('{pattern}')"

    def frame(self, rows: ibis.Table) -> Any:
        """Return rows as Spark's own data frame."""
        return self.backend.raw_sql(self.backend.compile(rows))


_ENGINES: Mapping[str, type[Engine]] = {
    "duckdb": DuckDBEngine,
    "postgres": PostgresEngine,
    "pyspark": SparkEngine,
}


def engine_of(rows: ibis.Table, workspace: Workspace) -> Engine:
    """Find the engine that holds some rows; what it leaves there goes when the workspace closes."""
    backend = rows.get_backend()
    return _ENGINES.get(backend.name, Engine)(backend, workspace)


def _survives(kind: Any, typed: bool) -> bool:
    """Whether a type of PostgreSQL comes through Arrow as it is: in a typed file as the type, else as the same text."""
    if typed and (kind.is_date() or kind.is_timestamp() or (kind.is_decimal() and kind.precision is not None)):
        return True
    return any((kind.is_integer(), kind.is_floating(), kind.is_boolean(), kind.is_string(), kind.is_binary()))


def _enum(column: pa.ChunkedArray) -> str | None:
    """Write the type of a dictionary column's labels for DuckDB; None if they are too many to write down."""
    labels = column.combine_chunks().dictionary.to_pylist()
    if len(labels) > 10_000:
        return None
    return "ENUM (" + ", ".join("'" + label.replace("'", "''") + "'" for label in labels) + ")"


def _new_name() -> str:
    return f"unblur_{secrets.token_hex(6)}"


def _plain(columns: Mapping[str, Any]) -> pa.Table:
    """Make a table without dictionary-encoded columns."""
    import pyarrow as pa

    table = pa.table(dict(columns))
    fields = [
        pa.field(field.name, field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def csv_bytes(batch: pa.RecordBatch) -> bytes:
    """Write rows as CSV that PostgreSQL reads: NULL is empty, an empty text is quoted."""
    from pyarrow.csv import WriteOptions, write_csv

    text = io.BytesIO()
    write_csv(batch, text, WriteOptions(include_header=False, quoting_style="all_valid"))
    return text.getvalue()
