"""The whole of unblur on long tables, against plain DuckDB doing the least that is needed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring import Measurement, measure, middle
from benchmarks.patients import FORMATS, count_misplaced, make_table
from benchmarks.reporting import count_text, table, time_text, verdict

MOST_TIMES = 4.0
"""The bar: how many times as long as plain DuckDB."""
MOST_MEMORY = 1536.0
"""The bar: megabytes at ten million rows."""
REPEATS = 3


@dataclass(frozen=True, slots=True)
class Result:
    """One table, by both ways."""

    form: str
    rows: int
    unblur: Measurement
    plain: Measurement
    misplaced: int
    """Rows of the release that do not stand where the table has them."""

    @property
    def ratio(self) -> float:
        return self.unblur.seconds / self.plain.seconds


def run(folder: Path, *, quick: bool) -> str:
    """Measure, and describe the results."""
    sizes = (10_000, 100_000) if quick else (1_000_000, 10_000_000)
    repeats = 1 if quick else REPEATS
    results = [compare(folder, rows, form, repeats=repeats) for form in FORMATS for rows in sizes]
    return render(results, judged=not quick)


def compare(folder: Path, rows: int, form: str, *, repeats: int) -> Result:
    """Measure both ways in turn, so that a disturbance hits both."""
    source, threads = make_table(folder, rows, form), os.cpu_count() or 1
    release, copy = folder / f"release.{form}", folder / f"copy.{form}"
    ours, theirs = [], []
    for _ in range(repeats):
        ours.append(measure("anonymize", source, release, threads=threads))
        theirs.append(measure("plain", source, copy, threads=threads))
    misplaced = count_misplaced(release)
    for path in (release, copy, release.with_suffix(".toml")):
        path.unlink()
    return Result(form, rows, middle(ours), middle(theirs), misplaced)


def render(results: list[Result], *, judged: bool) -> str:
    """Lay the results out as a table; the bars are for long tables only."""
    header = [
        "format",
        "rows",
        "unblur",
        "plain DuckDB",
        "ratio",
        "at most 4",
        "memory",
        "plain",
        "under 1.5 GB",
        "order",
    ]
    return table(header, [_row(each, judged) for each in results])


def _row(result: Result, judged: bool) -> list[str]:
    return [
        result.form,
        count_text(result.rows),
        time_text(result.unblur.seconds),
        time_text(result.plain.seconds),
        f"{result.ratio:.1f}",
        verdict(result.ratio, MOST_TIMES) if judged else "",
        f"{result.unblur.peak:,.0f} MB",
        f"{result.plain.peak:,.0f} MB",
        verdict(result.unblur.peak, MOST_MEMORY) if judged else "",
        "kept" if not result.misplaced else f"{result.misplaced:,} rows moved",
    ]
