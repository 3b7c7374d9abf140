"""Rows of a release and of its raw table matched inside Spark: only groups of them come to Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from unblur.cells import Cells
from unblur.engines import SparkEngine
from unblur.errors import TableError
from unblur.tables import PREFIX, Table

if TYPE_CHECKING:
    import ibis
    import pyarrow as pa

WEIGHT = f"{PREFIX}_weight"
"""The column that counts the rows of a group."""
_ID, _HERE, _THERE = (f"{PREFIX}_{name}" for name in ("id", "here", "there"))


def on_one_cluster(published: Table, table: Table) -> bool:
    """Whether both tables are in one Spark session."""
    here, there = published.engine, table.engine
    if not (isinstance(here, SparkEngine) and isinstance(there, SparkEngine)):
        return False
    return here.backend._session is there.backend._session


def match_groups(
    published: Table, labels: Mapping[str, Any], cells: Cells, codes: Mapping[str, str], id_column: str
) -> pa.Table:
    """Match rows by their ids; count those that have the same labels (as `labels` has them) and codes (`codes`)."""
    import ibis

    raw = cells.coded(id_column)
    here = published.rows.select(**labels, **{_ID: id_text(published.rows[id_column]), _HERE: ibis.literal(1)})
    there = raw.select(**{name: raw[code] for name, code in codes.items()}, **{_ID: id_text(raw[id_column])})
    there = there.mutate(**{_THERE: ibis.literal(1)})
    for table, rows in ((published, here), (cells.table, there)):
        _check_ids(table, rows, id_column)
    both = here.outer_join(there, [here[_ID] == there[_ID]])
    kept = both.select(*labels, *codes, _HERE, _THERE)
    groups = published.fetch(kept.group_by(kept.columns).aggregate(**{WEIGHT: kept.count()}))
    for mark, one, other in ((_THERE, published, cells.table), (_HERE, cells.table, published)):
        lacking = sum(n for n, there in zip(*_lists(groups, WEIGHT, mark), strict=True) if there is None)
        if lacking:
            raise _wrong(one, id_column, f"an id that {other.name} does not have", lacking)
    return groups.drop_columns([_HERE, _THERE])


def id_text(column: Any) -> Any:
    """Write ids as text: whole numbers without decimals, NULL where there is nothing."""
    import ibis

    if column.type().is_floating():
        whole = (column.floor() == column) & (column.abs() < 2.0**53)
        text = ibis.ifelse(whole, column.cast("int64").cast("string"), column.cast("string"))
        return ibis.ifelse(column.isnan(), ibis.null("string"), text)
    text = column.cast("string").strip()
    whole = text.re_search(r"^[+-]?[0-9]+[.]0*$")
    return ibis.ifelse(whole, text.re_extract(r"^([+-]?[0-9]+)[.]0*$", 1), text).nullif("")


def _check_ids(table: Table, rows: ibis.Table, id_column: str) -> None:
    """Refuse missing and repeated ids."""
    ids = rows[_ID]
    found = table.fetch(rows.aggregate(all=rows.count(), filled=ids.count(), different=ids.nunique())).to_pylist()[0]
    if missing := found["all"] - found["filled"]:
        raise _wrong(table, id_column, "an id is missing", missing)
    if repeated := found["filled"] - found["different"]:
        raise _wrong(table, id_column, "an id that another row has too", repeated)


def _lists(groups: pa.Table, *names: str) -> list[list[Any]]:
    return [groups[name].to_pylist() for name in names]


def _wrong(table: Table, id_column: str, what: str, count: int) -> TableError:
    rows = "1 such row" if count == 1 else f"{count:,} such rows"
    return TableError(f"{table.name}: column {id_column!r}: {what} ({rows})")
