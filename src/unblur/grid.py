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
from itertools import product
from math import prod

import numpy as np

from unblur.hierarchy import Hierarchy, Ranks
from unblur.lattice import Lattice, Segment, State

Span = tuple[int, int]
"""A run of neighbouring nodes of the finest layer: first, and one after the last."""
Box = tuple[Span, ...]


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
        return tuple(
            (int(axis.starts[layer][rank]), int(axis.ends[layer][rank]))
            for axis, layer, rank in zip(self._axes, state, segment, strict=True)
        )

    def children(self, attribute: int, layer: int, rank: int) -> list[Span]:
        """Return the spans of a node's children."""
        axis = self._axes[attribute]
        ranks = axis.tree.children(layer, rank)
        return sorted((int(axis.starts[layer - 1][r]), int(axis.ends[layer - 1][r])) for r in ranks)

    def volume(self, box: Box) -> int:
        """Count the raw records that fit in a box."""
        return prod(int(axis.total[b] - axis.total[a]) for axis, (a, b) in zip(self._axes, box, strict=True))

    def count_cells(self, box: Box) -> int:
        """Count the cells of a box."""
        return prod(b - a for a, b in box)

    def cells(self, box: Box) -> Iterator[tuple[int, ...]]:
        """List the cells of a box: positions on the axes, the last fastest."""
        return product(*(range(a, b) for a, b in box))

    def random_cell(self, box: Box, rng: random.Random) -> tuple[int, ...]:
        """Draw the cell of a raw record that lies anywhere in a box."""
        return tuple(
            bisect_right(axis.total, rng.randrange(int(axis.total[a]), int(axis.total[b]))) - 1
            for axis, (a, b) in zip(self._axes, box, strict=True)
        )

    def labels(self, cell: Sequence[int]) -> tuple[str, ...]:
        """Name a cell by the labels of its nodes."""
        return tuple(
            axis.tree.label(low, int(axis.order[position]))
            for axis, low, position in zip(self._axes, self.lattice.finest, cell, strict=True)
        )

    @cached_property
    def has_points(self) -> bool:
        """Whether cells are finer than the leaves of some interval attribute: raw values of a number."""
        return any(axis.leaf is not None for axis in self._axes)

    def leaf(self, cell: Sequence[int]) -> tuple[int, ...]:
        """Find the leaf that a cell lies in; the cell itself if it is one."""
        return tuple(
            position if axis.leaf is None else int(axis.leaf[position])
            for axis, position in zip(self._axes, cell, strict=True)
        )

    def leaves(self, box: Box) -> Box:
        """The leaves that a box touches, as a box of their own."""
        return tuple(
            span if axis.leaf is None else (int(axis.leaf[span[0]]), int(axis.leaf[span[1] - 1]) + 1)
            for axis, span in zip(self._axes, box, strict=True)
        )

    def positions(self, attribute: int) -> Ranks:
        """Return, for each node of the finest layer by rank, its position on the axis."""
        return self._axes[attribute].position

    def pieces(self, box: Box, taken: Sequence[Box]) -> Iterator[Box]:
        """Part what is left of a box, outside the boxes that were taken before, into boxes."""
        return _pieces(box, _overlapping(box, taken))

    def measure(self, pieces: Sequence[Box]) -> Free:
        """Measure disjoint boxes."""
        return Free(sum(map(self.volume, pieces)), sum(map(self.count_cells, pieces)), tuple(pieces))

    def cell_volumes(self, free: Free) -> Counter[int]:
        """Count the free cells of each volume."""
        result: Counter[int] = Counter()
        for piece in free.pieces:
            volumes = Counter({1: 1})
            for axis, span in zip(self._axes, piece, strict=True):
                volumes = _products(volumes, axis.lengths_in(span))
            result.update(volumes)
        return result

    @cached_property
    def _axes(self) -> list[_Axis]:
        return [_Axis(tree, low) for tree, low in zip(self.lattice.hierarchies, self.lattice.finest, strict=True)]


class _Axis:
    """One attribute: the nodes of its finest layer in the order of the tree."""

    def __init__(self, tree: Hierarchy, finest: int) -> None:
        self.tree = tree
        nodes = np.arange(tree.nodes(finest))
        above = [tree.climb(nodes, finest, layer) for layer in range(finest, tree.height + 1)]
        self.order = np.lexsort(above)  # the root first, then ever finer
        self.position = np.empty_like(self.order)
        self.position[self.order] = nodes
        self.lengths = (
            np.ones(len(nodes), np.int64)
            if finest == 0
            else np.array([tree.length(finest, int(rank)) for rank in self.order], np.int64)
        )
        self.total = np.concatenate(([0], np.cumsum(self.lengths)))
        self.starts: dict[int, Ranks] = {}
        self.ends: dict[int, Ranks] = {}
        for layer, ranks in enumerate(above, finest):
            ordered = ranks[self.order]
            first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
            self.starts[layer] = np.empty(tree.nodes(layer), np.int64)
            self.starts[layer][ordered[first]] = first
            self.ends[layer] = np.empty(tree.nodes(layer), np.int64)
            self.ends[layer][ordered[first]] = np.concatenate((first[1:], [len(nodes)]))
        self._counted: dict[Span, Counter[int]] = {}
        # What people call a cell is a leaf: a single raw value of a number tells nobody apart.
        self.leaf: Ranks | None = None
        if finest == 0 and tree.kind == "interval":
            leaves = tree.climb(self.order, 0, 1)
            self.leaf = np.cumsum(np.concatenate(([0], leaves[1:] != leaves[:-1])))

    def lengths_in(self, span: Span) -> Counter[int]:
        """How many nodes of a span have each length."""
        if span not in self._counted:
            values, counts = np.unique(self.lengths[span[0] : span[1]], return_counts=True)
            self._counted[span] = Counter(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        return self._counted[span]


def _products(left: Counter[int], right: Counter[int]) -> Counter[int]:
    result: Counter[int] = Counter()
    for (a, m), (b, n) in product(left.items(), right.items()):
        result[a * b] += m * n
    return result


def _overlapping(box: Box, others: Sequence[Box]) -> list[Box]:
    return [other for other in others if all(a < d and c < b for (a, b), (c, d) in zip(box, other, strict=True))]


def _pieces(box: Box, taken: Sequence[Box]) -> Iterator[Box]:
    """Cut a box along the edges of the taken ones, all of which overlap it; yield the pieces that are free."""
    if not taken:
        yield box
        return
    cut = _best_cut(box, taken)
    if cut is None:  # some box covers this one
        return
    attribute, position = cut
    first, last = box[attribute]
    before, after = box[:attribute], box[attribute + 1 :]
    below = [each for each in taken if each[attribute][0] < position]
    above = [each for each in taken if each[attribute][1] > position]
    yield from _pieces((*before, (first, position), *after), below)
    yield from _pieces((*before, (position, last), *after), above)


def _best_cut(box: Box, taken: Sequence[Box]) -> tuple[int, int] | None:
    """Find an edge of a taken box inside this one; the edge that most boxes share, so that they part early."""
    edges: dict[tuple[int, int], int] = {}
    for other in taken:
        inside = False
        for attribute, (a, b) in enumerate(box):
            for edge in other[attribute]:
                if a < edge < b:
                    inside = True
                    edges[attribute, edge] = edges.get((attribute, edge), 0) + 1
        if not inside:
            return None
    most = max(edges.values())
    shared = sorted(edge for edge, count in edges.items() if count == most)
    return shared[len(shared) // 2]  # the middle one: the depth of the cuts then grows with the logarithm
