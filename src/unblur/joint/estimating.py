"""An estimate of how many data sets a component has, with an interval that really covers.

Draws come from a simpler system whose count is known (see `unblur.joint.proposing`); the share of those that keep all
limits is a plain binomial, so the interval of Clopper and Pearson holds, however small the share is. One may look again
and again, and stop when one likes: each look has its own part of the allowed error, and all parts add up to it.

Limits are added to the simpler system, those first that are broken most often, as long as the exact engine can keep up.
The draws that decide about this are not used again.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from unblur.counting.deadline import OutOfTime, check, deadline
from unblur.counting.problem import Records
from unblur.errors import ProgramError
from unblur.grid import Grid
from unblur.joint.blending import in_some_order
from unblur.joint.exact import weight_of
from unblur.joint.front import OutOfReach
from unblur.joint.frontier import MOST_RECORDS
from unblur.joint.interval import clopper_pearson
from unblur.joint.program import Component
from unblur.joint.proposing import Counts, Part, Proposal, propose

PILOT = 2_000
BATCH = 4_000
MOST_STATES = 150_000
"""How many states the simpler system may have."""
MOST_SECONDS = 60.0
"""For drawing plausible tables."""
MOST_REMEMBERED = 10_000
"""So many plausible draws are remembered."""
GOOD_SHARE = 0.5
"""When so many draws are kept, no more limits are added."""
FIRST_LOOK = 8_000
"""After so many draws the interval is looked at for the first time, and then whenever they have doubled."""


@dataclass(frozen=True)
class Estimate:
    """How many data sets there are, about; never to be shown as a count."""

    simpler: int
    """The data sets of the simpler system."""
    kept: int
    drawn: int
    """How many of the draws were plausible, and how many there were."""
    share: tuple[float, float]
    """An interval for the share of the simpler system's data sets that are plausible."""
    error: float
    """The chance that the interval misses, at most."""
    at_least: int
    at_most: int
    """Certain bounds."""
    seed: int

    @property
    def value(self) -> Fraction:
        """The estimate itself."""
        return Fraction(self.simpler * self.kept, max(1, self.drawn))

    @property
    def interval(self) -> tuple[Fraction, Fraction]:
        """An interval that misses the true number with a chance of at most `error`."""
        low, high = (Fraction(each) * self.simpler for each in self.share)
        return max(low, Fraction(self.at_least)), min(high, Fraction(self.at_most))

    @property
    def precision(self) -> float:
        """Half the width of the interval, as a share of the estimate; infinite if nothing was kept."""
        low, high = self.interval
        return float((high - low) / 2 / self.value) if self.kept else float("inf")


