"""Work spread over processes of this machine, or over a Dask cluster; results come back in order.

What all tasks share is sent once per process, not once per task. Ctrl-C is for the process that collects: the others
ignore it and are ended by it.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from unblur.errors import ClusterError, ConfigError, MissingExtraError
from unblur.workspace import Workspace

if TYPE_CHECKING:
    from distributed import Client

R = TypeVar("R")
Task = tuple[Any, ...]
Scheduler: TypeAlias = "str | Client"
"""A Dask cluster: the address of its scheduler, or a client that is connected to it."""
CONNECT = 10
"""Seconds to wait for a scheduler, and for its first worker."""
WORTH_SENDING = 0.1
"""Seconds of work that are worth a round trip, which takes some hundredths of that."""
MOST_AT_ONCE = 64
PATIENCE = 60
"""Seconds after which workers that are gone are missed."""
_ADDRESS = re.compile(r"(?:(?:tcp|tls|wss?)://)?(?:[\w.-]+|\[[0-9a-fA-F:.]+\]):([0-9]{1,5})", re.ASCII)
_MEANT = "an address tcp://HOST:PORT is meant, such as tcp://127.0.0.1:8786"


def check_address(scheduler: str) -> None:
    """Refuse what cannot be the address of a scheduler."""
    found = _ADDRESS.fullmatch(scheduler)
    if not found or not 1 <= int(found[1]) <= 65535:
        raise ConfigError(f"--scheduler {scheduler}: {_MEANT}")


def spread(
    function: Callable[..., R],
    shared: Any,
    tasks: Iterable[Task],
    *,
    jobs: int = 1,
    scheduler: Scheduler | None = None,
) -> Generator[R, None, None]:
    """Call `function(shared, *task)` for every task, several at a time; the results come in the order of the tasks."""
    if scheduler is not None:
        yield from _on_cluster(function, shared, tasks, scheduler)
    elif jobs > 1:
        yield from _on_this_machine(function, shared, tasks, jobs)
    else:
        yield from (function(shared, *task) for task in tasks)


def _on_this_machine(
    function: Callable[..., R], shared: Any, tasks: Iterable[Task], jobs: int
) -> Generator[R, None, None]:
    from joblib import Parallel, delayed, dump

    with Workspace() as workspace:  # for its owner's eyes only
        path = workspace.new_path("shared")
        dump(shared, path)
        calls = (delayed(_call)(path, os.getpid(), function, task) for task in tasks)
        with closing(Parallel(n_jobs=jobs, return_as="generator")(calls)) as stream:
            yield from stream


def _call(path: Path, owner: int, function: Callable[..., R], task: Task) -> R:
    """Do one task in a process that has read once what all share."""
    if os.getpid() != owner and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return function(_read(path), *task)


@lru_cache(maxsize=1)
def _read(path: Path) -> Any:
    from joblib import load

    return load(path)


def _on_cluster(
    function: Callable[..., R], shared: Any, tasks: Iterable[Task], scheduler: Scheduler
) -> Generator[R, None, None]:
    """Let Dask do the work: a task whose worker dies is done again by another.

    Short tasks are sent several at a time, as many as take `WORTH_SENDING`. Only a few batches more than there are
    cores wait at the cluster, so that a task that is asked for late is posed late.
    """
    with _connected(scheduler) as client:
        room, waiting, size = 2 * _cores(client) + 2, deque[Any](), 1
        sent = client.scatter(shared, broadcast=True, hash=False)
        left = iter(tasks)
        try:
            while (batch := list(islice(left, size))) or waiting:
                if batch:
                    waiting.append(client.submit(_do_all, function, sent, batch, pure=False))
                if len(waiting) >= room or not batch:
                    for results, seconds in _results(client, waiting):
                        size = max(1, min(2 * size, MOST_AT_ONCE, int(WORTH_SENDING / seconds)))
                        yield from results
        finally:
            client.cancel(list(waiting))


def _do_all(function: Callable[..., R], shared: Any, tasks: list[Task]) -> tuple[list[R], float]:
    """Do some tasks; also tell how long each took."""
    start = perf_counter()
    results = [function(shared, *task) for task in tasks]
    return results, max(1e-6, (perf_counter() - start) / len(tasks))


def _results(client: Any, waiting: deque[Any]) -> list[Any]:
    """Fetch the results of the first batches that are done, on one way; if there is none, wait for the first."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker

    address = client.scheduler.address
    done = []
    while waiting and waiting[0].done():
        done.append(waiting.popleft())
    try:
        return list(client.gather(done)) if done else [_patiently(client, waiting.popleft())]
    except (KilledWorker, CancelledError, OSError) as error:
        raise ClusterError(
            f"--scheduler {address}: the cluster gave up ({type(error).__name__}); nothing was written"
        ) from error
    except RuntimeError as error:
        if "deserialization" not in str(error):
            raise
        same = "install the same version here and on every machine of the cluster"
        raise ClusterError(f"--scheduler {address}: it has no unblur, or another version; {same}") from error


def _patiently(client: Any, future: Any) -> Any:
    """Wait for a task as long as there are workers; new ones may come in place of those that went."""
    while True:
        try:
            return future.result(timeout=PATIENCE)
        except TimeoutError:
            if not client.ncores():
                address = client.scheduler.address
                raise ClusterError(f"--scheduler {address}: all workers are gone; nothing was written") from None


@contextmanager
def _connected(scheduler: Scheduler) -> Generator[Any, None, None]:
    """Connect to a cluster; the user's own client is taken as it is, and left open."""
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingExtraError("a scheduler", "dask") from error
    if not isinstance(scheduler, str):
        yield scheduler
        return
    check_address(scheduler)
    client: Any = Client.__new__(Client)
    try:
        client.__init__(scheduler, timeout=CONNECT, set_as_default=False)
    except (OSError, ValueError, TypeError, TimeoutError) as error:
        with suppress(Exception):
            client.close(timeout=1)
        client.status = "closed"  # or it would try again at its end, and complain
        what = f"{_MEANT}, with a Dask scheduler that answers"
        raise ConfigError(f"--scheduler {scheduler}: cannot be reached; {what}") from error
    with client as connected:
        yield connected


def _cores(client: Any) -> int:
    """Count the cores of a cluster, which must have some."""
    found = int(sum(client.ncores().values()))
    if not found:
        raise ConfigError(f"--scheduler {client.scheduler.address}: it has no workers; start some")
    return found
