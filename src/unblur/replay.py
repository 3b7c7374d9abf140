"""Is a release what its mechanism makes of a table? Make it again, and compare row by row."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from unblur.anonymizing import AnonymizedRelease, anonymize
from unblur.config import Mechanism
from unblur.errors import ConfigError, TableError, UnblurWarning
from unblur.labels import ROOT_LABEL
from unblur.pairing import STRETCH, Marks, in_step, stream
from unblur.release import Release
from unblur.tables import ROW, Table
from unblur.workspace import Workspace

if TYPE_CHECKING:
    import ibis
    import pyarrow as pa

Labels = tuple[str, ...]


@dataclass(frozen=True)
class Replay:
    """How a release differs from one made again from the raw table."""

    rows: int
    """How many rows differ."""
    first: int | None
    """The number of the first, from 1; None if there is none."""
    expected: tuple[str, ...] = ()
    """The labels that the mechanism gives to that row."""
    found: tuple[str, ...] = ()
    """Those that the release has."""

    @property
    def same(self) -> bool:
        """Whether the release is what the mechanism makes of the table."""
        return not self.rows


def replay(
    release: Release, truth: Any, mechanism: Mechanism, *, id: str | None = None, encoding: str | None = None
) -> Replay:
    """Anonymize the raw table again and compare; rows are matched by position, or by the column `id`."""
    if mechanism.name not in ("paper", "arx"):
        raise ConfigError(f"a replay needs a mechanism that makes releases: paper or arx, not {mechanism.name}")
    names = [each.name for each in release.config.quasi_identifiers]
    config = replace(release.config, mechanism=mechanism)
    missing: Literal["error", "suppress"] = "suppress" if config.missing else "error"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnblurWarning)
        again = anonymize(truth, config, missing=missing, encoding=encoding)
    roots = tuple(each.hierarchy.labels[-1][0] for each in release.config.quasi_identifiers)
    with Workspace() as workspace:
        published = release.open_rows(workspace)
        rows = _by_position(published, again, names) if id is None else _by_id(published, again, names, id)
        return _compare(rows, roots)


def _compare(rows: Iterable[tuple[int, Labels, Labels]], roots: Labels) -> Replay:
    """Count the rows whose labels differ, and keep the first."""
    first, count = Replay(0, None), 0
    for row, found, expected in rows:
        if _shown(found, roots) != _shown(expected, roots):
            first, count = first if count else Replay(1, row + 1, expected, found), count + 1
    return replace(first, rows=count)


def _by_position(published: Table, again: AnonymizedRelease, names: list[str]) -> Iterator[tuple[int, Labels, Labels]]:
    """The rows that are not equal: their number, their labels, and those that they should have."""
    if published.row_count != again.rows:
        raise _other_rows(published)
    labels, made = ({name: rows[name].cast("string") for name in names} for rows in (published.rows, again.published))
    start, anew = 0, again.published.select(**made)
    for here, there in in_step(stream(published, published.rows, labels), _made(again, anew)):
        for row in np.flatnonzero(_unlike(here, there)).tolist():
            found, expected = (tuple(column[row].as_py() for column in each.columns) for each in (here, there))
            yield start + row, found, expected
        start += len(here)
    if start != again.rows:  # a file was changed meanwhile
        raise _other_rows(published)


def _made(again: AnonymizedRelease, rows: ibis.Table) -> Iterator[pa.RecordBatch]:
    """Read what was made again, in its order."""
    with again.table.reading(rows):
        yield from again.table.engine.batches(rows, STRETCH)


def _unlike(here: pa.RecordBatch, there: pa.RecordBatch) -> Marks:
    import pyarrow.compute as pc

    marks = [pc.not_equal(*both).fill_null(True) for both in zip(here.columns, there.columns, strict=True)]
    unlike: Marks = np.any([each.to_numpy(zero_copy_only=False) for each in marks], axis=0)
    return unlike


def _by_id(
    published: Table, again: AnonymizedRelease, names: list[str], id: str
) -> Iterator[tuple[int, Labels, Labels]]:
    """All rows, in the order of the release."""
    rows = published.rows.order_by(ROW) if published.numbered else published.rows
    found = _labels(published.fetch(rows.select(*names, id)), names, id)
    expected = _labels(again.to_arrow(), names, id)
    if found.keys() != expected.keys():
        raise _other_rows(published)
    return ((row, labels, expected[key]) for row, (key, labels) in enumerate(found.items()))


def _other_rows(published: Table) -> TableError:
    return TableError(f"{published.name}: its rows are not those of the raw table")


def _labels(rows: pa.Table, names: list[str], id: str) -> dict[str, Labels]:
    """The labels of each row, by its id."""
    columns = (rows[name].to_pylist() for name in names)
    return dict(zip(map(str, rows[id].to_pylist()), zip(*columns, strict=True), strict=True))


def _shown(labels: Labels, roots: Labels) -> Labels:
    return (ROOT_LABEL,) * len(roots) if labels == roots else labels
