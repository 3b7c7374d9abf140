"""A picture for every table: one panel per configuration, k along the axis, the paper's numbers beside ours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from math import ceil, floor, log10
from typing import Any

import altair as alt

from unblur.paper.sheets import Sheet, Value
from unblur.pictures.style import BLUE, FAINT, GREEN, INK, LINE, VERMILLION, Picture, beside, chart_of

Series = Mapping[str, str]
"""Columns to draw, and what to call each."""
WIDTH, HEIGHT = 128, 190
LOOKS = ((BLUE, "circle"), (GREEN, "square"), (VERMILLION, "diamond"), (FAINT, "triangle-up"))
"""The paper's numbers are always vermillion diamonds."""
KNOWN = {
    "exact": (BLUE, "circle"),
    "estimate": (GREEN, "square"),
    "at least, exact": (BLUE, "triangle-up"),
    "at least, estimate": (GREEN, "cross"),
}
"""How a factor is known, and how that looks."""
POWER = "datum.value < 1e-3 || datum.value >= 1e5 ? format(datum.value, '.0e') : format(datum.value, ',')"
"""How a power of ten is written on an axis."""
Points = Sequence[Mapping[str, Any]]
FILLS = (LINE, BLUE, VERMILLION)


def lines(sheet: Sheet, series: Series, *, title: str) -> Picture:
    """Draw numbers against k as lines, on an axis of powers of ten."""
    found = [
        {"series": name, "value": float(row[column] or 0), "k": row["k"], "panel": panel}
        for row, panel in _rows(sheet)
        for column, name in series.items()
        if _drawable(row[column])
    ]
    values = [float(each["value"]) for each in found] or [1.0]
    domain = [min(values) / 1.5, max(values) * 1.5]
    y = alt.Y("value:Q", scale=alt.Scale(type="log", domain=domain, nice=False))
    axis = _axis(title, values=_powers(*domain), labelExpr=POWER)
    panels = _panels(found)
    charts = [
        _lines(
            panel, points, list(series.values()), y.axis(axis if number == 0 else _bare(axis)), panel == panels[-1][0]
        )
        for number, (panel, points) in enumerate(panels)
    ]
    return _picture(sheet, charts)


def _lines(panel: str, points: Points, names: Sequence[str], y: alt.Y, last: bool) -> alt.LayerChart:
    looks = _looks(names)
    colours = alt.Scale(domain=names, range=[colour for colour, _ in looks])
    shapes = alt.Scale(domain=names, range=[shape for _, shape in looks])
    base = chart_of(points).encode(x=alt.X("k:O", axis=alt.Axis(title="k", labelAngle=0)), y=y)
    marked = base.mark_point(size=55, opacity=1, strokeOpacity=0).encode(
        fill=alt.Fill("series:N", scale=colours, legend=_legend(last)),
        shape=alt.Shape("series:N", scale=shapes, legend=_legend(last)),
    )
    drawn = [
        base.transform_filter(alt.datum.series == name).mark_line(stroke=colour, strokeWidth=1.5, opacity=0.6)
        for name, (colour, _) in zip(names, looks, strict=True)
        if name != "paper"
    ]
    parts = [*drawn, marked]
    return alt.LayerChart(layer=parts).properties(width=WIDTH, height=HEIGHT, title=panel)


def dots(every: Sheet, means: Sheet) -> Picture:
    """Draw the factor of every release as a dot whose shape tells how it is known, and a line through the means."""
    found = [
        {
            "panel": panel,
            "k": row["k"],
            "sample": row["sample"],
            "how": row["how"],
            "value": float(row["factor"]),
            "low": float(row["factor_low"] or row["factor"]),
            "high": float(row["factor_high"] or row["factor"]),
        }
        for row, panel in _rows(every)
        if _drawable(row["factor"])
    ]
    middle = [
        {"panel": panel, "k": row["k"], "mean": float(row["factor_mean"])}
        for row, panel in _rows(means)
        if _drawable(row["factor_mean"])
    ]
    domain = [1 / 1.5, max([*(each["high"] for each in found), 10.0]) * 1.5]
    axis = _axis("extra factor", values=_powers(*domain), labelExpr=POWER)
    y = alt.Scale(type="log", domain=domain, nice=False)
    names = [name for name in KNOWN if any(each["how"] == name for each in found)]
    lines = dict(_panels(middle))
    panels = _panels(found)
    charts = [
        _dots(
            points, lines.get(panel, []), names, y, axis if number == 0 else _bare(axis), panel == panels[-1][0]
        ).properties(width=WIDTH * 1.25, height=HEIGHT, title=panel)
        for number, (panel, points) in enumerate(panels)
    ]
    return _picture(means, charts)


