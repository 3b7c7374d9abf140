"""Hierarchies of dates: days, under months, quarters, years or decades.

Every day of every year from the first to the last is listed, whether it occurs or not: a list of the days that occur
would be a list of facts about people.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta

from unblur.building.drafts import Draft, draft
from unblur.building.profiling import Column, profile_dates
from unblur.errors import HierarchyError
from unblur.hierarchy import CategoryHierarchy, from_rows
from unblur.labels import ROOT_LABEL

PERIODS: Mapping[str, Callable[[date], str]] = {
    "day": date.isoformat,
    "month": lambda day: f"{day.year:04}-{day.month:02}",
    "quarter": lambda day: f"{day.year:04}-Q{(day.month + 2) // 3}",
    "year": lambda day: f"{day.year:04}",
    "decade": lambda day: f"{day.year // 10:03}0s",
}
"""The label of a day's period, from the finest period to the coarsest."""

MOST_YEARS = 300
"""How many years a hierarchy of days may span."""


def build_dates(
    column: Column, periods: Sequence[str], *, first_year: int | None = None, last_year: int | None = None
) -> Draft:
    """Make a hierarchy of all days of whole years; without `day` among the periods no single day is published."""
    check_periods(periods)
    found = profile_dates(column)
    first = found.first.year if first_year is None else first_year
    last = found.last.year if last_year is None else last_year
    notes = [
        f"the {which} year comes from the data; --{option} sets one of your own"
        for which, option, given in (("first", "low", first_year), ("last", "high", last_year))
        if given is None
    ]
    tree = calendar(first, last, periods)
    return draft(column, tree, finest_layer=0 if "day" in periods else 1, notes=notes)


def calendar(first_year: int, last_year: int, periods: Sequence[str]) -> CategoryHierarchy:
    """List all days of some years under their periods.

    >>> days = calendar(2024, 2024, ["month", "year"])
    >>> days.values, days.label(0, 76), days.label(1, 2), days.label(2, 0), days.label(3, 0)
    (366, '2024-03-17', '2024-03', '2024', '*')
    """
    years = last_year - first_year + 1
    if years < 1:
        raise HierarchyError("the first year must not be after the last")
    if years > MOST_YEARS:
        raise HierarchyError(
            f"the dates span {years:,} years, but {MOST_YEARS} are accepted; if some are mistyped, "
            "--low and --high set the years"
        )
    labels = [PERIODS[period] for period in periods if period != "day"]
    return from_rows(
        [[day.isoformat(), *(label(day) for label in labels), ROOT_LABEL] for day in _days(first_year, last_year)]
    )


def check_periods(periods: Sequence[str]) -> None:
    """Refuse periods that are unknown, repeated or not in ascending order."""
    accepted = f"accepted are some of {','.join(PERIODS)}, in this order"
    if unknown := [period for period in periods if period not in PERIODS]:
        raise HierarchyError(f"unknown period {unknown[0]!r}; {accepted}")
    order = list(PERIODS)
    ranks = [order.index(period) for period in periods]
    if not ranks or ranks != sorted(set(ranks)):
        raise HierarchyError(f"periods must rise from fine to coarse, each once; {accepted}")


def _days(first_year: int, last_year: int) -> Iterator[date]:
    start = date(first_year, 1, 1)
    count = (date(last_year, 12, 31) - start).days + 1
    return (start + timedelta(days=n) for n in range(count))
