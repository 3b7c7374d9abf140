"""Hierarchies: layers of ever coarser nodes over the values of one attribute.

Layer 0 holds the raw values, layer 1 the leaves, the last layer (the *height*) the root. A node is named by its layer
and its rank, counted from the left. Two kinds differ only in what a raw value is: a multiple of `step` in an interval
(`IntervalHierarchy`), or one of a list of texts (`CategoryHierarchy`).

Decimal places are exact. Bounds are `Decimal`; a value that floating-point arithmetic has moved off a cut by a few
units in the last place (`0.7 + 0.1` is a little less than `0.8`) counts as lying on the cut, so no rounding moves a
record to another cell. Hence the limit on how fine a step may be against the domain: see `IntervalHierarchy.tolerance`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from unblur.errors import HierarchyError
from unblur.labels import ROOT_LABEL, interval_label, number_label

Ranks = NDArray[np.int64]

MOST_LEAVES = 4096
"""How many leaf intervals an attribute may have."""


@dataclass(frozen=True)
class Hierarchy(ABC):
    """A tree of nodes over a domain of raw values; build one with `halves`, `from_cuts` or `from_rows`."""

    labels: tuple[tuple[str, ...], ...]
    """`labels[j][r]` names the node of rank r in layer j + 1; the last entry is the root's alone."""
    parents: tuple[tuple[int, ...], ...]
    """`parents[j][r]` is the rank, in layer j + 2, of the parent of the node of rank r in layer j + 1."""
    kind: ClassVar[str]
    notes: tuple[str, ...] = field(default=(), compare=False, kw_only=True)
    """What the builder had to assume, for people to read."""

    def __post_init__(self) -> None:
        if len(self.labels[-1]) != 1:
            raise HierarchyError(f"the last layer must be a single root; it has {len(self.labels[-1])} nodes")
        for lower, upper, parents in zip(self.labels[:-1], self.labels[1:], self.parents, strict=True):
            assert len(parents) == len(lower) and set(parents) == set(range(len(upper))), "not a tree"

    @property
    def height(self) -> int:
        """The layer of the root."""
        return len(self.labels)

    @property
    @abstractmethod
    def values(self) -> int:
        """How many raw values the domain has."""

    def nodes(self, layer: int) -> int:
        """Count the nodes of a layer."""
        return self.values if layer == 0 else len(self.labels[layer - 1])

    def label(self, layer: int, rank: int) -> str:
        """Name a node as a release names it."""
        return self._raw_label(rank) if layer == 0 else self.labels[layer - 1][rank]

    def length(self, layer: int, rank: int) -> int:
        """Count the raw values under a node (the paper's `length`)."""
        return 1 if layer == 0 else int(self._lengths[layer - 1][rank])

    def climb(self, ranks: Ranks, start: int, end: int) -> Ranks:
        """Replace nodes of layer `start` by their ancestors in layer `end`."""
        if start == end:
            return ranks
        if start == 0:
            return self.climb(self._leaves(ranks), 1, end)
        for parents in self.parents[start - 1 : end - 1]:
            ranks = np.asarray(parents, dtype=np.int64)[ranks]
        return ranks

    def highest(self, layer: int, rank: int) -> int:
        """The highest layer on which a node has the same values and the same label: up chains of only children."""
        label, length = self.label(layer, rank), self.length(layer, rank)
        while layer < self.height:
            parent = int(self.climb(np.array([rank]), layer, layer + 1)[0])
            if self.length(layer + 1, parent) != length or self.label(layer + 1, parent) != label:
                break
            layer, rank = layer + 1, parent
        return layer

    def children(self, layer: int, rank: int) -> range | tuple[int, ...]:
        """List the ranks, in the layer below, of a node's children."""
        if layer == 1:
            return self._raw_children(rank)
        return tuple(r for r, parent in enumerate(self.parents[layer - 2]) if parent == rank)

    @cached_property
    def _lengths(self) -> list[Ranks]:
        lengths = [self._leaf_lengths()]
        for parents, upper in zip(self.parents, self.labels[1:], strict=True):
            merged = np.zeros(len(upper), dtype=np.int64)
            np.add.at(merged, np.asarray(parents), lengths[-1])
            lengths.append(merged)
        return lengths

    @abstractmethod
    def _leaf_lengths(self) -> Ranks: ...

    @abstractmethod
    def _leaves(self, values: Ranks) -> Ranks: ...

    @abstractmethod
    def _raw_label(self, rank: int) -> str: ...

    @abstractmethod
    def _raw_children(self, leaf: int) -> range | tuple[int, ...]: ...


