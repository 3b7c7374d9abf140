"""The paper's protocol: which tables are drawn, anonymized and attacked, and what is written down of each.

A *trial* is one configuration of attributes, one sample of the data set, one k. The sample depends on the seed, the
configuration and its number, not on k or on the other trials, so that any part of the grid can be run alone.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unblur.attacking import Attack, Target, inference_of
from unblur.config import Config
from unblur.counting.placements import Cell
from unblur.counting.problem import Records
from unblur.datasets.catalogue import CONFIGURATIONS, Attribute, Configuration, DataSet, Original, data_set
from unblur.datasets.loading import load, read_own
from unblur.errors import ConfigError, ProgramError, TableError
from unblur.hierarchy import Ranks
from unblur.histogram import Histogram
from unblur.labels import parse_number
from unblur.recoding import Recoding, local_recoding
from unblur.refining import count, refine_by_enumeration
from unblur.release import Release
from unblur.risk import Finding, find, with_truth

if TYPE_CHECKING:
    import pyarrow as pa

SAMPLES, QUICK = 12, 2
"""How many samples of each configuration: as in the paper, and for a first look."""
SIZES: Mapping[Original, int] = {"hcup": 800, "clinic": 400}
"""Records in a sample. Of the 500 patients the paper draws 400 in one place and 500 in another."""
RECORDS: Records = "distinct"
"""What the paper assumes, and counts."""
FARTHEST = Decimal(10**9)
"""Larger numbers in a user's file are slips of the pen."""
KS = (3, 4, 5, 6, 7, 8)
LAST_K = 7
"""The tables end here, the figures go one further."""


@dataclass(frozen=True)
class Source:
    """Where the rows of one of the paper's data sets come from: a data set of ours, or a file of the user's."""

    described: DataSet
    path: Path | None = None
    sha256: str | None = None
    """Of the user's file."""

    @classmethod
    def own(cls, path: Path, described: DataSet) -> Source:
        """Take a file of the user's; the domains become as wide as its values need."""
        table = read_own(path, described)
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        widened = tuple(each.widened(*_extremes(path, table, each.name)) for each in described.attributes)
        return cls(replace(described, attributes=widened, rows=table.num_rows), path, digest)

    @classmethod
    def of(cls, name: str, value: str) -> tuple[Original, Source]:
        """Read NAME=VALUE: hcup or clinic, and a file or the name of a data set of ours."""
        if name not in SIZES:
            raise ConfigError(f"--data {name}={value}: the paper's data sets are {' and '.join(SIZES)}")
        original: Original = "hcup" if name == "hcup" else "clinic"
        try:
            described = data_set(value)
        except ConfigError:
            if not Path(value).exists():
                raise ConfigError(f"--data {name}={value}: neither a file nor a data set of ours") from None
            return original, cls.own(Path(value), DEFAULTS[original].described)
        if described.stands_for != original:
            raise ConfigError(f"--data {name}={value}: {value} stands for {described.stands_for}")
        return original, cls(described)

    @property
    def name(self) -> str:
        """What to call the data on a page."""
        return self.described.name if self.path is None else f"{self.described.stands_for} (your file)"

    @property
    def title(self) -> str:
        """The data in some words."""
        return self.described.title if self.path is None else f"your own file for {self.described.stands_for}"

    @property
    def synthetic(self) -> bool:
        """Whether all records are invented."""
        return self.path is None and self.described.synthetic

    def read(self) -> pa.Table:
        """Read or make the rows."""
        return load(self.described.name) if self.path is None else read_own(self.path, self.described)

    def ranks(self) -> dict[str, Ranks]:
        """Read the rows as ranks: per column, how many steps each value lies above the start of its domain."""
        table = self.read()
        return {each.name: _ranks(table[each.name].to_pylist(), each) for each in self.described.attributes}


