"""The verdict: one sentence with its limit.

The limit, unless gates are given: nobody's cell may be certain, and no class may be narrowed down more than 100-fold.
A certain cell is a published label narrower than the one that was chosen: whoever relied on the wider one is let down,
be it one person only. A factor of 100 over a class of five is about 2.5 per record: clear of the small factors that any
class of several cells has, and far below what it takes to pin people down. Neither number makes a release safe.

What was not found out outweighs what was. A release that does not fit, or about which nothing is assumed, cannot be
judged; nor can one that stays within the limit while a part was not analysed, counts are mere bounds, or the mechanism
was not stated and others that may have made it would give away more. Above the limit stays above, whatever is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Literal

from unblur.gates import OPERATORS, Gate
from unblur.report.figures import worst
from unblur.report.phrases import are, bits_of, count, fold, listed

if TYPE_CHECKING:
    from unblur.audits import Audit

Kind = Literal["above", "within", "open"]
DEFAULT = (Gate("certain_records", ">", 0), Gate("max_ratio", ">", 100))
GRAVE_LEAKS = ("identifier_column", "below_k")
"""Leaks that no limit excuses."""
TITLES: dict[Kind, str] = {"above": "Above the limit", "within": "Within the limit", "open": "Cannot be judged"}
SYMBOLS: dict[Kind, str] = {"above": "✕", "within": "✓", "open": "?"}
MARGIN = 0.05
"""Bits by which another mechanism must take away more to count as more."""


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
    broken = [each for each in chosen if _is_broken(each, audit)]
    leaks = sum(each.kind in GRAVE_LEAKS for each in audit.leaks)
    if broken or (leaks and not gates):
        told = [f"{_state(each, audit, public)} (allowed: {_allowed(each)})" for each in broken]
        told += [f"{count(leaks, 'grave leak')} {are(leaks)} around the classes"] * bool(leaks)
        left = f"; {_not_done(audit)}" if audit.summary.not_done else ""
        said = f"This release gives away more than the limit allows: {listed(told)}{left}."
        return Verdict("above", said, reliable=True)
    told = [f"{_state(each, audit, public)} (allowed: {_allowed(each)})" for each in chosen if _known(each, audit)]
    if missing := list(_missing(audit, chosen)):
        kept = f"; as far as can be told, {listed(told)}" if told else ""
        return Verdict("open", f"This release cannot be judged: {listed(missing)}{kept}.", reliable=True)
    beside = f"; but {count(leaks, 'grave leak')} {are(leaks)} around the classes" if leaks else ""
    return Verdict("within", f"This release stays within the limit: {listed(told)}{beside}.", reliable=True)


def limit_in_bits(gates: Sequence[Gate]) -> float | None:
    """The bits that no class may lose, if the limit says so."""
    for each in tuple(gates) or DEFAULT:
        if each.field in ("max_ratio", "max_bits") and each.sign in (">", ">="):
            return bits_of(each.number) if each.field == "max_ratio" else each.number
    return None


def _unfit(audit: Audit, public: bool) -> str:
    if audit.problems:
        said = "it does not fit what was said about how it was made"
        reasons = len(audit.problems)
        return f"{said} ({count(reasons, 'reason')}), so no figure can be relied on"
    if audit.replay and not audit.replay.same and not public:
        rows = count(audit.replay.rows, "row")
        return f"made again from the raw table it differs in {rows}, so it was not made as stated"
    if audit.replay and not audit.replay.same:
        return "it was not made as stated, so no figure can be relied on"
    if audit.mechanism.name == "unknown":
        return "nothing is assumed about how it was made, so only the fit and what lies around the classes was checked"
    return ""


def _is_broken(gate: Gate, audit: Audit) -> bool:
    value = getattr(audit.summary, gate.field)
    if value is None or not OPERATORS[gate.sign](value, gate.number):
        return False
    # Of a search that was cut short, the ratio is the most that it can be: it proves no excess.
    return not (_counts(gate) and _cut_short(audit))


def _known(gate: Gate, audit: Audit) -> bool:
    return getattr(audit.summary, gate.field) is not None


def _counts(gate: Gate) -> bool:
    """Whether a field rests on the counts of the attack."""
    return gate.field not in ("suppressed", "classes_below_k", "singled_out")


def _cut_short(audit: Audit) -> bool:
    return any(each.refinement and each.refinement.counted == "at_least" for each in audit.everything)


def _missing(audit: Audit, gates: Sequence[Gate]) -> Iterator[str]:
    """Say what must be known before the release can be called within the limit."""
    if any(map(_counts, gates)):
        if audit.summary.not_done:
            yield _not_done(audit)
        counted = [each.refinement.counted for each in audit.everything if each.refinement]
        bounds = len(counted) - counted.count("exact")
        if bounds:
            yield f"{count(bounds, 'count')} {are(bounds)} only a bound"
        if audit.outliers and audit.release.config.missing:
            yield "nothing is claimed about the suppressed records, some of which had missing values"
        if sharper_mechanisms(audit):
            yield "how it was made was not stated, and some ways that fit would give away more"
    unknown = [each.field for each in gates if not _known(each, audit)]
    if "certain_records" in unknown and not audit.summary.not_done:
        yield "certain cells were not looked for"
    if "singled_out" in unknown:
        yield "the raw table was not at hand"


def _not_done(audit: Audit) -> str:
    left = audit.summary.not_done
    return f"{count(left, 'part')} of it {'was' if left == 1 else 'were'} not analysed"


def sharper_mechanisms(audit: Audit) -> int:
    """Count the mechanisms that may have made the release and would take away more, if none was stated."""
    own = sum(each.bits or 0.0 for each in audit.everything)
    return sum(each.bits is not None and each.bits > own + MARGIN for each in audit.alternatives)


def _state(gate: Gate, audit: Audit, public: bool) -> str:
    """Say where a field stands."""
    value, summary = getattr(audit.summary, gate.field), audit.summary
    if gate.field == "certain_records":
        return f"{count(value, 'record')} can be placed in a single cell with certainty" if value else _NOBODY
    if gate.field in ("max_ratio", "max_bits"):
        bits = summary.max_bits
        if bits is None or bits <= 0:
            return "no class is narrowed down at all"
        amount = fold(bits) if gate.field == "max_ratio" else f"by {bits:,.1f} bits"
        most = worst(audit)
        who = "the suppressed records are" if most and most.number is None else "the class that suffers most is"
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
