"""Rows grouped by labels that Parquet files keep as dictionaries.

Such a file holds a column of labels as small numbers, and beside them the list of labels that these stand for. Counting
the numbers takes half the processor time of grouping the texts. What is not of that kind, or cannot be read, is left to
the engine that has the rows: it reads it, or knows what to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unblur.hierarchy import Ranks
from unblur.watching import Progress

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 1 << 16
"""So many rows are counted at a time."""
MOST_COMBINATIONS = 1 << 17
"""Where labels may combine in more ways than this, most counts would be 0."""
MOST_AT_ONCE = 8
"""So many row groups are one piece of work, at most."""


class _Unsuited(Exception):
    """These files are not for this way; never reaches the user."""


@dataclass(frozen=True)
class _Part:
    """Neighbouring row groups of a file."""

    path: Path
    metadata: pa.parquet.FileMetaData
    groups: range

    @property
    def rows(self) -> int:
        return sum(self.metadata.row_group(group).num_rows for group in self.groups)


def count_labels(
    parquets: Sequence[Path], names: Sequence[str], *, threads: int, progress: Progress | None = None
) -> pa.Table | None:
    """Count the rows of each combination of labels: `label_0`, `label_1`, …, `rows`; None if these are not for us."""
    import pyarrow as pa

    try:
        parts = [part for path in parquets for part in _parts(path, names, threads)]
        return _count_all(parts, list(names), threads, progress).to_arrow()
    except (_Unsuited, pa.ArrowException, OSError, UnicodeDecodeError):
        return None


def _count_all(parts: Sequence[_Part], names: list[str], threads: int, progress: Progress | None) -> _Totals:
    """Count with several threads; an error, or an interrupt, ends them all."""
    totals, done, rows = _Totals(len(names)), 0, sum(part.rows for part in parts)
    workers = ThreadPoolExecutor(threads)
    try:
        for some in workers.map(partial(_count, names=names, totals=totals), parts):
            done += some
            if progress:
                progress(done, rows)
    finally:
        workers.shutdown(cancel_futures=True)
    return totals


def _parts(path: Path, names: Sequence[str], threads: int) -> Iterator[_Part]:
    """Part a file for several threads."""
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(path)
    _check(metadata, names)
    groups = metadata.num_row_groups
    size = max(1, min(MOST_AT_ONCE, groups // (4 * threads)))
    for start in range(0, groups, size):
        yield _Part(path, metadata, range(start, min(start + size, groups)))


def _check(metadata: pa.parquet.FileMetaData, names: Sequence[str]) -> None:
    """Refuse a file in which some of the columns are no text, or have no dictionary where the file begins."""
    places: dict[str, list[int]] = {}
    for place in range(metadata.num_columns):
        places.setdefault(metadata.schema.column(place).path, []).append(place)
    for name in names:
        if len(places.get(name, ())) != 1:
            raise _Unsuited
        column = metadata.schema.column(places[name][0])
        if column.name != name or column.logical_type.type != "STRING" or column.max_repetition_level:
            raise _Unsuited
        if metadata.num_row_groups and not metadata.row_group(0).column(places[name][0]).has_dictionary_page:
            raise _Unsuited


def _count(part: _Part, *, names: list[str], totals: _Totals) -> int:
    """Count some rows, and say how many they were."""
    import pyarrow.parquet as pq

    rows, tally = 0, _Tally()
    with pq.ParquetFile(part.path, metadata=part.metadata, read_dictionary=names) as file:
        for group in part.groups:
            for batch in file.iter_batches(BATCH, row_groups=[group], columns=names, use_threads=False):
                columns = [batch.column(name) for name in names]
                labels = [column.dictionary for column in columns]
                if labels != tally.labels:
                    totals.add(tally)
                    tally.begin(labels)
                tally.count([column.indices for column in columns])
                rows += len(batch)
    totals.add(tally)
    if rows != part.rows:
        raise _Unsuited
    return rows


class _Tally:
    """Counts rows that have the same dictionaries, some at a time.

    Always in the same memory: to ask for new takes longer than to count.
    """

    def __init__(self) -> None:
        self._codes, self._places = np.empty(BATCH, np.int32), np.empty(BATCH, np.intp)
        self._room = np.empty(MOST_COMBINATIONS, np.int64)
        self.labels: list[pa.StringArray] = []
        self.counts = self._room[:0]

    def begin(self, labels: list[pa.StringArray]) -> None:
        """Begin anew, with other dictionaries; a missing label comes after those of each."""
        sizes = [len(each) + 1 for each in labels]
        if prod(sizes) > MOST_COMBINATIONS:
            raise _Unsuited
        self.labels, self.counts = labels, self._room[: prod(sizes)].reshape(sizes)
        self.counts[...] = 0

    def count(self, columns: Sequence[pa.Array]) -> None:
        """Count some rows by the numbers that stand for their labels."""
        codes, places = self._codes[: len(columns[0])], self._places[: len(columns[0])]
        codes[:] = 0
        for numbers, size in zip(columns, self.counts.shape, strict=True):
            codes *= size
            codes += _numbers(numbers, size - 1)
        places[:] = codes
        np.add.at(self.counts.reshape(-1), places, 1)


def _numbers(indices: pa.Array, labels: int) -> NDArray[np.int32]:
    """Take the numbers of so many labels, that of a missing one after them; nobody has looked at them before."""
    known = indices.drop_null().to_numpy() if indices.null_count else indices.to_numpy()
    if len(known) and not 0 <= known.min() <= known.max() < labels:
        raise _Unsuited
    filled = indices.fill_null(labels).to_numpy() if indices.null_count else known
    numbers: NDArray[np.int32] = filled.astype(np.int32, copy=False)
    return numbers


class _Totals:
    """How many rows have each combination of labels, in all files; several threads add to it."""

    def __init__(self, columns: int) -> None:
        self._known: list[dict[str | None, int]] = [{} for _ in range(columns)]
        self._counts: Ranks = np.zeros((0,) * columns, np.int64)
        self._lock = Lock()

    def add(self, tally: _Tally) -> None:
        """Add what was counted; nothing, if that has not begun."""
        found = np.flatnonzero(tally.counts > 0)
        if not len(found):
            return
        labels, places = [each.to_pylist() for each in tally.labels], np.unravel_index(found, tally.counts.shape)
        with self._lock:
            numbers = [
                np.array([known.setdefault(label, len(known)) for label in (*each, None)], np.intp)[place]
                for known, each, place in zip(self._known, labels, places, strict=True)
            ]
            self._make_room()
            here = np.ravel_multi_index(numbers, self._counts.shape)
            np.add.at(self._counts.reshape(-1), here, tally.counts.reshape(-1)[found])

    def _make_room(self) -> None:
        shape = tuple(map(len, self._known))
        if shape == self._counts.shape:
            return
        if prod(shape) > MOST_COMBINATIONS:
            raise _Unsuited
        larger = np.zeros(shape, np.int64)
        larger[tuple(map(slice, self._counts.shape))] = self._counts
        self._counts = larger

    def to_arrow(self) -> pa.Table:
        """Return a row for each combination that there is."""
        import pyarrow as pa

        found = np.nonzero(self._counts)
        columns = {
            f"label_{i}": pa.array(list(known), pa.string()).take(pa.array(places))
            for i, (known, places) in enumerate(zip(self._known, found, strict=True))
        }
        return pa.table({**columns, "rows": self._counts[found]})
