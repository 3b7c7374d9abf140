"""The paper's integer program of one class, or of the outliers, as it stands in Algorithms 3 and 4.

One unknown per cell, `z`, says how many records of the class lie in it. Every row adds up some cells:

- *overlap* (`A_eq`): what an earlier class shares with this one is empty, for it took every record there;
- *sum* (`A_eq`): the segment holds all records of the class;
- *half* (`A_lb`): where a node has two children, each holds a record; otherwise the other one would hold them all;
- *sparse* (`A_ub`): a smaller segment inside holds fewer records than would have made a class of it.

Three things are not as printed there, because the print would exclude true data. The class's own segment has no sparse
row. A node with three children or more has no half rows: two of them may hold everything. And the mechanism says which
classes surely came earlier, and how many records no smaller segment reaches (`k` in the paper).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product
from math import prod
from textwrap import wrap
from typing import Any, Literal, TextIO

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from unblur.attacking import Attack, Target
from unblur.errors import OutputError, ProgramError
from unblur.grid import Box
from unblur.lattice import Segment, State

Kind = Literal["overlap", "sum", "half", "sparse", "outside"]
Sparse = Literal["all", "children"]
"""Sparse rows for every smaller segment, or only for those that are one layer lower in one attribute."""
Columns = Literal["segment", "grid"]
"""One unknown for each cell of the class's segment, or for each cell there is."""

MOST_ENTRIES = 2_000_000
"""A program with more non-zeros than this is refused."""

Matrix = Any  # scipy.sparse.csr_array
Vector = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Row:
    """What a row of a program says."""

    kind: Kind
    text: str
    labels: tuple[str, ...]
    """The segment it speaks of: the class that took the cells (overlap), or the cells that are added up."""


@dataclass(frozen=True, slots=True)
class Together:
    """Of an attribute's children, those that hold `least` records or more hold together fewer than `bound`."""

    children: tuple[tuple[int, ...], ...]
    """The columns of each child."""
    least: int
    bound: int

    def allows(self, z: Sequence[int]) -> bool:
        """Whether an assignment keeps the rule."""
        held = [sum(z[column] for column in columns) for columns in self.children]
        return sum(n for n in held if n >= self.least) < self.bound


@dataclass(frozen=True)
class Program:
    """All `z >= 0`, whole, with `A_ub z <= b_ub`, `A_lb z >= b_lb` and `A_eq z = b_eq`."""

    size: int
    """How many records are to be placed."""
    A_ub: Matrix
    b_ub: Vector
    A_lb: Matrix
    b_lb: Vector
    A_eq: Matrix
    b_eq: Vector
    rows_ub: tuple[Row, ...]
    rows_lb: tuple[Row, ...]
    rows_eq: tuple[Row, ...]
    together: tuple[Together, ...]
    """Rules that no row can say."""
    box: Box
    """The cells that are columns, the last attribute fastest."""
    axis_labels: tuple[tuple[str, ...], ...]
    axis_lengths: tuple[tuple[int, ...], ...]

    @property
    def columns(self) -> int:
        """How many unknowns there are."""
        return prod(map(len, self.axis_labels))

    @cached_property
    def volumes(self) -> tuple[int, ...]:
        """Count the raw records that fit in the cell of each column."""
        return tuple(prod(lengths) for lengths in product(*self.axis_lengths))

    def labels(self, column: int) -> tuple[str, ...]:
        """Name the cell of a column."""
        places = np.unravel_index(column, [len(labels) for labels in self.axis_labels])
        return tuple(labels[int(place)] for labels, place in zip(self.axis_labels, places, strict=True))

    def column(self, cell: Sequence[int]) -> int:
        """Find the column of a cell, given by its positions on the axes of the grid."""
        return int(_columns(self.box, tuple((place, place + 1) for place in cell))[0])

    def broken(self, z: Sequence[int]) -> list[Row]:
        """List the rows that an assignment does not satisfy."""
        values = np.asarray(z, dtype=np.int64)
        return [
            *_rows_where(self.rows_ub, self.A_ub @ values > self.b_ub),
            *_rows_where(self.rows_lb, self.A_lb @ values < self.b_lb),
            *_rows_where(self.rows_eq, self.A_eq @ values != self.b_eq),
        ]

    def to_lp(self, file: str | os.PathLike[str] | TextIO) -> None:
        """Write the program in the LP format of CPLEX, to a path or an open text file.

        The unknown of column 12 is called `z_12`. Comments name the cells and say what each row means; letters beyond
        ASCII are escaped in them, since not every solver can read those.
        """
        if self.together:
            raise ProgramError("a rule of this program is no linear row, so it cannot be written as LP")
        if not isinstance(file, (str, os.PathLike)):
            file.writelines(line + "\n" for line in _lp_lines(self))
            return
        try:
            with open(file, "w", encoding="ascii", newline="\n") as opened:
                self.to_lp(opened)
        except OSError as error:
            raise OutputError(f"{os.fspath(file)}: {error.strerror or error}") from error


