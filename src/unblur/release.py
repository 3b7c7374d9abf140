"""What is published: classes, outliers, and the config that says how they came about."""

from __future__ import annotations

from dataclasses import dataclass, field

from unblur.config import Config
from unblur.lattice import Segment, State


@dataclass(frozen=True, slots=True)
class EquivalenceClass:
    """Records published with the same node in every attribute."""

    state: State
    segment: Segment
    size: int
    """How many records the release shows here."""


@dataclass(frozen=True, repr=False)
class Release:
    """A locally or globally recoded table, as anyone may see it."""

    config: Config
    classes: tuple[EquivalenceClass, ...]
    """In the order in which they were made."""
    outliers: int
    """How many records are suppressed."""
    sha256: str | None = field(default=None, kw_only=True)
    """The hash of the file that was read."""

    def __repr__(self) -> str:
        classes = f"{len(self.classes):,} classes, {self.outliers:,} suppressed"
        return f"<release of {self.rows:,} rows: k = {self.config.k}, {classes}>"

    @property
    def rows(self) -> int:
        """How many records the release has."""
        return sum(each.size for each in self.classes) + self.outliers

    def labels(self, each: EquivalenceClass) -> tuple[str, ...]:
        """Name a class as the published rows name it."""
        return tuple(
            attribute.hierarchy.label(layer, rank)
            for attribute, layer, rank in zip(self.config.quasi_identifiers, each.state, each.segment, strict=True)
        )
