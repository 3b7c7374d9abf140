"""Results on disk: files that appear whole, together, or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from unblur.engines import engine_of
from unblur.errors import OutputError
from unblur.sources import Workspace, sql_text

if TYPE_CHECKING:
    import ibis

FORMATS = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet"}


class Outputs:
    """Files written under temporary names beside their targets, and renamed together at the end.

    On any exception, a keyboard interrupt included, the temporary files are removed and the targets are as before.
    """

    def __init__(self) -> None:
        self._pending: dict[Path, Path] = {}

    def __enter__(self) -> Outputs:
        return self

    def temporary(self, target: Path) -> Path:
        """Return the name under which to write what becomes `target`."""
        path = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        self._pending[target] = path
        return path

    def write_text(self, target: Path, text: str) -> None:
        """Write a text file."""
        try:
            self.temporary(target).write_text(text, encoding="utf-8")
        except OSError as error:
            raise OutputError(f"{target}: {error.strerror or error}") from error

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        try:
            if kind is None:
                for target, path in self._pending.items():
                    os.replace(path, target)
        except OSError as error:
            raise OutputError(f"{error.filename2 or error.filename}: {error.strerror}") from error
        finally:
            for path in self._pending.values():
                with contextlib.suppress(OSError):
                    path.unlink()


def check_target(target: Path, inputs: Iterable[Path | None]) -> None:
    """Refuse, before any work, a path that cannot be written or that is one of the inputs."""
    for path in inputs:
        if path is not None and target.exists() and path.exists() and target.samefile(path):
            raise OutputError(f"{target}: this is an input; choose another path for the output")
    if target.is_dir():
        raise OutputError(f"{target}: a folder, not a file")
    if not target.parent.is_dir():
        raise OutputError(f"{target}: the folder {target.parent} does not exist")
    if not os.access(target.parent, os.W_OK):
        raise OutputError(f"{target}: the folder {target.parent} cannot be written to")


def check_format(target: Path) -> None:
    """Refuse a path whose ending names no format that rows are written in."""
    if target.suffix.lower() not in FORMATS:
        raise OutputError(f"{target}: rows are written as {', '.join(FORMATS)}; choose one of these endings")


def write_rows(rows: ibis.Table, target: Path, outputs: Outputs, workspace: Workspace, *, separator: str) -> int:
    """Stream rows from their engine to a CSV or Parquet file; return how many there were."""
    import duckdb

    engine = engine_of(rows)
    if FORMATS[target.suffix.lower()] == "parquet":
        options = "FORMAT parquet"
    else:
        options = f"FORMAT csv, HEADER true, DELIMITER {sql_text(separator)}, QUOTE '\"', ESCAPE '\"'"
    path = outputs.temporary(target)
    try:
        connection, query = engine.stage(engine.exact(rows), workspace)
        written = connection.execute(f"COPY ({query}) TO {sql_text(str(path))} ({options})").fetchone()
    except (duckdb.IOException, OSError) as error:
        full = any(text in str(error) for text in ("No space left", "File too large", "Disk quota"))
        raise OutputError(f"{target}: {'no space left' if full else 'the file cannot be written'}") from error
    assert written is not None
    return int(written[0])
