"""Clusters against what is there without them, in one run: Dask against processes, unblur on Spark against plain Spark.

The sweep is that of `unblur paper`: each task anonymizes a table and attacks the release. It runs with `--scheduler`,
on a Dask cluster of two workers, and with `--jobs 2`. Scheduler and workers are programs of their own on this machine.
Starting them, or processes, is not counted. Turn and turn about, the best of some, since other work disturbs.

Spark runs on this machine (`local[2]`). Plain Spark does the least that any such program must: read and group; read
again, shuffle and write back.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import unblur
from benchmarks.ledger import takes
from benchmarks.measuring import seconds
from benchmarks.patients import CELLS, CONFIG, make_table
from benchmarks.reporting import count_text, table, time_text, verdict
from tests.engines import spark_session
from unblur.paper.protocol import Protocol
from unblur.paper.running import Logbook, run_all

WORKERS = 2
SAMPLES, KS = 8, (3, 4, 5, 6, 7)
"""With five configurations these are 200 releases."""
WARM = Protocol(samples=1, ks=(3,))
BAR = 1.2
"""How many times as long the cluster may take."""
REPEATS = 3


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """Run a scheduler and some workers; yield the address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    worker = [address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1"]
    scheduler = ["--host", address, "--no-dashboard", "--no-show"]
    started = [_start("distributed.cli.dask_scheduler", scheduler, folder)]
    started += [_start("distributed.cli.dask_worker", worker, folder) for _ in range(WORKERS)]
    try:
        _wait(address)
        yield address
    finally:
        for process in started:
            process.kill()
            process.wait()


def _start(module: str, options: list[str], folder: Path) -> subprocess.Popen[bytes]:
    quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([sys.executable, "-m", module, *options], cwd=folder, **quiet)


def _wait(address: str) -> None:
    from distributed import Client

    connect: Any = Client
    with connect(address, timeout=60, set_as_default=False) as client:
        client.wait_for_workers(WORKERS, timeout=120)


def paper(protocol: Protocol, **where: Any) -> None:
    """Run all trials as `unblur paper` does, and write them down."""
    with TemporaryDirectory() as folder:
        run_all(protocol, Logbook(Path(folder)), **where)


def run(folder: Path, *, quick: bool) -> str:
    """Measure, and describe the results."""
    return f"{sweep(folder, quick=quick)}\n\n{rows_on_spark(folder, quick=quick)}"


def sweep(folder: Path, *, quick: bool) -> str:
    """Compare Dask with processes."""
    protocol = WARM if quick else Protocol(samples=SAMPLES, ks=KS)
    with cluster(folder) as address:
        ways = ({"jobs": WORKERS}, {"scheduler": address})
        for way in ways:  # all have started, and have imported what they need
            paper(WARM, **way)
        times = [[seconds(partial(paper, protocol, **way), repeats=1) for way in ways] for _ in range(REPEATS)]
    here, there = map(min, zip(*times, strict=True))
    takes(f"{len(protocol.trials)} audits on {WORKERS} Dask workers", f"--jobs {WORKERS}", there / here, BAR)
    figures = [count_text(len(protocol.trials)), time_text(here), time_text(there), f"{there / here:.2f}"]
    heads = ["audits", f"{WORKERS} processes", f"{WORKERS} Dask workers", "ratio", "at most", ""]
    return table(heads, [[*figures, f"{BAR:g}", verdict(there / here, BAR)]])


def rows_on_spark(folder: Path, *, quick: bool) -> str:
    """Compare unblur on Spark with plain Spark."""
    rows = 20_000 if quick else 1_000_000
    source, out, plain_out = make_table(folder, rows, "parquet"), folder / "spark-release", folder / "spark-plain"
    with spark_session(folder) as session:

        def plain() -> None:
            table = session.read.parquet(str(source))
            table.createOrReplaceTempView("plain")
            session.sql(f"SELECT {CELLS}, count(*) FROM plain GROUP BY ALL").toArrow()
            table.repartition(1, "id").write.mode("overwrite").parquet(str(plain_out))

        def ours() -> None:
            with unblur.anonymize(f"pyspark://#parquet:{source}", CONFIG) as release:
                release.save(f"pyspark://#parquet:{out}", overwrite=True)

        plain()
        ours()
        times = [(seconds(plain, repeats=1), seconds(ours, repeats=1)) for _ in range(1 if quick else REPEATS)]
    least, taken = map(min, zip(*times, strict=True))
    takes(f"anonymize on Spark, {rows:,} rows", "Spark: read, group, shuffle, write", taken / least)
    figures = [count_text(rows), time_text(taken), time_text(least), f"{taken / least:.1f}"]
    return table(["rows (Parquet)", "unblur on Spark", "plain Spark", "ratio"], [figures])
