"""The command line: one module per group of commands, imported only when it runs."""

from __future__ import annotations

import gc
import logging
import signal
import sys
import warnings
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Literal, Never

import typer

from unblur.cli import hierarchy
from unblur.cli.screen import open_screen
from unblur.errors import UnblurError, UnblurWarning

app = typer.Typer(
    name="unblur",
    help="Show what a k-anonymized release still gives away, before it is published.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(hierarchy.app)
data = typer.Typer(name="data", help="Make synthetic tables.", no_args_is_help=True)
app.add_typer(data)


Given = Annotated[
    str, typer.Argument(help="CSV, TSV, Parquet or Excel file, a folder of files, - (standard input), URL with #table.")
]
ConfigFile = Annotated[Path, typer.Option("--config", "-c", help="The TOML file that describes the release.")]
ReleaseGiven = Annotated[
    str,
    typer.Argument(help="CSV, TSV, Parquet, Excel file, folder of files, -, URL with #table, or .deid project of ARX."),
]
OptionalConfig = Annotated[
    Path | None, typer.Option("--config", "-c", help="The TOML file that describes the release.")
]
Encoding = Annotated[str | None, typer.Option(help="The encoding of CSV files; detected if not given.")]
Order = Annotated[
    Literal["sound", "paper"],
    typer.Option(help="What to make of states that tie: nothing, or the order of the lattice."),
]
Assumed = Annotated[str | None, typer.Option(help="How the release was made, if not as the config says.")]


def _cluster(address: str | None) -> str | None:
    from unblur.scheduling import check_address

    if address is not None:
        check_address(address)
    return address


Cluster = Annotated[
    str | None,
    typer.Option(help="A Dask cluster that does the work, as in tcp://127.0.0.1:8786.", callback=_cluster),
]


_UsageError: type[Exception] = typer.BadParameter.__bases__[0]
"""What Typer raises for a command line that it cannot read; older versions have it from Click."""


def main() -> Never:
    """Run the command line: an error of the user is one line and exit status 2; ours keeps its traceback."""
    received: list[int] = []

    def stop(signum: int, frame: FrameType | None) -> Never:
        received.append(signum)
        raise KeyboardInterrupt  # so that `finally` clauses clean up

    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, stop)
    warnings.showwarning = _show_warning
    logging.disable()  # what libraries log may quote values; what matters is told by an error
    open_screen()
    try:
        try:
            sys.exit(app(prog_name="unblur", standalone_mode=False) or 0)  # it returns the exit status, if not 0
        finally:
            if sys.stdout is not None:  # it may have been closed before we began
                sys.stdout.flush()
    except BaseException as error:
        if received:  # whatever became of the interrupt on its way: DuckDB makes a RuntimeError of it
            print("unblur: interrupted; no half-written file is left", file=sys.stderr)
            sys.exit(128 + received[0])
        if isinstance(error, UnblurError):
            print(f"unblur: {error}", file=sys.stderr)
            sys.exit(2)
        if isinstance(error, _UsageError):
            print(_usage(error), end="", file=sys.stderr)
            sys.exit(2)
        raise


def _usage(error: Any) -> str:
    """Say in one line what is wrong with the command line; nothing, if help was asked for and has been shown."""
    said = " ".join(error.format_message().split()).rstrip(".")
    where = f"; see {error.ctx.command_path} --help" if error.ctx else ""
    return f"unblur: {said[0].lower()}{said[1:]}{where}\n" if said else ""


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: object = None,
    line: object = None,
) -> None:
    if issubclass(category, UnblurWarning):
        print(f"unblur: warning: {message}", file=sys.stderr)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"unblur {version('unblur')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Show what a k-anonymized release still gives away, before it is published."""


