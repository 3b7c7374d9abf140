"""Findings by severity, each with what can be done about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from unblur.gates import sharper_mechanisms
from unblur.report.phrases import FEWEST, are, count, few, fold, listed, share
from unblur.report.verdicts import certain_together
from unblur.risk import Finding

if TYPE_CHECKING:
    from unblur.audits import Audit
    from unblur.leaks import Kind as LeakKind
    from unblur.together import Together

Severity = Literal["grave", "serious", "minor"]
SEVERITIES: tuple[Severity, ...] = ("grave", "serious", "minor")
MEANING: dict[Severity, str] = {
    "grave": "settle this before anything is published",
    "serious": "weigh this, and mend it if you can",
    "minor": "know this",
}
MOST_NAMED = 8
"""So many classes are named in a finding."""
LIKELY = 0.5
"""From this chance on, somebody is called probably alone in a cell."""


@dataclass(frozen=True)
class Advice:
    """A finding, and what to do."""

    severity: Severity
    title: str
    text: str
    remedies: tuple[str, ...]


LEAKS: dict[LeakKind, tuple[Severity, str, str]] = {
    "identifier_column": (
        "grave",
        "A column is different in every row",
        "Whoever knows one of its values finds the row.",
    ),
    "below_k": ("grave", "Classes below k", "Some classes do not have the k records that were promised."),
    "few_suppressed": ("serious", "Fewer suppressed rows than k", "Counted as a class they break k."),
    "observed_values": (
        "serious",
        "A hierarchy file that lists the values that occur",
        "Whoever has the file knows which values there are.",
    ),
    "original_order": ("serious", "Rows in the order of the raw table", "What they were sorted by can be read off."),
    "raw_values": ("minor", "Raw values among the labels", "Some records show a value as it is, not generalized."),
}
"""How bad each kind of leak is, what to call it, and what to say of it in public."""

RAISE_K = "raise k: larger classes need more equal records"
COARSER = "use wider leaves in the hierarchies: a cell that is certain then says less"
GLOBAL = "use global recoding: with one state for all rows, no class empties the cells of another"
SUPPRESS = "suppress the worst classes, and audit what is left"
AGAIN = "none of this is sure to help: anonymize anew, and audit the result"


def advise(audit: Audit, *, limit: float | None, public: bool, reliable: bool) -> tuple[Advice, ...]:
    """Gather what was found, the gravest first."""
    found = [*_fit(audit, public), *_leaks(audit, public)]
    if reliable:
        found += [*_certain(audit, public), *_narrowed(audit, limit, public), *_alone(audit, public)]
        found += _together(audit)
    found += [*_not_done(audit), *_missing_values(audit), *_bounds(audit), *_not_stated(audit)]
    return tuple(sorted(found, key=lambda each: SEVERITIES.index(each.severity)))


def _fit(audit: Audit, public: bool) -> Iterator[Advice]:
    remedies = (
        "check k, the hierarchies and the mechanism in the config against how the release was made",
        "check that no rows were added, removed or changed afterwards",
        "if you do not know how it was made, leave the mechanism out: then only what holds for every local recoding is "
        "assumed",
    )
    replayed = audit.replay is not None and not audit.replay.same
    if others := len(audit.problems) - replayed:
        text = f"It cannot have been made as stated: {count(others, 'reason')}."
        yield Advice("grave", "The release does not fit", text, remedies)
    if audit.replay is not None and replayed:
        rows = "Some rows" if public else count(audit.replay.rows, "row")
        text = f"{rows} {'differs' if rows == '1 row' else 'differ'} from what the mechanism makes of the raw table."
        yield Advice("grave", "The release cannot be made again", text, remedies)


def _certain(audit: Audit, public: bool) -> Iterator[Advice]:
    found = audit.summary.certain_records
    if not found:
        return
    hit = [each for each in audit.everything if _has_certain(each)]
    text = (
        f"{count(found, 'record')} of {audit.release.rows:,} can be placed in a single cell although the label spans "
        f"several: in effect {'it was' if found == 1 else 'they were'} published with narrower labels than was "
        f"decided{_named(hit, public)}."
    )
    yield Advice("grave", "Certain cells", text, (RAISE_K, COARSER, GLOBAL, SUPPRESS, AGAIN))


def _narrowed(audit: Audit, limit: float | None, public: bool) -> Iterator[Advice]:
    """Classes above the limit, and those below it that still lose something; what is only a bound proves neither."""
    known = sorted((each for each in audit.everything if each.bits), key=lambda each: -(each.bits or 0))
    above = [each for each in known if limit is not None and (each.bits or 0) > limit and _bound(each) != "at_least"]
    if above and limit is not None:
        records = sum(each.subject.size for each in above)
        who = f": {count(records, 'record')}, {share(records, audit.release.rows)} of all{_named(above, public)}"
        text = f"{_parts(above)} {are(len(above))} narrowed down more than {fold(limit)}{'' if public else who}."
        yield Advice("serious", "Narrowed down beyond the limit", text, (RAISE_K, GLOBAL, SUPPRESS, AGAIN))
    below = [each for each in known if limit is None or (each.bits or 0) <= limit]
    below = [each for each in below if _bound(each) != "at_most" and not _has_certain(each)]
    if below:
        most = f", at most {fold(below[0].bits or 0)}" if not public or len(below) >= FEWEST else ""
        within = ", within the limit" if limit is not None else ""
        text = f"{_parts(below)} {are(len(below))} narrowed down{most}{within}."
        yield Advice("minor", "Narrowed down", text, (_for_these(below, limit),))


def _for_these(below: Sequence[Finding], limit: float | None) -> str:
    if any(each.refinement and each.refinement.certain_records is None and not each.basic for each in below):
        return "look for certain cells, too: use the exact engine"
    return "no need to act for these alone" if limit is not None else "weigh it: the limit does not look at this"


def _bound(finding: Finding) -> str:
    return finding.refinement.counted if finding.refinement else ""


def _has_certain(finding: Finding) -> bool:
    """Whether somebody's cell is certain although the label spans several."""
    return not finding.basic and finding.refinement is not None and bool(finding.refinement.certain_records)


