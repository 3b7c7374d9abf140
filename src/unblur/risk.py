"""Numbers people read: how far the attack narrows down what labels seem to leave open, and whether a release fits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import log2
from statistics import median

from unblur.attacking import Attack, Target
from unblur.counting.placements import Placements, published_solutions
from unblur.counting.problem import Records
from unblur.release import EquivalenceClass


@dataclass(frozen=True)
class Finding:
    """What the attack makes of one class, or of the outliers."""

    subject: EquivalenceClass
    labels: tuple[str, ...]
    basic: bool
    """Whether it is a single cell, so that nothing is left to refine."""
    published: int
    """Raw data sets that the label alone leaves open (the paper's LR_solutions)."""
    plausible: int
    """Raw data sets that remain (CRA_solutions)."""
    combinations: int
    """Ways to say how many records each cell holds."""
    upper_bound: bool
    """Whether a constraint was left out, so that even fewer may remain."""

    @property
    def ratio(self) -> Fraction | None:
        """How many times fewer data sets remain; None if none does."""
        return Fraction(self.published, self.plausible) if self.plausible else None

    @property
    def bits(self) -> float | None:
        """The same in bits: each bit halves what remains."""
        if self.ratio is None:
            return None
        return log2(self.ratio.numerator) - log2(self.ratio.denominator)


@dataclass(frozen=True)
class Spread:
    """Mean, median and largest of some ratios; None where there are none."""

    mean: Fraction | None
    median: Fraction | None
    largest: Fraction | None

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> Spread:
        """Sum up the ratios of those findings that have one."""
        ratios = [finding.ratio for finding in findings if finding.ratio is not None]
        if not ratios:
            return cls(None, None, None)
        return cls(sum(ratios, Fraction(0)) / len(ratios), median(ratios), max(ratios))


@dataclass(frozen=True)
class Assessment:
    """The findings of a release, class by class in the order of the attack, and for the outliers."""

    k: int
    records: Records
    classes: tuple[Finding, ...]
    outliers: Finding | None

    @cached_property
    def over_all(self) -> Spread:
        """The ratios of all classes."""
        return Spread.of(self.classes)

    @cached_property
    def over_compound(self) -> Spread:
        """The ratios of the classes of more than one cell."""
        return Spread.of(finding for finding in self.classes if not finding.basic)

    def problems(self) -> list[str]:
        """Say, a sentence each, why the release cannot have been made as stated; an empty list if it can."""
        named = [(f"class {number}", each) for number, each in enumerate(self.classes, 1)]
        if self.outliers:
            named.append(("the outliers", self.outliers))
        return [sentence for name, each in named for sentence in self._misfits(name, each)]

    def _misfits(self, name: str, finding: Finding) -> Iterator[str]:
        size = finding.subject.size
        if name != "the outliers" and size < self.k:
            yield f"{name} has {size} records, fewer than k = {self.k}: k is another, or rows are missing"
        elif not finding.published:
            yield f"{name} has {size} records but fewer values: some are equal, so records are not distinct"
        elif not finding.plausible:
            yield (
                f"no placement of the {size} records of {name} is possible: "
                "the release was not made by this mechanism with this k and these hierarchies"
            )


def assess(attack: Attack, *, records: Records = "any") -> Assessment:
    """Attack every class and the outliers of a release."""
    outliers = attack.outliers()
    return Assessment(
        attack.release.config.k,
        records,
        tuple(_finding(attack, target, records) for target in attack.targets()),
        _finding(attack, outliers, records) if outliers else None,
    )


def _finding(attack: Attack, target: Target, records: Records) -> Finding:
    left = Placements(attack.grid, target.problem, records)
    return Finding(
        target.subject,
        attack.release.labels(target.subject),
        basic=_is_basic(target.subject.state, attack.release.config.lattice.finest),
        published=published_solutions(attack.grid.volume(target.box), target.subject.size, records),
        plausible=left.solutions,
        combinations=left.combinations,
        upper_bound=bool(target.dropped),
    )


def _is_basic(state: Sequence[int], finest: Sequence[int]) -> bool:
    return tuple(state) == tuple(finest)
