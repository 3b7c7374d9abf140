"""The classes of a release worked off: one after the other or several at a time, until all is done or time is up."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from unblur.ablation import Ablation, ablate
from unblur.attacking import Attack, Target
from unblur.counting.deadline import OutOfTime, deadline
from unblur.counting.problem import Records
from unblur.errors import ProgramError
from unblur.refining import Engine, Refinement, refine, refine_by_enumeration
from unblur.risk import Finding, find, with_truth
from unblur.truth import Truth

Progress = Callable[[int, int], None]
Number = int | None
"""A class by its index; None for the outliers."""


@dataclass(frozen=True)
class Result:
    """What was found out about one class."""

    finding: Finding
    effects: Ablation | None


@dataclass(frozen=True)
class Job:
    """What is done with each class."""

    attack: Attack
    engine: Engine
    records: Records
    truth: Truth | None
    with_ablation: bool

    def run(self, number: Number, seconds: float | None = None) -> Result:
        """Attack one class; an enumeration may take so many seconds."""
        target = self._target(number)
        finding = replace(self._state(number, target), refinement=self._refine(target, seconds))
        effects = ablate(self.attack, target, self.records) if self.with_ablation and not finding.basic else None
        return Result(finding, effects)

    def unfinished(self, number: Number) -> Finding:
        """State what is published about a class that the attack did not come to."""
        return self._state(number, self._target(number))

    def _target(self, number: Number) -> Target:
        target = self.attack.outliers() if number is None else self.attack.target(number)
        assert target is not None, "there are no outliers"
        return target

    def _state(self, number: Number, target: Target) -> Finding:
        finding = find(self.attack, number, target, self.records)
        if self.truth is None or (number is None and self.attack.release.config.missing):
            return finding
        placement = self.truth.outliers if number is None else self.truth.classes[number]
        return with_truth(finding, self.attack, target, placement, self.truth.totals, self.records)

    def _refine(self, target: Target, seconds: float | None) -> Refinement | None:
        if self.engine == "exact":
            return refine(self.attack, target, self.records)
        try:
            return refine_by_enumeration(self.attack, target, self.records, seconds=seconds)
        except ProgramError:
            return None


@dataclass
class Work:
    """All classes, in their order, until the budget is used up."""

    job: Job
    numbers: Sequence[Number]
    jobs: int
    budget: float | None
    progress: Progress
    stopped: str = ""
    """Why it ended early; empty if it did not."""
    interrupted: bool = False
    _end: float | None = field(default=None, init=False)

    def done(self, *, keep: bool) -> list[Result]:
        """Do the work; if it is stopped, return what there is."""
        self._end = time.monotonic() + self.budget if self.budget else None
        results: list[Result] = []
        try:
            with closing(self._one_by_one() if self.jobs == 1 else self._in_parallel()) as stream:
                for some, complete in stream:
                    results += some
                    self.progress(len(results), len(self.numbers))
                    if not complete or (self._is_over() and len(results) < len(self.numbers)):
                        self.stopped = f"the budget of {self.budget:g} s was used up"
                        break
        except KeyboardInterrupt:
            if not keep:
                raise
            self.interrupted, self.stopped = True, "it was interrupted"
        return results

    def notes(self, done: Sequence[Result]) -> Iterator[str]:
        """Say what was not done, and what is only a bound."""
        left = self.numbers[len(done) :]
        if left:
            classes = sum(number is not None for number in left)
            what = [f"{classes:,} of {len(self.job.attack.release.classes):,} classes"] if classes else []
            what += ["the outliers"] if None in left else []
            yield f"not analysed, since {self.stopped}: {' and '.join(what)}"
        refinements = [each.finding.refinement for each in done]
        if too_large := refinements.count(None):
            yield f"not analysed, since the program is too large to be enumerated: {_counted(too_large, 'class')}"
        counted = [each.counted for each in refinements if each]
        if at_most := counted.count("at_most"):
            which = _counted(at_most, "count")
            yield f"an upper bound, since a rule was left out that would take too long to count: {which}"
        if at_least := counted.count("at_least"):
            yield f"a lower bound, since the enumeration was not finished in time: {_counted(at_least, 'count')}"

    def _one_by_one(self) -> Generator[_Chunk, None, None]:
        for done, number in enumerate(self.numbers):
            yield _run(self.job, [number], self._share(done, 1), self._seconds_left())

    def _in_parallel(self) -> Generator[_Chunk, None, None]:
        from joblib import Parallel, delayed, dump

        assert self.job.attack.overlaps is not None, "found here, once, and sent along"
        size = max(1, min(200, len(self.numbers) // (self.jobs * 8)))
        with TemporaryDirectory(prefix="unblur-") as folder:  # for its owner's eyes only
            path = Path(folder) / "job"
            dump(self.job, path)
            tasks = (
                delayed(_run_file)(
                    path,
                    os.getpid(),
                    self.numbers[start : start + size],
                    self._share(start, self.jobs),
                    self._seconds_left(),
                )
                for start in range(0, len(self.numbers), size)
            )
            with closing(Parallel(n_jobs=self.jobs, return_as="generator")(tasks)) as stream:
                yield from stream

    def _share(self, done: int, jobs: int) -> float | None:
        """How long the next class may be enumerated, if each of those left is to have its share."""
        if self._end is None or self.job.engine == "exact":
            return None
        return max(0.01, (self._end - time.monotonic()) * jobs / (len(self.numbers) - done))

    def _seconds_left(self) -> float | None:
        """How long an exact count may take; each process has a clock of its own."""
        if self._end is None or self.job.engine != "exact":
            return None
        return max(0.0, self._end - time.monotonic())

    def _is_over(self) -> bool:
        return self._end is not None and time.monotonic() > self._end


_Chunk = tuple[list[Result], bool]
"""Results of neighbouring classes, and whether all of them were done."""


def _run(job: Job, numbers: Sequence[Number], share: float | None, seconds: float | None) -> _Chunk:
    results: list[Result] = []
    with deadline(seconds):
        try:
            for number in numbers:
                results.append(job.run(number, share))
        except OutOfTime:
            return results, False
    return results, True


def _run_file(path: Path, owner: int, numbers: Sequence[Number], share: float | None, seconds: float | None) -> _Chunk:
    """Do a part of the job in a process that has read it once."""
    if os.getpid() != owner and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that collects
    return _run(_read_job(path), numbers, share, seconds)


@lru_cache(maxsize=1)
def _read_job(path: Path) -> Job:
    from joblib import load

    job = load(path)
    assert isinstance(job, Job)
    return job


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 'es' if what == 'class' else 's'}"
