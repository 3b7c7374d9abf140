"""What remains of a histogram while classes are carved out, grouped by any state."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unblur.distinct import Distinct
from unblur.hierarchy import Ranks
from unblur.histogram import Histogram
from unblur.lattice import Lattice, State
from unblur.release import EquivalenceClass
from unblur.tallying import Tally, Tallying

MOST_GROUPS = 16
"""How many groups a look lists."""


class Group(NamedTuple):
    """Cells that together have k records."""

    state: State
    """The finest state that is known to keep them together."""
    cells: Ranks


class Look(NamedTuple):
    """What there is to see at a state."""

    groups: Sequence[Group]
    """Its groups of k; none if the state fails."""
    is_closed: bool
    """Whether these are all, and each needs all its cells.

    If not, there is one group only, which stands for all that there is: while it holds, no coarser state is closed.
    """


FAILURE = Look((), is_closed=True)


class Remaining:
    """The records not yet in a class.

    Cells that have gone stay in the arrays with a count of 0 until they are a tenth: packing the arrays anew after
    every step would cost more than the steps.
    """

    def __init__(self, histogram: Histogram, lattice: Lattice, k: int) -> None:
        self._finest, self._k = lattice.finest, k
        self._cells = np.arange(len(histogram.counts))
        self._tallying = Tallying(histogram, lattice)
        self._distinct = Distinct(histogram, lattice)
        self._classes = 0
        self._latest: tuple[State, _Groups] | None = None
        self.alive = np.ones(len(histogram.counts), dtype=bool)
        self.class_of_cell = np.full(len(histogram.counts), -1, dtype=np.int64)
        self.records = histogram.records

    def any_group(self, state: State) -> bool:
        """Whether some group of the state holds k records."""
        return bool(self.look(state).groups)

    def covered(self, state: State) -> int:
        """Count the records in groups of at least k."""
        return int(self._grouped(state).sizes.sum())

    def covers(self, state: State, least: int) -> bool:
        """Whether at least so many records are in groups of at least k."""
        tally = self._tallying.tally(state)
        at_most = tally.counts[tally.counts >= self._k].sum()
        return bool(at_most >= least) and (tally.is_exact or self.covered(state) >= least)

    def look(self, state: State) -> Look:
        """Find the groups of a state; one of them, if they are many or large."""
        tally = self._tallying.tally(state)
        fullest = int(tally.counts.argmax())
        if tally.counts[fullest] < self._k:
            return FAILURE
        if tally.counts[fullest] > self._k:  # mostly there is much to see, and this bucket shows it
            group = self._with_spare((tally.buckets == fullest).nonzero()[0])
            if group is not None and _is_within(group.state, state):
                return Look([group], is_closed=False)
        found = self._seen(self._of_equal(*self._candidates(tally)))
        if not all(_is_within(group.state, state) for group in found.groups):  # two segments share a code
            return self._seen(self._grouped(state))
        return found

    def holds(self, group: Group) -> bool:
        """Whether all cells of a group remain."""
        return bool(self.alive[group.cells].all())

    def release(self, state: State) -> tuple[EquivalenceClass, ...]:
        """Turn every group of at least k into a class and take its records away."""
        groups = self._grouped(state)
        segments = self._tallying.nodes(state, groups.members[groups.starts]).T.astype(np.int64)
        order = np.lexsort(segments.T[::-1])
        number = np.empty(len(order), dtype=np.int64)
        number[order] = np.arange(len(order)) + self._classes
        self.class_of_cell[self._cells[groups.members]] = np.repeat(number, groups.lengths)
        self._classes += len(order)
        sizes = groups.sizes.astype(np.int64)
        self.records -= int(sizes.sum())
        self._drop(groups.members)
        return tuple(
            EquivalenceClass(state, tuple(segment), size)
            for segment, size in zip(segments[order].tolist(), sizes[order].tolist(), strict=True)
        )

    def kept(self, states: Sequence[State]) -> tuple[NDArray[Any], int]:
        """Return what c3 compares, times a common denominator: the sum of the shares of distinct values kept."""
        shares, denominator = self._distinct.shares(np.flatnonzero(self.alive))
        layers = np.array(states) - np.array(self._finest)
        return sum(each[layers[:, i]] for i, each in enumerate(shares)), denominator * len(shares)

    def _drop(self, members: Ranks) -> None:
        self._distinct.remove(self._cells[members])
        self.alive[self._cells[members]] = False
        self._tallying.counts[members] = 0
        self._latest = None
        keep = self._tallying.counts > 0
        if 10 * np.count_nonzero(keep) < 9 * len(keep):
            self._cells = self._cells[keep]
            self._tallying.keep(keep)

    def _seen(self, groups: _Groups) -> Look:
        """List groups if they are few, and each needs all its cells."""
        if not len(groups.sizes):
            return FAILURE
        starts = groups.starts
        spare = groups.sizes - np.minimum.reduceat(self._tallying.counts[groups.members], starts) >= self._k
        for number in spare.nonzero()[0][:1]:
            group = self._with_spare(groups.members[starts[number] :][: groups.lengths[number]])
            assert group is not None
            return Look([group], is_closed=False)
        if len(starts) > MOST_GROUPS:
            members = groups.members[: groups.lengths[: MOST_GROUPS + 1].sum()]
            together = np.max(self._tallying.joins(members, starts[: MOST_GROUPS + 1]), axis=0)
            return Look([Group(tuple(together.tolist()), self._cells[members])], is_closed=False)
        joins = self._tallying.joins(groups.members, starts)
        return Look(list(map(Group, joins, np.split(self._cells[groups.members], starts[1:]))), is_closed=True)

    def _with_spare(self, members: Ranks) -> Group | None:
        """Take as many cells of a group as have k records even without one of them; None if it has not so many."""
        counts = self._tallying.counts[members[: 2 * self._k]]
        order = (-counts).argsort(kind="stable")
        enough = int(counts[order].cumsum().searchsorted(self._k)) + 2
        if enough > np.count_nonzero(counts):
            return None
        chosen = members[order[:enough]]
        (state,) = self._tallying.joins(chosen, np.zeros(1, dtype=np.int64))
        return Group(state, self._cells[chosen])

    def _grouped(self, state: State) -> _Groups:
        """Find the groups of at least k."""
        if self._latest is None or self._latest[0] != state:
            groups = self._of_equal(*self._candidates(self._tallying.tally(state)))
            nodes = self._tallying.nodes(state, groups.members)
            if (nodes != nodes[:, groups.starts.repeat(groups.lengths)]).any():  # two segments share a code
                members = self._tallying.counts.nonzero()[0]
                _, codes = np.unique(self._tallying.nodes(state, members), axis=1, return_inverse=True)
                groups = self._of_equal(members, codes.ravel())
            self._latest = state, groups
        return self._latest[1]

    def _candidates(self, tally: Tally) -> tuple[Ranks, NDArray[Any]]:
        """List the cells that may be in a group of k, and codes that are equal for those of a group."""
        members = (tally.counts >= self._k)[tally.buckets].nonzero()[0]
        members = members[self._tallying.counts[members] > 0]
        return members, tally.buckets[members] if tally.is_exact else self._tallying.codes(tally.state, members)

    def _of_equal(self, members: Ranks, codes: NDArray[Any]) -> _Groups:
        """Group cells by equal codes; leave out what stays below k."""
        if not len(members):
            return _Groups(members, members, np.empty(0))
        order = codes.argsort(kind="stable")
        members, codes = members[order], codes[order]
        is_edge = np.ones(len(codes) + 1, dtype=bool)
        np.not_equal(codes[1:], codes[:-1], out=is_edge[1:-1])
        edges = is_edge.nonzero()[0]
        lengths = edges[1:] - edges[:-1]
        sizes = np.add.reduceat(self._tallying.counts[members], edges[:-1])
        enough = sizes >= self._k
        return _Groups(members[enough.repeat(lengths)], lengths[enough], sizes[enough])


@dataclass(frozen=True, slots=True, eq=False)
class _Groups:
    """Cells, group by group."""

    members: Ranks
    lengths: Ranks
    """How many cells each group has."""
    sizes: NDArray[np.float64]
    """How many records."""

    @property
    def starts(self) -> Ranks:
        """Where the groups begin."""
        return np.cumsum(self.lengths) - self.lengths


def _is_within(state: State, other: State) -> bool:
    return all(map(operator.le, state, other))
