"""The quasi-identifiers of a project, with their hierarchies: from the builder if ARX had one, else from its rows."""

from __future__ import annotations

import csv
import io
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, DecimalException
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from unblur.arx.archive import Archive, decode
from unblur.arx.builders import IntervalBuilder, interval_builder
from unblur.arx.hierarchy_csv import read_hierarchy
from unblur.errors import HierarchyError
from unblur.hierarchy import Hierarchy, IntervalHierarchy
from unblur.labels import ROOT_LABEL, parse_number

DEFINITION = "output/definition.xml"
MISFIT = "its builder does not give the hierarchy that ARX used, so the rows of that are taken"

Rows = list[list[str]]
"""A hierarchy as ARX writes it: per row a raw value and its ever coarser labels."""


@dataclass(frozen=True)
class Definition:
    """What ARX was told of a quasi-identifier."""

    name: str
    entry: str
    """Where in the project the rows of its hierarchy are."""
    lowest: int
    """The lowest level that it may have: 0 is the raw value."""
    highest: int | None
    """The highest level; None: no limit."""


@dataclass(frozen=True)
class ProjectAttribute:
    """A quasi-identifier of a project."""

    name: str
    hierarchy: Hierarchy
    """Layer 1 is ARX's level 1, or the lowest level that was allowed if that is higher."""
    by_length: bool
    """Whether ARX's loss counted interval lengths (its builder was attached), not rows of the hierarchy."""
    lowest_level: int
    """The minimum generalization, as ARX counts levels: 0 is the raw value."""
    entry: str
    """Where in the project the rows of the hierarchy are."""
    notes: tuple[str, ...] = ()
    """Why the hierarchy may be otherwise than ARX had it."""

    @property
    def finest_layer(self) -> int:
        """Whether raw values (0) or only labels (1) may be published."""
        return min(1, self.lowest_level)

    @property
    def highest_level(self) -> int:
        """The level of the root."""
        return self.level(self.hierarchy.height)

    def level(self, layer: int) -> int:
        """Tell ARX's level from the layer of the hierarchy."""
        return layer + max(0, self.lowest_level - 1) if layer else 0


def read_definitions(archive: Archive) -> tuple[Definition, ...]:
    """Read which attributes are quasi-identifiers, in the order of the table."""
    found = tuple(
        _definition(archive, each)
        for each in archive.xml(DEFINITION).findall("assigment")  # ARX's own spelling
        if each.findtext("type") == "QUASI_IDENTIFYING_ATTRIBUTE"
    )
    if not found:
        raise archive.error(DEFINITION, "no attribute is a quasi-identifier; an audit needs at least one")
    if len({each.name for each in found}) < len(found):
        raise archive.error(DEFINITION, "two attributes have the same name")
    return found


def read_attribute(archive: Archive, definition: Definition, separator: str, builders: list[Any]) -> ProjectAttribute:
    """Read a quasi-identifier; `builders` are what ARX's loss may have counted lengths with, the likeliest first."""
    rows = read_rows(archive, definition.entry, separator)
    if definition.lowest >= len(rows[0]):
        raise archive.error(DEFINITION, f"{definition.name!r}: the minimum generalization is above the hierarchy")
    built = next((tree for each in builders if (tree := _from_builder(each, rows))), None)
    return ProjectAttribute(
        name=definition.name,
        hierarchy=_from_layer(built, definition.lowest) if built else _from_rows(archive, definition, rows),
        by_length=bool(builders),
        lowest_level=definition.lowest,
        entry=definition.entry,
        notes=(MISFIT,) if builders and not built else (),
    )


def read_rows(archive: Archive, entry: str, separator: str) -> Rows:
    """Read a hierarchy as rows; one that has raw values alone gets a root."""
    data = archive.read(entry)
    try:
        rows = [row for row in csv.reader(io.StringIO(decode(data), newline=""), delimiter=separator) if row]
    except (csv.Error, UnicodeDecodeError):
        raise archive.error(entry, "not a CSV file in UTF-8 or Windows-1252") from None
    if not rows:
        raise archive.error(entry, "the hierarchy is empty")
    if wrong := next((number for number, row in enumerate(rows, 1) if len(row) != len(rows[0])), None):
        raise archive.error(entry, f"row {wrong}: another number of columns than row 1")
    return rows if len(rows[0]) > 1 else [[*row, ROOT_LABEL] for row in rows]


