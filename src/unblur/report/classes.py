"""The table of classes, the worst first, in pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from unblur.report.phrases import amount, count, kept, narrowed, percent, shown
from unblur.risk import Finding

if TYPE_CHECKING:
    from unblur.audits import Audit

AT_ONCE = 15
"""So many classes are seen at once; the others are folded away."""
PAGE = 250
"""So many stand in each fold."""
SHORT, LONGEST = 24, 60
"""Labels up to so long are not broken; those longer than the second are cut: the card and the JSON have the whole."""


@dataclass(frozen=True)
class Row:
    """A class in the table."""

    number: int | None
    labels: tuple[str, ...]
    size: int
    cells: str
    published: str
    plausible: str
    fold: str
    bits: str
    certain: str
    alone: str
    singled_out: str


@dataclass(frozen=True)
class Page:
    """Rows that are seen or folded together."""

    title: str
    rows: tuple[Row, ...]


def ranked(audit: Audit) -> list[Finding]:
    """The classes, those without any placement first, then those that lost most, then those not analysed."""
    return sorted(audit.classes, key=_rank)


def _rank(finding: Finding) -> tuple[int, float, int]:
    left = finding.refinement
    place = 2 if left is None else 1 if left.feasible else 0
    return place, -(finding.bits or 0.0), finding.number or 0


def pages(audit: Audit) -> tuple[Page, ...]:
    """Gather the rows: a few at once, the others folded."""
    return tuple(_pages([row(each) for each in ranked(audit)]))


def _pages(rows: Sequence[Row]) -> Iterator[Page]:
    first = AT_ONCE if len(rows) > AT_ONCE + 5 else len(rows)
    edges = [0, *range(first, len(rows), PAGE), len(rows)] if rows else []
    for start, end in pairwise(edges):
        if start < end:
            yield Page(_title(start, end, len(rows)), tuple(rows[start:end]))


def _title(start: int, end: int, whole: int) -> str:
    if end - start < whole:
        return f"Classes {start + 1:,} to {end:,} of {whole:,}"
    return "The only class" if whole == 1 else f"All {count(whole, 'class')}"


def row(finding: Finding) -> Row:
    """Put a class into texts."""
    left, truth = finding.refinement, finding.truth
    certain = left.certain_records if left else None
    alone = left.singling_out if left else None
    return Row(
        finding.number,
        tuple(map(compact, finding.labels)),
        finding.subject.size,
        f"{finding.cells:,}",
        amount(finding.published),
        amount(left.plausible) if left else "–",
        narrowed(finding),
        "–" if finding.bits is None else f"{finding.bits:,.1f}",
        "–" if finding.basic or certain is None else f"{certain:,}",
        "–" if finding.basic or alone is None else percent(alone),
        "–" if finding.basic or truth is None else f"{truth.singles:,}",
    )


def compact(label: str) -> str:
    """Keep a label on its line if it is short, and cut it if it is very long."""
    text = shown(label)
    if len(text) <= SHORT:
        return kept(text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
