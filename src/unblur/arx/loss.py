"""ARX's information loss, to the last bit.

ARX compares losses as floating-point numbers, and chooses between states that are equal in exact arithmetic by their
rounding. So the order of operations counts: for every attribute the classes are added up one by one in the order in
which their first records stand in the table, the mean share is floored to ten decimals, and the roots are multiplied
attribute by attribute.

The share of a node is what it covers of the domain: by length, if ARX knows the intervals themselves
(`interval_shares`), or by rows of the hierarchy, if it only has their labels (`row_shares`). A raw value has the share
1 / D, where D is the length of the domain *in absolute units*, or the number of rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unblur.hierarchy import Hierarchy, IntervalHierarchy, Ranks

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Shares:
    """What each node of a hierarchy covers of its domain, as ARX counts it.

    >>> from decimal import Decimal
    >>> from unblur.hierarchy import from_cuts, from_rows
    >>> age = from_cuts([Decimal(c) for c in (0, 20, 50)])
    >>> interval_shares(age).layers[0].tolist(), interval_shares(age).of(0, np.array([7])).tolist()
    ([0.4, 0.6], [0.02])
    >>> row_shares(from_rows([["7", "young", "*"], ["8", "young", "*"], ["60", "old", "*"], ["61", "old", "*"]])).size
    4.0
    """

    size: float
    """The size D of the domain."""
    layers: tuple[Floats, ...]
    """`layers[j][r]` is the share of the node of rank r in layer j + 1."""

    def of(self, layer: int, nodes: Ranks) -> Floats:
        """Look up the shares of some nodes of a layer."""
        return np.full(len(nodes), 1.0 / self.size) if layer == 0 else self.layers[layer - 1][nodes]


def interval_shares(tree: IntervalHierarchy) -> Shares:
    """Count lengths: an attribute to which ARX has the interval builder."""
    size = float(tree.high) - float(tree.low)
    bounds = np.array([float(bound) for bound in tree.bounds])
    layers = []
    for layer in range(1, tree.height + 1):
        nodes = tree.climb(np.arange(tree.nodes(1)), 1, layer)
        _, first, leaves = np.unique(nodes, return_index=True, return_counts=True)
        layers.append((bounds[first + leaves] - bounds[first]) / size)
    return Shares(size, tuple(layers))


def row_shares(tree: Hierarchy, listed: Ranks | None = None) -> Shares:
    """Count rows: an attribute to which ARX has a hierarchy file; `listed` are its raw values, by default all."""
    rows = np.arange(tree.values) if listed is None else listed
    layers = [
        np.bincount(tree.climb(rows, 0, layer), minlength=tree.nodes(layer)) / len(rows)
        for layer in range(1, tree.height + 1)
    ]
    return Shares(float(len(rows)), tuple(layers))


@dataclass(frozen=True)
class LossMetric:
    """The metric Loss with geometric mean and equal weights.

    `gs_factor` weighs suppression: at 0 a suppressed record costs what the state would cost it, from 0.5 on all.
    """

    sizes: Sequence[float]
    """The size D of the domain of each attribute."""
    gs_factor: float

    @property
    def of_generalization(self) -> float:
        return 1.0 if self.gs_factor <= 0.5 else 1.0 - 2.0 * (self.gs_factor - 0.5)

    @property
    def of_suppression(self) -> float:
        return 2.0 * self.gs_factor if self.gs_factor < 0.5 else 1.0

    def bound(self, records: int, counts: Floats, shares: Sequence[Floats]) -> float:
        """Score the generalization of some classes alone: no coarser state has less loss."""
        return self._mean(records, [counts * share * self.of_generalization for share in shares])

    def loss(self, records: int, counts: Floats, shares: Sequence[Floats], kept: NDArray[np.bool_]) -> float:
        """Score some classes of which those that are not `kept` are suppressed."""
        return self._mean(records, [self._costs(counts, share, kept) for share in shares])

    def _costs(self, counts: Floats, share: Floats, kept: NDArray[np.bool_]) -> Floats:
        covered = counts * share
        factor = self.of_suppression
        suppressed = counts if factor == 1.0 else covered + factor * (counts - covered)
        return np.where(kept, covered * self.of_generalization, suppressed)

    def _mean(self, records: int, costs: Sequence[Floats]) -> float:
        product = 1.0
        for size, cost in zip(self.sizes, costs, strict=True):
            product *= math.pow(self._normalized(records, _total(cost), size) + 1.0, 1.0 / len(costs))
        return product - 1.0

    def _normalized(self, records: int, total: float, size: float) -> float:
        """Bring a sum of shares to the scale from 0 (raw values) to 1 (everything at the root)."""
        least = self.of_generalization * records / size
        above, span = total - least, records - least
        if span == 0:
            return math.inf if above > 0 else 0.0
        share = above / span
        return math.floor(share * 1e10) / 1e10 if share >= 0 else 0.0


def _total(numbers: Floats) -> float:
    """Add up from left to right; `numpy.sum` and `sum` would round otherwise."""
    return float(np.cumsum(numbers)[-1]) if len(numbers) else 0.0
