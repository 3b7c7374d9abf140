"""The histogram of a table over its cells, and what remains of it while classes are carved out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from unblur.hierarchy import Ranks
from unblur.lattice import Lattice, State
from unblur.release import EquivalenceClass


class RawValues(Protocol):
    """The raw values behind the cells: asked for only when a tie on loss, c1 and c2 has to be decided."""

    def count(self) -> Sequence[int]:
        """Count the distinct raw values of each attribute among all records."""
        ...

    def of(self, cells: Ranks) -> Sequence[tuple[Ranks, Ranks]]:
        """List, for each attribute, the distinct pairs of a cell (of those given) and a raw value in it."""
        ...


@dataclass(frozen=True)
class Histogram:
    """How many records fall in each occupied cell of a lattice's finest state."""

    nodes: Sequence[Ranks]
    """Per attribute, the rank of each cell's node in the finest layer."""
    counts: Ranks
    raw_values: RawValues

    @classmethod
    def of(cls, lattice: Lattice, records: Ranks) -> Histogram:
        """Count records that are at hand: a row of raw ranks each."""
        columns = enumerate(lattice.hierarchies)
        nodes = np.stack([tree.climb(records[:, i], 0, lattice.finest[i]) for i, tree in columns], axis=1)
        occupied, cell_of, counts = np.unique(nodes, axis=0, return_inverse=True, return_counts=True)
        return cls(list(occupied.T), counts, KnownValues(records, cell_of.ravel()))

    @property
    def records(self) -> int:
        return int(self.counts.sum())


@dataclass(frozen=True)
class KnownValues:
    """The raw values behind a histogram, from the records themselves."""

    records: Ranks
    cell_of: Ranks

    def count(self) -> list[int]:
        return [len(np.unique(column)) for column in self.records.T]

    def of(self, cells: Ranks) -> list[tuple[Ranks, Ranks]]:
        here = np.isin(self.cell_of, cells)
        pairs = [np.unique(np.stack([self.cell_of[here], column[here]], axis=1), axis=0) for column in self.records.T]
        return [(each[:, 0], each[:, 1]) for each in pairs]


