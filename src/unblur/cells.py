"""Rows in and out, inside the engine that has them.

Rows are never brought into Python: one GROUP BY brings the histogram over cells, one lookup (where the rows have an
order to keep) or JOIN puts the labels on. A row whose value has no cell gets a negative code instead, so the same GROUP
BY also finds every problem.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unblur.config import Config, QuasiIdentifier
from unblur.engines import DuckDBEngine
from unblur.errors import TableError
from unblur.hierarchy import CategoryHierarchy, IntervalHierarchy, Ranks
from unblur.histogram import Histogram
from unblur.labels import ROOT_LABEL, parse_number
from unblur.lookups import keeps_order, look_up, look_up_cells, place_among
from unblur.release import EquivalenceClass
from unblur.tables import PREFIX, ROW, Table
from unblur.watching import Progress

if TYPE_CHECKING:
    import ibis
    import ibis.expr.types as ir
    import pyarrow as pa

MISSING, OUTSIDE, NOT_A_NUMBER, UNKNOWN = -1, -2, -3, -4
"""Codes of rows that have no cell: an empty value, one outside the domain, a text, a label of no hierarchy."""

_KEY, _ABSENT, _VALUE, _CELL, _ORDER = (f"{PREFIX}_{name}" for name in ("key", "absent", "value", "cell", "order"))

MISSING_TEXTS = ("", "nan", "na", "n/a", "null")
"""What stands for a missing number in a column of text, in any case."""


@dataclass(frozen=True)
class Cells:
    """A table whose rows are assigned to cells; `groups` is the histogram as the engine returned it."""

    table: Table
    config: Config
    rows: ibis.Table
    """The table's columns, then per quasi-identifier its cell's node (`_code`) and its raw value (`_raw`)."""
    groups: pa.Table

    @cached_property
    def codes(self) -> list[Ranks]:
        """Per quasi-identifier, the code of each group."""
        return [self.groups[_code(i)].to_numpy().astype(np.int64) for i in range(len(self.config.quasi_identifiers))]

    @cached_property
    def valid(self) -> NDArray[np.bool_]:
        """Which groups are cells: those without a problem."""
        return np.asarray(np.min(self.codes, axis=0) >= 0)

    @cached_property
    def counts(self) -> Ranks:
        return np.asarray(self.groups["rows"].to_numpy(), dtype=np.int64)

    def histogram(self) -> Histogram:
        """Count the records of each cell."""
        cells = [codes[self.valid] for codes in self.codes]
        return Histogram(cells, self.counts[self.valid], _RawValues(self, cells))

    def without_cell(self) -> int:
        """Count the rows that have no cell."""
        return int(self.counts[~self.valid].sum())

    def coded(self, *more: str) -> ibis.Table:
        """Return some columns of the rows, then per quasi-identifier the code of each row."""
        return self.rows.select(*more, *(_code(i) for i in range(len(self.config.quasi_identifiers))))

    def problems(self) -> list[str]:
        """Describe, per column and kind, the rows that have no cell."""
        return [
            self._problem(i, attribute, code, hit)
            for i, attribute in enumerate(self.config.quasi_identifiers)
            for code in (NOT_A_NUMBER, OUTSIDE, UNKNOWN, MISSING)
            if (hit := self.codes[i] == code).any()
        ]

    def off_step(self) -> list[str]:
        """Describe, per column, the values between two multiples of the step."""
        notes = []
        for i, attribute in enumerate(self.config.quasi_identifiers):
            if isinstance(attribute.hierarchy, IntervalHierarchy) and _off(i) in self.groups.column_names:
                count = int(self.groups[_off(i)].to_numpy()[self.valid].sum())
                if count:
                    step = attribute.hierarchy.step
                    notes.append(
                        f"{self.table.name}: column {attribute.name!r}: {count:,} values are not on the step of {step}"
                        "; each counts as the multiple below it"
                    )
        return notes

    def recode(self, classes: Sequence[EquivalenceClass], class_of_cell: Ranks, *, order_by: str | None) -> ibis.Table:
        """Put the labels of each row's class in place of its values, and `*` where there is none.

        Rows that have no order of their own, and are given none, come out shuffled.
        """
        import ibis

        class_of_group = np.full(len(self.valid), -1, dtype=np.int64)
        class_of_group[self.valid] = class_of_cell
        codes = {_code(i): codes for i, codes in enumerate(self.codes)}
        labels = {}
        for i, attribute in enumerate(self.config.quasi_identifiers):
            names = [attribute.hierarchy.label(each.state[i], each.segment[i]) for each in classes]
            labels[_label(i)] = _dictionary(names, class_of_group)
        if (engine := _ordered_engine(self.table)) and order_by is None:
            found = look_up_cells(self.rows, codes, labels, engine)
            if found is not None:
                ordered = engine.named(found.select(self._published(found)))
                if keeps_order(ordered, engine):
                    return ordered
        joined = self.rows.inner_join(self.table.push({**codes, **labels}), list(codes))
        published = self._published(joined)
        order = ROW if self.table.numbered and order_by is None else order_by
        if order is None:
            # Whatever order the join left them in may follow the raw values: publish none.
            return joined.select(published).order_by(ibis.random())
        return joined.select([joined[order].name(_ORDER), *published]).order_by(_ORDER).drop(_ORDER)

    def _published(self, rows: ibis.Table) -> list[Any]:
        """The table's columns, with labels in place of the quasi-identifiers' values."""
        position = {attribute.name: i for i, attribute in enumerate(self.config.quasi_identifiers)}
        return [
            rows[_label(position[name])].name(name) if name in position else rows[name] for name in self.table.columns
        ]

    def _problem(self, i: int, attribute: QuasiIdentifier, code: int, hit: Any) -> str:
        count = int(self.counts[hit].sum())
        tree = attribute.hierarchy
        what = {
            MISSING: "a value is missing",
            NOT_A_NUMBER: "text where a number is needed; decimals are written with a point",
            UNKNOWN: "a value that the hierarchy does not list; case and blanks count",
            OUTSIDE: f"a value outside [{tree.low}, {tree.high})" if isinstance(tree, IntervalHierarchy) else "",
        }[code]
        place = ""
        if self.table.numbered:
            place = f" {self.table.place(int(self.groups['first'].to_numpy()[hit].min()))}:"
        rows = "1 such row" if count == 1 else f"{count:,} such rows"
        return f"{self.table.name}: column {attribute.name!r}:{place} {what} ({rows})"


class _RawValues:
    """Asks the engine for raw values when a tie has to be decided.

    Over all records the engine only counts. In local recoding every cell of k or more records has gone by the first tie
    (the finest state comes first and never ties), so the values of what remains are bounded by k times the number of
    cells, however long the table is.
    """

    def __init__(self, cells: Cells, codes: Sequence[Ranks]) -> None:
        self._cells, self._codes = cells, codes

    def count(self) -> Sequence[int]:
        rows, attributes = self._cells.rows, range(len(self._codes))
        valid = rows.filter([rows[_code(i)] >= 0 for i in attributes])
        counts = self._cells.table.fetch(valid.aggregate(**{_raw(i): valid[_raw(i)].nunique() for i in attributes}))
        return [int(counts[_raw(i)][0].as_py()) for i in attributes]

    def of(self, cells: Ranks) -> Sequence[tuple[Ranks, Ranks]]:
        attributes = range(len(self._codes))
        columns: dict[str, Any] = {_code(i): self._codes[i][cells] for i in attributes}
        remaining = self._cells.table.push(columns | {_CELL: cells})
        joined = self._cells.rows.inner_join(remaining, [_code(i) for i in attributes])
        found = self._cells.table.fetch(joined.select(_CELL, *(_raw(i) for i in attributes)).distinct())
        cell = found[_CELL].to_numpy()
        pairs = [np.unique(np.stack([cell, found[_raw(i)].to_numpy()], axis=1), axis=0) for i in attributes]
        return [(each[:, 0], each[:, 1]) for each in pairs]


def assign_cells(table: Table, config: Config, progress: Progress | None = None) -> Cells:
    """Assign every row to a cell, and count the rows of each."""
    for attribute in config.quasi_identifiers:
        table.require(attribute.name)
    rows = table.rows
    for i, attribute in enumerate(config.quasi_identifiers):
        if isinstance(attribute.hierarchy, CategoryHierarchy):
            rows = _with_category(rows, i, attribute, attribute.hierarchy, table)
        elif isinstance(attribute.hierarchy, IntervalHierarchy):
            rows = _with_interval(rows, i, attribute, attribute.hierarchy, table)
    if engine := _ordered_engine(table):
        rows = engine.named(rows)
    attributes = range(len(config.quasi_identifiers))
    aggregates: dict[str, Any] = {"rows": rows.count()}
    if table.numbered:
        aggregates |= {"first": rows[ROW].min(), "last": rows[ROW].max()}
    aggregates |= {_off(i): rows[_off(i)].sum() for i in attributes if _off(i) in rows.columns}
    groups = table.fetch(rows.group_by([_code(i) for i in attributes]).aggregate(**aggregates), progress)
    if not groups.num_rows:
        raise TableError(f"{table.name}: there are no rows, only a header")
    cells = Cells(table, config, rows, groups)
    if table.numbered:
        assert cells.counts.sum() == max(groups["last"].to_pylist()) + 1, "a join has lost or doubled rows"
    return cells


def _with_interval(
    rows: ibis.Table, i: int, attribute: QuasiIdentifier, tree: IntervalHierarchy, table: Table
) -> ibis.Table:
    import ibis

    column = rows[attribute.name]
    number, invalid = _as_number(column, table, attribute.name)
    whole = column.type().is_integer()
    # Whole numbers are compared as such, which is faster, with the next whole number above a threshold.
    compared, bounds = (column, [math.ceil(each) for each in tree.thresholds]) if whole else (number, tree.thresholds)
    inside = (compared >= bounds[0]) & (compared < bounds[-1])
    # Guarded by `inside`: a number far outside would not fit an integer.
    noise = float(tree.tolerance / tree.step)
    position = ibis.ifelse(inside, (number - float(tree.low)) / float(tree.step), 0.0)
    unit = (position + noise).floor().cast("int64")
    if attribute.finest_layer == 0:
        within = unit
    elif whole and len(widths := set(np.diff(bounds).tolist())) == 1:
        within = ((number - bounds[0]) / widths.pop()).floor().cast("int64")
    else:
        within = _leaf(compared, bounds[1:-1], 0)
    code = ibis.ifelse(compared.isnull(), invalid, ibis.ifelse(inside, within, OUTSIDE))
    found = rows.mutate(**{_code(i): code.cast("int64"), _raw(i): unit})
    if whole and not (tree.low % 1 or 1 % tree.step):
        return found
    return found.mutate(**{_off(i): ibis.ifelse(position - unit > noise, 1, 0)})


def _leaf(number: ir.NumericValue, cuts: Sequence[float], first: int) -> Any:
    """Find the leaf between cuts by halving."""
    import ibis

    if not cuts:
        return ibis.literal(first, "int64")
    middle = len(cuts) // 2
    return ibis.ifelse(
        number < cuts[middle],
        _leaf(number, cuts[:middle], first),
        _leaf(number, cuts[middle + 1 :], first + middle + 1),
    )


def _as_number(column: Any, table: Table, name: str) -> tuple[Any, Any]:
    """Return the column as floating-point numbers, NULL where it is none, and the code for such rows."""
    import ibis

    kind = column.type()
    if kind.is_string():
        text = column.strip().lower()
        # Not `isin`: DuckDB makes a join of it, which would lose the order of the rows.
        empty = ibis.or_(column.isnull(), *(text == each for each in MISSING_TEXTS))
        return table.engine.number(column), ibis.ifelse(empty, MISSING, NOT_A_NUMBER)
    if not kind.is_numeric():
        raise TableError(f"{table.name}: column {name!r} holds {kind}; an interval needs numbers")
    return table.engine.number(column), ibis.literal(MISSING)


def _with_category(
    rows: ibis.Table, i: int, attribute: QuasiIdentifier, tree: CategoryHierarchy, table: Table
) -> ibis.Table:
    import ibis

    key, values, absent = _category_key(rows[attribute.name], tree, table, attribute.name)
    nodes = tree.climb(np.arange(tree.values), 0, attribute.finest_layer)
    if engine := _ordered_engine(table):
        lists = {_raw(i): np.array([MISSING, *range(tree.values)]), _code(i): np.array([UNKNOWN, *nodes])}
        found = look_up(rows.mutate(**{_ABSENT: absent}), place_among(values, key, engine), lists, engine)
        missing = found[_ABSENT] & (found[_code(i)] == UNKNOWN)
        return found.mutate(**{_code(i): ibis.ifelse(missing, MISSING, found[_code(i)])}).drop(_ABSENT)
    lookup = table.push({_VALUE: values, _raw(i): np.arange(tree.values), _code(i): nodes})
    joined = rows.mutate(**{_KEY: key, _ABSENT: absent}).left_join(lookup, [(_KEY, _VALUE)])
    found = joined.select(*rows.columns, _ABSENT, _code(i), _raw(i))
    code = found[_code(i)].fill_null(ibis.ifelse(found[_ABSENT], MISSING, UNKNOWN))
    return found.mutate(**{_code(i): code, _raw(i): found[_raw(i)].fill_null(MISSING)}).drop(_ABSENT)


def _ordered_engine(table: Table) -> DuckDBEngine | None:
    """Return the embedded engine if it has the rows, and they have an order to keep."""
    return table.engine if table.numbered and isinstance(table.engine, DuckDBEngine) else None


def _category_key(column: Any, tree: CategoryHierarchy, table: Table, name: str) -> tuple[Any, list[Any], Any]:
    """How a column's values are compared with those of a hierarchy: both as one type, and what counts as missing."""
    kind, values = column.type(), tree.domain
    numbers = [parse_number(value) for value in values] if kind.is_numeric() else []
    plain = kind.is_integer() and all(str(number) == value for number, value in zip(numbers, values, strict=False))
    if numbers and None not in numbers and not plain:
        floats = [float(number) for number in numbers if number is not None]
        if len(set(floats)) < len(floats):
            twice = "its hierarchy lists the same number twice (as 1 and 1.0)"
            raise TableError(f"{table.name}: column {name!r} holds numbers, but {twice}")
        number = table.engine.number(column)
        return number, floats, number.isnull()
    days = kind.is_timestamp() and all(len(value) == len("2024-03-17") for value in values)
    text = (column.cast("date") if days else column).cast("string")
    return text, list(values), text.isnull() | (text.strip() == "")


def _dictionary(labels: list[str], choice: Ranks) -> pa.Array:
    """Labels by index, `*` for -1, as a dictionary-encoded column."""
    import pyarrow as pa

    names = list(dict.fromkeys([*labels, ROOT_LABEL]))
    index = {name: n for n, name in enumerate(names)}
    table = np.array([index[label] for label in labels] + [index[ROOT_LABEL]], dtype=np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(table[choice]), pa.array(names))


def _named(kind: str) -> Callable[[int], str]:
    return lambda i: f"{PREFIX}_{kind}_{i}"


_code, _raw, _off, _label = map(_named, ("code", "raw", "off", "label"))
