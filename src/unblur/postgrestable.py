"""A release as a table of a PostgreSQL database: there at once and whole, in one transaction, or not at all."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unblur.engines import Engine, PostgresEngine, csv_bytes, reason_of
from unblur.errors import MissingExtraError, OutputError
from unblur.output import RECORDS
from unblur.workspace import sql_name

if TYPE_CHECKING:
    import ibis
    import pyarrow as pa

WAIT = "10s"
"""How long to wait for others to let go of the table that is to be replaced."""


class PostgresTable:
    """A table that is not there yet, or is to be replaced."""

    def __init__(self, address: str, table: str) -> None:
        self.name = f"{address.partition('://')[0]}://…#{table}"  # an address may hold a password
        self._address, self.table = address, table
        self._schema, _, self._relation = table.rpartition(".")

    def check(self, source: Any, *, overwrite: bool) -> None:
        """Refuse a table that is there, that is the input (`source`, if it is an address), or that may not be made."""
        if source == f"{self._address}#{self.table}":
            raise OutputError(f"{self.name}: this is an input; choose another table for the output")
        with self._transaction() as cursor:
            self._refuse_existing(cursor, overwrite)
            cursor.execute("SELECT has_schema_privilege(coalesce(%s, current_schema()), 'CREATE')", [self._in])
            if not cursor.fetchone()[0]:
                raise OutputError(f"{self.name}: this user may not make tables there")

    @contextmanager
    def staged(self, rows: ibis.Table, engine: Engine, labels: Sequence[str], scratch: Path) -> Iterator[pa.Table]:
        """Write rows under another name; they get the table's when the block ends well. Yield their groups."""
        waiting = self._named(f"unblur_{secrets.token_hex(6)}")
        with self._transaction() as cursor:
            if isinstance(engine, PostgresEngine):
                _copy_between(engine.backend, rows, cursor, waiting)
            else:
                _copy_from(engine, rows, scratch, cursor, waiting)
            yield _groups(cursor, waiting, labels)
            cursor.execute(f"SET LOCAL lock_timeout = '{WAIT}'")
            cursor.execute(f"DROP TABLE IF EXISTS {self._named(self._relation)}")
            cursor.execute(f"ALTER TABLE {waiting} RENAME TO {sql_name(self._relation)}")

    @property
    def _in(self) -> str | None:
        return self._schema or None

    def _named(self, relation: str) -> str:
        return f"{sql_name(self._schema)}.{sql_name(relation)}" if self._schema else sql_name(relation)

    def _refuse_existing(self, cursor: Any, overwrite: bool) -> None:
        cursor.execute("SELECT relkind FROM pg_class WHERE oid = to_regclass(%s)", [self._named(self._relation)])
        found = cursor.fetchone()
        if found and not overwrite:
            raise OutputError(f"{self.name}: it is there already; --overwrite replaces it")
        if found and found[0] not in ("r", b"r"):
            raise OutputError(f"{self.name}: not a plain table; it is not replaced")

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        try:
            import psycopg
        except ImportError as error:
            raise MissingExtraError(f"writing {self.name}", "postgres") from error
        try:
            with psycopg.connect(self._address) as connection, connection.cursor() as cursor:
                yield cursor
        except psycopg.Error as error:
            raise OutputError(f"{self.name}: {_problem(error)}; nothing was written") from None


def _problem(error: Exception) -> str:
    """Say what went wrong; what the server says may hold values, and what the driver says a password."""
    known = {
        "InvalidSchemaName": "there is no such schema",
        "InsufficientPrivilege": "this user may not do that",
        "LockNotAvailable": "the table is in use",
        "DuplicateTable": "somebody else made it meanwhile",
        "DependentObjectsStillExist": "views depend on the table that is there",
        "DiskFull": "no space left in the database",
        "UndefinedObject": "it has no such type as a column of the input",
        "OperationalError": "the server cannot be reached, refuses the connection, or has gone",
    }
    return reason_of(error) or known.get(type(error).__name__) or f"the database failed ({type(error).__name__})"


def _copy_between(source: Any, rows: ibis.Table, cursor: Any, table: str) -> None:
    """Copy rows from one server to another, or the same, as they are; every column keeps its type."""
    query = source.compile(rows)
    with source.con.cursor() as reading:
        reading.execute(f"SELECT * FROM ({query}) AS rows LIMIT 0")
        found = reading.pgresult
        kinds = [(found.ftype(i), found.fmod(i)) for i in range(found.nfields)]
        reading.execute("SELECT " + ", ".join(f"format_type({kind}, {modifier})" for kind, modifier in kinds))
        named = dict(zip(rows.columns, reading.fetchone(), strict=True))
        json = {name: kind for name, kind in rows.schema().items() if kind.is_json()}  # of which Ibis makes text
        _create(cursor, table, named | {name: "jsonb" if kind.binary else "json" for name, kind in json.items()})
        with (
            reading.copy(f"COPY ({query}) TO STDOUT") as stream,
            cursor.copy(f"COPY {table} FROM STDIN") as sink,
        ):
            for block in stream:
                sink.write(block)


def _copy_from(engine: Engine, rows: ibis.Table, scratch: Path, cursor: Any, table: str) -> None:
    """Copy rows of another engine, as text that PostgreSQL reads as each column's type."""
    _create(cursor, table, {name: _type(kind) for name, kind in rows.schema().items()})
    connection, query = engine.stage(engine.exact(rows, typed=True), scratch)
    texts = ", ".join(f"CAST({sql_name(name)} AS VARCHAR)" for name in rows.columns)
    with cursor.copy(f"COPY {table} FROM STDIN (FORMAT csv)") as sink:
        for batch in connection.execute(f"SELECT {texts} FROM ({query})").fetch_record_batch(20_000):
            sink.write(csv_bytes(batch))


def _create(cursor: Any, table: str, kinds: dict[str, str]) -> None:
    columns = ", ".join(f"{sql_name(name)} {kind}" for name, kind in kinds.items())
    cursor.execute(f"CREATE TABLE {table} ({columns})")


def _type(kind: Any) -> str:
    """Name the type of PostgreSQL that holds what an engine has; text for what has none."""
    if kind.is_decimal():
        return f"numeric({kind.precision}, {kind.scale})" if kind.precision else "numeric"
    if kind.is_timestamp():
        return "timestamptz" if kind.timezone else "timestamp"
    if kind.is_integer():
        return "numeric(20)" if kind.is_uint64() else "bigint"
    known = {"is_floating": "float8", "is_boolean": "boolean", "is_date": "date", "is_time": "time", "is_uuid": "uuid"}
    return next((name for test, name in known.items() if getattr(kind, test)()), "text")


def _groups(cursor: Any, table: str, labels: Sequence[str]) -> pa.Table:
    """Count the rows just written by their labels."""
    import pyarrow as pa

    names = ", ".join(map(sql_name, labels))
    found = cursor.execute(f"SELECT {names}, count(*) FROM {table} GROUP BY {names}").fetchall()
    columns = list(zip(*found, strict=True)) or [()] * (len(labels) + 1)
    return pa.table(dict(zip([*labels, RECORDS], columns, strict=True)))
