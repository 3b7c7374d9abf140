"""The truth behind a release: where its records really are, from the raw table that the custodian hands over.

Rows of both tables are matched by position or by a column of ids; then every label must cover its row's raw value. The
two tables may live in different engines, so what is compared comes to Python. Rows that are matched by position are
read in step, those that have ids are joined by them; in either case only groups of equal rows are kept.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from unblur.cells import Cells, assign_cells
from unblur.config import QuasiIdentifier
from unblur.errors import ConfigError, TableError, UnblurWarning
from unblur.grid import Grid
from unblur.hierarchy import Ranks
from unblur.labels import ROOT_LABEL
from unblur.matching import FIRST, WEIGHT, match_groups
from unblur.pairing import Pairs, group, pair_in_step
from unblur.reading import LabelReader, Node
from unblur.release import Release
from unblur.sources import open_table
from unblur.tables import ROW, Table
from unblur.watching import Progress
from unblur.workspace import Workspace

if TYPE_CHECKING:
    import pyarrow as pa

Cell = tuple[int, ...]
"""Positions on the axes of the grid."""

_OUTLIERS, _NO_CLASS = -1, -2
"""Numbers that stand for a class: of suppressed rows, and of rows whose labels the release does not have."""


@dataclass(frozen=True)
class Truth:
    """Where the records of each class really are."""

    classes: tuple[Mapping[Cell, int], ...]
    """Per class of the release, the number of its records in each occupied cell."""
    outliers: Mapping[Cell, int]
    """The same for suppressed records that have a cell."""
    totals: Mapping[Cell, int]
    """The same for the whole table."""
    without_cell: int
    """How many records are suppressed because a raw value is missing or impossible."""

    @property
    def all(self) -> list[Mapping[Cell, int]]:
        """The classes, then the outliers."""
        return [*self.classes, self.outliers]


def read_truth(
    source: Any,
    release: Release,
    published: Table,
    *,
    id_column: str | None = None,
    encoding: str | None = None,
    progress: Progress = lambda done, of: None,
) -> Truth:
    """Read the raw table behind a release whose rows are `published`.

    `source` is a path, a URL with `#table`, a data frame or an Ibis expression. Rows are matched by position, or by
    `id_column`, whose values are compared as text; a whole number is the same with and without decimals.
    `progress` is called with how many rows were matched by position, and how many there are.
    """
    config = release.config
    names = [each.name for each in config.quasi_identifiers]
    if id_column in names:
        raise ConfigError(f"{id_column!r} is a quasi-identifier: its published values are labels; choose another id")
    with Workspace() as workspace:
        expected = names if id_column is None else [*names, id_column]
        table = open_table(source, workspace, columns=expected, encoding=encoding)
        _check_matching(published, table, id_column)
        for note in table.notes:
            warnings.warn(note, UnblurWarning, stacklevel=2)
        if id_column is None and published.row_count != release.rows:
            raise _another_release(published)
        cells = assign_cells(table, config)
        _check_cells(cells, published, id_column)
        pairs = _paired(published, release, cells, id_column, progress)
    numbers = _class_numbers(release, pairs)
    grid = Grid(config.lattice)
    positions = np.stack([_positions(grid, attribute, codes) for attribute, codes in enumerate(pairs.codes)])
    _check_cover(release, grid, numbers, positions, pairs, by_id=id_column is not None)
    return _tally(len(release.classes), numbers, positions, pairs.weights)


def _check_matching(published: Table, table: Table, id_column: str | None) -> None:
    """Refuse tables whose rows cannot be matched."""
    for each in (published, table):
        if id_column is not None:
            each.require(id_column)
        elif not each.numbered:
            raise TableError(f"{each.name}: the rows of a database have no order; --id COLUMN matches them by a column")


def _check_cells(cells: Cells, published: Table, id_column: str | None) -> None:
    """Refuse a raw table of another length, or with values that have no cell though the release was made without."""
    found = int(cells.counts.sum())
    if id_column is None and found != (rows := published.row_count):
        raise TableError(
            f"{cells.table.name}: {found:,} rows, but the release ({published.name}) has {rows:,}"
            "; rows are matched by position; a column that both have can be named with --id"
        )
    if cells.without_cell() and not cells.config.missing:
        raise TableError(cells.problems()[0])


def _paired(published: Table, release: Release, cells: Cells, id_column: str | None, progress: Progress) -> Pairs:
    """Match the rows of both tables."""
    labels = _label_columns(published, release)
    codes = {f"code_{i}": name for i, name in enumerate(cells.coded().columns)}
    if id_column is None:
        coded = cells.coded(ROW)
        columns = {name: coded[code] for name, code in codes.items()}
        return pair_in_step(published, labels, cells.table, coded, columns, progress)
    groups = match_groups(published, labels, cells, codes, id_column)
    return Pairs(
        published,
        [groups[name].combine_chunks() for name in labels],
        np.stack([groups[name].to_numpy().astype(np.int64) for name in codes]),
        weights=groups[WEIGHT].to_numpy().astype(np.int64),
        first=groups[FIRST].to_numpy().astype(np.int64),
    )


def _label_columns(published: Table, release: Release) -> dict[str, Any]:
    attributes = release.config.quasi_identifiers
    for attribute in attributes:
        published.require(attribute.name)
    return {f"label_{i}": published.rows[each.name].cast("string") for i, each in enumerate(attributes)}


def _class_numbers(release: Release, pairs: Pairs) -> Ranks:
    """Find the class of every group by its labels; the classes must be those of the release."""
    attributes = release.config.quasi_identifiers
    readers = [LabelReader(attribute) for attribute in attributes]
    read = [_nodes(*each, pairs) for each in zip(attributes, readers, pairs.labels, strict=True)]
    first, group_of, sizes = group([nodes_of for _, nodes_of in read], pairs.weights)
    numbers = _numbers(release, readers)
    found = [numbers.get(tuple(nodes[of[row]] for nodes, of in read), _NO_CLASS) for row in first.tolist()]
    shown = Counter[int]()
    for number, size in zip(found, sizes.tolist(), strict=True):
        shown[number] += size
    expected = Counter({_OUTLIERS: release.outliers} | {n: each.size for n, each in enumerate(release.classes)})
    if shown != expected:
        raise _another_release(pairs.published)
    return np.array(found, dtype=np.int64)[group_of]


def _another_release(published: Table) -> TableError:
    return TableError(f"{published.name}: its rows do not make up the classes given; the release is another one")


def _numbers(release: Release, readers: Sequence[LabelReader]) -> dict[tuple[Node | None, ...], int]:
    """Number the classes of a release by the nodes that their labels are read as."""
    numbers = {
        tuple(reader.node(label) for reader, label in zip(readers, release.labels(each), strict=True)): n
        for n, each in enumerate(release.classes)
    }
    top = tuple((height, 0) for height in release.config.lattice.top)
    for suppressed in (top, tuple(reader.node(ROOT_LABEL) for reader in readers)):
        numbers.setdefault(suppressed, _OUTLIERS)
    return numbers


def _nodes(attribute: QuasiIdentifier, reader: LabelReader, labels: pa.Array, pairs: Pairs) -> tuple[list[Node], Ranks]:
    """Find the distinct nodes that labels name, and which of them each group has."""
    encoded = labels.dictionary_encode(null_encoding="encode")
    nodes = [reader.node(label) for label in encoded.dictionary.to_pylist()]
    label_of = encoded.indices.to_numpy()
    wrong = np.array([node is None for node in nodes], dtype=np.bool_)[label_of]
    if wrong.any():
        raise pairs.wrong(wrong, f"column {attribute.name!r}:", "a label that its hierarchy does not have")
    distinct = {node: n for n, node in enumerate(dict.fromkeys(node for node in nodes if node is not None))}
    node_of = np.array([distinct[node] for node in nodes if node is not None], dtype=np.int64)
    return list(distinct), node_of[label_of]


def _positions(grid: Grid, attribute: int, codes: Ranks) -> Ranks:
    """Find the position of each code on its axis; -1 where a code stands for no cell."""
    return np.where(codes < 0, -1, grid.positions(attribute, np.maximum(codes, 0)))


def _check_cover(release: Release, grid: Grid, numbers: Ranks, positions: Ranks, pairs: Pairs, *, by_id: bool) -> None:
    """Refuse rows whose label does not cover the raw value; that of suppressed rows covers even a missing one."""
    top = release.config.lattice.top
    segments = [(each.state, each.segment) for each in release.classes] + [(top, (0,) * len(top))]
    boxes = np.array([grid.box(*each) for each in segments], dtype=np.int64)  # the outliers' last: number -1
    outside = np.stack([(x < boxes[numbers, i, 0]) | (x >= boxes[numbers, i, 1]) for i, x in enumerate(positions)])
    outside &= numbers != _OUTLIERS
    wrong = np.asarray(outside.any(axis=0))
    if wrong.any():
        name = release.config.quasi_identifiers[int(outside[:, pairs.leading(wrong)].argmax())].name
        likely = "its ids are of other records" if by_id else "its rows are in another order"
        what = f"the published label of column {name!r} does not cover the raw value"
        raise TableError(f"{pairs.wrong(wrong, '', what)}; the table is another one, or {likely}")


def _tally(classes: int, numbers: Ranks, positions: Ranks, weights: Ranks) -> Truth:
    """Count the records of each class in each cell."""
    valid = (positions >= 0).all(axis=0)
    without = int(weights[~valid].sum())
    numbers, positions, weights = numbers[valid], positions[:, valid], weights[valid]
    first, _, counts = group([numbers - _OUTLIERS, *positions], weights)
    found: list[dict[Cell, int]] = [{} for _ in range(classes + 1)]  # the last for the outliers: number -1
    totals = Counter[Cell]()
    cells = zip(*positions[:, first].tolist(), strict=True)
    for number, cell, count in zip(numbers[first].tolist(), cells, counts.tolist(), strict=True):
        found[number][cell] = count
        totals[cell] += count
    return Truth(tuple(found[:-1]), found[-1], dict(totals), without)
