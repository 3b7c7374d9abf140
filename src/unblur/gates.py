"""Gates: conditions on the figures of an audit under which a release must not go out."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from unblur.errors import ConfigError

if TYPE_CHECKING:
    from unblur.audits import Audit
    from unblur.risk import Finding

FIELDS = (
    "max_ratio",
    "median_ratio",
    "max_bits",
    "certain_records",
    "singled_out",
    "suppressed",
    "classes_below_k",
)
OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
COUNTED = ("max_ratio", "median_ratio", "max_bits", "certain_records")
"""Fields that rest on what the attack counted."""
MARGIN = 0.05
"""Bits by which another mechanism must take away more to count as more."""


@dataclass(frozen=True)
class Gate:
    """A condition such as `max_ratio > 100`: if it holds, the release fails.

    >>> Gate.parse("max_ratio>1e3")
    Gate(field='max_ratio', sign='>', number=1000.0)
    """

    field: str
    sign: str
    number: float

    @classmethod
    def parse(cls, text: str) -> Gate:
        """Read FIELD OP NUMBER."""
        found = re.fullmatch(r"\s*(\w+)\s*(>=|<=|==|!=|>|<)\s*(\S+)\s*", text)
        accepted = f"a gate is FIELD OP NUMBER, as in 'max_ratio > 100'; fields are {', '.join(FIELDS)}"
        if found is None:
            raise ConfigError(f"--fail-on {text!r}: {accepted}")
        field, sign, number = found.groups()
        if field not in FIELDS:
            raise ConfigError(f"--fail-on {text!r}: there is no field {field!r}; {accepted}")
        try:
            limit = float(number)
            if not isfinite(limit):
                raise ValueError
            return cls(field, sign, limit)
        except ValueError:
            raise ConfigError(f"--fail-on {text!r}: {number!r} is no number; {accepted}") from None

    def __str__(self) -> str:
        return f"{self.field} {self.sign} {self.number:g}"

    def holds(self, audit: Audit) -> bool:
        """Whether the condition is known to hold, whatever was not found out."""
        value = getattr(audit.summary, self.field)
        if value is None or not OPERATORS[self.sign](value, self.number):
            return False
        if self.field not in COUNTED:
            return True
        # What was not found out can add to a largest ratio, or to the certain records: an excess stays one. But a
        # search that was cut short overstates, and a median may go either way.
        grows = self.sign in (">", ">=") and self.field != "median_ratio"
        return not _is_overstated(audit) if grows else not any(doubts(self.field, audit))

    def failure(self, audit: Audit) -> str | None:
        """Say why the release fails, or that it cannot be told; None if it passes."""
        if self.holds(audit):
            return f"{self}: it is {getattr(audit.summary, self.field):,.6g}"
        reasons = list(doubts(self.field, audit))
        return f"{self}: cannot be told, since {', and '.join(reasons)}" if reasons else None


def doubts(field: str, audit: Audit) -> Iterator[str]:
    """Say, a clause each, why no gate on a field can be said to be kept; nothing if it can be decided."""
    if field not in COUNTED:
        if getattr(audit.summary, field) is None:
            yield "the raw table was not at hand"
        return
    # A class of one cell has no certain record to find, however it was counted.
    asked = [each for each in audit.everything if not (field == "certain_records" and each.basic)]
    if left := audit.summary.not_done:
        yield "1 part of it was not analysed" if left == 1 else f"{left:,} parts of it were not analysed"
    if not asked:
        return
    if audit.mechanism.name == "unknown":
        yield "nothing is assumed about how it was made"
    bounds = sum(each.refinement is not None and each.refinement.counted != "exact" for each in asked)
    if bounds:
        yield "1 count is only a bound" if bounds == 1 else f"{bounds:,} counts are only bounds"
    if audit.release.config.missing and any(each.number is None for each in asked):
        yield "nothing is claimed about the suppressed records, some of which had missing values"
    if sharper_mechanisms(audit):
        yield "how it was made was not stated, and some ways that fit would give away more"
    elif not audit.stated and not audit.alternatives:
        yield "how it was made was not stated, and no other way was tried"
    if field == "certain_records" and not all(map(_looked_for_certain, asked)):
        yield "certain cells were not looked for"


def sharper_mechanisms(audit: Audit) -> int:
    """Count the mechanisms that may have made the release and would take away more, if none was stated."""
    own = sum(each.bits or 0.0 for each in audit.everything)
    fitting = [] if audit.stated else [each.bits for each in audit.alternatives if each.bits is not None]
    return sum(bits > own + MARGIN for bits in fitting)


def _is_overstated(audit: Audit) -> bool:
    """Whether a search was cut short: what it seems to take away is then the most that it can be."""
    return any(each.refinement and each.refinement.counted == "at_least" for each in audit.everything)


def _looked_for_certain(finding: Finding) -> bool:
    return finding.refinement is None or finding.refinement.certain_records is not None
