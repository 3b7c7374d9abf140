"""What there is to say about one class, or about the outliers: cells, earlier classes, parts of labels, and odds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from unblur.counting.numbers import Count
from unblur.counting.problem import Records
from unblur.lattice import State

Chance = Fraction | float
"""A probability: exact, unless there are so many records that the fraction would have too many digits."""
Verdict = Literal["impossible", "certain", "possible"]


@dataclass(frozen=True)
class Odds:
    """How many records a region may hold."""

    nobody: Chance
    one: Chance
    more: Chance
    expected: Fraction
    least: int
    """So many are there in every placement."""


@dataclass(frozen=True)
class Entry:
    """A cell, or a block of cells in a class of many."""

    labels: Mapping[str, str]
    cells: int
    free: int
    """How many of its cells no earlier class has taken."""
    taken_by: tuple[int, ...]
    """The ids of the earlier classes that have taken all of it, or a part."""
    odds: Odds

    @property
    def verdict(self) -> Verdict:
        """Whether nobody can be here, somebody surely is, or neither."""
        if not self.odds.expected:
            return "impossible"
        return "certain" if self.odds.least else "possible"


@dataclass(frozen=True)
class Taker:
    """An earlier class that overlaps this one: it took all records that were in its cells."""

    id: int
    labels: Mapping[str, str]
    size: int
    cells: int
    """How many of this class's cells it covers; several takers may cover the same."""


@dataclass(frozen=True)
class Child:
    """One part of a generalized label, and how many of the class's records it may hold."""

    label: str
    least: int
    most: int
    expected: Fraction | None
    """None if it was not counted; then least and most are what the rule alone says."""


@dataclass(frozen=True)
class Split:
    """A generalized attribute with its children."""

    attribute: str
    bounded: bool
    """Whether none of them can hold as many records as the bound; if not, only what is free limits them."""
    children: tuple[Child, ...]


@dataclass(frozen=True)
class Explanation:
    """What a release says about one class, or about the outliers."""

    id: int | None
    """Counted from 1; None for the outliers."""
    labels: Mapping[str, str]
    state: State
    size: int
    k: int
    records: Records
    values: int
    """Raw values under the label."""
    all_cells: int
    free_cells: int
    published: Count
    """Raw data sets that the label alone leaves open."""
    plausible: Count
    """Raw data sets that remain."""
    bound: int | None
    """The number of records that no child reaches; None if nothing is known."""
    takers: tuple[Taker, ...]
    children: tuple[Split, ...]
    """Of each generalized attribute, but for those whose constraint was left out while that of others was not."""
    cells: tuple[Entry, ...] | None
    """The certain ones first, then the likeliest; None if they were not counted, being too many or none fitting."""
    by_block: bool
    """Whether the entries are blocks."""
    singling_out: Fraction | None
    """The probability that at least one cell holds exactly one record; None if it was not counted."""
    raw_numbers: tuple[str, ...]
    """Attributes whose cells are single numbers: to be alone in such a cell says little, so it is not counted."""
    dropped: tuple[str, ...]
    """Attributes whose constraint was left out."""

    @property
    def fits(self) -> bool:
        """Whether the release can have been made as assumed."""
        return bool(self.plausible)

    @property
    def upper_bound(self) -> bool:
        """Whether even fewer data sets may remain."""
        return bool(self.dropped)

    @property
    def ratio(self) -> Fraction | None:
        """How many times fewer data sets remain; None if none does, or the numbers are too long."""
        if not self.fits or self.published.exact is None or self.plausible.exact is None:
            return None
        return Fraction(self.published.exact, self.plausible.exact)

    @property
    def bits(self) -> float | None:
        """The same in bits: each bit halves what remains."""
        return self.published.log2 - self.plausible.log2 if self.fits else None
