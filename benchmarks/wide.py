"""Wide and deep lattices: local recoding with up to sixty million states, against trying every state.

Processor time, each measurement in a process of its own. `python -m benchmarks.wide lazy 10000 10 6` measures one case.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.jobs import peak_of
from benchmarks.ledger import is_faster
from benchmarks.reporting import count_text, table, time_text
from benchmarks.states import Case, K
from unblur.histogram import Histogram
from unblur.lattice import Lattice
from unblur.recoding import local_recoding
from unblur.remaining import Remaining

SHAPES = ((10, 4), (10, 5), (10, 6))
"""Attributes and layers: 1 million, 10 million and 60 million states. ARX searches up to 100,000."""
CASES = (*(Case(10_000, *shape) for shape in SHAPES), Case(100_000, 10, 4))
MOST_STATES, MOST_RECORDS = 2_000_000, 10_000
"""Up to which every state is tried, for comparison."""
MOST_SECONDS = 1800
"""Of patience, for each case."""


def run(folder: Path, *, quick: bool) -> str:
    """Measure, and describe the results."""
    cases = [Case(100, 6, 4)] if quick else list(CASES)
    header = ["attributes x layers", "records", "states", "looked at", "time", "memory", "every state", "times as fast"]
    return table(header, [_row(case) for case in cases])


def _row(case: Case) -> list[str]:
    shape = [case.name, count_text(case.records), count_text(case.lattice.size)]
    took = _measured("lazy", case)
    if took is None:
        return [*shape, "", f"not within {time_text(MOST_SECONDS)}", "", "", ""]
    row = [*shape, count_text(took["looks"]), time_text(took["seconds"]), f"{took['peak']:,.0f} MB"]
    small = case.lattice.size <= MOST_STATES and case.records <= MOST_RECORDS
    listed = _measured("listing", case) if small else None
    if listed is None:
        return [*row, "", ""]
    ratio = listed["seconds"] / took["seconds"]
    is_faster(f"recode {case.records:,} records, {case.lattice.size:,} states", "trying every state", ratio)
    return [*row, time_text(listed["seconds"]), f"{ratio:.1f}"]


def _measured(kind: str, case: Case) -> dict[str, Any] | None:
    arguments = [str(number) for number in (case.records, case.attributes, case.layers)]
    command = [sys.executable, "-m", "benchmarks.wide", kind, *arguments]
    try:
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _measure(kind: str, case: Case) -> dict[str, float]:
    lattice = case.lattice
    histogram = Histogram.of(lattice, case.draw())
    looks = _Counter(Remaining.look)
    with patch.object(Remaining, "look", looks.method):
        start = time.process_time()
        if kind == "lazy":
            local_recoding(histogram, lattice, k=K)
        else:
            _try_every_state(histogram, lattice)
        took = time.process_time() - start
    return {"looks": looks.calls, "seconds": took, "peak": peak_of(Path("/proc/self")) / 1024}


def _try_every_state(histogram: Histogram, lattice: Lattice) -> None:
    """The same pass over a list of all states, each of which is looked at."""
    remaining = Remaining(histogram, lattice, K)
    for tied in lattice.groups():
        states = [state for state in tied if state != lattice.top]
        while remaining.records >= K and (states := [state for state in states if remaining.any_group(state)]):
            best = int(remaining.kept(states)[0].argmax()) if len(states) > 1 else 0
            remaining.release(states.pop(best))


class _Counter:
    """Counts the calls of a method."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.calls = 0

        def method(*arguments: Any) -> Any:
            self.calls += 1
            return function(*arguments)

        self.method = method


if __name__ == "__main__":
    wanted, records, attributes, layers = sys.argv[1:5]
    print(json.dumps(_measure(wanted, Case(int(records), int(attributes), int(layers)))))
