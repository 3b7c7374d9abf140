"""A table recoded as ARX would: our config and cells, put into the terms of ARX."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unblur.arx.hierarchy_csv import listed_values
from unblur.arx.loss import Shares, interval_shares, row_shares
from unblur.arx.recoding import ArxRecoding, arx_recoding
from unblur.arx.settings import ArxSettings
from unblur.cells import Cells
from unblur.config import Config, QuasiIdentifier
from unblur.errors import TableError
from unblur.hierarchy import IntervalHierarchy
from unblur.recoding import Progress
from unblur.tables import Table


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