class Remaining:
    """The records not yet in a class, grouped by any state.

    Cells that have gone stay in the arrays with a count of 0 until they are a tenth: packing the arrays anew after
    every step would cost more than the steps.
    """

    def __init__(self, histogram: Histogram, lattice: Lattice, k: int) -> None:
        self._finest, self._k = lattice.finest, k
        self._cells = np.arange(len(histogram.counts))
        self._counts = histogram.counts.astype(np.float64)  # exact, and what `bincount` adds up
        self._nodes = [
            [tree.climb(column, low, layer) for layer in layers]
            for tree, column, low, layers in zip(
                lattice.hierarchies, histogram.nodes, lattice.finest, lattice.layers, strict=True
            )
        ]
        self._widths = [[int(nodes.max(initial=0)) + 1 for nodes in per_layer] for per_layer in self._nodes]
        self._classes = 0
        self._latest: tuple[State, tuple[Ranks, Ranks]] | None = None
        self._distinct = _Distinct(histogram, self._nodes, self._widths)
        self.alive = np.ones(len(histogram.counts), dtype=bool)
        self.class_of_cell = np.full(len(histogram.counts), -1, dtype=np.int64)
        self.records = histogram.records

    def any_group(self, state: State) -> bool:
        """Whether some group of the state holds k records."""
        return bool(self._grouped(state)[0].size)

    def covered(self, state: State) -> int:
        """Count the records in groups of at least k."""
        return int(self._counts[self._grouped(state)[0]].sum())

    def witness(self, state: State) -> Ranks:
        """Return some cells that together make a group of k: while they remain, the state stays usable."""
        members, codes = self._grouped(state)
        group = members[codes == codes[0]]
        enough = int(np.searchsorted(np.cumsum(self._counts[group]), self._k)) + 1
        return np.asarray(self._cells[group[:enough]])

    def release(self, state: State) -> tuple[EquivalenceClass, ...]:
        """Turn every group of at least k into a class and take its records away."""
        members, codes = self._grouped(state)
        _, first, group = np.unique(codes, return_index=True, return_inverse=True)
        sizes = np.bincount(group, weights=self._counts[members]).astype(np.int64)
        segments = np.stack([self._column(i, layer)[members[first]] for i, layer in enumerate(state)], axis=1)
        order = np.lexsort(segments.T[::-1])
        number = np.empty(len(order), dtype=np.int64)
        number[order] = np.arange(len(order)) + self._classes
        self.class_of_cell[self._cells[members]] = number[group]
        self._classes += len(order)
        self.records -= int(sizes.sum())
        self._drop(members)
        return tuple(
            EquivalenceClass(state, tuple(segment), size)
            for segment, size in zip(segments[order].tolist(), sizes[order].tolist(), strict=True)
        )

    def kept(self, states: Sequence[State]) -> tuple[NDArray[Any], int]:
        """Return what c3 compares, times a common denominator: the sum of the shares of distinct values kept."""
        shares, denominator = self._distinct.shares(np.flatnonzero(self.alive))
        layers = np.array(states) - np.array(self._finest)
        return sum(shares[i][layers[:, i]] for i in range(len(self._finest))), denominator * len(self._finest)

    def _column(self, attribute: int, layer: int) -> Ranks:
        return self._nodes[attribute][layer - self._finest[attribute]]

    def _drop(self, members: Ranks) -> None:
        self._distinct.remove(self._cells[members])
        self.alive[self._cells[members]] = False
        self._counts[members] = 0
        self._latest = None
        keep = self._counts > 0
        if 10 * np.count_nonzero(keep) < 9 * len(keep):
            self._cells, self._counts = self._cells[keep], self._counts[keep]
            self._nodes = [[nodes[keep] for nodes in per_layer] for per_layer in self._nodes]

    def _grouped(self, state: State) -> tuple[Ranks, Ranks]:
        """Find the cells in groups of at least k, and for each a code that tells its group from the others."""
        if self._latest is None or self._latest[0] != state:
            self._latest = state, self._group(state)
        return self._latest[1]

    def _group(self, state: State) -> tuple[Ranks, Ranks]:
        codes, span = self._codes(state)
        room = 2 * len(codes) + 1024
        if span <= room:
            members = np.flatnonzero(self._in_heavy(codes, self._counts))
            return members, codes[members]
        # Count in hashed buckets first: a bucket below k holds no group of k, and most cells fall out.
        buckets = (codes.view(np.uint64) * _ODD >> np.uint64(64 - room.bit_length())).view(np.int64)
        candidates = np.flatnonzero(self._in_heavy(buckets, self._counts))
        codes = _dense(codes[candidates])[0]
        heavy = self._in_heavy(codes, self._counts[candidates])
        return candidates[heavy], codes[heavy]

    def _in_heavy(self, codes: Ranks, counts: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Tell which cells remain and have a code that k records share."""
        tally = np.bincount(codes, weights=counts)
        if tally.max(initial=0) < self._k:
            return np.zeros(len(codes), dtype=bool)
        return np.asarray((tally >= self._k)[codes] & (counts > 0))

    def _codes(self, state: State) -> tuple[Ranks, int]:
        """Number the groups of a state from 0 to a span: equal codes, same segment."""
        codes, span = np.zeros(len(self._cells), dtype=np.int64), 1
        for i, layer in enumerate(state):
            column, width = self._column(i, layer), self._widths[i][layer - self._finest[i]]
            if span * width > 2**62:  # number anew what occurs: at most one code, and one node, per cell
                codes, span = _dense(codes)
                column, width = _dense(column)
            if width > 1:
                codes = codes * width + column
                span *= width
        return codes, span


class _Distinct:
    """How many distinct nodes and raw values occur among what remains; kept up to date once it has been asked for."""

    def __init__(self, histogram: Histogram, nodes: Sequence[Sequence[Ranks]], widths: Sequence[Sequence[int]]) -> None:
        self._histogram, self._nodes, self._widths = histogram, [list(each) for each in nodes], widths
        self._occurring: list[list[Ranks]] | None = None
        self._values: list[_Values] = []
        self._everything = True

    def shares(self, cells: Ranks) -> tuple[list[NDArray[Any]], int]:
        """Return, per attribute and layer, distinct nodes over distinct raw values, and their common denominator."""
        if self._occurring is None:
            self._start(cells)
        assert self._occurring is not None
        if self._everything:
            raw = [int(count) for count in self._histogram.raw_values.count()]
        else:
            raw = [values.distinct for values in self._values]
        common = math.lcm(*raw)
        kind = np.int64 if common * len(raw) < 2**62 else object
        return [
            np.array([int(np.count_nonzero(each)) * (common // count) for each in layers], dtype=kind)
            for layers, count in zip(self._occurring, raw, strict=True)
        ], common

    def _start(self, cells: Ranks) -> None:
        self._occurring = [
            [np.bincount(nodes[cells], minlength=width) for nodes, width in zip(layers, widths, strict=True)]
            for layers, widths in zip(self._nodes, self._widths, strict=True)
        ]
        self._everything = len(cells) == len(self._histogram.counts)
        if not self._everything:
            self._values = [_Values(*pairs) for pairs in self._histogram.raw_values.of(cells)]

    def remove(self, cells: Ranks) -> None:
        """Take cells away."""
        if self._everything:
            self._occurring = None  # what is known of all records says nothing about a part
        if self._occurring is None:
            return
        for layers, counts in zip(self._nodes, self._occurring, strict=True):
            for nodes, count in zip(layers, counts, strict=True):
                np.subtract.at(count, nodes[cells], 1)
        for values in self._values:
            values.remove(cells)


class _Values:
    """The raw values of one attribute: in how many of the remaining cells each occurs."""

    def __init__(self, cells: Ranks, values: Ranks) -> None:
        order = np.argsort(cells, kind="stable")
        self._cells = cells[order]
        _, self._values = np.unique(values[order], return_inverse=True)
        self._counts = np.bincount(self._values)
        self.distinct = int(np.count_nonzero(self._counts))

    def remove(self, cells: Ranks) -> None:
        """Take cells away."""
        starts, ends = (np.searchsorted(self._cells, cells, side) for side in ("left", "right"))
        gone = np.concatenate([self._values[a:b] for a, b in zip(starts, ends, strict=True)])
        touched, times = np.unique(gone, return_counts=True)
        self._counts[touched] -= times
        self.distinct -= int(np.count_nonzero(self._counts[touched] == 0))


def _dense(codes: Ranks) -> tuple[Ranks, int]:
    values, dense = np.unique(codes, return_inverse=True)
    return dense.astype(np.int64, copy=False), len(values)


_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: multiplying by it scatters codes over the buckets
