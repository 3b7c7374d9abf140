"""All classes together: the exact engine against others on small programs, and how far it reaches on larger ones.

The larger ones are the first sample of each of the paper's configurations, and bell-shaped tables of 500 and 800 rows:
each in a process of its own. What cannot be counted is estimated, until the interval reaches 5 % to either side.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from math import log
from pathlib import Path

import numpy as np

from benchmarks.counters import RECORDS, by_diagram, by_enumeration, counter, exactly, vectors_of
from benchmarks.ledger import is_faster
from benchmarks.reporting import count_text, table, time_text, verdict
from tests.plausible import attack_on, release_of
from unblur.attacking import Attack
from unblur.grid import Grid
from unblur.hierarchy import halves
from unblur.joint.blending import solve_component
from unblur.joint.estimating import Estimator
from unblur.joint.exact import solve
from unblur.joint.front import OutOfReach
from unblur.joint.program import Component, joint_program
from unblur.joint.solving import ERROR, PATIENCE, PRECISION
from unblur.lattice import Lattice
from unblur.paper.protocol import Protocol, Trial

KS = range(3, 8)
MAGNITUDES = (1_000, 10_000, 100_000)
"""The small programs have about so many solutions."""
PAPER = ((3, 3), (3, 3, 3), (3, 3, 3, 3), (4, 3), (4, 3, 3))
"""The heights of the paper's configurations."""
BELLS = ((3, 3, 3), (4, 3, 3), (3, 3, 3, 3))
ROWS = (500, 800)
BARS = {3: 10.0, 4: 60.0}
"""Seconds, by the number of attributes: for the count; with four attributes an estimate will do."""


@dataclass(frozen=True)
class Shape:
    """A table to be anonymized: the first sample of a configuration of the paper, or so many bell-shaped records."""

    heights: tuple[int, ...]
    rows: int | None
    """None for the paper's."""
    k: int

    @property
    def name(self) -> str:
        text = ",".join(map(str, self.heights))
        return text if self.rows is None else f"{text}, {self.rows} rows"

    def attack(self) -> Attack:
        """Anonymize it."""
        if self.rows is None:
            return Protocol().sample(Trial(PAPER.index(self.heights), self.k, 1)).attack
        sizes = np.array([2 ** (height - 1) * (1000 + 37 * i) for i, height in enumerate(self.heights)])
        bounds = zip(sizes.tolist(), self.heights, strict=True)
        trees = [halves(Decimal(0), Decimal(size), layers=layers) for size, layers in bounds]
        shares = np.random.default_rng(1).normal(0.5, 0.15, (self.rows, len(sizes)))
        values = np.clip((shares * sizes).astype(np.int64), 0, sizes - 1)
        lattice = Lattice(trees, (1,) * len(trees))
        return attack_on(release_of(lattice, [tuple(row) for row in values.tolist()], self.k))


@dataclass(frozen=True)
class Reached:
    """What became of all components of a shape."""

    classes: int
    component: tuple[int, int, int]
    """Of the largest component: classes, groups, limits."""
    seconds: float
    """Of processor time: of counting, or of estimating."""
    tried: float
    """What was spent on counting in vain."""
    peak: float
    """Megabytes."""
    precision: float
    """How far the interval reaches to either side; zero if all was counted."""


def run(folder: Path, *, quick: bool) -> str:
    """Measure, and describe the results."""
    magnitudes, ks = (MAGNITUDES[:1], KS[:1]) if quick else (MAGNITUDES, KS)
    shapes = [Shape(heights, None, k) for heights in PAPER for k in ks]
    if not quick:
        shapes += [Shape(heights, rows, k) for heights in BELLS for rows in ROWS for k in ks]
    header = [
        "heights",
        " k",
        "classes",
        "component",
        "groups",
        "rules",
        "time",
        "in vain",
        "memory",
        "result",
        "bar",
        "",
    ]
    return f"{_small(folder, magnitudes)}\n\n{table(header, [_row(shape, _apart(shape)) for shape in shapes])}"


