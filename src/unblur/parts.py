"""Tables in several files: a folder, or a pattern such as `visits/*.parquet`.

The files are read one after the other, in the order of their names, as if they were one. They must have the same
columns, of the same types; whole numbers may be of different sizes.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unblur.errors import TableError
from unblur.files import Prepared, prepare, read_types
from unblur.tables import ROW, Part, Table
from unblur.words import count
from unblur.workspace import Workspace, sql_path

_WHOLE = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?")
_STARTS = "unblur_starts"
_TABLES = {".csv", ".tsv", ".parquet", ".pq", ".xlsx"}
_NO_TABLES = {".toml", ".json", ".html", ".md", ".ahs", ".deid", ".zip", ".pdf", ".png", ".svg"}
_READ = "CSV, TSV and Parquet files (.csv, .tsv, .parquet, .pq; also .gz) are read"


@dataclass(frozen=True, slots=True)
class Found:
    """The files of a folder or a pattern that are read."""

    files: tuple[Path, ...]
    notes: tuple[str, ...] = ()


def find_parts(source: str | os.PathLike[str]) -> Found | None:
    """List the files of a folder (all the way down) or a pattern by name; None if the source is neither.

    Names that begin with a point or an underscore are those of other programs' notes, such as `_SUCCESS`. Of a folder,
    only files with the ending of a table are read.
    """
    text = os.fspath(source)
    path = Path(text)
    if path.is_dir():
        found = [each for each in path.rglob("*") if not _is_note(each.relative_to(path))]
        return _tables_among(sorted(each for each in found if each.is_file()), text)
    if path.exists() or not glob.has_magic(text):
        return None
    found = [Path(each) for each in glob.glob(text, recursive=True) if not _is_note(Path(Path(each).name))]
    files = sorted(each for each in found if each.is_file())
    if not files:
        raise TableError(f"{text}: no file matches this pattern; {_READ}")
    if other := next((each for each in files if _ending(each) in _NO_TABLES), None):
        raise TableError(f"{other}: not a table, but it matches the pattern {text}; {_READ}")
    return Found(tuple(files))


def _tables_among(files: Sequence[Path], folder: str) -> Found:
    """Leave out what does not look like a table, and say so."""
    if not files:
        raise TableError(f"{folder}: no files in this folder; {_READ}")
    tables = tuple(each for each in files if _ending(each) in _TABLES)
    others = [each for each in files if _ending(each) not in _TABLES]
    if not others:
        return Found(tables)
    such = f"{count(len(others), 'file')} with another ending (such as {others[0].relative_to(folder)})"
    if not tables:
        raise TableError(f"{folder}: no tables in this folder, only {such}; {_READ}")
    return Found(tables, (f"{folder}: {such} left out; {_READ}",))


def _ending(path: Path) -> str:
    """The ending of a name, whether or not the file is packed."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _is_note(path: Path) -> bool:
    return any(step.startswith((".", "_")) for step in path.parts)


def open_parts(found: Found, name: str, workspace: Workspace, columns: Sequence[str], encoding: str | None) -> Table:
    """Open several files as one table; `name` is what messages call it."""
    empty = [path for path in found.files if not path.stat().st_size]
    files = {path: prepare(path, str(path), workspace, columns, encoding) for path in found.files if path not in empty}
    if not files:
        raise TableError(f"{name}: all files are empty; rows are needed")
    _check_kinds(files)
    counts = {path: _count_rows(file, path, workspace) for path, file in files.items()}
    types = {path: read_types(file.parquet, str(path), workspace) for path, file in files.items()}
    # What a file without rows says of its types counts for nothing.
    filled = {path: files[path] for path in files if counts[path]} or dict(list(files.items())[:1])
    _check_types({path: types[path] for path in filled})
    starts = [sum(list(counts.values())[:n]) for n in range(len(counts))]
    parts = tuple(Part(path, start) for path, start in zip(files, starts, strict=True) if path in filled)
    parquets = tuple(file.parquet for file in filled.values())
    _make_view(parquets, [part.start for part in parts], workspace)
    first = next(iter(filled.values()))
    notes = [*found.notes, *(f"{path}: the file is empty, and left out" for path in empty)]
    return Table(
        workspace.duckdb.table("unblur_table"),
        name,
        workspace,
        numbered=True,
        separator=first.separator,
        notes=(*notes, *(note for file in files.values() for note in file.notes)),
        parts=parts,
        parquets=parquets,
        stamps=tuple(stamp for file in files.values() for stamp in file.stamps),
    )


def _check_kinds(files: dict[Path, Prepared]) -> None:
    (first, one), *others = files.items()
    for path, file in others:
        if file.kind != one.kind:
            raise TableError(f"{path}: {file.kind}, but {first} is {one.kind}; the files of one table are of one kind")
    if one.kind == "Excel" and others:
        raise TableError(f"{first}: an Excel file; of several files, only CSV, TSV and Parquet are read as one table")


def _count_rows(file: Prepared, path: Path, workspace: Workspace) -> int:
    import duckdb

    query = f"SELECT num_rows FROM parquet_file_metadata({sql_path(file.parquet, workspace)})"
    try:
        found = workspace.duckdb.con.execute(query).fetchone()
    except duckdb.Error:
        raise TableError(f"{path}: not a Parquet file that can be read") from None
    assert found is not None
    return int(found[0])


def _check_types(types: dict[Path, dict[str, str]]) -> None:
    """Refuse files that do not have the same columns, or not of the same types."""
    (first, expected), *others = types.items()
    for path, found in others:
        for name in (*expected, *found):
            if name not in found or name not in expected:
                lacking, having = (path, first) if name not in found else (first, path)
                raise TableError(f"{lacking}: there is no column {name!r}, which {having} has")
            one, other = expected[name], found[name]
            if one != other and not (_WHOLE.fullmatch(one) and _WHOLE.fullmatch(other)):
                raise TableError(
                    f"{path}: column {name!r} holds {other}, but {one} in {first}; write it with one type in all files"
                )


def _make_view(parquets: Sequence[Path], starts: Sequence[int], workspace: Workspace) -> None:
    """Number the rows through all files: where the file starts, and the number within it."""
    connection = workspace.duckdb.con
    assert len(set(parquets)) == len(parquets), "every part has a file of its own"
    listed = ", ".join(sql_path(each, workspace) for each in parquets)
    connection.execute(f"CREATE TEMP TABLE {_STARTS} AS SELECT {list(starts)}::BIGINT[] AS {_STARTS}")
    number = f"{_STARTS}[file_index::BIGINT + 1] + file_row_number"
    # By name, for the order of columns may differ; hive_partitioning off, for a folder's name is no column.
    source = f"read_parquet([{listed}], union_by_name = true, hive_partitioning = false)"
    connection.execute(
        f"CREATE TEMP VIEW unblur_table AS SELECT * EXCLUDE ({_STARTS}), {number} AS {ROW} FROM {source}, {_STARTS}"
    )
