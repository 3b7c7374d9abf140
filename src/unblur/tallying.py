"""Records counted by the groups of a state, many thousand times over.

Where a state has few segments, they are numbered, and counting by these numbers is all. Otherwise they are scattered
over buckets first: where a bucket counts less than k, no group in it reaches k, and most cells fall out. The attributes
are numbered or scattered in two halves, which are kept: states that are looked at one after the other often share one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unblur.hierarchy import Ranks
from unblur.histogram import Histogram
from unblur.lattice import Lattice, State

ROOM = 2
"""Buckets for every cell, at least."""
SPARE_ROOM = 1024
MOST_KEPT = 2**24
"""How many numbers the halves that are kept may have together."""
ODD = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio: its powers scatter nodes over 64 bits."""


class Tally(NamedTuple):
    """Records counted by buckets."""

    state: State
    buckets: Ranks
    """Of each cell."""
    counts: NDArray[np.float64]
    is_exact: bool
    """Whether a bucket is a segment, and not several."""


class Tallying:
    """Cells with their nodes in all layers, and how many records each has."""

    def __init__(self, histogram: Histogram, lattice: Lattice) -> None:
        self.counts = histogram.counts.astype(np.float64)  # exact, and what `bincount` adds up
        self._finest = lattice.finest
        kind = np.min_scalar_type(max((int(nodes.max(initial=0)) for nodes in histogram.nodes), default=0))
        columns = zip(lattice.hierarchies, histogram.nodes, lattice.layers, strict=True)
        self._nodes = np.stack(  # a row for every attribute and layer
            [tree.climb(nodes, each[0], layer).astype(kind) for tree, nodes, each in columns for layer in each]
        )
        self._widths = [int(most) + 1 for most in self._nodes.max(axis=1, initial=0)]
        self._first = np.cumsum([0, *(len(layers) for layers in lattice.layers[:-1])])
        self._offsets = (self._first - np.array(lattice.finest)).tolist()
        self._powers = np.array([pow(ODD, i + 1, 2**64) for i in range(len(lattice.finest))], dtype=np.uint64)
        self._start()

    def _start(self) -> None:
        self._bits = (ROOM * len(self.counts) + SPARE_ROOM).bit_length()
        self._halves: dict[tuple[int, ...], Ranks] = {}

    def keep(self, cells: NDArray[np.bool_]) -> None:
        """Forget all cells but these."""
        self.counts = self.counts[cells]
        self._nodes = np.compress(cells, self._nodes, axis=1)  # each row in one piece
        self._start()

    def tally(self, state: State) -> Tally:
        """Count records by segments, where these are few, or by buckets of them."""
        rows = self._rows(state)
        left, right = rows[: len(rows) // 2], rows[len(rows) // 2 :]
        wide = math.prod([self._widths[row] for row in right])
        if is_exact := wide * math.prod([self._widths[row] for row in left]) <= 2**self._bits:
            buckets = self._half(left, wide) + self._half(right, 1)
        else:
            buckets = self._half(left, 0) ^ self._half(right, 0, len(left))
        counts = np.bincount(buckets, weights=self.counts, minlength=1)
        return Tally(state, buckets, counts.astype(np.float64, copy=False), is_exact)

    def codes(self, state: State, cells: Ranks) -> NDArray[np.uint64]:
        """Return 64 bits for each cell: equal in a segment, and hardly ever beyond."""
        nodes = self.nodes(state, cells).astype(np.uint64)
        return np.asarray((nodes * self._powers[:, None]).sum(axis=0, dtype=np.uint64))

    def nodes(self, state: State, cells: Ranks) -> NDArray[Any]:
        """Return the nodes of cells, a row for each attribute."""
        return np.asarray(self._nodes[np.array(self._rows(state))[:, None], cells])

    def joins(self, cells: Ranks, starts: Ranks) -> list[State]:
        """Return, for cells group by group, the finest states that keep each group together."""
        nodes = self._nodes[:, cells]
        apart = np.minimum.reduceat(nodes, starts, axis=1) != np.maximum.reduceat(nodes, starts, axis=1)
        joins = np.add.reduceat(apart, self._first, axis=0, dtype=np.int64).T + np.array(self._finest)
        return list(map(tuple, joins.tolist()))

    def _rows(self, state: State) -> list[int]:
        return [offset + layer for offset, layer in zip(self._offsets, state, strict=True)]

    def _half(self, rows: Sequence[int], stride: int, start: int = 0) -> Ranks:
        """Number the segments of some attributes with a stride, or scatter them if it is 0."""
        key = (stride, *rows)
        if key not in self._halves:
            if len(self._halves) * len(self.counts) > MOST_KEPT:
                del self._halves[next(iter(self._halves))]
            self._halves[key] = self._number(rows, stride) if stride else self._scatter(rows, start)
        return self._halves[key]

    def _number(self, rows: Sequence[int], stride: int) -> Ranks:
        """Number segments, the last attribute fastest."""
        numbers = np.zeros(len(self.counts), dtype=np.int64)
        for row in reversed(rows):
            if self._widths[row] > 1:
                numbers += np.multiply(self._nodes[row], stride, dtype=np.int64)
                stride *= self._widths[row]
        return numbers

    def _scatter(self, rows: Sequence[int], start: int) -> Ranks:
        codes = np.zeros(len(self.counts), dtype=np.uint64)
        for power, row in zip(self._powers[start:], rows, strict=False):
            codes += np.multiply(self._nodes[row], power, dtype=np.uint64)
        codes >>= np.uint64(64 - self._bits)
        return codes.view(np.int64)
