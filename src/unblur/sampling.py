"""Plausible original tables on disk: each as likely as any other, and each gives the published release again.

Where the mechanism can be run, every table that was drawn is anonymized again, and those that give another release are
drawn anew. So what the program leaves out (the third criterion among tied states, for one) is made good: of the tables
that do give the release, each is still as likely as any other.
"""

from __future__ import annotations

import csv
import io
import random
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from unblur.anonymizing import anonymize
from unblur.config import Mechanism
from unblur.errors import ConfigError, OutputError, UnblurWarning
from unblur.joint.solving import JointResult, Progress
from unblur.joint.tables import PlausibleTable
from unblur.output import Outputs
from unblur.release import Release

MOST_TABLES = 100_000
FEWEST_DRAWS = 100
LEAST_SHARE = 50
"""Of at least so many draws, at least one in so many must pass."""


Rows = list[tuple[str, ...]]
"""Records as raw values, one per quasi-identifier."""


@dataclass(frozen=True)
class Samples:
    """Tables that were drawn, and whether they were tried."""

    tables: tuple[Rows, ...]
    drawn: int
    """How many tables were drawn for them."""
    checked: bool
    """Whether each, anonymized again, gave this very release."""


def draw_samples(
    result: JointResult, mechanism: Mechanism, number: int, *, seed: int = 0, progress: Progress = lambda done, of: None
) -> Samples:
    """Draw tables, and try them if the mechanism can be run; where hardly any passes, take them untried."""
    if not 1 <= number <= MOST_TABLES:
        raise ConfigError(f"from 1 to {MOST_TABLES:,} tables can be drawn, not {number:,}")
    release, rng = result.program.attack.release, random.Random(seed)
    if len(result.program.subjects) < len(release.classes) + bool(release.outliers):
        raise ConfigError("no whole table can be drawn: some records were suppressed for missing values")

    def draw(many: int) -> Iterator[Rows]:
        for table in result.sample(many, seed=rng.getrandbits(62)):
            yield shuffled_rows(release, table, rng)

    if mechanism.name not in ("paper", "arx"):
        return Samples(tuple(draw(number)), number, checked=False)
    drawn, kept = 0, list[Rows]()
    while len(kept) < number and (drawn < FEWEST_DRAWS or len(kept) * LEAST_SHARE >= drawn):
        batch = min(number - len(kept), FEWEST_DRAWS)
        for rows in draw(batch):
            kept += [rows] if gives_again(release, rows, mechanism) else []
            progress(len(kept), number)
        drawn += batch
    if len(kept) < number:
        return Samples(tuple(draw(number)), drawn, checked=False)
    return Samples(tuple(kept), drawn, checked=True)


def gives_again(release: Release, rows: Rows, mechanism: Mechanism) -> bool:
    """Anonymize a table and compare what is published: labels, and how many records have them."""
    import pyarrow as pa

    names = [each.name for each in release.config.quasi_identifiers]
    table = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnblurWarning)
        with anonymize(table, replace(release.config, mechanism=mechanism)) as again:
            return (again.outliers, _published(again)) == (release.outliers, _published(release))


def _published(release: Release) -> Counter[tuple[str, ...]]:
    names = sorted(each.name for each in release.config.quasi_identifiers)
    order = [[each.name for each in release.config.quasi_identifiers].index(name) for name in names]
    return Counter({tuple(release.labels(each)[i] for i in order): each.size for each in release.classes})


def shuffled_rows(release: Release, table: PlausibleTable, rng: random.Random) -> Rows:
    """The records of a plausible table as raw values, in random order."""
    trees = [each.hierarchy for each in release.config.quasi_identifiers]
    rows = [
        tuple(tree.label(0, rank) for tree, rank in zip(trees, row, strict=True)) for rows in table.rows for row in rows
    ]
    rng.shuffle(rows)
    return rows


def check_folder(folder: Path) -> None:
    """Refuse, before any work, a folder that has tables of an earlier run: old and new ones would be mixed."""
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder}: not a folder; name one, which may be new")
    if next(folder.glob("plausible-*.csv"), None) is not None:
        raise OutputError(
            f"{folder}: it has tables of an earlier run (plausible-*.csv); name another or an empty folder"
        )


def write_samples(samples: Samples, release: Release, folder: Path) -> list[Path]:
    """Write each table to a CSV file of its own; all of them, or none."""
    digits = len(str(len(samples.tables)))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: {error.strerror or error}") from error
    paths = []
    with Outputs() as outputs:
        for place, rows in enumerate(samples.tables, 1):
            path = folder / f"plausible-{place:0{digits}}.csv"
            outputs.write_text(path, to_csv(release, rows), private=True)
            paths.append(path)
    return paths


def to_csv(release: Release, rows: Rows) -> str:
    """Write a plausible table."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=";", lineterminator="\n")
    writer.writerow(each.name for each in release.config.quasi_identifiers)
    writer.writerows(rows)
    return text.getvalue()
