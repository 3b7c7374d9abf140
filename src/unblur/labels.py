"""Interval labels: written as ARX writes them, read in the dialects people use.

>>> interval_label(Decimal(30), Decimal(50), decimals=False)
'[30, 50['
>>> interval_label(Decimal(30), Decimal(50), decimals=True)
'[30.0, 50.0['
>>> parse_interval("[30, 50)")
Interval(low=Decimal('30'), high=Decimal('50'), low_closed=True, high_closed=False)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

ROOT_LABEL = "*"
"""What stands for "any value": the label of a suppressed record, and of a root that is no interval."""


def number_label(value: Decimal, *, decimals: bool) -> str:
    """Write a number as Java does: plain integers, or decimals with at least one digit after the point.

    >>> [number_label(Decimal(x), decimals=True) for x in ("12.50", "10000000", "0.00025")]
    ['12.5', '1.0E7', '2.5E-4']
    """
    if not decimals:
        return str(int(value))
    if value == 0:
        return "0.0"
    sign, digits, exponent = value.normalize().as_tuple()
    assert isinstance(exponent, int), "only finite numbers have labels"
    text = "".join(map(str, digits))
    scale = len(text) + exponent - 1  # of the leading digit: value = d.ddd * 10^scale
    minus = "-" if sign else ""
    if -3 <= scale < 7:
        plain = format(value.normalize(), "f")
        return plain if "." in plain else plain + ".0"
    return f"{minus}{text[0]}.{text[1:] or '0'}E{scale}"


def interval_label(low: Decimal, high: Decimal, *, decimals: bool) -> str:
    """Label the half-open interval from `low` to `high`."""
    return f"[{number_label(low, decimals=decimals)}, {number_label(high, decimals=decimals)}["


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval as a label states it; a bound of None is open-ended."""

    low: Decimal | None
    high: Decimal | None
    low_closed: bool
    high_closed: bool

    def half_open(self, step: Decimal, *, closed_means_open: bool = False) -> tuple[Decimal | None, Decimal | None]:
        """Return the bounds of the same values as `[low, high)`, on a grid of `step`.

        `closed_means_open` reads `[a, b]` as `[a, b)`: ARX's interval function without parameters prints it so.
        """
        low, high = self.low, self.high
        if low is not None and not self.low_closed:
            low += step
        if high is not None and self.high_closed and not closed_means_open:
            high += step
        return low, high


_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_BRACKETS = re.compile(rf"\s*([\[\]\(])\s*({_NUMBER})\s*[,;]\s*({_NUMBER})\s*([\[\]\)])\s*")
_DASH = re.compile(rf"\s*({_NUMBER})\s*[-\u2013]\s*({_NUMBER})\s*")
_BOUND = re.compile(rf"\s*(<=|>=|<|>)\s*({_NUMBER})\s*")


def parse_number(text: str) -> Decimal | None:
    """Read a finite decimal number, exactly; None if the text is none."""
    return Decimal(text.strip()) if re.fullmatch(_NUMBER, text.strip()) else None


def parse_interval(label: str) -> Interval | None:
    """Read an interval label: `[a, b[`, `[a, b)`, `(a, b]`, `a-b`, `<b`, `>=a` and their kin; None if it is none."""
    if found := _BRACKETS.fullmatch(label):
        left, low, high, right = found.groups()
        interval = Interval(Decimal(low), Decimal(high), left == "[", right == "]")
    elif found := _DASH.fullmatch(label):
        interval = Interval(Decimal(found[1]), Decimal(found[2]), low_closed=True, high_closed=True)
    elif found := _BOUND.fullmatch(label):
        sign, bound = found[1], Decimal(found[2])
        if sign.startswith("<"):
            return Interval(None, bound, low_closed=True, high_closed=sign == "<=")
        return Interval(bound, None, low_closed=sign == ">=", high_closed=False)
    else:
        return None
    assert interval.low is not None and interval.high is not None
    return interval if interval.low <= interval.high else None
