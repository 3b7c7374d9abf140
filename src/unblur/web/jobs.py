"""Jobs: each in a process of its own, so many at a time as there are workers; the others wait in order."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from unblur.web.words import in_page_words, sentence
from unblur.web.worker import PROBLEM, REMARKS, TASK

State = Literal["waiting", "running", "done", "failed", "cancelled"]
OVER: tuple[State, ...] = ("done", "failed", "cancelled")


@dataclass
class Job:
    """Something that is done for a case in a folder of its own."""

    number: int
    title: str
    folder: Path
    task: Mapping[str, Any]
    names: Mapping[str, str]
    """What the user calls the files behind paths, for messages."""
    state: State = "waiting"
    stage: str = ""
    done: int = 0
    of: int = 0
    problem: str = ""
    """Why it failed, in a sentence."""
    ours: bool = False
    """Whether that is a fault of this program, not of the files."""
    notes: tuple[str, ...] = ()
    figures: dict[str, Any] = field(default_factory=dict)
    """What the case keeps of the result."""
    process: subprocess.Popen[bytes] | None = None

    @property
    def over(self) -> bool:
        return self.state in OVER

    def read(self, name: str) -> Any:
        """Read a JSON file that the job has left."""
        return json.loads((self.folder / name).read_text(encoding="utf-8"))


class Queue:
    """Runs jobs, a few at a time."""

    def __init__(self, workers: int) -> None:
        self._waiting: deque[Job] = deque()
        self._change = threading.Condition()
        self._closed = False
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(workers)]
        for each in self._threads:
            each.start()

    def add(self, job: Job) -> None:
        """Put a job at the end of the queue."""
        job.folder.mkdir(mode=0o700, exist_ok=True)
        (job.folder / TASK).write_text(json.dumps(job.task), encoding="utf-8")
        with self._change:
            self._waiting.append(job)
            self._change.notify_all()  # some who wait here wait for something else

    def ahead(self, job: Job) -> int:
        """How many jobs wait before this one."""
        with self._change:
            return self._waiting.index(job) if job in self._waiting else 0

    def cancel(self, job: Job) -> None:
        """Stop a job, or do not begin it."""
        with self._change:
            if job.over:
                return
            job.state = "cancelled"
            if job in self._waiting:
                self._waiting.remove(job)
            _kill(job)

    def close(self) -> None:
        """Stop everything."""
        with self._change:
            self._closed = True
            for job in self._waiting:
                job.state = "cancelled"
            self._waiting.clear()
            self._change.notify_all()
        for each in self._threads:
            each.join(timeout=5)

    def _work(self) -> None:
        while (job := self._next()) is not None:
            try:
                self._run(job)
            except Exception as error:  # whatever it is: the next job must run
                job.problem, job.ours = f"The job could not be started ({type(error).__name__}).", True
                job.state = "failed"
            finally:
                shutil.rmtree(job.folder / "temporary", ignore_errors=True)

    def _next(self) -> Job | None:
        with self._change:
            self._change.wait_for(lambda: self._waiting or self._closed)
            return None if self._closed else self._waiting.popleft()

    def _run(self, job: Job) -> None:
        with self._change:
            if job.state == "cancelled":
                return
            job.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "unblur.web.worker", str(job.folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=job.folder,
                start_new_session=True,  # so that its own children can be ended with it
            )
            job.state = "running"
        with job.process as process:
            watch = threading.Thread(target=_follow, args=(job, process), daemon=True)
            watch.start()
            while process.poll() is None:
                with self._change:
                    if self._change.wait_for(lambda: self._closed, timeout=0.05):
                        _kill(job)
            _kill(job)
            watch.join(timeout=2)
            status = process.returncode
        with self._change:
            if not job.over:
                job.state = "cancelled" if self._closed else _outcome(job, status)


def _follow(job: Job, process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            told = json.loads(line)
            job.stage, job.done, job.of = str(told["stage"]), int(told["done"]), int(told["of"])


def _kill(job: Job) -> None:
    """End the job's process and those that it has started."""
    if job.process is not None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(job.process.pid, signal.SIGKILL)


def _outcome(job: Job, status: int) -> State:
    if status == 0:
        job.notes = tuple(sentence(in_page_words(each, job.names)) for each in job.read(REMARKS))
        return "done"
    if (job.folder / PROBLEM).exists():
        told = job.read(PROBLEM)
        job.ours = told["ours"]
        job.problem = sentence(told["message"] if job.ours else in_page_words(told["message"], job.names))
    else:
        job.problem, job.ours = f"The process ended before its time (status {status}); was there enough memory?", True
    return "failed"
