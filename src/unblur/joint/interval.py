"""An interval for a probability from the number of successes among trials, after Clopper and Pearson.

It holds with at least the stated confidence for every probability and every number of trials; nothing is approximated
but the incomplete beta function, and its result is widened by more than the error.

>>> low, high = clopper_pearson(5, 10, 0.05)
>>> round(low, 4), round(high, 4)
(0.1871, 0.8129)
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, lgamma, log, log1p

WIDER = 1e-9
"""Bounds are moved outwards by this share."""


def clopper_pearson(successes: int, trials: int, error: float) -> tuple[float, float]:
    """Bound a probability; either bound fails with a chance of at most half the error."""
    if trials == 0:
        return 0.0, 1.0
    low = _solve(lambda p: beta_share(successes, trials - successes + 1, p), error / 2) if successes else 0.0
    high = (
        _solve(lambda p: beta_share(successes + 1, trials - successes, p), 1 - error / 2) if successes < trials else 1.0
    )
    return low * (1 - WIDER), min(1.0, high * (1 + WIDER))


def beta_share(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function: the chance that a beta variable is at most x."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, 1 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    tiny = 1e-300
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > tiny else tiny)
    value = d
    for m in range(1, 100_000):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + step * d
            d = 1 / (d if abs(d) > tiny else tiny)
            c = 1 + step / c
            c = c if abs(c) > tiny else tiny
            value *= d * c
        if abs(d * c - 1) < 1e-15:
            return value
    raise ArithmeticError("the incomplete beta function does not converge")


def _solve(rising: Callable[[float], float], level: float) -> float:
    """Find where a rising function of a probability meets a level."""
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        if rising(middle) < level:
            low = middle
        else:
            high = middle
    return (low + high) / 2
