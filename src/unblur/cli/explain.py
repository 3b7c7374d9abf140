"""`unblur explain`: one class in plain words, for someone who must decide and is no programmer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer

from unblur.attacking import Attack, inference_of
from unblur.auditing import mechanism_of
from unblur.cli.progress import first_of, progress_bar
from unblur.cli.screen import MISFIT
from unblur.counting.numbers import Count
from unblur.errors import ConfigError
from unblur.explaining import explain
from unblur.explanations import Entry, Explanation, Taker
from unblur.mechanisms import Order
from unblur.projects import NO_CONFIG, is_project, open_project
from unblur.reading import read_release
from unblur.release import Release
from unblur.whereabouts import alone, place, places, spread
from unblur.words import are, count, few, item, kept, labelled, listed, percent, rounded, shown, wrap

MOST_EFFORT = 1_000_000_000
"""A single class may take half a minute."""
MOST_TAKERS = 5
"""So many earlier classes are named one by one."""


def run(
    release: str,
    *,
    config: Path | None,
    chosen: str,
    mechanism: str | None = None,
    order: Order = "sound",
    cells: int = 20,
    encoding: str | None = None,
) -> None:
    """Read the release and put one class into words."""
    with progress_bar(first_of("reading the release", release)), _opened(release, config, encoding) as opened:
        number = find_class(chosen, opened)
        made_by = mechanism_of(opened, mechanism)
        attack = Attack(opened.bare(), inference_of(made_by, opened, order), effort=MOST_EFFORT)
        explanation = explain(attack, number, records=opened.config.records)
    print(describe(explanation, cells=cells))
    print(
        wrap(
            f"Assumed: mechanism {made_by.name}, order {order}, records {opened.config.records}. This looks at "
            "one class at a time; all together say more. Evidence for review, not a certificate."
        )
    )
    if not explanation.fits:
        raise typer.Exit(MISFIT)


@contextmanager
def _opened(release: str, config: Path | None, encoding: str | None) -> Iterator[Release]:
    """Open a release, or the one in a project of ARX."""
    if is_project(release):
        if config is not None:
            raise ConfigError("a .deid project has its own config; leave --config out")
        with open_project(Path(release)) as project:
            yield project.release
    elif config is None:
        raise ConfigError(NO_CONFIG)
    else:
        yield read_release(release, config, encoding=encoding)


def find_class(chosen: str, release: Release) -> int | None:
    """Find the index of a class by its id; None for the outliers."""
    text, classes = chosen.strip(), len(release.classes)
    if text.lower() == "outliers":
        return None
    digits = text.lstrip("0")
    # So few digits that Python reads them at once, and only those that other programs read, too.
    if re.fullmatch("[0-9]{1,18}", digits) and int(digits) <= classes:
        return int(digits) - 1
    known = {0: "there are no classes, only outliers", 1: "the only class is 1"}
    accepted = known.get(classes, f"a class is a number from 1 to {classes:,}")
    also = ", or outliers" if classes and release.outliers else ""
    raise ConfigError(f"--class {chosen if len(chosen) <= 20 else f'{chosen[:20]}…'!r}: {accepted}{also}")


def describe(explanation: Explanation, *, cells: int = 20) -> str:
    """Put an explanation into words: lines of at most 100 characters, and at most so many rows of cells."""
    paragraphs = [_title(explanation), *_promise(explanation)]
    if not explanation.fits:
        paragraphs += _section("What speaks against it:", [*_takers(explanation), *_limit(explanation)])
    elif explanation.all_cells > 1:
        title = "What is known:" if explanation.plausible == explanation.published else "Why:"
        paragraphs += _section(title, list(_reasons(explanation)))
        paragraphs += [*places(explanation, cells), *alone(explanation)]
    return "\n\n".join(paragraphs) + "\n"


def _section(title: str, items: Sequence[str]) -> list[str]:
    return ["\n".join([title, *items])] if items else []


def _title(explanation: Explanation) -> str:
    if explanation.id is None:
        return wrap(f"The outliers: {_records(explanation)}, suppressed: published as * everywhere.")
    return wrap(f"Class {explanation.id}: {_records(explanation)}, published as {labelled(explanation.labels)}.")


def _promise(explanation: Explanation) -> Iterator[str]:
    """Say what the label leaves open, and what is left of it."""
    if explanation.id is not None and explanation.size < explanation.k:
        yield wrap(f"That is fewer than k = {explanation.k:,}: k was another, or rows are missing.")
    if explanation.published:
        yield "\n".join(wrap(line) for line in _ways_left(explanation))
    else:
        values = f"{are(explanation.values)} {count(explanation.values, 'possible value')}"
        yield wrap(
            f"This does not fit. There {values} for {_records(explanation)}, so some are equal, "
            'but records were said to be distinct. Try again with records = "any".'
        )


def _ways_left(explanation: Explanation) -> Iterator[str]:
    where, ways = _anywhere(explanation), _ways(explanation.published)
    if explanation.all_cells == 1 and explanation.fits:
        yield (
            f"The label says all there is to say: {_records(explanation)} {where}, {ways} to fill in the raw data. "
            "Nothing is narrower than this label, and nothing was taken away from it."
        )
        return
    yield f"What the label says: {_records(explanation)} {where}, {ways} to fill in the raw data."
    if explanation.all_cells > 1:
        yield "(A cell is one combination of the narrowest labels that this release may use.)"
    yield f"What is left: {_left(explanation)}"
    if explanation.fits and explanation.upper_bound:
        yield _left_out(explanation)


def _anywhere(explanation: Explanation) -> str:
    cells, values = explanation.all_cells, explanation.values
    if cells == 1:
        return f"in a single cell ({count(values, 'possible value')})"
    return (
        f"anywhere in {cells:,} cells ({'1 possible value each' if cells == values else f'{values:,} possible values'})"
    )


def _left(explanation: Explanation) -> str:
    if not explanation.fits:
        equal = "; or some records are equal, not distinct" if explanation.records == "distinct" else ""
        return (
            "nothing. No way to fill in the raw data leads to this release, so it was not made by this mechanism, "
            f"with this k and these hierarchies; or its rows were changed afterwards{equal}."
        )
    if explanation.plausible != explanation.published:
        return f"{_ways(explanation.plausible)}, {_share(explanation)}."
    if explanation.upper_bound:
        return "all of it, as far as this was computed."
    who = "record" if explanation.size == 1 else "records"
    return f"all of it. Nothing was taken away; the {who} may be anywhere under this label."


def _share(explanation: Explanation) -> str:
    bits = explanation.bits or 0.0
    less = f"{bits:,.1f} bits less; each bit halves what is left" if bits >= 0.05 else "hardly less"
    ratio = explanation.ratio
    if ratio is not None and ratio < 2:
        return f"{percent(1 / ratio)} of them ({less})"
    return f"1 in {rounded(bits)} ({less})"


def _left_out(explanation: Explanation) -> str:
    names = listed([kept(f"'{shown(name)}'") for name in explanation.dropped])
    rules, they = ("rule", "it") if len(explanation.dropped) == 1 else ("rules", "they")
    was = "was" if they == "it" else "were"
    return (
        f"The true number may be smaller still: the {rules} for {names} {was} left out, here and in all chances below, "
        f"because {they} would take too long."
    )


def _reasons(explanation: Explanation) -> Iterator[str]:
    yield from _takers(explanation)
    yield from _rule(explanation)
    emptied = [each for each in explanation.cells or () if each.free and each.verdict == "impossible"]
    if emptied:
        number = sum(each.free for each in emptied)
        yield item(
            f"{count(number, 'more cell')} {are(number)} empty though no class was there: these limits leave no room "
            f"({_some(explanation, emptied)})."
        )
    if explanation.bound is None:
        yield item("How the records spread inside their label is not known: nothing is assumed about that.")
    elif explanation.size < explanation.bound:
        few_records = f"These are fewer than {explanation.bound:,} records, so no rule says how they spread."
        yield item("No rule says more about a single record." if explanation.size == 1 else few_records)


def _takers(explanation: Explanation) -> Iterator[str]:
    """Say which cells earlier classes took."""
    if not explanation.takers:
        return
    ranked = sorted(explanation.takers, key=lambda each: (-each.cells, each.id))
    lines = [_taker(each, explanation) for each in few(ranked, MOST_TAKERS)]
    if others := len(ranked) - len(lines):
        lines.append(f"and {count(others, 'more class')}")
    taken = explanation.all_cells - explanation.free_cells
    shared = " (they share some cells)" if sum(each.cells for each in ranked) > taken else ""
    yield item(
        f"{_taken(explanation)} empty. A class takes everybody who is in its cells, and "
        f"{'these were' if len(ranked) > 1 else 'this one was'} made before{shared}:",
        lines,
    )


def _taken(explanation: Explanation) -> str:
    every, taken = explanation.all_cells, explanation.all_cells - explanation.free_cells
    if taken == every:
        return "Its only cell is" if every == 1 else f"All {every:,} cells are"
    return f"{taken:,} of the {every:,} cells {are(taken)}"


def _taker(taker: Taker, explanation: Explanation) -> str:
    where = _difference(taker.labels, explanation.labels)
    return f"class {taker.id} covers {count(taker.cells, 'cell')}: {count(taker.size, 'record')} in {where}"


def _difference(labels: Mapping[str, str], here: Mapping[str, str]) -> str:
    other = {name: label for name, label in labels.items() if label != here[name]}
    return labelled(other or labels)


def _rule(explanation: Explanation) -> Iterator[str]:
    """Say what follows for each part of a label from the rule that no part may hold too many."""
    bounded = [split for split in explanation.children if split.bounded]
    if bounded:
        yield item(
            f"{_why(explanation)} So, of the {_records(explanation)}:",
            [spread(split, explanation.size) for split in bounded],
        )


def _limit(explanation: Explanation) -> Iterator[str]:
    """Say that the records cannot spread as the rule wants it."""
    bound, left = explanation.bound, explanation.free_cells
    if explanation.published and left and bound is not None and explanation.size >= bound:
        among = f" over the {count(left, 'cell')} that {are(left)} left" if explanation.takers else ""
        yield item(f"{_why(explanation)} The {_records(explanation)} cannot spread{among} so that this holds.")


def _why(explanation: Explanation) -> str:
    """Say why narrower labels cannot hold too many."""
    if explanation.bound == explanation.k:
        many = f"Had {explanation.k:,} or more of these records shared a narrower label"
        return f"{many}, they would have been published under it."
    return (
        f"Had narrower labels, each with {explanation.k:,} or more of these records, held {explanation.bound:,} or "
        "more of them together, a finer and cheaper step would have released them."
    )


def _some(explanation: Explanation, entries: Sequence[Entry]) -> str:
    named = [place(explanation, each) for each in few(entries, 3)]
    others = len(entries) - len(named)
    return "; ".join([*named, *([f"and {others:,} more"] if others else [])])


def _records(explanation: Explanation) -> str:
    return count(explanation.size, "record")


def _ways(number: Count) -> str:
    return f"{rounded(number.log2)} way{'' if number.exact == 1 else 's'}"
