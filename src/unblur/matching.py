"""Rows of a release and of its raw table matched by their ids: only groups of equal rows come to Python.

If both tables are in one Spark session, Spark matches them. Otherwise what is needed of each is written to a temporary
Parquet file, whatever engine has it, and DuckDB matches the two: a part of the ids at a time, chosen by their hashes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from unblur.cells import Cells
from unblur.engines import SparkEngine, engine_errors
from unblur.pairing import wrong_rows
from unblur.tables import PREFIX, ROW, Table
from unblur.workspace import Workspace, sql_text

if TYPE_CHECKING:
    import ibis
    import pyarrow as pa

MOST_IDS = 4_000_000
"""So many rows or somewhat more are matched at a time: DuckDB cannot tell many more ids apart in its memory."""
WEIGHT, FIRST = f"{PREFIX}_weight", f"{PREFIX}_first"
"""Columns that tell how many rows a group has, and the number of its first published row."""
_ID, _PART, _HERE, _THERE, _OTHER = (f"{PREFIX}_{name}" for name in ("id", "part", "here", "there", "other"))


@dataclass(frozen=True)
class _Side:
    """What is needed of one of the tables: some columns, the ids as text, and the numbers of the rows."""

    table: Table
    rows: ibis.Table
    fetch: Callable[[ibis.Table], pa.Table]
    workspace: Workspace | None
    """Where the rows have been brought to; None if they are where they were."""

    def one(self, **figures: Any) -> dict[str, Any]:
        """Find some figures about all rows."""
        found: dict[str, Any] = self.fetch(self.rows.aggregate(**figures)).to_pylist()[0]
        return found

    def parts(self, number: int) -> list[_Side]:
        """Part the rows by their ids, a file or more for each part; the number is a power of two."""
        if self.workspace is None or number == 1:
            return [self]
        duckdb, folder = self.workspace.duckdb, self.workspace.new_path("parts")
        marked = self.rows.mutate(**{_PART: self.rows[_ID].hash() & (number - 1)})
        options = f"FORMAT parquet, PARTITION_BY ({_PART})"
        duckdb.con.execute(f"COPY ({duckdb.compile(marked)}) TO {sql_text(str(folder))} ({options})")
        rows = duckdb.read_parquet(folder / "*" / "*.parquet", hive_partitioning=True)
        return [replace(self, rows=rows.filter(rows[_PART] == part).drop(_PART)) for part in range(number)]


def match_groups(
    published: Table, labels: Mapping[str, Any], cells: Cells, codes: Mapping[str, str], id_column: str
) -> pa.Table:
    """Match rows by their ids; count those that have the same labels (as `labels` has them) and codes (`codes`)."""
    numbered = [ROW] if cells.table.numbered else []
    raw = cells.coded(*numbered, id_column)
    here = _chosen(published, published.rows, labels, id_column)
    there = _chosen(cells.table, raw, {name: raw[code] for name, code in codes.items()}, id_column)
    with Workspace() as workspace, engine_errors(published.name):
        where = None if on_one_cluster(published, cells.table) else workspace
        return _match(_side(published, here, where), _side(cells.table, there, where), [*labels, *codes], id_column)


def on_one_cluster(published: Table, table: Table) -> bool:
    """Whether both tables are in one Spark session."""
    here, there = published.engine, table.engine
    if not (isinstance(here, SparkEngine) and isinstance(there, SparkEngine)):
        return False
    return here.backend._session is there.backend._session


def _chosen(table: Table, rows: ibis.Table, columns: Mapping[str, Any], id_column: str) -> ibis.Table:
    """Choose columns; ids as text, but floating-point numbers as they are, for engines write them differently."""
    import ibis

    ids = rows[id_column]
    comparable = ids.cast("float64" if ids.type().is_floating() else "string")
    number = rows[ROW] if table.numbered else ibis.literal(0, "int64")
    return rows.select(**columns, **{_ID: comparable, ROW: number})


def _side(table: Table, rows: ibis.Table, workspace: Workspace | None) -> _Side:
    """Leave the rows where they are, or write them to a temporary file."""
    if workspace is None:
        return _Side(table, _with_ids(rows), table.fetch, workspace)
    path = workspace.new_path("ids.parquet")
    with table.reading(rows):
        connection, query = table.engine.stage(rows, workspace.new_path("stage"))
        connection.execute(f"COPY ({query}) TO {sql_text(str(path))} (FORMAT parquet)")
    return _Side(table, _with_ids(workspace.duckdb.read_parquet(path)), workspace.duckdb.to_pyarrow, workspace)


def _with_ids(rows: ibis.Table) -> ibis.Table:
    return rows.mutate(**{_ID: id_text(rows[_ID])})


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


def _match(here: _Side, there: _Side, columns: Sequence[str], id_column: str) -> pa.Table:
    """Count the rows of each group, and refuse ids that are missing or repeated, or that only one side has."""
    import pyarrow as pa

    rows = max(_check_filled(side, id_column) for side in (here, there))
    number = 1 << (rows // MOST_IDS).bit_length()
    some = list(zip(here.parts(number), there.parts(number), strict=True))
    for place, side in enumerate((here, there)):
        _refuse(side.table, id_column, "an id that another row has too", [_repeated(each[place]) for each in some])
    groups = pa.concat_tables([_matched(*each, columns) for each in some])
    for mark, side, first, lacking in ((_THERE, here, FIRST, there), (_HERE, there, _OTHER, here)):
        alone = groups.filter(groups[f"{mark}_lacks"]).select([WEIGHT, first]).to_pylist()
        what = f"an id that {lacking.table.name} does not have"
        _refuse(side.table, id_column, what, [(each[WEIGHT], each[first]) for each in alone])
    return groups


def _matched(here: _Side, there: _Side, columns: Sequence[str]) -> pa.Table:
    """Count the rows of each group, also of those that only one side has."""
    one, other = here.rows.rename({_HERE: ROW}), there.rows.rename({_THERE: ROW})
    both = one.outer_join(other, [one[_ID] == other[_ID]]).select(*columns, _HERE, _THERE)
    marked = both.mutate(**{f"{name}_lacks": both[name].isnull() for name in (_HERE, _THERE)})
    figures = {WEIGHT: marked.count(), FIRST: marked[_HERE].min(), _OTHER: marked[_THERE].min()}
    return here.fetch(marked.group_by([*columns, f"{_HERE}_lacks", f"{_THERE}_lacks"]).aggregate(**figures))


def _check_filled(side: _Side, id_column: str) -> int:
    """Refuse missing ids; count the rows."""
    rows, ids = side.rows, side.rows[_ID]
    found = side.one(all=rows.count(), filled=ids.count(), first=rows[ROW].min(where=ids.isnull()))
    _refuse(side.table, id_column, "an id is missing", [(found["all"] - found["filled"], found["first"])])
    return int(found["all"])


def _repeated(side: _Side) -> tuple[int, int]:
    """Count the rows whose id an earlier one has, and find the first of them."""
    import ibis

    found = side.one(all=side.rows.count(), different=side.rows[_ID].nunique())
    if found["all"] == found["different"]:
        return 0, 0
    again = side.rows.mutate(**{_OTHER: ibis.row_number().over(group_by=_ID, order_by=ROW)})
    first = side.fetch(again.aggregate(first=again[ROW].min(where=again[_OTHER] > 0)))["first"][0].as_py()
    return found["all"] - found["different"], first


def _refuse(table: Table, id_column: str, what: str, found: Sequence[tuple[int, int]]) -> None:
    """Refuse rows, if there are any: how many each time, and the first of them."""
    if count := sum(number for number, _ in found):
        first = min(first for number, first in found if number)
        raise wrong_rows(table, first, count, f"column {id_column!r}:", what)
