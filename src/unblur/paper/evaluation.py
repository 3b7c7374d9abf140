"""All results on disk: every table as CSV, Markdown and picture, and all of them on a page.

What is measured in seconds differs from run to run; it stands in files and on a page of its own. So does what the
classes say together, which may be estimated. All else is the same to the byte whenever, and on however many cores, the
same protocol is run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from unblur.datasets.catalogue import CONFIGURATIONS
from unblur.errors import OutputError
from unblur.output import Outputs
from unblur.pages.rendering import render
from unblur.paper import charts, joint_page, verdicts
from unblur.paper.protocol import Attacked, Outcome, Protocol
from unblur.paper.published import all_quirks
from unblur.paper.results import Results, ratio
from unblur.paper.sections import Section
from unblur.paper.sheets import Column, Sheet, Value
from unblur.paper.tables import KEY, all_tables, all_times
from unblur.paper.worked_example import pictures

PAGE, TIMES, JOINT = "evaluation.html", "run-times.html", "joint.html"


def write(results: Results, folder: Path) -> Path:
    """Write everything into a folder; return the path of the page."""
    counted, timed, joint = _sections(results), _timed_sections(results), joint_page.sections(results)
    files: dict[str, bytes] = {}
    for section in (*counted, *timed, *joint):
        files |= section.contents()
    for sheet in (_all_classes(results), _all_outliers(results)):
        files[f"{sheet.name}.csv"] = sheet.to_csv().encode()
    files[PAGE] = _page(results, counted).encode()
    files[TIMES] = _times_page(results, timed).encode()
    if joint:
        files[JOINT] = joint_page.page(results, joint, others=[{"file": PAGE, "text": "The evaluation"}]).encode()
    try:
        for path in files:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: {error.strerror or error}") from error
    with Outputs() as outputs:
        for path, content in files.items():
            outputs.write_bytes(folder / path, content)
    return folder / PAGE


def _sections(results: Results) -> list[Section]:
    classes, outliers, singled_out, assignments, segments = all_tables(results)
    paper = {"nobody_paper": "nobody", "one_paper": "one record", "more_paper": "several"}
    return [
        Section(_configurations(results.protocol)),
        Section(
            classes,
            (
                charts.lines(
                    classes,
                    {
                        "ratio_mean": "mean of all",
                        "ratio_mean_compound": "mean of compound",
                        "ratio_median_compound": "median of compound",
                        "ratio_paper": "paper",
                    },
                    title="ratio",
                ),
            ),
        ),
        Section(
            outliers,
            (
                charts.lines(
                    outliers, {"ratio_mean": "mean", "ratio_median": "median", "ratio_paper": "paper"}, title="ratio"
                ),
            ),
        ),
        Section(
            singled_out,
            (
                charts.stacked(
                    singled_out,
                    {"nobody": "nobody", "one": "one record", "more": "several"},
                    title="share of compound classes",
                    beside_paper=paper,
                    share=True,
                ),
            ),
        ),
        Section(
            assignments,
            (
                charts.lines(
                    assignments,
                    {
                        "mean": "mean of all",
                        "mean_compound": "mean of compound",
                        "median_compound": "median of compound",
                        "paper": "paper",
                    },
                    title="assignments",
                ),
            ),
        ),
        Section(
            segments,
            (
                charts.stacked(
                    segments,
                    {"basic_share": "basic", "compound_share": "compound"},
                    title="share of classes",
                    share=True,
                    name="figure-5",
                ),
                charts.stacked(
                    segments,
                    {"basic": "basic", "compound": "compound"},
                    title="classes per sample",
                    share=False,
                    name="figure-6",
                ),
            ),
        ),
        Section(verdicts.sheet("claims", "The paper's claims", verdicts.verdicts(results))),
    ]


def _timed_sections(results: Results) -> list[Section]:
    series = {"exact_mean": "exact, here", "solver_mean": "CP-SAT, here", "paper": "paper"}
    tables = [
        Section(sheet, (charts.lines(sheet, series, title="seconds"),), folder="run-times")
        for sheet in all_times(results)
    ]
    judged = verdicts.sheet("run-time-claims", "The paper's claims about run time", verdicts.time_verdicts(results))
    return [*tables, Section(judged, folder="run-times")]


def _configurations(protocol: Protocol) -> Sheet:
    """Table 1, with the domains that the paper leaves open."""
    rows: list[tuple[Value, ...]] = []
    for configuration in CONFIGURATIONS:
        source = protocol.sources[configuration.data_set]
        domains = [
            f"{name} [{attribute.low}, {attribute.high}) by {attribute.step}, {layers} layers"
            for name, layers in zip(configuration.attributes, configuration.layers, strict=True)
            if (attribute := source.described.attribute(name))
        ]
        size = protocol.sizes[configuration.data_set]
        rows.append((source.name, len(configuration.attributes), size, "; ".join(domains)))
    return Sheet(
        "table-1",
        "Table 1: configurations",
        "The attributes and the number of layers are the paper's; it names neither the bounds of the domains nor the "
        "steps, which are ours.",
        (
            Column("data", "data"),
            Column("attributes", "attributes", "whole"),
            Column("sample", "records in a sample", "whole"),
            Column("domains", "attributes, domains, steps, layers"),
        ),
        tuple(rows),
    )


def _page(results: Results, sections: Sequence[Section]) -> str:
    protocol = results.protocol
    answers = ", ".join(f"{n} {answer}" for answer, n in verdicts.summary(verdicts.verdicts(results)))
    number = sum(len(each.classes) for each in results.outcomes.values())
    sound = (
        "in every one of them the true placement of the records is among those that remain"
        if results.sound
        else ("IN SOME OF THEM THE TRUE PLACEMENT IS NOT AMONG THOSE THAT REMAIN: these results cannot be trusted")
    )
    return render(
        "evaluation.html",
        title="Combinatorial refinement of k-anonymous releases: the evaluation, regenerated",
        intro=f"{number:,} classes of {len(results.outcomes):,} releases were attacked; {sound}. "
        f"Of the paper's claims in words, on these data: {answers}.",
        about=list(_about(protocol)),
        samples=protocol.samples,
        seed=protocol.seed,
        sources=list(protocol.sources.values()),
        synthetic=any(source.synthetic for source in protocol.sources.values()),
        sections=sections,
        example=list(pictures().values()),
        quirks=all_quirks(),
        others=[
            {"file": TIMES, "text": "Run times (Tables 6 and 7): a page of its own, since measured times differ"},
            *([{"file": JOINT, "text": joint_page.TITLE + ": a page of its own"}] if results.extras else []),
            {"file": "classes.csv", "text": "All classes, one row each (CSV)"},
            {"file": "outliers.csv", "text": "All sets of outliers, one row each (CSV)"},
        ],
    )


def _times_page(results: Results, sections: Sequence[Section]) -> str:
    return render(
        "evaluation.html",
        title="Run times (Tables 6 and 7)",
        intro="Measured on this machine; the paper ran on a cluster, with four cores and a solver per class.",
        about=[],
        samples=results.protocol.samples,
        seed=results.protocol.seed,
        sources=list(results.protocol.sources.values()),
        synthetic=any(source.synthetic for source in results.protocol.sources.values()),
        sections=sections,
        example=[],
        quirks=[],
        others=[{"file": PAGE, "text": "The evaluation"}],
    )


def _about(protocol: Protocol) -> Iterator[str]:
    if any(source.synthetic for source in protocol.sources.values()):
        yield (
            "The paper's data are not public. The synthetic stand-ins were shaped after public tables of the same "
            "kind, and the bounds of their domains were chosen so that the share of single-cell classes comes near "
            "to what the paper tells. That these shares are alike is therefore no confirmation. What may be compared "
            "is how the numbers move with k and with the number of attributes; ratios depend on how records crowd "
            "the grid, and are not expected to be equal."
        )
    yield (
        "A mean over classes whose ratios span many powers of ten is ruled by its largest. Where the mean is far above "
        "the median, a few classes give almost everything away, and most give away little."
    )


def _all_classes(results: Results) -> Sheet:
    rows = [
        (*_key(results, outcome), number, *_figures(each))
        for outcome in results.outcomes.values()
        for number, each in enumerate(outcome.classes, 1)
    ]
    return Sheet(
        "classes", "All classes", "", (*KEY, Column("sample", ""), Column("class", ""), *_columns()), tuple(rows)
    )


def _all_outliers(results: Results) -> Sheet:
    rows = [(*_key(results, each), *_figures(each.outliers)) for each in results.outcomes.values() if each.outliers]
    return Sheet("outliers", "All sets of outliers", "", (*KEY, Column("sample", ""), *_columns()), tuple(rows))


def _key(results: Results, outcome: Outcome) -> tuple[Value, ...]:
    described = outcome.trial.described
    name = results.protocol.sources[described.data_set].name
    return name, len(described.attributes), outcome.trial.k, outcome.trial.sample


FIGURES: Mapping[str, str] = {
    "size": "size",
    "basic": "basic",
    "cells": "cells",
    "free": "free_cells",
    "lr": "lr_solutions",
    "cra": "cra_solutions",
    "combinations": "combinations",
    "singles": "singles",
    "alone": "singles_in_table",
}


def _columns() -> tuple[Column, ...]:
    return tuple(Column(name, "") for name in (*FIGURES.values(), "ratio"))


def _figures(each: Attacked) -> tuple[Value, ...]:
    plain: list[Value] = [getattr(each, name) for name in FIGURES]
    found = ratio(each)
    return (*plain, found.numerator / found.denominator)
