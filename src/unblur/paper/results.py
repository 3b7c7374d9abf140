"""From what was written down to the figures of the paper's tables: per configuration and k, over the samples.

The paper averages over the classes of a sample, then over the samples, and does not say whether classes of a single
cell, which no attack can narrow down, are among them. So every mean is taken twice: over all classes, and over compound
ones (of more than one cell). A mean of numbers that range over many powers of ten is mostly its largest; the median
stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from statistics import fmean, median

from unblur.datasets.catalogue import CONFIGURATIONS, Configuration, Original
from unblur.paper.jointly import Extra
from unblur.paper.protocol import Attacked, Outcome, Protocol, Trial
from unblur.paper.timing import Timing, Timings

Measure = Callable[[Attacked], Fraction]


def lr(each: Attacked) -> Fraction:
    """Raw data sets that the label leaves open."""
    return Fraction(int(each.lr))


def cra(each: Attacked) -> Fraction:
    """Raw data sets that remain."""
    return Fraction(int(each.cra))


def ratio(each: Attacked) -> Fraction:
    """How many times fewer remain."""
    return Fraction(int(each.lr), int(each.cra))


def combinations(each: Attacked) -> Fraction:
    """Ways to say how many records each cell holds."""
    return Fraction(int(each.combinations))


@dataclass(frozen=True)
class Average:
    """A mean of the samples' means, and the median over all of them; None where there is nothing to average."""

    mean: Decimal | None
    """A decimal number: the counts of large classes are beyond any float."""
    median: Decimal | None


NOTHING = Average(None, None)


@dataclass(frozen=True)
class Point:
    """All samples of one configuration at one k."""

    configuration: Configuration
    k: int
    outcomes: tuple[Outcome, ...]
    timings: tuple[Timings, ...]

    @property
    def original(self) -> Original:
        """The paper's data set."""
        return self.configuration.data_set

    @property
    def attributes(self) -> int:
        """How many quasi-identifiers."""
        return len(self.configuration.attributes)

    def classes(self, *, compound: bool = False) -> list[list[Attacked]]:
        """The classes of each sample, or those of more than one cell."""
        return [[each for each in outcome.classes if not (compound and each.basic)] for outcome in self.outcomes]

    def over_classes(self, measure: Measure, *, compound: bool = False) -> Average:
        """Average over the classes of each sample, then over the samples."""
        return averaged([[measure(each) for each in sample] for sample in self.classes(compound=compound)])

    def over_outliers(self, measure: Measure) -> Average:
        """Average over the samples that have outliers."""
        return averaged([[measure(each)] for each in self.outliers])

    @property
    def outliers(self) -> list[Attacked]:
        """The suppressed records of each sample that has some."""
        return [outcome.outliers for outcome in self.outcomes if outcome.outliers]

    def number(self, *, basic: bool) -> float:
        """How many basic, or compound, classes a sample has."""
        return fmean(sum(each.basic == basic for each in outcome.classes) for outcome in self.outcomes)

    @property
    def basic_share(self) -> float:
        """The share of classes that are a single cell."""
        return self.number(basic=True) / (self.number(basic=True) + self.number(basic=False))

    def singled_out(self, *, compound: bool = True) -> tuple[float, float, float] | None:
        """The shares of classes with nobody, one and more than one record alone in a cell; None without classes."""
        singles = [each.singles for sample in self.classes(compound=compound) for each in sample]
        if not singles:
            return None
        nobody, one = singles.count(0) / len(singles), singles.count(1) / len(singles)
        return nobody, one, 1 - nobody - one

    @property
    def covered(self) -> float | None:
        """The share of the grid that classes cover, in samples with outliers."""
        return fmean(1 - each.free / each.cells for each in self.outliers) if self.outliers else None

    def seconds(self, *, outliers: bool) -> list[Timing]:
        """The times of all classes, or of all outliers."""
        if outliers:
            return [each.outliers for each in self.timings if each.outliers]
        return [timing for each in self.timings for timing in each.classes]


def averaged(samples: Sequence[Sequence[Fraction]]) -> Average:
    """Average exactly, and round at the end."""
    samples = [sample for sample in samples if sample]
    if not samples:
        return NOTHING
    means = [sum(sample, Fraction(0)) / len(sample) for sample in samples]
    middle = Fraction(median(number for sample in samples for number in sample))
    return Average(_rounded(sum(means, Fraction(0)) / len(means)), _rounded(middle))


def _rounded(number: Fraction) -> Decimal:
    with localcontext(prec=17):
        return Decimal(number.numerator) / Decimal(number.denominator)


@dataclass(frozen=True)
class Results:
    """All trials of a protocol."""

    protocol: Protocol
    outcomes: Mapping[Trial, Outcome]
    timings: Mapping[Trial, Timings]
    extras: Mapping[Trial, Extra] = field(default_factory=dict)
    """Of the trials whose classes were also attacked together."""

    @cached_property
    def points(self) -> list[Point]:
        """By configuration and k, in the order of the paper's tables."""
        return [self._point(place, k) for place in range(len(CONFIGURATIONS)) for k in self.protocol.ks]

    def _point(self, place: int, k: int) -> Point:
        trials = [trial for trial in self.protocol.trials if (trial.configuration, trial.k) == (place, k)]
        return Point(
            CONFIGURATIONS[place],
            k,
            tuple(self.outcomes[trial] for trial in trials),
            tuple(self.timings[trial] for trial in trials),
        )

    def series(self, original: Original | None = None) -> Iterator[list[Point]]:
        """The points of each configuration, by k."""
        for configuration in CONFIGURATIONS:
            if original in (None, configuration.data_set):
                yield [each for each in self.points if each.configuration == configuration]

    @property
    def sound(self) -> bool:
        """Whether the truth was always among what remained."""
        return all(each.sound for each in self.outcomes.values())


def distance(pairs: Sequence[tuple[Decimal | None, float | None]]) -> float | None:
    """How far numbers are from others, as powers of ten, on average.

    >>> distance([(Decimal(10), 100.0), (Decimal(5), 5.0), (None, 3.0)])
    0.5
    """
    known = [(ours, theirs) for ours, theirs in pairs if ours and theirs]
    return fmean(float(abs((ours / Decimal(theirs)).log10())) for ours, theirs in known) if known else None