def _small(folder: Path, magnitudes: Sequence[int]) -> str:
    """Compare the engines on small programs."""
    python = counter(folder)
    rows = []
    candidates = list(_candidates())
    for magnitude in magnitudes:
        _, grid, component = min(candidates, key=lambda each: abs(log(each[0] / magnitude)))
        exact, found = (
            min((exactly(grid, component) for _ in range(3)), key=lambda each: each.seconds),
            by_enumeration(component),
        )
        assert (exact.vectors, exact.tables) == (found.vectors, found.tables)
        diagram = by_diagram(python, component) if python else None
        assert diagram is None or diagram.vectors == exact.vectors
        is_faster(f"count {exact.vectors:,} joint solutions", "CP-SAT: enumerate", found.seconds / exact.seconds)
        if diagram:
            is_faster(f"count {exact.vectors:,} joint solutions", "dd: diagrams", diagram.seconds / exact.seconds)
        rows.append(
            [
                count_text(exact.vectors),
                count_text(len(component.targets)),
                count_text(len(component.groups)),
                count_text(len(component.system.limits)),
                time_text(exact.seconds),
                time_text(found.seconds),
                "not installed" if python is None else time_text(diagram.seconds) if diagram else "too long",
                f"{found.seconds / exact.seconds:,.0f}",
            ]
        )
    header = ["solutions", "classes", "groups", "rules", "exact", "CP-SAT", "diagram (dd)", "CP-SAT / exact"]
    return table(header, rows)


def _candidates() -> Iterator[tuple[int, Grid, Component]]:
    for shape in (Shape(heights, rows, k) for heights in ((3, 3), (4, 3), (3, 3, 3)) for rows in ROWS for k in KS):
        attack = shape.attack()
        for component in joint_program(attack).components:
            if not component.plain and len(component.targets) > 1:
                solved = solve(attack.grid, component.system, component.groups, RECORDS)
                yield vectors_of(solved), attack.grid, component


def _apart(shape: Shape) -> Reached:
    command = [sys.executable, "-m", "benchmarks.joint", json.dumps(asdict(shape))]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return Reached(**json.loads(done.stdout.splitlines()[-1]))


def reach(shape: Shape) -> Reached:
    """Count or estimate all components of a shape."""
    attack = shape.attack()
    program = joint_program(attack)
    shared = [each for each in program.components if not each.plain]
    taken = tried = 0.0
    precision = 0.0
    for component in shared:
        start = time.process_time()
        try:
            assert solve_component(attack.grid, component, RECORDS).solutions > 0
        except OutOfReach:
            tried += time.process_time() - start
            start = time.process_time()
            estimator = Estimator(attack.grid, component, RECORDS, seed=1, error=ERROR)
            estimate = estimator.run(PATIENCE, PRECISION)
            # Where other work slows this down, go on: what counts is processor time.
            while estimate.precision > PRECISION and time.process_time() - start < PATIENCE:
                estimate = estimator.run(PATIENCE / 6, PRECISION)
            precision = max(precision, estimate.precision)
        taken += time.process_time() - start
    sizes = [(len(each.targets), len(each.groups), len(each.system.limits)) for each in shared]
    peak = next(int(line.split()[1]) for line in _status() if line.startswith("VmHWM")) / 1024
    return Reached(len(program.subjects), max(sizes, default=(1, 1, 0)), taken, tried, peak, precision)


def _status() -> list[str]:
    """What Linux knows of this process; unlike `ru_maxrss` it forgets the parent's memory."""
    return Path("/proc/self/status").read_text().splitlines()


def _row(shape: Shape, found: Reached) -> list[str]:
    bar, estimated = BARS.get(len(shape.heights)), found.precision > 0
    met = bar is not None and found.precision <= (PRECISION if len(shape.heights) > 3 else 0)
    return [
        shape.name,
        str(shape.k),
        *map(count_text, (found.classes, *found.component)),
        time_text(found.seconds),
        time_text(found.tried) if estimated else "",
        f"{found.peak:,.0f} MB",
        f"± {found.precision:.1%}" if estimated else "exact",
        "" if bar is None else f"{bar:.0f} s",
        "" if bar is None else verdict(found.seconds + found.tried, bar) if met else "MISSED",
    ]


def main(stated: str) -> None:
    """Measure one shape, alone in this process."""
    given = json.loads(stated)
    print(json.dumps(asdict(reach(Shape(tuple(given["heights"]), given["rows"], given["k"])))))


if __name__ == "__main__":
    main(sys.argv[1])
