"""The grid of cells: boxes in it, and what is left of a box when others have taken their part.

In each attribute the nodes of the finest layer stand in the order of the tree, so every node, of whatever layer, is a
run of neighbours, and every segment a box. A box has a *volume* (raw records that fit in it) and *cells*; both are
products over the attributes, so what is left of a box is measured by cutting along the edges of the boxes that overlap
it, never by listing cells: the cost follows the boxes, not the grid.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise, product
from math import gcd, prod
from typing import Protocol, overload

import numpy as np

from unblur.cutting import Box as Box
from unblur.cutting import Span as Span
from unblur.cutting import free_pieces
from unblur.hierarchy import Hierarchy, Ranks
from unblur.lattice import Lattice, Segment, State


@dataclass(frozen=True)
class Free:
    """What is free in a region: disjoint boxes, the raw records that fit in them, and their cells."""

    volume: int = 0
    cells: int = 0
    pieces: tuple[Box, ...] = ()


@dataclass(frozen=True)
class Grid:
    """The cells of a lattice, addressed by boxes."""

    lattice: Lattice

    def box(self, state: State, segment: Segment) -> Box:
        """Return the box of a segment."""
        return tuple(axis.span(layer, rank) for axis, layer, rank in zip(self._axes, state, segment, strict=True))

    def children(self, attribute: int, layer: int, rank: int) -> Sequence[Span]:
        """Return the spans of a node's children."""
        axis = self._axes[attribute]
        if layer == 1 and isinstance(axis, _Values):
            return _Points(*axis.span(layer, rank))
        return sorted(axis.span(layer - 1, child) for child in axis.tree.children(layer, rank))

    def volume(self, box: Box) -> int:
        """Count the raw records that fit in a box."""
        return prod(axis.volume(span) for axis, span in zip(self._axes, box, strict=True))

    def axis_volume(self, attribute: int, span: Span) -> int:
        """Count the raw values of an attribute in a span."""
        return self._axes[attribute].volume(span)

    def count_cells(self, box: Box) -> int:
        """Count the cells of a box."""
        return prod(b - a for a, b in box)

    def cells(self, box: Box) -> Iterator[tuple[int, ...]]:
        """List the cells of a box: positions on the axes, the last fastest."""
        return product(*(range(a, b) for a, b in box))

    def random_cell(self, box: Box, rng: random.Random) -> tuple[int, ...]:
        """Draw the cell of a raw record that lies anywhere in a box."""
        return tuple(axis.draw(span, rng) for axis, span in zip(self._axes, box, strict=True))

    def labels(self, cell: Sequence[int]) -> tuple[str, ...]:
        """Name a cell by the labels of its nodes."""
        return tuple(
            axis.tree.label(axis.finest, axis.rank(position)) for axis, position in zip(self._axes, cell, strict=True)
        )

    @cached_property
    def has_points(self) -> bool:
        """Whether cells are finer than the leaves of some interval attribute: raw values of a number."""
        return any(isinstance(axis, _Values) for axis in self._axes)

    def leaf(self, cell: Sequence[int]) -> tuple[int, ...]:
        """Find the leaf that a cell lies in; the cell itself if it is one."""
        return tuple(axis.leaf(position) for axis, position in zip(self._axes, cell, strict=True))

    def leaves(self, box: Box) -> Box:
        """The leaves that a box touches, as a box of their own."""
        if not self.has_points:
            return box
        return tuple(
            (axis.leaf(span[0]), axis.leaf(span[1] - 1) + 1) for axis, span in zip(self._axes, box, strict=True)
        )

    def positions(self, attribute: int, ranks: Ranks | None = None) -> Ranks:
        """Return the positions of nodes of the finest layer, or of all of them, on their axis."""
        axis = self._axes[attribute]
        return axis.positions(np.arange(axis.tree.nodes(axis.finest)) if ranks is None else ranks)

    def pieces(self, box: Box, taken: Sequence[Box]) -> Iterator[Box]:
        """Part what is left of a box, outside the boxes that were taken before, into boxes."""
        return free_pieces(box, taken)

    def measure(self, pieces: Sequence[Box]) -> Free:
        """Measure disjoint boxes."""
        if len(pieces) == 1:
            return Free(self.volume(pieces[0]), self.count_cells(pieces[0]), tuple(pieces))
        return Free(sum(map(self.volume, pieces)), sum(map(self.count_cells, pieces)), tuple(pieces))

    def cell_volumes(self, free: Free) -> Counter[int]:
        """Count the free cells of each volume."""
        if self.is_even:
            return Counter({self.unit: free.cells} if free.cells else {})
        result: Counter[int] = Counter()
        for piece in free.pieces:
            volumes = Counter({1: 1})
            for axis, span in zip(self._axes, piece, strict=True):
                volumes = _products(volumes, axis.lengths_in(span))
            result.update(volumes)
        return result

    def power_sums(self, free: Free, highest: int) -> list[int]:
        """Add up the powers 0, 1, 2, … of the volumes of the free cells, without listing them."""
        result = [0] * (highest + 1)
        for piece in free.pieces:
            sums = [self._power_sums(attribute, span, highest) for attribute, span in enumerate(piece)]
            result = [total + prod(each) for total, *each in zip(result, *sums, strict=True)]
        return result

    def _power_sums(self, attribute: int, span: Span, highest: int) -> list[int]:
        key = (attribute, span, highest)
        if key not in self._sums:
            lengths = self._axes[attribute].lengths_in(span)
            self._sums[key] = [sum(n * length**m for length, n in lengths.items()) for m in range(highest + 1)]
        return self._sums[key]

    @cached_property
    def _sums(self) -> dict[tuple[int, Span, int], list[int]]:
        return {}

    @cached_property
    def unit(self) -> int:
        """A volume that goes into that of every cell: where they are all alike, their volume."""
        return prod(gcd(*each) for each in self._lengths)

    @cached_property
    def is_even(self) -> bool:
        """Whether all cells have the same volume."""
        return all(len(each) == 1 for each in self._lengths)

    @cached_property
    def _lengths(self) -> list[Counter[int]]:
        return [axis.lengths_in(axis.span(axis.tree.height, 0)) for axis in self._axes]

    @cached_property
    def _axes(self) -> list[_Axis]:
        return [_axis(tree, low) for tree, low in zip(self.lattice.hierarchies, self.lattice.finest, strict=True)]


