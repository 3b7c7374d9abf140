"""The numbers that the paper printed, as printed, and notes on those that are odd."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

TABLES: Mapping[int, tuple[str, ...]] = {
    2: ("classes_lr", "classes_cra", "classes_ratio"),
    3: ("outliers_lr", "outliers_cra", "outliers_ratio"),
    4: ("singled_none", "singled_one", "singled_more"),
    5: ("combinations",),
    6: ("class_seconds",),
    7: ("outliers_seconds",),
}
"""The quantities of each table. `lr` counts what label and size leave possible, `cra` what the attack leaves."""
QUANTITIES = tuple(quantity for quantities in TABLES.values() for quantity in quantities)
KS = range(3, 8)

Place = tuple[str, int, int]
"""Data set, number of attributes, k."""


@dataclass(frozen=True)
class Said:
    """A number in the paper's text."""

    id: str
    figure: str
    """The figure it describes, or the section it stands in."""
    value: float
    unit: str
    about: str
    data_set: str | None = None
    """None if it holds for both."""
    attributes: int | None = None
    """None if the paper does not say, or it does not matter."""
    k: int | None = None


@dataclass(frozen=True)
class Quirk:
    """Something odd in the paper's print; None where it is not about one data set, number of attributes or k."""

    where: str
    note: str
    quantity: str | None = None
    data_set: str | None = None
    attributes: int | None = None
    k: int | None = None

    def touches(self, quantity: str, data_set: str, attributes: int, k: int) -> bool:
        """Tell whether a printed number is among those meant."""
        if self.quantity != quantity:
            return False
        named = ((self.data_set, data_set), (self.attributes, attributes), (self.k, k))
        return all(mine is None or mine == other for mine, other in named)


def published(quantity: str, data_set: str, attributes: int, k: int) -> float | None:
    """Look up a number of Tables 2 to 7; None where the paper has none. Shares are in percent, times in seconds.

    >>> published("classes_ratio", "hcup", 4, 7)
    10186.81
    >>> published("classes_ratio", "hcup", 4, 8)
    """
    if quantity not in QUANTITIES:
        raise KeyError(quantity)
    return _rows().get((data_set, attributes, k), {}).get(quantity)


def said(id: str) -> Said:
    """Look up a number of the text."""
    return _said()[id]


def quirks(quantity: str, data_set: str, attributes: int, k: int) -> tuple[Quirk, ...]:
    """List what is odd about a printed number."""
    return tuple(each for each in all_quirks() if each.touches(quantity, data_set, attributes, k))


@cache
def all_quirks() -> tuple[Quirk, ...]:
    """List all oddities."""
    return tuple(Quirk(**entry) for entry in tomllib.loads(_read("published.toml"))["quirk"])


@cache
def _said() -> Mapping[str, Said]:
    return {entry["id"]: Said(**entry) for entry in tomllib.loads(_read("published.toml"))["said"]}


@cache
def _rows() -> Mapping[Place, Mapping[str, float]]:
    rows = csv.DictReader(_read("published.csv").splitlines())
    return {
        (row["data_set"], int(row["attributes"]), int(row["k"])): {name: float(row[name]) for name in QUANTITIES}
        for row in rows
    }


def _read(name: str) -> str:
    return files("unblur.paper").joinpath(name).read_text(encoding="utf-8")
