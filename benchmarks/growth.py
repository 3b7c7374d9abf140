"""How time grows: of the whole with the rows, of the recoding with the states."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.measuring import Measurement, measure, middle
from benchmarks.patients import make_table
from benchmarks.reporting import count_text, table, time_text
from benchmarks.states import Case, time_recoding

SHAPES = ((3, 3), (4, 3), (4, 4), (5, 4), (6, 4), (7, 4), (8, 4))
"""Attributes and layers: 27, 81, 256, 1,024, 4,096, 16,384 and 65,536 states."""


def run(folder: Path, *, quick: bool) -> str:
    """Measure, and describe the results."""
    sizes = (1_000, 10_000, 100_000) if quick else (10_000, 100_000, 1_000_000, 10_000_000)
    shapes, records = (SHAPES[:3], 1_000) if quick else (SHAPES, 10_000)
    return f"{_with_rows(folder, sizes, repeats=1 if quick else 3)}\n\n{_with_states(shapes, records)}"


def _with_rows(folder: Path, sizes: tuple[int, ...], *, repeats: int) -> str:
    header = ["rows (Parquet)", "unblur", "million rows per second", "memory"]
    rows = []
    for size in sizes:
        took = _whole(folder, size, repeats)
        speed = size / took.seconds / 1e6
        rows.append([count_text(size), time_text(took.seconds), f"{speed:.2f}", f"{took.peak:,.0f} MB"])
    return table(header, rows)


def _whole(folder: Path, size: int, repeats: int) -> Measurement:
    source, release = make_table(folder, size, "parquet"), folder / "release.parquet"
    took = [measure("anonymize", source, release, threads=os.cpu_count() or 1) for _ in range(repeats)]
    release.unlink()
    release.with_suffix(".toml").unlink()
    return middle(took)


def _with_states(shapes: tuple[tuple[int, int], ...], records: int) -> str:
    header = ["attributes x layers", "records", "states", "one pass", "per state"]
    rows = []
    for attributes, layers in shapes:
        case = Case(records, attributes, layers)
        took, states = time_recoding(case), case.lattice.size
        each = f"{took / states * 1e6:,.0f} µs"
        rows.append([case.name, count_text(records), count_text(states), time_text(took), each])
    return table(header, rows)
