"""`unblur paper`: the paper's evaluation, run and written down."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from unblur.cli.progress import progress_bar
from unblur.cli.times import parse_budget
from unblur.datasets.catalogue import Original
from unblur.errors import ConfigError
from unblur.paper.evaluation import write
from unblur.paper.protocol import DEFAULTS, QUICK, SAMPLES, SIZES, Protocol, Source
from unblur.paper.running import Logbook, run_all
from unblur.words import count


def run(
    out: Path,
    *,
    quick: bool,
    data: Sequence[str],
    samples: int | None,
    sizes: Sequence[str],
    seed: int,
    engine: Literal["exact", "cpsat"],
    budget: str | None,
    jobs: int,
    scheduler: str | None,
) -> None:
    """Run the protocol, write its tables and pages, and end with the path of the page."""
    if budget is not None and engine != "cpsat":
        raise ConfigError("--budget limits the enumeration; it goes with --engine cpsat")
    protocol = Protocol(
        samples=samples or (QUICK if quick else SAMPLES),
        seed=seed,
        sizes=dict(SIZES) | dict(_size(each) for each in sizes),
        sources=dict(DEFAULTS) | dict(Source.of(*_split("--data", each)) for each in data),
    )
    seconds = None
    if engine == "cpsat":
        seconds = parse_budget(budget or "10m")
    with progress_bar("drawing samples", time_left=True) as show:
        results = run_all(
            protocol,
            Logbook(out / "runs"),
            jobs=jobs,
            scheduler=scheduler,
            solver_budget=seconds,
            progress=lambda done, of: show(description="attacking releases", completed=done, total=of),
        )
        show(description="drawing tables and pictures", total=None)
        page = write(results, out)
    classes = sum(len(each.classes) for each in results.outcomes.values())
    sound = "the truth is always among what remains" if results.sound else "THE TRUTH IS NOT ALWAYS AMONG WHAT REMAINS"
    print(f"{count(len(results.outcomes), 'release')}, {count(classes, 'class')} attacked; {sound}.")
    for original, source in protocol.sources.items():
        print(f"{original}: {source.title}, samples of {protocol.sizes[original]:,}")
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
