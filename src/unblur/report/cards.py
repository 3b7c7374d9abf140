"""Cards: a class, or the outliers, with its cells, their odds, and the reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unblur.attacking import Attack, Target
from unblur.explaining import MOST_CELLS, explain
from unblur.explanations import Entry, Explanation
from unblur.report.classes import compact, ranked
from unblur.report.phrases import (
    amount,
    are,
    average,
    count,
    few,
    listed,
    narrowed,
    percent,
    plain,
    plural,
    remaining,
    shown,
    spread,
)
from unblur.report.spreading import steps_of
from unblur.risk import Finding

if TYPE_CHECKING:
    from unblur.audits import Audit

MOST_CARDS = 40
MOST_ROWS = 12
"""So many cells are listed on a card."""
MOST_TAKERS = 8
"""So many earlier classes are named."""
MOST_WORK = 1_500_000
MOST_WORK_IN_ALL = 12_000_000
"""Steps for one card, and for all together; a card that would take more has no odds."""
TOO_LONG = "The odds of its cells would take too long here; the command unblur explain takes more time for one class."


@dataclass(frozen=True)
class Odds:
    """A row of a card: a cell, or a part of the label."""

    labels: tuple[str, ...]
    left: str
    nobody: str
    one: str
    more: str
    expected: str
    weight: int
    """The chance that somebody is there, in percent, for a bar."""
    certain: bool


@dataclass(frozen=True)
class Reason:
    """A sentence, with details."""

    text: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Card:
    """What there is to say about one class, or about the outliers."""

    number: int | None
    size: int
    labels: tuple[tuple[str, str], ...]
    published: str
    plausible: str
    left: str
    fold: str
    fits: bool
    reasons: tuple[Reason, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[Odds, ...] = ()
    by_part: bool = False
    rest: str = ""
    """What is said of the cells that are not listed."""
    alone: str = ""
    note: str = ""


@dataclass
class Dealer:
    """Makes cards, within a limit of work."""

    audit: Audit
    attack: Attack
    left: int = MOST_WORK_IN_ALL

    def cards(self) -> tuple[Card, ...]:
        """The cards of the classes that lost most, or that do not fit; classes of a single cell have none."""
        return tuple(self.card(each) for each in worth_a_card(self.audit))

    def card(self, finding: Finding) -> Card:
        """Make the card of one class, or of the outliers."""
        number = None if finding.number is None else finding.number - 1
        target = self.attack.outliers() if number is None else self.attack.target(number)
        assert target is not None, "there are no outliers"
        work = _work(target)
        if finding.refinement is None or work > min(MOST_WORK, self.left):
            return _bare(self.audit, finding)
        self.left -= work
        return _full(self.audit, finding, explain(self.attack, number, records=self.audit.settings.records))


def worth_a_card(audit: Audit) -> list[Finding]:
    """The classes to explain, the worst first."""
    found = [each for each in ranked(audit) if each.refinement and (each.bits or not each.refinement.feasible)]
    return [each for each in found if not each.basic or each.ratio is None][:MOST_CARDS]


def _work(target: Target) -> int:
    """Estimate the steps of an explanation: the odds of blocks, of children, and of the cells in them."""
    blocks = max(1, len(target.problem.blocks))
    each = steps_of(target.problem) // blocks
    return each * (blocks + sum(target.problem.fanouts)) + 200 * min(target.problem.size**2, 2000) * min(
        blocks, MOST_CELLS
    )


def _bare(audit: Audit, finding: Finding) -> Card:
    """A card without odds."""
    left = finding.refinement
    takers = (Reason(_taken_by(finding.taken_by)),) if finding.taken_by else ()
    return Card(
        finding.number,
        finding.subject.size,
        _labels(audit, finding),
        amount(finding.published),
        amount(left.plausible) if left else "–",
        remaining(finding),
        narrowed(finding),
        fits=left is None or left.feasible,
        reasons=takers,
        note=TOO_LONG if left else "The attack did not come to it.",
    )


def _full(audit: Audit, finding: Finding, found: Explanation) -> Card:
    names = [name for name in found.labels if len({each.labels[name] for each in found.cells or ()}) > 1]
    possible = [each for each in found.cells or () if each.verdict != "impossible"]
    rows = few(possible, MOST_ROWS)
    return Card(
        finding.number,
        finding.subject.size,
        _labels(audit, finding),
        amount(found.published),
        amount(found.plausible),
        remaining(finding),
        narrowed(finding),
        fits=found.fits,
        reasons=tuple(_reasons(found)),
        columns=tuple(map(shown, names)),
        rows=tuple(_odds(each, names, found.by_block) for each in rows) if names else (),
        by_part=found.by_block,
        rest=_rest(found, possible[len(rows) :]),
        alone=_alone(found),
        note=TOO_LONG if found.fits and found.cells is None else "",
    )


def _labels(audit: Audit, finding: Finding) -> tuple[tuple[str, str], ...]:
    names = [shown(each.name) for each in audit.release.config.quasi_identifiers]
    return tuple(zip(names, map(shown, finding.labels), strict=True))


def _odds(entry: Entry, names: Sequence[str], by_part: bool) -> Odds:
    odds = entry.odds
    return Odds(
        tuple(compact(entry.labels[name]) for name in names),
        f"{entry.free:,} of {entry.cells:,}" if by_part else "",
        percent(odds.nobody),
        percent(odds.one),
        percent(odds.more),
        average(odds.expected),
        round(100 * float(1 - odds.nobody)),
        certain=bool(odds.least),
    )


def _rest(found: Explanation, others: Sequence[Entry]) -> str:
    what = "part" if found.by_block else "cell"
    taken = sum(each.verdict == "impossible" for each in found.cells or ())
    told = []
    if others:
        chance = percent(max(1 - each.odds.nobody for each in others))
        told.append(f"{count(len(others), f'more {what}')}, each with a chance of at most about {chance}.")
    if taken:
        told.append(f"{count(taken, what)} in which nobody can be.")
    return " ".join(told)


def _reasons(found: Explanation) -> Iterator[Reason]:
    if found.takers:
        ranked_takers = sorted(found.takers, key=lambda each: (-each.cells, each.id))
        gone, every = found.all_cells - found.free_cells, found.all_cells
        cells = f"{gone:,} of its {every:,} cells {are(gone)} empty" if gone < every else "All of its cells are empty"
        yield Reason(f"{cells}. {_taken_by([each.id for each in ranked_takers])}")
    bounded = [each for each in found.children if each.bounded]
    if bounded:
        details = tuple(plain(spread(each, found.size)) for each in bounded)
        yield Reason(f"{_why(found)} So, of the {count(found.size, 'record')}:", details)
    emptied = sum(each.free for each in found.cells or () if each.free and each.verdict == "impossible")
    if emptied:
        yield Reason(f"{count(emptied, 'more cell')} {are(emptied)} empty, for these limits leave no room there.")
    if not found.fits and found.bound is not None and found.size >= found.bound and found.free_cells:
        yield Reason(f"{_why(found)} The records cannot spread so that this holds.")
    if found.dropped:
        rules = f"the {'rule' if len(found.dropped) == 1 else plural('rule')} for {listed(found.dropped)}"
        yield Reason(f"Even fewer may be left: {rules} would take too long to count.")


def _taken_by(ids: Sequence[int]) -> str:
    named = [f"{each:,}" for each in few(ids, MOST_TAKERS)]
    others = [f"{len(ids) - len(named):,} more"] if len(ids) > len(named) else []
    who = f"{'Class' if len(ids) == 1 else 'Classes'} {listed([*named, *others])}"
    return f"{who} came before and took everybody in the cells that they share with it."


def _why(found: Explanation) -> str:
    if found.bound == found.k:
        shared = f"Had {found.k:,} or more of these records shared a narrower label"
        return f"{shared}, they would have been published under it."
    return (
        f"Had narrower labels of {found.k:,} or more of these records held {found.bound:,} or more together, a finer "
        "and cheaper step would have published them."
    )


def _alone(found: Explanation) -> str:
    if found.singling_out is None:
        return ""
    return f"The chance that some cell holds exactly one of the records is {percent(found.singling_out)}."
