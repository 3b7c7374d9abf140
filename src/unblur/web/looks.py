"""What the columns of a table look like, and which of them are likely quasi-identifiers. All of it is a proposal."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal

from unblur.building.masks import is_mask
from unblur.building.profiling import ISO_DATE
from unblur.labels import ROOT_LABEL, parse_interval, parse_number
from unblur.tables import ROW, Table

Kind = Literal["intervals", "masks", "numbers", "dates", "codes", "words", "texts", "empty"]
MOST_LOOKED_AT = 2_000
"""So many different values decide what a column looks like."""
FEW_WORDS = 60
"""A column of more different words is text."""
SAMPLES = 6
LIKELY_NAMES = re.compile(
    r"\b(sex|gender|race|ethnic\w*|religion|nationality|citizenship|marital|education|occupation|profession|country"
    r"|region|state|county|city|place|birth\w*|geschlecht|beruf|ort|land)\b"
)
CODE_NAMES = re.compile(r"(zip|postal|postcode|plz|icd|code)")


@dataclass(frozen=True)
class Look:
    """What one column looks like."""

    name: str
    kind: Kind
    distinct: int
    """How many different values it has, the root label not counted."""
    starred: bool
    """Whether some of them are suppressed."""
    unique: bool
    """Whether no two rows have the same."""
    samples: tuple[str, ...] = ()
    """Its most frequent labels; none of a raw table."""

    @property
    def generalized(self) -> bool:
        """Whether it shows that somebody has generalized it."""
        return self.kind in ("intervals", "masks") or self.starred

    @property
    def likely(self) -> bool:
        """Whether a raw column is likely to be known to others."""
        if self.distinct < 2 or (self.unique and self.kind not in ("numbers", "dates")):
            return False
        words = LIKELY_NAMES.search(re.sub(r"[_\-.]", " ", self.name.lower()))
        return self.kind in ("numbers", "dates", "codes") or bool(words and self.kind == "words")


@dataclass(frozen=True)
class Profile:
    """What is known of a table before anybody describes it."""

    rows: int
    looks: tuple[Look, ...]
    smallest: int | None = None
    """The size of its smallest group, by the columns that look generalized."""
    notes: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    """What a project of ARX tells of itself; empty for a table."""
    shared: tuple[str, ...] = ()
    """The columns that a raw table beside it has, too."""

    @property
    def is_project(self) -> bool:
        return bool(self.facts)

    @classmethod
    def of(cls, entry: dict[str, Any]) -> Profile:
        """Read back what a job has written."""
        looks = tuple(Look(**{**each, "samples": tuple(each["samples"])}) for each in entry["looks"])
        facts = tuple((name, value) for name, value in entry["facts"])
        return cls(entry["rows"], looks, entry["smallest"], tuple(entry["notes"]), facts, tuple(entry["shared"]))


def look_at(table: Table, *, samples: bool) -> tuple[int, tuple[Look, ...]]:
    """Count the rows of a table and look at its columns; a raw table gives no samples."""
    rows = table.rows
    counts = {f"n{i}": rows[name].cast("string").nunique() for i, name in enumerate(table.columns)}
    found = table.fetch(rows.aggregate(rows=rows.count(), **counts)).to_pylist()[0]
    looks = [
        _look(table, name, distinct=found[f"n{i}"], rows=found["rows"], samples=samples)
        for i, name in enumerate(table.columns)
    ]
    return found["rows"], tuple(looks)


def _look(table: Table, name: str, *, distinct: int, rows: int, samples: bool) -> Look:
    import ibis

    text = table.rows[name].cast("string")
    groups = table.rows.group_by(value=text).aggregate(n=table.rows.count())
    most = groups.order_by([ibis.desc("n"), "value"]).limit(MOST_LOOKED_AT)
    values = [each["value"] for each in table.fetch(most).to_pylist()]
    known = [value for value in values if value is not None and value.strip(f"{ROOT_LABEL} ")]
    starred = any(value is not None and value.strip() == ROOT_LABEL for value in values)
    return Look(
        name,
        kind_of(name, known, distinct),
        distinct - starred,
        starred,
        unique=rows > 1 and distinct == rows,
        samples=tuple(known[:SAMPLES]) if samples else (),
    )


def kind_of(name: str, values: Collection[str], distinct: int) -> Kind:
    """Tell what the values of a column look like.

    >>> kind_of("age", ["[0, 20[", "[20, 40["], 2), kind_of("zip", ["819**"], 1), kind_of("age", ["7", "8.5"], 2)
    ('intervals', 'masks', 'numbers')
    >>> kind_of("zip", ["81929", "80331"], 2), kind_of("seen", ["2024-02-29"], 1), kind_of("sex", ["f", "m"], 2)
    ('codes', 'dates', 'words')
    """
    if not values:
        return "empty"
    numbers = [parse_number(value) is not None for value in values]
    if all(re.search(ISO_DATE, value) for value in values):
        return "dates"
    if all(numbers):
        lengths = {len(value) for value in values}
        zeros = any(re.fullmatch(r"0\d+", value) for value in values)
        coded = bool(CODE_NAMES.search(name.lower())) and all(value.isdigit() for value in values)
        return "codes" if len(lengths) == 1 and (zeros or coded) else "numbers"
    intervals = [parse_interval(value) is not None for value in values]
    if all(a or b for a, b in zip(intervals, numbers, strict=True)):
        return "intervals"
    if any(map(is_mask, values)):
        return "masks"
    if distinct <= FEW_WORDS:
        return "words"
    same_length = len({len(value) for value in values}) == 1
    return "codes" if same_length and not any(" " in value for value in values) else "texts"


def smallest_group(table: Table, names: Collection[str]) -> int | None:
    """The size of the smallest group of equal labels, the suppressed rows left out."""
    if not names:
        return None
    rows = table.rows.select(**{f"c{i}": table.rows[name].cast("string") for i, name in enumerate(names)})
    groups = rows.group_by(*rows.columns).aggregate(n=rows.count())
    starred = [groups[column].strip() == ROOT_LABEL for column in rows.columns]
    whole = starred[0]
    for each in starred[1:]:
        whole = whole & each
    found = table.fetch(groups.filter(~whole.fill_null(False)).aggregate(least=groups.n.min())).to_pylist()
    least: int | None = found[0]["least"]
    return least


def write_copy(table: Table, path: str) -> None:
    """Write the rows, in their order, as a Parquet file of our own making."""
    from unblur.workspace import sql_name, sql_text

    columns = ", ".join(map(sql_name, table.columns))
    query = f"SELECT {columns} FROM unblur_table ORDER BY {sql_name(ROW)}"
    table.workspace.duckdb.raw_sql(f"COPY ({query}) TO {sql_text(path)} (FORMAT parquet)")
