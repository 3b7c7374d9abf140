"""How many distinct values remain: what the third criterion compares."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unblur.hierarchy import Ranks
from unblur.histogram import Histogram
from unblur.lattice import Lattice


class Distinct:
    """How many distinct nodes and raw values occur among what remains; kept up to date once it has been asked for."""

    def __init__(self, histogram: Histogram, lattice: Lattice) -> None:
        self._histogram, self._lattice = histogram, lattice
        self._occurring: list[list[Ranks]] | None = None
        self._values: list[_Values] = []
        self._everything = True

    @cached_property
    def _nodes(self) -> list[list[Ranks]]:
        """Per attribute and layer, the node of every cell."""
        lattice = self._lattice
        columns = zip(lattice.hierarchies, self._histogram.nodes, lattice.layers, strict=True)
        return [[tree.climb(nodes, layers[0], layer) for layer in layers] for tree, nodes, layers in columns]

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
            [np.bincount(nodes[cells], minlength=int(nodes.max(initial=0)) + 1) for nodes in layers]
            for layers in self._nodes
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
