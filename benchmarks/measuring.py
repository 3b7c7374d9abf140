"""Time and memory of a job, each measurement in a process of its own that has nothing else to remember."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a job took; imports and a warm-up on a tiny table came before."""

    seconds: float
    peak: float
    """The most memory a process ever held, in megabytes."""
    processor: float = 0.0
    """Seconds of processor time, of all processes: on a busy machine the better measure."""


def measure(job: str, source: Path, target: Path, *, threads: int) -> Measurement:
    """Run a job of `benchmarks.jobs` in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.jobs", job, str(source), str(target), str(threads)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return Measurement(**json.loads(done.stdout.splitlines()[-1]))


def middle(measurements: list[Measurement]) -> Measurement:
    """Take the median of the times and of the peaks."""
    columns = ([each.seconds, each.peak, each.processor] for each in measurements)
    return Measurement(*map(median, zip(*columns, strict=True)))


def seconds(action: Callable[[], object], *, repeats: int = 3) -> float:
    """Time an action here: the median of some repetitions."""
    return median(_once(action) for _ in range(repeats))


@contextmanager
def at_most(limit: float) -> Iterator[None]:
    """Raise `TimeoutError` inside after so many seconds."""

    def stop(number: int, frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _once(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start
