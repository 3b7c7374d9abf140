"""Cases: what one user, in one tab, works on. Each has a private folder that goes with it.

The folder of all cases is locked for as long as the server lives. One that nobody holds any more was left behind by a
server that was killed; the next server removes it.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

from unblur.web.forms import Setting
from unblur.web.jobs import Job, Queue
from unblur.web.looks import Profile
from unblur.web.uploads import Upload, names_of
from unblur.workspace import Workspace

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

Kind = Literal["release", "raw"]
LOCK = "server.lock"
MOST_CASES = 200


@dataclass
class Case:
    """What one tab works on: its files, their description, its jobs."""

    id: str
    """Known only to the page that it was made for."""
    owner: str
    kind: Kind
    folder: Path
    files: dict[str, Upload] = field(default_factory=dict)
    """The release or raw table as `table`, the raw table beside a release as `truth`, hierarchy files by column."""
    profile: Profile | None = None
    setting: Setting | None = None
    proposal: Setting | None = None
    """What was proposed at first; None where nothing was."""
    jobs: list[Job] = field(default_factory=list)
    is_demo: bool = False
    memory: dict[str, Any] = field(default_factory=dict)
    """What was found out before and may be asked for again."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    touched: float = field(default_factory=time.monotonic)

    @property
    def names(self) -> dict[str, str]:
        """What the user calls the files behind paths."""
        return {**names_of(self.files), f"{self.folder}/": ""}

    @property
    def copy(self) -> Path:
        """The table as our own process wrote it down."""
        return self.folder / "job-1" / "table.parquet"

    @property
    def results(self) -> list[Job]:
        """The audits that are done."""
        return [job for job in self.jobs if job.figures]

    def new_job(self, title: str, task: dict[str, Any]) -> Job:
        """Prepare the next job."""
        number = len(self.jobs) + 1
        job = Job(number, title, self.folder / f"job-{number}", {**task, "names": self.names}, self.names)
        self.jobs.append(job)
        return job


class Cases:
    """All cases of a server."""

    def __init__(self, queue: Queue, *, idle: float) -> None:
        remove_leftovers()
        self._workspace, self._queue, self._idle = Workspace(), queue, idle
        self._cases: dict[str, Case] = {}
        self._change = threading.Lock()
        self._lock = _hold(self._workspace.folder / LOCK)

    @property
    def folder(self) -> Path:
        return self._workspace.folder

    def open(self, owner: str, kind: Kind) -> Case:
        """Begin a case."""
        self.sweep()
        case = Case(secrets.token_urlsafe(16), owner, kind, self.folder / f"case-{secrets.token_hex(8)}")
        case.folder.mkdir(mode=0o700)
        with self._change:
            self._cases[case.id] = case
        return case

    def find(self, owner: str, id: str) -> Case | None:
        """Find a case of this owner."""
        case = self._cases.get(id)
        if case is None or case.owner != owner:
            return None
        case.touched = time.monotonic()
        return case

    def close(self, case: Case) -> None:
        """End a case: its jobs are stopped, its files removed."""
        with self._change:
            self._cases.pop(case.id, None)
        for job in case.jobs:
            self._queue.cancel(job)
        _remove(case.folder)

    def sweep(self) -> None:
        """End the cases that nobody has asked for in a long time, and the oldest if there are too many."""
        now = time.monotonic()
        listed = sorted(self._cases.values(), key=lambda case: case.touched)
        crowd = max(0, len(listed) - MOST_CASES)
        for place, case in enumerate(listed):
            busy = any(not job.over for job in case.jobs)
            if place < crowd or (now - case.touched > self._idle and not busy):
                self.close(case)

    def close_all(self) -> None:
        """End all cases, and remove everything."""
        for case in list(self._cases.values()):
            self.close(case)
        if self._lock is not None:
            self._lock.close()
        _remove(self.folder)
        self._workspace.close()

    def __len__(self) -> int:
        return len(self._cases)


def _remove(folder: Path) -> None:
    """Remove a folder; a process that is just ending may still write into it."""
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.05)


def _hold(path: Path) -> IO[bytes] | None:
    if fcntl is None:
        return None
    file = path.open("wb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise
    return file


def remove_leftovers() -> None:
    """Remove the folders of servers that were killed."""
    with Workspace() as workspace:
        beside = workspace.folder.parent
    for lock in _locks(beside):
        with contextlib.suppress(OSError):
            held = _hold(lock)
            if held is not None:
                shutil.rmtree(lock.parent, ignore_errors=True)
                held.close()


def _locks(folder: Path) -> Iterator[Path]:
    if fcntl is not None:
        with contextlib.suppress(OSError):
            yield from folder.glob(f"unblur-*/{LOCK}")


def every(seconds: float, action: Callable[[], None], ended: threading.Event) -> None:
    """Do something again and again until an event is set."""
    while not ended.wait(seconds):
        action()
