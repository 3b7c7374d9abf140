"""The trials of a protocol run, several at a time, each written down when done: what is there is not run again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unblur.errors import ConfigError, OutputError
from unblur.output import Outputs
from unblur.paper.jointly import Extra, attack_jointly, joint_trials
from unblur.paper.protocol import Outcome, Protocol, Trial, attack
from unblur.paper.results import Results
from unblur.paper.timing import Timings, measure
from unblur.scheduling import Scheduler, spread

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Logbook:
    """A folder with a file per trial, another for its times, and one for its classes seen together."""

    folder: Path

    def open(self, protocol: Protocol) -> None:
        """Begin, or go on with what is there if it is of the same protocol."""
        path, entries = self.folder / "protocol.json", protocol.to_dict()
        known = _read(path)
        if known is None:
            _write(path, entries)
        elif known != entries:
            differ = ", ".join(sorted(name for name in {*known, *entries} if known.get(name) != entries.get(name)))
            raise ConfigError(
                f"{path}: this folder has results of another run (it differs in {differ}); choose another folder, "
                "or remove it"
            )

    def outcome(self, trial: Trial) -> Outcome | None:
        """What was written down of a trial; None if nothing was."""
        found = _read(self._outcome_path(trial))
        return Outcome.from_dict(found) if found else None

    def timings(self, trial: Trial) -> Timings | None:
        """How long a trial took; None if it was not measured."""
        found = _read(self._timings_path(trial))
        return Timings.from_dict(found) if found else None

    def extra(self, trial: Trial) -> Extra | None:
        """What the classes of a trial say together; None if they were not attacked so."""
        found = _read(self._extra_path(trial))
        return Extra.from_dict(found) if found else None

    def extras(self, protocol: Protocol) -> dict[Trial, Extra]:
        """All that was found out about classes seen together."""
        found = {trial: self.extra(trial) for trial in protocol.trials}
        return {trial: extra for trial, extra in found.items() if extra}

    def write(self, outcome: Outcome) -> None:
        """Write down a trial."""
        _write(self._outcome_path(outcome.trial), outcome.to_dict())

    def write_timings(self, trial: Trial, timings: Timings) -> None:
        """Write down how long a trial took."""
        _write(self._timings_path(trial), timings.to_dict())

    def write_extra(self, extra: Extra) -> None:
        """Write down what the classes of a trial say together."""
        _write(self._extra_path(extra.trial), extra.to_dict())

    def _outcome_path(self, trial: Trial) -> Path:
        return self.folder / "trials" / f"{trial.name}.json"

    def _timings_path(self, trial: Trial) -> Path:
        return self.folder / "times" / f"{trial.name}.json"

    def _extra_path(self, trial: Trial) -> Path:
        return self.folder / "joint" / f"{trial.name}.json"


def run_all(
    protocol: Protocol,
    logbook: Logbook,
    *,
    jobs: int = 1,
    scheduler: Scheduler | None = None,
    solver_budget: float | None = None,
    progress: Progress = lambda done, of: None,
) -> Results:
    """Run all trials that are not written down yet; the solver's seconds are for the whole grid, on every core."""
    assert protocol.rows, "read once, before anything is written, and sent along"
    logbook.open(protocol)
    seconds = None if solver_budget is None else solver_budget * jobs / len(protocol.trials)
    left = [trial for trial in protocol.trials if not _is_done(logbook, trial, seconds)]
    done = len(protocol.trials) - len(left)
    progress(done, len(protocol.trials))
    tasks = [(trial, logbook.outcome(trial) is None, seconds) for trial in left]
    with closing(spread(_run_one, protocol, tasks, jobs=jobs, scheduler=scheduler)) as stream:
        for number, (trial, outcome, times) in enumerate(stream, 1):
            if outcome is not None:
                logbook.write(outcome)
            logbook.write_timings(trial, times)
            progress(done + number, len(protocol.trials))
    outcomes = {trial: logbook.outcome(trial) for trial in protocol.trials}
    timings = {trial: logbook.timings(trial) for trial in protocol.trials}
    return Results(
        protocol,
        {trial: outcome for trial, outcome in outcomes.items() if outcome},
        {trial: timing for trial, timing in timings.items() if timing},
        logbook.extras(protocol),
    )


def run_jointly(
    results: Results,
    logbook: Logbook,
    *,
    samples: int,
    seconds: float,
    jobs: int = 1,
    scheduler: str | None = None,
    progress: Progress = lambda done, of: None,
) -> Results:
    """Attack the classes of so many samples together; each release has so many seconds.

    Counts that are written down stay; with more time than before, what was estimated is tried again.
    """
    protocol = results.protocol
    trials, known = joint_trials(protocol, samples), results.extras
    left = [trial for trial in trials if not (trial in known and _is_settled(known[trial], seconds))]
    done = len(trials) - len(left)
    progress(done, len(trials))
    tasks = [(trial, seconds) for trial in left]
    with closing(spread(_run_jointly, protocol, tasks, jobs=jobs, scheduler=scheduler)) as stream:
        for number, extra in enumerate(stream, 1):
            logbook.write_extra(extra)
            progress(done + number, len(trials))
    return replace(results, extras=logbook.extras(protocol))


def _is_settled(extra: Extra, seconds: float) -> bool:
    return extra.exact or extra.seconds >= seconds


def _run_jointly(protocol: Protocol, trial: Trial, seconds: float) -> Extra:
    return attack_jointly(trial, protocol.sample(trial), seconds=seconds)


def _is_done(logbook: Logbook, trial: Trial, seconds: float | None) -> bool:
    if logbook.outcome(trial) is None or (timings := logbook.timings(trial)) is None:
        return False
    if seconds is None:
        return True
    solved = [*timings.classes, *([timings.outliers] if timings.outliers else [])]
    # With more time than before, what was cut short is tried again.
    enough = all(each.finished for each in solved) or (timings.seconds or 0) >= seconds
    return all(each.solver is not None for each in solved) and enough


def _run_one(
    protocol: Protocol, trial: Trial, wanted: bool, seconds: float | None
) -> tuple[Trial, Outcome | None, Timings]:
    """Run a trial, unless its outcome is known and only times are wanted."""
    sample = protocol.sample(trial)
    outcome = attack(trial, sample) if wanted else None
    return trial, outcome, measure(sample, seconds=seconds)


def _read(path: Path) -> dict[str, Any] | None:
    """Read a file that was written whole, if it is there."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise OutputError(f"{path}: not a file of ours; remove it") from error
    assert isinstance(found, dict)
    return found


def _write(path: Path, entries: Mapping[str, Any]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{path.parent}: {error.strerror or error}") from error
    with Outputs() as outputs:
        outputs.write_text(path, json.dumps(entries, indent=1) + "\n")
