"""The joint attack on the paper's samples: what all classes of a release say beyond the classes one by one.

This is ours; the paper attacks one class at a time. An estimate depends on how long it was drawn for, so that two runs
may differ, as measured times do.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import inf, isinf
from typing import Any

from unblur import attacks
from unblur.paper.protocol import LAST_K, RECORDS, Protocol, Sample, Trial
from unblur.together import Together

QUICK = 1
"""How many samples of each configuration for a first look, instead of all."""
SECONDS, QUICK_SECONDS = 20.0, 1.5
"""What a release is given."""


@dataclass(frozen=True)
class Extra:
    """What the classes of a release leave plausible together, by logarithms to the base 10, and one by one."""

    trial: Trial
    classes: int
    published: float
    """What the labels leave open."""
    alone: float
    """What the classes leave one by one: the product of their counts."""
    together: float
    """What they leave together; minus infinity if an estimate found none."""
    interval: tuple[float, float] | None
    """Of an estimate; None if there is a count."""
    error: float | None
    """The chance that the interval misses, at most."""
    solutions: str | None
    """The count, written out if it is not too long."""
    left_out: tuple[str, ...]
    """Why the count may be too large, and so the factor too small."""
    sound: bool
    """Whether the true table is among those that remain."""
    seconds: float
    """What it was given."""
    took: float

    @property
    def exact(self) -> bool:
        """Whether this is a count, and not an estimate."""
        return self.interval is None

    @property
    def at_least(self) -> bool:
        """Whether the factor may be larger than told."""
        return bool(self.left_out) or isinf(self.together)

    @property
    def factor(self) -> float:
        """How many times fewer remain together than one by one, as a logarithm; of a bound where that is all."""
        return self._factor(self.together) if not isinf(self.together) else self.factors[0]

    @property
    def factors(self) -> tuple[float, float]:
        """The interval of the factor; a single number if there is a count."""
        low, high = self.interval or (self.together, self.together)
        return self._factor(high), self._factor(low)

    def _factor(self, together: float) -> float:
        return max(0.0, self.alone - together)

    @property
    def how(self) -> str:
        """In words, whether the factor is known."""
        known = "exact" if self.exact else "estimate"
        return f"at least, {known}" if self.at_least else known

    def to_dict(self) -> dict[str, Any]:
        """Describe it by plain values."""
        found = asdict(self)
        low, high = self.interval or (None, None)
        return found | {"together": _finite(self.together), "interval": [_finite(low), high] if self.interval else None}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Extra:
        """Take back what `to_dict` gave."""
        interval = tuple(map(_number, found["interval"])) if found["interval"] else None
        own = {"trial": Trial(**found["trial"]), "together": _number(found["together"]), "interval": interval}
        return cls(**(dict(found) | own | {"left_out": tuple(found["left_out"])}))


def _finite(number: float | None) -> float | None:
    return None if number is None or isinf(number) else number


def _number(found: float | None) -> float:
    return -inf if found is None else found


def joint_trials(protocol: Protocol, samples: int) -> list[Trial]:
    """The trials of so many samples, for every k of the paper's tables."""
    return [trial for trial in protocol.trials if trial.k <= LAST_K and trial.sample <= samples]


def attack_jointly(trial: Trial, sample: Sample, *, seconds: float) -> Extra:
    """Attack all classes of a sample's release together, and compare with the truth."""
    start = time.perf_counter()
    result = attacks.attack(sample.release, scope="joint", records=RECORDS, budget=seconds)
    took = time.perf_counter() - start
    found, interval = Together(result), result.range
    assert found.feasible, "a release that was made comes from some table"
    return Extra(
        trial,
        len(sample.release.classes),
        found.log10_published,
        found.log10_class,
        _number(found.log10_joint),
        (interval.low, interval.high) if interval else None,
        interval.error if interval else None,
        result.count.text if result.count is not None else None,
        result.program.relaxed,
        result.program.allows([sample.truth(number) for number in sample.numbers]),
        seconds,
        took,
    )
