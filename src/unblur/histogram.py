"""The histogram of a table over its cells: all that a recoding sees of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from unblur.hierarchy import Ranks
from unblur.lattice import Lattice


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
