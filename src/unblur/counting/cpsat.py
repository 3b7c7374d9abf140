"""Counts by enumeration: OR-Tools CP-SAT on the paper's literal program.

Slow and obvious, as in the paper, and so the judge of the exact engine. CP-SAT may return a solution more than once:
every solution is remembered, and counted when it is new. A limit, by time or by number, leaves a lower bound, and the
result says so (`complete` is False).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import comb, factorial, prod

from joblib import Parallel, delayed
from ortools.sat.python import cp_model

from unblur.attacking import Attack, Target
from unblur.counting.problem import Records
from unblur.program import Matrix, Program, Sparse, Together, Vector, build_program

Assignment = tuple[int, ...]
"""The number of records in each column's cell."""


@dataclass(frozen=True, slots=True)
class Enumeration:
    """What was found by enumerating: all there is if `complete`, otherwise at least so much."""

    combinations: int
    """Ways to say how many records each cell holds."""
    solutions_distinct: int
    """Raw data sets of distinct records."""
    solutions_any: int
    """Raw data sets in which records may be equal, told apart."""
    complete: bool
    seconds: float

    def solutions(self, records: Records) -> int:
        """Count raw data sets."""
        return self.solutions_distinct if records == "distinct" else self.solutions_any


def enumerate_program(
    program: Program,
    *,
    seconds: float | None = None,
    solutions: int | None = None,
    visit: Callable[[Assignment], None] | None = None,
) -> Enumeration:
    """Enumerate the solutions of a program, for at most so many seconds and up to so many solutions.

    `visit` is called with each solution, once.
    """
    begin = time.perf_counter()
    model = cp_model.CpModel()
    unknowns = [model.new_int_var(0, program.size, f"z_{column}") for column in range(program.columns)]
    for cells, right in _rows(program.A_ub, program.b_ub, unknowns):
        model.add(cells <= right)
    for cells, right in _rows(program.A_lb, program.b_lb, unknowns):
        model.add(cells >= right)
    for cells, right in _rows(program.A_eq, program.b_eq, unknowns):
        model.add(cells == right)
    for rule in program.together:
        _add_together(
            model, [[unknowns[column] for column in columns] for columns in rule.children], rule, program.size
        )
    tally = _Tally(program, solutions, visit)
    status = _solver(seconds).solve(model, tally)
    assert status != cp_model.MODEL_INVALID, model.validate()
    complete = status in (cp_model.OPTIMAL, cp_model.INFEASIBLE) and not tally.stopped
    spent = time.perf_counter() - begin
    return Enumeration(len(tally.seen), tally.distinct, tally.any, complete, spent)


def enumerate_targets(
    attack: Attack,
    targets: Iterable[Target],
    *,
    sparse: Sparse = "all",
    seconds: float | None = None,
    solutions: int | None = None,
    n_jobs: int = 1,
) -> list[Enumeration]:
    """Enumerate each target with a solver of its own, `n_jobs` at a time; the limits hold for each one."""
    jobs = (
        delayed(enumerate_program)(build_program(attack, target, sparse=sparse), seconds=seconds, solutions=solutions)
        for target in targets
    )
    found: list[Enumeration] = Parallel(n_jobs=n_jobs)(jobs)
    return found


def _add_together(model: cp_model.CpModel, children: list[list[cp_model.IntVar]], rule: Together, size: int) -> None:
    """Children that hold enough records count together."""
    heavy = []
    for number, cells in enumerate(children):
        total = cp_model.LinearExpr.sum(cells)
        is_heavy = model.new_bool_var(f"heavy_{number}")
        counted = model.new_int_var(0, size, f"counted_{number}")
        model.add(total >= rule.least).only_enforce_if(is_heavy)
        model.add(total < rule.least).only_enforce_if(~is_heavy)
        model.add(counted == total).only_enforce_if(is_heavy)
        model.add(counted == 0).only_enforce_if(~is_heavy)
        heavy.append(counted)
    model.add(cp_model.LinearExpr.sum(heavy) < rule.bound)


class _Tally(cp_model.CpSolverSolutionCallback):
    """Adds up the solutions that are new, and stops the search at the first one beyond the limit."""

    def __init__(self, program: Program, most: int | None, visit: Callable[[Assignment], None] | None) -> None:
        super().__init__()
        self.size, self.columns, self.volumes = program.size, program.columns, program.volumes
        self.most, self.visit = most, visit
        self.seen: set[Assignment] = set()
        self.distinct = self.any = 0
        self.stopped = False

    def on_solution_callback(self) -> None:
        # All at once: asking for each value takes longer. What follows the cells is only there to state rules.
        z: Assignment = tuple(self.response_proto.solution)[: self.columns]
        if z in self.seen or self.stopped:
            return
        if len(self.seen) == self.most:
            self.stopped = True
            self.stop_search()
            return
        self.seen.add(z)
        self._weigh(z)
        if self.visit is not None:
            self.visit(z)

    def _weigh(self, z: Assignment) -> None:
        held = [(volume, n) for volume, n in zip(self.volumes, z, strict=True) if n]
        self.distinct += prod(comb(volume, n) for volume, n in held)
        orders = factorial(self.size) // prod(factorial(n) for _, n in held)
        self.any += orders * prod(volume**n for volume, n in held)


def _solver(seconds: float | None) -> cp_model.CpSolver:
    solver = cp_model.CpSolver()
    solver.parameters.enumerate_all_solutions = True
    solver.parameters.num_workers = 1  # CP-SAT enumerates with one worker only
    solver.parameters.catch_sigint_signal = False  # it would take Ctrl-C from Python for good
    if seconds is not None:
        solver.parameters.max_time_in_seconds = seconds
    return solver


def _rows(matrix: Matrix, right: Vector, unknowns: list[cp_model.IntVar]) -> Iterable[tuple[cp_model.LinearExprT, int]]:
    for number, value in enumerate(right.tolist()):
        columns = matrix.indices[matrix.indptr[number] : matrix.indptr[number + 1]]
        yield cp_model.LinearExpr.sum([unknowns[column] for column in columns]), value
