"""How many records each cell of a picture may be expected to hold, attribute by attribute pair.

Inside a block all free values are alike, so what is expected in a part of a block is what is expected in the block,
times the part's share of its free values. A picture shows the nodes of one layer of two attributes; what is expected
there is summed over all others. Blocks whose count would take too long are filled evenly; the work is limited in steps,
not in seconds, so the same audit gives the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from unblur.attacking import Attack, Target
from unblur.config import QuasiIdentifier
from unblur.counting.exact import SLOWER, estimated_work
from unblur.counting.placements import Placements
from unblur.counting.problem import Problem, Records
from unblur.grid import Box, Grid, Span
from unblur.lattice import Lattice

Floats = NDArray[np.float64]
Piece = tuple[Box, float]
"""A box, and how many records are expected in it."""
MOST_NODES = 16
"""So many nodes of an attribute are shown, from the finest layer that has no more."""
MOST_WORK = 400_000
MOST_WORK_IN_ALL = 6_000_000
"""Steps for one class, and for all together."""


@dataclass(frozen=True)
class Scale:
    """One attribute, cut into the nodes that a picture shows."""

    attribute: QuasiIdentifier

    @cached_property
    def layer(self) -> int:
        tree, low = self.attribute.hierarchy, self.attribute.finest_layer
        start = 1 if tree.kind == "interval" else low
        return next(layer for layer in range(start, tree.height + 1) if tree.nodes(layer) <= MOST_NODES)

    @cached_property
    def _grid(self) -> Grid:
        return Grid(Lattice([self.attribute.hierarchy], (self.attribute.finest_layer,)))

    @cached_property
    def _nodes(self) -> list[tuple[Span, int]]:
        ranks = range(self.attribute.hierarchy.nodes(self.layer))
        return sorted((self._grid.box((self.layer,), (rank,))[0], rank) for rank in ranks)

    @property
    def is_finest(self) -> bool:
        """Whether the nodes shown are what people call cells."""
        tree, low = self.attribute.hierarchy, self.attribute.finest_layer
        return self.layer == (1 if tree.kind == "interval" else low)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.attribute.hierarchy.label(self.layer, rank) for _, rank in self._nodes)

    def shares(self, span: Span) -> Floats:
        """Which share of a span's values lies in each node."""
        if span not in self._known:
            parts = [(max(span[0], a), min(span[1], b)) for (a, b), _ in self._nodes]
            volumes = [self._grid.volume((part,)) if part[0] < part[1] else 0 for part in parts]
            self._known[span] = np.array(volumes, np.float64) / sum(volumes)
        return self._known[span]

    @cached_property
    def _known(self) -> dict[Span, Floats]:
        return {}

    def touched(self, span: Span) -> tuple[int, int]:
        """The nodes that a span touches: the first, and one after the last."""
        inside = [place for place, ((a, b), _) in enumerate(self._nodes) if a < span[1] and span[0] < b]
        return inside[0], inside[-1] + 1


@dataclass
class Spreader:
    """Spreads the records of classes over what is free for them, within a limit of work."""

    attack: Attack
    records: Records
    left: int = MOST_WORK_IN_ALL
    evenly: int = 0
    """How many classes were spread evenly because counting would take too long."""
    scales: list[Scale] = field(init=False)

    def __post_init__(self) -> None:
        self.scales = [Scale(each) for each in self.attack.release.config.quasi_identifiers]

    def pieces(self, target: Target) -> list[Piece]:
        """Boxes that are free for a class, and the records expected in each."""
        return list(self._pieces(target))

    def _pieces(self, target: Target) -> Iterator[Piece]:
        expected = self._expected(target)
        for block, free in target.problem.free.items():
            if free.volume and expected[block]:
                for piece in free.pieces:
                    yield piece, expected[block] * (self.attack.grid.volume(piece) / free.volume)

    def _expected(self, target: Target) -> dict[tuple[int, ...], float]:
        problem = target.problem
        volume = sum(free.volume for free in problem.free.values())
        if problem.constrained and volume:
            work = steps_of(target.problem)
            if work <= min(MOST_WORK, self.left):
                self.left -= work
                return self._counted(target)
            self.evenly += 1
        return {block: problem.size * (free.volume / volume) for block, free in problem.free.items() if volume}

    def _counted(self, target: Target) -> dict[tuple[int, ...], float]:
        placements = Placements(self.attack.grid, target.problem, self.records)
        found = dict.fromkeys(target.problem.free, 0.0)
        if placements.solutions:
            for block in target.problem.blocks:
                odds = placements.held([block])
                found[block] = sum(n * float(chance) for n, chance in enumerate(odds))
        return found


def steps_of(problem: Problem) -> int:
    """Estimate the steps, of about a microsecond, that the odds of all blocks take."""
    if not problem.constrained:
        return len(problem.blocks)
    steps = estimated_work(problem.size, problem.bound or 0, problem.fanouts, problem.heavy_from)
    each = steps // SLOWER if problem.size >= 2 * (problem.heavy_from or 1) else 50 + steps // 30
    return each * len(problem.blocks)


@dataclass(frozen=True)
class Plane:
    """Two attributes, by their numbers; a single one if there is no other."""

    across: int
    up: int | None

    def shape(self, scales: Sequence[Scale]) -> tuple[int, int]:
        """How many columns and rows."""
        return len(scales[self.across].labels), len(scales[self.up].labels) if self.up is not None else 1

    def project(self, pieces: Sequence[Piece], scales: Sequence[Scale]) -> Floats:
        """Sum up what is expected per cell of the plane."""
        found = np.zeros(self.shape(scales))
        for box, expected in pieces:
            across = scales[self.across].shares(box[self.across])
            up = scales[self.up].shares(box[self.up]) if self.up is not None else np.ones(1)
            found += expected * np.outer(across, up)
        return found

    def outline(self, box: Box, scales: Sequence[Scale]) -> tuple[Span, Span]:
        """The columns and rows that a box touches."""
        rows = scales[self.up].touched(box[self.up]) if self.up is not None else (0, 1)
        return scales[self.across].touched(box[self.across]), rows
