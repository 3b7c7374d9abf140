"""Numbers that may be too long to write down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from math import inf, log2, log10

MOST_DIGITS = 10_000
"""Longer numbers are told by their logarithm."""
MOST_BITS = MOST_DIGITS / log10(2)
FEW_BITS = 4_000
"""Longer numbers are divided by their logarithms."""


@dataclass(frozen=True, eq=False)
class Count:
    """A whole number and its logarithm; the number itself is made when it is asked for, unless it has too many digits.

    The logarithm is off by at most 1e-14 of itself, so the ratio of two numbers of b bits by 2e-14 b of itself.

    >>> Count.of(2**70).text, round(Count.of(2**70).log10, 2)
    ('1180591620717411303424', 21.07)
    """

    log2: float
    """Minus infinity for 0."""
    known: int | None
    """The number, if it is there already."""
    make: Callable[[], int] | None = field(default=None, repr=False)
    """How to make it."""

    @classmethod
    def of(cls, number: int) -> Count:
        """Take a number that is there."""
        return cls(log2(number) if number else -inf, number)

    @cached_property
    def exact(self) -> int | None:
        """The number; None if it has more than 10,000 digits or so, and was not needed to find its logarithm."""
        return self.make() if self.known is None and self.make and self.log2 < MOST_BITS else self.known

    @property
    def log10(self) -> float:
        return self.log2 * log10(2)

    @cached_property
    def text(self) -> str | None:
        """All digits, if they are not too many."""
        if self.exact is None:
            return None
        digits = format(Decimal(self.exact), "f")  # str() refuses more than 4,300 digits
        return digits if len(digits) <= MOST_DIGITS else None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Count):
            return NotImplemented
        return self._same == other._same

    def __hash__(self) -> int:
        return hash(self._same)

    @property
    def _same(self) -> float:
        """The number, or its logarithm if it is too long."""
        return self.log2 if self.exact is None else self.exact

    def __bool__(self) -> bool:
        return self.log2 > -inf

    def over(self, other: Count) -> float | None:
        """How many times the other number goes into this one; infinite beyond any float; None if the other is 0."""
        if not other:
            return None
        try:
            short = max(self.log2, other.log2) < FEW_BITS
            if short and self.exact is not None and other.exact is not None:
                return self.exact / other.exact
            return float(2.0 ** (self.log2 - other.log2))
        except OverflowError:
            return inf
