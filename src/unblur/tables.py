"""A table: rows in whatever engine has them, and how to speak of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unblur.engines import DuckDBEngine, Engine, engine_errors, engine_of
from unblur.errors import TableError
from unblur.spark import Layout
from unblur.watching import Progress, watched
from unblur.workspace import Workspace

if TYPE_CHECKING:
    import ibis
    import pyarrow as pa

PREFIX = "__unblur"
"""How the names of our helper columns begin."""
ROW = f"{PREFIX}_row"
"""The helper column that numbers the rows of a file or data frame, from 0."""


@dataclass(frozen=True, slots=True)
class FileStamp:
    """What changes when a file is replaced, written to or removed."""

    path: Path
    facts: tuple[int, ...]

    @classmethod
    def of(cls, path: Path) -> FileStamp:
        """Take it down."""
        try:
            found = path.stat()
        except FileNotFoundError:
            return cls(path, ())
        return cls(path, (found.st_ino, found.st_size, found.st_mtime_ns))


@dataclass(frozen=True, slots=True)
class Part:
    """One of several files that make up a table."""

    path: Path
    start: int
    """The number of its first row, from 0, among those of all parts."""


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
    """The file, folder or pattern it was read from."""
    parts: tuple[Part, ...] = ()
    """The files it was read from, if these are several."""
    parquets: tuple[Path, ...] = ()
    """The Parquet files that hold all its rows, in order, if such files do."""
    steady: bool = True
    """Whether two looks at it surely see the same rows."""
    stamps: tuple[FileStamp, ...] = ()
    """What tells whether files were replaced or written to meanwhile, of those that are read where they lie."""
    address: str | None = field(default=None, repr=False)
    """The URL it was opened by; it may hold a password."""
    layout: Layout | None = None
    """How the rows lie in the files of Spark, if they are there."""

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

    @property
    def paths(self) -> list[Path]:
        """The files, and the folder or pattern, that it was read from."""
        return [*([self.path] if self.path else []), *(part.path for part in self.parts)]

    def place(self, row: int) -> str:
        """Say where a row stands, by its number from 0: in one of several files, counted within that."""
        part = next((part for part in reversed(self.parts) if part.start <= row), None)
        return f"row {row + 1}" if part is None else f"{part.path.name} row {row - part.start + 1}"

    def fetch(self, rows: ibis.Table, progress: Progress | None = None) -> pa.Table:
        """Bring a small result to Python."""
        with self.reading(rows, progress):
            return self.engine.fetch(rows)

    def push(self, columns: Mapping[str, Any]) -> ibis.Table:
        """Bring a small table to the rows."""
        with engine_errors(self.name, self.paths):
            return self.engine.push(columns)

    @contextmanager
    def reading(self, rows: ibis.Table, progress: Progress | None = None) -> Iterator[None]:
        """Say in one line what went wrong while all rows were read, and how many have been read, if that is known."""
        try:
            with engine_errors(self.name, self.paths), self._watched(rows, progress):
                yield
        except TableError:
            self.check_unchanged()
            raise

    def _watched(self, rows: ibis.Table, progress: Progress | None) -> AbstractContextManager[None]:
        if progress is None or not self.numbered or not isinstance(self.engine, DuckDBEngine):
            return nullcontext()
        return watched(self.engine.backend.con, self.row_count, progress, groups=self.engine.expected_groups(rows))

    @cached_property
    def row_count(self) -> int:
        """The number of rows: files tell it without being read."""
        counted: int = self.engine.fetch(self.rows.aggregate(rows=self.rows.count()))["rows"][0].as_py()
        return counted

    def check_unchanged(self) -> None:
        """Refuse a file, if it is read where it lies, that is no longer the one that was opened."""
        for stamp in self.stamps:
            if stamp != FileStamp.of(stamp.path):
                where = self.name if len(self.stamps) == 1 else str(stamp.path)
                there = stamp.path.exists()
                what = "the rows changed while they were read" if there else "the file was removed while it was read"
                raise TableError(f"{where}: {what}; nothing was written")

    def require(self, name: str) -> None:
        """Refuse a column that is not there, with the likeliest of those that are."""
        if name not in self.columns:
            close = difflib.get_close_matches(name, self.columns, 1, 0.5)
            listed = ", ".join(self.columns[:12]) + (", …" if len(self.columns) > 12 else "")
            hint = f"; did you mean {close[0]!r}?" if close else f"; it has: {listed}"
            raise TableError(f"{self.name}: there is no column {name!r}{hint}")


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
