"""The paper's protocol: which tables are drawn, anonymized and attacked, and what is written down of each.

A *trial* is one configuration of attributes, one sample of the data set, one k. The sample depends on the seed, the
configuration and its number, not on k or on the other trials, so that any part of the grid can be run alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from unblur.attacking import Attack, Target, inference_of
from unblur.config import Config
from unblur.counting.placements import Cell
from unblur.counting.problem import Records
from unblur.datasets.catalogue import CONFIGURATIONS, Configuration, Original
from unblur.errors import ConfigError
from unblur.hierarchy import Ranks
from unblur.histogram import Histogram
from unblur.paper.origins import DEFAULTS, SIZES, Source
from unblur.recoding import Recoding, local_recoding
from unblur.refining import count
from unblur.release import Release
from unblur.risk import Finding, find, with_truth

if TYPE_CHECKING:
    pass

SAMPLES, QUICK = 12, 2
"""How many samples of each configuration: as in the paper, and for a first look."""
RECORDS: Records = "distinct"
"""What the paper assumes, and counts."""
KS = (3, 4, 5, 6, 7, 8)
LAST_K = 7
"""The tables end here, the figures go one further."""


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