def build_program(attack: Attack, target: Target, *, sparse: Sparse = "all", columns: Columns = "segment") -> Program:
    """State the program of a class, or of the outliers.

    Columns are the cells of the class's own segment, in lattice order; the others are fixed to 0, so they are left out.
    With `columns="grid"` they are there, each with a row of kind "outside" that says so, as in the paper.

    Every smaller segment lies in one that is a single layer lower in a single attribute. So `sparse="children"` states
    fewer rows and has the same solutions.
    """
    writer = _Writer(attack, target, sparse, _whole(attack) if columns == "grid" else target.box)
    writer.check_size()
    upper = _stack(writer.sparse_rows(), writer.columns)
    lower = _stack(writer.half_rows(), writer.columns)
    equal = _stack(chain(writer.outside_rows(), writer.overlap_rows(), writer.sum_rows()), writer.columns)
    return Program(
        target.subject.size, *upper[:2], *lower[:2], *equal[:2], upper[2], lower[2], equal[2],
        tuple(writer.together()), writer.columns,
        axis_labels=tuple(writer.each_node(lambda tree, layer, rank: tree.label(layer, rank))),
        axis_lengths=tuple(writer.each_node(lambda tree, layer, rank: tree.length(layer, rank))),
    )  # fmt: skip


_Entry = tuple[Row, Box, int]
"""A row, the box whose cells it adds up, and its right-hand side."""
_Node = tuple[int, int]
"""Layer and rank."""


