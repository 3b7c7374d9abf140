"""How long the attack takes, class by class: the exact engine, and enumeration, the paper's way."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from unblur.errors import ProgramError
from unblur.paper.protocol import RECORDS, Sample
from unblur.refining import count, refine_by_enumeration


@dataclass(frozen=True)
class Timing:
    """How long one class, or the outliers, took; seconds."""

    exact: float
    solver: float | None = None
    """The same by enumeration; None if it was not tried."""
    finished: bool = True
    """Whether the enumeration came to its end; if not, it would have taken longer than `solver`."""
    agrees: bool = True
    """Whether a finished enumeration counted what the exact engine counted."""


@dataclass(frozen=True)
class Timings:
    """How long the classes of a trial took, and its outliers."""

    classes: tuple[Timing, ...]
    outliers: Timing | None
    seconds: float | None = None
    """What the enumeration was given, for all of them; None if it was not tried."""

    def to_dict(self) -> dict[str, Any]:
        """Describe it by plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Timings:
        """Take back what `to_dict` gave."""
        outliers = found["outliers"]
        classes = tuple(Timing(**each) for each in found["classes"])
        return cls(classes, Timing(**outliers) if outliers else None, found["seconds"])


def measure(sample: Sample, *, seconds: float | None = None) -> Timings:
    """Measure how long stating and counting takes, class by class; with `seconds`, also the paper's way.

    So many seconds are for the whole release: the classes share what is left of them.
    """
    assert sample.attack.overlaps is not None, "found once, for all classes"
    end = None if seconds is None else time.monotonic() + seconds
    numbers = sample.numbers
    found = [_measure(sample, number, share) for number, share in zip(numbers, _shares(end, len(numbers)), strict=True)]
    classes = len(sample.release.classes)
    return Timings(tuple(found[:classes]), found[classes] if sample.release.outliers else None, seconds)


def _shares(end: float | None, number: int) -> Iterator[float | None]:
    """How long each of so many classes may take: an equal share of what is left when its turn comes."""
    for left in range(number, 0, -1):
        yield None if end is None else max(0.01, (end - time.monotonic()) / left)


def _measure(sample: Sample, number: int | None, seconds: float | None) -> Timing:
    start = time.perf_counter()
    target = sample.target(number)
    exact = count(sample.attack, target, RECORDS)
    exact_seconds = time.perf_counter() - start
    if seconds is None:
        return Timing(exact_seconds)
    start = time.perf_counter()
    try:
        found = refine_by_enumeration(sample.attack, target, RECORDS, seconds=seconds)
    except ProgramError:
        return Timing(exact_seconds, time.perf_counter() - start, finished=False)
    finished = found.counted == "exact"
    agrees = not finished or (found.plausible.exact, found.combinations.exact) == (
        exact.plausible.exact,
        exact.combinations.exact,
    )
    return Timing(exact_seconds, time.perf_counter() - start, finished, agrees)
