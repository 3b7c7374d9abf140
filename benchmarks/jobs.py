"""What one process measures: `python -m benchmarks.jobs JOB SOURCE TARGET THREADS` prints seconds and peak memory."""

from __future__ import annotations

import gc
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

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
    """What an audit does with a release: group its rows, look for columns that tell them apart, hash the file."""
    release = unblur.read_release(source, source.with_suffix(".toml"))
    find_leaks(release)
    release.finish()


def audit(source: Path, target: Path, threads: int) -> None:
    """Read a release and audit it with so many processes."""
    unblur.audit(unblur.read_release(source, source.with_suffix(".toml")), jobs=threads)


def scan(source: Path, target: Path, threads: int) -> None:
    """The least of that, in plain DuckDB: group by the labels."""
    with duckdb.connect(config={"threads": threads}) as connection:
        connection.execute(f"SELECT {LABELS}, count(*) FROM '{source}' GROUP BY ALL").fetchall()


def whole(source: Path, target: Path, threads: int) -> None:
    """Read every value, in plain DuckDB: nothing is grouped, nothing leaves the engine but a number per column."""
    with duckdb.connect(config={"threads": threads}) as connection:
        connection.execute(f"SELECT bit_xor(hash(COLUMNS(*))) FROM '{source}'").fetchall()


def truth(source: Path, target: Path, threads: int) -> None:
    """Audit a release with the raw table, which is the target, matched by position."""
    unblur.audit(unblur.read_release(source, source.with_suffix(".toml")), truth=target, jobs=threads)


def positions(source: Path, target: Path, threads: int) -> None:
    """The least of that, in plain DuckDB: put both tables side by side, and group by labels and cells."""
    with duckdb.connect(config={"threads": threads}) as connection:
        raw, labels = f"SELECT {', '.join(_named_cells())} FROM '{target}'", f"SELECT {LABELS} FROM '{source}'"
        connection.execute(f"SELECT *, count(*) FROM ({labels}) POSITIONAL JOIN ({raw}) GROUP BY ALL").fetchall()


def _named_cells() -> list[str]:
    return [f"{each} AS cell_{i}" for i, each in enumerate(re.split(r", (?=floor)", CELLS))]


WITH_RAW: dict[str, Job] = {"truth": truth, "positions": positions}
OF_RELEASES: dict[str, Job] = {"read": read, "audit": audit, "scan": scan, "whole": whole, **WITH_RAW}
JOBS: dict[str, Job] = {"anonymize": anonymize, "plain": plain, **OF_RELEASES}
LABELS = ", ".join(each["name"] for each in CONFIG["quasi_identifiers"])


def main(name: str, source: str, target: str, threads: str) -> None:
    """Warm up on a tiny table, then measure."""
    job, form = JOBS[name], Path(source).suffix
    with tempfile.TemporaryDirectory() as folder:
        tiny = raw = make_table(Path(folder), 1000, form[1:])
        if name in OF_RELEASES:
            tiny = Path(folder) / f"release{form}"
            unblur.anonymize(raw, CONFIG).save(tiny)
        job(tiny, raw if name in WITH_RAW else Path(folder) / f"out{form}", int(threads))
    gc.freeze()  # as the command line does, when all is imported
    start, used = time.perf_counter(), processor_time()
    job(Path(source), Path(target), int(threads))
    seconds, processor = time.perf_counter() - start, processor_time() - used
    peak = max([peak_of(Path("/proc/self")), *(each.peak for each in helpers())]) / 1024
    print(json.dumps({"seconds": seconds, "peak": peak, "processor": processor}))


class Helper(NamedTuple):
    """A process that this one has started."""

    peak: int
    """Kilobytes."""
    processor: float


def helpers() -> Iterator[Helper]:
    """Ask Linux about the processes that this one has started."""
    tick = os.sysconf("SC_CLK_TCK")
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == os.getpid():
                yield Helper(peak_of(folder), (int(fields[11]) + int(fields[12])) / tick)
        except OSError:  # it has ended meanwhile
            continue


def peak_of(process: Path) -> int:
    """The most memory that a process ever held, in kilobytes; not that of the one it was started by."""
    found = re.search(r"VmHWM:\s+(\d+)", (process / "status").read_text())
    return int(found[1]) if found else 0


def processor_time() -> float:
    """Seconds of processor time that this process and those it started have used."""
    return time.process_time() + sum(each.processor for each in helpers())


if __name__ == "__main__":
    main(*sys.argv[1:])
