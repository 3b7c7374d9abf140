"""`unblur sample`: original tables that the release may come from."""

from __future__ import annotations

from pathlib import Path

import typer

from unblur.attacks import attack
from unblur.auditing import mechanism_of
from unblur.cli.progress import first_of, progress_bar
from unblur.cli.screen import MISFIT
from unblur.cli.times import parse_budget
from unblur.mechanisms import Order
from unblur.reading import read_release
from unblur.sampling import Samples, check_folder, draw_samples, write_samples
from unblur.together import Together
from unblur.words import count


def run(
    release: str,
    *,
    config: Path,
    number: int,
    out: Path,
    seed: int,
    mechanism: str | None,
    order: Order,
    budget: str | None,
    encoding: str | None,
) -> None:
    """Draw tables, write them, and say what they are."""
    seconds = parse_budget(budget) if budget is not None else None
    check_folder(out)
    with progress_bar(first_of("reading the release", release)) as show:
        opened = read_release(release, config, encoding=encoding)
        result = attack(
            opened,
            scope="joint",
            mechanism=mechanism,
            order=order,
            budget=seconds,
            seed=seed,
            progress=lambda done, of: show(description="looking for plausible tables", completed=done, total=of),
        )
        if not Together(result).feasible:
            print("No table could have produced this release: it was not made as the config says.")
            raise typer.Exit(MISFIT)
        samples = draw_samples(
            result,
            mechanism_of(opened, mechanism),
            number,
            seed=seed,
            progress=lambda done, of: show(description="drawing tables", completed=done, total=of),
        )
        paths = write_samples(samples, opened, out)
    print(describe(samples))
    for reason in () if samples.checked else result.program.relaxed:
        print(f"note: not every one need give this very release: {reason}")
    print(paths[0] if len(paths) == 1 else f"{paths[0]} to {paths[-1].name}")


def describe(samples: Samples) -> str:
    """Say in a line what was drawn."""
    number = len(samples.tables)
    s = "s" if number == 1 else ""
    such = f"that fit{s} this release as far as it is known"
    if samples.checked:
        such = f"that, anonymized again, give{s} this very release"
    return f"{count(number, 'table')} {such}, {'' if number == 1 else 'each '}as likely as any other"
