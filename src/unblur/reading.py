"""Releases read back from a table: labels become nodes, rows become classes.

Labels are matched by their text, or as intervals in any dialect. A label may stand on two layers of one hierarchy (a
node with a single child). Then its class was made on the finer of them: the segment is the same, the finer state comes
first in every order that never prefers more loss, and it would have taken all the records.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unblur.config import Config, QuasiIdentifier, load_config
from unblur.dictionaries import count_labels
from unblur.errors import TableError, UnblurWarning
from unblur.hashing import start_hashing
from unblur.hierarchy import Hierarchy, IntervalHierarchy
from unblur.labels import ROOT_LABEL, parse_interval, parse_number
from unblur.release import EquivalenceClass, Release
from unblur.sources import open_table
from unblur.tables import ROW, Table
from unblur.watching import Progress
from unblur.workspace import Workspace

if TYPE_CHECKING:
    import pyarrow as pa

Node = tuple[int, int]
"""A layer and a rank."""


@dataclass(frozen=True, repr=False)
class PublishedRelease(Release):
    """A release read from a table, whose rows are still at hand."""

    table: Table = field(repr=False)
    workspace: Workspace = field(repr=False)
    hashing: Future[str | None] = field(repr=False)
    """The hash of the file, which may still be in the making."""

    @property
    def sha256(self) -> str | None:
        return self.hashing.result()

    @property
    def paths(self) -> list[Path]:
        return [*self.config.paths, *self.table.paths]

    def finish(self) -> None:
        self.hashing.result()

    def open_rows(self, workspace: Workspace) -> Table:
        return self.table


def read_release(
    source: Any,
    config: Config | Mapping[str, Any] | str | os.PathLike[str],
    *,
    encoding: str | None = None,
    on_rows: Progress | None = None,
) -> PublishedRelease:
    """Read a release from any table, with the config that describes it.

    `on_rows` is called with how many rows of a file or data frame were read and how many there are.
    """
    config = load_config(config)
    names = [each.name for each in config.quasi_identifiers]
    workspace = Workspace()
    table = open_table(source, workspace, columns=names, encoding=encoding)
    for name in names:
        table.require(name)
    for note in table.notes:
        warnings.warn(note, UnblurWarning, stacklevel=2)
    hashing = start_hashing(source)
    groups = _groups(table, names, on_rows)
    if not groups.num_rows:
        raise TableError(f"{table.name}: there are no rows, only a header")
    columns = [_nodes(table, attribute, groups, f"label_{i}") for i, attribute in enumerate(config.quasi_identifiers)]
    sizes = Counter[tuple[tuple[int, ...], tuple[int, ...]]]()
    for nodes, count in zip(zip(*columns, strict=True), groups["rows"].to_pylist(), strict=True):
        state, segment = zip(*nodes, strict=True)
        sizes[state, segment] += count
    lattice = config.lattice
    # A row with the root's label in every attribute is an outlier, also where that label stands on two layers.
    whole = {key for key in sizes if all(map(_is_root, lattice.hierarchies, *key))}
    outliers = sum(sizes.pop(key) for key in whole)
    classes = [EquivalenceClass(state, segment, size) for (state, segment), size in sizes.items()]
    classes.sort(key=lambda each: (*lattice.key(each.state), each.state, each.segment))
    return PublishedRelease(config, tuple(classes), outliers, table=table, workspace=workspace, hashing=hashing)


def _is_root(tree: Hierarchy, layer: int, rank: int) -> bool:
    return tree.nodes(layer) == 1 and tree.label(layer, rank) == tree.label(tree.height, 0)


def _groups(table: Table, names: Sequence[str], progress: Progress | None) -> pa.Table:
    """Count the rows of each combination of labels."""
    if table.parquets:
        found = count_labels(table.parquets, names, threads=table.workspace.threads, progress=progress)
        if found is not None:
            table.check_unchanged()
            return found
    labels = table.rows.select(**{f"label_{i}": table.rows[name].cast("string") for i, name in enumerate(names)})
    return table.fetch(labels.group_by(labels.columns).aggregate(rows=labels.count()), progress)


def _nodes(table: Table, attribute: QuasiIdentifier, groups: pa.Table, column: str) -> list[Node]:
    """Find the node of every group's label, or say which rows have a label that is none."""
    reader = LabelReader(attribute)
    labels = groups[column].to_pylist()
    nodes = [reader.node(label) for label in labels]
    wrong = [i for i, node in enumerate(nodes) if node is None]
    if wrong:
        count = sum(groups["rows"][i].as_py() for i in wrong)
        place = (
            f" {table.place(_first_row(table, attribute.name, {labels[i] for i in wrong}))}:" if table.numbered else ""
        )
        rows = "1 such row" if count == 1 else f"{count:,} such rows"
        raise TableError(
            f"{table.name}: column {attribute.name!r}:{place} a label that its hierarchy does not have ({rows})"
        )
    return [node for node in nodes if node is not None]


