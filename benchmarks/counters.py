"""One component of a joint program, counted in three ways: exactly, by enumeration, by a general counter.

What is counted are the numbers of records per group that keep all rules. CP-SAT enumerates them, each of which stands
for so many raw data sets. The general counter is a binary decision diagram (`dd` from PyPI, in an environment of its
own; left out where it cannot be installed): each number is written in unary, each rule is a bound on a sum of bits.
"""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass
from math import prod
from pathlib import Path
from venv import EnvBuilder

from ortools.sat.python import cp_model

from unblur.counting.problem import Records
from unblur.counting.weights import solutions
from unblur.grid import Grid
from unblur.joint.exact import Solved, solve
from unblur.joint.flow import Flow
from unblur.joint.program import Component

RECORDS: Records = "distinct"
MOST_SECONDS = 200
DIAGRAM = """
import json, sys, time
from dd.autoref import BDD

sizes, owners, limits = json.load(sys.stdin)
start = time.perf_counter()
bdd = BDD()
names = [[f"g{g}_{i}" for i in range(sizes[owner])] for g, owner in enumerate(owners)]
bdd.declare(*(name for bits in names for name in bits))


def total(groups, most, exactly):
    # From the last bit to the first; row[n]: what must hold of the bits to come if n were set before.
    row = [bdd.true if not exactly or n == most else bdd.false for n in range(most + 1)] + [bdd.false]
    for name in reversed([name for g in groups for name in names[g]]):
        row = [bdd.ite(bdd.var(name), row[n + 1], row[n]) for n in range(most + 1)] + [bdd.false]
    return row[0]


found = bdd.true
for owner, size in enumerate(sizes):
    mine = [g for g, other in enumerate(owners) if other == owner]
    for bits in (names[g] for g in mine):
        for first, second in zip(bits, bits[1:]):
            found &= ~bdd.var(second) | bdd.var(first)
    found &= total(mine, size, True)
for most, members in limits:
    found &= total(members, most, False)
print(json.dumps([int(bdd.count(found, nvars=sum(map(len, names)))), time.perf_counter() - start]))
"""


@dataclass(frozen=True)
class Counted:
    """An answer, and how long it took."""

    vectors: int
    """Numbers of records per group."""
    tables: int | None
    """Raw data sets."""
    seconds: float


def vectors_of(solved: Solved) -> int:
    """Count the numbers of records per group."""
    system = solved.system
    ones = [[1] * (system.sizes[owner] + 1) for owner in system.owners]
    return Flow(solved.layers, ones, labelled=False).count()


def exactly(grid: Grid, component: Component) -> Counted:
    """Count with the exact engine."""
    start = time.perf_counter()
    solved = solve(grid, component.system, component.groups, RECORDS)
    tables = solved.solutions
    seconds = time.perf_counter() - start
    return Counted(vectors_of(solved), tables, seconds)


def by_enumeration(component: Component) -> Counted:
    """Enumerate with CP-SAT; remember every solution, since one may come twice."""
    system, model = component.system, cp_model.CpModel()
    start = time.perf_counter()
    held = [model.new_int_var(0, system.sizes[owner], "") for owner in system.owners]
    for owner, size in enumerate(system.sizes):
        model.add(sum(n for n, other in zip(held, system.owners, strict=True) if other == owner) == size)
    for most, members in system.limits:
        model.add(sum(held[group] for group in members) <= most)
    seen = _Seen(held)
    solver = cp_model.CpSolver()
    solver.parameters.enumerate_all_solutions = True
    solver.parameters.num_workers = 1
    assert solver.solve(model, seen) == cp_model.OPTIMAL
    seconds = time.perf_counter() - start
    family = solutions(RECORDS)
    ways = [
        [family.ways(family.of(free), n) for n in range(system.sizes[owner] + 1)]
        for free, owner in zip(component.groups, system.owners, strict=True)
    ]
    tables = sum(prod(row[n] for row, n in zip(ways, counts, strict=True)) for counts in seen.found)
    return Counted(len(seen.found), tables, seconds)


class _Seen(cp_model.CpSolverSolutionCallback):
    def __init__(self, held: list[cp_model.IntVar]) -> None:
        super().__init__()
        self._held, self.found = held, set[tuple[int, ...]]()

    def on_solution_callback(self) -> None:
        self.found.add(tuple(self.value(each) for each in self._held))


def counter(folder: Path) -> Path | None:
    """An environment with the general counter; None if it cannot be made."""
    python = folder / "counter" / "bin" / "python"
    try:
        EnvBuilder(with_pip=True).create(folder / "counter")
        install = [str(python), "-m", "pip", "-q", "--disable-pip-version-check", "install", "dd"]
        subprocess.run(install, check=True, capture_output=True, timeout=MOST_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return None
    return python


def by_diagram(python: Path, component: Component) -> Counted | None:
    """Count with a decision diagram; None if it takes too long."""
    system = component.system
    limits = [[most, sorted(members)] for most, members in system.limits]
    stated = json.dumps([system.sizes, system.owners, limits])
    try:
        done = subprocess.run(
            [str(python), "-c", DIAGRAM],
            input=stated,
            check=True,
            capture_output=True,
            text=True,
            timeout=MOST_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return None
    vectors, seconds = json.loads(done.stdout)
    return Counted(vectors, None, seconds)
