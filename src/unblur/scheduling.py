"""Work spread over processes of this machine, or over a Dask cluster; results come back in order.

What all tasks share is sent once per process, not once per task. Ctrl-C is for the process that collects: the others
ignore it and are ended by it.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, closing, contextmanager
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from unblur.errors import ClusterError, ConfigError, MissingExtraError

if TYPE_CHECKING:
    from distributed import Client

R = TypeVar("R")
Task = tuple[Any, ...]
Scheduler: TypeAlias = "str | Client"
"""A Dask cluster: the address of its scheduler, or a client that is connected to it."""
CONNECT = 10
"""Seconds to wait for a scheduler, and for its first worker."""
PATIENCE = 60
"""Seconds after which workers that are gone are missed."""


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

    with TemporaryDirectory(prefix="unblur-") as folder:  # for its owner's eyes only
        path = Path(folder) / "shared"
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

    Only a few tasks more than there are cores wait at the cluster, so that one that is asked for late is posed late.
    """
    with _connected(scheduler) as client:
        room, waiting = 2 * _cores(client) + 2, deque[Any]()
        sent = client.scatter(shared, broadcast=True, hash=False)
        try:
            for task in tasks:
                waiting.append(client.submit(function, sent, *task, pure=False))
                if len(waiting) >= room:
                    yield from _results(client, waiting)
            while waiting:
                yield from _results(client, waiting)
        finally:
            client.cancel(list(waiting))


def _results(client: Any, waiting: deque[Any]) -> list[Any]:
    """Wait for the first task; fetch its result, together with those of the next ones that are done, too."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker

    address = client.scheduler.address
    first, more = waiting.popleft(), []
    try:
        found = [_patiently(client, first)]
        while waiting and waiting[0].done():
            more.append(waiting.popleft())
        return found + (list(client.gather(more)) if more else [])
    except (KilledWorker, CancelledError, OSError) as error:
        raise ClusterError(
            f"--scheduler {address}: the cluster gave up ({type(error).__name__}); nothing was written"
        ) from error


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
    try:
        connect: Callable[..., AbstractContextManager[Any]] = Client
        client = connect(scheduler, timeout=CONNECT, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        what = "an address such as tcp://127.0.0.1:8786, with a Dask scheduler that answers, is meant"
        raise ConfigError(f"--scheduler {scheduler}: cannot be reached; {what}") from error
    with client as connected:
        yield connected


def _cores(client: Any) -> int:
    """Count the cores of a cluster, which must have some."""
    found = int(sum(client.ncores().values()))
    if not found:
        raise ConfigError(f"--scheduler {client.scheduler.address}: it has no workers; start some")
    return found
