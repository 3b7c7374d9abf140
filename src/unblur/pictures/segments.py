"""The segment grid of two attributes: a square for every cell, frames for classes, hatching where nobody can be.

Squares are of one size, whatever the leaves span, for each must be seen; their labels say what they span.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import altair as alt

from unblur.pictures.style import (
    BLUE,
    CELL,
    FAINT,
    INK,
    LINE,
    PAPER,
    SMALL,
    TEXT,
    chart_of,
    layered,
    printable,
    shortened,
    width_of,
    written,
)

Cell = tuple[int, int]
"""A column and a row, counted from 0 at the bottom left."""
Span = tuple[int, int]
"""Neighbouring columns, or rows: the first, and one after the last."""

MOST_CELLS = 4096
"""A grid of more cells is refused: nobody could see them."""
WIDEST_CELL, WIDEST_GRID, LEAST_CELL = 64, 600, 13
ROOMY = 24
"""From so many pixels on, a cell has room for names and for frames within frames."""
LONGEST_LABEL = 150
"""Labels at the sides are cut to so many pixels."""
DARKEST = 0.5
"""How opaque the highest value is: text on it stays readable on light and on dark paper."""


@dataclass(frozen=True)
class Side:
    """One attribute: its name, and the labels of its leaves in order."""

    name: str
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Frame:
    """A class, or a part of one: a rectangle of cells with a name."""

    name: str
    columns: Span
    rows: Span
    colour: str = INK
    dashed: bool = False
    shaded: bool = False
    """Whether it is tinted with its colour."""


@dataclass(frozen=True)
class Point:
    """A record: how far from the left and from the bottom, in cells."""

    x: float
    y: float
    colour: str = INK


@dataclass(frozen=True)
class SegmentGrid:
    """What to draw."""

    across: Side
    up: Side
    title: str = ""
    frames: tuple[Frame, ...] = ()
    names: Mapping[Cell, str] = field(default_factory=dict)
    """A short text in each cell."""
    values: Mapping[Cell, float] = field(default_factory=dict)
    """From 0 up; the higher, the stronger the tint. The legend starts at 0."""
    values_name: str = ""
    percent: bool = False
    """Whether values are shares; the legend then reaches from 0 % to 100 %."""
    hatched: frozenset[Cell] = frozenset()
    hatched_name: str = "nobody can be here"
    points: tuple[Point, ...] = ()
    points_name: str = "a record"

    def __post_init__(self) -> None:
        columns, rows = self.shape
        if not 0 < columns * rows <= MOST_CELLS:
            raise ValueError(f"a grid of 1 to {MOST_CELLS} cells can be drawn, not {columns} x {rows}")
        for frame in self.frames:
            for (first, end), most in zip((frame.columns, frame.rows), self.shape, strict=True):
                if not 0 <= first < end <= most:
                    raise ValueError(f"the frame {frame.name!r} reaches from {first} to {end}, outside 0 to {most}")
        for x, y in (*self.names, *self.values, *self.hatched):
            if not (0 <= x < columns and 0 <= y < rows):
                raise ValueError(f"the cell {x, y} is outside a grid of {columns} x {rows}")

    @property
    def shape(self) -> tuple[int, int]:
        """How many columns and rows."""
        return len(self.across.labels), len(self.up.labels)

    @property
    def cell(self) -> int:
        """The side of a cell, in pixels."""
        return max(LEAST_CELL, min(WIDEST_CELL, WIDEST_GRID // max(self.shape)))


def draw_segments(grid: SegmentGrid) -> alt.LayerChart:
    """Draw a grid; `style` makes an image of it."""
    columns, rows = grid.shape
    layers = [_cells(grid), *_values(grid), *_hatching(grid), *_frames(grid), *_names(grid), *_points(grid)]
    layers += _frame_names(grid)
    return layered(layers, width=columns * grid.cell, height=rows * grid.cell, title=grid.title)


def _x(grid: SegmentGrid, name: str = "x") -> alt.X:
    return alt.X(f"{name}:Q", scale=alt.Scale(domain=[0, grid.shape[0]], nice=False), axis=_across(grid))


def _y(grid: SegmentGrid, name: str = "y") -> alt.Y:
    return alt.Y(f"{name}:Q", scale=alt.Scale(domain=[0, grid.shape[1]], nice=False), axis=_up(grid))


def _across(grid: SegmentGrid) -> alt.Axis:
    labels = [printable(each) for each in grid.across.labels]
    lying = all(width_of(each, SMALL + 1) < grid.cell for each in labels)
    turn: dict[str, Any] = {} if lying else {"labelAngle": -90, "labelAlign": "right", "labelBaseline": "middle"}
    return _axis(grid.across.name, labels, grid.cell, **turn)


def _up(grid: SegmentGrid) -> alt.Axis:
    return _axis(grid.up.name, [printable(each) for each in grid.up.labels], grid.cell)


def _axis(name: str, labels: Sequence[str], cell: int, **turn: Any) -> alt.Axis:
    return alt.Axis(
        values=[number + 0.5 for number in range(len(labels))],
        labelExpr=f"{_expression(labels)}[floor(datum.value)]",
        labelLimit=LONGEST_LABEL,
        labelOverlap=False,
        labelPadding=6,
        labelFontSize=min(SMALL + 1, cell - 2),
        title=shortened(name, 260),
        **turn,
    )


def _expression(labels: Sequence[str]) -> str:
    """Write labels as a list in Vega's language, where they are text and nothing else."""
    return json.dumps(labels)


