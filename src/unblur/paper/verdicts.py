"""The paper's claims put to the test: each holds, does not, or is mixed, with the figure that says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import pairwise
from statistics import fmean
from typing import Literal

from unblur.paper.claims import CLAIMS, Claim
from unblur.paper.published import said
from unblur.paper.results import Measure, Point, Results, combinations, ratio
from unblur.paper.sheets import Column, Sheet, show

Answer = Literal["holds", "mixed", "does not hold", "cannot be told"]
Number = float | Decimal | None
Value = Callable[[Point], Number]
LAST_K = 7
RISING = 0.5
"""The rank correlation from which numbers are said to rise."""


@dataclass(frozen=True)
class Verdict:
    """A claim, whether our data bear it out, and what that rests on."""

    claim: Claim
    answer: Answer
    figure: str


def verdicts(results: Results) -> list[Verdict]:
    """Judge the claims that rest on counts."""
    return [_judge(claim, results) for claim in CLAIMS if claim.id not in TIMED]


def time_verdicts(results: Results) -> list[Verdict]:
    """Judge the claims that rest on measured times."""
    return [_judge(claim, results) for claim in CLAIMS if claim.id in TIMED]


def sheet(name: str, title: str, found: Sequence[Verdict]) -> Sheet:
    """Put verdicts into a table."""
    return Sheet(
        name,
        title,
        "What the paper says in words, judged by the numbers above. A series rises if its rank correlation with the "
        f"axis is {RISING:g} or more; a claim about several series holds if it does for all, and is mixed if for some.",
        (
            Column("claim", "claim"),
            Column("where", "in the paper"),
            Column("verdict", "verdict"),
            Column("figure", "what it rests on"),
        ),
        tuple((each.claim.claim, "; ".join(each.claim.where), each.answer, each.figure) for each in found),
    )


def _judge(claim: Claim, results: Results) -> Verdict:
    answer, figure = {**TIMED, **COUNTED}[claim.id](results)
    return Verdict(claim, answer, figure)


Judgement = tuple[Answer, str]
Judge = Callable[[Results], Judgement]


def rises(numbers: Sequence[Number]) -> bool | None:
    """Tell whether numbers rise along their order; None if fewer than two are known.

    >>> rises([1, 3, 2, 5]), rises([4, 3, 3.5, 1]), rises([None, 2])
    (True, False, None)
    """
    known = [float(number) for number in numbers if number is not None]
    if len(known) < 2:
        return None
    return _correlation(_ranks(known), _ranks(range(len(known)))) >= RISING


def _ranks(numbers: Sequence[float]) -> list[float]:
    """The place of each number among all; equal ones share theirs."""
    return [sum(other < each for other in numbers) + (numbers.count(each) - 1) / 2 for each in numbers]


def _correlation(one: Sequence[float], other: Sequence[float]) -> float:
    a, b = ([each - fmean(numbers) for each in numbers] for numbers in (one, other))
    spread = (sum(x * x for x in a) * sum(y * y for y in b)) ** 0.5
    return sum(x * y for x, y in zip(a, b, strict=True)) / spread if spread else 0.0


def _of(found: Sequence[bool]) -> Answer:
    if not found:
        return "cannot be told"
    return "holds" if all(found) else "mixed" if any(found) else "does not hold"


def _named(results: Results, point: Point) -> str:
    return f"{results.protocol.sources[point.original].name} {point.attributes}"


def _with_k(
    results: Results, value: Value, *, kind: Literal["number", "seconds", "share"], last: int = LAST_K, up: bool = True
) -> list[tuple[str, bool]]:
    """Per configuration: what becomes of a value as k grows, and whether it rises, or falls if that is claimed."""
    found = []
    for series in results.series():
        points = [point for point in series if point.k <= last and value(point) is not None]
        numbers = [float(value(point) or 0) * (1 if up else -1) for point in points]
        if (moving := rises(numbers)) is not None:
            ends = f"{show(value(points[0]), kind)} to {show(value(points[-1]), kind)}"
            found.append((f"{_named(results, points[0])}: {ends}", moving))
    return found


def _grows_with_k(
    results: Results,
    value: Value,
    kind: Literal["number", "seconds", "share"] = "number",
    *,
    up: bool = True,
    last: int = LAST_K,
) -> Judgement:
    found = _with_k(results, value, kind=kind, last=last, up=up)
    texts = "; ".join(text for text, _ in found)
    return _of([moving for _, moving in found]), f"from k = {results.protocol.ks[0]} to {last}: {texts}"


def _grows_with_attributes(results: Results, value: Value) -> Judgement:
    """Per data set and k: whether a value rises with the number of attributes."""
    grown = []
    for original in ("hcup", "clinic"):
        series = list(results.series(original))
        for points in zip(*series, strict=True):
            numbers = [value(point) for point in points]
            if points[0].k <= LAST_K and None not in numbers:
                grown.append(all(float(a or 0) < float(b or 0) for a, b in pairwise(numbers)))
    figure = f"with each attribute more, it grows in {sum(grown)} of {len(grown)} series (one per data set and k)"
    return _of(grown), figure


def _class_mean(measure: Measure, point: Point) -> Number:
    return point.over_classes(measure, compound=True).mean


def _outlier_mean(measure: Measure, point: Point) -> Number:
    return point.over_outliers(measure).mean


def _not_always(judge: Judge, results: Results) -> Judgement:
    """A claim that something does not always happen."""
    answer, figure = judge(results)
    return (
        "does not hold" if answer == "holds" else "cannot be told" if answer == "cannot be told" else "holds"
    ), figure


def _most_basic_at_small_k(results: Results) -> Judgement:
    firsts = [series[0] for series in results.series()]
    shares = "; ".join(f"{_named(results, each)}: {each.basic_share:.0%}" for each in firsts)
    return _of([each.basic_share > 0.5 for each in firsts]), f"at k = {firsts[0].k}: {shares}"


def _fall(series: Sequence[Point]) -> float:
    return series[0].basic_share - series[-1].basic_share


def _falls_faster_in_clinic(results: Results) -> Judgement:
    found = []
    for attributes in (2, 3):
        pair = [series for series in results.series() if series[0].attributes == attributes]
        hcup, clinic = (_fall(series) * 100 for series in pair)
        found.append((f"{attributes} attributes: {clinic:.0f} points against {hcup:.0f}", clinic > hcup))
    last = results.protocol.ks[-1]
    printed = f"the paper: {said('clinic-basic-decline').value:g} against {said('hcup-basic-decline').value:g}"
    texts = "; ".join(text for text, _ in found)
    return _of([faster for _, faster in found]), f"up to k = {last}, {texts} ({printed})"


def _clinic_halves(results: Results) -> Judgement:
    lasts = [series[-1] for series in results.series("clinic")]
    shares = "; ".join(f"{_named(results, each)}: {each.basic_share:.0%} basic" for each in lasts)
    return _of([abs(each.basic_share - 0.5) <= 0.1 for each in lasts]), f"at k = {lasts[0].k}: {shares}"


def _cells(point: Point) -> Number:
    sizes = [each.cells for sample in point.classes() for each in sample]
    return fmean(sizes) if sizes else None


def _taken(point: Point) -> Number:
    """The share of a compound class's cells that earlier classes have taken."""
    shares = [1 - each.free / each.cells for sample in point.classes(compound=True) for each in sample]
    return fmean(shares) if shares else None


