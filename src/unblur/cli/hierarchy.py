"""`unblur hierarchy`: build one for a column, check those of a config, guess one from a release."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from unblur.errors import ConfigError

if TYPE_CHECKING:
    from unblur.building.drafts import Draft
    from unblur.building.profiling import Column
    from unblur.config import Config

    Builder = Callable[[Column], Draft]

app = typer.Typer(
    name="hierarchy",
    help="Build, check or guess the hierarchy of a column.",
    no_args_is_help=True,
    add_completion=False,
)

ColumnOption = Annotated[str, typer.Option("--column", help="The column.", metavar="NAME")]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="Write to this file: .toml (lines of a config) or .csv (ARX's hierarchy file)."),
]
StepOption = Annotated[
    str | None, typer.Option(help="The resolution of the numbers; by default their last decimal place.")
]
LowOption = Annotated[str | None, typer.Option(help="The lower end of the domain; with --dates the first year.")]
HighOption = Annotated[
    str | None, typer.Option(help="The upper end of the domain, not included; with --dates the last year, included.")
]
EncodingOption = Annotated[str | None, typer.Option(help="The encoding of a CSV file; detected if not given.")]


@app.command()
def build(
    table: Annotated[
        str, typer.Argument(help="CSV, TSV, Parquet or Excel file, - for standard input, or a URL with #table.")
    ],
    column: ColumnOption,
    out: OutOption = None,
    equal: Annotated[int | None, typer.Option(help="Numbers: this many leaves of equal width.", metavar="N")] = None,
    quantile: Annotated[
        int | None, typer.Option(help="Numbers: this many leaves of about equal numbers of records.", metavar="N")
    ] = None,
    dates: Annotated[
        str | None,
        typer.Option(help="Dates: layers, some of day,month,quarter,year,decade in this order.", metavar="LAYERS"),
    ] = None,
    mask: Annotated[bool, typer.Option("--mask", help="Codes: mask one character after the other: 819**.")] = False,
    mask_from: Annotated[
        Literal["left", "right"] | None, typer.Option(help="The side to mask from; default: right.")
    ] = None,
    pad: Annotated[
        str | None, typer.Option(help="Fill shorter codes on the left with this character.", metavar="CHARACTER")
    ] = None,
    step: StepOption = None,
    fanout: Annotated[
        str | None,
        typer.Option(help="How many nodes to group, up to the root; default: 2. A list such as 2,2,3: in each layer."),
    ] = None,
    low: LowOption = None,
    high: HighOption = None,
    encoding: EncodingOption = None,
) -> None:
    """Make a hierarchy for one column of a table.

    Choose one of --equal, --quantile, --dates and --mask. The lines for the config go to standard output.
    """
    from unblur.building.drafts import check_draft_target

    methods = {"--equal": equal is not None, "--quantile": quantile is not None, "--dates": bool(dates), "--mask": mask}
    chosen = [name for name, given in methods.items() if given]
    if len(chosen) != 1:
        raise ConfigError(f"give exactly one of {', '.join(methods)}; {' and '.join(chosen) or 'none'} given")
    numeric = chosen[0] in ("--equal", "--quantile")
    _refuse(chosen[0], {"--step": step, "--fanout": fanout}, applies=numeric)
    _refuse(chosen[0], {"--low": low, "--high": high}, applies=not mask)
    _refuse(chosen[0], {"--mask-from": mask_from, "--pad": pad}, applies=mask)
    check_draft_target(out, table)
    if not numeric and (out is None or out.suffix.lower() != ".csv"):
        raise ConfigError(f"{chosen[0]} lists values, which needs a file of its own: add --out FILE.csv")
    if mask:
        make = _masks(mask_from, pad)
    elif dates:
        make = _dates(dates, low, high)
    else:
        make = _intervals(equal, quantile, step=step, fanout=fanout, low=low, high=high)
    with _column(table, column, encoding) as found:
        _deliver(make(found), out, kind="warning")


@app.command()
def check(
    path: Annotated[Path, typer.Argument(help="A config (.toml) or a hierarchy file (.csv).")],
    column: Annotated[
        str | None, typer.Option(help="Only this quasi-identifier; for a hierarchy file, its column.", metavar="NAME")
    ] = None,
    table: Annotated[
        str | None, typer.Option(help="Also check that the hierarchies cover every value of this table.")
    ] = None,
    step: StepOption = None,
    everything: Annotated[bool, typer.Option("--all", help="Draw whole trees, however wide.")] = False,
    encoding: EncodingOption = None,
) -> None:
    """Check hierarchies, and draw them."""
    from unblur.cli.tree import show

    if path.suffix.lower() != ".toml" and table is not None and column is None:
        raise ConfigError("--table needs --column NAME: the column that the hierarchy file is for")
    config = _config_to_check(path, column, _number("--step", step))
    for attribute in config.quasi_identifiers:
        show(attribute, everything=everything)
    if table is not None:
        _check_table(config, table, encoding)


@app.command()
def infer(
    release: Annotated[str, typer.Argument(help="The release: a file, - for standard input, or a URL with #table.")],
    column: ColumnOption,
    out: OutOption = None,
    step: StepOption = None,
    low: LowOption = None,
    high: HighOption = None,
    encoding: EncodingOption = None,
) -> None:
    """Guess the hierarchy of a column from the labels of a release."""
    from unblur.building.drafts import check_draft_target
    from unblur.building.inferring import Domain
    from unblur.building.inferring import infer as guess

    check_draft_target(out, release)
    domain = Domain(_number("--low", low), _number("--high", high), _number("--step", step))
    with _column(release, column, encoding) as found:
        _deliver(guess(found, domain), out, kind="note")
        _say("note", [f"so this hierarchy of {column!r} is a guess; compare it with what its makers say"])


def _intervals(
    equal: int | None, quantile: int | None, *, step: str | None, fanout: str | None, low: str | None, high: str | None
) -> Builder:
    from unblur.building.intervals import IntervalPlan, build_equal, build_quantile

    method, leaves = (build_equal, equal) if equal is not None else (build_quantile, quantile or 0)
    plan = IntervalPlan(
        leaves,
        step=_number("--step", step),
        low=_number("--low", low),
        high=_number("--high", high),
        fanouts=_fanouts(fanout or "2"),
    )
    return partial(method, plan=plan)


def _dates(layers: str, low: str | None, high: str | None) -> Builder:
    from unblur.building.dates import build_dates, check_periods

    periods = [name.strip() for name in layers.split(",")]
    check_periods(periods)
    return partial(build_dates, periods=periods, first_year=_year("--low", low), last_year=_year("--high", high))


def _masks(mask_from: Literal["left", "right"] | None, pad: str | None) -> Builder:
    from unblur.building.masks import build_mask

    if pad is not None and len(pad) != 1:
        raise ConfigError(f"--pad takes one character, not {len(pad)}")
    return partial(build_mask, mask_from=mask_from or "right", pad=pad)


@contextmanager
def _column(table: str, name: str, encoding: str | None) -> Iterator[Column]:
    from unblur.building.profiling import Column
    from unblur.sources import open_table
    from unblur.workspace import Workspace

    with Workspace() as workspace:
        opened = open_table(table, workspace, columns=[name], encoding=encoding)
        _say("warning", opened.notes)
        yield Column(opened, name)


def _deliver(draft: Draft, out: Path | None, *, kind: str) -> None:
    """Write or print the hierarchy; with a hierarchy file, print the lines that refer to it."""
    if out is None:
        print(draft.to_toml(), end="")
    else:
        draft.save(out)
        print(draft.to_toml(out) if out.suffix.lower() == ".csv" else f"hierarchy: {out}\n", end="")
    _say(kind, draft.notes)


def _config_to_check(path: Path, column: str | None, step: Decimal | None) -> Config:
    from dataclasses import replace

    from unblur.config import Config, QuasiIdentifier

    if path.suffix.lower() != ".toml":
        from unblur.arx.hierarchy_csv import read_hierarchy

        return Config(2, (QuasiIdentifier(column or path.name, read_hierarchy(path, step=step), 0),))
    _refuse("a config", {"--step": step}, applies=False)
    config = _read_config(path)
    chosen = tuple(each for each in config.quasi_identifiers if column in (None, each.name))
    if not chosen:
        names = ", ".join(each.name for each in config.quasi_identifiers)
        raise ConfigError(f"{path}: there is no quasi-identifier {column!r}; it has: {names}")
    return replace(config, quasi_identifiers=chosen)


def _read_config(path: Path) -> Config:
    """Read a config, or only its quasi-identifiers, as `hierarchy build` writes them."""
    import tomllib

    from unblur.config import Config

    try:
        text = path.read_text(encoding="utf-8")
        entries = tomllib.loads(text, parse_float=Decimal)
    except (OSError, ValueError):
        return Config.read(path)  # which says what is wrong
    if "k" in entries:
        return Config.read(path)
    try:
        return Config.from_dict({"k": 2, **entries}, folder=path.parent)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def _check_table(config: Config, table: str, encoding: str | None) -> None:
    """Say whether every value of a table has a leaf; exit with 2 if not."""
    from unblur.cells import assign_cells
    from unblur.sources import open_table
    from unblur.workspace import Workspace

    names = [each.name for each in config.quasi_identifiers]
    with Workspace() as workspace:
        opened = open_table(table, workspace, columns=names, encoding=encoding)
        cells = assign_cells(opened, config)
        problems = cells.problems()
        _say("warning", [*opened.notes, *cells.off_step()])
    for problem in problems:
        print(f"unblur: {problem}", file=sys.stderr)
    if problems:
        raise typer.Exit(2)
    rows = int(cells.counts.sum())
    print(f"{opened.name}: all values of {', '.join(names)} are covered ({rows:,} rows)")


def _say(kind: str, notes: Iterable[str]) -> None:
    for note in notes:
        print(f"unblur: {kind}: {note}", file=sys.stderr)


def _refuse(method: str, options: dict[str, object], *, applies: bool) -> None:
    for name, value in options.items():
        if value is not None and not applies:
            raise ConfigError(f"{name} does not go with {method}")


def _number(option: str, text: str | None) -> Decimal | None:
    from unblur.labels import parse_number

    if text is None:
        return None
    number = parse_number(text)
    if number is None:
        raise ConfigError(f"{option} must be a number such as 0.5, not {text!r}")
    return number


def _year(option: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 9999):
        raise ConfigError(f"with --dates, {option} must be a year such as 2024, not {text!r}")
    return int(text)


def _fanouts(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.strip().isdecimal() and int(part) >= 2 for part in parts):
        raise ConfigError(f"--fanout must be a whole number of 2 or more, or a list such as 2,2,3, not {text!r}")
    return tuple(int(part) for part in parts)
