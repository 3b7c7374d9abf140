"""The ways from the start to the states of the exact engine, and from the states to the end.

On the way from the start, states were put in order by mirrors, so that groups stand for others. Which do so depends on
the way: ways are told apart by that, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unblur.counting.deadline import check
from unblur.joint.flowing import Array, Kind
from unblur.joint.folding import Images, images
from unblur.joint.front import Layer
from unblur.joint.merging import Indices, Ints, merge


@dataclass(frozen=True)
class Paths:
    """The ways from the start to some states."""

    images: Images
    """Rows that tell which group each group stands for."""
    image: Indices
    """The row for each bundle of ways."""
    state: Indices
    ways: Array

    @classmethod
    def start(cls, groups: int, kind: Kind) -> Paths:
        """There is one way to the start, and every group stands for itself."""
        only = np.zeros(1, np.int32)
        return cls(np.arange(groups, dtype=np.int16)[None], only, only, np.ones(1, kind.dtype))

    def onwards(self, layer: Layer) -> tuple[Ints, Ints]:
        """Go on with every move: from which bundle, and which move."""
        number = layer.moves[self.state].astype(np.int64)
        bundle = np.repeat(np.arange(len(number)), number)
        firsts = (np.cumsum(layer.moves, dtype=np.int64) - layer.moves)[self.state]
        return bundle, np.arange(len(bundle)) + np.repeat(firsts - (np.cumsum(number) - number), number)


@dataclass(frozen=True)
class Sides:
    """The ways on both sides of every layer."""

    layers: Sequence[Layer]
    kind: Kind
    groups: int

    @cached_property
    def after(self) -> list[Array]:
        """Per layer, the ways from the states that it leads to."""
        return self._values[1]

    @cached_property
    def _values(self) -> tuple[dict[int, Array], list[Array]]:
        values: dict[int, Array] = {}
        after: list[Array] = []
        for place in range(len(self.layers) - 1, -1, -1):
            layer = self.layers[place]
            after.append(self.kind.product(layer, [values[each.layer] for each in layer.branches]))
            values[place] = self.kind.back(layer, after[-1])
        return values, after[::-1]

    def filled(self) -> Iterator[Array]:
        """Per layer, the ways by the group that it fills in truth (rows) and the records it places there (columns)."""
        most = max((int(layer.placed.max(initial=0)) for layer in self.layers), default=0)
        for layer, before, after in zip(self.layers, self._before, self.after, strict=True):
            check()
            bundle, move = before.onwards(layer)
            ways = before.ways[bundle] * self.kind.moves(layer)[move] * after[layer.target[move]]
            found: Array = np.zeros((self.groups, most + 1), self.kind.dtype)
            filled = before.images[:, layer.step.group][before.image][bundle]
            self.kind.add.at(found, (filled, layer.placed[move]), ways)
            yield found

    @cached_property
    def _before(self) -> list[Paths]:
        """Per layer, the ways to the states that it starts from; all that is not below a layer is left out."""
        found: dict[int, Paths] = {}
        values = self._values[0]
        for place, layer in enumerate(self.layers):
            check()
            there = self._beyond(layer, found.setdefault(place, Paths.start(self.groups, self.kind)))
            for branch in layer.branches:
                ways = there.ways
                for other in layer.branches:
                    if other is not branch:
                        ways = self.kind.scaled(ways * values[other.layer][other.state[there.state]])
                rows, row = self._distinct(there.images, self._below[branch.layer])
                paths = self._bundled(rows, row[there.image], branch.state[there.state], ways)
                found[branch.layer] = Paths(paths.images, paths.image, paths.state, self.kind.scaled(paths.ways))
        return [found[place] for place in range(len(self.layers))]

    def _beyond(self, layer: Layer, before: Paths) -> Paths:
        bundle, move = before.onwards(layer)
        ways = before.ways[bundle] * self.kind.moves(layer)[move]
        if layer.mirrored is None:
            return self._bundled(before.images, before.image[bundle], layer.target[move], ways)
        changes = images(layer.mirrors, self.groups)
        # Where a mirror was used, each group stands for what its image stood for.
        first, pair = merge([before.image[bundle], layer.mirrored[move]], len(bundle))
        used = changes[layer.mirrored[move[first]]]
        rows, row = self._distinct(np.take_along_axis(before.images[before.image[bundle[first]]], used, axis=1), None)
        return self._bundled(rows, row[pair], layer.target[move], ways)

    def _bundled(self, rows: Images, image: Indices, state: Indices, ways: Array) -> Paths:
        """Take ways together that lead to the same state, and in which the groups stand for the same."""
        first, bundle = merge([image, state], len(state))
        sums: Array = np.zeros(len(first), self.kind.dtype)
        self.kind.add.at(sums, bundle, ways)
        return Paths(rows, image[first], state[first], sums)

    def _distinct(self, rows: Images, below: Array | None) -> tuple[Images, Indices]:
        """Number rows that differ in what is to come."""
        own = np.arange(self.groups, dtype=np.int16)
        found, row = np.unique(rows if below is None else np.where(below, rows, own), axis=0, return_inverse=True)
        return found, row.reshape(-1).astype(np.int32)

    @cached_property
    def _below(self) -> list[Array]:
        """Per layer, which groups are filled by it or later."""
        found = np.zeros((len(self.layers), self.groups), bool)
        for place in range(len(self.layers) - 1, -1, -1):
            layer = self.layers[place]
            found[place, layer.step.group] = True
            for branch in layer.branches:
                found[place] |= found[branch.layer]
        return list(found)
