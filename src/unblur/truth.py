"""The truth behind a release: where its records really are, from the raw table that the custodian hands over.

Rows of both tables are matched by position or by a column of ids; then every label must cover its row's raw value. The
two tables may live in different engines, so what is compared comes to Python: per row the labels, encoded once per
distinct label, and the codes of the cell. If both are on one Spark cluster, only groups of equal rows come, with their
sizes as weights.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unblur.cells import Cells, assign_cells
from unblur.config import QuasiIdentifier
from unblur.errors import ConfigError, TableError, UnblurWarning
from unblur.grid import Grid
from unblur.hierarchy import Ranks
from unblur.labels import ROOT_LABEL
from unblur.matching import WEIGHT, match_groups, on_one_cluster
from unblur.reading import LabelReader, Node
from unblur.release import Release
from unblur.sources import open_table
from unblur.tables import ROW, Table
from unblur.workspace import Workspace

if TYPE_CHECKING:
    import ibis
    import pyarrow as pa

Cell = tuple[int, ...]
"""Positions on the axes of the grid."""
Marks = NDArray[np.bool_]

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
    source: Any, release: Release, published: Table, *, id_column: str | None = None, encoding: str | None = None
) -> Truth:
    """Read the raw table behind a release whose rows are `published`.

    `source` is a path, a URL with `#table`, a data frame or an Ibis expression. Rows are matched by position, or by
    `id_column`, whose values are compared as text; a whole number is the same with and without decimals.
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
        if id_column is not None and on_one_cluster(published, table):
            numbers, codes, weights = _matched_groups(published, release, assign_cells(table, config), id_column)
        else:
            numbers, ids = _published_rows(published, release, id_column)
            cells = assign_cells(table, config)
            _check_cells(cells, published, len(numbers), id_column)
            codes, raw_ids = _raw_rows(cells, id_column)
            if id_column is not None:
                codes = codes[:, _match(published, ids, table, raw_ids, id_column)]
            weights = np.ones(len(numbers), dtype=np.int64)
    grid = Grid(config.lattice)
    positions = np.stack([_positions(grid, attribute, codes[attribute]) for attribute in range(len(codes))])
    _check_cover(published, release, grid, numbers, positions, weights, by_id=id_column is not None)
    return _tally(len(release.classes), numbers, positions, weights)


def _check_matching(published: Table, table: Table, id_column: str | None) -> None:
    """Refuse tables whose rows cannot be matched."""
    for each in (published, table):
        if id_column is not None:
            each.require(id_column)
        elif not each.numbered:
            raise TableError(f"{each.name}: the rows of a database have no order; --id COLUMN matches them by a column")


def _check_cells(cells: Cells, published: Table, rows: int, id_column: str | None) -> None:
    """Refuse a raw table of another length, or with values that have no cell though the release was made without."""
    found = int(cells.counts.sum())
    if id_column is None and found != rows:
        raise TableError(
            f"{cells.table.name}: {found:,} rows, but the release ({published.name}) has {rows:,}"
            "; rows are matched by position; a column that both have can be named with --id"
        )
    if cells.without_cell() and not cells.config.missing:
        raise TableError(cells.problems()[0])


def _published_rows(published: Table, release: Release, id_column: str | None) -> tuple[Ranks, pa.Array | None]:
    """Find the class number of every published row, and its id."""
    labels = _label_columns(published, release)
    rows = _fetch(published, published.rows, labels, id_column)
    weights = np.ones(rows.num_rows, dtype=np.int64)
    numbers = _class_numbers(published, release, [rows[name] for name in labels], weights)
    return numbers, _ids(published, rows, id_column)


def _label_columns(published: Table, release: Release) -> dict[str, Any]:
    attributes = release.config.quasi_identifiers
    for attribute in attributes:
        published.require(attribute.name)
    return {f"label_{i}": published.rows[each.name].cast("string") for i, each in enumerate(attributes)}


def _matched_groups(published: Table, release: Release, cells: Cells, id_column: str) -> tuple[Ranks, Ranks, Ranks]:
    """Match rows where they are; bring the class numbers of groups of them, their codes, and how many rows each has."""
    _check_cells(cells, published, 0, id_column)
    labels = _label_columns(published, release)
    codes = {f"code_{i}": name for i, name in enumerate(cells.coded().columns)}
    groups = match_groups(published, labels, cells, codes, id_column)
    weights = groups[WEIGHT].to_numpy().astype(np.int64)
    numbers = _class_numbers(published, release, [groups[name] for name in labels], weights)
    return numbers, np.stack([groups[name].to_numpy().astype(np.int64) for name in codes]), weights


