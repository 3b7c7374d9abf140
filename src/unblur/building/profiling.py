"""Profiles: what a builder of hierarchies needs to know about one column, found by the engine that has its rows.

Only aggregates leave the engine: bounds, counts, and, where a hierarchy must list them, distinct values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Never

from unblur.cells import MISSING_TEXTS
from unblur.errors import TableError
from unblur.hierarchy import rounding_noise
from unblur.labels import ROOT_LABEL
from unblur.tables import ROW, Table

MOST_DISTINCT = 200_000
"""How many distinct values of a column are brought to Python."""

MOST_PLACES = 9
"""How many decimal places a step that is found in the data may have."""

_MONTH_AND_DAY = (
    "((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
)
_LEAP_YEAR = "([0-9][0-9](0[48]|[2468][048]|[13579][26])|([02468][48]|[13579][26]|[2468]0)00)"
ISO_DATE = f"^(([0-9]{{3}}[1-9]|[0-9]{{2}}[1-9]0|[0-9][1-9]00|[1-9]000)-{_MONTH_AND_DAY}|{_LEAP_YEAR}-02-29)$"
"""A regular expression for the dates of the Gregorian calendar, years 1 to 9999."""


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    table: Table
    name: str

    def __post_init__(self) -> None:
        self.table.require(self.name)

    @property
    def where(self) -> str:
        """The place, for messages."""
        return f"{self.table.name}: column {self.name!r}"

    @property
    def values(self) -> Any:
        """The values, as an Ibis expression."""
        return self.table.rows[self.name]

    def aggregate(self, **expressions: Any) -> Mapping[str, Any]:
        """Let the engine compute one number or value per expression."""
        rows = self.table.rows
        result: Mapping[str, Any] = self.table.fetch(rows.aggregate(**expressions)).to_pylist()[0]
        return result

    def tally(self, **conditions: Any) -> dict[str, Tally]:
        """Count the rows that meet each condition, and find the first of them."""
        expressions = {}
        for name, condition in conditions.items():
            expressions[f"{name}_count"] = condition.fill_null(False).cast("int64").sum().cast("int64")
            if self.table.numbered:
                expressions[f"{name}_first"] = self.table.rows[ROW].min(where=condition.fill_null(False))
        found = self.aggregate(**expressions)
        return {name: Tally(found[f"{name}_count"] or 0, found.get(f"{name}_first")) for name in conditions}

    def refuse(self, tally: Tally, problem: str) -> None:
        """Raise an error that says how many rows have a problem, if any has."""
        if tally.count:
            place = "" if tally.first is None else f" {self.table.place(tally.first)}:"
            rows = "1 such row" if tally.count == 1 else f"{tally.count:,} such rows"
            raise TableError(f"{self.where}:{place} {problem} ({rows})")

    def refuse_type(self, needed: str) -> Never:
        """Raise an error about a column of the wrong type, or of none: all values are missing."""
        kind = self.values.type()
        if kind.is_null() or kind.is_unknown():
            raise TableError(f"{self.where}: the column is empty; {needed}")
        raise TableError(f"{self.where} holds {kind}; {needed}")

    def distinct(self, expression: Any) -> list[dict[str, Any]]:
        """List the distinct values of an expression with their numbers of rows, and first row if rows are numbered."""
        rows = self.table.rows.mutate(__unblur_value=expression)
        counts = {"count": rows.count()} | ({"first": rows[ROW].min()} if self.table.numbered else {})
        groups = rows.group_by(value=rows["__unblur_value"]).aggregate(**counts).limit(MOST_DISTINCT + 1)
        found: list[dict[str, Any]] = self.table.fetch(groups).to_pylist()
        if len(found) > MOST_DISTINCT:
            raise TableError(f"{self.where}: more than {MOST_DISTINCT:,} different values; too many to list")
        return sorted((each for each in found if each["value"] is not None), key=lambda each: str(each["value"]))


@dataclass(frozen=True)
class Tally:
    """How many rows meet a condition, and the number of the first, from 0; None if there is none."""

    count: int
    first: int | None


@dataclass(frozen=True)
class Numbers:
    """The numbers of a column: their exact bounds, and the resolution they are given with."""

    column: Column
    least: Decimal
    greatest: Decimal
    step: Decimal

    @property
    def slack(self) -> Decimal:
        """How far below a multiple of the step a number still counts as that multiple: see `hierarchy`."""
        return rounding_noise([self.least, self.greatest])

    def floor(self, value: Decimal, grain: Decimal) -> Decimal:
        """Round down to a multiple of `grain`."""
        return ((value + self.slack) / grain).to_integral_value("ROUND_FLOOR") * grain

    @property
    def end(self) -> Decimal:
        """The least multiple of the step above all numbers."""
        return self.floor(self.greatest, self.step) + self.step


def profile_numbers(column: Column, *, step: Decimal | None = None) -> Numbers:
    """Find the bounds of a column of numbers and, unless `step` is given, the decimal place that all of them are on."""
    number = number_expression(column)
    finite = number.notnull() & ~number.isinf()
    missing = _no_number(column, number)
    tallies = column.tally(number=finite, other=~(finite | missing))
    text = column.values.type().is_string()
    column.refuse(tallies["other"], "no number (decimals are written with a point)" if text else "an infinite number")
    if not tallies["number"].count:
        raise TableError(f"{column.where}: the column is empty; numbers are needed")
    found = column.aggregate(least=number.min(where=finite), greatest=number.max(where=finite))
    least, greatest = (Decimal(repr(float(found[end]))) for end in ("least", "greatest"))
    if step is None:
        step = _resolution(column, number, finite, max(abs(least), abs(greatest)))
        least, greatest = (round(end / step) * step for end in (least, greatest))
    return Numbers(column, least, greatest, step)


def number_expression(column: Column) -> Any:
    """Read the column as floating-point numbers, NULL where it has none."""
    kind = column.values.type()
    if not (kind.is_numeric() or kind.is_string()):
        column.refuse_type("numbers are needed")
    return column.table.engine.number(column.values)


def _no_number(column: Column, number: Any) -> Any:
    if column.values.type().is_string():
        return column.values.isnull() | column.values.strip().lower().isin(MISSING_TEXTS)
    return number.isnull()


def _resolution(column: Column, number: Any, finite: Any, largest: Decimal) -> Decimal:
    """The first decimal place that every number is on, but for noise in the last bits of a floating-point number."""
    places = [place for place in range(MOST_PLACES + 1) if largest * 10**place < 2**53]
    if not places:
        raise TableError(
            f"{column.where}: numbers of more than 15 digits; are they codes? those can be masked (--mask)"
        )
    scaled = {place: number * 10.0**place for place in places}
    found = column.aggregate(
        **{f"p{place}": (by - by.round()).abs().max(where=finite).cast("float64") for place, by in scaled.items()}
    )
    for place in places:
        if Decimal(found[f"p{place}"]) <= rounding_noise([largest * 10**place]):
            return Decimal(1).scaleb(-place)
    problem = f"numbers of more than {max(places)} decimal places"
    raise TableError(f"{column.where}: {problem}; say with --step how finely to tell them apart")


@dataclass(frozen=True)
class Dates:
    """The dates of a column."""

    column: Column
    first: date
    last: date


def profile_dates(column: Column) -> Dates:
    """Find the first and last day of a column of dates, timestamps, or texts such as 2024-03-17."""
    values, kind = column.values, column.values.type()
    if kind.is_string():
        missing = values.isnull() | (values.strip() == "")
        tally = column.tally(other=~(missing | values.re_search(ISO_DATE)))
        column.refuse(tally["other"], "a text that is no date of the form YYYY-MM-DD")
        found = column.aggregate(first=values.min(where=~missing), last=values.max(where=~missing))
    elif kind.is_date() or kind.is_timestamp():
        days = values.cast("date")
        found = column.aggregate(first=days.min().cast("string"), last=days.max().cast("string"))
    else:
        column.refuse_type("dates, or texts of the form YYYY-MM-DD, are needed")
    if not found["first"]:
        raise TableError(f"{column.where}: the column is empty; dates are needed")
    first, last = (date.fromisoformat(found[end]) for end in ("first", "last"))
    return Dates(column, first, last)


@dataclass(frozen=True)
class Codes:
    """The distinct codes of a column, in order."""

    column: Column
    codes: tuple[str, ...]


def profile_codes(column: Column) -> Codes:
    """List the distinct codes of a column of texts or whole numbers."""
    kind = column.values.type()
    if not (kind.is_string() or kind.is_integer()):
        column.refuse_type("codes are texts or whole numbers")
    text = column.values.cast("string")
    column.refuse(
        column.tally(masked=text.contains(ROOT_LABEL))["masked"],
        f"a code with a {ROOT_LABEL} in it, which stands for a masked character",
    )
    codes = tuple(each["value"] for each in column.distinct(text) if each["value"].strip())
    if not codes:
        raise TableError(f"{column.where}: the column is empty; codes are needed")
    return Codes(column, codes)