def _larger_and_overlapping(results: Results) -> Judgement:
    larger, cells = _grows_with_k(results, _cells)
    more, taken = _grows_with_k(results, _taken, "share")
    answer: Answer = larger if larger == more else "mixed"
    return answer, f"cells of a class ({larger}) {cells}. Share taken by earlier classes ({more}) {taken}"


def _covered(results: Results) -> Judgement:
    found, texts = [], []
    for original in ("hcup", "clinic"):
        at = [next((each for each in series if each.k == 6), series[-1]) for series in results.series(original)]
        shares = [each.covered for each in at if each.covered is not None]
        if len(shares) < 2:
            continue
        found.append(all(a > b for a, b in pairwise(shares)))
        texts.append(f"{results.protocol.sources[original].name}: {', '.join(f'{share:.0%}' for share in shares)}")
    printed = f"the paper, HCUP: {said('hcup-overlap-2').value:g}%, {said('hcup-overlap-3').value:g}%"
    return _of(found), f"cells that classes cover, by number of attributes, at k = 6: {'; '.join(texts)} ({printed})"


def _few_outliers(results: Results) -> Judgement:
    sizes = [(each.size, point.k) for point in results.points for each in point.outliers]
    if not sizes:
        return "cannot be told", "no sample has outliers"
    few = sum(size < k for size, k in sizes) / len(sizes)
    return ("holds" if few > 0.5 else "does not hold"), f"fewer than k in {few:.0%} of {len(sizes)} sets of outliers"


