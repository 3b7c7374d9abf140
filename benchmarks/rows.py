"""The whole of unblur on long tables, against plain DuckDB doing the least that is needed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from benchmarks.jobs import OF_RELEASES
from benchmarks.ledger import takes
from benchmarks.measuring import Measurement, measure, middle
from benchmarks.patients import FORMATS, count_misplaced, make_table
from benchmarks.reporting import count_text, table, time_text, verdict

MOST_TIMES = {"csv": 4.0, "parquet": 3.0}
"""The bars: how many times as long as plain DuckDB."""
MOST_MEMORY = 1536.0
"""The bar: megabytes at ten million rows."""
MOST_GROWTH, MOST_MEMORY_GROWTH = 12.0, 1.3
"""The bars: time and memory, for ten times as many rows."""
REPEATS = 3
LONG = 100_000_000


@dataclass(frozen=True, slots=True)
class Result:
    """One table, by both ways; and its release, read again by both."""

    form: str
    rows: int
    unblur: Measurement
    plain: Measurement
    read: Measurement
    plain_read: Measurement
    misplaced: int
    """Rows of the release that do not stand where the table has them."""

    @property
    def ratio(self) -> float:
        return self.unblur.seconds / self.plain.seconds


def run(folder: Path, *, quick: bool, long: bool = False) -> str:
    """Measure, and describe the results."""
    sizes = (10_000, 100_000) if quick else (1_000_000, 10_000_000)
    repeats = 1 if quick else REPEATS
    results = [compare(folder, rows, form, repeats=repeats) for form in FORMATS for rows in sizes]
    if long:
        results.append(compare(folder, LONG, "parquet", repeats=1))
    for each in () if quick else results:
        what = f"anonymize, {each.rows:,} rows, {each.form}"
        takes(what, "DuckDB: read, group, write", each.ratio, MOST_TIMES[each.form])
    return "\n\n".join([render(results, judged=not quick), render_reading(results), *_growth(results[-2:])])


def compare(folder: Path, rows: int, form: str, *, repeats: int) -> Result:
    """Measure both ways in turn, so that a disturbance hits both."""
    source, threads = make_table(folder, rows, form), os.cpu_count() or 1
    release, copy = folder / f"release.{form}", folder / f"copy.{form}"
    found: dict[str, list[Measurement]] = {"anonymize": [], "plain": [], "read": [], "scan": []}
    for _ in range(repeats):
        for job, measured in found.items():
            files = (release, copy) if job in OF_RELEASES else (source, copy if job == "plain" else release)
            measured.append(measure(job, *files, threads=threads))
    misplaced = count_misplaced(release)
    for path in (release, copy, release.with_suffix(".toml")):
        path.unlink()
    ours, plain, read, plain_read = (middle(measured) for measured in found.values())
    return Result(form, rows, ours, plain, read, plain_read, misplaced)


def render(results: list[Result], *, judged: bool) -> str:
    """Lay the results out as a table; the bars are for long tables only."""
    header = [
        "format",
        "rows",
        "unblur",
        "plain DuckDB",
        "ratio",
        "of processor time",
        "at most",
        "",
        "memory",
        "plain",
        "under 1.5 GB",
        "temporary disk",
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
        f"{result.unblur.processor / result.plain.processor:.1f}",
        f"{MOST_TIMES[result.form]:g}",
        verdict(result.ratio, MOST_TIMES[result.form]) if judged else "",
        f"{result.unblur.peak:,.0f} MB",
        f"{result.plain.peak:,.0f} MB",
        verdict(result.unblur.peak, MOST_MEMORY) if judged else "",
        f"{result.unblur.disk:,.0f} MB",
        "kept" if not result.misplaced else f"{result.misplaced:,} rows moved",
    ]


def render_reading(results: list[Result]) -> str:
    """Lay out what it takes to read a release before it is attacked."""
    header = ["release", "rows", "read by unblur", "plain GROUP BY", "memory", "temporary disk"]
    rows = [
        [
            each.form,
            count_text(each.rows),
            time_text(each.read.seconds),
            time_text(each.plain_read.seconds),
            f"{each.read.peak:,.0f} MB",
            f"{each.read.disk:,.0f} MB",
        ]
        for each in results
    ]
    return table(header, rows)


def _growth(results: list[Result]) -> list[str]:
    """Say how time and memory grow from the second largest table to the largest, if that is ten times as long."""
    small, large = results
    if large.rows != LONG or small.rows * 10 != LONG:
        return []
    times, processor = (
        large.unblur.seconds / small.unblur.seconds,
        large.unblur.processor / small.unblur.processor,
    )
    memory = large.unblur.peak / small.unblur.peak
    takes("anonymize, ten times as many rows: time", f"{small.rows:,} rows", times, MOST_GROWTH)
    takes("anonymize, ten times as many rows: memory", f"{small.rows:,} rows", memory, MOST_MEMORY_GROWTH)
    return [
        f"From {small.rows:,} to {large.rows:,} rows: {times:.1f} times the time (at most {MOST_GROWTH:g}: "
        f"{verdict(times, MOST_GROWTH)}), {processor:.1f} times the processor time, {memory:.2f} times the memory "
        f"(at most {MOST_MEMORY_GROWTH:g}: {verdict(memory, MOST_MEMORY_GROWTH)})."
    ]
