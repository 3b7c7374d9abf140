"""The verdict: one sentence with its limit.

The limit, unless gates are given: nobody's cell may be certain, and no class may be narrowed down more than 100-fold.
A certain cell is a published label narrower than the one that was chosen: whoever relied on the wider one is let down,
be it one person only. A factor of 100 over a class of five is about 2.5 per record: clear of the small factors that any
class of several cells has, and far below what it takes to pin people down. Neither number makes a release safe.

What was not found out outweighs what was. A release that does not fit, or about which nothing is assumed, cannot be
judged; nor can one that stays within the limit while something is open (`gates.doubts`): a part was not analysed,
counts are mere bounds, the mechanism was not stated. Above the limit stays above, whatever is missing. And what lies
beside the limit is said: gates that do not ask for certain cells do not make them harmless.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Literal

from unblur.gates import Gate, doubts
from unblur.report.figures import certain_jointly, worst
from unblur.report.phrases import are, bits_of, count, fold, listed

if TYPE_CHECKING:
    from unblur.audits import Audit

Kind = Literal["above", "within", "open"]
DEFAULT = (Gate("certain_records", ">", 0), Gate("max_ratio", ">", 100))
GRAVE_LEAKS = ("identifier_column", "below_k")
"""Leaks that no limit excuses."""
TITLES: dict[Kind, str] = {"above": "Above the limit", "within": "Within the limit", "open": "Cannot be judged"}
SYMBOLS: dict[Kind, str] = {"above": "✕", "within": "✓", "open": "?"}


@dataclass(frozen=True)
class Verdict:
    """What the audit comes to."""

    kind: Kind
    sentence: str
    reliable: bool
    """Whether the figures mean anything: the release fits, and something was assumed."""

    @property
    def title(self) -> str:
        return TITLES[self.kind]

    @property
    def symbol(self) -> str:
        return SYMBOLS[self.kind]


def judge(audit: Audit, gates: Sequence[Gate] = (), *, public: bool = False) -> Verdict:
    """Judge an audit against gates, or against the default limit."""
    if reason := _unfit(audit, public):
        return Verdict("open", f"This release cannot be judged: {reason}.", reliable=False)
    chosen = tuple(gates) or DEFAULT
    broken = [each for each in chosen if each.holds(audit)]
    leaks = [f"{count(number, 'grave leak')} {are(number)} around the classes" for number in _grave_leaks(audit)]
    if broken or (leaks and not gates):
        told = [f"{_state(each, audit, public)} (allowed: {_allowed(each)})" for each in broken]
        left = f"; {_not_done(audit)}" if audit.summary.not_done else ""
        said = f"This release gives away more than the limit allows: {listed([*told, *leaks])}{left}."
        return Verdict("above", said, reliable=True)
    told = [f"{_state(each, audit, public)} (allowed: {_allowed(each)})" for each in chosen if _known(each, audit)]
    beside = [*leaks, *_not_asked(audit, chosen, public)]
    but = f"; but {listed(beside)}" if beside else ""
    if missing := list(dict.fromkeys(reason for each in chosen for reason in doubts(each.field, audit))):
        kept = f"; as far as can be told, {listed(told)}" if told else ""
        return Verdict("open", f"This release cannot be judged: {listed(missing)}{kept}{but}.", reliable=True)
    return Verdict("within", f"This release stays within the limit: {listed(told)}{but}.", reliable=True)


def limit_in_bits(gates: Sequence[Gate]) -> float | None:
    """The bits that no class may lose, if the limit says so."""
    for each in tuple(gates) or DEFAULT:
        if each.field in ("max_ratio", "max_bits") and each.sign in (">", ">="):
            return bits_of(each.number) if each.field == "max_ratio" else each.number
    return None


def _unfit(audit: Audit, public: bool) -> str:
    reasons = len(audit.problems)
    replayed = audit.replay is not None and not audit.replay.same
    if audit.replay is not None and replayed and reasons == 1:
        rows = "" if public else f" in {count(audit.replay.rows, 'row')}"
        return f"made again from the raw table it differs{rows}, so it was not made as stated"
    if reasons:
        said = "it does not fit what was said about how it was made"
        return f"{said} ({count(reasons, 'reason')}), so no figure can be relied on"
    if audit.mechanism.name == "unknown":
        return "nothing is assumed about how it was made, so only the fit and what lies around the classes was checked"
    return ""


def _grave_leaks(audit: Audit) -> list[int]:
    """How many leaks no limit excuses, if there are any."""
    found = sum(each.kind in GRAVE_LEAKS for each in audit.leaks)
    return [found] if found else []


def _not_asked(audit: Audit, gates: Sequence[Gate], public: bool) -> Iterator[str]:
    """Say what was found, or not found out, about certain cells and ratios that no gate asks for."""
    fields = {each.field for each in gates}
    certain, largest = DEFAULT
    beyond = certain_together(audit)
    if certain.field not in fields:
        if audit.summary.certain_records:
            yield f"{_state(certain, audit, public)}, which the limit does not look at"
        elif any(doubts(certain.field, audit)):
            yield "the limit does not look at certain cells, and whether there are any was not found out"
    if beyond:
        yield f"all classes together place {count(beyond, 'record')} in single cells, which the limit does not look at"
    if not fields & {"max_ratio", "max_bits"}:
        if audit.summary.max_bits:
            yield f"{_state(largest, audit, public)}, which the limit does not look at"
        elif any(doubts(largest.field, audit)):
            yield "the limit does not look at how far classes are narrowed down, and this was not found out"


def certain_together(audit: Audit) -> int:
    """Count the records whose cell only all classes together make certain, as far as this is known."""
    found = certain_jointly(audit)
    return max(0, (found or 0) - (audit.summary.certain_records or 0))


def _known(gate: Gate, audit: Audit) -> bool:
    return getattr(audit.summary, gate.field) is not None


def _not_done(audit: Audit) -> str:
    left = audit.summary.not_done
    return f"{count(left, 'part')} of it {'was' if left == 1 else 'were'} not analysed"


def _state(gate: Gate, audit: Audit, public: bool) -> str:
    """Say where a field stands."""
    value, summary = getattr(audit.summary, gate.field), audit.summary
    if gate.field == "certain_records":
        return f"{count(value, 'record')} can be placed in a single cell with certainty" if value else _NOBODY
    if gate.field in ("max_ratio", "max_bits"):
        bits = summary.max_bits
        if bits is None or bits <= 0:
            found_out = not any(doubts(gate.field, audit))
            return "no class is narrowed down at all" if found_out else "no class was found to be narrowed down"
        amount = fold(bits) if gate.field == "max_ratio" else f"by {bits:,.1f} bits"
        most = worst(audit)
        who = "the suppressed records are" if most and most.number is None else "the class that suffers most is"
        who = "the part that suffers most is" if public else who
        return f"{who} narrowed down {amount}"
    if gate.field == "median_ratio":
        return f"the middle class is narrowed down {fold(bits_of(value)) if value < inf else 'beyond measure'}"
    if gate.field == "singled_out":
        told = count(value, "record") if value and not public else "some records" if value else "nobody"
        return f"{told} {'is' if value in (0, 1) and not (public and value) else 'are'} singled out"
    what = "record" if gate.field == "suppressed" else "class"
    end = "suppressed" if gate.field == "suppressed" else "below k"
    return f"{count(value, what)} {are(value)} {end}"


_NOBODY = "nobody's cell is certain"


def _allowed(gate: Gate) -> str:
    number = fold(bits_of(gate.number)) if gate.field.endswith("ratio") and gate.number > 0 else f"{gate.number:,g}"
    if gate.field == "max_bits":
        number += " bits"
    if gate.sign == ">" and not gate.number:
        return "none"
    words = {">": "at most", ">=": "less than", "<": "at least", "<=": "more than", "==": "not", "!=": "just"}
    return f"{words[gate.sign]} {number}"
