"""The extra factor of the joint attack: how many times fewer raw tables remain when all classes are seen together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal, localcontext
from math import isinf
from statistics import fmean

from unblur.paper.jointly import Extra
from unblur.paper.results import Results
from unblur.paper.sheets import Column, Sheet, Value, show
from unblur.paper.tables import KEY

NONE_FITTED = "no draw fitted, which leaves a bound only"


@dataclass(frozen=True)
class Gathered:
    """The releases of one configuration at one k whose classes were attacked together; factors as logarithms."""

    extras: tuple[Extra, ...]

    @property
    def mean(self) -> float:
        """The logarithm of the geometric mean."""
        return fmean(each.factor for each in self.extras)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval of the mean, made of the ends of the releases' intervals; None if all are counts."""
        if not self.estimated:
            return None
        lows, highs = zip(*(each.factors for each in self.extras), strict=True)
        return fmean(lows), fmean(highs)

    @property
    def largest(self) -> float:
        """The logarithm of the largest factor."""
        return max(each.factor for each in self.extras)

    @property
    def largest_interval(self) -> tuple[float, float] | None:
        """The interval of the largest; None if that is a count, and no estimate may be larger."""
        if all(each.factors[1] < self.largest for each in self.estimated):
            return None
        lows, highs = zip(*(each.factors for each in self.extras), strict=True)
        return max(lows), max(highs)

    @property
    def estimated(self) -> list[Extra]:
        """The releases that were not counted."""
        return [each for each in self.extras if not each.exact]

    @property
    def at_least(self) -> list[Extra]:
        """The releases whose factor may be larger."""
        return [each for each in self.extras if each.at_least]


def gathered(results: Results) -> list[Gathered]:
    """By configuration and k, where there is something."""
    points: dict[tuple[int, int], list[Extra]] = {}
    for trial, extra in results.extras.items():
        points.setdefault((trial.configuration, trial.k), []).append(extra)
    return [Gathered(tuple(extras)) for extras in points.values()]


def factors(results: Results) -> Sheet:
    """The extra factor per configuration and k."""
    points = gathered(results)

    def row(point: Gathered) -> tuple[Value, ...]:
        return (
            *_key(results, point.extras[0]),
            len(point.extras) - len(point.estimated),
            len(point.estimated),
            factor_of(point.mean, estimated=bool(point.estimated)),
            *_ends(point.interval),
            factor_of(point.largest, estimated=point.largest_interval is not None),
            len(point.at_least),
        )

    means = {(n, "factor_mean"): "estimate" for n, point in enumerate(points) if point.estimated}
    largest = {
        (n, "factor_largest"): estimate_of(point.largest_interval)
        for n, point in enumerate(points)
        if point.largest_interval
    }
    return Sheet(
        "extra-factor",
        "The extra factor, by configuration and k",
        "How many times fewer raw tables remain when all classes are seen together than the counts of the classes, "
        "multiplied. The mean is the geometric one, since factors span powers of ten. In the picture each mark is a "
        "release, and the line joins the means.",
        (
            *KEY,
            Column("exact", "releases counted", "whole"),
            Column("estimated", "estimated", "whole"),
            Column("factor_mean", "factor, geometric mean", "times"),
            Column("factor_low", "estimate from", "times"),
            Column("factor_high", "to", "times"),
            Column("factor_largest", "factor, largest", "times"),
            Column("at_least", "at least", "whole"),
        ),
        tuple(map(row, points)),
        tuple(_notes(list(results.extras.values()))),
        at_least=frozenset(
            (n, name) for n, point in enumerate(points) if point.at_least for name in ("factor_mean", "factor_largest")
        ),
        estimates=means | largest,
    )


