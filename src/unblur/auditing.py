"""From a release to its audit: attack every class and the outliers, within a budget, on several cores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

from unblur.ablation import Ablation
from unblur.attacking import Attack, inference_of
from unblur.audits import Audit, Scope, Settings
from unblur.config import Mechanism
from unblur.counting.deadline import OutOfTime, deadline
from unblur.counting.problem import Records
from unblur.detecting import Alternative, alternatives
from unblur.errors import ConfigError, ProgramError
from unblur.findings import Findings
from unblur.grid import Grid
from unblur.hierarchy import IntervalHierarchy
from unblur.joint.solving import PATIENCE, Stage, joint
from unblur.joint.standing import standings
from unblur.leaks import find_leaks
from unblur.mechanisms import Order
from unblur.refining import Engine
from unblur.release import Release
from unblur.replay import replay as replay_release
from unblur.scheduling import Scheduler
from unblur.together import Together
from unblur.truth import Cell, Truth, read_truth
from unblur.working import Job, Number, Progress, Work
from unblur.workspace import Workspace


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
    encoding: str | None = None,
    ablation: bool = False,
    jobs: int = 1,
    scheduler: Scheduler | None = None,
    budget: float | None = None,
    seed: int = 0,
    earlier: Sequence[Mapping[str, Any]] = (),
    progress: Progress = lambda done, of: None,
    on_stage: Stage = lambda stage: None,
    on_interrupt: Literal["raise", "keep"] = "raise",
) -> Audit:
    """Find out what a release gives away.

    `truth` is the raw table, if you have it: its rows are matched by position, or by the column `id`; `encoding`
    is that of its CSV file, if it cannot be told. With `replay=True` it is anonymized again, and the rows are compared.
    `mechanism` and `records` stand in the config of the release; here they can be replaced.
    `attack="joint"` also looks at all classes together (`audit.together`): exactly where that can be done, else by an
    estimate, whose draws have the `seed`, and go on from `earlier` ones (`audit.together.result.draws`).
    `engine="cpsat"` enumerates as the paper does.
    `budget` limits the time in seconds, and what was not done is said. `jobs` processes share the work, or the Dask
    cluster `scheduler`: an address, or your own `Client`. `ablation=True` also counts with each rule left out.
    `on_stage` is called with what is done next, in words, and `progress` with how much of it is done.
    `on_interrupt="keep"` makes of Ctrl-C what it makes of a budget that is used up.
    """
    for name, value, known in (
        ("order", order, ("sound", "paper")),
        ("engine", engine, ("exact", "cpsat")),
        ("records", records or "any", ("any", "distinct")),
        ("attack", attack, ("class", "joint")),
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
    if truth is not None:
        on_stage("reading the raw table")
    known_rows = _read_truth(truth, release, id, encoding, progress) if truth is not None else None
    if replay:
        on_stage("making the release again")
    replayed = replay_release(release, truth, chosen, id=id, encoding=encoding) if replay else None
    job = Job(plan, engine, settings.records, known_rows, ablation)
    numbers: list[Number] = list(range(len(release.classes)))
    notes = [f"{each.name}: {note}" for each in release.config.quasi_identifiers for note in each.hierarchy.notes]
    if release.outliers and (missing := release.config.missing):
        notes.append(
            f"nothing is claimed about the outliers: {missing:,} of them were suppressed for a missing or impossible "
            "value, not by the recoding"
        )
    elif release.outliers:
        numbers.append(None)
    notes += [*_about_rows(release, chosen), *_about_lengths(release, chosen)]
    if chosen.name == "arx" and chosen.settings.get("gs_factor"):
        notes.append(
            "with a gs_factor above 0 ARX weighs suppression against generalization, so that a cheaper state need not "
            "have been unusable: only the order of nested states was used, as under iterative"
        )
    work = Work(job, numbers, jobs, budget, progress, scheduler)
    on_stage("attacking the classes")
    done = work.done(keep=on_interrupt == "keep")
    notes += work.notes(done)
    findings = [each.finding for each in done]
    findings += [job.unfinished(number) for number in numbers[len(done) :]]
    if release.outliers and None not in numbers:
        findings.append(job.unfinished(None))
    effects = [each.effects for each in done if each.effects]
    tried: tuple[Alternative, ...] = ()
    if stated is None:
        on_stage("trying other mechanisms")
        tried = () if work.stopped else _alternatives(plan.release, settings.records, work.seconds_left())
        if not tried:
            notes.append(
                "how the release was made was not stated, and no other way was tried: knowing it would give away more"
            )
    together, interrupted = None, work.interrupted
    if attack == "joint" and not work.stopped:
        try:
            found = joint(
                plan.release,
                inference,
                records=settings.records,
                budget=work.seconds_left(),
                seed=seed,
                earlier=earlier,
                progress=progress,
                on_stage=on_stage,
            )
            on_stage("looking at each class among the others")
            feasible = found.program.allows(known_rows.all) if known_rows else None
            left = work.seconds_left()
            together = Together(found, feasible, tuple(standings(found, PATIENCE if left is None else left)))
        except ProgramError as error:
            notes.append(f"the classes were not looked at together: {error}")
        except KeyboardInterrupt:
            if on_interrupt == "raise":
                raise
            interrupted = True
            notes.append("the classes were not looked at together: someone stopped it")
    elif attack == "joint":
        notes.append(f"the classes were not looked at together, since {work.stopped}")
    on_stage("looking for leaks around the classes")
    leaks = find_leaks(release, matched_by_position=truth is not None and id is None)
    release.finish()
    return Audit(
        release,
        chosen,
        settings,
        Findings(tuple(findings[: len(release.classes)])),
        findings[-1] if release.outliers else None,
        misfits=(*_lost_rows(release), *inference.misfits()),
        stated=stated is not None,
        alternatives=tried,
        ablation=Ablation.over(effects) if ablation else None,
        not_done=len(numbers) - sum(each.finding.refinement is not None for each in done),
        leaks=leaks,
        replay=replayed,
        together=together,
        notes=tuple(notes),
        interrupted=interrupted,
    )


def _about_rows(release: Release, mechanism: Mechanism) -> list[str]:
    """Say what is taken for granted about rows that are not there."""
    if release.left_out:
        return [f"{release.left_out:,} suppressed rows were left out of the release; nothing is said about them"]
    if mechanism.name == "arx" and not release.outliers and release.config.made_rows is None:
        return [
            "no row is suppressed: if suppressed rows were left out, what is found may be wrong; state how many rows "
            "ARX had as rows under [made]"
        ]
    return []


def _about_lengths(release: Release, mechanism: Mechanism) -> Iterator[str]:
    """Name attributes with intervals that are too short for ARX; the published algorithm counts values, not lengths."""
    if mechanism.name == "paper":
        return
    for attribute in release.config.quasi_identifiers:
        tree = attribute.hierarchy
        if not isinstance(tree, IntervalHierarchy) or not attribute.by_length:
            continue
        shortest = min(high - low for low, high in pairwise(tree.bounds))
        if shortest < 1:
            yield (
                f"{attribute.name}: an interval is {float(shortest):g} long, and ARX's loss counts all below 1 as "
                "single values; if ARX makes the release, rescale the attribute first, for example from ratios to per "
                "mille"
            )


def _lost_rows(release: Release) -> list[str]:
    """Compare with what was written down when the release was made."""
    made, suppressed = release.config.made_rows, release.config.made.get("suppressed")
    if made is not None and release.rows > made:
        return [f"the release has {release.rows:,} rows, but {made:,} were made"]
    if isinstance(suppressed, int) and release.left_out > suppressed - release.outliers:
        return [f"{release.left_out:,} rows are missing, more than were suppressed: classes may have lost some"]
    return []


def _alternatives(release: Release, records: Records, seconds: float | None) -> tuple[Alternative, ...]:
    """Try other mechanisms, if there is time."""
    try:
        with deadline(seconds):
            return alternatives(release, records=records)
    except OutOfTime:
        return ()


def mechanism_of(release: Release, mechanism: str | Mechanism | None = None) -> Mechanism:
    """Return the mechanism that was chosen, or that the config names, or what holds for every local recoding."""
    if isinstance(mechanism, str):
        return Mechanism.named(mechanism)
    return mechanism or release.config.mechanism or Mechanism("iterative")


def _read_truth(truth: Any, release: Release, id: str | None, encoding: str | None, progress: Progress) -> Truth:
    with Workspace() as workspace:
        rows = release.open_rows(workspace)
        found = read_truth(truth, release, rows, id_column=id, encoding=encoding, progress=progress)
    grid, totals = Grid(release.config.lattice), Counter[Cell]()
    for cell, n in found.totals.items():
        totals[grid.leaf(cell)] += n
    return replace(found, totals=totals)