def _raw_rows(cells: Cells, id_column: str | None) -> tuple[Ranks, pa.Array | None]:
    """Bring the codes of every raw row, one line per attribute, and its id."""
    table = cells.table
    more = [*([ROW] if table.numbered else []), *([] if id_column is None else [id_column])]
    coded = cells.coded(*more)
    codes = {f"code_{i}": coded[name] for i, name in enumerate(coded.columns[len(more) :])}
    rows = _fetch(table, coded, codes, id_column)
    return np.stack([rows[name].to_numpy().astype(np.int64) for name in codes]), _ids(table, rows, id_column)


def _fetch(table: Table, rows: ibis.Table, columns: Mapping[str, Any], id_column: str | None) -> pa.Table:
    """Bring some columns, and the ids as `id`, in the order of the rows if they have one."""
    ids = {} if id_column is None else {"id": _comparable(rows[id_column])}
    if not table.numbered:
        return table.fetch(rows.select(**columns, **ids))
    return table.fetch(rows.select(ROW, **columns, **ids).order_by(ROW))


def _comparable(column: Any) -> Any:
    """Take a column as text in its engine; floating-point numbers as they are, for engines write them differently."""
    return column.cast("float64" if column.type().is_floating() else "string")


def _ids(table: Table, rows: pa.Table, id_column: str | None) -> pa.Array | None:
    """Return the ids as text; refuse missing and repeated ones."""
    if id_column is None:
        return None
    ids = _texts(rows["id"].combine_chunks())
    what = f"column {id_column!r}:"
    missing = ids.is_null().to_numpy(zero_copy_only=False)
    if missing.any():
        raise _wrong_rows(table, missing, what, "an id is missing")
    _, first = np.unique(ids.dictionary_encode().indices.to_numpy(), return_index=True)
    if len(first) < len(ids):
        repeated = np.ones(len(ids), dtype=np.bool_)
        repeated[first] = False
        raise _wrong_rows(table, repeated, what, "an id that another row has too")
    return ids


