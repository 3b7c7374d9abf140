"""Local and global recoding of a histogram.

Removing records never makes a group reach k that did not before, and loss, c1 and c2 do not depend on the data. So
searching the whole lattice anew for every class (the paper's Algorithms 1 and 2) equals one pass over the states in key
order: *every group of at least k remaining records becomes a class*. Only among states tied on the whole key does the
third criterion decide, which depends on what remains, so it is asked again after every pick. The top state is never
applied; what is left then is suppressed.

A state under which no group of k remains is passed over, and most of those need neither be looked at (`frontier`) nor
listed (`walk`): that is what makes lattices of many millions of states feasible.

The pass sees the rows only as a `Histogram`: how many fall in each occupied cell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from unblur.errors import ConfigError
from unblur.frontier import Frontier
from unblur.hierarchy import Ranks
from unblur.histogram import Histogram
from unblur.lattice import Lattice, State
from unblur.release import EquivalenceClass
from unblur.remaining import FAILURE, Group, Look, Remaining
from unblur.walk import Walk

Progress = Callable[[int, int], None]
"""Called with the number of records in classes so far and of all records."""

MOST_RIVALS = 20
"""How many rivals of a state an iteration lists."""
LONG, TOO_LONG = 10 * 60, 3 * 24 * 3600
"""Seconds that are worth a warning, and that are refused."""


@dataclass(frozen=True, slots=True)
class Iteration:
    """One greedy decision: the state applied, what it left behind, and which states could have come instead."""

    state: State
    classes: tuple[EquivalenceClass, ...]
    left: int
    """Records that remain after this step."""
    rivals: tuple[State, ...] = ()
    """States equal in loss, c1 and c2 that would have made a class too: the best of them by c3."""
    rival_count: int = 0
    """How many such states there were."""
    c3: dict[State, Fraction] = field(default_factory=dict)
    """The third criterion of the state and of the rivals listed, if there were any."""

    @property
    def open_tie(self) -> bool:
        """Whether all three criteria left the choice open (lattice order decided)."""
        return any(self.c3[rival] == self.c3[self.state] for rival in self.rivals)


@dataclass(frozen=True)
class Recoding:
    """What a recoding decided: its steps in order, and the class of every cell."""

    iterations: tuple[Iteration, ...]
    class_of_cell: Ranks
    """Index into `classes`, or -1 where the cell's records are suppressed."""
    suppressed: int

    @property
    def classes(self) -> tuple[EquivalenceClass, ...]:
        return tuple(each for iteration in self.iterations for each in iteration.classes)


def local_recoding(
    histogram: Histogram, lattice: Lattice, *, k: int, progress: Progress = lambda done, of: None
) -> Recoding:
    """Carve classes out of the histogram, cheapest state first, until no group reaches k."""
    remaining, walk = Remaining(histogram, lattice, k), Walk(lattice)
    frontier = Frontier(lattice, walk, remaining.look, remaining.holds)
    iterations: list[Iteration] = []
    total = histogram.records
    for tied in walk:
        states = [state for state in tied if state != lattice.top]
        while remaining.records >= k and (states := [state for state in states if frontier.reaches(state)]):
            state, rivals, c3 = _best(states, remaining)
            classes = remaining.release(state)
            iterations.append(Iteration(state, classes, remaining.records, rivals, len(states) - 1, c3))
            states.remove(state)
            progress(total - remaining.records, total)
        if remaining.records < k:
            break
    return Recoding(tuple(iterations), remaining.class_of_cell, remaining.records)


def global_recoding(
    histogram: Histogram, lattice: Lattice, *, k: int, suppression_limit: Fraction = Fraction(0)
) -> Recoding:
    """Apply the one state of least loss that leaves at most a share `suppression_limit` of the records outside classes.

    If only the top state does, nothing but the number of records is published: all are suppressed.
    """
    data, walk = Remaining(histogram, lattice, k), Walk(lattice)
    least = data.records - int(suppression_limit * data.records)

    def fits(state: State) -> Look:
        nobody = np.empty(0, dtype=np.int64)
        return Look([Group(state, nobody)], is_closed=False) if data.covers(state, least) else FAILURE

    frontier = Frontier(lattice, walk, fits, data.holds)
    for tied in walk:
        fitting = [state for state in tied if state != lattice.top and frontier.reaches(state)]
        if fitting:
            state, rivals, c3 = _best(fitting, data)
            classes = data.release(state)
            step = Iteration(state, classes, data.records, rivals, len(fitting) - 1, c3)
            return Recoding((step,), data.class_of_cell, data.records)
    return Recoding((), data.class_of_cell, data.records)


def expected_seconds(lattice: Lattice, cells: int, k: int) -> float:
    """Estimate how long a local recoding takes, within a factor of a few, from what was measured.

    The looks grow far more slowly than the lattice and the cells. Each goes through the cells that remain, and so does
    each step, of which there is at most one for each state, and for k cells.
    """
    looks = min(lattice.size, 250 * lattice.size**0.27 * cells**0.35)
    steps = min(lattice.size, cells / k)
    return float(looks * (60e-6 + 1.5e-9 * cells) + steps * 5e-9 * cells)


def check_time(lattice: Lattice, cells: int, k: int) -> str | None:
    """Refuse a local recoding that would take days; say so if it may take long."""
    seconds = expected_seconds(lattice, cells, k)
    if seconds < LONG:
        return None
    found = f"{lattice.shape} and {cells:,} different cells: choosing states may take"
    remedy = "fewer attributes or layers, or larger leaves, make it faster"
    if seconds > TOO_LONG:
        raise ConfigError(f"{found} {seconds / 86400:,.0f} days; {remedy}")
    return f"{found} {_duration(seconds)}; {remedy}"


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60, -1)
    return f"about {minutes:.0f} minutes" if minutes < 100 else f"about {seconds / 3600:.0f} hours"


def _best(states: Sequence[State], remaining: Remaining) -> tuple[State, tuple[State, ...], dict[State, Fraction]]:
    """Choose among tied states by c3, then by lattice order (in which they stand); also the best of the others."""
    if len(states) == 1:
        return states[0], (), {}
    scores, most = remaining.kept(states)
    order = np.argsort(-scores, kind="stable")[: MOST_RIVALS + 1]
    best, *rivals = (states[i] for i in order)
    return best, tuple(rivals), {states[i]: 1 - Fraction(int(scores[i]), most) for i in order}
