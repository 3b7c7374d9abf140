"""A release as a folder of Parquet files that Spark writes: no row passes through the driver.

Spark writes beside the target, on the same file system, and the folder gets its name when all is there. The release
lies in files as the table did: in the same folders, as many files in each. Which row goes to which file, and where
in it, depends on nothing but what is published and a secret number; so files tell no more than rows, and a task that
has to be done again puts every row where it was.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from math import ceil, log
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from unblur.engines import engine_errors
from unblur.errors import OutputError
from unblur.output import RECORDS
from unblur.spark import FILES, Layout, attach, quoted, read_parquet

if TYPE_CHECKING:
    import pyarrow as pa

PATIENCE = 10
"""Seconds to wait for the tasks of a job that was called off."""
QUIET = 3
"""How often in a row nothing must be found, a tenth of a second apart."""
_HASH, _SLOT = "__unblur_hash", "__unblur_slot"


class SparkFolder:
    """A folder that is not there yet, wherever Spark can write: on a disk that its workers share, in HDFS, in S3."""

    def __init__(self, address: str, path: str) -> None:
        self.name = f"pyspark://…#parquet:{path}"
        with engine_errors(self.name):
            self.session = attach(address)
            files = self.session._jvm.org.apache.hadoop.fs
            target = files.Path(path)
            self._system = target.getFileSystem(self.session._jsc.hadoopConfiguration())
            self._path = files.Path
            self._target = self._system.makeQualified(target)
            self._staging = self._beside("part")
            self._staged_at = str(self._staging.toString())

    @property
    def address(self) -> str:
        """The whole address, with its file system."""
        return str(self._target.toString())

    @property
    def local(self) -> Path | None:
        """The path on this machine, if it is one."""
        return _local(self.address)

    def check(self, source: str | None, *, overwrite: bool) -> None:
        """Refuse a folder that is there, or that is the input: `source`, if that is a folder."""
        with engine_errors(self.name):
            if source is not None:
                given = str(self._system.makeQualified(self._path(source)).toString())
                if f"{given}/".startswith(f"{self.address}/") or f"{self.address}/".startswith(f"{given}/"):
                    raise OutputError(f"{self.name}: this is an input, or inside it; choose another path")
            if not overwrite and self._system.exists(self._target):
                raise OutputError(f"{self.name}: it is there already; --overwrite replaces it")
            if not self._system.exists(self._target.getParent()):
                raise OutputError(f"{self.name}: the folder above it does not exist")

    @contextmanager
    def staged(self, frame: Any, layout: Layout, labels: Sequence[str], order_by: str | None) -> Iterator[pa.Table]:
        """Write rows beside the target; they take its place when the block ends well. Yield their groups as written."""
        from pyspark.sql import functions as F

        context = self.session.sparkContext
        try:
            with engine_errors(self.name):
                context.setJobGroup(self._staged_at, "unblur")
                placed = _placed(frame, layout, labels, order_by)
                placed.write.partitionBy(*layout.columns).parquet(self._staged_at)
                written = read_parquet(self.session, self._staged_at, self.name).frame
                groups = written.groupBy(*map(quoted, labels)).agg(F.count(F.lit(1)).alias(RECORDS)).toArrow()
            yield groups
            with engine_errors(self.name):
                self._publish()
        except BaseException:
            self._stop_writing()
            raise
        finally:
            with suppress(Exception):
                context.setLocalProperty("spark.jobGroup.id", None)
            self._clear()

    def _stop_writing(self) -> None:
        """End the tasks that write, and remove what they wrote: until they have ended, they may make it anew."""
        quiet, end = 0, monotonic() + PATIENCE
        while quiet < QUIET and monotonic() < end:
            with suppress(Exception):  # again and again, for a job may begin after it was called off
                self.session.sparkContext.cancelJobGroup(self._staged_at)
            quiet = 0 if self._busy() or self._clear() else quiet + 1
            sleep(0.1)

    def _busy(self) -> bool:
        """Whether tasks are still at work for this folder."""
        with suppress(Exception):
            tracker = self.session.sparkContext.statusTracker()
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._staged_at)]
            stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
            running = any(job.status == "RUNNING" for job in jobs if job)
            return running or any(stage.numActiveTasks for stage in stages if stage)
        return False

    def _clear(self) -> bool:
        """Remove what was written beside the target; say whether there was anything."""
        path = _local(self._staged_at)
        found = path is not None and path.exists()
        with suppress(Exception):
            found = bool(self._system.delete(self._staging, True)) or found
        if path:  # also when Spark has gone
            shutil.rmtree(path, ignore_errors=True)
        return found

    def _publish(self) -> None:
        """Give the folder its name; what had it before comes back if that fails."""
        old = None
        if self._system.exists(self._target):
            old = self._beside("old")
            self._move(self._target, old)
        try:
            self._move(self._staging, self._target)
        except BaseException:
            if old is not None:
                self._move(old, self._target)
            raise
        if old is not None:
            self._remove(old)

    def _move(self, source: Any, target: Any) -> None:
        if not self._system.rename(source, target):
            raise OutputError(f"{self.name}: the folder cannot be renamed")

    def _remove(self, folder: Any) -> None:
        with suppress(Exception):
            self._system.delete(folder, True)

    def _beside(self, ending: str) -> Any:
        """Name a folder beside the target that Spark does not see as data."""
        return self._path(self._target.getParent(), f".unblur-{secrets.token_hex(8)}.{ending}")


def _local(address: str) -> Path | None:
    parts = urlsplit(address)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def _placed(frame: Any, layout: Layout, labels: Sequence[str], order_by: str | None) -> Any:
    """Send every row to the file it belongs to, and sort the files: by a column if asked, else in no order."""
    from pyspark.sql import functions as F

    columns = [F.col(quoted(name)) for name in layout.columns]
    if order_by is not None:
        order = [*columns, F.col(quoted(order_by))]
        return frame.repartitionByRange(layout.parts, *order).sortWithinPartitions(*order)
    hashed = frame.withColumn(_HASH, F.xxhash64(F.lit(secrets.randbits(62)), *map(_hashable, frame.schema)))
    if not columns:
        return hashed.repartition(layout.parts, _HASH).sortWithinPartitions(_HASH).drop(_HASH)
    if set(layout.columns) & set(labels):  # other folders than there were
        placed = hashed.repartition(layout.parts, *columns)
    else:
        placed = _in_folders(hashed, layout)
    return placed.sortWithinPartitions(*columns, _HASH).drop(_HASH)


def _hashable(field: Any) -> Any:
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StructType

    column = F.col(quoted(field.name))
    return column.cast("string") if isinstance(field.dataType, ArrayType | MapType | StructType) else column


def _in_folders(hashed: Any, layout: Layout) -> Any:
    """Send the rows of a folder to as many tasks as it had files; each task writes one file."""
    from pyspark.sql import functions as F

    folders = layout.folders()
    files = folders[FILES].to_pylist()
    slots = iter(_slots(hashed.sparkSession, sum(files)))
    ours = [[next(slots) for _ in range(count)] for count in files]
    names = [f"{_SLOT}_{i}" for i in range(len(layout.columns))]
    table = folders.drop_columns(FILES).rename_columns(names).append_column(_SLOT, [ours])
    known = F.broadcast(hashed.sparkSession.createDataFrame(table))
    same = [
        hashed[quoted(column)].cast("string").eqNullSafe(known[name])
        for column, name in zip(layout.columns, names, strict=True)
    ]
    joined = hashed.join(known, same, "left").drop(*names)
    mine = F.col(_SLOT)
    chosen = F.element_at(mine, (F.pmod(F.col(_HASH), F.size(mine)) + 1).cast("int"))
    return joined.withColumn(_SLOT, chosen).repartition(sum(files), _SLOT).drop(_SLOT)


def _slots(session: Any, parts: int) -> list[int]:
    """Find for each of so many tasks a number that Spark's hash sends there."""
    from pyspark.sql import functions as F

    tried = ceil(parts * (log(parts) + 10))
    task = F.pmod(F.hash("id"), F.lit(parts)).alias("task")
    found = session.range(tried).select("id", task).groupBy("task").agg(F.min("id").alias("id")).toArrow()
    numbers = dict(zip(found["task"].to_pylist(), found["id"].to_pylist(), strict=True))
    return [numbers.get(number, number) for number in range(parts)]
