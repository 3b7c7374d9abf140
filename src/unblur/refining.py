"""What the attack leaves plausible for one class, or for the outliers: by the exact engine, or by enumeration."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from unblur.attacking import Attack, Target
from unblur.counting.numbers import Count
from unblur.counting.placements import Placements
from unblur.counting.problem import Records
from unblur.errors import MissingExtraError, ProgramError

MOST_LEAVES = 100_000
ONE, NEVER, SURELY = Count.of(1), Fraction(0), Fraction(1)
Engine = Literal["exact", "cpsat"]
Counted = Literal["exact", "at_most", "at_least"]
"""Exact, or a bound: a rule was left out (at most so many), or a limit ended the search (at least so many)."""


@dataclass(frozen=True)
class Refinement:
    """What is left of the ways to place a class's records."""

    plausible: Count
    """Raw data sets that remain (the paper's CRA_solutions)."""
    combinations: Count
    """Ways to say how many records each cell holds."""
    counted: Counted
    free_cells: int | None
    """Cells of the segment that no earlier class has emptied; None if they are too many to count."""
    certain_records: int | None = None
    """Records whose cell is certain; None if not looked for."""
    singling_out: Fraction | None = None
    """The probability that some cell holds exactly one record; None if not looked for."""

    @property
    def feasible(self) -> bool:
        """Whether any placement may be left."""
        return bool(self.plausible) or self.counted == "at_least"


def refine_cell(published: Count, size: int) -> Refinement:
    """Say what is left of a class that is a free cell: all that was published, and where all records are."""
    if not published:
        return Refinement(published, ONE, "exact", 1, 0)
    return Refinement(published, ONE, "exact", 1, size, SURELY if size == 1 else NEVER)


def refine(attack: Attack, target: Target, records: Records) -> Refinement:
    """Count exactly, without enumeration; also what is certain, and the odds of somebody alone in a cell."""
    left = Placements(attack.grid, target.problem, records)
    plausible = left.count_solutions()
    certain = sum(left.certain().values()) if plausible else 0
    return _counted(attack, target, left, plausible, certain, left.singling_out_odds() if plausible else None)


def count(attack: Attack, target: Target, records: Records) -> Refinement:
    """Count exactly, and nothing more."""
    left = Placements(attack.grid, target.problem, records)
    return _counted(attack, target, left, left.count_solutions())


def _counted(
    attack: Attack,
    target: Target,
    left: Placements,
    plausible: Count,
    certain: int | None = None,
    alone: Fraction | None = None,
) -> Refinement:
    return Refinement(
        plausible,
        left.count_combinations(),
        "at_most" if target.dropped else "exact",
        _free_cells(attack, target),
        certain,
        alone,
    )


def refine_by_enumeration(
    attack: Attack, target: Target, records: Records, *, seconds: float | None = None
) -> Refinement:
    """Enumerate all solutions of the paper's program with CP-SAT, for at most so many seconds."""
    try:
        from unblur.counting.cpsat import enumerate_program
        from unblur.program import build_program
    except ImportError as error:
        raise MissingExtraError("the engine cpsat", "cpsat") from error
    try:
        program = build_program(attack, target)
    except ProgramError:
        program = build_program(attack, target, sparse="children")  # fewer rows, the same solutions
    found = enumerate_program(program, seconds=seconds)
    return Refinement(
        Count.of(found.solutions(records)),
        Count.of(found.combinations),
        counted="exact" if found.complete else "at_least",
        free_cells=_free_cells(attack, target),
    )


def _free_cells(attack: Attack, target: Target) -> int | None:
    if not attack.grid.has_points:
        return sum(free.cells for free in target.problem.free.values())
    leaves = [attack.grid.leaves(piece) for free in target.problem.free.values() for piece in free.pieces]
    if sum(map(attack.grid.count_cells, leaves)) > MOST_LEAVES:
        return None
    return len({cell for box in leaves for cell in attack.grid.cells(box)})
