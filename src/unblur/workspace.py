"""The workspace of one run: a private folder, an embedded DuckDB, connections; and how to write text into SQL."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

from unblur.errors import OutputError
from unblur.leftovers import claim, remove_leftovers
from unblur.spark import attach


class Workspace:
    """A private folder for temporary files, an embedded DuckDB that spills into it, and connections; gone after use."""

    def __init__(self, *, threads: int | None = None) -> None:
        self._resources = ExitStack()
        self.folder = _private_folder()
        self._numbers = count()
        self._resources.callback(claim(self.folder))
        self._resources.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.threads = min(threads or os.cpu_count() or 1, 128)
        self._memory = max(1024, 256 * self.threads)
        self.close = weakref.finalize(self, self._resources.close)

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def new_path(self, name: str) -> Path:
        """Name a file of the folder as none was named before, be that one still there or not."""
        return self.folder / f"{next(self._numbers)}-{name}"

    @cached_property
    def duckdb(self) -> Any:
        """An Ibis connection to an embedded DuckDB that holds at most about a gigabyte in memory."""
        import ibis

        connection = ibis.duckdb.connect(
            threads=self.threads,
            memory_limit=f"{self._memory}MB",
            temp_directory=str(self.folder / "spill"),
        )
        self._resources.callback(connection.disconnect)
        # The rows stand on the left of whatever is joined to them, and stay there, however few DuckDB thinks they are.
        connection.con.execute("SET disabled_optimizers = 'build_side_probe_side'")
        return connection

    @contextmanager
    def half_the_memory(self) -> Iterator[None]:
        """Let DuckDB hold half as much inside: what it may hold, it fills with rows that wait to be written."""
        self.duckdb.con.execute(f"SET memory_limit = '{self._memory // 2}MB'")
        try:
            yield
        finally:
            self.duckdb.con.execute(f"SET memory_limit = '{self._memory}MB'")

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
            return ibis.pyspark.connect(attach(address))  # the session may be the user's own: it is left running
        backend = ibis.connect(address, **({"read_only": True} if scheme == "duckdb" else {}))
        self._resources.callback(backend.disconnect)
        if backend.name == "postgres":
            self._resources.enter_context(backend.con.transaction(force_rollback=True))
            backend.raw_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").close()
        return backend


def _private_folder() -> Path:
    """Make a folder that only its owner can read, in the place that TMPDIR names and nowhere else."""
    chosen = os.environ.get("TMPDIR")
    if chosen and not (os.path.isdir(chosen) and os.access(chosen, os.W_OK)):
        raise OutputError(f"TMPDIR: {chosen} is not a folder that can be written to")
    try:
        folder = Path(tempfile.mkdtemp(prefix="unblur-", dir=chosen))
        remove_leftovers(folder.parent, "unblur-")
        return folder
    except OSError as error:
        raise OutputError(f"no folder for temporary files: {error.strerror or error}") from error


def sql_text(text: str) -> str:
    """Quote a text for SQL."""
    return "'" + text.replace("'", "''") + "'"


def sql_name(name: str) -> str:
    """Quote the name of a column for SQL."""
    return '"' + name.replace('"', '""') + '"'


def sql_path(path: Path, workspace: Workspace) -> str:
    """Quote a path for DuckDB, which would take *, ? and [ as patterns: such a file gets a plain name."""
    if re.search(r"[*?\[]", str(path)):
        plain = workspace.new_path("input")
        plain.symlink_to(path.resolve())
        path = plain
    return sql_text(str(path))