@app.command("anonymize")
def _anonymize(
    table: Given,
    config: ConfigFile,
    out: Annotated[
        str, typer.Option("--out", "-o", help="Where the release goes: .csv, .tsv, .parquet, or a URL with #table.")
    ],
    recoding: Annotated[
        Literal["local", "global"],
        typer.Option(help="Generalize each group as little as possible, or all records alike."),
    ] = "local",
    suppression_limit: Annotated[
        float, typer.Option(help="With global recoding: the share of records that may be suppressed.")
    ] = 0.0,
    missing: Annotated[
        Literal["error", "suppress"],
        typer.Option(help="What to do with rows whose value is missing, outside the domain or in no hierarchy."),
    ] = "error",
    trace: Annotated[
        Path | None, typer.Option(help="Write every greedy decision to this JSON file (not for publication).")
    ] = None,
    order_by: Annotated[
        str | None, typer.Option(help="Order the rows by this column (files keep their own order).")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the table or Spark folder that --out names, if it is there.")
    ] = False,
    encoding: Encoding = None,
    threads: Annotated[int | None, typer.Option(help="How many processor cores to use.", min=1)] = None,
) -> None:
    """Make a k-anonymous release of a table."""
    from unblur.cli.anonymize import run

    run(
        table,
        config=config,
        out=out,
        recoding=recoding,
        suppression_limit=suppression_limit,
        missing=missing,
        trace=trace,
        order_by=order_by,
        overwrite=overwrite,
        encoding=encoding,
        threads=threads,
    )


@app.command("audit")
def _audit(
    release: ReleaseGiven,
    config: OptionalConfig = None,
    truth: Annotated[
        str | None, typer.Option(help="The raw table: shows who is really singled out, and that the audit is sound.")
    ] = None,
    id: Annotated[
        str | None, typer.Option("--id", help="The column that matches the rows of --truth (else their position).")
    ] = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="Make the release again from --truth, and show the first difference.")
    ] = False,
    attack: Annotated[
        Literal["class", "joint"], typer.Option(help="Each class on its own, or also all of them together.")
    ] = "class",
    engine: Annotated[
        Literal["exact", "cpsat"], typer.Option(help="Count exactly, or enumerate as the paper does.")
    ] = "exact",
    order: Order = "sound",
    mechanism: Assumed = None,
    json: Annotated[str | None, typer.Option(help="Write the result to this file; - for standard output.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a report to this file: opens in a browser, offline.")] = None,
    public: Annotated[
        bool, typer.Option("--public", help="Aggregates only in the report: no labels, nothing of the raw table.")
    ] = False,
    fail_on: Annotated[
        list[str] | None, typer.Option(help="Exit with 1 if this holds, as in 'max_ratio > 100'; repeatable.")
    ] = None,
    ablation: Annotated[bool, typer.Option("--ablation", help="Also tell what each rule takes away.")] = False,
    jobs: Annotated[int, typer.Option(help="How many processes to use.", min=1)] = 1,
    scheduler: Cluster = None,
    budget: Annotated[
        str | None, typer.Option(help="Stop after this time, as in 60s, and say what was not done.")
    ] = None,
    draws: Annotated[
        Path | None, typer.Option(help="Keep the draws of joint estimates here; the next run goes on from them.")
    ] = None,
    encoding: Encoding = None,
) -> None:
    """Show what a release gives away."""
    from unblur.cli.audit import run

    gc.freeze()  # modules stay: the collector, which many classes set off, need not go through them again and again
    run(
        release,
        config=config,
        truth=truth,
        id=id,
        replay=replay,
        attack=attack,
        engine=engine,
        order=order,
        mechanism=mechanism,
        json=json,
        html=html,
        public=public,
        fail_on=fail_on or (),
        ablation=ablation,
        jobs=jobs,
        scheduler=scheduler,
        budget=budget,
        draws=draws,
        encoding=encoding,
    )


@app.command("explain")
def _explain(
    release: ReleaseGiven,
    chosen: Annotated[str, typer.Option("--class", metavar="ID", help="A class as audit numbers it, or outliers.")],
    config: OptionalConfig = None,
    order: Order = "sound",
    mechanism: Assumed = None,
    cells: Annotated[int, typer.Option(help="How many cells to list.", min=1)] = 20,
    encoding: Encoding = None,
) -> None:
    """Say in words what one class gives away, and why."""
    from unblur.cli.explain import run

    run(release, config=config, chosen=chosen, order=order, mechanism=mechanism, cells=cells, encoding=encoding)


