"""A data set as one table: made, fetched, or read from a user's own file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from unblur.datasets.catalogue import DataSet, data_set
from unblur.datasets.nafld import read_nafld
from unblur.datasets.synthetic import SEED, make
from unblur.errors import TableError
from unblur.sources import open_table
from unblur.tables import Table
from unblur.workspace import Workspace

if TYPE_CHECKING:
    import pyarrow as pa


def load(name: str, *, rows: int | None = None, seed: int = SEED) -> pa.Table:
    """Return a data set as one table; the number of rows and the seed are for synthetic ones."""
    import pyarrow as pa

    if data_set(name).synthetic:
        return pa.concat_tables(make(name, rows, seed=seed)).combine_chunks()
    table = read_nafld()
    return table if rows is None else table.slice(0, rows)


def read_own(path: str | os.PathLike[str], described: DataSet) -> pa.Table:
    """Read a user's own file that has the columns of a data set; other columns are left out."""
    with Workspace() as workspace:
        table = open_table(path, workspace, columns=described.columns)
        check_columns(table, described)
        return table.fetch(table.rows.select(*described.columns))


def check_columns(table: Table, described: DataSet) -> None:
    """Refuse a table that lacks columns of a data set."""
    if missing := [name for name in described.columns if name not in table.columns]:
        lacking = ("columns " if len(missing) > 1 else "column ") + ", ".join(missing)
        raise TableError(f"{table.name}: lacks the {lacking}; needed are: {', '.join(described.columns)}")