def _together(audit: Audit) -> Iterator[Advice]:
    """What only all classes together give away."""
    found = audit.together
    if beyond := certain_together(audit):
        text = (
            f"{count(beyond, 'more record')} of {audit.release.rows:,} can be placed in a single cell when all classes "
            "are looked at together, although the label spans several."
        )
        yield Advice("grave", "Certain cells, all classes together", text, (RAISE_K, COARSER, GLOBAL, AGAIN))
    if found is not None and found.bits is not None and found.bits > 1:
        text = f"Seen together, the classes are narrowed down another {fold(found.bits)}{_how(found)}."
        yield Advice("minor", "Together they say more", text, ("bear in mind that the limit goes class by class",))


def _how(found: Together) -> str:
    told = ["by an estimate"] if not found.result.exact else []
    told += ["or even fewer, for not all that is known was used"] if found.result.relaxed else []
    return f", {listed(told)}" if told else ""


def _alone(audit: Audit, public: bool) -> Iterator[Advice]:
    summary = audit.summary
    if summary.singled_out and not public:
        hit = [each for each in audit.everything if each.truth and each.truth.singles and not each.basic]
        text = (
            f"{count(summary.singled_out, 'record')} {are(summary.singled_out)} the only one of the class in a cell, "
            f"says the raw table{_named(hit, public)}. An attacker sees the odds, not the record."
        )
        yield Advice("serious", "Singled out", text, (RAISE_K, COARSER, SUPPRESS))
        return
    chances = [each.refinement.singling_out for each in audit.everything if each.refinement and not each.basic]
    likely = sum(each is not None and each >= LIKELY for each in chances)
    if likely:
        text = (
            f"In {count(likely, 'part')} of the release somebody is probably alone in a cell: the chance is over half."
        )
        yield Advice("minor", "Probably alone", text, (RAISE_K, COARSER))


def _leaks(audit: Audit, public: bool) -> Iterator[Advice]:
    for each in audit.leaks:
        severity, title, general = LEAKS[each.kind]
        if public and each.kind == "original_order":  # known from the raw table only
            continue
        text = general if public else _sentence(each.finding)
        yield Advice(severity, title, text, (each.remedy,))


def _not_done(audit: Audit) -> Iterator[Advice]:
    if left := audit.summary.not_done:
        text = f"{count(left, 'part')} of the release {'was' if left == 1 else 'were'} not analysed."
        yield Advice("serious", "Not finished", text, ("run the audit again with more time (--budget) or --jobs",))


def _missing_values(audit: Audit) -> Iterator[Advice]:
    if audit.outliers and (missing := audit.release.config.missing):
        text = (
            f"{count(missing, 'record')} {'was' if missing == 1 else 'were'} suppressed for missing or impossible "
            "values, so nothing is claimed about any suppressed record."
        )
        remedy = "leave such rows out of the table before it is anonymized, or give what is missing a value of its own"
        yield Advice("serious", "Suppressed records not analysed", text, (remedy,))


def _bounds(audit: Audit) -> Iterator[Advice]:
    counted = [each.refinement.counted for each in audit.everything if each.refinement]
    if most := counted.count("at_most"):
        text = f"{count(most, 'count')} left a rule out that would take too long: the truth may be worse, never better."
        yield Advice("minor", "Bounds instead of counts", text, ("use hierarchies with fewer children to a node",))
    if least := counted.count("at_least"):
        text = f"{count(least, 'enumeration')} did not end in time: what is lost there is overstated."
        yield Advice("minor", "Bounds instead of counts", text, ("use the exact engine, or more time",))


def _not_stated(audit: Audit) -> Iterator[Advice]:
    sharper = sharper_mechanisms(audit)
    if sharper:
        text = (
            "Only what holds for every local recoding was assumed, and "
            f"{count(sharper, 'way')} to make such a release would give away more."
        )
        yield Advice("serious", "How it was made is not stated", text, ("state the mechanism in the config",))
    elif not audit.stated and not audit.alternatives:
        text = (
            "Only what holds for every local recoding was assumed, and no other way was tried: it may give away more."
        )
        yield Advice("serious", "How it was made is not stated", text, ("state the mechanism in the config",))


def _parts(findings: Sequence[Finding]) -> str:
    classes = sum(each.number is not None for each in findings)
    told = [count(classes, "class")] if classes else []
    return listed([*told, *(["the suppressed records"] * (classes < len(findings)))])


def _named(findings: Sequence[Finding], public: bool) -> str:
    """Name classes in brackets; nobody in the public version."""
    if public or not findings:
        return ""
    numbers = [f"{each.number:,}" for each in findings if each.number]
    told = [*few(numbers, MOST_NAMED)]
    told += [f"{len(numbers) - len(told):,} more"] if len(numbers) > len(told) else []
    told += ["the suppressed records"] if len(findings) > len(numbers) else []
    return f" ({('class ' if len(numbers) == 1 else 'classes ') if numbers else ''}{listed(told)})"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
