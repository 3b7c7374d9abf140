"""The paper's Tables 2 to 7 and what Figures 5 and 6 show, with our numbers beside the paper's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import fmean

from unblur.paper.protocol import LAST_K
from unblur.paper.published import published
from unblur.paper.results import Measure, Point, Results, combinations, cra, distance, lr, ratio
from unblur.paper.sheets import Column, Sheet, Value
from unblur.paper.timing import Timing

KEY = (Column("data", "data"), Column("attributes", "attributes", "whole"), Column("k", "k", "whole"))


def all_tables(results: Results) -> list[Sheet]:
    """Those whose numbers are the same in every run."""
    return [classes(results), outliers(results), singled_out(results), assignments(results), segments(results)]


def all_times(results: Results) -> list[Sheet]:
    """Those of measured times."""
    return [seconds(results, outliers=False), seconds(results, outliers=True)]


def _key(results: Results, point: Point) -> tuple[Value, ...]:
    return results.protocol.sources[point.original].name, point.attributes, point.k


def _in_tables(results: Results) -> list[Point]:
    return [point for point in results.points if point.k <= LAST_K]


def _paper(quantity: str, point: Point) -> float | None:
    return published(quantity, point.original, point.attributes, point.k)


def classes(results: Results) -> Sheet:
    """Table 2: how far the attack narrows down the classes."""

    def row(point: Point) -> tuple[Value, ...]:
        every, compound = point.over_classes(ratio), point.over_classes(ratio, compound=True)
        return (
            *_key(results, point),
            sum(map(len, point.classes())),
            sum(map(len, point.classes(compound=True))),
            every.mean,
            compound.mean,
            compound.median,
            _paper("classes_ratio", point),
            point.over_classes(lr).mean,
            point.over_classes(lr, compound=True).mean,
            _paper("classes_lr", point),
            point.over_classes(cra, compound=True).mean,
            _paper("classes_cra", point),
        )

    return Sheet(
        "table-2",
        "Table 2: how far the attack narrows down the classes",
        "LR counts the raw data sets that a class's label leaves open, CRA those that remain after the attack; both "
        "are means over the classes of a sample, then over the samples. The ratio is LR / CRA, class by class.",
        (
            *KEY,
            Column("classes", "classes", "whole"),
            Column("compound", "compound", "whole"),
            Column("ratio_mean", "ratio, mean", "times"),
            Column("ratio_mean_compound", "ratio, mean of compound", "times"),
            Column("ratio_median_compound", "ratio, median of compound", "times"),
            Column("ratio_paper", "ratio, paper", "times", paper=True),
            Column("lr_mean", "LR, mean", "number"),
            Column("lr_mean_compound", "LR, mean of compound", "number"),
            Column("lr_paper", "LR, paper", "number", paper=True),
            Column("cra_mean_compound", "CRA, mean of compound", "number"),
            Column("cra_paper", "CRA, paper", "number", paper=True),
        ),
        tuple(map(row, _in_tables(results))),
        (
            *_which_fits(results, "classes_ratio", ratio),
            "Over all classes, LR is ruled by cells that hold hundreds of records: the paper's LR cannot be that mean.",
            "LR and CRA depend on how many raw values an attribute has, which the paper does not say: compare ratios.",
        ),
    )


def outliers(results: Results) -> Sheet:
    """Table 3: how far it narrows down the outliers."""

    def row(point: Point) -> tuple[Value, ...]:
        sizes = [each.size for each in point.outliers]
        ratios = point.over_outliers(ratio)
        return (
            *_key(results, point),
            len(sizes),
            fmean(sizes) if sizes else None,
            point.over_outliers(lr).mean,
            _paper("outliers_lr", point),
            point.over_outliers(cra).mean,
            _paper("outliers_cra", point),
            ratios.mean,
            ratios.median,
            _paper("outliers_ratio", point),
        )

    return Sheet(
        "table-3",
        "Table 3: how far the attack narrows down the outliers",
        "The suppressed records of a sample, which lie where no class has taken all. "
        "Samples without outliers do not count.",
        (
            *KEY,
            Column("samples", "samples with outliers", "whole"),
            Column("size", "outliers, mean", "number"),
            Column("lr_mean", "LR, mean", "number"),
            Column("lr_paper", "LR, paper", "number", paper=True),
            Column("cra_mean", "CRA, mean", "number"),
            Column("cra_paper", "CRA, paper", "number", paper=True),
            Column("ratio_mean", "ratio, mean", "times"),
            Column("ratio_median", "ratio, median", "times"),
            Column("ratio_paper", "ratio, paper", "times", paper=True),
        ),
        tuple(map(row, _in_tables(results))),
    )


def singled_out(results: Results) -> Sheet:
    """Table 4: in how many classes the true assignment leaves somebody alone in a cell."""
    quantities = ("singled_none", "singled_one", "singled_more")

    def row(point: Point) -> tuple[Value, ...]:
        shares = point.singled_out() or (None, None, None)
        every = point.singled_out(compound=False)
        printed = [_paper(quantity, point) for quantity in quantities]
        beside = [value for ours, theirs in zip(shares, printed, strict=True) for value in (ours, _share(theirs))]
        return (*_key(results, point), *beside, 1 - every[0] if every else None)

    return Sheet(
        "table-4",
        "Table 4: fuzzy singling out",
        "Shares of compound classes in whose true assignment nobody, one record, or more than one record is alone in a "
        "cell. The last column takes all classes, those of a single cell included, and tells in how many somebody is.",
        (
            *KEY,
            Column("nobody", "nobody", "share"),
            Column("nobody_paper", "nobody, paper", "share", paper=True),
            Column("one", "one", "share"),
            Column("one_paper", "one, paper", "share", paper=True),
            Column("more", "more", "share"),
            Column("more_paper", "more, paper", "share", paper=True),
            Column("somebody_of_all", "somebody, of all classes", "share"),
        ),
        tuple(map(row, _in_tables(results))),
        (_which_shares_fit(results),),
    )


def _share(percent: float | None) -> float | None:
    return None if percent is None else percent / 100


def assignments(results: Results) -> Sheet:
    """Table 5: how many assignments of records to cells remain."""

    def row(point: Point) -> tuple[Value, ...]:
        every, compound = point.over_classes(combinations), point.over_classes(combinations, compound=True)
        return (*_key(results, point), every.mean, compound.mean, compound.median, _paper("combinations", point))

    return Sheet(
        "table-5",
        "Table 5: assignments of records to cells that remain",
        "How many ways remain to say how many of a class's records each cell holds.",
        (
            *KEY,
            Column("mean", "mean", "number"),
            Column("mean_compound", "mean of compound", "number"),
            Column("median_compound", "median of compound", "number"),
            Column("paper", "paper", "number", paper=True),
        ),
        tuple(map(row, _in_tables(results))),
        _which_fits(results, "combinations", combinations),
    )


def segments(results: Results) -> Sheet:
    """Figures 5 and 6: basic and compound classes."""

    def row(point: Point) -> tuple[Value, ...]:
        return (
            *_key(results, point),
            point.number(basic=True),
            point.number(basic=False),
            point.basic_share,
            1 - point.basic_share,
        )

    return Sheet(
        "figures-5-and-6",
        "Figures 5 and 6: basic and compound classes",
        "A basic class is a single cell: its label says all there is to say, and the attack takes nothing away. "
        "Numbers are means over the samples. The paper prints no numbers beside its figures "
        "but those that its text names.",
        (
            *KEY,
            Column("basic", "basic, per sample", "number"),
            Column("compound", "compound, per sample", "number"),
            Column("basic_share", "share basic", "share"),
            Column("compound_share", "share compound", "share"),
        ),
        tuple(map(row, results.points)),
    )


def seconds(results: Results, *, outliers: bool) -> Sheet:
    """Tables 6 and 7: how long a class, or the outliers, took."""
    number, what = ("7", "set of outliers") if outliers else ("6", "class")

    def row(point: Point) -> tuple[Value, ...]:
        times = point.seconds(outliers=outliers)
        tried = [each for each in times if each.solver is not None]
        return (
            *_key(results, point),
            fmean(each.exact for each in times) if times else None,
            max((each.exact for each in times), default=None),
            fmean(each.solver or 0 for each in tried) if tried else None,
            len(tried) or None,
            sum(not each.finished for each in tried) if tried else None,
            _paper("outliers_seconds" if outliers else "class_seconds", point),
        )

    rows = tuple(map(row, _in_tables(results)))
    return Sheet(
        f"table-{number}",
        f"Table {number}: run time per {what}",
        "Exact counting on this machine, beside enumeration with CP-SAT where it was asked for (a run that was cut "
        "short counts with the time it had, so its mean is a lower bound), and the paper's cluster.",
        (
            *KEY,
            Column("exact_mean", "exact, mean", "seconds"),
            Column("exact_max", "exact, longest", "seconds"),
            Column("solver_mean", "CP-SAT, mean", "seconds"),
            Column("solver_runs", "CP-SAT, runs", "whole"),
            Column("solver_cut", "of them cut short", "whole"),
            Column("paper", "paper", "seconds", paper=True),
        ),
        rows,
        tuple(_agreement(results, outliers)),
        at_least=frozenset((n, "solver_mean") for n, each in enumerate(rows) if each[7]),
    )


def _agreement(results: Results, outliers: bool) -> Iterator[str]:
    times: list[Timing] = [each for point in results.points for each in point.seconds(outliers=outliers)]
    tried = [each for each in times if each.solver is not None]
    if not tried:
        yield "CP-SAT was not run; unblur paper --engine cpsat --budget 10m measures it, too."
        return
    done = [each for each in tried if each.finished]
    wrong = sum(not each.agrees for each in done)
    verdict = (
        "every count equals the exact engine's" if not wrong else f"{wrong:,} COUNTS DIFFER from the exact engine's"
    )
    yield f"CP-SAT came to its end in {len(done):,} of {len(tried):,} runs; {verdict}."


def _which_fits(results: Results, quantity: str, measure: Measure) -> tuple[str, ...]:
    """Say over which classes our means come closer to the paper's."""
    points = _in_tables(results)
    gaps = [
        distance([(point.over_classes(measure, compound=compound).mean, _paper(quantity, point)) for point in points])
        for compound in (False, True)
    ]
    if None in gaps:
        return ()
    every, compound = (gap or 0.0 for gap in gaps)
    nearer = "compound classes" if compound < every else "all classes"
    return (
        f"The paper does not say over which classes it averages. On average over the rows, our mean is a factor of "
        f"{10**every:,.1f} away from the paper's over all classes, and {10**compound:,.1f} over compound ones: "
        f"{nearer} fit better.",
    )


def _which_shares_fit(results: Results) -> str:
    points = _in_tables(results)

    def gap(share: Callable[[Point], tuple[float, float, float] | None]) -> float:
        pairs = [(share(point), _paper("singled_none", point)) for point in points]
        return fmean(abs(ours[0] - theirs / 100) for ours, theirs in pairs if ours and theirs is not None)

    compound, every = gap(lambda point: point.singled_out()), gap(lambda point: point.singled_out(compound=False))
    nearer = "compound classes" if compound < every else "all classes"
    return (
        f"The share with nobody singled out is on average {every * 100:.0f} points away from the paper's over all "
        f"classes and {compound * 100:.0f} over compound ones: {nearer} fit better."
    )
