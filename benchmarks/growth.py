"""How time grows: of the whole with the rows, of the recoding with the states, of recoding and audit with k."""

from __future__ import annotations

import os
from pathlib import Path

import unblur
from benchmarks.audits import Shape
from benchmarks.measuring import Measurement, measure, middle, seconds
from benchmarks.patients import make_table
from benchmarks.reporting import count_text, table, time_text
from benchmarks.states import Case, time_recoding
from unblur.counting.light import forget

SHAPES = ((3, 3), (4, 3), (4, 4), (4, 5), (4, 6), (5, 4), (6, 4), (7, 4), (8, 4))
"""Attributes and layers: from 27 to 65,536 states."""
KS = (2, 5, 10, 20, 50, 100)


def run(folder: Path, *, quick: bool) -> str:
    """Measure, and describe the results."""
    sizes = (1_000, 10_000, 100_000) if quick else (10_000, 100_000, 1_000_000, 10_000_000)
    shapes, records = (SHAPES[:3], 1_000) if quick else (SHAPES, 10_000)
    sections = [
        _with_rows(folder, sizes, repeats=1 if quick else 3),
        _with_states(shapes, records),
        _with_k(KS[:3] if quick else KS, 2 * records),
    ]
    return "\n\n".join(sections)


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


def _with_k(ks: tuple[int, ...], records: int) -> str:
    header = ["k", "records", "classes", "of more than one cell", "anonymize", "audit", "per such class"]
    return table(header, [_of_k(Shape(records, 4, k)) for k in ks])


def _of_k(shape: Shape) -> list[str]:
    """Anonymize and audit; what was counted before is forgotten."""
    drawn, config = shape.draw(), shape.config()

    def attack() -> unblur.Audit:
        forget()
        return unblur.audit(release)

    made = seconds(lambda: unblur.anonymize(drawn, config).close())
    with unblur.anonymize(drawn, config) as release:
        found, took = attack().classes, seconds(attack)
    wide = sum(not each.basic for each in found)
    each = time_text(took / wide) if wide else ""
    counts = [str(shape.k), *map(count_text, (shape.rows, len(found), wide))]
    return [*counts, time_text(made), time_text(took), each]
