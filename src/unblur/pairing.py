"""Rows of a release with the cells of their raw rows: as groups of equal rows, so that memory does not follow the rows.

Two tables that are matched by position are read in step, a stretch at a time. Nothing is sorted if the engine keeps the
order of the rows anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unblur.engines import DuckDBEngine
from unblur.errors import TableError
from unblur.hierarchy import Ranks
from unblur.lookups import keeps_order
from unblur.tables import ROW, Table
from unblur.watching import Progress

if TYPE_CHECKING:
    import ibis
    import pyarrow as pa

Marks = NDArray[np.bool_]
STRETCH = 200_000
"""How many rows are read at a time."""
MOST_GROUPS = 1_000_000
"""How many groups of stretches may wait until equal ones are put together."""


@dataclass(frozen=True)
class Pairs:
    """Groups of published rows, each with the cell of its raw rows."""

    published: Table
    labels: Sequence[pa.Array]
    """Per attribute, the label of each group."""
    codes: Ranks
    """Per attribute, the code of each group's cell."""
    weights: Ranks
    """How many rows each group has."""
    first: Ranks
    """The number of each group's first row, if rows have numbers."""

    def leading(self, marked: Marks) -> int:
        """Which of the groups that are marked comes first?"""
        found = np.flatnonzero(marked)
        return int(found[self.first[found].argmin()])

    def wrong(self, marked: Marks, where: str, what: str) -> TableError:
        """Say what is wrong with the groups that are marked, but not what they hold."""
        row = int(self.first[self.leading(marked)])
        return wrong_rows(self.published, row, int(self.weights[marked].sum()), where, what)


def wrong_rows(table: Table, first: int, count: int, where: str, what: str) -> TableError:
    """Say what is wrong with some rows, with the number of the first and how many they are."""
    place = f"{table.place(first)}:" if table.numbered else ""
    rows = "1 such row" if count == 1 else f"{count:,} such rows"
    return TableError(" ".join(filter(None, (f"{table.name}:", where, place, what, f"({rows})"))))


def pair_in_step(
    published: Table,
    labels: Mapping[str, Any],
    table: Table,
    coded: ibis.Table,
    codes: Mapping[str, Any],
    progress: Progress,
) -> Pairs:
    """Match the rows of two tables by their position; they have as many rows."""
    words: list[dict[str | None, int]] = [{} for _ in labels]
    done: list[_Stretch] = []
    start = waiting = 0
    for here, there in in_step(stream(published, published.rows, labels), stream(table, coded, codes)):
        known = [_numbered(column, numbers) for column, numbers in zip(here.columns, words, strict=True)]
        cells = [column.to_numpy().astype(np.int64) for column in there.columns]
        size = len(known[0])
        rows = np.arange(start, start + size)
        done.append(_Stretch(np.stack([*known, *cells]), np.ones(size, dtype=np.int64), rows).grouped())
        start, waiting = start + size, waiting + len(done[-1].weights)
        if waiting > MOST_GROUPS:
            done = [_Stretch.joined(done).grouped()]
            waiting = 0
        progress(start, published.row_count)
    return _named(published, words, _Stretch.joined(done).grouped())


@dataclass(frozen=True)
class _Stretch:
    """Groups of rows by numbers: those of the labels, then the codes."""

    numbers: Ranks
    weights: Ranks
    first: Ranks

    @classmethod
    def joined(cls, some: Sequence[_Stretch]) -> _Stretch:
        """Put stretches one after the other."""
        return cls(
            np.concatenate([each.numbers for each in some], axis=1),
            np.concatenate([each.weights for each in some]),
            np.concatenate([each.first for each in some]),
        )

    def grouped(self) -> _Stretch:
        """Put equal groups together."""
        lowest = self.numbers.min(axis=1, initial=0)
        first, _, weights = group(self.numbers - lowest[:, None], self.weights)
        return _Stretch(self.numbers[:, first], weights, self.first[first])


def group(columns: Sequence[Ranks] | Ranks, weights: Ranks) -> tuple[Ranks, Ranks, Ranks]:
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


def _named(published: Table, words: Sequence[Mapping[str | None, int]], groups: _Stretch) -> Pairs:
    """Write the labels out again."""
    import pyarrow as pa

    labels = [
        pa.array(list(known), pa.string()).take(pa.array(numbers))
        for known, numbers in zip(words, groups.numbers, strict=False)
    ]
    return Pairs(published, labels, groups.numbers[len(words) :], groups.weights, groups.first)


def _numbered(column: pa.Array, known: dict[str | None, int]) -> Ranks:
    """Number the texts of a column, also those met before."""
    encoded = column.dictionary_encode(null_encoding="encode")
    numbers = np.array([known.setdefault(text, len(known)) for text in encoded.dictionary.to_pylist()], dtype=np.int64)
    of_rows: Ranks = numbers[encoded.indices.to_numpy()]
    return of_rows


def stream(table: Table, rows: ibis.Table, columns: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
    """Read some columns in the order of the rows."""
    chosen = rows.select(**columns)
    if not (isinstance(table.engine, DuckDBEngine) and keeps_order(chosen, table.engine)):
        chosen = rows.select(ROW, **columns).order_by(ROW).drop(ROW)
    with table.reading(chosen):
        yield from table.engine.batches(chosen, STRETCH)


def in_step(
    ones: Iterator[pa.RecordBatch], others: Iterator[pa.RecordBatch]
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Cut two streams so that their parts have the same lengths."""
    here, there = next(ones, None), next(others, None)
    while here is not None and there is not None:
        length = min(len(here), len(there))
        yield here.slice(0, length), there.slice(0, length)
        here = here.slice(length) if length < len(here) else next(ones, None)
        there = there.slice(length) if length < len(there) else next(others, None)