def _dots(
    points: Points, means: Points, names: Sequence[str], y: alt.Scale, axis: alt.Axis, last: bool
) -> alt.LayerChart:
    x = alt.X("k:O", axis=alt.Axis(title="k", labelAngle=0), scale=alt.Scale(paddingInner=0.4))
    offset = alt.XOffset("sample:O")
    fills = alt.Scale(domain=names, range=[KNOWN[name][0] for name in names])
    shapes = alt.Scale(domain=names, range=[KNOWN[name][1] for name in names])
    line = chart_of(means).mark_line(stroke=INK, strokeWidth=1.5, opacity=0.6)
    reach = chart_of(points).mark_rule(stroke=FAINT, strokeWidth=1.5)
    mark = chart_of(points).mark_point(size=24, opacity=1, strokeOpacity=0)
    return alt.LayerChart(
        layer=[
            line.encode(x=x, y=alt.Y("mean:Q", scale=y, axis=axis)),
            reach.encode(x=x, xOffset=offset, y=alt.Y("low:Q", scale=y, axis=axis), y2="high:Q"),
            mark.encode(
                x=x,
                xOffset=offset,
                y=alt.Y("value:Q", scale=y, axis=axis),
                fill=alt.Fill("how:N", scale=fills, legend=_legend(last)),
                shape=alt.Shape("how:N", scale=shapes, legend=_legend(last)),
            ),
        ]
    )


def stacked(
    sheet: Sheet, series: Series, *, title: str, beside_paper: Series | None = None, share: bool, name: str = ""
) -> Picture:
    """Draw parts of a whole as bars; with the paper's parts in a second bar beside ours."""
    sets: list[tuple[str, Series]] = [("ours", series), *([("paper", beside_paper)] if beside_paper else [])]
    found = [
        {"part": name, "order": order, "value": float(row[column] or 0), "k": row["k"], "panel": panel, "whose": whose}
        for row, panel in _rows(sheet)
        for whose, columns in sets
        for order, (column, name) in enumerate(columns.items())
        if row[column] is not None
    ]
    totals: dict[tuple[object, ...], float] = defaultdict(float)
    for each in found:
        totals[each["panel"], each["k"], each["whose"]] += each["value"]
    domain = [0, 1 if share else max(totals.values(), default=1)]
    axis = _axis(title, format="%" if share else "d", tickCount=5)
    y = alt.Y("value:Q", stack="zero", scale=alt.Scale(domain=domain))
    panels = _panels(found)
    charts = [
        _bars(
            panel,
            points,
            list(series.values()),
            y.axis(axis if number == 0 else _bare(axis)),
            last=panel == panels[-1][0],
            pairs=bool(beside_paper),
        )
        for number, (panel, points) in enumerate(panels)
    ]
    return _picture(sheet, charts, name)


def _bars(panel: str, points: Points, parts: Sequence[str], y: alt.Y, *, last: bool, pairs: bool) -> alt.Chart:
    fills = FILLS[: len(parts)] if len(parts) > 2 else (LINE, BLUE)
    chart: alt.Chart = chart_of(points).properties(width=WIDTH * 1.5 if pairs else WIDTH, height=HEIGHT, title=panel)
    channels: dict[str, Any] = {
        "x": alt.X("k:O", axis=alt.Axis(title="k (left ours, right the paper)" if pairs else "k", labelAngle=0)),
        "y": y,
        "fill": alt.Fill("part:N", scale=alt.Scale(domain=list(parts), range=list(fills)), legend=_legend(last)),
        "order": alt.Order("order:Q"),
    }
    if pairs:
        channels["xOffset"] = alt.XOffset("whose:N", scale=alt.Scale(paddingInner=0.1))
        channels["opacity"] = alt.Opacity(
            "whose:N", scale=alt.Scale(domain=["ours", "paper"], range=[1, 0.55]), legend=None
        )
    drawn: alt.Chart = chart.mark_bar(stroke=INK, strokeWidth=0.4).encode(**channels)
    return drawn


def _axis(title: str, **look: Any) -> alt.Axis:
    return alt.Axis(title=title, grid=True, gridColor=LINE, gridOpacity=0.6, **look)


def _legend(shown: bool) -> alt.Legend | None:
    return alt.Legend(title=None, orient="right") if shown else None


def _powers(least: float, most: float) -> list[float]:
    """Powers of ten between two numbers, seven at most."""
    exponents = range(ceil(log10(least)), floor(log10(most)) + 1)
    step = max(1, -(-len(exponents) // 7))
    return [10.0**exponent for exponent in exponents if exponent % step == 0]


def _bare(axis: alt.Axis) -> alt.Axis:
    """The axis of a panel that stands beside another: its lines without its words."""
    bare: alt.Axis = axis.copy()
    bare.title, bare.labels = None, False
    return bare


def _looks(names: Sequence[str]) -> list[tuple[str, str]]:
    ours = iter(look for look in LOOKS if look[0] != VERMILLION)
    return [(VERMILLION, "diamond") if name == "paper" else next(ours) for name in names]


def _drawable(value: Value) -> bool:
    return isinstance(value, str) is False and value is not None and 0 < float(value) < 1e300


def _rows(sheet: Sheet) -> list[tuple[Mapping[str, Any], str]]:
    return [(row, f"{row['data']}, {row['attributes']}") for row in sheet.as_dicts()]


def _panels(found: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    return [(panel, list(points)) for panel, points in groupby(found, key=lambda each: str(each["panel"]))]


def _picture(sheet: Sheet, charts: Sequence[Any], name: str = "") -> Picture:
    return Picture(
        name or sheet.name,
        sheet.title,
        sheet.caption,
        f"{sheet.title}: the table below has the numbers.",
        beside(*charts),
    )