@dataclass(frozen=True)
class _Writer:
    """Writes the rows of one program."""

    attack: Attack
    target: Target
    sparse: Sparse
    columns: Box

    @cached_property
    def bound(self) -> int | None:
        return self.attack.inference.bound(self.target.subject)

    @cached_property
    def finest(self) -> State:
        return self.attack.release.config.lattice.finest

    @cached_property
    def nodes(self) -> tuple[_Node, ...]:
        """The node of the class's segment in every attribute."""
        return tuple(zip(self.target.subject.state, self.target.subject.segment, strict=True))

    @cached_property
    def below(self) -> dict[int, list[_Node]]:
        """The children of the generalized attributes."""
        return {
            attribute: self._descendants(attribute, layer - 1)
            for attribute, (layer, _) in enumerate(self.nodes)
            if layer > self.finest[attribute]
        }

    @cached_property
    def pairs(self) -> dict[int, list[_Node]]:
        """The children where there are two, and where each must hold a record: the other cannot hold them all."""
        if self.bound is None or self.target.subject.size < self.bound:
            return {}
        return {attribute: children for attribute, children in self.below.items() if len(children) == 2}

    def check_size(self) -> None:
        """Refuse a program that is too large, before any of it is there."""
        if (entries := self._entries()) <= MOST_ENTRIES:
            return
        fewer = _Writer(self.attack, self.target, "children", self.target.box)._entries()
        smaller = f'; with sparse="children" over the cells of the segment it has {fewer:,}, and the same solutions'
        raise ProgramError(
            f"the program would have {entries:,} non-zeros; at most {MOST_ENTRIES:,} are accepted"
            + (smaller if fewer <= MOST_ENTRIES else "; the exact engine needs no program")
        )

    def _entries(self) -> int:
        """Count the non-zeros (with those of published smaller segments, which get no row)."""
        cells = _cells(self.target.box)
        layers = [layer - low + 1 for (layer, _), low in zip(self.nodes, self.finest, strict=True)]
        times = prod(layers) - 1 if self.sparse == "all" else sum(each > 1 for each in layers)
        shared = sum(_cells(_meet(self.target.box, self.attack.boxes[number])) for number in self.target.takers)
        outside = _cells(self.columns) - cells
        return outside + shared + cells * (1 + len(self.pairs) + (times if self.bound is not None else 0))

    def outside_rows(self) -> Iterator[_Entry]:
        if self.columns == self.target.box:
            return
        for cell in self.attack.grid.cells(self.columns):
            if not all(a <= place < b for place, (a, b) in zip(cell, self.target.box, strict=True)):
                row = Row("outside", "not in the segment: no record here", self.attack.grid.labels(cell))
                yield row, tuple((place, place + 1) for place in cell), 0

    def overlap_rows(self) -> Iterator[_Entry]:
        for number in self.target.takers:
            labels = self.attack.release.labels(self.attack.release.classes[number])
            row = Row("overlap", f"class {number + 1} came before and took every record of the cells it shares", labels)
            yield row, _meet(self.target.box, self.attack.boxes[number]), 0

    def sum_rows(self) -> Iterator[_Entry]:
        size = self.target.subject.size
        yield Row("sum", f"the segment holds all {size} records", self._labels(self.nodes)), self.target.box, size

    def half_rows(self) -> Iterator[_Entry]:
        for attribute, children in self.pairs.items():
            name = self.attack.release.config.quasi_identifiers[attribute].name
            text = f"a half in {name}: if it held no record, the other would hold all {self.target.subject.size}"
            for child in children:
                nodes = self._replaced(attribute, child)
                yield Row("half", text, self._labels(nodes)), self._box(nodes), 1

    def sparse_rows(self) -> Iterator[_Entry]:
        if self.bound is None:
            return
        text = f"a smaller segment that is no class: fewer than {self.bound} records"
        for nodes in self._smaller():
            if nodes not in self._published:
                yield Row("sparse", text, self._labels(nodes)), self._box(nodes), self.bound - 1

    def together(self) -> Iterator[Together]:
        k, size = self.attack.release.config.k, self.target.subject.size
        if self.bound is None or not 2 * k <= size or not k < self.bound <= size:
            return
        for attribute, children in self.below.items():
            boxes = (self._box(self._replaced(attribute, child)) for child in children)
            yield Together(tuple(tuple(_columns(self.columns, box).tolist()) for box in boxes), k, self.bound)

    def _smaller(self) -> Iterator[tuple[_Node, ...]]:
        """Go through the smaller segments, the coarser ones first in every attribute."""
        if self.sparse == "children":
            for attribute, children in self.below.items():
                yield from (self._replaced(attribute, child) for child in children)
            return
        branches = (
            [node for lower in range(layer, low - 1, -1) for node in self._descendants(attribute, lower)]
            for attribute, ((layer, _), low) in enumerate(zip(self.nodes, self.finest, strict=True))
        )
        yield from (nodes for nodes in product(*branches) if nodes != self.nodes)

    @cached_property
    def _published(self) -> set[tuple[_Node, ...]]:
        """The segments (the paper's active ones) of earlier classes: empty by their overlap rows."""
        classes = (self.attack.release.classes[number] for number in self.target.takers)
        return {tuple(zip(each.state, each.segment, strict=True)) for each in classes}

    def _replaced(self, attribute: int, node: _Node) -> tuple[_Node, ...]:
        return (*self.nodes[:attribute], node, *self.nodes[attribute + 1 :])

    def _descendants(self, attribute: int, layer: int) -> list[_Node]:
        """List the nodes of a layer below the class's node, from the left."""
        tree = self.attack.release.config.lattice.hierarchies[attribute]
        top, rank = self.nodes[attribute]
        below = np.flatnonzero(tree.climb(np.arange(tree.nodes(layer)), layer, top) == rank).tolist()
        return sorted(((layer, each) for each in below), key=lambda node: self._box(self._replaced(attribute, node)))

    def _box(self, nodes: Iterable[_Node]) -> Box:
        state, segment = zip(*nodes, strict=True)
        return self.attack.grid.box(state, segment)

    def _labels(self, nodes: Iterable[_Node]) -> tuple[str, ...]:
        trees = self.attack.release.config.lattice.hierarchies
        return tuple(tree.label(layer, rank) for tree, (layer, rank) in zip(trees, nodes, strict=True))

    def each_node(self, what: Any) -> Iterator[tuple[Any, ...]]:
        """Ask something of every node of the finest layer among the columns, attribute by attribute."""
        trees = self.attack.release.config.lattice.hierarchies
        for attribute, (tree, layer, (a, b)) in enumerate(zip(trees, self.finest, self.columns, strict=True)):
            order = np.argsort(self.attack.grid.positions(attribute))
            yield tuple(what(tree, layer, int(rank)) for rank in order[a:b])


