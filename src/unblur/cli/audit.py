"""`unblur audit`: the release in, its findings out, a summary on the screen."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from math import inf
from pathlib import Path
from typing import Any

import typer

from unblur.auditing import audit
from unblur.audits import Audit
from unblur.cli.progress import Show, first_of, progress_bar
from unblur.cli.screen import FAILED, MISFIT
from unblur.cli.times import parse_budget
from unblur.config import Config, Mechanism
from unblur.drawing import draws_text, read_draws
from unblur.errors import ConfigError
from unblur.gates import Gate
from unblur.output import Outputs, check_target
from unblur.projects import NO_CONFIG, is_project, open_project
from unblur.reading import read_release
from unblur.release import Release
from unblur.risk import Finding, Spread
from unblur.words import count, percent, times

MOST_PROBLEMS = 10
"""How many sentences about a misfit to print."""


def run(
    release: str,
    *,
    config: Path | None,
    json: str | None = None,
    html: Path | None = None,
    public: bool = False,
    fail_on: Sequence[str] = (),
    budget: str | None = None,
    draws: Path | None = None,
    truth: str | None = None,
    encoding: str | None = None,
    **options: Any,
) -> None:
    """Audit the release, write what was asked for, say what it looks like, and set the exit status."""
    gates = [Gate.parse(text) for text in fail_on]
    project = is_project(release)
    if truth is None and not project and any(gate.field == "singled_out" for gate in gates):
        raise ConfigError("--fail-on singled_out: only the raw table can tell; give it with --truth")
    if release == "-" and truth == "-":
        raise ConfigError("only one of the release and the truth can come from standard input")
    if public and html is None:
        raise ConfigError("--public is about the report; say where it goes with --html")
    if draws is not None and options.get("attack") != "joint":
        raise ConfigError("--draws is about all classes together; ask for them with --attack joint")
    options["budget"] = parse_budget(budget) if budget is not None else None
    options["earlier"] = read_draws(draws) if draws is not None else ()
    targets = _targets(json, html, draws)
    told: tuple[str, ...] = ()
    if project:
        _check_project_options(config, truth)
        for target in targets:
            check_target(target, [Path(release)])
        with progress_bar("reading the project") as show, open_project(Path(release)) as opened:
            told = opened.findings
            options["replay"] = opened.project.mechanism.name in ("paper", "arx")
            result = _audit(opened.release, show, truth=opened.table, **options)
    else:
        if config is None:
            raise ConfigError(NO_CONFIG)
        description = Config.read(config)
        for target in targets:
            check_target(target, [Path(release), Path(truth or release), *description.paths])
        with progress_bar(first_of("reading the release", release)) as show:
            read = read_release(
                release, description, encoding=encoding, on_rows=lambda done, of: show(completed=done, total=of)
            )
            result = _audit(read, show, truth=truth, encoding=encoding, **options)
    with Outputs() as outputs:
        if json is not None and json != "-":
            outputs.write_text(Path(json), result.to_json(), private=True)
        if html is not None:
            outputs.write_text(html, result.to_html(public=public, gates=gates), private=not public)
        if draws is not None and result.together is not None:
            text = draws_text(result.together.result.draws, options["earlier"])
            outputs.write_text(draws, text, private=True)
    if json == "-":
        sys.stdout.write(result.to_json())
    else:
        print("\n".join([*told, *describe(result)]))
        for target in targets:
            print(f"{'report' if target is html else 'draws' if target is draws else 'result'}: {target}")
    conclude(result, gates)


def _targets(json: str | None, html: Path | None, draws: Path | None) -> list[Path]:
    """The files to be written, no two of them the same."""
    given = (Path(json) if json is not None and json != "-" else None, html, draws)
    found = [each for each in given if each is not None]
    if html is not None and html.suffix.lower() != ".html":
        raise ConfigError(f"--html {html}: a report is written as .html")
    if len({each.resolve() for each in found}) < len(found):
        raise ConfigError("two of --json, --html and --draws name the same file")
    return found


def _check_project_options(config: Path | None, truth: str | None) -> None:
    if config is not None or truth is not None:
        raise ConfigError("a .deid project has its own config and raw table; leave --config and --truth out")


def _audit(release: Release, show: Show, **options: Any) -> Audit:
    return audit(
        release,
        progress=lambda done, of: show(completed=done, total=of),
        on_stage=lambda stage: show(description=stage, completed=0, total=None),
        on_interrupt="keep",
        **options,
    )


def conclude(result: Audit, gates: Sequence[Gate]) -> None:
    """End with the exit status that carries the verdict, and say on standard error what it rests on."""
    if result.interrupted:
        raise KeyboardInterrupt
    for sentence in result.problems[:MOST_PROBLEMS]:
        print(f"unblur: does not fit: {sentence}", file=sys.stderr)
    if more := len(result.problems[MOST_PROBLEMS:]):
        print(f"unblur: does not fit: {more:,} more such problems (the JSON lists all)", file=sys.stderr)
    failures = [failure for gate in gates if (failure := gate.failure(result))]
    for failure in failures:
        print(f"unblur: failed: {failure}", file=sys.stderr)
    if result.problems:
        raise typer.Exit(MISFIT)
    if failures:
        raise typer.Exit(FAILED)


def describe(result: Audit) -> Iterator[str]:
    """Describe an audit in some lines."""
    summary, release = result.summary, result.release
    share = release.outliers / release.rows
    yield (
        f"{count(release.rows, 'row')}, k = {release.config.k}: {count(len(result.classes), 'class')}, "
        f"{summary.compound:,} of more than one cell; {release.outliers:,} suppressed ({share:.1%})"
    )
    yield (
        f"assumed: mechanism {result.mechanism.name}, order {result.settings.order}, "
        f"records {result.settings.records}; engine {result.settings.engine}"
    )
    yield ""
    if not summary.compound and not release.outliers and not summary.max_bits and not summary.not_done:
        yield "Every class is a single cell: its label says all there is to say, and the attack takes nothing away."
    elif not result.classes:
        yield "All records are suppressed: there are no classes to attack."
    else:
        yield "How many times fewer data sets are plausible than the labels promise:"
        yield "                        median        mean         max"
        yield _spread_line("all classes", summary.over_all)
        yield _spread_line("more than one cell", summary.over_compound)
    if result.outliers:
        yield f"the suppressed records: {_verdict(result.outliers)}"
    yield from _worst(result)
    if summary.certain_records:
        yield f"{count(summary.certain_records, 'record')} can be placed in a cell with certainty."
    yield from _together(result)
    yield from _with_truth(result)
    yield from _replay(result)
    yield from _ablation(result)
    yield from _alternatives(result)
    for leak in result.leaks:
        yield f"leak: {leak.finding}. What to do: {leak.remedy}."
    for note in result.notes:
        yield f"note: {note}"
    yield "Evidence for review, not a certificate."


def _worst(result: Audit) -> Iterator[str]:
    known = [each for each in result.classes if each.bits]
    worst = sorted(known, key=lambda each: (-(each.bits or 0), each.number))[:5]
    if worst:
        yield ""
        yield "The classes that give away most (unblur explain says why):"
    for each in worst:
        labels = ", ".join(
            f"{attribute.name} {label}"
            for attribute, label in zip(result.release.config.quasi_identifiers, each.labels, strict=True)
        )
        yield f"  class {each.number}: {count(each.subject.size, 'record')} in {labels}"
        yield f"    {_verdict(each)}"
    if worst:
        yield ""


def _verdict(finding: Finding) -> str:
    if finding.refinement is None:
        return "not analysed"
    if finding.ratio is None or finding.bits is None:
        return "nothing was found in time" if finding.refinement.feasible else "no placement is possible"
    bound = {"exact": "", "at_most": "at least ", "at_least": "at most "}[finding.refinement.counted]
    chance = finding.refinement.singling_out
    alone = f"; someone is alone in a cell with probability {percent(chance)}" if chance else ""
    if not finding.bits:
        return f"nothing is taken away{alone}"
    return f"{bound}{times(finding.ratio)} fewer ({finding.bits:.1f} bits){alone}"


def _together(result: Audit) -> Iterator[str]:
    found = result.together
    if found is None:
        return
    yield ""
    yield "All classes together:"
    yield f"  the labels leave open         10^{found.log10_published:,.1f} raw data sets"
    if found.log10_class == -inf:
        yield "  class by class there remains  none"
        return
    yield f"  class by class there remain   10^{found.log10_class:,.1f}"
    if found.log10_at_most is not None:
        yield f"  together there remain         at most 10^{found.log10_at_most:,.1f}, so far as is known"
        yield "    no table that was drawn for an estimate is plausible: a larger budget may tell more"
        return
    if found.log10_joint is None or found.bits is None:
        yield "  together there remains        none"
        return
    how = "" if found.result.exact else ", estimated"
    fewer = times(2**found.bits if found.bits < 1024 else inf)
    yield f"  together there remain         10^{found.log10_joint:,.1f} ({fewer} fewer{how})"
    if interval := found.result.range:
        chance = f"but for a chance of {interval.error:.0%}"
        yield f"    between 10^{interval.low:,.2f} and 10^{interval.high:,.2f}, {chance}"
    for reason in found.result.program.relaxed:
        yield f"    at most: {reason}"
    if found.truth_feasible:
        yield "  The raw table is among them."
    if found.certain_records:
        yield f"  {count(found.certain_records, 'record')} can be placed in a cell with certainty."
    yield ""


def _with_truth(result: Audit) -> Iterator[str]:
    found = result.singling_out
    if found is None:
        return
    wrong = [each.name for each in result.everything if each.truth and not each.truth.feasible]
    if wrong:
        listed = ", ".join(wrong[:5]) + (" …" if wrong[5:] else "")
        yield f"The true placement is NOT among the plausible ones in {listed}: the mechanism is not as stated."
    else:
        yield "With the raw table: the true placement is among the plausible ones in every class."
    if not found.classes:
        yield "Singled out: nothing to count, for no class has more than one cell."
        return
    yield (
        f"Singled out: nobody in {found.failed:,}, one record in {found.one:,}, more in {found.many:,} "
        f"of {count(found.classes, 'class')} of more than one cell."
    )


def _replay(result: Audit) -> Iterator[str]:
    found = result.replay
    if found is None:
        return
    if found.same:
        yield "Replay: this is what the mechanism makes of the raw table, row by row."
        return
    names = [each.name for each in result.release.config.quasi_identifiers]
    expected, given = (
        ", ".join(map(" ".join, zip(names, labels, strict=True))) for labels in (found.expected, found.found)
    )
    differ = f"{count(found.rows, 'row')} of {result.release.rows:,} differ"
    yield f"Replay: {differ} from what the mechanism makes of the raw table."
    yield f"  The first is row {found.first:,}: {expected} was to be expected, {given} is published."


def _ablation(result: Audit) -> Iterator[str]:
    if result.ablation is None:
        return
    yield "What each rule takes away, in bits over all classes:    alone    on top of the others"
    for rule, effect in result.ablation.effects.items():
        yield f"  {rule:<48}{_bits(effect.alone):>11}{_bits(effect.last):>25}"


def _alternatives(result: Audit) -> Iterator[str]:
    if not result.alternatives:
        return
    yield ""
    yield "The config names no mechanism, so only what holds for every local recoding was used. Stating more would add:"
    for each in result.alternatives:
        verdict = f"{each.bits:,.1f} bits in all" if each.bits is not None else f"not possible: {each.problem}"
        yield f"  {each.name} ({_written(each.mechanism)}): {verdict}"
    yield "State it as `mechanism = ...` in the config only if you know that it is so."


def _written(mechanism: Mechanism) -> str:
    settings = "".join(f", {name} = {value}" for name, value in mechanism.settings.items())
    return f"{mechanism.name}{settings}"


def _bits(bits: float | None) -> str:
    return "-" if bits is None else f"{bits:,.1f}"


def _spread_line(name: str, spread: Spread) -> str:
    return f"  {name:<18}" + "".join(f"{times(value):>12}" for value in (spread.median, spread.mean, spread.largest))
