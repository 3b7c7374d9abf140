"""The page about all classes together: what the extra factor means, its picture and its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isinf

from unblur.pages.rendering import render
from unblur.paper import charts
from unblur.paper.joint_tables import counted, estimate_of, factor_of, factors, gathered, releases, truth
from unblur.paper.results import Results
from unblur.paper.sections import Section
from unblur.paper.sheets import show
from unblur.words import count

TITLE = "All classes together: the extra factor, which is not in the paper"
FOLDER = "joint"


def sections(results: Results) -> list[Section]:
    """The tables, with a picture; none if no classes were attacked together."""
    if not results.extras:
        return []
    table, every = factors(results), releases(results)
    return [Section(table, (charts.dots(every, table),), FOLDER), Section(every, folder=FOLDER, folded=True)]


def page(results: Results, sections: Sequence[Section], *, others: Sequence[Mapping[str, str]]) -> str:
    """Draw up the page."""
    protocol, extras = results.protocol, list(results.extras.values())
    return render(
        "evaluation.html",
        title=TITLE,
        intro=f"{count(len(extras), 'release')} attacked; {counted(extras)}; {truth(extras)}.",
        about=_about(results),
        samples=max(each.trial.sample for each in extras),
        seed=protocol.seed,
        sources=list(protocol.sources.values()),
        synthetic=any(source.synthetic for source in protocol.sources.values()),
        sections=sections,
        example=[],
        quirks=[],
        others=others,
    )


def _about(results: Results) -> list[str]:
    known = [each.together for each in results.extras.values() if not isinf(each.together)]
    still = f": even of the release with the fewest, about 10^{min(known):,.0f} tables remain possible" if known else ""
    return [
        "The paper attacks one class at a time. This page is ours: neither the question nor any number on it is the "
        "paper's. It tells how much more a release gives away to somebody who looks at all of its classes together.",
        "Class by class, an attacker finds for each class the raw data that may be behind it. Any choice of one for "
        "each class looks like a possible original table. Yet many of these tables, anonymized, would give another "
        "release. The extra factor says how many times fewer tables are left when those are struck out, too. A factor "
        "of 1 means that looking at all classes together gives nothing more away. A factor of 100 means that of a "
        "hundred tables that seem possible class by class, one really is.",
        f"The largest factor here is {_largest(results)}. It does not mean that somebody is found{still}. It means "
        "that counts taken class by class, multiplied over the whole release, are too comforting by this factor.",
    ]


def _largest(results: Results) -> str:
    point = max(gathered(results), key=lambda each: each.largest)
    interval = point.largest_interval
    factor = show(factor_of(point.largest, estimated=interval is not None), "times")
    how = f" (an {estimate_of(interval)})" if interval else ""
    return ("at least " if point.at_least else "") + factor + how