def _whole(attack: Attack) -> Box:
    top = attack.release.config.lattice.top
    root: Segment = (0,) * len(top)
    return attack.grid.box(top, root)


def _cells(box: Box) -> int:
    return prod(b - a for a, b in box)


def _meet(left: Box, right: Box) -> Box:
    return tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(left, right, strict=True))


def _columns(box: Box, part: Box) -> Vector:
    """Number the cells of a part of a box, the last attribute fastest."""
    numbers = np.zeros(1, np.int64)
    for (first, last), (a, b) in zip(box, part, strict=True):
        numbers = (numbers[:, None] * (last - first) + np.arange(a - first, b - first)).ravel()
    return numbers


def _stack(entries: Iterable[_Entry], columns: Box) -> tuple[Matrix, Vector, tuple[Row, ...]]:
    """Make a matrix of 0 and 1, a right-hand side, and the meaning of the rows."""
    listed = list(entries)
    indices = [_columns(columns, part) for _, part, _ in listed]
    joined = np.concatenate([np.zeros(0, np.int64), *indices])
    starts = np.cumsum([0, *map(len, indices)])
    shape = (len(listed), _cells(columns))
    matrix = csr_array((np.ones(len(joined), np.int64), joined, starts), shape=shape)
    return matrix, np.array([right for _, _, right in listed], np.int64), tuple(row for row, _, _ in listed)


def _rows_where(rows: Sequence[Row], flags: Iterable[bool]) -> list[Row]:
    return [row for row, flag in zip(rows, flags, strict=True) if flag]


def _lp_lines(program: Program) -> Iterator[str]:
    yield from _comment(
        f"{program.size} records in {program.columns} cells; every whole solution is a way to place them"
    )
    for column in range(program.columns):
        yield from _comment(f"z_{column}: {' x '.join(program.labels(column))}")
    yield "Minimize"
    yield " any: 0 z_0"
    yield "Subject To"
    yield from _lp_rows(program.A_eq, program.b_eq, program.rows_eq, "=")
    yield from _lp_rows(program.A_lb, program.b_lb, program.rows_lb, ">=")
    yield from _lp_rows(program.A_ub, program.b_ub, program.rows_ub, "<=")
    yield "General"
    yield from _lp_names(range(program.columns), " ")
    yield "End"


def _lp_rows(matrix: Matrix, right: Vector, rows: Sequence[Row], sign: str) -> Iterator[str]:
    for number, row in enumerate(rows):
        yield from _comment(f"{row.text}: {' x '.join(row.labels)}")
        yield f" {row.kind}_{number}:"
        yield from _lp_names(matrix.indices[matrix.indptr[number] : matrix.indptr[number + 1]].tolist(), " + ")
        yield f" {sign} {right[number]}"


def _lp_names(columns: Sequence[int], between: str) -> Iterator[str]:
    """Write the names of unknowns, a few to a line: some readers take lines of at most 255 characters."""
    for start in range(0, len(columns), 10):
        names = between.join(f"z_{column}" for column in columns[start : start + 10])
        yield (between if start else " ") + names


def _comment(text: str) -> Iterator[str]:
    """Write a comment that no label can break out of."""
    escaped = text.encode("unicode_escape").decode("ascii")
    return (f"\\ {line}" for line in wrap(escaped, 118, break_on_hyphens=False))
