"""Tables from anywhere: files, standard input, data frames, databases, clusters. Each becomes an Ibis expression."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from unblur.engines import reason_of
from unblur.errors import MissingExtraError, TableError
from unblur.files import open_file
from unblur.parts import Found, find_parts, open_parts
from unblur.spark import Layout, read_parquet, read_table
from unblur.tables import ROW, Table, check_names
from unblur.workspace import Workspace

_URL = re.compile(r"[a-z][a-z0-9+]*://")


def open_table(source: Any, workspace: Workspace, *, columns: Sequence[str] = (), encoding: str | None = None) -> Table:
    """Open a file, a folder or pattern of files, `-`, a URL with `#table`, a data frame or an Ibis expression.

    `columns` are names to expect.
    """
    if isinstance(source, str) and source == "-":
        spooled = workspace.folder / "standard-input"
        with spooled.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        return open_file(spooled, "standard input", workspace, columns, encoding)
    if isinstance(source, str) and _URL.match(source):
        return _open_url(source, workspace)
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        with _files_of(source) as parts:
            if parts is not None:
                return replace(open_parts(parts, str(path), workspace, columns, encoding), path=path)
            return replace(open_file(path, str(path), workspace, columns, encoding), path=path)
    if type(source).__module__.startswith("ibis.") and hasattr(source, "columns"):
        return Table(source, "the expression", workspace, steady=False)
    if type(source).__module__.startswith("pyspark.sql."):
        import ibis

        backend = ibis.pyspark.connect(source.sparkSession)
        return _open_layout(Layout(source), backend, "the table", workspace)
    return _open_frame(source, workspace)


def check_source(source: str) -> None:
    """Refuse, before any work, a path where there is nothing to read."""
    if source != "-" and not _URL.match(source):
        with _files_of(source):
            pass


@contextmanager
def _files_of(source: str | os.PathLike[str]) -> Iterator[Found | None]:
    """List the files of a folder or pattern, None for a single file; what goes wrong with them inside is told."""
    try:
        parts = find_parts(source)
        if parts is None and not Path(source).is_file():
            raise TableError(f"{Path(source)}: no such file; CSV, TSV, Parquet and Excel files are read")
        yield parts
    except OSError as error:
        raise TableError(f"{error.filename or source}: {error.strerror or error}") from error


def _open_frame(source: Any, workspace: Workspace) -> Table:
    import pyarrow as pa

    name = "the table"
    try:
        if type(source).__module__.startswith("pandas") and hasattr(source, "columns"):
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
        raise TableError(f"an object of type {type(source).__name__} is no table; accepted are {accepted}") from error
    check_names(frame.column_names, name)
    numbers = pa.array(range(frame.num_rows), type=pa.int64())
    workspace.duckdb.con.register("unblur_table", frame.append_column(ROW, numbers))
    return Table(workspace.duckdb.table("unblur_table"), name, workspace, numbered=True)


def _open_layout(layout: Layout, backend: Any, name: str, workspace: Workspace) -> Table:
    """Give a data frame of Spark a name in its session, as long as the workspace is open."""
    view = f"unblur_{secrets.token_hex(6)}"
    layout.frame.createOrReplaceTempView(view)
    workspace.defer(layout.frame.sparkSession.catalog.dropTempView, view)
    return Table(backend.table(view), name, workspace, steady=False, layout=layout)


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
            layout = read_parquet(backend._session, table.removeprefix("parquet:"), name)
            return replace(_open_layout(layout, backend, name, workspace), address=url)
        schema, _, relation = table.rpartition(".")
        rows = backend.table(relation, database=schema or None)
        path = Path(address.partition("://")[2]) if scheme == "duckdb" else None
        if scheme == "pyspark":
            return _open_layout(read_table(backend._session, table), backend, name, workspace)
        return Table(rows, name, workspace, path=path, address=url)
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
        known = {
            "OperationalError": "the server cannot be reached, or refuses the connection",
            "IOException": "not a DuckDB file, or in use by another program",
        }
        reason = reason_of(error) or known.get(type(error).__name__) or type(error).__name__
        raise TableError(f"{name}: cannot be opened ({reason})") from None
