"""Numbers in the words of the report, on top of those of the command line."""

from __future__ import annotations

import re
from math import inf, log2

from unblur.counting.numbers import Count
from unblur.risk import Finding
from unblur.whereabouts import spread
from unblur.words import KEPT, are, average, count, few, kept, listed, percent, plural, rounded, shown

__all__ = [
    "FEWEST",
    "amount",
    "are",
    "average",
    "bits_of",
    "by_digits",
    "count",
    "few",
    "fold",
    "kept",
    "listed",
    "narrowed",
    "one_in",
    "percent",
    "plain",
    "plural",
    "remaining",
    "share",
    "shown",
    "spread",
]

FEWEST = 5
"""In public, a number stands for so many classes or more: sizes are published, so one alone would be known."""
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def power(text: str) -> str:
    """Write powers of ten as people do.

    >>> power("2.8 x 10^32")
    '2.8·10³²'
    """
    return re.sub(r"\sx\s10\^(\d+)", lambda found: f"·10{found[1].translate(_RAISED)}", text)


def amount(number: Count) -> str:
    """Write a number of data sets.

    >>> amount(Count.of(0)), amount(Count.of(120_000)), amount(Count.of(2**200))
    ('none', '120,000', '1.6·10⁶⁰')
    """
    if not number:
        return "none"
    if number.exact is not None and number.exact < 10**7:
        return f"{number.exact:,}"
    return power(rounded(number.log2))


def by_digits(log10: float) -> str:
    """Write a number of data sets, given by its logarithm to the base 10.

    >>> by_digits(0), by_digits(2), by_digits(120.3)
    ('1', '100', '2.0·10¹²⁰')
    """
    return power(rounded(log10 * log2(10)))


def fold(bits: float) -> str:
    """Say how many times fewer there are, given the bits.

    >>> fold(0), fold(0.001), fold(7.21), fold(200)
    ('1-fold', '1.001-fold', '148-fold', '1.6·10⁶⁰-fold')
    """
    if 0 < bits < log2(1.05):
        return "less than 1.001-fold" if bits < log2(1.0005) else f"{2**bits:.3f}-fold"
    return f"{power(rounded(bits))}-fold"


def one_in(bits: float) -> str:
    """Say which share is left, given the bits.

    >>> one_in(0), one_in(0.2), one_in(1), one_in(7.21), one_in(200)
    ('all', '87%', '1 in 2', '1 in 148', '1 in 1.6·10⁶⁰')
    """
    if bits < 1:
        return "all" if bits <= 0 else percent(2**-bits)
    return f"1 in {power(rounded(bits))}"


def bits_of(ratio: float) -> float:
    """Return the bits of a ratio that is a limit."""
    return log2(ratio) if 0 < ratio < inf else 0.0


def narrowed(finding: Finding) -> str:
    """Say how far a class is narrowed down, as far as it was counted."""
    left = finding.refinement
    if left is None:
        return "not analysed"
    if not left.feasible:
        return "nothing fits"
    if finding.bits is None:
        return "not found in time"
    bound = {"exact": "", "at_most": "at least ", "at_least": "at most "}[left.counted]
    return f"{bound}{fold(finding.bits)}"


def remaining(finding: Finding) -> str:
    """Say which share of the data sets is left, as far as it was counted."""
    left = finding.refinement
    if left is None or finding.bits is None:
        return narrowed(finding)
    bound = {"exact": "", "at_most": " or fewer", "at_least": " or more"}[left.counted]
    return f"{one_in(finding.bits)}{bound}"


def share(part: int, whole: int) -> str:
    """Write a part of a whole.

    >>> share(3, 500), share(0, 0), share(2, 24_000), share(5, 5)
    ('0.6%', '0%', 'less than 0.1%', '100%')
    """
    if part and part / whole < 0.001:
        return "less than 0.1%"
    return f"{part / whole:.1%}".replace(".0%", "%") if whole else "0%"


def plain(text: str) -> str:
    """Put the spaces back that the command line keeps together."""
    return text.replace(KEPT, " ")