def shown_rows(rows: Rows, lowest: int) -> Iterator[list[str]]:
    """Leave out the labels below the lowest level."""
    return ([row[0], *row[max(1, lowest) :]] for row in rows)


def _definition(archive: Archive, found: Element) -> Definition:
    name, hierarchy = found.findtext("name") or "", found.findtext("ref")
    if not name:
        raise archive.error(DEFINITION, "a quasi-identifier has no name")
    if found.find("microaggregationFunction") is not None:
        raise archive.error(DEFINITION, f"{name!r} is micro-aggregated; only generalized attributes are audited")
    if not hierarchy:
        raise archive.error(DEFINITION, f"{name!r} has no hierarchy")
    lowest = _level(archive, name, found.findtext("min"))
    highest = _level(archive, name, found.findtext("max"))
    return Definition(name, f"output/{hierarchy}", lowest or 0, highest)


def _level(archive: Archive, name: str, text: str | None) -> int | None:
    if text is None or text == "All":
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 5):
        raise archive.error(DEFINITION, f"{name!r}: min and max must be All or a level")
    return int(text)


def _from_rows(archive: Archive, definition: Definition, rows: Rows) -> Hierarchy:
    with tempfile.TemporaryDirectory(prefix="unblur-") as folder:
        path = Path(folder) / "hierarchy.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter=";", lineterminator="\n").writerows(shown_rows(rows, definition.lowest))
        try:
            return read_hierarchy(path)
        except HierarchyError as error:
            if isinstance(error.__cause__, DecimalException):
                raise archive.error(definition.entry, "it has numbers too large or too small to count with") from None
            # What the message may quote is a label, and a label may be a patient's value.
            place = re.search(r"(row|column) \d+(?=:)", str(error).removeprefix(f"{path}: "))
            where = f"{place[0]}: " if place else ""
            raise archive.error(definition.entry, f"{where}not a tree of ever coarser labels") from None


def _from_builder(found: Any, rows: Rows) -> IntervalHierarchy | None:
    """Build a hierarchy, if it can be done and gives the rows that ARX used."""
    try:
        builder = interval_builder(found)
    except HierarchyError:
        return None
    for step in _steps(builder, rows):
        try:
            tree = builder.hierarchy(step=step)
        except HierarchyError:
            continue
        return tree if _fits(tree, rows) else None
    return None


def _steps(builder: IntervalBuilder, rows: Rows) -> list[Decimal]:
    """The resolution of the values, and that of the bounds alone should it be too fine."""
    if not builder.decimals:
        return [Decimal(1)]
    finest = min((_places(number) for row in rows if (number := parse_number(row[0]))), default=0)
    step = builder.resolution
    return [Decimal(1).scaleb(finest), step] if -30 < finest < step.adjusted() else [step]


def _places(number: Decimal) -> int:
    """The exponent of the last digit that is not zero."""
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int), "numbers read from text are finite"
    return exponent + len(digits) - len("".join(map(str, digits)).rstrip("0"))


def _fits(tree: IntervalHierarchy, rows: Rows) -> bool:
    """Whether every number gets the labels that its row has; missing values have labels of their own."""
    known = [(number, row) for row in rows if (number := parse_number(row[0])) is not None]
    if len(rows[0]) - 1 != tree.height or not all(tree.low <= number < tree.high for number, _ in known):
        return False
    ranks = np.array([int((number - tree.low) / tree.step) for number, _ in known], dtype=np.int64)
    for layer, labels in enumerate(tree.labels, 1):
        nodes = tree.climb(ranks, 0, layer).tolist()
        if any(labels[node] != row[layer] for node, (_, row) in zip(nodes, known, strict=True)):
            return False
    return True


def _from_layer(tree: IntervalHierarchy, lowest: int) -> IntervalHierarchy:
    """Leave out the layers below the lowest level."""
    if lowest < 2:
        return tree
    lows = tuple(tree.interval(lowest, rank)[0] for rank in range(tree.nodes(lowest)))
    return IntervalHierarchy(
        tree.labels[lowest - 1 :], tree.parents[lowest - 1 :], (*lows, tree.high), tree.step, notes=tree.notes
    )
