"""Tables of results: the same rows as CSV for programs, as Markdown, and as text for a page."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Literal

Kind = Literal["text", "whole", "number", "share", "times", "seconds"]
Value = str | int | float | Decimal | None
MISSING = "–"


@dataclass(frozen=True)
class Column:
    """A column: its name in files, its title for people, and how its numbers are written."""

    name: str
    title: str
    kind: Kind = "text"
    paper: bool = False
    """Whether these are the paper's own numbers."""


@dataclass(frozen=True)
class Sheet:
    """A table of results."""

    name: str
    """Of its files."""
    title: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    notes: tuple[str, ...] = ()
    at_least: frozenset[tuple[int, str]] = frozenset()
    """Row numbers and columns of numbers that are lower bounds."""
    estimates: Mapping[tuple[int, str], str] = field(default_factory=dict)
    """Row numbers and columns of numbers that are estimates, with the words that say so."""

    @cached_property
    def shown(self) -> list[list[str]]:
        """The rows as people read them."""
        return [
            [self._marked(number, column, show(value, column.kind)) for value, column in self._pairs(row)]
            for number, row in enumerate(self.rows)
        ]

    def _marked(self, number: int, column: Column, text: str) -> str:
        place = (number, column.name)
        how = self.estimates.get(place)
        return ("≥ " if place in self.at_least else "") + text + (f" ({how})" if how else "")

    def to_csv(self) -> str:
        """Write all digits, for programs."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(column.name for column in self.columns)
        writer.writerows(["" if value is None else value for value in row] for row in self.rows)
        return text.getvalue()

    def to_markdown(self) -> str:
        """Write it as people read it."""
        lines = [f"## {self.title}", "", self.caption, ""]
        lines.append(_line([column.title for column in self.columns]))
        lines.append(_line(["---" if column.kind == "text" else "---:" for column in self.columns]))
        lines += [_line(row) for row in self.shown]
        lines += [f"\n*{note}*" for note in self.notes]
        return "\n".join(lines) + "\n"

    def as_dicts(self) -> list[Mapping[str, Value]]:
        """The rows by the names of columns, for charts."""
        return [{column.name: value for value, column in self._pairs(row)} for row in self.rows]

    def _pairs(self, row: Sequence[Value]) -> zip[tuple[Value, Column]]:
        return zip(row, self.columns, strict=True)


def show(value: Value, kind: Kind) -> str:
    """Write a value for people.

    >>> show(1234.5, "times"), show(3.2e17, "number"), show(0.256, "share"), show(1e-4, "seconds"), show(None, "share")
    ('1,234.5', '3.2·10¹⁷', '25.6%', '0.1 ms', '–')
    """
    if value is None:
        return MISSING
    if isinstance(value, str):
        return value
    if kind == "whole":
        return f"{value:,.0f}"
    if kind == "share":
        return f"{value:.1%}"
    if kind == "seconds":
        return _seconds(value)
    return _number(Decimal(value))


def _number(value: Decimal) -> str:
    if value >= 10**7:
        lead, exponent = f"{value:.1e}".split("e+")
        return f"{lead}·10{exponent.translate(_RAISED)}"
    if value == int(value) and abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:,.1f}" if value >= 100 else f"{value:.2f}"


def _seconds(value: float | Decimal) -> str:
    if value < 1:
        return f"{value * 1000:.2g} ms" if value < 0.0995 else f"{value * 1000:.0f} ms"
    return f"{value:,.1f} s" if value < 100 else f"{value:,.0f} s"


_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
