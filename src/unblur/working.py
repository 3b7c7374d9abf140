"""The classes of a release worked off: one after the other or several at a time, until all is done or time is up."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from unblur.ablation import Ablation, ablate
from unblur.attacking import Attack, Target
from unblur.counting.deadline import OutOfTime, deadline
from unblur.counting.problem import Records
from unblur.errors import ProgramError
from unblur.refining import Engine, Refinement, refine, refine_by_enumeration
from unblur.risk import Finding, find, find_cell, with_truth
from unblur.scheduling import Scheduler, spread
from unblur.truth import Truth

Progress = Callable[[int, int], None]
Number = int | None
"""A class by its index; None for the outliers."""
MOST_AT_ONCE = 200
"""How many classes are sent to a process at a time."""


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
        if number is not None and self._is_settled(number):
            return Result(find_cell(self.attack, number, self.records), None)
        target = self._target(number)
        finding = self._state(number, target, self._refine(target, seconds))
        effects = ablate(self.attack, target, self.records) if self.with_ablation and not finding.basic else None
        return Result(finding, effects)

    def _is_settled(self, number: int) -> bool:
        """Whether a class needs no counting, nor a comparison with the raw table."""
        return self.engine == "exact" and self.truth is None and self.attack.is_free_cell(number)

    def unfinished(self, number: Number) -> Finding:
        """State what is published about a class that the attack did not come to."""
        return self._state(number, self._target(number))

    def _target(self, number: Number) -> Target:
        target = self.attack.outliers() if number is None else self.attack.target(number)
        assert target is not None, "there are no outliers"
        return target

    def _state(self, number: Number, target: Target, left: Refinement | None = None) -> Finding:
        finding = find(self.attack, number, target, self.records, left)
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
    scheduler: Scheduler | None = None
    """A Dask cluster that does the work instead of this machine."""
    stopped: str = ""
    """Why it ended early; empty if it did not."""
    interrupted: bool = False
    _end: float | None = field(default=None, init=False)

    def done(self, *, keep: bool) -> list[Result]:
        """Do the work; if it is stopped, return what there is."""
        self._end = time.monotonic() + self.budget if self.budget else None
        results: list[Result] = []
        try:
            with closing(self._chunks()) as stream:
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

    def _chunks(self) -> Generator[_Chunk, None, None]:
        """Neighbouring classes together, so that less time is spent on sending them."""
        several = self.jobs > 1 or self.scheduler is not None
        size = max(1, min(MOST_AT_ONCE, len(self.numbers) // (max(self.jobs, 2) * 8))) if several else 1
        if several:
            assert self.job.attack.overlaps is not None, "found here, once, and sent along"
        tasks = (
            (self.numbers[start : start + size], self._share(start), self._seconds_left())
            for start in range(0, len(self.numbers), size)
        )
        return spread(_run, self.job, tasks, jobs=self.jobs, scheduler=self.scheduler)

    def _share(self, done: int) -> float | None:
        """How long the next class may be enumerated, if each of those left is to have its share."""
        if self._end is None or self.job.engine == "exact":
            return None
        return max(0.01, (self._end - time.monotonic()) * self.jobs / (len(self.numbers) - done))

    def _seconds_left(self) -> float | None:
        """How long an exact count may take; each process has a clock of its own."""
        if self._end is None or self.job.engine != "exact":
            return None
        return max(0.0, self._end - time.monotonic())

    def seconds_left(self) -> float | None:
        """What is left of the budget; None if there is none."""
        return None if self._end is None else max(0.1, self._end - time.monotonic())

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


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 'es' if what == 'class' else 's'}"
