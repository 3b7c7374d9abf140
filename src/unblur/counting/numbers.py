"""Numbers that may be too long to write down."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from math import inf, log2, log10

MOST_DIGITS = 10_000
"""Longer numbers are told by their logarithm."""
MOST_BITS = MOST_DIGITS / log10(2)


@dataclass(frozen=True)
class Count:
    """A whole number: exactly, unless it has very many digits, and its logarithm.

    >>> Count.of(2**70).text, round(Count.of(2**70).log10, 2)
    ('1180591620717411303424', 21.07)
    """

    log2: float
    """Minus infinity for 0."""
    exact: int | None
    """None if the number has more than 10,000 digits or so, and was not needed to find its logarithm."""

    @classmethod
    def of(cls, number: int) -> Count:
        """Take a number that is there."""
        return cls(log2(number) if number else -inf, number)

    @property
    def log10(self) -> float:
        return self.log2 * log10(2)

    @property
    def text(self) -> str | None:
        """All digits, if they are not too many."""
        if self.exact is None:
            return None
        digits = format(Decimal(self.exact), "f")  # str() refuses more than 4,300 digits
        return digits if len(digits) <= MOST_DIGITS else None

    def __bool__(self) -> bool:
        return self.log2 > -inf

    def over(self, other: Count) -> float | None:
        """How many times the other number goes into this one; infinite beyond any float; None if the other is 0."""
        if not other:
            return None
        try:
            if self.exact is not None and other.exact is not None:
                return self.exact / other.exact
            return float(2.0 ** (self.log2 - other.log2))
        except OverflowError:
            return inf
