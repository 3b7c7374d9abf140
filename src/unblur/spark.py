"""Spark: a session to work in, and how its tables lie in files.

Names of folders such as `year=2024` are text here, so that `01` stays `01`. All files must agree on the type of a
column; a column that only some of them have is there for all.
"""

from __future__ import annotations

import re
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

from unblur.errors import TableError

if TYPE_CHECKING:
    import pyarrow as pa

_QUIET = {"spark.app.name": "unblur", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
_INFERENCE = "spark.sql.sources.partitionColumnTypeInference.enabled"
FILES = "__unblur_files"
"""The column that counts the files of a folder."""


def attach(address: str) -> Any:
    """Attach to the running Spark session, or start one: `pyspark://MASTER?spark.option=value`."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    master, _, query = address.partition("://")[2].partition("?")
    settings: dict[str, Any] = dict(parse_qsl(query)) | ({"spark.master": unquote(master)} if master else {})
    if SparkContext._active_spark_context is None:
        _start(settings)
    return SparkSession.builder.config(map=settings).getOrCreate()


def _start(settings: Mapping[str, str]) -> None:
    """Start Spark without its chatter; one that runs on this machine alone also listens to it alone."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    alone = settings.get("spark.master", "").startswith("local")
    conf = SparkConf().setAll(list((_QUIET | (_LOOPBACK if alone else {}) | dict(settings)).items()))
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    launch: Any = launch_gateway
    interrupt = signal.getsignal(signal.SIGINT)
    SparkContext(conf=conf, gateway=SparkContext._gateway or launch(conf, popen_kwargs=silent))
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, interrupt)  # which Spark takes for itself


@dataclass(frozen=True)
class Layout:
    """How a table lies in files: in folders by some columns, each with some files."""

    frame: Any
    """Spark's own data frame."""
    columns: tuple[str, ...] = ()
    """The columns whose values are names of folders."""

    @property
    def parts(self) -> int:
        """The number of files; of partitions, if the rows come from no files."""
        return len(self.frame.inputFiles()) or int(self.frame.rdd.getNumPartitions())

    def folders(self) -> pa.Table:
        """List the folders, by the names of their columns' values, with the number of files in each."""
        from pyspark.sql import functions as F

        names = [F.col(quoted(name)).cast("string").alias(name) for name in self.columns]
        files = self.frame.select(*names, F.input_file_name().alias(FILES)).distinct()
        return files.groupBy(*map(quoted, self.columns)).agg(F.count(FILES).alias(FILES)).toArrow()


def read_parquet(session: Any, path: str, name: str) -> Layout:
    """Open a folder of Parquet files; `name` is what messages call it."""
    with _mixed_types(name), _folder_names_as_text(session):
        frame = session.read.option("mergeSchema", True).parquet(path)
        inside = session.read.option("mergeSchema", True).option("recursiveFileLookup", True).parquet(path).columns
    return Layout(frame, tuple(each for each in frame.columns if each not in inside))


def read_table(session: Any, table: str) -> Layout:
    """Open a table or view of the session's catalog."""
    table = ".".join(map(quoted, table.split(".")))
    partitioned: list[str] = []
    with suppress(Exception):  # not all catalogs tell
        partitioned = [each.name for each in session.catalog.listColumns(table) if each.isPartition]
    return Layout(session.table(table), tuple(partitioned))


def quoted(name: str) -> str:
    """Quote the name of a column for Spark."""
    return "`" + name.replace("`", "``") + "`"


@contextmanager
def _folder_names_as_text(session: Any) -> Iterator[None]:
    before = session.conf.get(_INFERENCE)
    session.conf.set(_INFERENCE, "false")
    try:
        yield
    finally:
        with suppress(Exception):
            session.conf.set(_INFERENCE, before)


@contextmanager
def _mixed_types(name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if "CANNOT_MERGE_SCHEMAS" not in str(error):
            raise
        raise TableError(mixed_types(name, mixed_column(error))) from None


def mixed_types(name: str, column: str | None) -> str:
    """Say that files disagree about a column."""
    which = f"the column {column!r} has" if column else "a column has"
    return f"{name}: {which} one type in some of the files and another in others; write them with one type"


def mixed_column(error: Exception) -> str | None:
    """Find the column about whose type files disagree in what Spark says; None if it does not say."""
    from pyspark.sql.types import StructType

    if found := re.search(r"reading Parquet column \[(.*?)\]\.", str(error)):
        return found[1]
    with suppress(Exception):
        schemas: Any = error.java_exception.getMessageParameters()  # type: ignore[attr-defined]
        left, right = (_fields(StructType.fromDDL(schemas[side].strip('"'))) for side in ("left", "right"))
        return next(name for name, kind in left.items() if right.get(name, kind) != kind)
    return None


def _fields(schema: Any) -> dict[str, Any]:
    return {field.name: field.dataType for field in schema}
