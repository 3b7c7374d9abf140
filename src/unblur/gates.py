"""Gates: conditions on the figures of an audit under which a release must not go out."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from unblur.errors import ConfigError

if TYPE_CHECKING:
    from unblur.audits import Audit

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

    def failure(self, audit: Audit) -> str | None:
        """Say why the release fails, or that it cannot be told; None if it passes."""
        value = getattr(audit.summary, self.field)
        if value is not None and OPERATORS[self.sign](value, self.number):
            return f"{self}: it is {value:,.6g}"
        if audit.summary.not_done and self.field not in ("suppressed", "classes_below_k", "singled_out"):
            return f"{self}: cannot be told, since not all classes were analysed"
        counted = {each.refinement.counted for each in audit.everything if each.refinement}
        if counted - {"exact"} and self.field not in ("suppressed", "classes_below_k", "singled_out"):
            return f"{self}: cannot be told, since some counts are only bounds"
        if value is None and self.field in ("certain_records", "singled_out"):
            return f"{self}: cannot be told from this audit"
        return None
