"""The first screen: three or four figures in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, log2
from typing import TYPE_CHECKING

from unblur.report.phrases import amount, are, count, one_in, remaining, share
from unblur.risk import Finding

if TYPE_CHECKING:
    from unblur.audits import Audit


@dataclass(frozen=True)
class Figure:
    """A number to be seen at once, and the sentence that it stands in."""

    number: str
    text: str


def figures(audit: Audit, *, public: bool, reliable: bool) -> tuple[Figure, ...]:
    """Gather the figures; if no figure is reliable, those that say what there is and what speaks against it."""
    if not reliable:
        return tuple(_of_unfit(audit))
    found = [_worst(audit, public), _certain(audit), *_typical(audit), *_alone(audit, public), _suppressed(audit)]
    return tuple(found[:4])


def worst(audit: Audit) -> Finding | None:
    """The class, or the outliers, that lost most; the first of several; None if nobody lost anything."""
    known = [each for each in audit.everything if each.bits]
    return max(known, key=lambda each: each.bits or 0.0, default=None)


def _of_unfit(audit: Audit) -> Iterator[Figure]:
    release, wrong = audit.release, [each for each in audit.everything if each.refinement and not each.ratio]
    rows = f"in {count(len(release.classes), 'class')}, with k = {release.config.k:,}"
    yield Figure(count(release.rows, "row"), f"were read {rows}; {count(release.outliers, 'record')} suppressed.")
    if audit.problems:
        text = "why it cannot have been made as stated: see Fit and leaks, below."
        yield Figure(count(len(audit.problems), "reason"), text)
    if wrong:
        yield Figure(count(len(wrong), "part"), "of the release for which no possible raw data set is left.")


def _worst(audit: Audit, public: bool) -> Figure:
    found = worst(audit)
    if found is None or found.refinement is None:
        looked = "" if any(each.refinement for each in audit.everything) else " as far as was looked"
        return Figure("Nothing", f"is taken away from what the labels leave open{looked}.")
    if public:
        text = "raw data sets remains, of those that its label seems to leave open, in the group that suffers most."
        return Figure(remaining(found), f"of the possible {text}")
    who = "suppressed records" if found.number is None else f"records of class {found.number:,}"
    before, after = amount(found.published), amount(found.refinement.plausible)
    size = f"The {found.subject.size:,} {who} were" if found.subject.size > 1 else f"The only {who[:7]}{who[8:]} was"
    bound = {"exact": "", "at_most": "at most ", "at_least": "at least "}[found.refinement.counted]
    return Figure(
        remaining(found), f"{size} published as one of {before} possible raw data sets; {bound}{after} remain."
    )


def _certain(audit: Audit) -> Figure:
    found = audit.summary.certain_records
    if found is None:
        return Figure("Unknown", "whether anybody's cell is certain: this was not looked for.")
    if not found:
        return Figure("Nobody", "can be placed in a single cell with certainty where the label spans several.")
    text = f"can be placed in a single cell with certainty, although {'its' if found == 1 else 'their'} label spans"
    return Figure(count(found, "record"), f"of {audit.release.rows:,} {text} several.")


def _typical(audit: Audit) -> Iterator[Figure]:
    """The median over the classes of several cells: for half of them it is as bad, or worse."""
    middle, single = audit.summary.over_compound.median, audit.summary.basic
    others = f" {count(single, 'other class')} {are(single)} a single cell: the label says all there is to say."
    if middle is not None:
        classes = sum(each.ratio is not None for each in audit.classes if not each.basic)
        analysed = "" if classes == audit.summary.compound else "analysed "
        among = f"the only {analysed}class" if classes == 1 else f"the middle one of {classes:,} {analysed}classes"
        number = "All" if middle <= 1 else one_in(log2(middle)) if middle < inf else "Hardly any"
        verb = "remain" if number == "All" else "remains"
        yield Figure(number, f"of the data sets {verb} in {among} of several cells.{others if single else ''}")
    elif single:
        yield Figure("All classes", "are single cells: their labels say all there is to say.")


def _alone(audit: Audit, public: bool) -> Iterator[Figure]:
    """Who stands alone: by the raw table, if it was at hand."""
    found = audit.summary.singled_out
    if found is not None and not public:
        who = count(found, "record") if found else "Nobody"
        text = (
            "are each the only one of their class in a cell" if found > 1 else "is the only one of its class in a cell"
        )
        yield Figure(who, f"{text}, as the raw table shows.")


def _suppressed(audit: Audit) -> Figure:
    outliers, rows = audit.release.outliers, audit.release.rows
    if audit.outliers is None:
        return Figure("Nobody", "is suppressed: every record is in a class.")
    left = audit.outliers
    told = f" {remaining(left)} of the data sets that they seem to leave open." if left.bits else ""
    kept = f" What is known of the others leaves{told}" if told else ""
    verb = "is" if outliers == 1 else "are"
    return Figure(count(outliers, "record"), f"{verb} suppressed, {share(outliers, rows)} of all.{kept}")
