"""Results on disk: files that appear whole, together, or not at all."""

from __future__ import annotations

import contextlib
import glob
import os
import secrets
import shutil
import tomllib
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from unblur.engines import engine_of, no_space
from unblur.errors import OutputError
from unblur.tables import PREFIX
from unblur.workspace import Workspace, sql_name, sql_text

if TYPE_CHECKING:
    import ibis
    import pyarrow as pa

RECORDS = f"{PREFIX}_records"
"""The name of the column that counts records in a table of groups."""
FORMATS = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet"}


class Outputs:
    """Files written under temporary names beside their targets, and renamed together at the end.

    On any exception, a keyboard interrupt and a failing rename included, the targets are as they were before. A target
    that exists keeps its permissions, unless it is private: that only its owner may read. A link keeps pointing where
    it points.
    """

    def __init__(self) -> None:
        self._pending: dict[Path, Path] = {}
        self._scratch: list[Path] = []

    def __enter__(self) -> Outputs:
        return self

    def temporary(self, target: Path, *, private: bool = False) -> Path:
        """Return the name under which to write what becomes `target`; only its owner may read what is private."""
        target = target.resolve()
        path = target.with_name(f".unblur-{secrets.token_hex(8)}.part")
        self._pending[target] = path
        mode = 0o600 if private else target.stat().st_mode & 0o777 if target.exists() else None
        if mode is not None:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
            path.chmod(mode)
        return path

    def scratch(self, target: Path) -> Path:
        """Return the name for a folder beside `target`, which is gone in the end."""
        self._scratch.append(target.resolve().with_name(f".unblur-{secrets.token_hex(8)}.scratch"))
        return self._scratch[-1]

    def write_text(self, target: Path, text: str, *, private: bool = False) -> None:
        """Write a text file."""
        self.write_bytes(target, text.encode(), private=private)

    def write_bytes(self, target: Path, content: bytes, *, private: bool = False) -> None:
        """Write a file."""
        try:
            self.temporary(target, private=private).write_bytes(content)
        except OSError as error:
            raise OutputError(f"{target}: {error.strerror or error}") from error

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        try:
            if kind is None:
                self._rename()
        finally:
            for path in self._pending.values():
                with contextlib.suppress(OSError):
                    path.unlink()
            for folder in self._scratch:
                shutil.rmtree(folder, ignore_errors=True)

    def _rename(self) -> None:
        kept: dict[Path, Path] = {}
        moved: list[Path] = []
        try:
            for target, path in self._pending.items():
                if target.exists():
                    kept[target] = path.with_suffix(".old")
                    os.link(target, kept[target])
                os.replace(path, target)
                moved.append(target)
        except BaseException as error:
            for target in moved:
                if target in kept:
                    os.replace(kept[target], target)
                else:
                    target.unlink()
            if isinstance(error, OSError):
                raise OutputError(f"{error.filename2 or error.filename}: {error.strerror}") from error
            raise
        finally:
            for old in kept.values():
                old.unlink(missing_ok=True)


def check_target(target: Path, inputs: Iterable[Path | None]) -> None:
    """Refuse, before any work, a path that cannot be written or that is one of the inputs."""
    for path in inputs:
        if path is not None and target.exists() and path.exists() and target.samefile(path):
            raise OutputError(f"{target}: this is an input; choose another path for the output")
        if path is not None and path.is_dir() and path.resolve() in target.resolve().parents:
            raise OutputError(f"{target}: all that lies in the folder {path} is input; choose another path")
        if path is not None and not path.exists() and glob.has_magic(str(path)) and _matches(target, path):
            raise OutputError(f"{target}: all that matches {path} is input; choose another path")
    if target.is_dir():
        raise OutputError(f"{target}: a folder, not a file")
    if target.exists() and not target.is_file():
        raise OutputError(f"{target}: not a file that can be replaced")
    folder = target.resolve().parent
    if not folder.is_dir():
        raise OutputError(f"{target}: the folder {target.parent} does not exist")
    if not os.access(folder, os.W_OK):
        raise OutputError(f"{target}: the folder {target.parent} cannot be written to")


def _matches(target: Path, pattern: Path) -> bool:
    """Whether a file, if it were there, would be found by a pattern."""
    steps = pattern.absolute().parts
    plain = next(n for n, step in enumerate(steps) if glob.has_magic(step))
    return _fits(target.resolve().parts, [*Path(*steps[:plain]).resolve().parts, *steps[plain:]])


