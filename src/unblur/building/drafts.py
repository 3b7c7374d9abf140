"""Drafts: a hierarchy proposed for one column, ready to become a few lines of a config or a hierarchy file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import tomli_w

from unblur.arx.hierarchy_csv import write_hierarchy
from unblur.building.profiling import Column
from unblur.cells import assign_cells
from unblur.config import Config, QuasiIdentifier
from unblur.errors import ConfigError, HierarchyError, OutputError
from unblur.hierarchy import Hierarchy, IntervalHierarchy, from_cuts
from unblur.output import Outputs, check_target


@dataclass(frozen=True)
class Draft:
    """A hierarchy for a column, with what its user should know before relying on it.

    >>> age = from_cuts([Decimal(c) for c in (0, 18, 40, 65)], fanouts=[2])
    >>> print(Draft("age", age, finest_layer=1).to_toml())
    [[quasi_identifiers]]
    name = "age"
    interval = { cuts = [0, 18, 40, 65], fanouts = [2], step = 1 }
    <BLANKLINE>
    """

    column: str
    hierarchy: Hierarchy
    finest_layer: int
    notes: tuple[str, ...] = ()

    @property
    def interval(self) -> str | None:
        """The hierarchy as an `interval` entry of a config; None if only a file can hold it."""
        return interval_entry(self.hierarchy)

    def to_toml(self, file: Path | None = None) -> str:
        """Write the lines of a config; with `file`, they refer to that hierarchy file."""
        lines = ["[[quasi_identifiers]]", _pair("name", self.column)]
        if file is None:
            if self.interval is None:
                raise ConfigError(f"column {self.column!r}: this hierarchy needs a file of its own: add --out FILE.csv")
            lines.append(f"interval = {self.interval}")
        else:
            lines.append(_pair("hierarchy", file.as_posix()))
            if isinstance(self.hierarchy, IntervalHierarchy):
                lines.append(f"step = {toml_number(self.hierarchy.step)}")
        if self.finest_layer != (1 if file is None else 0):
            lines.append(f"finest_layer = {self.finest_layer}")
        return "\n".join(lines) + "\n"

    def save(self, target: Path) -> None:
        """Write the hierarchy: `.csv` as ARX reads it, `.toml` as lines of a config."""
        with Outputs() as outputs:
            if target.suffix.lower() == ".toml":
                outputs.write_text(target, self.to_toml())
                return
            try:
                write_hierarchy(self.hierarchy, outputs.temporary(target))
            except OSError as error:
                raise OutputError(f"{target}: {error.strerror or error}") from error


def draft(column: Column, tree: Hierarchy, *, finest_layer: int, notes: Sequence[str]) -> Draft:
    """Draft a hierarchy for a column; say also which rows it does not cover."""
    cells = assign_cells(column.table, Config(2, (QuasiIdentifier(column.name, tree, finest_layer),)))
    return Draft(column.name, tree, finest_layer, (*notes, *cells.problems(), *cells.off_step()))


def check_draft_target(target: Path | None, source: str) -> None:
    """Refuse, before any work, a path that a draft cannot be written to, or that holds something dear."""
    if target is None:
        return
    if target.suffix.lower() not in (".csv", ".toml"):
        raise OutputError(
            f"{target}: a hierarchy is written as .toml (lines of a config) or .csv (ARX's hierarchy file)"
        )
    check_target(target, [Path(source)])
    if target.suffix.lower() == ".toml" and target.exists():
        raise OutputError(
            f"{target}: is there already and may be a config; without --out the lines are printed, "
            "and >> adds them to a file"
        )


def interval_entry(tree: Hierarchy) -> str | None:
    """Write an interval hierarchy as the inline table of a config; None if cuts and fan-outs do not describe it.

    >>> from unblur.hierarchy import halves
    >>> interval_entry(halves(Decimal(30), Decimal(190), step=Decimal("0.5"), layers=4))
    '{ low = 30, high = 190, step = 0.5, layers = 4 }'
    """
    if not isinstance(tree, IntervalHierarchy):
        return None
    step = toml_number(tree.step)
    widths = {high - low for low, high in pairwise(tree.bounds)}
    fanouts = _fanouts(tree)
    if len(widths) == 1 and tree.nodes(1) == 2 ** len(fanouts) and _fits(tree, fanouts):
        low, high = map(toml_number, (tree.low, tree.high))
        return f"{{ low = {low}, high = {high}, step = {step}, layers = {tree.height} }}"
    for some in (fanouts, fanouts[:-1]):  # the last is no fan-out if the root is `*`
        if _fits(tree, some):
            cuts = ", ".join(map(toml_number, tree.bounds))
            return f"{{ cuts = [{cuts}], fanouts = {some}, step = {step} }}"
    return None


def toml_number(value: Decimal) -> str:
    """Write a number exactly, without an exponent.

    >>> [toml_number(Decimal(x)) for x in ("30.0", "1E+2", "0.50")]
    ['30', '100', '0.5']
    """
    whole = value == value.to_integral_value()
    return format(value.quantize(Decimal(1)) if whole else value.normalize(), "f")


def _fits(tree: IntervalHierarchy, fanouts: Sequence[int]) -> bool:
    try:
        return from_cuts(tree.bounds, fanouts=fanouts, step=tree.step) == tree
    except HierarchyError:
        return False


def _fanouts(tree: Hierarchy) -> list[int]:
    """The largest number of children in each layer."""
    return [max(Counter(parents).values()) for parents in tree.parents]


def _pair(key: str, value: str) -> str:
    return tomli_w.dumps({key: value}).strip()