class Estimator:
    """Draws, and goes on drawing, until the estimate is good enough or time is up."""

    def __init__(self, grid: Grid, component: Component, records: Records, *, seed: int, error: float) -> None:
        self._grid, self._component, self._records = grid, component, records
        self._seed, self._error = seed, error
        self._rng = np.random.default_rng([seed, *component.numbers])
        self._drawn = self._kept = self._looks = self._at_least = 0
        self._proposal: Proposal | None = None
        self._plausible_draws: list[Counts] = []

    def run(self, seconds: float, precision: float) -> Estimate:
        """Draw for so many seconds, or until the interval is as narrow as wished; go on from the draws before."""
        end = time.monotonic() + seconds
        if not self._start(seconds / 3).solutions:
            return Estimate(0, 0, 0, (0.0, 0.0), self._error, 0, 0, self._seed)
        while time.monotonic() < end:
            wanted = self._wanted
            self._draw(min(self._batch, wanted - self._drawn))
            if self._drawn == wanted and (estimate := self._look()).precision <= precision:
                return estimate
        return self._look()

    @property
    def plausible(self) -> Counts:
        """Plausible numbers of records per group, a row for each draw that was kept; not more than odds need."""
        return np.concatenate(self._plausible_draws) if self._plausible_draws else np.empty((0, 0), np.int16)

    @property
    def state(self) -> dict[str, Any]:
        """Everything that is needed to go on another day."""
        return {
            "system": digest(self._component, self._records),
            "seed": self._seed,
            "error": self._error,
            "drawn": self._drawn,
            "kept": self._kept,
            "looks": self._looks,
            "at_least": str(self._at_least),
            "limits": sorted(self._start(0.0).kept),
            "generator": self._rng.bit_generator.state,
        }

    def resume(self, state: Mapping[str, Any]) -> bool:
        """Take up an earlier state; False if it belongs to other classes, another seed or another way of counting."""
        if (state["system"], state["seed"]) != (digest(self._component, self._records), self._seed):
            return False
        kept, component = frozenset(state["limits"]), self._component
        self._proposal = propose(self._grid, component, kept, self._records, most_states=MOST_STATES, known={})
        self._drawn, self._kept, self._looks = state["drawn"], state["kept"], state["looks"]
        self._at_least, self._error = int(state["at_least"]), state["error"]
        self._rng.bit_generator.state = state["generator"]
        return True

    def samples(self, number: int, rng: np.random.Generator) -> Counts:
        """Draw plausible numbers of records per group: as likely as each other, whatever the estimate is."""
        proposal, found, end = self._start(0.0), list[Counts](), time.monotonic() + MOST_SECONDS
        while sum(map(len, found)) < number:
            check()
            if time.monotonic() > end or not proposal.solutions:
                raise ProgramError("hardly any table that was drawn is plausible; a larger budget may find some")
            drawn = proposal.sample(self._batch, rng)
            found.append(self._plausible(proposal, drawn))
        return np.concatenate(found)[:number]

    @property
    def _batch(self) -> int:
        """How many to draw at a time: few, where classes are drawn one by one."""
        return BATCH if self._component.linear else 50

    @property
    def _wanted(self) -> int:
        """The number of draws at the next look."""
        wanted = FIRST_LOOK
        while wanted <= self._drawn:
            wanted *= 2
        return wanted

    def _draw(self, number: int) -> None:
        proposal = self._start(0.0)
        drawn = proposal.sample(max(1, number), self._rng)
        good = self._plausible(proposal, drawn)
        self._drawn += len(drawn)
        self._kept += len(good)
        if sum(map(len, self._plausible_draws)) < MOST_REMEMBERED:
            self._plausible_draws.append(good)
        system, groups = self._component.system, self._component.groups
        for counts in good[: 1 if self._at_least else 20].tolist():
            self._at_least = max(self._at_least, weight_of(system, groups, self._records, counts))

    def _plausible(self, proposal: Proposal, drawn: Counts) -> Counts:
        """Of some draws, those that keep all limits, and what some order says."""
        kept = drawn[~proposal.broken(drawn).any(axis=1)]
        return kept[in_some_order(kept, self._component)]

    def _look(self) -> Estimate:
        """State the interval; every look has its share of the error: 1/2, 1/6, 1/12, …, together 1."""
        self._looks += 1
        error = self._error / (self._looks * (self._looks + 1))
        share = clopper_pearson(self._kept, self._drawn, error)
        simpler = self._start(0.0).solutions
        return Estimate(simpler, self._kept, self._drawn, share, self._error, self._at_least, simpler, self._seed)

    def _start(self, seconds: float) -> Proposal:
        """Choose the simpler system, once."""
        if self._proposal is None:
            self._proposal = _choose(self._grid, self._component, self._records, self._rng, seconds)
        return self._proposal


def digest(component: Component, records: Records) -> str:
    """A short name of what is estimated: the same for the same classes, rules and way of counting."""
    system = component.system
    limits = [system.limits, *(order for choice in component.choices for order in choice)]
    plain = [[(most, sorted(members)) for most, members in each] for each in limits]
    sizes = [len(choice) for choice in component.choices]
    volumes = [each.volume for each in component.groups]
    whole = (component.numbers, system.sizes, system.owners, volumes, plain, sizes, records)
    return hashlib.sha256(repr(whole).encode()).hexdigest()


def _choose(grid: Grid, component: Component, records: Records, rng: np.random.Generator, seconds: float) -> Proposal:
    """Add limits to the simpler system, those that are broken most often first, while that is possible."""
    known: dict[object, Part] = {}
    proposal = propose(grid, component, frozenset(), records, most_states=MOST_STATES, known=known)
    refused = {n for n, (_, members) in enumerate(component.system.limits) if _is_mixed(component, members)}
    end, many = time.monotonic() + seconds, 8
    while time.monotonic() < end and many:
        broken = proposal.broken(proposal.sample(PILOT if component.linear else 50, rng))
        if not broken.size or 1 - broken.any(axis=1).mean() >= GOOD_SHARE:
            break
        often = np.argsort(-broken.mean(axis=0))
        worst = [n for i in often if broken[:, i].any() and (n := proposal.dropped[i]) not in refused][:many]
        if not worst:
            break
        try:
            with deadline(max(0.1, end - time.monotonic())):
                kept = proposal.kept | frozenset(worst)
                proposal = propose(grid, component, kept, records, most_states=MOST_STATES, known=known)
        except OutOfTime:
            break
        except OutOfReach:
            refused |= set(worst) if many == 1 else set()
            many = max(1, many // 2)
    return proposal


def _is_mixed(component: Component, members: frozenset[int]) -> bool:
    """Whether a limit touches a class that can only be drawn alone."""
    owners = {component.system.owners[group] for group in members}
    return any(
        component.targets[owner].problem.together or component.system.sizes[owner] > MOST_RECORDS for owner in owners
    )