def _texts(ids: pa.Array) -> pa.Array:
    """Write ids as text: whole numbers without decimals, NULL where there is nothing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(ids.type):
        whole = pc.and_(pc.equal(pc.floor(ids), ids), pc.less(pc.abs(ids), 2.0**53))
        integers = pc.if_else(whole, ids, 0.0).cast(pa.int64()).cast(pa.string())
        ids = pc.if_else(pc.is_nan(ids), None, pc.if_else(whole, integers, ids.cast(pa.string())))
    trimmed = pc.utf8_trim_whitespace(ids)
    plain = pc.replace_substring_regex(trimmed, r"^([+-]?[0-9]+)\.0*$", r"\1")
    return pc.if_else(pc.equal(plain, ""), None, plain)


def _match(published: Table, ids: Any, table: Table, raw_ids: Any, id_column: str) -> Ranks:
    """Find the raw row of every published row; both must have the same ids."""
    import pyarrow.compute as pc

    for one, here, other, there in ((published, ids, table, raw_ids), (table, raw_ids, published, ids)):
        lacking = pc.invert(pc.is_in(here, value_set=there)).to_numpy(zero_copy_only=False)
        if lacking.any():
            raise _wrong_rows(one, lacking, f"column {id_column!r}:", f"an id that {other.name} does not have")
    return np.asarray(pc.index_in(ids, value_set=raw_ids).to_numpy(), dtype=np.int64)


def _class_numbers(published: Table, release: Release, labels: Sequence[pa.ChunkedArray], weights: Ranks) -> Ranks:
    """Find the class of every row by its labels; the classes must be those of the release."""
    attributes = release.config.quasi_identifiers
    readers = [LabelReader(attribute) for attribute in attributes]
    read = [_nodes(published, *each, weights) for each in zip(attributes, readers, labels, strict=True)]
    first, group_of, sizes = _groups([nodes_of for _, nodes_of in read], weights)
    numbers = _numbers(release, readers)
    found = [numbers.get(tuple(nodes[of[row]] for nodes, of in read), _NO_CLASS) for row in first.tolist()]
    shown = Counter[int]()
    for number, size in zip(found, sizes.tolist(), strict=True):
        shown[number] += size
    expected = Counter({_OUTLIERS: release.outliers} | {n: each.size for n, each in enumerate(release.classes)})
    if shown != expected:
        raise TableError(f"{published.name}: its rows do not make up the classes given; the release is another one")
    return np.array(found, dtype=np.int64)[group_of]


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


def _nodes(
    published: Table, attribute: QuasiIdentifier, reader: LabelReader, labels: pa.ChunkedArray, weights: Ranks
) -> tuple[list[Node], Ranks]:
    """Find the distinct nodes that labels name, and which of them each row has."""
    encoded = labels.combine_chunks().dictionary_encode(null_encoding="encode")
    nodes = [reader.node(label) for label in encoded.dictionary.to_pylist()]
    label_of = encoded.indices.to_numpy()
    wrong = np.array([node is None for node in nodes], dtype=np.bool_)[label_of]
    if wrong.any():
        what = f"column {attribute.name!r}:"
        raise _wrong_rows(published, wrong, what, "a label that its hierarchy does not have", weights)
    distinct = {node: n for n, node in enumerate(dict.fromkeys(node for node in nodes if node is not None))}
    node_of = np.array([distinct[node] for node in nodes if node is not None], dtype=np.int64)
    return list(distinct), node_of[label_of]


def _positions(grid: Grid, attribute: int, codes: Ranks) -> Ranks:
    """Find the position of each code on its axis; -1 where a code stands for no cell."""
    return np.where(codes < 0, -1, grid.positions(attribute, np.maximum(codes, 0)))


def _check_cover(
    published: Table,
    release: Release,
    grid: Grid,
    numbers: Ranks,
    positions: Ranks,
    weights: Ranks,
    *,
    by_id: bool,
) -> None:
    """Refuse rows whose label does not cover the raw value; that of suppressed rows covers even a missing one."""
    top = release.config.lattice.top
    segments = [(each.state, each.segment) for each in release.classes] + [(top, (0,) * len(top))]
    boxes = np.array([grid.box(*each) for each in segments], dtype=np.int64)  # the outliers' last: number -1
    outside = np.stack([(x < boxes[numbers, i, 0]) | (x >= boxes[numbers, i, 1]) for i, x in enumerate(positions)])
    outside &= numbers != _OUTLIERS
    wrong = np.asarray(outside.any(axis=0))
    if wrong.any():
        name = release.config.quasi_identifiers[int(outside[:, wrong.argmax()].argmax())].name
        likely = "its ids are of other records" if by_id else "its rows are in another order"
        what = f"the published label of column {name!r} does not cover the raw value"
        raise TableError(f"{_wrong_rows(published, wrong, '', what, weights)}; the table is another one, or {likely}")


def _tally(classes: int, numbers: Ranks, positions: Ranks, weights: Ranks) -> Truth:
    """Count the records of each class in each cell."""
    valid = (positions >= 0).all(axis=0)
    without = int(weights[~valid].sum())
    numbers, positions, weights = numbers[valid], positions[:, valid], weights[valid]
    first, _, counts = _groups([numbers - _OUTLIERS, *positions], weights)
    found: list[dict[Cell, int]] = [{} for _ in range(classes + 1)]  # the last for the outliers: number -1
    totals = Counter[Cell]()
    cells = zip(*positions[:, first].tolist(), strict=True)
    for number, cell, count in zip(numbers[first].tolist(), cells, counts.tolist(), strict=True):
        found[number][cell] = count
        totals[cell] += count
    return Truth(tuple(found[:-1]), found[-1], dict(totals), without)


def _groups(columns: Sequence[Ranks], weights: Ranks) -> tuple[Ranks, Ranks, Ranks]:
    """Group rows by columns of numbers from 0 up: the first row of each group, the group of each row, their weights."""
    key, space = np.zeros(len(columns[0]), dtype=np.int64), 1
    for column in columns:
        size = int(column.max(initial=0)) + 1
        if space * size > 2**62:
            values, key = np.unique(key, return_inverse=True)
            space = len(values)
        key, space = key * size + column, space * size
    _, first, group_of = np.unique(key, return_index=True, return_inverse=True)
    return first, group_of, np.bincount(group_of, weights, len(first)).astype(np.int64)


def _wrong_rows(table: Table, wrong: Marks, where: str, what: str, weights: Ranks | None = None) -> TableError:
    """Say what is wrong with some rows, with their count and the number of the first, but not what they hold."""
    place = f"{table.place(int(wrong.argmax()))}:" if table.numbered else ""
    count = int(wrong.sum() if weights is None else weights[wrong].sum())
    rows = "1 such row" if count == 1 else f"{count:,} such rows"
    return TableError(" ".join(filter(None, (f"{table.name}:", where, place, what, f"({rows})"))))
