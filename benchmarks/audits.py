"""Audits of large releases: many classes, and many rows.

Many classes: bell-shaped records, eight leaves per attribute, two processes. Many rows: the release of a long table,
against plain DuckDB that reads it and groups it by its labels; then together with the raw table. Start-up and imports
are not counted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import unblur
from benchmarks.ledger import takes
from benchmarks.measuring import Measurement, measure, middle
from benchmarks.patients import CONFIG, make_table
from benchmarks.reporting import count_text, table, time_text, verdict

SEED = 1
SPREAD = 0.12
LEAVES = 8
KS = (5, 10)
SHAPES = ((20_000, 4), (160_000, 6), (1_200_000, 8))
"""Rows at k = 5 (twice as many at k = 10) and attributes, for about a thousand, ten and a hundred thousand classes."""
PROCESSES = 2
BAR = 300.0
"""Seconds that an audit of many classes may take."""
MOST_MEMORY = 4096.0
"""Megabytes that a process may take."""
MOST_TIMES = 1.5
"""How many times as long as reading a long release its audit may take."""
LONG = 10_000_000
COMMON = 100
"""Classes of so many records are cells of their own, and may have any number more."""
REPEATS = 3
PLAIN = {"scan": "group the labels", "whole": "read every column"}
"""The least that an audit has to do with the rows; and reading the release, with the columns that leaks may be in."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A release of many classes."""

    rows: int
    attributes: int
    k: int

    def make(self, folder: Path) -> Path:
        """Anonymize bell-shaped records into a Parquet file, unless the folder has it."""
        path = folder / f"audited-{self.rows}-{self.attributes}-{self.k}.parquet"
        if not path.exists():
            with unblur.anonymize(self.draw(), self.config()) as release:
                release.save(path)
        return path

    def draw(self) -> pa.Table:
        """Draw the records."""
        shares = np.random.default_rng(SEED).normal(0.5, SPREAD, (self.rows, self.attributes))
        sizes = np.array([LEAVES * (100 + 7 * i) for i in range(self.attributes)])
        values = np.clip((shares * sizes).astype(np.int64), 0, sizes - 1)
        return pa.table({f"q{i}": values[:, i] for i in range(self.attributes)})

    def config(self) -> dict[str, Any]:
        """Describe them; no two domains are alike."""
        return {
            "k": self.k,
            "quasi_identifiers": [
                {"name": f"q{i}", "interval": {"low": 0, "high": LEAVES * (100 + 7 * i), "layers": 4}}
                for i in range(self.attributes)
            ],
        }