def _cells(grid: SegmentGrid) -> alt.Chart:
    columns, rows = grid.shape
    data = ({"x": x, "x2": x + 1, "y": y, "y2": y + 1} for x, y in product(range(columns), range(rows)))
    mark = chart_of(data).mark_rect(fill=CELL, stroke=LINE, strokeWidth=1)
    chart: alt.Chart = mark.encode(x=_x(grid), x2="x2:Q", y=_y(grid), y2="y2:Q")
    return chart


def _values(grid: SegmentGrid) -> Iterator[alt.Chart]:
    if not grid.values:
        return
    most = 1 if grid.percent else max(*grid.values.values(), 0) or 1
    data = ({"x": x, "x2": x + 1, "y": y, "y2": y + 1, "value": value} for (x, y), value in sorted(grid.values.items()))
    legend = alt.Legend(
        title=shortened(grid.values_name, 240) or None,
        symbolType="square",
        symbolSize=200,
        symbolFillColor=BLUE,
        symbolStrokeColor=BLUE,
        **({"format": ".0%", "values": [0.25, 0.5, 0.75, 1]} if grid.percent else {"tickCount": 4}),
    )
    scale = alt.Scale(domain=[0, most], range=[0, DARKEST], nice=False)
    tint = alt.Opacity("value:Q", scale=scale, legend=legend)
    yield chart_of(data).mark_rect(fill=BLUE).encode(x=_x(grid), x2="x2:Q", y=_y(grid), y2="y2:Q", opacity=tint)


def _hatching(grid: SegmentGrid) -> Iterator[alt.Chart]:
    if not grid.hatched:
        return
    data = ({"x": x + 0.5, "y": y + 0.5, "kind": printable(grid.hatched_name)} for x, y in sorted(grid.hatched))
    lines = _slanting(0.5 if grid.cell >= ROOMY else 1)
    shape = alt.Shape("kind:N", scale=alt.Scale(range=[lines]), legend=_key(lines, FAINT))
    mark = chart_of(data).mark_point(size=grid.cell**2, filled=False, color=FAINT, strokeWidth=1.2, opacity=1)
    yield mark.encode(x=_x(grid), y=_y(grid), shape=shape)


def _points(grid: SegmentGrid) -> Iterator[alt.Chart]:
    if not grid.points:
        return
    kind = printable(grid.points_name)
    data = ({"x": each.x, "y": each.y, "kind": kind, "colour": each.colour} for each in grid.points)
    size = min(90, grid.cell**2 / 6)
    shape = alt.Shape("kind:N", scale=alt.Scale(range=["circle"]), legend=_key("circle", INK))
    mark = chart_of(data).mark_point(size=size, stroke=PAPER, strokeWidth=1.5, opacity=1)
    yield mark.encode(x=_x(grid), y=_y(grid), shape=shape, fill=alt.Fill("colour:N", scale=None))