def _fits(steps: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a path fits a pattern, step by step; `**` stands for any number of steps."""
    if not pattern:
        return not steps
    if pattern[0] == "**":
        return any(_fits(steps[n:], pattern[1:]) for n in range(len(steps) + 1))
    same = steps and (fnmatchcase(steps[0], pattern[0]) if glob.has_magic(pattern[0]) else steps[0] == pattern[0])
    return bool(same) and _fits(steps[1:], pattern[1:])


def check_rows_target(target: Path, inputs: Iterable[Path | None], *, trace: Path | None = None) -> None:
    """Refuse, before any work, paths for a release, its config and its trace that would destroy something."""
    if target.suffix.lower() not in FORMATS:
        raise OutputError(f"{target}: rows are written as {', '.join(FORMATS)}; choose one of these endings")
    check_beside(target.with_suffix(".toml"), inputs, target=target, trace=trace)


def check_beside(
    config: Path, inputs: Iterable[Path | None], *, target: Path | None = None, trace: Path | None = None
) -> None:
    """Refuse paths for a config, and the release and trace beside it, that would destroy something."""
    inputs = list(inputs)
    targets = [path for path in (target, config, trace) if path is not None]
    if any(path.exists() and config.exists() and config.samefile(path) for path in inputs if path is not None):
        raise OutputError(f"{config}: the release's own config goes here, but this is an input; rename the output")
    for path in targets:
        check_target(path, inputs)
    if config.exists() and not _is_written_config(config):
        raise OutputError(f"{config}: would be overwritten, but was not written by unblur; choose another output path")
    if len({path.resolve() for path in targets}) < len(targets):
        raise OutputError(f"{trace}: the trace would overwrite another output; choose another path")


def _is_written_config(path: Path) -> bool:
    try:
        made = tomllib.loads(path.read_text(encoding="utf-8")).get("made", {})
        return str(made.get("by", "")).startswith("unblur ")
    except (OSError, ValueError, AttributeError):
        return False


def write_rows(rows: ibis.Table, target: Path, outputs: Outputs, workspace: Workspace, *, separator: str) -> Path:
    """Stream rows from their engine to a CSV or Parquet file; return the path under which it waits for its name."""
    import duckdb

    engine = engine_of(rows, workspace)
    parquet = FORMATS[target.suffix.lower()] == "parquet"
    csv = f"FORMAT csv, HEADER true, DELIMITER {sql_text(separator)}, QUOTE '\"', ESCAPE '\"'"
    options = f"{'FORMAT parquet' if parquet else csv}, USE_TMP_FILE false"  # the path is a temporary one already
    path = outputs.temporary(target)
    connection, query = engine.stage(engine.exact(rows, typed=parquet), outputs.scratch(target))
    try:
        connection.execute(f"COPY ({query}) TO {sql_text(str(path))} ({options})")
    except (duckdb.IOException, OSError) as error:
        if not isinstance(error, OSError) and str(path) not in str(error):
            raise  # it is about a file that is read, or a temporary one
        reason = "no space left" if no_space(error) else "the file cannot be written"
        raise OutputError(f"{target}: {reason}") from error
    return path


def read_back(path: Path, target: Path, workspace: Workspace, *, separator: str) -> str:
    """Say to the workspace's DuckDB how to read a file just written as `target`, as text."""
    if FORMATS[target.suffix.lower()] == "parquet":
        return f"read_parquet({sql_text(str(path))})"
    dialect = f"header = true, all_varchar = true, delim = {sql_text(separator)}, quote = '\"'"
    return f"read_csv({sql_text(str(path))}, {dialect})"


def has_groups(rows: pa.Table | str, expected: pa.Table, workspace: Workspace) -> bool:
    """Whether rows, counted by their labels, are just the expected groups; rows may be so counted already."""
    import pyarrow as pa

    connection = workspace.duckdb.con
    connection.register("unblur_expected", expected)
    counted = "count(*)"
    if isinstance(rows, pa.Table):
        counted = f"sum({RECORDS})::BIGINT" if RECORDS in rows.column_names else counted
        connection.register("unblur_rows", rows)
        rows = "unblur_rows"
    labels = ", ".join(sql_name(name) for name in expected.column_names[:-1])
    found = f"SELECT {labels}, {counted} AS {RECORDS} FROM {rows} GROUP BY {labels}"
    wanted = f"SELECT {labels}, {RECORDS} FROM unblur_expected"
    differ = f"({found} EXCEPT ALL {wanted}) UNION ALL ({wanted} EXCEPT ALL {found})"
    return not connection.execute(f"{differ} LIMIT 1").fetchall()
