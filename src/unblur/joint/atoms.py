"""The free cells of all classes, one by one, or as coarsely as no rule tells them apart.

Where raw values of a number are in the lattice, cells are not listed: each axis is cut only where a node that is asked
about, or a free piece of some class, begins or ends. Between two cuts nothing is told apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from unblur.attacking import Target
from unblur.errors import ProgramError
from unblur.grid import Box, Free, Grid, Span
from unblur.lattice import State

Ints = NDArray[np.int64]

MOST_NODES = 512
"""Layers of more nodes (raw values of a number) are not asked about."""
MOST_ATOMS = 200_000
"""So many atoms, over all classes, can be told apart."""


@dataclass(frozen=True)
class Atoms:
    """Disjoint boxes of free cells, each of one class; every node of the layers in use contains or misses an atom."""

    grid: Grid
    subjects: Sequence[Target]

    @cached_property
    def layers(self) -> list[range]:
        """The layers of each attribute that are asked about: all, but for those of very many nodes."""
        lattice = self.grid.lattice
        return [
            range(next(layer for layer in each if tree.nodes(layer) <= MOST_NODES), each.stop)
            for each, tree in zip(lattice.layers, lattice.hierarchies, strict=True)
        ]

    @property
    def coarse(self) -> bool:
        """Whether some layers are not asked about."""
        return self.layers != self.grid.lattice.layers

    @cached_property
    def cuts(self) -> list[list[int]]:
        """Where each axis is cut."""
        found: list[set[int]] = [
            {edge for layer in layers for span in self.spans(attribute, layer) for edge in span}
            for attribute, layers in enumerate(self.layers)
        ]
        for piece in self._pieces():
            for edges, span in zip(found, piece, strict=True):
                edges.update(span)
        return [sorted(edges) for edges in found]

    def spans(self, attribute: int, layer: int) -> list[Span]:
        """The spans of all nodes of a layer, by rank."""
        state, top = list(self.grid.lattice.top), self.grid.lattice.top
        state[attribute] = layer
        found = []
        for rank in range(self.grid.lattice.hierarchies[attribute].nodes(layer)):
            segment = tuple(rank if other == attribute else 0 for other in range(len(top)))
            found.append(self.grid.box(tuple(state), segment)[attribute])
        return found

    def _pieces(self) -> Iterator[Box]:
        for target in self.subjects:
            for free in target.problem.free.values():
                yield from free.pieces

    @cached_property
    def ranks(self) -> list[dict[int, Ints]]:
        """For each attribute and layer, the node in which each part of the axis lies."""
        found: list[dict[int, Ints]] = []
        for attribute, layers in enumerate(self.layers):
            starts = np.array(self.cuts[attribute][:-1])
            found.append({})
            for layer in layers:
                spans = self.spans(attribute, layer)
                order = np.argsort([first for first, _ in spans])
                firsts = np.array([spans[rank][0] for rank in order])
                found[-1][layer] = order[np.searchsorted(firsts, starts, side="right") - 1]
        return found

    @cached_property
    def places(self) -> Ints:
        """Per atom the part of each axis that it lies in."""
        return self._listed[0]

    @cached_property
    def owners(self) -> Ints:
        """Per atom the class that it belongs to."""
        return self._listed[1]

    @cached_property
    def blocks(self) -> list[tuple[int, ...]]:
        """Per atom the block of its class's own problem."""
        return self._listed[2]

    @cached_property
    def _listed(self) -> tuple[Ints, Ints, list[tuple[int, ...]]]:
        at = [{edge: part for part, edge in enumerate(cuts)} for cuts in self.cuts]
        places: list[tuple[int, ...]] = []
        owners: list[int] = []
        blocks: list[tuple[int, ...]] = []
        for owner, target in enumerate(self.subjects):
            for block, free in target.problem.free.items():
                for piece in free.pieces:
                    ranges = [range(part[a], part[b]) for part, (a, b) in zip(at, piece, strict=True)]
                    if len(places) + prod(map(len, ranges)) > MOST_ATOMS:
                        raise ProgramError(f"the joint program tells more than {MOST_ATOMS:,} cells apart")
                    places += product(*ranges)
                    blocks += [block] * (len(places) - len(blocks))
                    owners += [owner] * (len(places) - len(owners))
        return np.array(places, np.int64).reshape(len(places), len(at)), np.array(owners, np.int64), blocks

    def box(self, atom: int) -> Box:
        """The cells of an atom."""
        parts = zip(self.cuts, self.places[atom].tolist(), strict=True)
        return tuple((cuts[part], cuts[part + 1]) for cuts, part in parts)

    def measure(self, atoms: Sequence[int]) -> Free:
        """Measure some atoms."""
        return self.grid.measure([self.box(atom) for atom in atoms])

    def segments(self, state: State) -> Ints:
        """Per atom the segment of a state in which it lies, as one number."""
        return self.code(state, [self.ranks[i][layer][self.places[:, i]] for i, layer in enumerate(state)])

    def code(self, state: State, ranks: Sequence[Ints]) -> Ints:
        """Number the segments of a state."""
        codes = np.zeros_like(ranks[0])
        if prod(tree.nodes(layer) for tree, layer in zip(self.grid.lattice.hierarchies, state, strict=True)) >= 2**63:
            raise ProgramError("the joint program has more segments than can be numbered")
        for tree, layer, column in zip(self.grid.lattice.hierarchies, state, ranks, strict=True):
            codes = codes * tree.nodes(layer) + column
        return codes
