"""Charts of an audit as a whole: bits lost, refinement against size, and what each rule takes away."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from math import ceil, floor, log10
from statistics import median
from typing import TYPE_CHECKING, Any

import altair as alt

from unblur.ablation import Ablation
from unblur.pictures.style import BLUE, INK, LINE, SMALL, VERMILLION, Picture, chart_of, layered, written
from unblur.report.figures import is_intact
from unblur.report.phrases import FEWEST, count, fold, listed, one_in
from unblur.report.subject import RULES
from unblur.risk import Finding

if TYPE_CHECKING:
    from unblur.audits import Audit

WIDTH, HEIGHT = 620, 220
MOST_BARS = 24


def bits_lost(audit: Audit, limit: float | None, *, public: bool = False) -> Picture | None:
    """Draw how many classes lost how many bits; None if there is none to draw.

    In public no bar stands for few classes, and the suppressed records are left out: they are one group.
    """
    lost = _bits(_drawn(audit))
    outliers = audit.outliers.bits if audit.outliers and not audit.outliers.basic and not public else None
    if len(lost) < (FEWEST if public else 1):
        return None
    step = _step(max([*lost, outliers or 0.0]), MOST_BARS)
    bars = Counter(floor(each / step) for each in lost)
    end = step * (max([*bars, floor((outliers or 0.0) / step)]) + 1)
    limit = limit if limit is not None and 0 < limit <= 4 * end else None
    end = max(end, step * ceil((limit or 0) / step + 0.5))
    rows: list[dict[str, float]] = [
        {"low": n * step, "high": (n + 1) * step, "classes": number, "none": 0} for n, number in sorted(bars.items())
    ]
    rows = _joined(rows) if public else rows
    x, most = _bits_axis(end), max(int(row["classes"]) for row in rows)
    y = alt.Y("classes:Q", scale=alt.Scale(domain=[0, most * 1.18], nice=False), axis=_counts("classes", most))
    mark = chart_of(rows).mark_rect(fill=BLUE, stroke=INK, strokeWidth=0.5)
    layers = [mark.encode(x=x("low"), x2="high:Q", y=y, y2="none:Q")]
    layers += _numbers(rows, x, y)
    if outliers is not None:
        layers += _marker({"at": outliers, "classes": most * 0.98, "text": "suppressed records"}, x, y, end)
    if limit is not None:
        layers += _rule({"at": limit, "classes": most * 1.12, "text": f"limit: {fold(limit)}"}, x, y, end)
    return Picture(
        "bits-lost",
        "How much the labels lose",
        _bits_caption(audit) + (" Neighbouring bars of few classes are one." if public else ""),
        _bits_words(lost, outliers, (rows[0]["low"], rows[-1]["high"]) if public else (min(lost), max(lost))),
        layered(layers, width=WIDTH, height=HEIGHT),
    )


def _drawn(audit: Audit) -> list[Finding]:
    """The classes that lost something, or might have: a single cell cannot, unless raw values are told apart in it."""
    return [each for each in audit.classes if each.bits is not None and not (each.basic and is_intact(each))]


def _joined(rows: Sequence[dict[str, float]]) -> list[dict[str, float]]:
    """Join neighbouring bars until none stands for few classes."""
    found: list[dict[str, float]] = []
    for row in rows:
        if found and found[-1]["classes"] < FEWEST:
            found[-1] = _together(found[-1], row)
        else:
            found.append(row)
    if len(found) > 1 and found[-1]["classes"] < FEWEST:
        found[-2:] = [_together(found[-2], found[-1])]
    return found


def _together(one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    return {**one, "high": other["high"], "classes": one["classes"] + other["classes"]}


def _step(most: float, parts: int) -> float:
    """A width of 1, 2 or 5 times a power of ten, so that few enough parts reach far enough."""
    least = max(most / parts, 0.05)
    power = 10 ** floor(log10(least))
    return float(next(n * power for n in (1, 2, 5, 10) if n * power >= least * (1 - 1e-9)))


def _bits_axis(end: float) -> _Axis:
    step = _step(end, 9)
    return _Axis(end, [n * step for n in range(floor(end / step + 1e-9) + 1)])


class _Axis:
    """Bits along an axis, each tick with the share that is left."""

    def __init__(self, end: float, ticks: Sequence[float]) -> None:
        self.end, self.ticks = end, [round(each, 6) for each in ticks]

    def __call__(self, field: str) -> alt.X:
        labels = [[f"{each:g}", one_in(each) + (" left" if each == 0 else "")] for each in self.ticks]
        step = self.ticks[1] if len(self.ticks) > 1 else 1
        title = "bits lost, and the share of the possible raw data sets that is left"
        axis = alt.Axis(
            values=self.ticks, labelExpr=f"{json.dumps(labels)}[round(datum.value / {step})]", title=title, ticks=True
        )
        return alt.X(f"{field}:Q", scale=alt.Scale(domain=[0, self.end], nice=False), axis=axis)


def _counts(title: str, most: int) -> alt.Axis:
    step = max(1, int(_step(most, 5)))
    return alt.Axis(title=title, grid=True, gridColor=LINE, format=",d", values=list(range(0, most + step, step)))


def _numbers(rows: Sequence[dict[str, float]], x: _Axis, y: alt.Y) -> list[alt.Chart]:
    found = [{**row, "middle": (row["low"] + row["high"]) / 2, "text": f"{row['classes']:,}"} for row in rows]
    return written(chart_of(found).encode(x=x("middle"), y=y, text="text:N"), fontSize=SMALL, dy=-8, rim=False)


def _marker(row: dict[str, object], x: _Axis, y: alt.Y, end: float) -> list[alt.Chart]:
    """Mark where the outliers are: a diamond with words."""
    base = chart_of([row]).encode(x=x("at"), y=y)
    point = base.mark_point(shape="diamond", filled=True, size=130, fill=VERMILLION, stroke=INK, opacity=1)
    return [point, *written(base.encode(text="text:N"), fontSize=SMALL + 1, **_side(row, end, 10))]


def _rule(row: dict[str, object], x: _Axis, y: alt.Y, end: float) -> list[alt.Chart]:
    base = chart_of([row]).encode(x=x("at"))
    rule = base.mark_rule(stroke=VERMILLION, strokeWidth=2, strokeDash=[6, 4])
    return [
        rule,
        *written(base.encode(y=y, text="text:N"), fontSize=SMALL + 1, fontWeight="bold", **_side(row, end, 6)),
    ]


def _side(row: dict[str, object], end: float, gap: int) -> dict[str, Any]:
    """Write to the right, or to the left where there is no room."""
    right = float(str(row["at"])) < end * 0.7
    return {"align": "left" if right else "right", "dx": gap if right else -gap}


def _bits_caption(audit: Audit) -> str:
    drawn, undone = _drawn(audit), sum(each.bits is None for each in audit.classes)
    single, intact = sum(each.basic for each in drawn), sum(each.basic and is_intact(each) for each in audit.classes)
    several = f"{count(len(drawn) - single, 'class')} of several cells"
    told = f"{several} and {single:,} of a single one" if single else several
    left_out = [f"{count(intact, 'class')} of a single cell, from which nothing is taken away"] if intact else []
    left_out += [f"{count(undone, 'class')} not analysed"] if undone else []
    return f"Each bit halves what is left. {told}{'; not drawn: ' if left_out else ''}{listed(left_out or [''])}."


def _bits_words(lost: Sequence[float], outliers: float | None, ends: tuple[float, float]) -> str:
    told = f"A histogram of {count(len(lost), 'class')}: from {ends[0]:,.1f} to {ends[1]:,.1f} bits lost, "
    told += f"the middle one {sorted(lost)[len(lost) // 2]:,.1f}."
    return told + (f" The suppressed records lost {outliers:,.1f} bits." if outliers is not None else "")


def against_size(audit: Audit, *, public: bool) -> Picture | None:
    """Draw bits lost against the size of classes; in public, the middle of the classes of a size."""
    found = _drawn(audit)
    if len(found) < (FEWEST if public else 2):
        return None
    rows = _middles(found) if public else _bubbles(found)
    sizes = [each.subject.size for each in found]
    far = max(sizes) > 20 * min(sizes)
    scale = alt.Scale(type="log" if far else "linear", nice=True, zero=False, padding=12)
    ticks = {"values": sorted(set(sizes))} if len(set(sizes)) <= 12 else {"tickCount": 6}
    x = alt.X(
        "size:Q", scale=scale, axis=alt.Axis(title="records in the class", format=",d", labelOverlap=True, **ticks)
    )
    top = max(row["bits"] for row in rows) or 1.0
    room = alt.Scale(domain=[-0.07 * top, 1.07 * top], nice=False)  # so that dots at 0 are seen whole
    y = alt.Y("bits:Q", scale=room, axis=alt.Axis(title="bits lost", grid=True, gridColor=LINE, tickCount=6))
    numbers = sorted({row["classes"] for row in rows})
    shown = [numbers[0], numbers[len(numbers) // 2], numbers[-1]] if len(numbers) > 2 else numbers
    legend = alt.Legend(title="classes", values=sorted(set(shown)), format=",d", symbolFillColor=BLUE)
    area = alt.Size("classes:Q", scale=alt.Scale(type="sqrt", domain=[0, numbers[-1]], range=[20, 420]), legend=legend)
    mark = chart_of(rows).mark_point(filled=True, fill=BLUE, stroke=INK, strokeWidth=0.6, opacity=0.75)
    what = (
        "The middle of the bits lost, for classes of about the same size"
        if public
        else "Bits lost by classes of each size"
    )
    words = f"{what}: sizes {min(sizes):,} to {max(sizes):,}, {count(len(found), 'class')}."
    return Picture(
        "against-size",
        "What classes lose, against their size",
        f"{what}. Without single cells from which nothing is taken away; a larger dot stands for more classes.",
        words,
        mark.encode(x=x, y=y, size=area).properties(width=WIDTH, height=HEIGHT),
    )


def _bubbles(found: Sequence[Finding]) -> list[dict[str, float]]:
    """Classes of the same size and about the same bits are one dot."""
    step = _step(max(each.bits or 0.0 for each in found), 60)
    dots = Counter((each.subject.size, round((each.bits or 0.0) / step)) for each in found)
    return [{"size": size, "bits": place * step, "classes": n} for (size, place), n in sorted(dots.items())]


def _middles(found: Sequence[Finding]) -> list[dict[str, float]]:
    """The middle of classes of one size, or of neighbouring sizes, so that no dot stands for few."""
    ordered = sorted(found, key=lambda each: each.subject.size)
    groups: list[list[Finding]] = [[]]
    for _, some in groupby(ordered, key=lambda each: each.subject.size):
        if len(groups[-1]) >= FEWEST:
            groups.append([])
        groups[-1] += some
    if len(groups) > 1 and len(groups[-1]) < FEWEST:
        groups[-2:] = [groups[-2] + groups[-1]]
    return [
        {"size": median(each.subject.size for each in some), "bits": median(_bits(some)), "classes": len(some)}
        for some in groups
    ]


def _bits(found: Sequence[Finding]) -> list[float]:
    return [each.bits for each in found if each.bits is not None]


def rules_effect(ablation: Ablation) -> Picture | None:
    """Draw what each rule takes away, alone and on top of the others; the sum would dwarf them all."""
    known = {rule: effect for rule, effect in ablation.effects.items() if rule != "sum" and effect.alone is not None}
    if not known:
        return None
    kinds = {"alone": "alone", "last": "on top of the others"}
    rows = [
        {"rule": RULES[rule], "kind": words, "bits": value, "text": f"{value:,.1f}"}
        for rule, effect in known.items()
        for field, words in kinds.items()
        if (value := getattr(effect, field)) is not None
    ]
    order, fills = list(kinds.values()), [BLUE, LINE]
    y = alt.Y("rule:N", sort=[RULES[rule] for rule in known], axis=alt.Axis(title=None, labelLimit=320))
    offset = alt.YOffset("kind:N", sort=order)
    most = max(row["bits"] for row in rows) or 1
    x = alt.X(
        "bits:Q",
        scale=alt.Scale(domain=[0, most * 1.12], nice=False),
        axis=alt.Axis(title="bits", grid=True, gridColor=LINE, tickCount=6),
    )
    fill = alt.Fill("kind:N", scale=alt.Scale(domain=order, range=fills), legend=alt.Legend(title=None, orient="top"))
    base = chart_of(rows).encode(x=x, y=y, yOffset=offset)
    layers = [base.mark_bar(stroke=INK, strokeWidth=0.6).encode(fill=fill)]
    layers += written(base.encode(text="text:N"), fontSize=SMALL, align="left", dx=4, rim=False)
    words = "; ".join(f"{row['rule']}, {row['kind']}: {row['text']} bits" for row in rows)
    return Picture(
        "rules-effect",
        "What each rule takes away",
        "In bits, over all classes and the suppressed records. The sum would dwarf all bars: it is in the table only.",
        f"{words}.",
        layered(layers, width=WIDTH * 0.6, height=44 * len(known)),
    )
