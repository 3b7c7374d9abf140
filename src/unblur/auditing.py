"""From a release to its audit: attack every class and the outliers, within a budget, on several cores."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Literal

from unblur.ablation import Ablation, ablate
from unblur.attacking import Attack, Target, inference_of
from unblur.audits import Audit, Scope, Settings
from unblur.config import Mechanism
from unblur.counting.problem import Records
from unblur.detecting import alternatives
from unblur.errors import ConfigError, ProgramError
from unblur.findings import Findings
from unblur.grid import Grid
from unblur.leaks import find_leaks
from unblur.mechanisms import Order
from unblur.refining import Engine, Refinement, refine, refine_by_enumeration
from unblur.release import Release
from unblur.replay import replay as replay_release
from unblur.risk import Finding, find, with_truth
from unblur.truth import Cell, Truth, read_truth
from unblur.workspace import Workspace

Progress = Callable[[int, int], None]
Number = int | None
"""A class by its index; None for the outliers."""


def audit(
    release: Release,
    *,
    truth: Any = None,
    id: str | None = None,
    replay: bool = False,
    mechanism: str | Mechanism | None = None,
    order: Order = "sound",
    records: Records | None = None,
    attack: Scope = "class",
    engine: Engine = "exact",
    ablation: bool = False,
    jobs: int = 1,
    budget: float | None = None,
    progress: Progress = lambda done, of: None,
    on_interrupt: Literal["raise", "keep"] = "raise",
) -> Audit:
    """Find out what a release gives away.

    `truth` is the raw table, if you have it: its rows are matched by position, or by the column `id`.
    With `replay=True` it is anonymized again, and the rows are compared.
    `mechanism` and `records` stand in the config of the release; here they can be replaced.
    `engine="cpsat"` enumerates as the paper does; `budget` limits the time in seconds, and what was not done is said.
    `ablation=True` also counts with each rule left out. `on_interrupt="keep"` makes of Ctrl-C what it makes of a
    budget that is used up.
    """
    for name, value, known in (
        ("order", order, ("sound", "paper")),
        ("engine", engine, ("exact", "cpsat")),
        ("records", records or "any", ("any", "distinct")),
        ("attack", attack, ("class",)),
    ):
        if value not in known:
            raise ConfigError(f"{name} must be {' or '.join(known)}, not {value!r}")
    if jobs < 1 or (budget is not None and budget <= 0):
        raise ConfigError("jobs must be 1 or more, and a budget more than 0 seconds")
    if (id is not None or replay) and truth is None:
        raise ConfigError("id and replay are about the raw table; give truth, too")
    stated = mechanism or release.config.mechanism
    chosen = mechanism_of(release, mechanism)
    inference = inference_of(chosen, release, order)
    plan = Attack(release.bare(), inference)
    settings = Settings(attack, engine, order, records or release.config.records)
    known_rows = _read_truth(truth, release, id) if truth is not None else None
    replayed = replay_release(release, truth, chosen, id=id) if replay else None
    job = _Job(plan, engine, settings.records, known_rows, ablation)
    numbers: list[Number] = list(range(len(release.classes)))
    notes = []
    if release.outliers and (missing := _missing(release)):
        notes.append(
            f"nothing is claimed about the outliers: {missing:,} of them were suppressed for a missing or impossible "
            "value, not by the recoding"
        )
    elif release.outliers:
        numbers.append(None)
    if chosen.name == "arx" and chosen.settings.get("gs_factor"):
        notes.append(
            "with a gs_factor above 0 ARX weighs suppression against generalization, so that a cheaper state need not "
            "have been unusable: only the order of nested states was used, as under iterative"
        )
    work = _Work(job, numbers, jobs, budget, progress)
    done = work.done(keep=on_interrupt == "keep")
    notes += work.notes(done)
    findings = [each.finding for each in done]
    findings += [job.unfinished(number) for number in numbers[len(done) :]]
    if release.outliers and None not in numbers:
        findings.append(job.unfinished(None))
    effects = [each.effects for each in done if each.effects]
    return Audit(
        release,
        chosen,
        settings,
        Findings(tuple(findings[: len(release.classes)])),
        findings[-1] if release.outliers else None,
        misfits=tuple(inference.misfits()),
        alternatives=alternatives(plan.release, records=settings.records) if stated is None else (),
        ablation=Ablation.over(effects) if ablation else None,
        not_done=len(numbers) - sum(each.finding.refinement is not None for each in done),
        leaks=find_leaks(release, matched_by_position=truth is not None and id is None),
        replay=replayed,
        notes=tuple(notes),
        interrupted=work.interrupted,
    )


def mechanism_of(release: Release, mechanism: str | Mechanism | None = None) -> Mechanism:
    """Return the mechanism that was chosen, or that the config names, or what holds for every local recoding."""
    if isinstance(mechanism, str):
        return Mechanism.named(mechanism)
    return mechanism or release.config.mechanism or Mechanism("iterative")


def _read_truth(truth: Any, release: Release, id: str | None) -> Truth:
    with Workspace() as workspace:
        found = read_truth(truth, release, release.open_rows(workspace), id_column=id)
    grid, totals = Grid(release.config.lattice), Counter[Cell]()
    for cell, n in found.totals.items():
        totals[grid.leaf(cell)] += n
    return replace(found, totals=totals)


def _missing(release: Release) -> int:
    found = release.config.made.get("missing", 0)
    return found if isinstance(found, int) else 0


@dataclass(frozen=True)
class _Result:
    finding: Finding
    effects: Ablation | None


@dataclass(frozen=True)
class _Job:
    """What is done with each class; sent to the processes that do it."""

    attack: Attack
    engine: Engine
    records: Records
    truth: Truth | None
    with_ablation: bool

    def run(self, number: Number, seconds: float | None = None) -> _Result:
        target = self._target(number)
        finding = replace(self._state(number, target), refinement=self._refine(target, seconds))
        effects = ablate(self.attack, target, self.records) if self.with_ablation and not finding.basic else None
        return _Result(finding, effects)

    def unfinished(self, number: Number) -> Finding:
        return self._state(number, self._target(number))

    def _target(self, number: Number) -> Target:
        target = self.attack.outliers() if number is None else self.attack.target(number)
        assert target is not None, "there are no outliers"
        return target

    def _state(self, number: Number, target: Target) -> Finding:
        finding = find(self.attack, number, target, self.records)
        if self.truth is None or (number is None and _missing(self.attack.release)):
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
class _Work:
    """All classes, one after the other or several at a time, until the budget is used up."""

    job: _Job
    numbers: Sequence[Number]
    jobs: int
    budget: float | None
    progress: Progress
    stopped: str = ""
    interrupted: bool = False

    def done(self, *, keep: bool) -> list[_Result]:
        """Do the work; if it is stopped, return what there is."""
        self._end = time.monotonic() + self.budget if self.budget else None
        results: list[_Result] = []
        try:
            with closing(self._results()) as stream:
                for result in stream:
                    results.append(result)
                    self.progress(len(results), len(self.numbers))
                    if self._end is not None and time.monotonic() > self._end and len(results) < len(self.numbers):
                        self.stopped = f"the budget of {self.budget:g} s was used up"
                        break
        except KeyboardInterrupt:
            if not keep:
                raise
            self.interrupted, self.stopped = True, "it was interrupted"
        return results

    def notes(self, done: Sequence[_Result]) -> Iterator[str]:
        """Say what was not done, and what is only a bound."""
        left = self.numbers[len(done) :]
        if left:
            classes = sum(number is not None for number in left)
            what = [f"{classes:,} of {len(self.job.attack.release.classes):,} classes"] if classes else []
            what += ["the outliers"] if None in left else []
            yield f"{' and '.join(what)} were not analysed: {self.stopped}"
        refinements = [each.finding.refinement for each in done]
        if too_large := refinements.count(None):
            yield f"{too_large:,} classes were not analysed: their programs are too large to be enumerated"
        counted = [each.counted for each in refinements if each]
        if at_most := counted.count("at_most"):
            yield f"{at_most:,} counts are upper bounds: a rule was left out that would take too long to count"
        if at_least := counted.count("at_least"):
            yield f"{at_least:,} counts are lower bounds: the enumeration was not finished in time"

    def _results(self) -> Generator[_Result, None, None]:
        if self.jobs == 1:
            yield from (self.job.run(number, self._share(done, 1)) for done, number in enumerate(self.numbers))
            return
        from joblib import Parallel, delayed

        size = max(1, min(200, len(self.numbers) // (self.jobs * 8)))
        tasks = (
            delayed(_run_many)(self.job, self.numbers[start : start + size], self._share(start, self.jobs))
            for start in range(0, len(self.numbers), size)
        )
        assert self.job.attack.overlaps is not None, "found here, once, and sent along"
        with closing(Parallel(n_jobs=self.jobs, return_as="generator")(tasks)) as stream:
            for results in stream:
                yield from results

    def _share(self, done: int, jobs: int) -> float | None:
        """How long the next class may take, if each of those left is to have its share."""
        if self._end is None or self.job.engine == "exact":
            return None
        return max(0.01, (self._end - time.monotonic()) * jobs / (len(self.numbers) - done))


def _run_many(job: _Job, numbers: Sequence[Number], seconds: float | None) -> list[_Result]:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that collects
    return [job.run(number, seconds) for number in numbers]
