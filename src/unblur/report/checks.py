"""Fit and leaks: what was checked, and how each check came out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from unblur.release import Release
from unblur.report.advice import LEAKS
from unblur.report.phrases import count

if TYPE_CHECKING:
    from unblur.audits import Audit

Outcome = Literal["good", "bad", "skipped"]
SIGNS: dict[Outcome, str] = {"good": "✓ fine", "bad": "✕ found", "skipped": "– not checked"}


@dataclass(frozen=True)
class Check:
    """A question, and the answer."""

    question: str
    outcome: Outcome
    answer: str

    @property
    def sign(self) -> str:
        return SIGNS[self.outcome]


def fit_checks(audit: Audit, *, public: bool) -> tuple[Check, ...]:
    """Whether the release can have been made as stated."""
    found = [_sizes(audit), _feasible(audit), *_jointly_feasible(audit)]
    with_table = [_truth(audit, public), *_truth_together(audit), _replay(audit, public)]
    # In public the raw table is silent, unless it speaks against the release: then nothing else can be relied on.
    found += [each for each in with_table if each.outcome == "bad" or not public]
    if audit.misfits:
        found.append(Check("Can the mechanism have made it as a whole?", "bad", "No: see the reasons below."))
    return tuple(found)


def _sizes(audit: Audit) -> Check:
    question, small = f"Has every class at least k = {audit.release.config.k:,} records?", audit.summary.classes_below_k
    if small:
        return Check(question, "bad", f"No: {count(small, 'class')} {'has' if small == 1 else 'have'} fewer.")
    return Check(question, "good", "Yes." if audit.classes else "There are no classes.")


def _feasible(audit: Audit) -> Check:
    question = "Is some raw data set left for every part of the release?"
    looked = [each.refinement for each in audit.everything if each.refinement]
    if none := sum(not each.feasible for each in looked):
        return Check(question, "bad", f"No: for {count(none, 'part')} nothing is left.")
    left = (
        f", as far as it was analysed ({count(audit.summary.not_done, 'part')} not)" if audit.summary.not_done else ""
    )
    return Check(question, "good" if looked else "skipped", f"Yes{left}." if looked else "Nothing was analysed.")


def _jointly_feasible(audit: Audit) -> Iterator[Check]:
    question = "Is some raw data set left for all parts together?"
    if audit.together is not None:
        left = audit.together.feasible
        yield Check(question, "good" if left else "bad", "Yes." if left else "No: nothing is left.")


def _truth_together(audit: Audit) -> Iterator[Check]:
    question = "Is the raw table among those left for all parts together?"
    if audit.together is not None and audit.together.truth_feasible is not None:
        left = audit.together.truth_feasible
        yield Check(question, "good" if left else "bad", "Yes." if left else "No: the release was not made as stated.")


def _truth(audit: Audit, public: bool) -> Check:
    question = "Is the raw table's own placement among those left?"
    known = [each.truth for each in audit.everything if each.truth]
    if not known:
        return Check(question, "skipped", "The raw table was not given.")
    if wrong := sum(not each.feasible for each in known):
        where = "" if public else f", not in {count(wrong, 'part')}"
        return Check(question, "bad", f"No{where}: the release was not made as stated.")
    return Check(question, "good", "Yes, everywhere.")


def _replay(audit: Audit, public: bool) -> Check:
    question = "Does the mechanism make this release of the raw table?"
    if audit.replay is None:
        return Check(question, "skipped", "A replay was not asked for.")
    if audit.replay.same:
        return Check(question, "good", "Yes, row by row.")
    if public:
        return Check(question, "bad", "No: the release was not made as stated.")
    first = f", the first is row {audit.replay.first:,}" if audit.replay.first else ""
    return Check(question, "bad", f"No: {count(audit.replay.rows, 'row')} differ{first}.")


def leak_checks(audit: Audit, *, public: bool) -> tuple[Check, ...]:
    """What else may give something away around the classes."""
    return tuple(_leak_checks(audit, public))


def _leak_checks(audit: Audit, public: bool) -> Iterator[Check]:
    bare = type(audit.release) is Release
    for kind, (_, title, _) in LEAKS.items():
        found = [each for each in audit.leaks if each.kind == kind]
        if kind == "original_order" and (public or not found):
            if not public:
                yield Check(title, "skipped", "Only the raw table, matched by position, can tell.")
        elif found:
            told = " ".join(f"{each.finding[:1].upper()}{each.finding[1:]}." for each in found)
            yield Check(title, "bad", "Found." if public else told)
        elif kind == "identifier_column" and bare:
            yield Check(title, "skipped", "The published rows were not at hand.")
        else:
            yield Check(title, "good", "Nothing found.")
