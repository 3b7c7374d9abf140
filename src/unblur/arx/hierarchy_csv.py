"""ARX's hierarchy files: no header, one row per raw value, from the value through ever coarser labels to the root.

If every value is a number and every label an interval (the root may be `*`), the file describes an interval
hierarchy. ARX exports only the values that occur in the data, so an interval that nobody falls in is missing; its
place is known from its parent, or from its neighbours if all widths are equal, and it is put back.
"""

from __future__ import annotations

import csv
import io
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal, DecimalException
from itertools import pairwise
from pathlib import Path

import numpy as np

from unblur.csvfile import detect_encoding
from unblur.errors import HierarchyError
from unblur.hierarchy import MOST_LEAVES, Hierarchy, IntervalHierarchy, from_rows
from unblur.labels import ROOT_LABEL, Interval, interval_label, parse_interval, parse_number

Bounds = tuple[Decimal, Decimal]


def read_hierarchy(path: Path, *, step: Decimal | None = None) -> Hierarchy:
    """Read a hierarchy file; `step` is the resolution of an interval attribute (by default that of its numbers)."""
    try:
        return _read_hierarchy(path, step)
    except DecimalException as error:
        raise HierarchyError(f"{path}: a number is too large or too fine to be reckoned with") from error


def _read_hierarchy(path: Path, step: Decimal | None) -> Hierarchy:
    rows = _rows(path)
    if not rows:
        raise HierarchyError(f"{path}: the file is empty; rows of a value and its ever coarser labels are needed")
    try:
        tree = from_rows(rows)
    except HierarchyError as error:
        raise HierarchyError(f"{path}: {error}") from error
    intervals = _as_intervals(rows)
    if intervals is None:
        if step is not None:
            raise HierarchyError(f"{path}: step is for intervals, but the labels of this file are not all intervals")
        return tree
    reader = _IntervalReader(path, rows, intervals, step)
    if stray := reader.stray_row():
        # ARX's own example files have such labels (5 under "0-4"): names for sets of values, no geometry.
        note = f"row {stray}: the value lies outside its interval, so labels are taken as plain names"
        return replace(tree, notes=(note,))
    return reader.hierarchy()


def listed_values(path: Path) -> list[Decimal]:
    """The raw values of a file of intervals."""
    return [number for row in _rows(path) if (number := parse_number(row[0])) is not None]


def write_hierarchy(tree: Hierarchy, path: Path, *, separator: str = ";") -> None:
    """Write a hierarchy as a file that ARX reads; an interval hierarchy with one row per leaf: its lower bound."""
    ranks = np.arange(tree.nodes(0)) if tree.kind == "categories" else np.array(_shown_values(tree))
    layers = [tree.climb(ranks, 0, layer) for layer in range(tree.height + 1)]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=separator, lineterminator="\n")
        for nodes in zip(*layers, strict=True):
            writer.writerow([tree.label(layer, int(node)) for layer, node in enumerate(nodes)])


def _shown_values(tree: Hierarchy) -> list[int]:
    """The first value of each leaf, and the last of all if some label is open-ended: only a value shows its end."""
    known = [parse_interval(label) for layer in tree.labels for label in layer]
    open_ended = any(interval is not None and interval.high is None for interval in known)
    firsts = [tree.children(1, leaf)[0] for leaf in range(tree.nodes(1))]
    return sorted({*firsts, tree.values - 1}) if open_ended else firsts


def _rows(path: Path) -> list[list[str]]:
    try:
        text = path.read_bytes().decode(detect_encoding(path))
    except OSError as error:
        raise HierarchyError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise HierarchyError(f"{path}: neither UTF-8 nor Windows-1252 text") from error
    best: list[list[str]] = []
    for separator in (";", ",", "\t", "|"):
        try:
            rows = [row for row in csv.reader(io.StringIO(text), delimiter=separator) if row]
        except csv.Error:
            raise HierarchyError(f"{path}: not a CSV file with lines that end with LF or CRLF") from None
        if rows and (not best or _regularity(rows) > _regularity(best)):
            best = rows
    return best


def _regularity(rows: list[list[str]]) -> tuple[bool, bool]:
    """Rank a separator: it splits the first row, and all rows alike. The first of equals (`;`) is taken."""
    return len(rows[0]) > 1, len({len(row) for row in rows}) == 1


def _as_intervals(rows: list[list[str]]) -> list[list[Interval]] | None:
    """Read the labels of all layers but a root `*` as intervals; None if some label, or a value, is no number."""
    depth = len(rows[0]) - (rows[0][-1] == ROOT_LABEL)
    if depth < 2 or any(parse_number(row[0]) is None for row in rows):
        return None
    columns = []
    for row in rows:
        intervals = [parse_interval(label) for label in row[1:depth]]
        columns.append([interval for interval in intervals if interval is not None])
        if len(columns[-1]) < len(intervals):
            return None
    return columns