def _slanting(gap: float) -> str:
    """Draw slanting lines across a square from -1 to 1; with a gap of 1/n they go on in the next square."""
    sums = [gap * number for number in range(-round(2 / gap) + 1, round(2 / gap))]
    ends = [(max(-1, each - 1), min(1, each + 1)) for each in sums]
    return "".join(f"M{low:g},{high:g}L{high:g},{low:g}" for low, high in ends)


def _key(shape: str, colour: str) -> alt.Legend:
    look: dict[str, Any] = {"symbolFillColor": colour, "symbolSize": 80} if shape == "circle" else {"symbolSize": 260}
    return alt.Legend(title=None, symbolType=shape, symbolStrokeColor=colour, **look)


def _frames(grid: SegmentGrid) -> Iterator[alt.Chart]:
    """Draw each frame a little inside its cells, and further in than those it overlaps: all of their edges show."""
    roomy = grid.cell >= ROOMY
    for frame, level in zip(grid.frames, _levels(grid.frames), strict=True):
        inset = (3 + 4 * (level % 3)) / grid.cell if roomy else 1 / grid.cell
        (a, b), (c, d) = frame.columns, frame.rows
        data = [{"x": a + inset, "x2": b - inset, "y": c + inset, "y2": d - inset}]
        mark = chart_of(data).mark_rect(
            fill=frame.colour,
            fillOpacity=0.16 if frame.shaded else 0,
            stroke=frame.colour,
            strokeWidth=3 if roomy else 2,
            strokeDash=[7, 5] if frame.dashed else [1, 0],
        )
        yield mark.encode(x=_x(grid), x2="x2:Q", y=_y(grid), y2="y2:Q")


def _levels(frames: Sequence[Frame]) -> list[int]:
    """Give every frame the lowest number that none of the earlier frames it overlaps has."""
    found: list[int] = []
    for number, frame in enumerate(frames):
        near = {level for other, level in zip(frames[:number], found, strict=True) if _overlap(frame, other)}
        found.append(next(level for level in range(len(frames)) if level not in near))
    return found


def _overlap(one: Frame, other: Frame) -> bool:
    pairs = ((one.columns, other.columns), (one.rows, other.rows))
    return all(a < d and c < b for (a, b), (c, d) in pairs)


def _names(grid: SegmentGrid) -> list[alt.Chart]:
    short = {cell: shortened(name, grid.cell - 22, SMALL) for cell, name in sorted(grid.names.items())}
    rim = 13 / grid.cell  # clear of the frames
    found = [{"x": x + 1 - rim, "y": y + rim + 3 / grid.cell, "text": text} for (x, y), text in short.items() if text]
    return _texts(grid, found, fontSize=SMALL, align="right") if found and grid.cell >= 36 else []


def _frame_names(grid: SegmentGrid) -> list[alt.Chart]:
    size = TEXT if grid.cell >= ROOMY else SMALL
    placed = list(_placed(grid, size))
    return _texts(grid, placed, fontSize=size, fontWeight="bold", align="left") if placed else []


def _texts(grid: SegmentGrid, found: Sequence[Mapping[str, object]], **look: Any) -> list[alt.Chart]:
    return written(chart_of(found).encode(x=_x(grid), y=_y(grid), text="text:N"), **look)


def _placed(grid: SegmentGrid, size: int) -> Iterator[dict[str, object]]:
    """Find a free place for every name: a corner of its frame, or its middle, where no other name stands yet."""
    taken: list[tuple[float, float, float]] = []
    high, rim = size / grid.cell, (13 if grid.cell >= ROOMY else 3) / grid.cell
    for frame in grid.frames:
        (a, b), (c, d) = frame.columns, frame.rows
        name = shortened(frame.name, (b - a - 2 * rim) * grid.cell, size)
        if not name:
            continue
        wide = width_of(name, size) / grid.cell
        lefts = (a + rim, b - rim - wide, (a + b - wide) / 2)
        middles = (d - rim - high / 2, c + rim + high / 2, (c + d) / 2) if d - c > high + 2 * rim else ((c + d) / 2,)
        places = [(x, y) for y in middles for x in lefts]
        free = [
            (x, y)
            for x, y in places
            if all(x + wide < left or x > right or abs(y - middle) >= high for left, right, middle in taken)
        ]
        x, y = (free or places)[0]
        taken.append((x, x + wide, y))
        yield {"x": x, "y": y, "text": name}
