"""Plausible original tables on disk: each as likely as any other, and each gives the published release again."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Iterator
from pathlib import Path

from unblur.errors import ConfigError, OutputError
from unblur.joint.solving import JointResult
from unblur.joint.tables import PlausibleTable
from unblur.output import Outputs
from unblur.release import Release

MOST_TABLES = 100_000


def write_samples(result: JointResult, folder: Path, number: int, *, seed: int = 0) -> list[Path]:
    """Draw tables and write each to a CSV file of its own; all of them, or none."""
    if not 1 <= number <= MOST_TABLES:
        raise ConfigError(f"from 1 to {MOST_TABLES:,} tables can be drawn, not {number:,}")
    release = result.program.attack.release
    if len(result.program.subjects) < len(release.classes) + bool(release.outliers):
        raise ConfigError("no whole table can be drawn: some records were suppressed for missing values")
    digits = len(str(number))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: {error.strerror or error}") from error
    paths = []
    with Outputs() as outputs:
        for place, table in enumerate(result.sample(number, seed=seed), 1):
            path = folder / f"plausible-{place:0{digits}}.csv"
            outputs.write_text(path, to_csv(release, table, seed=seed + place))
            paths.append(path)
    return paths


def to_csv(release: Release, table: PlausibleTable, *, seed: int = 0) -> str:
    """Write a plausible table, its rows in random order."""
    rows = list(raw_rows(release, table))
    random.Random(seed).shuffle(rows)
    text = io.StringIO()
    writer = csv.writer(text, delimiter=";", lineterminator="\n")
    writer.writerow(each.name for each in release.config.quasi_identifiers)
    writer.writerows(rows)
    return text.getvalue()


def raw_rows(release: Release, table: PlausibleTable) -> Iterator[tuple[str, ...]]:
    """The records of a plausible table as raw values, class by class."""
    trees = [each.hierarchy for each in release.config.quasi_identifiers]
    for rows in table.rows:
        for row in rows:
            yield tuple(tree.label(0, rank) for tree, rank in zip(trees, row, strict=True))
