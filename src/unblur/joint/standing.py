"""One class among the others: how many of its own assignments they leave it, and where its records are then."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeVar

from unblur.counting.deadline import OutOfTime, deadline
from unblur.counting.placements import Cell
from unblur.joint.blending import solve_component
from unblur.joint.front import OutOfReach
from unblur.joint.parts import Odds, Part
from unblur.joint.plan import Limits, System
from unblur.joint.program import Component
from unblur.joint.solving import JointResult

T = TypeVar("T")

MOST_CELLS = 4_096
"""Of classes with more free cells, the odds are not listed cell by cell."""
PART = 4
"""To count without a class, the engine may use one part in so many of what it may use for all."""


@dataclass(frozen=True)
class Standing:
    """What all classes together say about one of them."""

    number: int
    """Its place among the subjects of the program."""
    left: Fraction | None
    """How many of its raw data sets go along with the others, on average over what the others may hold together."""
    certain: dict[Cell, int]
    """Cells that hold records of it for sure, and at least how many."""
    impossible: int | None
    """Free cells that hold none of its records for sure; None if only an estimate is known."""
    singling_out: Fraction | None
    """The probability that some cell holds exactly one of its records."""
    odds: tuple[tuple[Cell, Odds], ...] | None
    """For each free cell the odds that it holds 0, 1, 2, … of its records; None if the cells are too many."""
    draws: int | None = None
    """If the odds are estimates: how many plausible tables they were taken from."""


def standings(result: JointResult, seconds: float | None) -> Iterator[Standing]:
    """Tell how each class stands that others say something about; stop when time is up."""
    end = None if seconds is None else time.monotonic() + seconds
    for part in result.parts:
        if part.component.plain or not _is_plausible(part):
            continue
        for owner, number in enumerate(part.component.numbers):
            try:
                with deadline(None if end is None else end - time.monotonic()):
                    yield _standing(part, owner, number)
            except OutOfTime:
                return


def _standing(part: Part, owner: int, number: int) -> Standing:
    groups = part.groups_of(owner)
    cells = sum(part.component.groups[group].cells for group in groups)
    if part.estimator:
        # What is certain for the class alone is certain all the same.
        odds = tuple(part.all_odds(owner)) if cells <= MOST_CELLS else None
        sure, draws = part.classes[owner].certain(), len(part.estimator.plausible)
        return Standing(number, None, sure, None, None, odds, draws)
    return Standing(
        number,
        _left(part, owner),
        part.certain(owner) or {},
        sum(part.component.groups[group].cells for group in part.empty(owner)),
        part.singling_out(owner),
        tuple(part.all_odds(owner)) if cells <= MOST_CELLS else None,
    )


def _is_plausible(part: Part) -> bool:
    """Whether some table is known."""
    if part.estimator:
        return len(part.estimator.plausible) > 0
    return part.solved is not None and part.solved.solutions > 0


def _left(part: Part, owner: int) -> Fraction | None:
    """Divide the tables of all by those of all others, were the class not there."""
    assert part.solved
    others = _without(part.component, owner)
    if not others.targets:
        return Fraction(part.solved.solutions)
    try:
        # What is known of the component stays in memory meanwhile.
        found = solve_component(part.grid, others, part.records, part=PART)
        return Fraction(part.solved.solutions, found.solutions)
    except OutOfReach:
        return None


def _without(component: Component, owner: int) -> Component:
    """Leave a class out: limits hold for the others all the same."""
    system = component.system
    kept = [group for group, other in enumerate(system.owners) if other != owner]
    place = {group: index for index, group in enumerate(kept)}

    def among(limits: Limits) -> Limits:
        left = ((most, frozenset(place[g] for g in members if g in place)) for most, members in limits)
        return tuple((most, members) for most, members in left if can_bind(most, members))

    def can_bind(most: int, members: frozenset[int]) -> bool:
        owners = {system.owners[kept[group]] for group in members}
        return sum(system.sizes[each] for each in owners) > most

    choices = (tuple(among(order) for order in choice) for choice in component.choices)
    return replace(
        component,
        targets=_less(component.targets, owner),
        numbers=_less(component.numbers, owner),
        groups=tuple(component.groups[group] for group in kept),
        system=System(
            _less(system.sizes, owner),
            tuple(system.owners[group] - (system.owners[group] > owner) for group in kept),
            among(system.limits),
        ),
        choices=tuple(choice for choice in choices if all(choice)),
    )


def _less(things: tuple[T, ...], place: int) -> tuple[T, ...]:
    return things[:place] + things[place + 1 :]
