"""Wide and deep lattices: local and global recoding with up to sixty million states, each in a process of its own."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.reporting import count_text, table, time_text
from benchmarks.states import Case, K
from unblur.histogram import Histogram
from unblur.recoding import Recoding, global_recoding, local_recoding
from unblur.remaining import Remaining

SHAPES = ((10, 4), (10, 5), (10, 6))
"""Attributes and layers: 1 million, 10 million and 60 million states. ARX searches up to 100,000."""
LIMIT = Fraction(1, 20)
"""The share of records that global recoding may suppress."""
MOST_SECONDS = 900


def run(folder: Path, *, quick: bool) -> str:
    """Measure, and describe the results."""
    cases = [Case(100, 6, 4)] if quick else [Case(n, *shape) for n in (10_000, 100_000) for shape in SHAPES]
    header = ["attributes x layers", "records", "states", "recoding", "states looked at", "time", "memory"]
    return table(header, [_row(case, kind) for case in cases for kind in ("local", "global")])


def _row(case: Case, kind: str) -> list[str]:
    shape = [case.name, count_text(case.records), count_text(case.lattice.size), kind]
    arguments = [str(number) for number in (case.records, case.attributes, case.layers)]
    command = [sys.executable, "-m", "benchmarks.wide", kind, *arguments]
    try:
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return [*shape, "", f"over {MOST_SECONDS} s", ""]
    took = json.loads(done.stdout)
    return [*shape, count_text(took["looks"]), time_text(took["seconds"]), f"{took['peak']:,.0f} MB"]


def _measure(case: Case, kind: str) -> dict[str, float]:
    lattice = case.lattice
    histogram = Histogram.of(lattice, case.draw())
    looks = _Counter(Remaining.proof if kind == "local" else Remaining.covers)
    with patch.object(Remaining, "proof" if kind == "local" else "covers", looks.method):
        start = time.perf_counter()
        _recode(histogram, case, kind)
        took = time.perf_counter() - start
    return {"looks": looks.calls, "seconds": took, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def _recode(histogram: Histogram, case: Case, kind: str) -> Recoding:
    if kind == "local":
        return local_recoding(histogram, case.lattice, k=K)
    return global_recoding(histogram, case.lattice, k=K, suppression_limit=LIMIT)


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
    print(json.dumps(_measure(Case(int(records), int(attributes), int(layers)), wanted)))
