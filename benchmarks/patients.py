"""A synthetic table of patients, the same for the same number of rows on every machine, made by DuckDB.

Every column is a function of the row number, so the number of threads does not matter. The four attributes are
bell-shaped (the mean of four uniform numbers); each gets eight leaves.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

CONFIG: dict[str, Any] = {
    "k": 5,
    "quasi_identifiers": [
        {"name": "weight", "interval": {"low": 30, "high": 190, "step": 0.1, "layers": 4}},
        {"name": "systolic", "interval": {"low": 60, "high": 220, "layers": 4}},
        {"name": "age", "interval": {"low": 0, "high": 120, "layers": 4}},
        {"name": "postcode_area", "interval": {"low": 0, "high": 80, "layers": 4}},
    ],
}

CELLS = "floor((weight - 30) / 20), floor((systolic - 60) / 20), floor(age / 15), floor(postcode_area / 10)"
"""The cells of `CONFIG` as a person would write them in SQL."""

FORMATS = ("csv", "parquet")


def make_table(folder: Path, rows: int, form: str) -> Path:
    """Write a table of so many rows, unless the folder has it."""
    path = folder / f"patients-{rows}.{form}"
    if not path.exists():
        unfinished = folder / f"unfinished-{path.name}"
        with duckdb.connect() as connection:
            connection.execute(f"COPY ({_select(rows)}) TO '{unfinished}' (FORMAT {form})")
        unfinished.rename(path)
    return path


def count_misplaced(path: Path) -> int:
    """Count the rows of a file that do not stand where the table has them; identifiers are row numbers."""
    with duckdb.connect() as connection:
        numbered = f"SELECT id, row_number() OVER () - 1 AS place FROM {_reader(path)}"
        found = connection.execute(f"SELECT count(*) FROM ({numbered}) WHERE id::BIGINT <> place").fetchone()
    assert found is not None
    return int(found[0])


def _reader(path: Path) -> str:
    return f"read_csv('{path}', header = true)" if path.suffix == ".csv" else f"read_parquet('{path}')"


def _select(rows: int) -> str:
    return f"""
        SELECT i AS id,
            round(30 + 160 * {_bell(1)}, 1) AS weight,
            floor(60 + 160 * {_bell(2)})::INTEGER AS systolic,
            floor(120 * {_bell(3)})::INTEGER AS age,
            floor(80 * {_bell(4)})::INTEGER AS postcode_area,
            'visit ' || hash(i, 99) % 100000 AS note
        FROM range({rows}) AS t(i)"""


def _bell(seed: int) -> str:
    """An SQL expression of a number from 0 to 1, most often near the middle."""
    uniform = (f"(hash(i, {4 * seed + j}) % 1000003)::DOUBLE / 1000003" for j in range(4))
    return f"(({' + '.join(uniform)}) / 4)"
