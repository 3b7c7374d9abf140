"""Numbers people read: how far the attack narrows down what labels seem to leave open, and whether a release fits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import fsum, inf, log2
from statistics import median

from unblur.attacking import Attack, Target
from unblur.counting.numbers import Count
from unblur.counting.placements import Cell, Placements, published_solutions
from unblur.counting.problem import Records
from unblur.labels import ROOT_LABEL
from unblur.refining import Refinement, refine_cell
from unblur.release import EquivalenceClass


@dataclass(frozen=True)
class SinglingOut:
    """What the raw table says of a class: where its records are, and who stands alone there."""

    feasible: bool
    """Whether the true placement is one that the attack has left."""
    singles: int
    """Cells that hold just one of the class's records."""
    singles_in_table: int
    """Those of them that hold no other record of the whole table either."""


@dataclass(frozen=True)
class Finding:
    """What the attack makes of one class, or of the outliers."""

    number: int | None
    """The class's number, from 1, in the order of the attack; None for the outliers."""
    subject: EquivalenceClass
    labels: tuple[str, ...]
    basic: bool
    """Whether its label is a single cell; where raw values are in the lattice, even that may be narrowed down."""
    cells: int
    """How many cells its label spans."""
    published: Count
    """Raw data sets that the label alone leaves open (the paper's LR_solutions)."""
    taken_by: tuple[int, ...]
    """The classes that surely came before and took cells of it."""
    refinement: Refinement | None
    """None if the attack did not come to it."""
    truth: SinglingOut | None = None
    """What the raw table says, if it was at hand."""

    @cached_property
    def ratio(self) -> float | None:
        """How many times fewer data sets remain; infinite beyond any float; None if none does, or nobody looked."""
        return self.published.over(self.refinement.plausible) if self.refinement else None

    @property
    def bits(self) -> float | None:
        """The same in bits: each bit halves what remains."""
        if self.ratio is None or self.refinement is None:
            return None
        return log2(self.ratio) if self.ratio < inf else self.published.log2 - self.refinement.plausible.log2

    @property
    def name(self) -> str:
        """What to call it in a sentence."""
        return "the outliers" if self.number is None else f"class {self.number}"


@dataclass(frozen=True)
class Spread:
    """Mean, median and largest of some ratios; None where there are none."""

    mean: float | None
    median: float | None
    largest: float | None

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> Spread:
        """Sum up the ratios of those findings that have one."""
        ratios = [finding.ratio for finding in findings if finding.ratio is not None]
        if not ratios:
            return cls(None, None, None)
        mean = _mean(ratios)
        return cls(mean, median(ratios), max(ratios))


def _mean(numbers: Sequence[float]) -> float:
    try:
        return fsum(numbers) / len(numbers)
    except OverflowError:
        return inf


def find(
    attack: Attack, number: int | None, target: Target, records: Records, refinement: Refinement | None = None
) -> Finding:
    """State what is published about a class (by its index), or the outliers (None), and what the attack has left."""
    cells = attack.grid.count_cells(attack.grid.leaves(target.box))
    return Finding(
        None if number is None else number + 1,
        target.subject,
        attack.release.labels(target.subject) if number is not None else (ROOT_LABEL,) * len(target.box),
        basic=cells == 1,
        cells=cells,
        published=published_solutions(attack.grid.volume(target.box), target.subject.size, records),
        taken_by=() if number is None else tuple(taker + 1 for taker in target.takers),
        refinement=refinement,
    )


def find_cell(attack: Attack, number: int, records: Records) -> Finding:
    """State the same of a class that is a free cell."""
    subject = attack.release.classes[number]
    published = published_solutions(attack.grid.volume(attack.boxes[number]), subject.size, records)
    return Finding(
        number + 1,
        subject,
        attack.release.labels(subject),
        basic=True,
        cells=1,
        published=published,
        taken_by=(),
        refinement=refine_cell(published, subject.size),
    )


def misfits(finding: Finding, k: int) -> Iterator[str]:
    """Say, a sentence each, why a class cannot have been made as stated."""
    size, name = finding.subject.size, finding.name
    if finding.number is not None and size < k:
        yield f"{name} has {_records(size)}, fewer than k = {k}: k is another, or rows are missing"
    if not finding.published:
        yield f"{name} has {_records(size)} but fewer values: some are equal, so records are not distinct"
    elif finding.refinement and not finding.refinement.feasible:
        yield (
            f"no placement of the {_records(size)} of {name} is possible: "
            "the release was not made by this mechanism with this k and these hierarchies"
        )
    elif finding.truth and not finding.truth.feasible:
        yield (
            f"the raw table disproves it: the true placement of {name} is not among those left, "
            "so the release was not made as stated, and no figure can be trusted"
        )


def with_truth(
    finding: Finding,
    attack: Attack,
    target: Target,
    placement: Mapping[Cell, int],
    totals: Mapping[Cell, int],
    records: Records,
) -> Finding:
    """Compare with the raw table: the true placement of the class, and all records per leaf."""
    leaves: Counter[Cell] = Counter()
    for cell, n in placement.items():
        leaves[attack.grid.leaf(cell)] += n
    singles = [leaf for leaf, n in leaves.items() if n == 1]
    alone = sum(totals[leaf] == 1 for leaf in singles)
    feasible = Placements(attack.grid, target.problem, records).allows(placement)
    return replace(finding, truth=SinglingOut(feasible, len(singles), alone))


@dataclass(frozen=True)
class Outcomes:
    """Over the classes of more than one cell: in how many nobody, one or more than one record is singled out."""

    classes: int
    failed: int
    one: int
    many: int

    @classmethod
    def of(cls, findings: Sequence[Finding]) -> Outcomes:
        """Count them."""
        singles = [each.truth.singles for each in findings if each.truth and not each.basic]
        failed, one = singles.count(0), singles.count(1)
        return cls(len(singles), failed, one, len(singles) - failed - one)


def _records(number: int) -> str:
    return "1 record" if number == 1 else f"{number:,} records"