def _ranks(values: Sequence[object], attribute: Attribute) -> Ranks:
    numbers = (Decimal(str(value)) for value in values)
    return np.array([int((number - attribute.low) // attribute.step) for number in numbers], dtype=np.int64)


def _extremes(path: Path, table: pa.Table, name: str) -> tuple[Decimal, Decimal]:
    """The least and the largest number of a column, which must all be numbers."""
    numbers = [parse_number(str(value)) if value is not None else None for value in table[name].to_pylist()]
    if None in numbers:
        row, many = numbers.index(None) + 1, numbers.count(None)
        rows = "1 such row" if many == 1 else f"{many:,} such rows"
        raise TableError(f"{path}: column {name!r}: row {row}: not a number ({rows}); remove it")
    known = [number for number in numbers if number is not None]
    if known and max(map(abs, known)) > FARTHEST:
        row = next(n for n, number in enumerate(known, 1) if abs(number) > FARTHEST)
        raise TableError(f"{path}: column {name!r}: row {row}: a number beyond {FARTHEST:.0e}")
    if not known:
        raise TableError(f"{path}: there are no rows, only a header")
    return min(known), max(known)


DEFAULTS: Mapping[Original, Source] = {"hcup": Source(data_set("hcup-like")), "clinic": Source(data_set("clinic-like"))}


@dataclass(frozen=True, order=True)
class Trial:
    """One table to be anonymized and attacked."""

    configuration: int
    """Its place in the paper's Table 1, from 0."""
    k: int
    sample: int
    """From 1."""

    @property
    def described(self) -> Configuration:
        """The attributes and layers."""
        return CONFIGURATIONS[self.configuration]

    @property
    def name(self) -> str:
        """A name for files.

        >>> Trial(2, 7, 3).name
        'hcup-4-k7-03'
        """
        return f"{self.described.data_set}-{len(self.described.attributes)}-k{self.k}-{self.sample:02}"


@dataclass(frozen=True)
class Protocol:
    """What is to be run."""

    samples: int = SAMPLES
    ks: tuple[int, ...] = KS
    seed: int = 1
    sizes: Mapping[Original, int] = field(default_factory=lambda: dict(SIZES))
    sources: Mapping[Original, Source] = field(default_factory=lambda: dict(DEFAULTS))

    @cached_property
    def trials(self) -> list[Trial]:
        """All trials, in the order of the paper's tables."""
        places = range(len(CONFIGURATIONS))
        return [Trial(place, k, n) for place in places for k in self.ks for n in range(1, self.samples + 1)]

    @cached_property
    def rows(self) -> dict[Original, dict[str, Ranks]]:
        """The rows that samples are drawn from."""
        rows = {original: source.ranks() for original, source in self.sources.items()}
        for original, columns in rows.items():
            number, size = len(next(iter(columns.values()))), self.sizes[original]
            if number < size:
                raise ConfigError(f"{self.sources[original].name}: {number:,} rows, too few for samples of {size:,}")
        return rows

    def chosen(self, trial: Trial) -> Ranks:
        """Draw the row numbers of a trial, without replacement, in their order."""
        original = trial.described.data_set
        rng = np.random.default_rng([self.seed, trial.configuration, trial.sample])
        number = len(next(iter(self.rows[original].values())))
        return np.sort(rng.choice(number, self.sizes[original], replace=False))

    def config(self, trial: Trial) -> Config:
        """The config under which a trial is anonymized."""
        return trial.described.config(self.sources[trial.described.data_set].described, trial.k)

    def sample(self, trial: Trial) -> Sample:
        """Draw the records of a trial and anonymize them as the paper does."""
        config, rows = self.config(trial), self.rows[trial.described.data_set]
        records = np.stack([rows[name] for name in trial.described.attributes], axis=1)[self.chosen(trial)]
        histogram = Histogram.of(config.lattice, records)
        recoding = local_recoding(histogram, config.lattice, k=trial.k)
        return Sample(Release(config, recoding.classes, recoding.suppressed), histogram, recoding)

    def to_dict(self) -> dict[str, Any]:
        """Describe it by plain values: results of another protocol are not mixed in."""
        return {
            "samples": self.samples,
            "ks": list(self.ks),
            "seed": self.seed,
            "sizes": dict(self.sizes),
            "data": {original: source.sha256 or source.name for original, source in self.sources.items()},
        }


@dataclass(frozen=True)
class Sample:
    """A release, and where its records really are."""

    release: Release
    histogram: Histogram
    recoding: Recoding

    @cached_property
    def attack(self) -> Attack:
        """The attack on the release, which knows nothing else."""
        mechanism = self.release.config.mechanism
        assert mechanism is not None
        return Attack(self.release, inference_of(mechanism, self.release))

    @cached_property
    def cells(self) -> list[Cell]:
        """The occupied cells, by their positions on the grid."""
        grid = self.attack.grid
        columns = (grid.positions(i, nodes).tolist() for i, nodes in enumerate(self.histogram.nodes))
        return list(zip(*columns, strict=True))

    @cached_property
    def totals(self) -> dict[Cell, int]:
        """How many records of the whole table each cell holds."""
        return dict(zip(self.cells, self.histogram.counts.tolist(), strict=True))

    def truth(self, number: int | None) -> dict[Cell, int]:
        """Where the records of a class, or the outliers (None), really are."""
        owners = self.recoding.class_of_cell.tolist()
        wanted = -1 if number is None else number
        return {cell: self.totals[cell] for cell, owner in zip(self.cells, owners, strict=True) if owner == wanted}

    @property
    def numbers(self) -> list[int | None]:
        """The classes, and the outliers if there are any."""
        return [*range(len(self.release.classes)), *([None] if self.release.outliers else [])]

    def find(self, number: int | None) -> Finding:
        """Attack a class, or the outliers, and compare with the truth."""
        target = self.target(number)
        finding = find(self.attack, number, target, RECORDS, count(self.attack, target, RECORDS))
        return with_truth(finding, self.attack, target, self.truth(number), self.totals, RECORDS)

    def target(self, number: int | None) -> Target:
        """State the problem of a class, or of the outliers."""
        target = self.attack.outliers() if number is None else self.attack.target(number)
        assert target is not None
        return target


@dataclass(frozen=True)
class Attacked:
    """What the attack made of one class, or of the outliers."""

    size: int
    basic: bool
    cells: int
    free: int
    """Cells that no earlier class has emptied."""
    lr: str
    """Raw data sets that the label leaves open; whole numbers of any length, written out."""
    cra: str
    """Those that remain."""
    combinations: str
    """Ways to say how many records each cell holds."""
    singles: int
    """Cells that really hold just one of the records."""
    alone: int
    """Those of them that hold no other record of the table."""

    @classmethod
    def of(cls, finding: Finding) -> Attacked:
        """Write down a finding."""
        left, truth = finding.refinement, finding.truth
        assert left is not None and truth is not None and left.free_cells is not None
        counts = (finding.published.text, left.plausible.text, left.combinations.text)
        assert left.counted == "exact" and None not in counts, "small classes are counted exactly"
        lr, cra, combinations = map(str, counts)
        return cls(
            finding.subject.size,
            finding.basic,
            finding.cells,
            left.free_cells,
            lr,
            cra,
            combinations,
            truth.singles,
            truth.singles_in_table,
        )


@dataclass(frozen=True)
class Outcome:
    """All that is written down of a trial; the same whenever it is run."""

    trial: Trial
    rows: int
    classes: tuple[Attacked, ...]
    outliers: Attacked | None
    sound: bool
    """Whether the true placement was among the plausible ones, in every class and for the outliers."""

    def to_dict(self) -> dict[str, Any]:
        """Describe it by plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Outcome:
        """Take back what `to_dict` gave."""
        outliers = found["outliers"]
        return cls(
            Trial(**found["trial"]),
            found["rows"],
            tuple(Attacked(**each) for each in found["classes"]),
            Attacked(**outliers) if outliers else None,
            found["sound"],
        )


def attack(trial: Trial, sample: Sample) -> Outcome:
    """Attack the release of a sample, and compare with the truth."""
    findings = [sample.find(number) for number in sample.numbers]
    attacked = [Attacked.of(finding) for finding in findings]
    classes = len(sample.release.classes)
    sound = all(finding.truth is not None and finding.truth.feasible for finding in findings)
    outliers = attacked[classes] if sample.release.outliers else None
    return Outcome(trial, sample.release.rows, tuple(attacked[:classes]), outliers, sound)


@dataclass(frozen=True)
class Timing:
    """How long one class, or the outliers, took; seconds."""

    exact: float
    solver: float | None = None
    """The same by enumeration; None if it was not tried."""
    finished: bool = True
    """Whether the enumeration came to its end; if not, it would have taken longer than `solver`."""
    agrees: bool = True
    """Whether a finished enumeration counted what the exact engine counted."""


@dataclass(frozen=True)
class Timings:
    """How long the classes of a trial took, and its outliers."""

    classes: tuple[Timing, ...]
    outliers: Timing | None
    seconds: float | None = None
    """What the enumeration was given, for all of them; None if it was not tried."""

    def to_dict(self) -> dict[str, Any]:
        """Describe it by plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Timings:
        """Take back what `to_dict` gave."""
        outliers = found["outliers"]
        classes = tuple(Timing(**each) for each in found["classes"])
        return cls(classes, Timing(**outliers) if outliers else None, found["seconds"])


def measure(sample: Sample, *, seconds: float | None = None) -> Timings:
    """Measure how long stating and counting takes, class by class; with `seconds`, also the paper's way.

    So many seconds are for the whole release: the classes share what is left of them.
    """
    assert sample.attack.overlaps is not None, "found once, for all classes"
    end = None if seconds is None else time.monotonic() + seconds
    numbers = sample.numbers
    found = [_measure(sample, number, share) for number, share in zip(numbers, _shares(end, len(numbers)), strict=True)]
    classes = len(sample.release.classes)
    return Timings(tuple(found[:classes]), found[classes] if sample.release.outliers else None, seconds)


def _shares(end: float | None, number: int) -> Iterator[float | None]:
    """How long each of so many classes may take: an equal share of what is left when its turn comes."""
    for left in range(number, 0, -1):
        yield None if end is None else max(0.01, (end - time.monotonic()) / left)


def _measure(sample: Sample, number: int | None, seconds: float | None) -> Timing:
    start = time.perf_counter()
    target = sample.target(number)
    exact = count(sample.attack, target, RECORDS)
    exact_seconds = time.perf_counter() - start
    if seconds is None:
        return Timing(exact_seconds)
    start = time.perf_counter()
    try:
        found = refine_by_enumeration(sample.attack, target, RECORDS, seconds=seconds)
    except ProgramError:
        return Timing(exact_seconds, time.perf_counter() - start, finished=False)
    finished = found.counted == "exact"
    agrees = not finished or (found.plausible.exact, found.combinations.exact) == (
        exact.plausible.exact,
        exact.combinations.exact,
    )
    return Timing(exact_seconds, time.perf_counter() - start, finished, agrees)
