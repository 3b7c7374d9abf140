"""The joint attack on a release: exact where that can be done, estimated where not, component by component.

Components are independent, so counts multiply, and so do the ends of intervals. With several estimates each may miss
with its part of the allowed error only.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import fsum, inf, log2, log10, prod
from typing import Any

import numpy as np

from unblur.attacking import Attack
from unblur.counting.deadline import OutOfTime, deadline
from unblur.counting.numbers import MOST_BITS, Count
from unblur.counting.placements import Cell, published_solutions
from unblur.counting.problem import Records
from unblur.errors import ProgramError
from unblur.joint.blending import solve_component
from unblur.joint.estimating import Estimator, digest
from unblur.joint.front import OutOfReach
from unblur.joint.parts import Odds, Part
from unblur.joint.program import Program, joint_program
from unblur.joint.tables import Drawer, PlausibleTable
from unblur.mechanisms import Inference
from unblur.release import Release

Progress = Callable[[int, int], None]
"""Called with the number of components done and of all components."""
Stage = Callable[[str], None]
"""Called with what is done next, in words."""

PRECISION = 0.05
ERROR = 0.05
"""An estimate is good enough when its interval, of 95 %, reaches at most 5 % to either side."""
PATIENCE = 60.0
"""Seconds for each component that has to be estimated, unless a budget says otherwise."""
EXACT_SHARE = 0.5
"""How much of a budget exact counting may take."""


@dataclass(frozen=True)
class Range:
    """An estimate of the whole, by logarithms to the base 10, with an interval and bounds that hold for sure."""

    log10: float
    low: float
    high: float
    at_least: float
    at_most: float
    error: float
    seed: int


@dataclass(frozen=True)
class JointResult:
    """What all classes together leave plausible."""

    program: Program
    records: Records
    parts: tuple[Part, ...]

    @property
    def relaxed(self) -> bool:
        """Whether something that is known was left out: the count is then an upper bound."""
        return bool(self.program.relaxed)

    @property
    def exact(self) -> bool:
        """Whether there is a count, and not an estimate."""
        return all(part.exact for part in self.parts)

    @cached_property
    def count(self) -> Count | None:
        """The raw data sets that could have produced the release; None if there is only an estimate."""
        counts = [part.count for part in self.parts]
        return None if None in counts else _times(each for each in counts if each is not None)

    @cached_property
    def product(self) -> Count:
        """What the classes leave plausible one by one, multiplied."""
        return _times(each.count_solutions() for part in self.parts for each in part.classes)

    @cached_property
    def published(self) -> Count:
        """What the labels leave open."""
        grid = self.program.attack.grid
        return _times(
            published_solutions(grid.volume(target.box), target.subject.size, self.records)
            for target in self.program.subjects
        )

    @cached_property
    def range(self) -> Range | None:
        """The estimate of the whole; None if there is a count."""
        estimates = [part.estimate for part in self.parts if part.estimate]
        if not estimates:
            return None
        known = fsum(part.count.log10 for part in self.parts if part.count is not None)
        columns = zip(*((each.value, *each.interval, each.at_least, each.at_most) for each in estimates), strict=True)
        value, low, high, least, most = (known + fsum(map(_log10, column)) for column in columns)
        return Range(value, low, high, least, most, fsum(each.error for each in estimates), estimates[0].seed)

    def continued(self, budget: float) -> JointResult:
        """Go on with the estimates for so many seconds: the draws up to now count."""
        waiting = sum(not part.exact for part in self.parts)
        return replace(self, parts=tuple(_further(part, budget / max(1, waiting)) for part in self.parts))

    @property
    def draws(self) -> list[dict[str, Any]]:
        """The draws behind the estimates, in a form that can be written down and gone on from."""
        return [part.estimator.state for part in self.parts if part.estimator]

    def cell_odds(self, number: int, cell: Cell) -> Odds | None:
        """The odds that a cell holds 0, 1, 2, … records of a subject of the program; None where there is no count."""
        part, owner = self._places[number]
        return part.cell_odds(owner, cell)

    def certain(self, number: int) -> dict[Cell, int] | None:
        """Cells that hold records of a subject for sure, and at least how many; None where there is no count."""
        part, owner = self._places[number]
        return part.certain(owner)

    def part_of(self, number: int) -> tuple[Part, int]:
        """The part that a subject belongs to, and its place in it."""
        return self._places[number]

    @cached_property
    def _places(self) -> dict[int, tuple[Part, int]]:
        return {number: (part, owner) for part in self.parts for owner, number in enumerate(part.component.numbers)}

    def sample(self, number: int, *, seed: int = 0) -> list[PlausibleTable]:
        """Draw whole tables, each as likely as any other, that could have produced the release."""
        counts = [part.sample(number, np.random.default_rng([seed, *part.component.numbers])) for part in self.parts]
        rng = random.Random(seed)
        return [self._table([drawn[row].tolist() for drawn in counts], rng) for row in range(number)]

    def _table(self, counts: Sequence[Sequence[int]], rng: random.Random) -> PlausibleTable:
        drawer = Drawer(self.program.attack.grid, self.records)
        placements: list[Counter[Cell]] = [Counter() for _ in self.program.subjects]
        rows: list[list[tuple[int, ...]]] = [[] for _ in self.program.subjects]
        for part, held in zip(self.parts, counts, strict=True):
            component = part.component
            for free, owner, n in zip(component.groups, component.system.owners, held, strict=True):
                for cell, row in drawer.draw(free, n, rng):
                    placements[component.numbers[owner]][cell] += 1
                    rows[component.numbers[owner]].append(row)
        return PlausibleTable(tuple(placements), tuple(map(tuple, rows)))


def joint(
    release: Release,
    inference: Inference,
    *,
    records: Records | None = None,
    budget: float | None = None,
    seed: int = 0,
    exact: bool = True,
    earlier: Sequence[Mapping[str, Any]] = (),
    progress: Progress = lambda done, of: None,
    on_stage: Stage = lambda stage: None,
) -> JointResult:
    """Count the data sets that could have produced a release, all classes seen together.

    The budget, in seconds, holds for everything; without one, the exact engine goes up to its limits, and an estimate
    ends when it is good enough or after a minute per component. With `exact=False` all that is shared is estimated.
    Estimates whose draws are among the `earlier` ones (`JointResult.draws`) go on from there.
    `progress` counts the components that are done; `on_stage` is called with what is done next, in words.
    """
    start, records = time.monotonic(), records or release.config.records
    program = joint_program(Attack(release, inference))
    grid, begun = program.attack.grid, {each["system"]: each for each in earlier if each["seed"] == seed}
    parts: list[Part | None] = []
    waiting: list[int] = []
    on_stage("looking at the classes together: counting")
    for place, component in enumerate(program.components):
        progress(place - len(waiting), len(program.components))
        part = Part(grid, component, records)
        end = None if budget is None else start + EXACT_SHARE * budget
        parts.append(part if component.plain else _exactly(part, end) if exact else None)
        if parts[-1] is None:
            waiting.append(place)
    if waiting:
        on_stage("looking at the classes together: estimating")
    for left, place in zip(range(len(waiting), 0, -1), waiting, strict=True):
        progress(len(parts) - left, len(parts))
        component = program.components[place]
        estimator = Estimator(grid, component, records, seed=seed, error=ERROR / len(waiting))
        if known := begun.get(digest(component, records)):
            _resume(estimator, known)
        patience = PATIENCE if budget is None else (start + budget - time.monotonic()) / left
        parts[place] = _further(Part(grid, component, records, estimator=estimator), patience)
    progress(len(parts), len(parts))
    return JointResult(program, records, tuple(part for part in parts if part is not None))


def _resume(estimator: Estimator, known: Mapping[str, Any]) -> None:
    try:
        estimator.resume(known)
    except (OutOfReach, LookupError, TypeError, ValueError, AttributeError):
        raise ProgramError("the draws of an earlier run are damaged; name another file for them") from None


def _exactly(part: Part, end: float | None) -> Part | None:
    """Solve a component, if it is not out of reach."""
    if part.component.plain:
        return part
    if not part.component.linear:
        return None
    try:
        with deadline(None if end is None else end - time.monotonic()):
            solved = solve_component(part.grid, part.component, part.records)
            assert solved.solutions >= 0
            return replace(part, solved=solved)
    except (OutOfReach, OutOfTime):
        return None


def _further(part: Part, seconds: float) -> Part:
    if part.estimator is None:
        return part
    return replace(part, estimate=part.estimator.run(seconds, PRECISION))


def _times(counts: Iterable[Count]) -> Count:
    """Multiply counts; exactly, unless the product has very many digits."""
    factors = list(counts)
    bits = fsum(each.log2 for each in factors) if all(factors) else -inf
    whole = [each.exact for each in factors if each.exact is not None]
    if bits < MOST_BITS and len(whole) == len(factors):
        return Count.of(prod(whole))
    return Count(bits, None)


def _log10(number: Fraction | int) -> float:
    """The logarithm of a number of any size."""
    return (log2(number.numerator) - log2(number.denominator)) * log10(2) if number > 0 else -inf
