"""Leaks around a release: what gives something away that no count of placements shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from unblur.arx.hierarchy_csv import listed_values
from unblur.config import BUILDER
from unblur.engines import DuckDBEngine
from unblur.errors import ConfigError
from unblur.hierarchy import IntervalHierarchy
from unblur.release import Release
from unblur.tables import ROW, Table
from unblur.workspace import Workspace

if TYPE_CHECKING:
    import pyarrow as pa

Kind = Literal["identifier_column", "below_k", "raw_values", "few_suppressed", "observed_values", "original_order"]


ALMOST_ALL = 0.9
"""A column with so many different values among those that are filled in tells rows apart."""
MOST_VALUES = 2_000_000
"""About how many values of a column are told apart, if all rows have to be looked at."""
LONG = 1_000_000
"""Of tables with more rows, only some are looked at, unless these leave it open."""
STRETCHES, STRETCH = 4, 25_000
"""So many times as many neighbouring rows."""
FEW = 1_000
"""Fewer filled rows among them say nothing."""


@dataclass(frozen=True)
class Leak:
    """Something that a release, or what lies around it, gives away, and what to do about it."""

    kind: Kind
    finding: str
    remedy: str


def find_leaks(release: Release, *, matched_by_position: bool = False) -> tuple[Leak, ...]:
    """Look around a release; `matched_by_position` says that its rows are known to stand in their original order."""
    return (
        *_identifier_columns(release),
        *_small_classes(release),
        *_raw_values(release),
        *_few_suppressed(release),
        *_observed_values(release),
        *_original_order(matched_by_position),
    )


def _identifier_columns(release: Release) -> Iterator[Leak]:
    """Columns that are different in every row, but for a few."""
    known = {each.name for each in release.config.quasi_identifiers}
    with Workspace() as workspace:
        try:
            table = release.open_rows(workspace)
        except ConfigError:  # only classes are known
            return
        for name in _different_everywhere(table, known, release.rows):
            yield Leak(
                "identifier_column",
                f"the column {name!r} has another value in every row, or almost: whoever knows one finds the row",
                "leave the column out, or replace its values by random ones that are kept nowhere else",
            )


def _different_everywhere(table: Table, known: set[str], rows: int) -> list[str]:
    others = [name for name in table.columns if name not in known]
    if not table.numbered or rows <= LONG:
        return _different_in_all(table, others)
    verdicts = _different_in_some(table, others, rows)
    doubtful = _different_in_all(table, [name for name in others if verdicts[name] is None])
    return [name for name in others if verdicts[name] or name in doubtful]


def _different_in_all(table: Table, names: Sequence[str]) -> list[str]:
    """Count the different values of columns."""
    if not names:
        return []
    conditions = {name: _some_values(table, name) for name in names}
    counts: dict[str, Any] = {f"n{i}": table.rows[name].nunique(where=conditions[name]) for i, name in enumerate(names)}
    filled: dict[str, Any] = {f"f{i}": table.rows[name].count(where=conditions[name]) for i, name in enumerate(names)}
    found = table.fetch(table.rows.aggregate(**counts, **filled)).to_pylist()[0]
    return [
        name for i, name in enumerate(names) if found[f"f{i}"] > 1 and found[f"n{i}"] >= ALMOST_ALL * found[f"f{i}"]
    ]


def _different_in_some(table: Table, names: Sequence[str], rows: int) -> dict[str, bool | None]:
    """Look at some stretches of a long table; None where they leave it open whether a column differs everywhere."""
    if not names:
        return {}
    starts = [rows * i // STRETCHES for i in range(STRETCHES)]
    columns = table.rows.select(ROW, **{f"c{i}": table.rows[name].cast("string") for i, name in enumerate(names)})
    assert isinstance(table.engine, DuckDBEngine), "it has all tables whose rows are numbered"
    with table.reading(columns):
        some = table.engine.fetch_ranges(columns, ROW, [(start, start + STRETCH) for start in starts])
    return {name: _differs(some[f"c{i}"], some.num_rows / rows) for i, name in enumerate(names)}


def _differs(values: pa.ChunkedArray, share: float) -> bool | None:
    """Whether a column differs everywhere, judged by a share of its rows; None if that is open.

    A value of just two rows shows both with a chance of share^2. So each that is seen twice stands for 1 / share^2.
    """
    import pyarrow.compute as pc

    times = pc.value_counts(values.drop_null()).field("counts").to_numpy()
    filled = int(times.sum())
    if filled < FEW:
        return None
    if len(times) < ALMOST_ALL * filled:
        return False
    often, twice = int(times[times > 2].sum()), int((times == 2).sum())
    repeated = often / filled + twice / (share * filled)
    return True if repeated <= 1 - ALMOST_ALL else None


def _some_values(table: Table, name: str) -> Any:
    """Choose, of a long file's column, one value in so many by its hash, with all rows that have it; else None.

    To tell all values of a hundred million rows apart would take more memory than all the rest.
    """
    if not table.numbered or table.row_count <= MOST_VALUES:
        return None
    return table.rows[name].hash() % (table.row_count // MOST_VALUES + 1) == 0


def _small_classes(release: Release) -> Iterator[Leak]:
    small = sum(each.size < release.config.k for each in release.classes)
    if small:
        classes = "1 class has" if small == 1 else f"{small:,} classes have"
        yield Leak(
            "below_k",
            f"{classes} fewer than k = {release.config.k} records",
            "suppress these rows, or find out why they are there: k is another, or rows were removed afterwards",
        )


def _raw_values(release: Release) -> Iterator[Leak]:
    for i, attribute in enumerate(release.config.quasi_identifiers):
        records = sum(each.size for each in release.classes if each.state[i] == 0)
        if records and attribute.hierarchy.nodes(0) > attribute.hierarchy.nodes(1):
            show = "record shows its" if records == 1 else "records show their"
            yield Leak(
                "raw_values",
                f"{records:,} {show} raw value of {attribute.name!r}",
                "if that is not meant, set finest_layer = 1 (in ARX: minimum generalization 1) and anonymize again",
            )


def _few_suppressed(release: Release) -> Iterator[Leak]:
    if 0 < release.outliers < release.config.k:
        yield Leak(
            "few_suppressed",
            f"the {release.outliers} suppressed rows share one label and are fewer than k = {release.config.k}: "
            "counted as a class they break k, and their other columns stand alone",
            "leave suppressed rows out of the release, and publish only how many there were; for an audit, keep the "
            "number of all rows in the config (rows under [made])",
        )


def _observed_values(release: Release) -> Iterator[Leak]:
    """Hierarchy files that list only some of the values of an interval attribute."""
    for attribute in release.config.quasi_identifiers:
        tree = attribute.hierarchy
        file = str(attribute.source.get("hierarchy", ""))
        if not file or file.lower().endswith(BUILDER) or not isinstance(tree, IntervalHierarchy):
            continue
        listed = len(set(listed_values(release.config.folder / file)))
        if tree.nodes(1) * 2 < listed < tree.values:
            yield Leak(
                "observed_values",
                f"the hierarchy file of {attribute.name!r} lists {listed:,} of {tree.values:,} values: "
                "if these are the values that occur, the file tells them",
                "publish a file with one row per interval (unblur hierarchy build), or none",
            )


def _original_order(matched_by_position: bool) -> Iterator[Leak]:
    if matched_by_position:
        yield Leak(
            "original_order",
            "the rows stand in the order of the raw table: if that follows a value or a date, it can be read off",
            "shuffle the rows before publishing",
        )