@app.command("sample")
def _sample(
    release: Given,
    config: ConfigFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for the tables.")],
    number: Annotated[int, typer.Option("-n", "--number", help="How many tables to draw.", min=1)] = 100,
    seed: Annotated[int, typer.Option(help="Another seed draws other tables.", min=0)] = 0,
    mechanism: Assumed = None,
    order: Order = "sound",
    budget: Annotated[str | None, typer.Option(help="The time for counting, as in 60s.")] = None,
    encoding: Encoding = None,
) -> None:
    """Draw original tables that the release may come from."""
    from unblur.cli.sample import run

    run(
        release,
        config=config,
        number=number,
        out=out,
        seed=seed,
        mechanism=mechanism,
        order=order,
        budget=budget,
        encoding=encoding,
    )


@app.command("paper")
def _paper(
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for the results.")] = Path("unblur-paper"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Only 2 samples of each configuration, for a first look.")
    ] = False,
    data: Annotated[
        list[str] | None,
        typer.Option(help="Own data: hcup=FILE or clinic=FILE, or the name of a data set; repeatable."),
    ] = None,
    samples: Annotated[int | None, typer.Option(help="Samples of each configuration (12 in the paper).", min=1)] = None,
    sample_size: Annotated[
        list[str] | None, typer.Option(help="Records in a sample, as in clinic=500 (800 and 400 if not given).")
    ] = None,
    seed: Annotated[int, typer.Option(help="Another seed draws other samples.", min=0)] = 1,
    engine: Annotated[
        Literal["exact", "cpsat"], typer.Option(help="cpsat also measures enumeration, the paper's way.")
    ] = "exact",
    joint: Annotated[
        bool, typer.Option("--joint", help="Also attack all classes together; on a page of its own, not in the paper.")
    ] = False,
    budget: Annotated[
        str | None,
        typer.Option(
            help="With --joint: the time for each release, as in 20s. With cpsat: for all enumeration, as in 10m."
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="How many processes to use (one per core if not given).", min=1)
    ] = None,
    scheduler: Cluster = None,
) -> None:
    """Regenerate the paper's tables and figures."""
    import os

    from unblur.cli.paper import run

    run(
        out,
        quick=quick,
        data=data or (),
        samples=samples,
        sizes=sample_size or (),
        seed=seed,
        engine=engine,
        joint=joint,
        budget=budget,
        jobs=jobs or os.cpu_count() or 1,
        scheduler=scheduler,
    )


@data.command("make")
def _make(
    name: Annotated[str, typer.Argument(help="hcup (hospitals) or clinic (patients); all synthetic.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the table goes: .csv, .tsv or .parquet.")],
    rows: Annotated[str | None, typer.Option(help="How many rows, as in 500 or 1e8.")] = None,
    seed: Annotated[int, typer.Option(help="Another seed makes other records.", min=0)] = 1,
) -> None:
    """Make a synthetic table of any size, and a config that describes it."""
    from unblur.cli.data import run

    run(name, out=out, rows=rows, seed=seed)


@app.command("serve")
def _serve(
    port: Annotated[int | None, typer.Option(help="The port; any free one if not given.", min=1, max=65535)] = None,
    limit: Annotated[int, typer.Option(help="How large a file may be, in megabytes.", min=1)] = 1024,
    workers: Annotated[int | None, typer.Option(help="How many audits may run at a time.", min=1)] = None,
    browser: Annotated[bool, typer.Option(help="Open the page in your browser.")] = True,
) -> None:
    """Open the local web page: nothing leaves this machine."""
    from unblur.cli.serve import run

    run(port=port, limit=limit, workers=workers, browser=browser)


@app.command("demo")
def _demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for the results.")] = Path("unblur-demo"),
) -> None:
    """Anonymize a bundled synthetic clinic and audit the release."""
    from unblur.cli.demo import run

    run(out)
