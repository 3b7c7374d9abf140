"""Small tables looked up from every row, without a join, so that the rows keep their order.

DuckDB streams rows in their order through a projection, and through the product with a table of a single row. A join
gives the order up, and sorting the rows back costs more than all the rest: time, and a second copy of them on disk. So
a small table becomes a single row of lists, and each row reads from them at its own place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from unblur.engines import DuckDBEngine
from unblur.hierarchy import Ranks
from unblur.tables import PREFIX

if TYPE_CHECKING:
    import ibis
    import pyarrow as pa

_AT, _VALUE = f"{PREFIX}_at", f"{PREFIX}_listed"
MOST_PLACES = 2**22
"""How long a list may become: it lies in memory."""


def look_up(rows: ibis.Table, at: Any, columns: Mapping[str, Any], engine: DuckDBEngine) -> ibis.Table:
    """Add columns to the rows: of each, the entry at the row's place, counted from 0."""
    connection = engine.backend.con
    places = len(next(iter(columns.values())))
    small = engine.push({**columns, _AT: np.arange(places)})
    lists = small.aggregate(**{name: small[name].collect(order_by=small[_AT]) for name in columns})
    single = f"{small.get_name()}_lists"
    connection.execute(f"CREATE TEMP TABLE {single} AS {engine.backend.compile(lists)}")
    engine.workspace.defer(connection.execute, f"DROP TABLE IF EXISTS {single}")
    beside = rows.mutate(**{_AT: at}).cross_join(engine.backend.table(single))
    return beside.mutate(**{name: beside[name][beside[_AT]] for name in columns}).drop(_AT)


def place_among(values: Sequence[str] | Sequence[float], key: Any, engine: DuckDBEngine) -> Any:
    """Return the place of each row's key among different values, counted from 1; 0 where it is none of them."""
    import ibis

    connection = engine.backend.con
    name = engine.push({_VALUE: list(values), _AT: np.arange(len(values))}).get_name()
    kind, text = "string", "{}"
    if isinstance(values[0], float):  # compared as the text that DuckDB writes; adding 0 makes 0 of -0
        kind, text = "float64", "({} + 0.0::DOUBLE)::VARCHAR"
    listed = f"SELECT {text.format(_VALUE)} FROM {name} ORDER BY {_AT}"
    connection.execute(f"CREATE TEMP TYPE {name}_type AS ENUM ({listed})")
    code = f"enum_code(TRY_CAST({text.format('key')} AS {name}_type))"
    connection.execute(f"CREATE TEMP MACRO {name}_place(key) AS coalesce({code}::BIGINT + 1, 0)")
    engine.workspace.defer(connection.execute, f"DROP TYPE IF EXISTS {name}_type")
    engine.workspace.defer(connection.execute, f"DROP MACRO IF EXISTS {name}_place")

    def place(key: Any) -> Any:
        """Stand for the macro."""

    return ibis.udf.scalar.builtin(place, name=f"{name}_place", signature=((kind,), "int64"))(key)


def look_up_cells(
    rows: ibis.Table, codes: Mapping[str, Ranks], columns: Mapping[str, pa.DictionaryArray], engine: DuckDBEngine
) -> ibis.Table | None:
    """Add columns to the rows by the codes these have; what is given lists the combinations and what belongs to each.

    None if the combinations are so many that a list would become too long.
    """
    at: Any = 0
    place, places = np.zeros(len(next(iter(codes.values()))), dtype=np.int64), 1
    for name, code in codes.items():
        first, width = int(code.min()), int(np.ptp(code)) + 1
        if places * width > 2**12 + 4 * len(place):  # number anew what occurs: at most one place per combination
            occurring, place = np.unique(place, return_inverse=True)
            number = f"{_AT}_{name}"
            rows = look_up(rows, at, {number: _spread(np.arange(len(occurring)), occurring, places)}, engine)
            at, places = rows[number], len(occurring)
        if places * width > MOST_PLACES:
            return None
        at, place, places = at * width + (rows[name] - first), place * width + (code - first), places * width
    return look_up(rows, at, {name: _labels(column, place, places) for name, column in columns.items()}, engine)


def keeps_order(rows: ibis.Table, engine: DuckDBEngine) -> bool:
    """Whether DuckDB's plan is one that keeps the order: projections and products with a single row, over one scan."""
    step = engine.plan(rows)
    while (name := step["name"].strip()) in ("PROJECTION", "CROSS_PRODUCT"):
        step, *beside = step["children"]
        if any(each["name"].strip() != "SEQ_SCAN" or each["children"] for each in beside):
            return False
    return name in ("READ_PARQUET", "PARQUET_SCAN", "ARROW_SCAN")


def _labels(column: pa.DictionaryArray, place: Ranks, places: int) -> pa.DictionaryArray:
    import pyarrow as pa

    indices = _spread(column.indices.to_numpy().astype(np.int32), place, places)
    return pa.DictionaryArray.from_arrays(pa.array(indices), column.dictionary)


def _spread(values: Any, place: Ranks, places: int) -> Any:
    """Put values at their places in a longer list; no row has a place between them."""
    spread = np.zeros(places, dtype=values.dtype)
    spread[place] = values
    return spread
