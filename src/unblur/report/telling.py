"""What all classes say together, for a report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log2
from typing import TYPE_CHECKING

from unblur.report.figures import certain_jointly
from unblur.report.phrases import by_digits, count, fold, percent

if TYPE_CHECKING:
    from unblur.audits import Audit
    from unblur.joint.standing import Standing
    from unblur.together import Together as Figures

NOTHING_DRAWN = (
    "This is a bound, not a count: no table that was drawn for an estimate is plausible. A larger budget may tell more."
)
MOST_CLASSES = 10
"""So many classes are shown among the others."""


@dataclass(frozen=True)
class Member:
    """A class among the others, in a row of a table."""

    name: str
    alone: str
    """How far its own rules narrow it down."""
    together: str
    """How far all classes together do."""
    certain: str
    single: str


@dataclass(frozen=True)
class Together:
    """What all classes say together."""

    rows: tuple[tuple[str, str], ...]
    """What is left, from the labels alone to all that is known, each with its number of data sets."""
    words: tuple[str, ...]
    """How far to rely on it, and what is certain, a sentence each."""
    members: tuple[Member, ...]
    """The classes about which the others say most; none in the public version."""
    estimated: bool


def tell_together(audit: Audit, *, public: bool) -> Together | None:
    """Put the joint attack into words; None if there is nothing to tell."""
    found = audit.together
    if found is None:
        return None
    if found.log10_at_most is not None:
        rows = (*_open_rows(found), ("Together there remain", f"at most {by_digits(found.log10_at_most)}"))
        return Together(rows, (NOTHING_DRAWN,), (), estimated=True)
    if found.log10_joint is None or found.bits is None:
        return None
    estimated = not found.result.exact
    prefix = ("at most " if found.result.relaxed else "") + ("about " if estimated else "")
    rows = (
        *_open_rows(found),
        (f"Together there remain{' (an estimate)' if estimated else ''}", f"{prefix}{by_digits(found.log10_joint)}"),
    )
    members = () if public else tuple(_members(found))
    return Together(rows, tuple(_words(audit, found)), members, estimated)


def _open_rows(found: Figures) -> tuple[tuple[str, str], ...]:
    return (
        ("The labels leave open", by_digits(found.log10_published)),
        ("Class by class there remain", by_digits(found.log10_class)),
    )


def _members(found: Figures) -> Iterator[Member]:
    ranked = sorted(found.standings, key=lambda each: (-(found.factor(each) or 1), each.number))
    for each in ranked[:MOST_CLASSES]:
        ratio, factor = found.ratio(each), found.factor(each)
        if ratio is not None and factor is not None and factor > 1:
            yield Member(
                _name(found, each),
                fold(max(0.0, log2(ratio) - log2(factor))),
                fold(log2(ratio)),
                f"{sum(each.certain.values()):,}",
                "–" if each.singling_out is None else percent(each.singling_out),
            )


def _name(found: Figures, standing: Standing) -> str:
    classes = len(found.result.program.attack.release.classes)
    return f"Class {standing.number + 1:,}" if standing.number < classes else "Suppressed records"


def _words(audit: Audit, found: Figures) -> Iterator[str]:
    if found.bits:
        about = "about " if not found.result.exact else ""
        yield f"Seeing all classes together narrows them down another {about}{fold(found.bits)}."
    else:
        yield "Seeing all classes together takes nothing away beyond what they say one by one."
    if interval := found.result.range:
        between = f"between {by_digits(interval.low)} and {by_digits(interval.high)}"
        yield f"This is an estimate, not a count: {between}, but for a chance of {percent(interval.error)}."
    for reason in found.result.program.relaxed:
        yield f"At most so many, perhaps fewer: {reason}."
    certain, alone = certain_jointly(audit), audit.summary.certain_records
    if certain is None:
        yield "Whose cell is certain when all classes are seen together was not found out."
    elif certain:
        already = f", {alone:,} of them already class by class" if alone else ""
        yield f"{count(certain, 'record')} can be placed in a single cell with certainty{already}."
    else:
        yield "Nobody's cell is certain, as far as these rules tell."