def _axis(tree: Hierarchy, finest: int) -> _Axis:
    return _Values(tree) if finest == 0 and tree.kind == "interval" else _Nodes(tree, finest)


class _Axis(Protocol):
    """One attribute: the nodes of its finest layer in the order of the tree."""

    tree: Hierarchy
    finest: int

    def span(self, layer: int, rank: int) -> Span: ...
    def rank(self, position: int) -> int: ...
    def positions(self, ranks: Ranks) -> Ranks: ...
    def volume(self, span: Span) -> int: ...
    def draw(self, span: Span, rng: random.Random) -> int: ...
    def leaf(self, position: int) -> int: ...
    def lengths_in(self, span: Span) -> Counter[int]: ...


class _Nodes:
    """An attribute whose finest nodes are cells."""

    def __init__(self, tree: Hierarchy, finest: int) -> None:
        self.tree, self.finest = tree, finest
        nodes = np.arange(tree.nodes(finest))
        above = [tree.climb(nodes, finest, layer) for layer in range(finest, tree.height + 1)]
        self._order = np.lexsort(above)  # the root first, then ever finer
        self._position = np.empty_like(self._order)
        self._position[self._order] = nodes
        self._lengths = (
            np.ones(len(nodes), np.int64)
            if finest == 0
            else np.array([tree.length(finest, int(rank)) for rank in self._order], np.int64)
        )
        self._total: list[int] = [0, *np.cumsum(self._lengths).tolist()]
        self._spans: dict[int, dict[int, Span]] = {}
        for layer, ranks in enumerate(above, finest):
            ordered = ranks[self._order]
            first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
            edges = [*first.tolist(), len(nodes)]
            spans = pairwise(edges)
            self._spans[layer] = dict(zip(ordered[first].tolist(), spans, strict=True))
        self._counted: dict[Span, Counter[int]] = {}

    def span(self, layer: int, rank: int) -> Span:
        return self._spans[layer][rank]

    def rank(self, position: int) -> int:
        return int(self._order[position])

    def positions(self, ranks: Ranks) -> Ranks:
        return self._position[ranks]

    def volume(self, span: Span) -> int:
        return self._total[span[1]] - self._total[span[0]]

    def draw(self, span: Span, rng: random.Random) -> int:
        value = rng.randrange(self._total[span[0]], self._total[span[1]])
        return bisect_right(self._total, value) - 1

    def leaf(self, position: int) -> int:
        return position

    def lengths_in(self, span: Span) -> Counter[int]:
        """How many nodes of a span have each length."""
        if span not in self._counted:
            values, counts = np.unique(self._lengths[span[0] : span[1]], return_counts=True)
            self._counted[span] = Counter(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        return self._counted[span]


class _Values:
    """A number whose raw values are in the lattice: they stand in their own order, and are never listed.

    What people call a cell is a leaf all the same: a single raw value of a number tells nobody apart.
    """

    finest = 0

    def __init__(self, tree: Hierarchy) -> None:
        self.tree = tree
        self._edges = {layer: self._ends(layer) for layer in range(1, tree.height + 1)}

    def _ends(self, layer: int) -> list[int]:
        return [0, *accumulate(self.tree.length(layer, rank) for rank in range(self.tree.nodes(layer)))]

    def span(self, layer: int, rank: int) -> Span:
        return (rank, rank + 1) if layer == 0 else (self._edges[layer][rank], self._edges[layer][rank + 1])

    def rank(self, position: int) -> int:
        return position

    def positions(self, ranks: Ranks) -> Ranks:
        return ranks

    def volume(self, span: Span) -> int:
        return span[1] - span[0]

    def draw(self, span: Span, rng: random.Random) -> int:
        return rng.randrange(*span)

    def leaf(self, position: int) -> int:
        return bisect_right(self._edges[1], position) - 1

    def lengths_in(self, span: Span) -> Counter[int]:
        return Counter({1: span[1] - span[0]})


@dataclass(frozen=True)
class _Points(Sequence[Span]):
    """The spans of single values, not listed."""

    first: int
    end: int

    def __len__(self) -> int:
        return self.end - self.first

    @overload
    def __getitem__(self, index: int) -> Span: ...
    @overload
    def __getitem__(self, index: slice) -> list[Span]: ...
    def __getitem__(self, index: int | slice) -> Span | list[Span]:
        found = range(self.first, self.end)[index]
        return (found, found + 1) if isinstance(found, int) else [(each, each + 1) for each in found]


def _products(left: Counter[int], right: Counter[int]) -> Counter[int]:
    result: Counter[int] = Counter()
    for (a, m), (b, n) in product(left.items(), right.items()):
        result[a * b] += m * n
    return result
