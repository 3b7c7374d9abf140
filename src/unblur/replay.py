"""Is a release what its mechanism makes of a table? Make it again, and compare row by row."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from unblur.anonymizing import anonymize
from unblur.config import Mechanism
from unblur.errors import ConfigError, TableError, UnblurWarning
from unblur.labels import ROOT_LABEL
from unblur.release import Release
from unblur.tables import ROW, Table
from unblur.workspace import Workspace

if TYPE_CHECKING:
    import pyarrow as pa

Labels = list[tuple[str, ...]]


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
    with Workspace() as workspace:
        published = release.open_rows(workspace)
        found = _labels(_fetch(published, names, id), names, id)
        expected = _labels(again.to_arrow(), names, id)
    if found.keys() != expected.keys():
        raise TableError(f"{published.name}: its rows are not those of the raw table")
    roots = tuple(each.hierarchy.labels[-1][0] for each in release.config.quasi_identifiers)
    differ = [key for key in found if _shown(found[key], roots) != _shown(expected[key], roots)]
    if not differ:
        return Replay(0, None)
    first = list(found).index(differ[0])
    return Replay(len(differ), first + 1, expected[differ[0]], found[differ[0]])


def _fetch(table: Table, names: list[str], id: str | None) -> pa.Table:
    rows = table.rows.order_by(ROW) if table.numbered else table.rows
    return table.fetch(rows.select(*names, *([id] if id else [])))


def _labels(rows: pa.Table, names: list[str], id: str | None) -> dict[Any, tuple[str, ...]]:
    """The labels of each row, by its id or its position."""
    keys = map(str, rows[id].to_pylist()) if id else range(rows.num_rows)
    columns = (rows[name].to_pylist() for name in names)
    return dict(zip(keys, zip(*columns, strict=True), strict=True))


def _shown(labels: tuple[str, ...], roots: tuple[str, ...]) -> tuple[str, ...]:
    return (ROOT_LABEL,) * len(roots) if labels == roots else labels
