from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import unblur
from tests.test_auditing import CONFIG, patients
from unblur.cli import app
from unblur.errors import ClusterError, ConfigError, MissingExtraError
from unblur.paper.protocol import Protocol
from unblur.paper.running import Logbook, run_all
from unblur.scheduling import spread

WORKERS = 3
ROOT = Path(__file__).parents[1]


def free_address() -> str:
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{found.getsockname()[1]}"


class Cluster:
    """A scheduler and some worker processes, each its own program, as on real machines."""

    def __init__(self, folder: Path) -> None:
        self.address, self.folder = free_address(), folder
        self.scheduler = self._start(
            "distributed.cli.dask_scheduler", "--host", self.address, "--no-dashboard", "--no-show"
        )
        self.workers = [self.add_worker() for _ in range(WORKERS)]
        self._wait(WORKERS)

    def add_worker(self) -> subprocess.Popen[bytes]:
        options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1"]
        return self._start("distributed.cli.dask_worker", self.address, *options)

    def _start(self, module: str, *options: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", module, *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])},  # for the functions below
        )

    def _wait(self, workers: int) -> None:
        from distributed import Client

        connect: Any = Client
        with connect(self.address, timeout=30, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=60)

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with closing(Cluster(tmp_path)) as started:
        yield started


def slowly(shared: list[int], number: int) -> int:
    time.sleep(0.05)
    return shared[number] + os.getpid() * 0


@pytest.mark.slow
def test_a_cluster_finds_what_one_process_finds_also_when_a_worker_is_killed(cluster: Cluster) -> None:
    found = []
    stream = spread(slowly, list(range(100, 220)), [(n,) for n in range(120)], scheduler=cluster.address)
    for result in stream:
        found.append(result)
        if len(found) == 20:
            cluster.workers[0].send_signal(signal.SIGKILL)
    assert found == list(range(100, 220)), "nothing is lost, nothing is counted twice"
    assert cluster.workers[0].wait(10) == -signal.SIGKILL
    from distributed import Client

    connect: Any = Client
    release = unblur.anonymize(patients(), CONFIG)
    alone = unblur.audit(release).to_json()
    assert unblur.audit(release, scheduler=cluster.address).to_json() == alone
    with connect(cluster.address, set_as_default=False) as client:
        assert unblur.audit(release, scheduler=client).to_json() == alone, "your own client serves as well"
        assert [each.to_json() for each in client.gather(client.map(unblur.audit, [release.bare()] * 2))]


@pytest.mark.slow
def test_the_paper_on_a_cluster_loses_nothing_when_workers_are_killed_and_ends_when_none_is_left(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    protocol, seen = Protocol(samples=2, ks=(3, 4)), list[int]()

    def kill_two(done: int, of: int) -> None:
        seen.append(done)
        if done in (3, 6):
            cluster.workers[done // 3].send_signal(signal.SIGKILL)

    here = run_all(protocol, Logbook(tmp_path / "here"))
    there = run_all(protocol, Logbook(tmp_path / "there"), scheduler=cluster.address, progress=kill_two)
    assert there.outcomes == here.outcomes
    assert seen == list(range(len(protocol.trials) + 1)), "each is done, and counted, once"
    kept = [sorted(path.name for path in (tmp_path / each / "trials").iterdir()) for each in ("here", "there")]
    assert kept[0] == kept[1] and len(kept[0]) == len(protocol.trials)

    def kill_the_last(done: int, of: int) -> None:
        if done == 3:
            cluster.workers[0].send_signal(signal.SIGKILL)

    monkeypatch.setattr("unblur.scheduling.PATIENCE", 1)
    with pytest.raises(ClusterError, match=r"^--scheduler tcp:.*: (all workers are gone|the cluster gave up)"):
        run_all(protocol, Logbook(tmp_path / "again"), scheduler=cluster.address, progress=kill_the_last)
    again = run_all(protocol, Logbook(tmp_path / "again"))
    assert again.outcomes == here.outcomes, "it goes on from what there is"


def test_a_scheduler_that_does_not_answer_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unblur.scheduling.CONNECT", 1)
    for address in (free_address(), "tls://127.0.0.1:1"):
        with pytest.raises(ConfigError, match=r"cannot be reached; an address tcp://HOST:PORT is meant, such as"):
            list(spread(slowly, [1], [(0,)], scheduler=address))


NO_ADDRESSES = ("foo", "", "nonsense://x:1", "tcp://127.0.0.1", "tcp://127.0.0.1:99999", "tcp://:1")


@pytest.mark.parametrize("address", NO_ADDRESSES)
def test_what_is_no_address_is_refused_at_once(address: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^--scheduler .*: an address tcp://HOST:PORT is meant"):
        list(spread(slowly, [1], [(0,)], scheduler=address))
    result = CliRunner().invoke(app, ["audit", str(tmp_path / "not-there.csv"), "--scheduler", address])
    assert isinstance(result.exception, ConfigError), "before the release is looked for"


def test_a_client_that_could_not_connect_ends_quietly() -> None:
    code = """
from unblur import scheduling
scheduling.CONNECT = 1
try:
    list(scheduling.spread(divmod, 1, [(1,)], scheduler="tls://127.0.0.1:1"))
except scheduling.ConfigError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("--scheduler tls://127.0.0.1:1: cannot be reached")
    assert done.stderr == ""


def test_without_the_extra_a_scheduler_gives_an_install_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"unblur\[dask\]"):
        list(spread(slowly, [1], [(0,)], scheduler="tcp://127.0.0.1:1"))


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_come_in_the_order_of_the_tasks(jobs: int) -> None:
    assert list(spread(slowly, [5, 6, 7], [(2,), (0,), (1,)], jobs=jobs)) == [7, 5, 6]


def failing(shared: None, number: int) -> int:
    if number == 3:
        raise ConfigError("the fourth task fails")
    return number


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_in_a_task_is_the_error_of_the_whole(jobs: int) -> None:
    with pytest.raises(ConfigError, match="the fourth task fails"):
        list(spread(failing, None, [(n,) for n in range(6)], jobs=jobs))
