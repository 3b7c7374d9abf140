"""What the classes say together, as plain numbers: the joint attack's part of an audit."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import inf, log2, log10
from typing import Any

from unblur.counting.numbers import Count
from unblur.counting.placements import published_solutions
from unblur.findings import finite
from unblur.joint.parts import Part
from unblur.joint.solving import JointResult
from unblur.joint.standing import Standing

BITS = log2(10)
MOST_CLASSES = 2_000
"""Of larger releases, odds are not asked for class by class."""


@dataclass(frozen=True)
class Together:
    """The figures of a joint attack."""

    result: JointResult
    truth_feasible: bool | None = None
    """Whether the raw table, if it was at hand, is among the tables that remain."""
    standings: tuple[Standing, ...] = ()
    """The classes that others say something about; not all of them, if there was no time."""

    @property
    def log10_published(self) -> float:
        """What the labels leave open."""
        return self.result.published.log10

    @property
    def log10_class(self) -> float:
        """What the classes leave plausible one by one."""
        return self.result.product.log10

    @property
    def log10_joint(self) -> float | None:
        """What they leave together; None if nothing does, or nobody knows (see `log10_at_most`)."""
        if self.result.range is not None:
            return _plain(self.result.range.log10)
        count = self.result.count
        return count.log10 if count else None

    @property
    def log10_at_most(self) -> float | None:
        """Where draws were made and none of them is plausible: what is left at most, but for the stated error."""
        interval = self.result.range
        return _plain(interval.high) if interval is not None and self.log10_joint is None else None

    @property
    def bits(self) -> float | None:
        """What seeing them together takes away beyond the classes one by one."""
        if self.log10_joint is None or self.log10_class == -inf:
            return None
        return max(0.0, (self.log10_class - self.log10_joint) * BITS)

    @property
    def feasible(self) -> bool:
        """Whether some table could have produced the release, as far as that is known."""
        if self.result.range is not None:
            return self.result.range.at_most > -inf
        return bool(self.result.count)

    @cached_property
    def certain_records(self) -> int | None:
        """Records whose cell is certain although their label spans several; None if not all is known."""
        if not self.feasible:
            return None
        grid = self.result.program.attack.grid
        found = 0
        for number, target in enumerate(self.result.program.subjects):
            certain = self.result.certain(number)
            if certain is None:
                return None
            found += sum(certain.values()) if grid.count_cells(grid.leaves(target.box)) > 1 else 0
        return found

    def to_dict(self) -> dict[str, Any]:
        """Describe it by plain values."""
        count, interval = self.result.count, self.result.range
        return {
            "log10_lr": _plain(self.log10_published),
            "log10_class": _plain(self.log10_class),
            "log10_joint": self.log10_joint,
            "bits": self.bits,
            "exact": self.result.exact,
            "upper_bound": self.result.relaxed,
            "left_out": list(self.result.program.relaxed),
            "solutions": count.text if count is not None else None,
            "interval": [_plain(interval.low), _plain(interval.high)] if interval else None,
            "bounds": [_plain(interval.at_least), _plain(interval.at_most)] if interval else None,
            "error": interval.error if interval else None,
            "seed": interval.seed if interval else None,
            "certain_records": self.certain_records if self._small else None,
            "truth_feasible": self.truth_feasible,
            "components": [self._component(part) for part in self.result.parts if not part.component.plain],
            "classes": [self._class(each) for each in self.standings],
        }

    def ratio(self, standing: Standing) -> float | None:
        """How many times fewer data sets of a class remain than its label leaves open; None if that is not known."""
        left = self.log10_left(standing)
        if left is None:
            return None
        target = self.result.program.subjects[standing.number]
        volume = self.result.program.attack.grid.volume(target.box)
        return _power(published_solutions(volume, target.subject.size, self.result.records).log10 - left)

    def factor(self, standing: Standing) -> float | None:
        """How many times fewer than the class alone leaves."""
        left = self.log10_left(standing)
        part, owner = self.result.part_of(standing.number)
        return None if left is None else _power(part.classes[owner].count_solutions().log10 - left)

    def log10_left(self, standing: Standing) -> float | None:
        """What the others leave a class, on average."""
        return None if standing.left is None else log10_of(standing.left)

    def _class(self, standing: Standing) -> dict[str, Any]:
        grid, classes = self.result.program.attack.grid, len(self.result.program.attack.release.classes)
        return {
            "id": standing.number + 1 if standing.number < classes else None,
            "log10_left": self.log10_left(standing),
            "ratio": finite(self.ratio(standing)),
            "factor": finite(self.factor(standing)),
            "certain_records": sum(standing.certain.values()),
            "impossible_cells": standing.impossible,
            "estimated_from": standing.draws,
            "singling_out_probability": None if standing.singling_out is None else float(standing.singling_out),
            "cells": None
            if standing.odds is None
            else [
                {"labels": list(grid.labels(cell)), "odds": [float(chance) for chance in odds]}
                for cell, odds in standing.odds
            ],
        }

    @property
    def _small(self) -> bool:
        return len(self.result.program.subjects) <= MOST_CLASSES

    def _component(self, part: Part) -> dict[str, Any]:
        """A component of several classes, or of one that others tell something about."""
        classes = len(self.result.program.attack.release.classes)
        numbers = part.component.numbers
        together = _log10(part)
        alone = sum(each.count_solutions().log10 for each in part.classes)
        return {
            "classes": [number + 1 for number in numbers if number < classes],
            "outliers": any(number >= classes for number in numbers),
            "exact": part.exact,
            "log10_class": _plain(alone),
            "log10_joint": together,
        }


def log10_of(number: Fraction) -> float:
    """The logarithm of a number of any size."""
    return log10(number.numerator) - log10(number.denominator)


def _plain(number: float) -> float | None:
    """A logarithm as JSON can say it: None for that of zero."""
    return number if number > -inf else None


def _power(exponent: float) -> float:
    return 10**exponent if exponent < 308 else inf


def _log10(part: Part) -> float | None:
    if part.estimate is not None:
        return log10_of(part.estimate.value) if part.estimate.value > 0 else None
    count: Count | None = part.count
    return count.log10 if count else None
