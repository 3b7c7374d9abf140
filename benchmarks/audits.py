"""The audit of a large release: a million rows, six attributes, about twenty thousand classes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import unblur
from benchmarks.measuring import seconds
from benchmarks.reporting import count_text, table, time_text, verdict

SEED = 1
SPREAD = 0.12
LEAVES = 8
ATTRIBUTES = 6
BAR = 20.0
"""Seconds that an audit may take on top of reading the release."""


def config() -> dict[str, Any]:
    """Six attributes of eight leaves each, no two domains alike."""
    return {
        "k": 5,
        "quasi_identifiers": [
            {"name": f"q{i}", "interval": {"low": 0, "high": LEAVES * (100 + 7 * i), "layers": 4}}
            for i in range(ATTRIBUTES)
        ],
    }


def make_release(folder: Path, rows: int) -> Path:
    """Anonymize bell-shaped records into a Parquet file."""
    shares = np.random.default_rng(SEED).normal(0.5, SPREAD, (rows, ATTRIBUTES))
    sizes = np.array([LEAVES * (100 + 7 * i) for i in range(ATTRIBUTES)])
    values = np.clip((shares * sizes).astype(np.int64), 0, sizes - 1)
    records = pa.table({f"q{i}": values[:, i] for i in range(ATTRIBUTES)})
    path = folder / f"audited-{rows}.parquet"
    with unblur.anonymize(records, config()) as release:
        release.save(path)
    return path


def scan(path: Path) -> None:
    """Count the rows per combination of labels in plain DuckDB."""
    columns = ", ".join(f"q{i}" for i in range(ATTRIBUTES))
    duckdb.sql(f"SELECT {columns}, count(*) FROM read_parquet('{path}') GROUP BY ALL").fetchall()


def run(folder: Path, *, quick: bool) -> str:
    """Measure, and describe the results."""
    rows = 20_000 if quick else 1_000_000
    path = make_release(folder, rows)
    plain = seconds(lambda: scan(path), repeats=3)
    reading = seconds(lambda: unblur.read_release(path, path.with_suffix(".toml")), repeats=1)
    release = unblur.read_release(path, path.with_suffix(".toml"))
    lines = []
    for jobs in (1, 2):
        taken = seconds(partial(unblur.audit, release, jobs=jobs), repeats=1)
        figures = [count_text(rows), count_text(len(release.classes)), str(jobs), time_text(plain), time_text(reading)]
        lines.append([*figures, time_text(taken), time_text(BAR), verdict(taken, BAR)])
    heads = ["rows", "classes", "processes", "plain DuckDB", "reading", "audit", "bar", ""]
    return table(heads, lines)
