"""What is published: classes, outliers, and the config that says how they came about."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from unblur.config import Config
from unblur.errors import ConfigError
from unblur.lattice import Segment, State

if TYPE_CHECKING:
    from unblur.tables import Table
    from unblur.workspace import Workspace


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

    def __repr__(self) -> str:
        classes = f"{len(self.classes):,} classes, {self.outliers:,} suppressed"
        return f"<release of {self.rows:,} rows: k = {self.config.k}, {classes}>"

    @property
    def rows(self) -> int:
        """How many records the release has."""
        return sum(each.size for each in self.classes) + self.outliers

    @property
    def made_rows(self) -> int:
        """How many records it had when it was made: suppressed ones may have been left out since."""
        return max(self.rows, self.config.made_rows or 0)

    @property
    def left_out(self) -> int:
        """How many of them are not among these rows."""
        return self.made_rows - self.rows

    @property
    def sha256(self) -> str | None:
        """The hash of the file that was read; None if there was none."""
        return None

    @property
    def paths(self) -> list[Path]:
        """The files that this was read from."""
        return self.config.paths

    def finish(self) -> None:
        """Wait for what is still found out about it, beside what else is done."""

    def open_rows(self, workspace: Workspace) -> Table:
        """Open the published rows, if they are at hand."""
        raise ConfigError("only the classes of this release are known; unblur.read_release gives one with its rows")

    def bare(self) -> Release:
        """The release and nothing else: no rows, no connections."""
        return Release(self.config, self.classes, self.outliers)

    def labels(self, each: EquivalenceClass) -> tuple[str, ...]:
        """Name a class as the published rows name it."""
        return tuple(
            attribute.hierarchy.label(layer, rank)
            for attribute, layer, rank in zip(self.config.quasi_identifiers, each.state, each.segment, strict=True)
        )