def releases(results: Results) -> Sheet:
    """Every release whose classes were attacked together."""
    extras = list(results.extras.values())

    def row(each: Extra) -> tuple[Value, ...]:
        return (
            *_key(results, each),
            each.trial.sample,
            each.classes,
            each.how,
            each.published,
            each.alone,
            None if isinf(each.together) else each.together,
            factor_of(each.factor, estimated=not each.exact),
            *_ends(None if each.exact else each.factors),
            each.took,
        )

    return Sheet(
        "extra-factor-releases",
        "Every release",
        "How many raw tables remain, as powers of ten: 2,700 means a number of 2,701 digits.",
        (
            *KEY,
            Column("sample", "sample", "whole"),
            Column("classes", "classes", "whole"),
            Column("how", "factor is"),
            Column("log10_lr", "labels leave 10^", "number"),
            Column("log10_class", "class by class 10^", "number"),
            Column("log10_joint", "together 10^", "number"),
            Column("factor", "factor", "times"),
            Column("factor_low", "estimate from", "times"),
            Column("factor_high", "to", "times"),
            Column("seconds", "time", "seconds"),
        ),
        tuple(map(row, extras)),
        at_least=frozenset((n, "factor") for n, each in enumerate(extras) if each.at_least),
        estimates={
            (n, name): "estimate"
            for n, each in enumerate(extras)
            if not each.exact
            for name in ("log10_joint", "factor")
        },
    )


def truth(extras: Sequence[Extra]) -> str:
    """Say whether the true tables are among those that remain."""
    if all(each.sound for each in extras):
        return "the true table is always among those that remain"
    return "THE TRUE TABLE IS NOT ALWAYS AMONG THOSE THAT REMAIN: these results cannot be trusted"


def counted(extras: Sequence[Extra]) -> str:
    """Say how many releases were counted, and how many estimated."""
    estimated = sum(not each.exact for each in extras)
    if not estimated:
        return "all counted exactly"
    return f"{len(extras) - estimated:,} counted exactly, {estimated:,} estimated"


def factor_of(log: float, *, estimated: bool) -> Value:
    """A factor from its logarithm; of an estimate, four digits.

    >>> factor_of(6.5375, estimated=True), factor_of(0.0, estimated=False)
    (Decimal('3.447E+6'), 1.0)
    """
    return _four_digits(log, ROUND_HALF_EVEN) if estimated else 10**log


def estimate_of(interval: tuple[float, float]) -> str:
    """Say that a factor is an estimate, and what its interval is, from that of its logarithm.

    >>> estimate_of((1.0, 2.0)), estimate_of((1.0, float("inf")))
    ('estimate, 10.00 to 100.0', 'estimate, 10.00 or more')
    """
    low, high = (each if each is None else show(each, "times") for each in _ends(interval))
    return f"estimate, {low} to {high}" if high else f"estimate, {low} or more"


def _ends(interval: tuple[float, float] | None) -> tuple[Value, Value]:
    """The interval of an estimated factor from that of its logarithm, rounded outwards."""
    if interval is None:
        return None, None
    return _four_digits(interval[0], ROUND_FLOOR), _four_digits(interval[1], ROUND_CEILING)


def _four_digits(log: float, rounding: str) -> Decimal | None:
    """Ten to a power; None where that is no number."""
    if isinf(log):
        return None
    with localcontext(prec=17):
        power = Decimal(10) ** Decimal(log)
    with localcontext(prec=4, rounding=rounding):
        return +power


def _key(results: Results, extra: Extra) -> tuple[Value, ...]:
    described = extra.trial.described
    return results.protocol.sources[described.data_set].name, len(described.attributes), extra.trial.k


def _notes(extras: Sequence[Extra]) -> Iterator[str]:
    estimated = [each for each in extras if not each.exact]
    if estimated:
        error, seconds = (
            max(found) for found in zip(*((each.error or 0, each.seconds) for each in estimated), strict=True)
        )
        yield (
            "An estimate is not a count. Tables are drawn at random, and the share that fits gives an interval; for "
            f"each release it misses with a chance of at most {error:.0%}. The interval of a mean is made of the "
            "releases' intervals, and holds if all of them do. An estimate depends on the time it was given (here up "
            f"to {seconds:g} s for a release), so it may differ from run to run."
        )
    reasons = {reason for each in extras for reason in each.left_out}
    reasons |= {NONE_FITTED} if any(isinf(each.together) for each in extras) else set()
    if reasons:
        yield (
            "≥: the true factor may be larger, since something that is known was left out "
            f"({'; '.join(sorted(reasons))}). The column 'at least' tells in how many releases."
        )
