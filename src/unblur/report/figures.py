"""The first screen: a few figures in plain words. What was not found out is called unknown, never nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, log2
from typing import TYPE_CHECKING

from unblur.gates import doubts
from unblur.report.phrases import amount, are, count, listed, one_in, remaining, share
from unblur.risk import Finding
from unblur.together import MOST_CLASSES

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
    found = [_worst(audit, public), _certain(audit), *_typical(audit), *_alone(audit, public)]
    return (*[*found, _suppressed(audit, public)][:4], *_together(audit))


def worst(audit: Audit) -> Finding | None:
    """The class, or the outliers, that lost most; the first of several; None if nobody lost anything."""
    known = [each for each in audit.everything if each.bits]
    return max(known, key=lambda each: each.bits or 0.0, default=None)


def is_intact(finding: Finding) -> bool:
    """Whether it is known that nothing is taken away from a class; a single cell may lose raw values, too."""
    return finding.bits == 0 and finding.refinement is not None and finding.refinement.counted != "at_most"


def certain_jointly(audit: Audit) -> int | None:
    """Records whose cell is certain when all classes are looked at together; None if not looked for."""
    if audit.together is None or len(audit.release.classes) > MOST_CLASSES:
        return None
    return audit.together.certain_records


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
    found, reasons = worst(audit), list(doubts("max_bits", audit))
    if found is None or found.refinement is None:
        if reasons:
            return Figure("Unknown", f"what is taken away from what the labels leave open: {listed(reasons)}.")
        return Figure("Nothing", "is taken away from what the labels leave open.")
    if public:
        analysed = ", of those analysed" if audit.summary.not_done else ""
        text = "raw data sets remains, of those that its label seems to leave open, in the group that suffers most"
        return Figure(remaining(found), f"of the possible {text}{analysed}.")
    who = "suppressed records" if found.number is None else f"records of class {found.number:,}"
    before, after = amount(found.published), amount(found.refinement.plausible)
    size = f"The {found.subject.size:,} {who} were" if found.subject.size > 1 else f"The only {who[:7]}{who[8:]} was"
    bound = {"exact": "", "at_most": "at most ", "at_least": "at least "}[found.refinement.counted]
    return Figure(
        remaining(found), f"{size} published as one of {before} possible raw data sets; {bound}{after} remain."
    )


def _certain(audit: Audit) -> Figure:
    found, reasons = audit.summary.certain_records, list(doubts("certain_records", audit))
    if not found and reasons:
        return Figure("Unknown", f"whether anybody's cell is certain: {listed(reasons)}.")
    if not found:
        return Figure("Nobody", "can be placed in a single cell with certainty where the label spans several.")
    text = f"can be placed in a single cell with certainty, although {'its' if found == 1 else 'their'} label spans"
    more = " or more" if reasons else ""
    return Figure(f"{count(found, 'record')}{more}", f"of {audit.release.rows:,} {text} several.")


def _typical(audit: Audit) -> Iterator[Figure]:
    """The median over the classes of several cells: for half of them it is as bad, or worse."""
    middle, single, several = audit.summary.over_compound.median, audit.summary.basic, audit.summary.compound
    if middle is not None:
        classes = sum(each.ratio is not None for each in audit.classes if not each.basic)
        analysed = "" if classes == several else "analysed "
        among = f"the only {analysed}class" if classes == 1 else f"the middle one of {classes:,} {analysed}classes"
        number = "All" if middle <= 1 else one_in(log2(middle)) if middle < inf else "Hardly any"
        verb = "remain" if number == "All" else "remains"
        others = f" {count(single, 'other class')} {are(single)} a single cell{_of_single_cells(audit)}."
        yield Figure(number, f"of the data sets {verb} in {among} of several cells.{others if single else ''}")
    elif several:
        none = "it was not" if several == 1 else "none of them was"
        yield Figure("Unknown", f"what remains in the {count(several, 'class')} of several cells: {none} analysed.")
    elif single:
        yield Figure("All classes", f"are single cells{_of_single_cells(audit)}.")


def _of_single_cells(audit: Audit) -> str:
    """What there is to say of the classes of a single cell."""
    found = [each for each in audit.classes if each.basic]
    if all(map(is_intact, found)):
        return ": the label says all there is to say"
    lost, open_ = sum(bool(each.bits) for each in found), sum(not each.bits and not is_intact(each) for each in found)
    told = [f"in {lost:,} of them not all raw data sets remain"] if lost else []
    told += [f"what is left of {open_:,} of them is not known"] if open_ else []
    return f"; {listed(told)}"


def _alone(audit: Audit, public: bool) -> Iterator[Figure]:
    """Who stands alone: by the raw table, if it was at hand."""
    found = audit.summary.singled_out
    if found is not None and not public:
        who = count(found, "record") if found else "Nobody"
        text = (
            "are each the only one of their class in a cell" if found > 1 else "is the only one of its class in a cell"
        )
        yield Figure(who, f"{text}, as the raw table shows.")


def _suppressed(audit: Audit, public: bool) -> Figure:
    outliers, rows = audit.release.outliers, audit.release.rows
    if audit.outliers is None:
        return Figure("Nobody", "is suppressed: every record is in a class.")
    left = audit.outliers
    told = f" {remaining(left)} of the data sets that they seem to leave open." if left.bits and not public else ""
    kept = f" What is known of the others leaves{told}" if told else ""
    verb = "is" if outliers == 1 else "are"
    return Figure(count(outliers, "record"), f"{verb} suppressed, {share(outliers, rows)} of all.{kept}")


def _together(audit: Audit) -> Iterator[Figure]:
    """What all classes say together, if it is much."""
    found = audit.together
    if found is None or found.bits is None or found.bits <= 1:
        return
    bound = " or fewer" if found.result.relaxed else ""
    how = "" if found.result.exact else ", by an estimate"
    text = "of the data sets that the classes leave one by one remains when all are looked at together"
    yield Figure(f"{one_in(found.bits)}{bound}", f"{text}{how}.")