def run(folder: Path, *, quick: bool) -> str:
    """Measure, and describe the results."""
    shapes = [
        Shape(rows * k // KS[0], attributes, k) for rows, attributes in SHAPES[: 1 if quick else None] for k in KS
    ]
    long = 100_000 if quick else LONG
    repeats = 1 if quick else REPEATS
    sections = [
        many_classes(folder, shapes),
        many_rows(folder, [long, 10 * long], repeats=repeats),
        with_raw_table(folder, long, repeats=repeats),
    ]
    return "\n\n".join(sections)


def many_classes(folder: Path, shapes: list[Shape]) -> str:
    """Audit releases of many classes, each in fresh processes."""
    lines = []
    for shape in shapes:
        path = shape.make(folder)
        classes = len(unblur.read_release(path, path.with_suffix(".toml")).classes)
        taken = measure("audit", path, path, threads=PROCESSES)
        lines.append(
            [
                count_text(shape.rows),
                str(shape.attributes),
                str(shape.k),
                count_text(classes),
                time_text(taken.seconds),
                time_text(taken.processor),
                f"{taken.peak:,.0f} MB",
                f"{time_text(BAR)}, {MOST_MEMORY / 1024:g} GB",
                verdict(max(taken.seconds / BAR, taken.peak / MOST_MEMORY), 1),
            ]
        )
    return table(["rows", "attributes", "k", "classes", "time", "processor", "memory", "bar", ""], lines)


def many_rows(folder: Path, sizes: list[int], *, repeats: int) -> str:
    """Audit long releases, and read them with plain DuckDB, in turn: the labels, grouped; and all rows."""
    lines = []
    for rows in sizes:
        path = make_long(folder, rows, of=sizes[0])
        audits = []
        plain: dict[str, list[Measurement]] = {"scan": [], "whole": []}
        for _ in range(repeats):
            audits.append(measure("audit", path, path, threads=1))
            for job, taken in plain.items():
                taken.append(measure(job, path, path, threads=PROCESSES))
        ours = middle(audits)
        for job, taken in plain.items():
            lines.append(_compared(rows, PLAIN[job], ours, middle(taken)))
    heads = ["rows", "plain DuckDB", "time", "processor", "audit", "processor", "ratio", "of processor", "memory"]
    return table([*heads, "bar", ""], lines)


def with_raw_table(folder: Path, rows: int, *, repeats: int) -> str:
    """Audit a long release with its raw table, matched by position, and put both side by side with plain DuckDB."""
    path, raw = make_long(folder, rows, of=rows), make_table(folder, rows, "parquet")
    ours, theirs = [], []
    for _ in range(repeats):
        ours.append(measure("truth", path, raw, threads=1))
        theirs.append(measure("positions", path, raw, threads=PROCESSES))
    one, other = middle(ours), middle(theirs)
    takes(f"audit --truth, {rows:,} rows", "DuckDB: positional join, group", one.seconds / other.seconds)
    heads = ["rows, with the raw table", "plain DuckDB", "memory", "audit --truth", "processor", "memory", "ratio"]
    told = [
        count_text(rows),
        time_text(other.seconds),
        f"{other.peak:,.0f} MB",
        time_text(one.seconds),
        time_text(one.processor),
        f"{one.peak:,.0f} MB",
        f"{one.seconds / other.seconds:.1f}",
    ]
    return table(heads, [told])


def make_long(folder: Path, rows: int, *, of: int) -> Path:
    """Anonymize a long table; a longer release has the rows of its common classes several times."""
    path, first = folder / f"long-{rows}.parquet", folder / f"long-{of}.parquet"
    if not first.exists():
        with unblur.anonymize(make_table(folder, of, "parquet"), CONFIG) as release:
            release.save(first)
    if rows > of and not path.exists():
        names = ", ".join(each["name"] for each in CONFIG["quasi_identifiers"])
        large = f"SELECT {names} FROM '{first}' GROUP BY ALL HAVING count(*) >= {COMMON}"
        more = [
            f"SELECT * REPLACE (id + {n * of} AS id) FROM '{first}' SEMI JOIN ({large}) USING ({names})"
            for n in range(1, rows // of)
        ]
        copies = " UNION ALL ".join([f"FROM '{first}'", *more])
        duckdb.execute(f"COPY ({copies}) TO '{path}'")
        described = first.with_suffix(".toml").read_text()
        path.with_suffix(".toml").write_text(re.sub(r"\[made\].*?(?=\[\[)", "", described, flags=re.DOTALL))
    return path


def _compared(rows: int, what: str, ours: Measurement, theirs: Measurement) -> list[str]:
    ratio = ours.seconds / theirs.seconds
    takes(f"audit, a release of {rows:,} rows", f"DuckDB: {what}", ratio, MOST_TIMES)
    return [
        count_text(rows),
        what,
        time_text(theirs.seconds),
        time_text(theirs.processor),
        time_text(ours.seconds),
        time_text(ours.processor),
        f"{ratio:.1f}",
        f"{ours.processor / theirs.processor:.1f}",
        f"{ours.peak:,.0f} MB",
        f"{MOST_TIMES:g} times",
        verdict(ratio, MOST_TIMES),
    ]
