"""Hierarchies as nested bars: a row for every layer, the root on top, every node as wide as the leaves under it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import altair as alt

from unblur.grid import Grid
from unblur.hierarchy import Hierarchy
from unblur.lattice import Lattice
from unblur.pictures.style import CELL, INK, LINE, SMALL, chart_of, layered, shortened

WIDTH, ROW = 560, 34
MOST_NODES = 64
"""Layers of more nodes are left out, from below; a line says so."""


@dataclass(frozen=True)
class Bar:
    """A node: its layer, its label, and which of the drawn leaves it covers (first, and one after the last)."""

    layer: int
    label: str
    first: int
    end: int


@dataclass(frozen=True)
class NestedBars:
    """What to draw."""

    title: str
    bars: tuple[Bar, ...]
    note: str = ""

    @property
    def layers(self) -> list[int]:
        """The layers that are drawn, the root's first."""
        return sorted({bar.layer for bar in self.bars}, reverse=True)


def bars_of(name: str, tree: Hierarchy, *, lowest: int = 1) -> NestedBars:
    """Lay out a hierarchy from some layer up, or from the lowest layer that has few enough nodes."""
    drawn = next(layer for layer in range(lowest, tree.height + 1) if tree.nodes(layer) <= MOST_NODES)
    grid = Grid(Lattice([tree], (drawn,)))
    bars = []
    for layer in range(drawn, tree.height + 1):
        for rank in range(tree.nodes(layer)):
            ((first, end),) = grid.box((layer,), (rank,))
            bars.append(Bar(layer, tree.label(layer, rank), first, end))
    hidden = [f"layer {layer}: {tree.nodes(layer):,} nodes" for layer in range(lowest, drawn)]
    return NestedBars(name, tuple(bars), f"not drawn: {', '.join(hidden)}" if hidden else "")


def draw_bars(tree: NestedBars) -> alt.LayerChart:
    """Draw a hierarchy."""
    leaves = max(bar.end for bar in tree.bars)
    height = ROW * len(tree.layers)
    named = [_layer_name(layer, tree.layers) for layer in tree.layers]
    axis = alt.Axis(title=None, labelPadding=8)
    x = alt.X("x:Q", scale=alt.Scale(domain=[0, leaves], nice=False), axis=None)
    y = alt.Y("row:N", sort=named, axis=axis, scale=alt.Scale(paddingInner=0.12, paddingOuter=0))
    chart = chart_of(_nodes(tree, leaves))
    boxes = chart.mark_rect(fill=CELL, stroke=LINE, strokeWidth=1, cornerRadius=2).encode(x=x, x2="x2:Q", y=y)
    texts = chart.mark_text(fontSize=SMALL + 1, fill=INK).encode(
        x=alt.X("middle:Q", scale=alt.Scale(domain=[0, leaves]), axis=None), y=y, text="text:N"
    )
    return layered([boxes, texts], width=WIDTH, height=height, title=tree.title, note=tree.note)


def _layer_name(layer: int, layers: Sequence[int]) -> str:
    return f"layer {layer}" + (" (root)" if layer == layers[0] else "")


def _nodes(tree: NestedBars, leaves: int) -> Iterator[dict[str, object]]:
    gap = 1.5 * leaves / WIDTH
    for bar in tree.bars:
        room = WIDTH * (bar.end - bar.first) / leaves - 6
        yield {
            "x": bar.first + (gap if bar.first else 0),
            "x2": bar.end - (gap if bar.end < leaves else 0),
            "middle": (bar.first + bar.end) / 2,
            "row": _layer_name(bar.layer, tree.layers),
            "text": shortened(bar.label, room, SMALL + 1),
        }
