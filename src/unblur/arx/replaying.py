"""A table recoded as ARX would: our config and cells, put into the terms of ARX."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from unblur.arx.hierarchy_csv import listed_values
from unblur.arx.loss import Shares, interval_shares, row_shares
from unblur.arx.recoding import ArxRecoding, ArxSettings, arx_recoding
from unblur.cells import Cells
from unblur.config import Config, Mechanism, QuasiIdentifier
from unblur.errors import ConfigError, TableError
from unblur.hierarchy import IntervalHierarchy
from unblur.recoding import Progress
from unblur.tables import Table


def settings_of(mechanism: Mechanism, k: int) -> ArxSettings:
    """Read the settings of a mechanism `arx`: a share of records per iteration, or its GUI's number of iterations."""
    given: Any = mechanism.settings
    if ("records_per_iteration" in given) == ("iterations" in given):
        raise ConfigError("mechanism arx needs records_per_iteration or iterations (the GUI's default is 100)")
    if "iterations" in given and int(given["iterations"]) < 1:
        raise ConfigError("mechanism arx: iterations must be a whole number of 1 or more")
    share = 1 / int(given["iterations"]) if "iterations" in given else float(given["records_per_iteration"])
    limit = float(given["suppression_limit"]) if "suppression_limit" in given else None
    return ArxSettings(k, share, limit, float(given.get("gs_factor", 0)))


def in_column_order(config: Config, table: Table) -> Config:
    """Put the quasi-identifiers in the order of the table's columns: ARX's rounding depends on it."""
    for each in config.quasi_identifiers:
        table.require(each.name)
    ordered = sorted(config.quasi_identifiers, key=lambda each: table.columns.index(each.name))
    return replace(config, quasi_identifiers=tuple(ordered))


def recode_as_arx(
    cells: Cells, config: Config, settings: ArxSettings, progress: Progress = lambda done, of: None
) -> ArxRecoding:
    """Recode a table as ARX does under these settings."""
    if not cells.table.numbered:
        raise TableError(
            f"{cells.table.name}: ARX's rounding depends on the order of the rows, and these have none; use a file"
        )
    first_rows = np.asarray(cells.groups["first"].to_numpy())[cells.valid]
    shares = [shares_of(each, config) for each in config.quasi_identifiers]
    return arx_recoding(
        cells.histogram(), config.lattice, first_rows=first_rows, shares=shares, settings=settings, progress=progress
    )


def shares_of(attribute: QuasiIdentifier, config: Config) -> Shares:
    """How ARX measures an attribute: by length if it has the intervals, by rows if it has a hierarchy file."""
    tree = attribute.hierarchy
    if isinstance(tree, IntervalHierarchy) and attribute.by_length:
        return interval_shares(tree)
    if not isinstance(tree, IntervalHierarchy):
        return row_shares(tree)
    values = listed_values(config.folder / str(attribute.source["hierarchy"]))
    return row_shares(tree, np.array([int((value - tree.low) // tree.step) for value in values], dtype=np.int64))