def _first_row(table: Table, name: str, labels: set[str | None]) -> int:
    """Find the first row that has one of these labels."""
    column = table.rows[name].cast("string")
    found = column.isin([label for label in labels if label is not None])
    rows = table.rows.filter(found | column.isnull() if None in labels else found)
    return int(table.fetch(rows.aggregate(first=rows[ROW].min()))["first"][0].as_py())


class LabelReader:
    """Finds the node that a label of one attribute names."""

    def __init__(self, attribute: QuasiIdentifier) -> None:
        self._tree, self._finest, self._name = attribute.hierarchy, attribute.finest_layer, attribute.name

    def node(self, label: str | None) -> Node | None:
        """Return the finest node with this label; None if there is none."""
        if label is None:
            return None
        if label in self._twofold:
            raise TableError(
                f"column {self._name!r}: a label stands for two different nodes of its hierarchy; rename one of them"
            )
        if label in self._by_text:
            return self._by_text[label]
        if label.strip() == ROOT_LABEL:
            return self._tree.height, 0
        if isinstance(self._tree, IntervalHierarchy):
            return self._interval(label) or self._number(label, self._tree)
        bare = label.strip()
        return self._by_text.get(bare) or self._by_text.get(bare.removesuffix(".0"))  # a number from a Parquet file

    def _interval(self, label: str) -> Node | None:
        found = parse_interval(label)
        if found is None:
            return None
        assert isinstance(self._tree, IntervalHierarchy)
        for touching in (False, True):
            low, high = found.half_open(self._tree.step, closed_means_open=touching)
            bounds = (self._tree.low if low is None else low, self._tree.high if high is None else high)
            if bounds in self._by_bounds:
                return self._by_bounds[bounds]
        return None

    def _number(self, label: str, tree: IntervalHierarchy) -> Node | None:
        value = parse_number(label)
        if self._finest > 0 or value is None or not tree.low <= value < tree.high:
            return None
        return 0, int((value - tree.low) / tree.step)

    @cached_property
    def _by_text(self) -> dict[str, Node]:
        return {self._tree.label(*node): node for node in self._nodes()}

    @cached_property
    def _twofold(self) -> set[str]:
        """Labels that stand for nodes of different values: on two layers, but not up a chain of only children."""
        lengths: dict[str, set[int]] = defaultdict(set)
        for node in self._nodes():
            lengths[self._tree.label(*node)].add(self._tree.length(*node))
        return {label for label, found in lengths.items() if len(found) > 1}

    def _nodes(self) -> Iterator[Node]:
        """Go through the nodes that may be published, the coarsest first."""
        layers = range(self._tree.height, max(self._finest, self._tree.kind == "interval") - 1, -1)
        return ((layer, rank) for layer in layers for rank in range(self._tree.nodes(layer)))

    @cached_property
    def _by_bounds(self) -> dict[tuple[Decimal, Decimal], Node]:
        tree = self._tree
        assert isinstance(tree, IntervalHierarchy)
        return {
            tree.interval(layer, rank): (layer, rank)
            for layer in range(tree.height, 0, -1)
            for rank in range(tree.nodes(layer))
        }