@dataclass(frozen=True)
class IntervalHierarchy(Hierarchy):
    """A hierarchy of half-open intervals over the multiples of `step`.

    >>> weight = halves(Decimal(30), Decimal(190), step=Decimal("0.5"), layers=4)
    >>> weight.values, weight.nodes(1), weight.label(1, 0), weight.label(4, 0)
    (320, 8, '[30.0, 50.0[', '[30.0, 190.0[')
    >>> weight.length(1, 0), weight.length(4, 0), weight.children(2, 3)
    (40, 320, (6, 7))
    """

    bounds: tuple[Decimal, ...]
    """The cuts between the leaves, with both ends of the domain."""
    step: Decimal
    kind: ClassVar[str] = "interval"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_step(self.bounds, self.step)
        for left, right in pairwise(self.bounds):
            if left >= right:
                raise HierarchyError(f"cuts must rise; {right} follows {left}")
            if (right - self.low) % self.step:
                raise HierarchyError(f"the cut {right} is not {self.low} plus a multiple of the step {self.step}")

    @property
    def low(self) -> Decimal:
        """The lower end of the domain, included."""
        return self.bounds[0]

    @property
    def high(self) -> Decimal:
        """The upper end of the domain, excluded."""
        return self.bounds[-1]

    @property
    def values(self) -> int:
        return int((self.high - self.low) / self.step)

    @property
    def decimals(self) -> bool:
        """Whether numbers are written with a decimal point."""
        return _have_decimals(self.bounds, self.step)

    @property
    def tolerance(self) -> Decimal:
        """How far below a cut a floating-point value still counts as lying on it: 16 units in the last place."""
        return rounding_noise(self.bounds)

    @cached_property
    def thresholds(self) -> tuple[float, ...]:
        """The bounds as floating-point numbers, lowered by the tolerance: `v` is right of a cut if it is not less."""
        return tuple(float(bound - self.tolerance) for bound in self.bounds)

    def interval(self, layer: int, rank: int) -> tuple[Decimal, Decimal]:
        """Return the bounds of a node."""
        if layer == 0:
            return self.low + rank * self.step, self.low + (rank + 1) * self.step
        leaves = np.flatnonzero(self.climb(np.arange(self.nodes(1)), 1, layer) == rank)
        return self.bounds[leaves[0]], self.bounds[leaves[-1] + 1]

    @cached_property
    def _units(self) -> Ranks:
        return np.array([int((bound - self.low) / self.step) for bound in self.bounds], dtype=np.int64)

    def _leaf_lengths(self) -> Ranks:
        return np.diff(self._units)

    def _leaves(self, values: Ranks) -> Ranks:
        return np.searchsorted(self._units, values, side="right") - 1

    def _raw_label(self, rank: int) -> str:
        return number_label(self.low + rank * self.step, decimals=self.decimals)

    def _raw_children(self, leaf: int) -> range:
        return range(int(self._units[leaf]), int(self._units[leaf + 1]))


@dataclass(frozen=True)
class CategoryHierarchy(Hierarchy):
    """A hierarchy over a list of texts.

    >>> sex = from_rows([["male", "*"], ["female", "*"]])
    >>> sex.height, sex.values, sex.nodes(1), sex.label(0, 1)
    (1, 2, 1, 'female')
    """

    domain: tuple[str, ...]
    leaf_of: tuple[int, ...]
    """The rank of the leaf above each value of the domain."""
    kind: ClassVar[str] = "categories"

    @property
    def values(self) -> int:
        return len(self.domain)

    def _leaf_lengths(self) -> Ranks:
        return np.bincount(np.asarray(self.leaf_of), minlength=self.nodes(1)).astype(np.int64)

    def _leaves(self, values: Ranks) -> Ranks:
        return np.asarray(self.leaf_of, dtype=np.int64)[values]

    def _raw_label(self, rank: int) -> str:
        return self.domain[rank]

    def _raw_children(self, leaf: int) -> tuple[int, ...]:
        return tuple(value for value, above in enumerate(self.leaf_of) if above == leaf)


def halves(low: Decimal, high: Decimal, *, step: Decimal = Decimal(1), layers: int) -> IntervalHierarchy:
    """Split `[low, high)` into equal halves again and again, until there are `layers` layers."""
    if not 1 <= layers <= MOST_LEAVES.bit_length():
        raise HierarchyError(f"layers must be 1 to {MOST_LEAVES.bit_length()}, not {layers}")
    if not low < high:
        raise HierarchyError(f"low must be below high; they are {low} and {high}")
    leaves = 2 ** (layers - 1)
    _check_step([low, high], step)
    if (high - low) % (step * leaves):
        raise HierarchyError(
            f"{leaves} equal leaves over {high - low} do not fall on a step of {step}: "
            f"high - low must be a multiple of {step * leaves}"
        )
    width = (high - low) / leaves
    return from_cuts([low + width * i for i in range(leaves + 1)], fanouts=[2] * (layers - 1), step=step)


