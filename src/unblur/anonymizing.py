"""From a table to a release: read, group, recode, write."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from unblur.arx.recoding import ArxIteration, check_searchable
from unblur.arx.replaying import in_column_order, recode_as_arx
from unblur.arx.settings import ArxSettings
from unblur.cells import assign_cells
from unblur.config import Config, Mechanism, load_config
from unblur.engines import DuckDBEngine, engine_errors
from unblur.errors import ConfigError, TableError, UnblurWarning
from unblur.labels import ROOT_LABEL
from unblur.lookups import keeps_order
from unblur.output import RECORDS, Outputs, has_groups
from unblur.recoding import Iteration, Progress, Recoding, check_time, global_recoding, local_recoding
from unblur.release import Release
from unblur.sources import open_table
from unblur.tables import Table
from unblur.targets import Delivery, open_target
from unblur.workspace import Workspace

if TYPE_CHECKING:
    import ibis
    import pandas as pd
    import polars as pl
    import pyarrow as pa


@dataclass(frozen=True, repr=False)
class AnonymizedRelease(Release):
    """A release just made from a table: also its rows, and the decisions behind it (for the custodian's eyes)."""

    recoding: Recoding = field(repr=False)
    published: ibis.Table = field(repr=False)
    """The published rows, as an Ibis expression that the engine evaluates when asked."""
    table: Table = field(repr=False)
    workspace: Workspace = field(repr=False)
    order_by: str | None = None
    """The column that orders the published rows, if one was named."""

    def close(self) -> None:
        """Remove the temporary files and let go of the database; this also happens when the object is forgotten."""
        self.workspace.close()

    def __enter__(self) -> AnonymizedRelease:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def paths(self) -> list[Path]:
        return [*self.config.paths, *self.table.paths]

    def open_rows(self, workspace: Workspace) -> Table:
        if not self.table.numbered:  # in a database or a cluster, where they stay
            return Table(self.published, self.table.name, self.workspace, steady=self.table.steady)
        return open_table(self.to_arrow(), workspace)

    def to_arrow(self) -> pa.Table:
        """Return the published rows as an Arrow table."""
        rows = self.table.fetch(self.published)
        self._check_published(rows)
        return rows

    def to_pandas(self) -> pd.DataFrame:
        """Return the published rows as a pandas data frame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """Return the published rows as a polars data frame."""
        import polars as pl

        return pl.DataFrame(self.to_arrow())

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        trace: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        on_rows: Progress | None = None,
    ) -> None:
        """Write the rows, the config beside them (`.toml`), and the trace if a path is given.

        `path` is a CSV or Parquet file, which is replaced if it is there; or a URL with `#table` of PostgreSQL, or with
        `#parquet:PATH` of Spark, where what is there is replaced only with `overwrite=True`.
        """
        import json

        target, trace = open_target(path), Path(trace) if trace is not None else None
        target.check(self.paths, trace=trace, overwrite=overwrite, source=self.table.address)
        names = [each.name for each in self.config.quasi_identifiers]
        delivery = Delivery(
            self.published, self.table, names, self.order_by, self._check_published, partial(self._streaming, on_rows)
        )
        with Outputs() as outputs, target.staged(delivery, outputs):
            outputs.write_text(target.config, self.config.to_toml(target.config.resolve().parent))
            if trace is not None:
                text = json.dumps(self.trace(), indent=1, ensure_ascii=False) + "\n"
                outputs.write_text(trace, text, private=True)

    @contextmanager
    def _streaming(self, on_rows: Progress | None) -> Iterator[None]:
        """Read all rows, and write them: with progress, and in little memory."""
        with self.table.reading(self.published, on_rows), self._little_memory():
            yield

    def _little_memory(self) -> AbstractContextManager[None]:
        """Rows that are streamed need little memory; to be sorted, they need more."""
        engine = self.table.engine
        streamed = self.table.numbered and isinstance(engine, DuckDBEngine) and keeps_order(self.published, engine)
        return self.workspace.half_the_memory() if streamed else nullcontext()

    def _check_published(self, rows: Any) -> None:
        """Refuse rows that do not make up the classes: the table was another one when it was read again."""
        with engine_errors(self.table.name):
            same = self.table.steady or has_groups(rows, self.expected_groups(), self.workspace)
        self.table.check_unchanged()
        if not same:
            raise TableError(f"{self.table.name}: the rows changed while they were read; nothing was written")

    def expected_groups(self) -> pa.Table:
        """The labels and sizes of all classes, and of the outliers."""
        import pyarrow as pa

        names = [each.name for each in self.config.quasi_identifiers]
        groups: list[dict[str, Any]] = [
            {**dict(zip(names, self.labels(each), strict=True)), RECORDS: each.size} for each in self.classes
        ]
        if self.outliers:
            groups.append({**dict.fromkeys(names, ROOT_LABEL), RECORDS: self.outliers})
        return pa.Table.from_pylist(groups)

    def trace(self) -> dict[str, Any]:
        """Describe every greedy decision: `unblur/trace/1`."""
        return {
            "schema": "unblur/trace/1",
            "recoding": self.config.made["recoding"],
            "k": self.config.k,
            "rows": self.rows,
            "quasi_identifiers": [each.name for each in self.config.quasi_identifiers],
            "iterations": [self._step(n, each) for n, each in enumerate(self.recoding.iterations, 1)],
            "suppressed": self.outliers,
        }

    def _step(self, number: int, step: Iteration) -> dict[str, Any]:
        lattice = self.config.lattice
        c3 = {state: float(value) for state, value in step.c3.items()}
        return {
            "iteration": number,
            "state": list(step.state),
            "loss": step.loss if isinstance(step, ArxIteration) else lattice.loss(step.state),
            "c1": lattice.c1(step.state),
            "c2": float(lattice.c2(step.state)),
            "c3": c3.get(step.state),
            "rivals": [{"state": list(rival), "c3": c3[rival]} for rival in step.rivals],
            "rival_count": step.rival_count,
            "open_tie": step.open_tie,
            "classes": [{"labels": list(self.labels(each)), "size": each.size} for each in step.classes],
            "records_left": step.left,
        }


def anonymize(
    table: Any,
    config: Config | Mapping[str, Any] | str | os.PathLike[str],
    *,
    recoding: Literal["local", "global"] = "local",
    suppression_limit: Fraction | float = 0,
    missing: Literal["error", "suppress"] = "error",
    order_by: str | None = None,
    encoding: str | None = None,
    threads: int | None = None,
    progress: Progress = lambda done, of: None,
    on_rows: Progress | None = None,
) -> AnonymizedRelease:
    """Make a k-anonymous release of a table.

    `table` is a path, a URL with `#table`, a pandas or polars data frame, an Arrow table or an Ibis expression.
    `recoding="global"` generalizes all records alike, and may suppress up to a share `suppression_limit` of them.
    With `missing="suppress"`, rows with a missing or impossible value are suppressed instead of refused.
    Files and data frames keep the order of their rows; those of a database or an expression come out shuffled unless
    `order_by` is given, because the order that an engine leaves them in may follow the raw values.
    `progress` is called with how many states were chosen from and how many there are, `on_rows` with how many rows of a
    file or data frame were read and how many there are.
    """
    config = load_config(config)
    check_mechanism(config)
    _check_choice("recoding", recoding, ("local", "global"))
    _check_choice("missing", missing, ("error", "suppress"))
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise ConfigError(f"threads must be a whole number of 1 or more, not {threads!r}")
    limit = _share(suppression_limit)
    if limit and recoding == "local":
        raise ConfigError(
            "a suppression limit is for global recoding; local recoding suppresses what no class can hold"
        )
    arx = config.mechanism if config.mechanism and config.mechanism.name == "arx" and recoding == "local" else None
    if arx:
        check_searchable(config.lattice)
    config.lattice.check_size()
    workspace = Workspace(threads=threads)
    source = open_table(table, workspace, columns=[each.name for each in config.quasi_identifiers], encoding=encoding)
    _check_order(order_by, source, config)
    if arx:
        config = in_column_order(config, source)
    lattice = config.lattice
    cells = assign_cells(source, config, on_rows)
    problems = cells.problems()
    if problems and missing == "error":
        more = f"; {len(problems) - 1} more problems" if len(problems) > 1 else ""
        raise TableError(f"{problems[0]}{more}")
    histogram = cells.histogram()
    slow = check_time(lattice, len(histogram.counts), config.k) if recoding == "local" and not arx else None
    few = _too_few(config, histogram.records)
    for note in (*source.notes, *cells.off_step(), *problems, *few, *([slow] if slow else [])):
        warnings.warn(note, UnblurWarning, stacklevel=2)
    decided: Recoding
    if arx:
        decided = recode_as_arx(cells, config, ArxSettings.of(arx, config.k), progress).as_published(lattice)
    elif recoding == "local":
        decided = local_recoding(histogram, lattice, k=config.k, progress=progress)
    else:
        decided = global_recoding(histogram, lattice, k=config.k, suppression_limit=limit)
    if not decided.classes:
        warnings.warn("no group reaches k: everything is suppressed", UnblurWarning, stacklevel=2)
    # ARX makes a class of the root intervals; nobody who reads the table can tell it from suppressed records.
    classes = tuple(each for each in decided.classes if each.state != lattice.top)
    at_root = sum(each.size for each in decided.classes) - sum(each.size for each in classes)
    suppressed = decided.suppressed + at_root + cells.without_cell()
    made = {
        "by": f"unblur {version('unblur')}",
        "recoding": recoding,
        "rows": histogram.records + cells.without_cell(),
        "suppressed": suppressed,
        "missing": cells.without_cell(),
    }
    # A global recoding is one step that releases every group of k: what `iterative` assumes, and no more.
    mechanism = arx or Mechanism("paper" if recoding == "local" else "iterative")
    return AnonymizedRelease(
        config=replace(config, mechanism=mechanism, made=made),
        classes=classes,
        outliers=suppressed,
        recoding=decided,
        published=cells.recode(decided.classes, decided.class_of_cell, order_by=order_by),
        table=source,
        workspace=workspace,
        order_by=order_by,
    )


def check_mechanism(config: Config) -> None:
    """Refuse a mechanism that describes releases but makes none."""
    name = config.mechanism.name if config.mechanism else "paper"
    if name not in ("paper", "arx"):
        raise ConfigError(f"mechanism {name} describes releases of others and makes none; use mechanism paper or arx")


def _check_order(order_by: str | None, source: Table, config: Config) -> None:
    if order_by is None:
        return
    source.require(order_by)
    if order_by in [each.name for each in config.quasi_identifiers]:
        raise ConfigError(f"{order_by!r} is a quasi-identifier: the order of the rows would give its values away")


def _check_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ConfigError(f"{option} must be {' or '.join(choices)}, not {value!r}")


def _share(limit: Fraction | float) -> Fraction:
    try:
        share = Fraction(str(limit))
    except ValueError:
        share = Fraction(-1)
    if not 0 <= share <= 1:
        raise ConfigError(f"suppression limit must be a share from 0 to 1, not {limit}")
    return share


def _too_few(config: Config, records: int) -> list[str]:
    if records >= config.k:
        return []
    there_are = "there is only 1 record" if records == 1 else f"there are only {records} records"
    return [f"k is {config.k}, but {there_are} with all values"]
