"""The lattice of states: a node for every state, the finest at the bottom, an edge for every single step up a layer.

What happened to a state shows in the outline of its node as well as in its colour: dotted where no group reached k,
plain where one did, thick and filled where classes were made, faint where the run ended before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import altair as alt

from unblur.lattice import State
from unblur.pictures.style import (
    BLUE,
    CELL,
    FAINT,
    INK,
    LINE,
    PAPER,
    SMALL,
    chart_of,
    layered,
    printable,
    width_of,
    written,
)

Fate = Literal["unusable", "usable", "released", "not reached"]

MOST_STATES = 400
"""A lattice of more states is refused: nobody could see them."""
WIDEST = 900
NODE, LEVEL, GAP = 40, 76, 24
"""The height of a node, the room of a level, and what is free between neighbours, in pixels."""


@dataclass(frozen=True)
class StateNode:
    """A state, and what happened to it."""

    state: State
    fate: Fate = "usable"
    note: str = ""
    """A few characters beneath: its loss, for instance."""
    step: int | None = None
    """In which step classes were made of it."""


@dataclass(frozen=True)
class StateLattice:
    """What to draw."""

    nodes: tuple[StateNode, ...]
    title: str = ""
    colour: str = BLUE
    """Of the states that made classes."""
    legend: bool = True

    def __post_init__(self) -> None:
        if not 0 < len(self.nodes) <= MOST_STATES:
            raise ValueError(f"a lattice of 1 to {MOST_STATES} states can be drawn, not of {len(self.nodes)}")

    @property
    def levels(self) -> dict[int, list[StateNode]]:
        """The nodes by the sum of their layers; within a level the first attribute rises to the right."""
        found = defaultdict(list)
        for node in sorted(self.nodes, key=lambda node: node.state):
            found[sum(node.state)].append(node)
        return dict(found)


@dataclass(frozen=True)
class Look:
    """How the nodes of one fate look."""

    words: str
    fill: str
    stroke: str
    width: float
    dash: tuple[int, int] = (1, 0)
    tint: float = 1


def looks(colour: str) -> dict[Fate, Look]:
    """The look of every fate, the most important first."""
    return {
        "released": Look("makes classes", colour, colour, 3, tint=0.35),
        "usable": Look("could make one, but comes later", CELL, INK, 1.5),
        "unusable": Look("no group reaches k", PAPER, FAINT, 1.5, (2, 3)),
        "not reached": Look("not tried", PAPER, LINE, 1),
    }


def draw_lattice(lattice: StateLattice) -> alt.LayerChart:
    """Draw a lattice."""
    sheet = _Sheet(lattice)
    parts = [sheet.edges(), sheet.blanks(), sheet.nodes(), *(sheet.texts() if sheet.roomy else [])]
    return layered(parts, width=sheet.width, height=sheet.height, title=lattice.title)


@dataclass(frozen=True)
class _Sheet:
    """A lattice laid out: a row for every level, centred."""

    lattice: StateLattice

    @cached_property
    def places(self) -> dict[State, tuple[float, float]]:
        """Where the middle of each node is, in pixels from the top left."""
        levels = self.lattice.levels
        top = max(levels)
        return {
            node.state: (
                self.width / 2 + (n - (len(nodes) - 1) / 2) * self.room,
                (top - level) * LEVEL + NODE / 2,
            )
            for level, nodes in levels.items()
            for n, node in enumerate(nodes)
        }

    @cached_property
    def _widest(self) -> int:
        return max(map(len, self.lattice.levels.values()))

    @cached_property
    def _node(self) -> float:
        """The width of a node with its texts."""
        texts = [text for node in self.lattice.nodes for text in (_name(node.state), node.note)]
        return max(56, 12 + max(width_of(text, SMALL + 1) for text in texts))

    @property
    def roomy(self) -> bool:
        """Whether there is room for texts; if not, nodes are dots."""
        return (self._node + GAP) * self._widest <= WIDEST

    @property
    def room(self) -> float:
        return self._node + GAP if self.roomy else WIDEST / self._widest

    @property
    def width(self) -> float:
        return self.room * self._widest

    @property
    def height(self) -> float:
        return LEVEL * (max(self.lattice.levels) - min(self.lattice.levels)) + NODE

    def edges(self) -> alt.Chart:
        found = [
            {"x": x, "y": y, "x2": self.places[above][0], "y2": self.places[above][1]}
            for state, (x, y) in self.places.items()
            for above in _steps_up(state)
            if above in self.places
        ]
        mark = chart_of(found).mark_rule(stroke=LINE, strokeWidth=1.5)
        chart: alt.Chart = mark.encode(x=_x(), x2="x2:Q", y=_y(), y2="y2:Q")
        return chart

    def blanks(self) -> alt.Chart:
        """Paper under the nodes, for edges end at their rims."""
        shape, size = self._shape
        mark = chart_of(map(self._at, self.lattice.nodes)).mark_point(
            shape=shape, size=size, fill=PAPER, stroke=PAPER, opacity=1
        )
        chart: alt.Chart = mark.encode(x=_x(), y=_y())
        return chart

    @property
    def _shape(self) -> tuple[str, float]:
        return (_pill(self._node, NODE), 4.0) if self.roomy else ("circle", min(300, self.room**2 / 2))

    def nodes(self) -> alt.Chart:
        known = looks(self.lattice.colour)
        present = [look for fate, look in known.items() if any(node.fate == fate for node in self.lattice.nodes)]
        data = ({**self._at(node), "fate": known[node.fate].words} for node in self.lattice.nodes)
        shape, size = self._shape
        mark = chart_of(data).mark_point(shape=shape, size=size, opacity=1)
        legend = alt.Legend(title=None, symbolType="circle", symbolSize=200, orient="bottom", columns=2)
        shown = legend if self.lattice.legend and len(present) > 1 else None

        def by(values: Sequence[Any]) -> dict[str, Any]:
            return {"scale": alt.Scale(domain=[each.words for each in present], range=list(values)), "legend": shown}

        chart: alt.Chart = mark.encode(
            x=_x(),
            y=_y(),
            fill=alt.Fill("fate:N", **by([each.fill for each in present])),
            fillOpacity=alt.FillOpacity("fate:N", **by([each.tint for each in present])),
            stroke=alt.Stroke("fate:N", **by([each.stroke for each in present])),
            strokeWidth=alt.StrokeWidth("fate:N", **by([each.width for each in present])),
            strokeDash=alt.StrokeDash("fate:N", **by([list(each.dash) for each in present])),
        )
        return chart

    def texts(self) -> Iterator[alt.Chart]:
        """Write the state into each node, the note beneath it, the step above the node."""
        nodes = self.lattice.nodes
        yield from self._write({n.state: _name(n.state) for n in nodes}, fontWeight="bold", dy=-8, rim=False)
        yield from self._write({n.state: n.note for n in nodes if n.note}, dy=8, rim=False)
        yield from self._write({n.state: f"step {n.step}" for n in nodes if n.step}, dy=-NODE / 2 - 10)

    def _write(self, texts: dict[State, str], **look: Any) -> list[alt.Chart]:
        if not texts:
            return []
        found = [
            {**self._at(node), "text": printable(texts[node.state])}
            for node in self.lattice.nodes
            if node.state in texts
        ]
        chart = chart_of(found).encode(x=_x(), y=_y(), text="text:N")
        return written(chart, fontSize=SMALL + 1, **look)

    def _at(self, node: StateNode) -> dict[str, Any]:
        x, y = self.places[node.state]
        return {"x": x, "y": y}


def _name(state: State) -> str:
    return f"({', '.join(map(str, state))})"


def _steps_up(state: State) -> Iterator[State]:
    for attribute, layer in enumerate(state):
        yield (*state[:attribute], layer + 1, *state[attribute + 1 :])


def _x() -> alt.X:
    return alt.X("x:Q", scale=None, axis=None)


def _y() -> alt.Y:
    return alt.Y("y:Q", scale=None, axis=None)


def _pill(wide: float, high: float) -> str:
    """A rectangle with round ends, around the middle."""
    round_ = high / 2
    straight = wide - high
    return (
        f"M{-straight / 2},{-round_}h{straight}a{round_},{round_} 0 0 1 0,{high}"
        f"h{-straight}a{round_},{round_} 0 0 1 0,{-high}Z"
    )
