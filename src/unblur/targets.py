"""Where a release goes: a file, a table of a PostgreSQL database, or a folder that Spark writes.

Beside it lies its config: next to a file or folder on this machine, in the working folder for all else.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from unblur.engines import SparkEngine, engine_errors
from unblur.errors import OutputError
from unblur.output import Outputs, check_beside, check_rows_target, read_back, write_rows
from unblur.postgrestable import PostgresTable
from unblur.spark import Layout
from unblur.sparkfolder import SparkFolder
from unblur.tables import Table

if TYPE_CHECKING:
    import ibis

_NOT_SPARKS = "only rows that Spark has go there; open the table with pyspark://, too"


@dataclass(frozen=True)
class Delivery:
    """Rows to be written, and what is known of them."""

    rows: ibis.Table
    table: Table
    """The table they were made from."""
    labels: Sequence[str]
    """The columns that hold labels."""
    order_by: str | None
    check: Callable[[Any], None]
    """Refuses rows as they were written, or their groups, if they do not make up the classes."""
    reading: Callable[[], AbstractContextManager[None]]
    """Around the work that reads all rows."""


class Target(Protocol):
    """A place for a release."""

    name: str
    """For messages."""
    config: Path
    """Where its config goes."""

    def check(self, inputs: Iterable[Path | None], *, trace: Path | None, overwrite: bool, source: Any) -> None:
        """Refuse, before any work, what cannot be written or would destroy something; `source` is the table given."""

    def staged(self, delivery: Delivery, outputs: Outputs) -> Any:
        """Write the rows in a `with` block; when it ends well, they are there for all to see."""


def open_target(path: str | os.PathLike[str], *, source: str | None = None) -> Target:
    """Find out what is meant by a path or URL; a `source` whose rows cannot go there is refused before Spark starts."""
    if not isinstance(path, str) or not re.match(r"[a-z][a-z0-9+]*://", path):
        return FileTarget(Path(path))
    address, _, table = path.partition("#")
    scheme = address.partition("://")[0]
    if scheme in ("postgres", "postgresql") and table:
        return DatabaseTarget(address, table)
    if scheme == "pyspark" and table.startswith("parquet:"):
        if source is not None and not source.startswith("pyspark://"):
            raise OutputError(f"pyspark://…#{table}: {_NOT_SPARKS}")
        return SparkTarget(address, table.removeprefix("parquet:"))
    accepted = "a path, postgres://USER@HOST/DB#table, or pyspark://#parquet:PATH"
    raise OutputError(f"{scheme}://…: a release cannot go there; accepted are {accepted}")


class FileTarget:
    """A CSV or Parquet file."""

    def __init__(self, path: Path) -> None:
        self.path, self.name, self.config = path, str(path), path.with_suffix(".toml")

    def check(self, inputs: Iterable[Path | None], *, trace: Path | None, overwrite: bool, source: Any) -> None:
        check_rows_target(self.path, inputs, trace=trace)

    @contextmanager
    def staged(self, delivery: Delivery, outputs: Outputs) -> Iterator[None]:
        table = delivery.table
        separator = "\t" if self.path.suffix.lower() == ".tsv" else table.separator or ";"
        with delivery.reading():
            written = write_rows(delivery.rows, self.path, outputs, table.workspace, separator=separator)
        delivery.check(read_back(written, self.path, table.workspace, separator=separator))
        yield


class DatabaseTarget:
    """A table of a PostgreSQL database."""

    def __init__(self, address: str, table: str) -> None:
        self._table = PostgresTable(address, table)
        self.name, self.config = self._table.name, Path(table.replace("/", "_") + ".toml")

    def check(self, inputs: Iterable[Path | None], *, trace: Path | None, overwrite: bool, source: Any) -> None:
        check_beside(self.config, inputs, trace=trace)
        self._table.check(source, overwrite=overwrite)

    @contextmanager
    def staged(self, delivery: Delivery, outputs: Outputs) -> Iterator[None]:
        table = delivery.table
        scratch = outputs.scratch(table.workspace.folder / "rows")
        with (
            engine_errors(table.name),
            self._table.staged(delivery.rows, table.engine, delivery.labels, scratch) as groups,
        ):
            delivery.check(groups)
            yield


class SparkTarget:
    """A folder of Parquet files."""

    def __init__(self, address: str, path: str) -> None:
        self._folder = SparkFolder(address, path)
        self.name = self._folder.name
        beside = Path(path.rstrip("/").rpartition("/")[2].removesuffix(".parquet") + ".toml")
        self.config = self._folder.local.parent / beside if self._folder.local else beside

    def check(self, inputs: Iterable[Path | None], *, trace: Path | None, overwrite: bool, source: Any) -> None:
        check_beside(self.config, inputs, trace=trace)
        given = source.partition("#parquet:")[2] if isinstance(source, str) else ""
        self._folder.check(given or None, overwrite=overwrite)

    @contextmanager
    def staged(self, delivery: Delivery, outputs: Outputs) -> Iterator[None]:
        engine = delivery.table.engine
        if not isinstance(engine, SparkEngine):
            raise OutputError(f"{self.name}: {_NOT_SPARKS}")
        with engine_errors(self.name):
            layout = delivery.table.layout or Layout(engine.frame(delivery.table.rows))
            frame = engine.frame(delivery.rows)
        with self._folder.staged(frame, layout, delivery.labels, delivery.order_by) as groups:
            delivery.check(groups)
            yield