def _far_below(results: Results) -> Judgement:
    pairs = [
        (int(each.combinations), int(each.lr))
        for point in results.points
        for sample in point.classes(compound=True)
        for each in sample
    ]
    fewer = sum(remain * 1000 < label for remain, label in pairs) / len(pairs)
    return _of([fewer > 0.99]), f"over 1,000 times fewer in {fewer:.1%} of {len(pairs):,} compound classes"


def _one_valid(results: Results) -> Judgement:
    number = sum(len(outcome.classes) for outcome in results.outcomes.values())
    if not results.sound:
        return "does not hold", "some true assignment is not among those that remain"
    return "holds", f"the true one remains in all {number:,} classes; another would need other records in their cells"


def _twenty_to_ninety(results: Results) -> Judgement:
    shares = [1 - found[0] for point in results.points if point.k <= LAST_K and (found := point.singled_out())]
    if not shares:
        return "cannot be told", "there are no compound classes"
    low, high = 0.1 <= min(shares) <= 0.3, 0.8 <= max(shares) <= 1
    return _of([low, high]), f"between {min(shares):.0%} and {max(shares):.0%} of the compound classes"


def _several(results: Results) -> Judgement:
    most = max(each.singles for outcome in results.outcomes.values() for each in outcome.classes)
    return ("holds" if most > 1 else "does not hold"), f"up to {most} records in one class"


def _seconds(outliers: bool, point: Point) -> Number:
    times = [each.exact for each in point.seconds(outliers=outliers)]
    return fmean(times) if times else None


def _timed_with_k(outliers: bool, results: Results) -> Judgement:
    return _grows_with_k(results, partial(_seconds, outliers), "seconds")


def _timed_with_attributes(outliers: bool, results: Results) -> Judgement:
    return _grows_with_attributes(results, partial(_seconds, outliers))


def _lone(results: Results) -> Judgement:
    found = [each for outcome in results.outcomes.values() for each in outcome.classes]
    singles, alone = sum(each.singles for each in found), sum(each.alone for each in found)
    return ("holds" if singles == alone else "does not hold"), f"{alone:,} of {singles:,} records alone in a cell"


COUNTED: Mapping[str, Judge] = {
    "basic-share-falls": lambda results: _grows_with_k(
        results, lambda point: point.basic_share, "share", up=False, last=results.protocol.ks[-1]
    ),
    "basic-most-at-small-k": _most_basic_at_small_k,
    "basic-share-falls-faster-in-clinic": _falls_faster_in_clinic,
    "clinic-halves-at-8": _clinic_halves,
    "class-ratio-grows-with-k": lambda results: _grows_with_k(results, partial(_class_mean, ratio)),
    "outlier-ratio-grows-with-k": lambda results: _grows_with_k(results, partial(_outlier_mean, ratio)),
    "class-ratio-grows-with-attributes": lambda results: _grows_with_attributes(results, partial(_class_mean, ratio)),
    "outlier-ratio-not-with-attributes": partial(
        _not_always, lambda results: _grows_with_attributes(results, partial(_outlier_mean, ratio))
    ),
    "segments-grow-with-k": _larger_and_overlapping,
    "covered-share-falls-with-attributes": _covered,
    "few-outliers-no-halves": _few_outliers,
    "combinations-grow-with-k": lambda results: _grows_with_k(results, partial(_class_mean, combinations)),
    "combinations-grow-with-attributes": lambda results: _grows_with_attributes(
        results, partial(_class_mean, combinations)
    ),
    "combinations-far-below-label": _far_below,
    "one-valid-assignment": _one_valid,
    "singled-out-20-to-90": _twenty_to_ninety,
    "several-singled-out": _several,
    "lone-record-is-singled-out": _lone,
}
TIMED: Mapping[str, Judge] = {
    "class-time-grows-with-k": partial(_timed_with_k, False),
    "class-time-grows-with-attributes": partial(_timed_with_attributes, False),
    "outlier-time-not-with-k": partial(_not_always, partial(_timed_with_k, True)),
    "outlier-time-grows-with-attributes": partial(_timed_with_attributes, True),
}


def summary(found: Sequence[Verdict]) -> Iterator[tuple[Answer, int]]:
    """Count the answers."""
    for answer in ("holds", "mixed", "does not hold", "cannot be told"):
        if number := sum(each.answer == answer for each in found):
            yield answer, number