def from_cuts(cuts: Sequence[Decimal], *, fanouts: Sequence[int] = (), step: Decimal = Decimal(1)) -> IntervalHierarchy:
    """Make leaves between neighbouring cuts, then group them: `fanouts[0]` leaves to a node, and so on upwards.

    The last node of a layer may be smaller. If more than one node is left, a root labelled `*` is added.

    >>> age = from_cuts([Decimal(c) for c in (0, 18, 40, 65, 120)], fanouts=[2])
    >>> [age.label(2, r) for r in range(age.nodes(2))], age.label(3, 0)
    (['[0, 40[', '[40, 120['], '*')
    """
    if len(cuts) < 2:
        raise HierarchyError(f"at least two cuts are needed, not {len(cuts)}")
    if len(cuts) > MOST_LEAVES + 1:
        raise HierarchyError(f"{len(cuts) - 1:,} leaves are too many; {MOST_LEAVES:,} are accepted")
    if bad := [fanout for fanout in fanouts if fanout < 2]:
        raise HierarchyError(f"a fan-out must be 2 or more, not {bad[0]}")
    layers = [list(range(len(cuts)))]  # of each layer, the indices of its cuts
    parents = []
    for fanout in fanouts:
        edges = layers[-1]
        if len(edges) == 2:
            raise HierarchyError(f"{len(fanouts)} fan-outs are too many: {len(layers) - 1} already lead to one node")
        parents.append(tuple(rank // fanout for rank in range(len(edges) - 1)))
        layers.append([*edges[:-1:fanout], edges[-1]])
    decimals = _have_decimals(cuts, step)
    labels = [
        tuple(interval_label(cuts[a], cuts[b], decimals=decimals) for a, b in pairwise(edges)) for edges in layers
    ]
    if len(labels[-1]) > 1:
        parents.append((0,) * len(labels[-1]))
        labels.append((ROOT_LABEL,))
    return IntervalHierarchy(tuple(labels), tuple(parents), tuple(cuts), step)


def from_rows(rows: Sequence[Sequence[str]]) -> CategoryHierarchy:
    """Make a hierarchy of texts from rows `[value, leaf, ..., root]`."""
    if not rows:
        raise HierarchyError("the hierarchy has no rows")
    depth = len(rows[0])
    if depth < 2:
        raise HierarchyError("row 1: one column only; a value and at least one coarser label are needed")
    seen: dict[str, int] = {}
    for number, row in enumerate(rows, 1):
        if len(row) != depth:
            raise HierarchyError(f"row {number}: {len(row)} columns, but row 1 has {depth}")
        if "" in row[1:]:
            raise HierarchyError(f"row {number}: the label in column {row.index('', 1) + 1} is empty")
        if row[0] in seen:
            raise HierarchyError(f"row {number}: the same value as in row {seen[row[0]]}")
        seen[row[0]] = number
    _check_blanks(rows)
    layers, parents = _tree(rows)
    return CategoryHierarchy(
        labels=tuple(tuple(layer) for layer in layers),
        parents=tuple(parents),
        domain=tuple(row[0] for row in rows),
        leaf_of=tuple(layers[0][row[1]] for row in rows),
    )


def _check_blanks(rows: Sequence[Sequence[str]]) -> None:
    """Refuse labels that only a computer tells apart."""
    for column in range(len(rows[0])):
        known: dict[str, tuple[str, int]] = {}
        for number, row in enumerate(rows, 1):
            label, since = known.setdefault(" ".join(row[column].split()), (row[column], number))
            if label != row[column]:
                what = f"column {column + 1} differs from that in row {since} only by blanks"
                raise HierarchyError(f"row {number}: the label in {what}; write both alike")


def _tree(rows: Sequence[Sequence[str]]) -> tuple[list[dict[str, int]], list[tuple[int, ...]]]:
    """Rank the labels of every column in order of appearance, and find each one's only parent."""
    layers: list[dict[str, int]] = [{} for _ in rows[0][1:]]
    above: list[dict[str, tuple[str, int]]] = [{} for _ in rows[0][2:]]
    for number, row in enumerate(rows, 1):
        for layer, label in zip(layers, row[1:], strict=True):
            layer.setdefault(label, len(layer))
        for column, (child, parent) in enumerate(pairwise(row[1:])):
            known, since = above[column].setdefault(child, (parent, number))
            if known != parent:
                raise HierarchyError(
                    f"row {number}: {child!r} in column {column + 2} has two parents: here {parent!r}, "
                    f"in row {since} {known!r}"
                )
    if len(layers[-1]) > 1:
        second = next(n for n, row in enumerate(rows, 1) if row[-1] != rows[0][-1])
        raise HierarchyError(f"row {second}: the last column must be the same in all rows (the root)")
    parents = [
        tuple(upper[above[column][label][0]] for label in lower)
        for column, (lower, upper) in enumerate(pairwise(layers))
    ]
    return layers, parents


def rounding_noise(numbers: Sequence[Decimal]) -> Decimal:
    """How far arithmetic in double precision may have moved numbers of this size: 16 units in the last place."""
    return max(map(abs, numbers)) / 2**48


def _check_step(bounds: Sequence[Decimal], step: Decimal) -> None:
    if step <= 0:
        raise HierarchyError(f"step must be above 0, not {step}")
    if rounding_noise(bounds) * 4 > step:
        raise HierarchyError(
            f"a step of {step} is too fine for numbers up to {max(map(abs, bounds))}: "
            "double precision cannot tell neighbouring values apart"
        )


def _have_decimals(bounds: Sequence[Decimal], step: Decimal) -> bool:
    return any(number % 1 for number in (*bounds, step))
