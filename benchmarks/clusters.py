"""A sweep of many audits on a Dask cluster of two workers, against two processes of this machine, in one run.

Two sweeps that people make: the trials of `unblur paper` (each a table anonymized and attacked), with `--scheduler` and
with `--jobs`; and whole audits mapped over a list of releases in Python, with Dask's client and with joblib. Scheduler
and workers are programs of their own on this machine. Starting them, or processes, is not counted. Turn and turn about,
the best of some repetitions, since other work disturbs.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from joblib import Parallel, delayed

import unblur
from benchmarks.measuring import seconds
from benchmarks.reporting import count_text, table, time_text, verdict
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


def mapped(releases: Sequence[unblur.Release], *, jobs: int = 1, scheduler: str = "") -> None:
    """Audit every release, each as a whole in one process."""
    if scheduler:
        from distributed import Client

        connect: Any = Client
        with connect(scheduler, set_as_default=False) as client:
            client.gather(client.map(unblur.audit, releases))
    else:
        Parallel(n_jobs=jobs)(delayed(unblur.audit)(release) for release in releases)


def run(folder: Path, *, quick: bool) -> str:
    """Measure, and describe the results."""
    protocol = Protocol(samples=1, ks=(3,)) if quick else Protocol(samples=SAMPLES, ks=KS)
    releases = [protocol.sample(trial).release for trial in protocol.trials]
    sweeps: dict[str, Callable[..., None]] = {
        "unblur paper": partial(paper, protocol),
        "unblur.audit, mapped": partial(mapped, releases),
    }
    lines = []
    with cluster(folder) as address:
        for name, sweep in sweeps.items():
            ways = ({"jobs": WORKERS}, {"scheduler": address})
            for way in ways:  # all have started, and have imported what they need
                paper(WARM, **way)
                mapped(releases[:4], **way)
            here, there = zip(
                *([seconds(partial(sweep, **way), repeats=1) for way in ways] for _ in range(1 if quick else REPEATS)),
                strict=True,
            )
            ratio = min(there) / min(here)
            figures = [count_text(len(releases)), time_text(min(here)), time_text(min(there)), f"{ratio:.2f}"]
            lines.append([name, *figures, f"{BAR:g}", verdict(ratio, BAR)])
    heads = ["sweep", "audits", f"{WORKERS} processes", f"{WORKERS} Dask workers", "ratio", "at most", ""]
    return table(heads, lines)
