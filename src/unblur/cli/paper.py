"""`unblur paper`: the paper's evaluation, run and written down."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from unblur.cli.progress import progress_bar
from unblur.cli.times import parse_budget
from unblur.datasets.catalogue import Original
from unblur.errors import ConfigError
from unblur.paper import jointly
from unblur.paper.evaluation import JOINT, write
from unblur.paper.joint_tables import counted, truth
from unblur.paper.origins import DEFAULTS, SIZES, Source
from unblur.paper.protocol import QUICK, SAMPLES, Protocol
from unblur.paper.running import Logbook, run_all, run_jointly
from unblur.words import count

ENUMERATION = 600.0
"""Seconds for the enumeration of the whole grid, unless a budget says otherwise."""


def run(
    out: Path,
    *,
    quick: bool,
    data: Sequence[str],
    samples: int | None,
    sizes: Sequence[str],
    seed: int,
    engine: Literal["exact", "cpsat"],
    joint: bool,
    budget: str | None,
    jobs: int,
    scheduler: str | None,
) -> None:
    """Run the protocol, write its tables and pages, and end with the path of the page."""
    if joint and engine == "cpsat":
        raise ConfigError(
            "--joint and --engine cpsat: run one after the other, with the same --out; what is done is kept"
        )
    if budget is not None and engine != "cpsat" and not joint:
        raise ConfigError("--budget goes with --joint (the time for each release) or --engine cpsat (the time in all)")
    given = parse_budget(budget) if budget is not None else None
    protocol = Protocol(
        samples=samples or (QUICK if quick else SAMPLES),
        seed=seed,
        sizes=dict(SIZES) | dict(_size(each) for each in sizes),
        sources=dict(DEFAULTS) | dict(Source.of(*_split("--data", each)) for each in data),
    )
    logbook = Logbook(out / "runs")
    with progress_bar("drawing samples", time_left=True) as show:
        results = run_all(
            protocol,
            logbook,
            jobs=jobs,
            scheduler=scheduler,
            solver_budget=(given or ENUMERATION) if engine == "cpsat" else None,
            progress=lambda done, of: show(description="attacking releases", completed=done, total=of),
        )
        if joint:
            results = run_jointly(
                results,
                logbook,
                samples=jointly.QUICK if quick else protocol.samples,
                seconds=given or (jointly.QUICK_SECONDS if quick else jointly.SECONDS),
                jobs=jobs,
                scheduler=scheduler,
                progress=lambda done, of: show(description="all classes together", completed=done, total=of),
            )
        show(description="drawing tables and pictures", completed=0, total=None)
        page = write(results, out)
    classes = sum(len(each.classes) for each in results.outcomes.values())
    sound = "the truth is always among what remains" if results.sound else "THE TRUTH IS NOT ALWAYS AMONG WHAT REMAINS"
    print(f"{count(len(results.outcomes), 'release')}, {count(classes, 'class')} attacked; {sound}.")
    for original, source in protocol.sources.items():
        print(f"{original}: {source.title}, samples of {protocol.sizes[original]:,}")
    if joint:
        extras = list(results.extras.values())
        print(f"All classes together: {count(len(extras), 'release')}, {counted(extras)}; {truth(extras)}.")
        print(out / JOINT)
    print(page)


def _size(text: str) -> tuple[Original, Any]:
    name, value = _split("--sample-size", text)
    if name not in SIZES or not value.isascii() or not value.isdigit() or int(value[:12]) == 0:
        raise ConfigError(f"--sample-size {text}: NAME=NUMBER is meant, as in clinic=500; names are {', '.join(SIZES)}")
    return ("hcup" if name == "hcup" else "clinic"), int(value)


def _split(option: str, text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not value:
        raise ConfigError(f"{option} {text}: NAME=VALUE is meant; names are {' and '.join(SIZES)}")
    return name, value