class _IntervalReader:
    """Turns the rows of one file into an interval hierarchy, layer by layer from the coarsest."""

    def __init__(
        self, path: Path, rows: list[list[str]], intervals: list[list[Interval]], step: Decimal | None
    ) -> None:
        self.path, self.rows, self.intervals = path, rows, intervals
        self.values = [Decimal(row[0].strip()) for row in rows]
        self.step = step if step is not None else self._resolution()
        self.has_star = len(rows[0]) - 1 > len(intervals[0])
        self.notes = [] if step is not None else [f"step {self.step} taken from the numbers of the file"]
        self.layers = [self._layer(column) for column in range(len(intervals[0]))]

    def hierarchy(self) -> IntervalHierarchy:
        layers = self.layers
        seen = [{bounds: label for label, bounds in layer.items()} for layer in layers]
        upper: list[Bounds] | None = None
        filled: list[list[Bounds]] = []
        for column in reversed(range(len(layers))):
            upper = self._fill(column, sorted(layers[column].values()), upper)
            filled.insert(0, upper)
        decimals = any(number % 1 for layer in filled for bounds in layer for number in (*bounds, self.step))
        labels = [
            tuple(known.get(bounds) or interval_label(*bounds, decimals=decimals) for bounds in layer)
            for known, layer in zip(seen, filled, strict=True)
        ]
        parents = [tuple(_container(node, above) for node in below) for below, above in pairwise(filled)]
        if self.has_star:
            labels.append((ROOT_LABEL,))
            parents.append((0,) * len(filled[-1]))
        edges = (*(low for low, _ in filled[0]), filled[0][-1][1])
        unseen = sum(map(len, filled)) - sum(map(len, seen))
        if unseen:
            self.notes.append(f"{unseen} intervals that no row shows were put back")
        try:
            return IntervalHierarchy(tuple(labels), tuple(parents), edges, self.step, notes=tuple(self.notes))
        except HierarchyError as error:
            raise HierarchyError(f"{self.path}: {error}") from error

    def _resolution(self) -> Decimal:
        """The finest decimal place in use, among values and bounds."""
        numbers = [*self.values, *(b for row in self.intervals for i in row for b in (i.low, i.high) if b is not None)]
        exponents = [number.normalize().as_tuple().exponent for number in numbers]
        return Decimal(1).scaleb(min(0, *(exponent for exponent in exponents if isinstance(exponent, int))))

    def _layer(self, column: int) -> dict[str, Bounds]:
        """The half-open bounds behind each label of a column."""
        by_label = {row[column + 1]: found[column] for row, found in zip(self.rows, self.intervals, strict=True)}
        starts = {interval.low for interval in by_label.values() if interval.low_closed}
        # `[0, 10]` next to `[10, 20]` can only mean that 10 belongs to the second.
        touching = any(interval.high_closed and interval.high in starts for interval in by_label.values())
        bounds = {}
        for label, interval in by_label.items():
            low, high = interval.half_open(self.step, closed_means_open=touching)
            if low is None or high is None:
                self.notes.append(f"{label} is taken to end at the outermost value of the file")
            bounds[label] = (
                low if low is not None else min(self.values),
                high if high is not None else max(self.values) + self.step,
            )
        return bounds

    def stray_row(self) -> int | None:
        """The number of the first row whose value lies outside one of its intervals."""
        for number, (row, value) in enumerate(zip(self.rows, self.values, strict=True), 1):
            for layer, label in zip(self.layers, row[1:], strict=False):
                low, high = layer[label]
                if not low <= value < high:
                    return number
        return None

    def _fill(self, column: int, nodes: list[Bounds], parents: list[Bounds] | None) -> list[Bounds]:
        """Put back the intervals of a layer that no row shows, and refuse those that overlap."""
        for (low, high), (next_low, next_high) in pairwise(nodes):
            if next_low < high:
                raise HierarchyError(
                    f"{self.path}: column {column + 2}: {_show(low, high)} and {_show(next_low, next_high)} overlap"
                )
        filled: list[Bounds] = []
        for low, high in parents if parents is not None else [(nodes[0][0], nodes[-1][1])]:
            inside = [node for node in nodes if node[0] < high and node[1] > low]
            if any(node[0] < low or node[1] > high for node in inside):
                raise HierarchyError(
                    f"{self.path}: column {column + 2}: an interval reaches beyond {_show(low, high)} above it"
                )
            end = low
            for node in (*inside, (high, high)):
                if node[0] > end:
                    filled += self._gap(column, nodes, (end, node[0]), certain=parents is not None)
                if node[0] < node[1]:
                    filled.append(node)
                end = node[1]
        return filled

    def _gap(self, column: int, nodes: list[Bounds], gap: Bounds, *, certain: bool) -> list[Bounds]:
        widths = {high - low for low, high in nodes}
        width, low, high = max(widths), *gap
        if len(widths) == 1 and (high - low) % width == 0:
            if (high - low) / width > MOST_LEAVES:
                raise HierarchyError(f"{self.path}: column {column + 2}: a gap, no interval covers {_show(low, high)}")
            return [(low + width * i, low + width * (i + 1)) for i in range(int((high - low) / width))]
        if certain:
            return [gap]
        raise HierarchyError(f"{self.path}: column {column + 2}: a gap, no interval covers {_show(low, high)}")


def _container(node: Bounds, layer: Sequence[Bounds]) -> int:
    return bisect_right(layer, node[0], key=lambda bounds: bounds[0]) - 1


def _show(low: Decimal, high: Decimal) -> str:
    return f"[{low}, {high})"
