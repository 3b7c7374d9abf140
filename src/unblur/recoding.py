"""Local and global recoding of a histogram.

Removing records never makes a group reach k that did not before, and loss, c1 and c2 do not depend on the data. So
searching the whole lattice anew for every class (the paper's Algorithms 1 and 2) equals one pass over the states in key
order: *every group of at least k remaining records becomes a class*. Only among states tied on the whole key does the
third criterion decide, which depends on what remains, so it is asked again after every pick. The top state is never
applied; what is left then is suppressed.

The pass sees the rows only as a `Histogram`: how many fall in each occupied cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from unblur.hierarchy import Ranks
from unblur.histogram import Histogram, Remaining
from unblur.lattice import Lattice, State
from unblur.release import EquivalenceClass

Progress = Callable[[int, int], None]
"""Called with the number of states done and of all states."""

MOST_RIVALS = 20
"""How many rivals of a state an iteration lists."""


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
    remaining = Remaining(histogram, lattice, k)
    hopeless = _DownSet(lattice)
    iterations: list[Iteration] = []
    done = 0
    for tied in lattice.groups():
        usable = _Usable([state for state in tied if state != lattice.top], remaining, hopeless, lattice)
        while remaining.records >= k and (states := usable.states()):
            state, rivals, c3 = _best(states, remaining)
            usable.take(state)
            classes = remaining.release(state)
            iterations.append(Iteration(state, classes, remaining.records, rivals, len(states) - 1, c3))
        done += len(tied)
        progress(done, lattice.size)
        if remaining.records < k:
            break
    return Recoding(tuple(iterations), remaining.class_of_cell, remaining.records)


def global_recoding(
    histogram: Histogram, lattice: Lattice, *, k: int, suppression_limit: Fraction = Fraction(0)
) -> Recoding:
    """Apply the one state of least loss that leaves at most a share `suppression_limit` of the records outside classes.

    If only the top state does, nothing but the number of records is published: all are suppressed.
    """
    data = Remaining(histogram, lattice, k)
    allowed = int(suppression_limit * histogram.records)
    hopeless = _DownSet(lattice)

    def fits(state: State) -> bool:
        return data.records - data.covered(state) <= allowed

    for tied in lattice.groups():
        if tied == (lattice.top,):
            break
        fitting = [s for s in tied if s not in hopeless and _reaches(fits, s, hopeless, lattice)]
        if fitting:
            state, rivals, c3 = _best(fitting, data)
            classes = data.release(state)
            step = Iteration(state, classes, data.records, rivals, len(fitting) - 1, c3)
            return Recoding((step,), data.class_of_cell, data.records)
    return Recoding((), data.class_of_cell, data.records)


def _best(states: Sequence[State], remaining: Remaining) -> tuple[State, tuple[State, ...], dict[State, Fraction]]:
    """Choose among tied states by c3, then by lattice order (in which they stand); also the best of the others."""
    if len(states) == 1:
        return states[0], (), {}
    scores, most = remaining.kept(states)
    order = np.argsort(-scores, kind="stable")[: MOST_RIVALS + 1]
    best, *rivals = (states[i] for i in order)
    return best, tuple(rivals), {states[i]: 1 - Fraction(int(scores[i]), most) for i in order}


class _Usable:
    """Of some tied states, those under which a group of k remains; tested again only when their witness has gone."""

    def __init__(self, states: Sequence[State], remaining: Remaining, hopeless: _DownSet, lattice: Lattice) -> None:
        self._states, self._remaining, self._hopeless, self._lattice = list(states), remaining, hopeless, lattice
        self._witness: dict[State, Ranks] = {}

    def states(self) -> list[State]:
        """List the usable states, in lattice order."""
        self._states = [state for state in self._states if self._usable(state)]
        return self._states.copy()

    def take(self, state: State) -> None:
        """Leave out a state that is being applied."""
        self._states.remove(state)

    def _usable(self, state: State) -> bool:
        witness = self._witness.get(state)
        if witness is not None and self._remaining.alive[witness].all():
            return True
        if state in self._hopeless or not _reaches(self._remaining.any_group, state, self._hopeless, self._lattice):
            return False
        self._witness[state] = self._remaining.witness(state)
        return True


class _DownSet:
    """States known to fail, closed downwards: what fails for a state fails for every finer one, now and later."""

    def __init__(self, lattice: Lattice) -> None:
        self._finest = lattice.finest
        self._members = np.zeros([len(layers) for layers in lattice.layers], dtype=bool)

    def __contains__(self, state: State) -> bool:
        return bool(self._members[tuple(layer - low for layer, low in zip(state, self._finest, strict=True))])

    def add(self, state: State) -> None:
        self._members[tuple(slice(layer - low + 1) for layer, low in zip(state, self._finest, strict=True))] = True


def _reaches(test: Callable[[State], bool], state: State, hopeless: _DownSet, lattice: Lattice) -> bool:
    """Test a state; if it fails, look for the coarsest failing state on a path to the top and mark all below it."""
    if test(state):
        return True
    path = list(_path_up(state, lattice.top))
    low, high = 0, len(path) - 1  # Invariant: path[low] fails; everything above path[high] is taken to pass.
    while low < high:
        middle = (low + high + 1) // 2
        if path[middle] in hopeless or not test(path[middle]):
            low = middle
        else:
            high = middle - 1
    hopeless.add(path[low])
    return False


def _path_up(state: State, top: State) -> Iterator[State]:
    """Raise the layers one at a time, the lowest first, up to the top."""
    yield state
    layers = list(state)
    while tuple(layers) != top:
        lowest = min((i for i, layer in enumerate(layers) if layer < top[i]), key=layers.__getitem__)
        layers[lowest] += 1
        yield tuple(layers)
