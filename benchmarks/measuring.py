"""Time and memory of a job, each measurement in a process of its own that has nothing else to remember."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from statistics import median


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a job took; imports and a warm-up on a tiny table came before."""

    seconds: float
    peak: float
    """The most memory the process ever held, in megabytes."""
    processor: float = 0.0
    """Seconds of processor time, of all threads: other programs disturb it less."""
    disk: float = 0.0
    """The most that its temporary files ever took, in megabytes, of what was seen ten times a second."""


def measure(job: str, source: Path, target: Path, *, threads: int) -> Measurement:
    """Run a job of `benchmarks.jobs` in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.jobs", job, str(source), str(target), str(threads)]
    disk = 0
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        environment = {**os.environ, "TMPDIR": temporary}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
            while process.poll() is None:
                disk = max(disk, _size(Path(temporary)))
                time.sleep(0.1)
            assert process.stdout is not None
            said = process.stdout.read()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Measurement(**json.loads(said.splitlines()[-1]), disk=disk / 1e6)


def _size(folder: Path) -> int:
    """Add up the files of a folder; some may go meanwhile."""
    total = 0
    with suppress(FileNotFoundError):  # a folder that goes ends the search
        for path in folder.rglob("*"):
            with suppress(FileNotFoundError):
                total += path.stat().st_size
    return total


def middle(measurements: list[Measurement]) -> Measurement:
    """Take the median of every figure."""
    return Measurement(*(median(figures) for figures in zip(*map(astuple, measurements), strict=True)))


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
