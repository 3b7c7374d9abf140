"""What one process measures: `python -m benchmarks.jobs JOB SOURCE TARGET THREADS` prints seconds and peak memory."""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

import unblur
from benchmarks.patients import CELLS, CONFIG, make_table
from unblur.leaks import find_leaks

Job = Callable[[Path, Path, int], None]


def anonymize(source: Path, target: Path, threads: int) -> None:
    """The whole of unblur: read, group, recode, write."""
    unblur.anonymize(source, CONFIG, threads=threads).save(target)


def plain(source: Path, target: Path, threads: int) -> None:
    """The least that any such program must do, in plain DuckDB: read and group; read again and write back.

    A CSV file is written back as text, as unblur does: faster than as numbers.
    """
    with duckdb.connect(config={"threads": threads}) as connection:
        connection.execute(f"SELECT {CELLS}, count(*) FROM '{source}' GROUP BY ALL").fetchall()
        rows = f"read_csv('{source}', all_varchar = true)" if source.suffix == ".csv" else f"'{source}'"
        connection.execute(f"COPY (FROM {rows}) TO '{target}'")


def read(source: Path, target: Path, threads: int) -> None:
    """What an audit does with the rows of a release: group them, and look for columns that tell them apart."""
    find_leaks(unblur.read_release(source, source.with_suffix(".toml")))


def plain_read(source: Path, target: Path, threads: int) -> None:
    """The least of that, in plain DuckDB: group by the labels."""
    with duckdb.connect(config={"threads": threads}) as connection:
        connection.execute(f"SELECT {LABELS}, count(*) FROM '{source}' GROUP BY ALL").fetchall()


JOBS: dict[str, Job] = {"anonymize": anonymize, "plain": plain, "read": read, "plain_read": plain_read}
LABELS = ", ".join(each["name"] for each in CONFIG["quasi_identifiers"])


def main(name: str, source: str, target: str, threads: str) -> None:
    """Warm up on a tiny table, then measure."""
    job, form = JOBS[name], Path(source).suffix
    with tempfile.TemporaryDirectory() as folder:
        tiny, out = make_table(Path(folder), 1000, form[1:]), Path(folder) / f"out{form}"
        if name.endswith("read"):
            anonymize(tiny, out, int(threads))
            tiny = out
        job(tiny, out, int(threads))
    start, processor = time.perf_counter(), time.process_time()
    job(Path(source), Path(target), int(threads))
    seconds, processor = time.perf_counter() - start, time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # kilobytes on Linux
    print(json.dumps({"seconds": seconds, "peak": peak, "processor": processor}))


if __name__ == "__main__":
    main(*sys.argv[1:])
