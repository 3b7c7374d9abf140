"""The ways from the start to the states of the exact engine, and from the states to the end.

On the way from the start, states were put in order by mirrors, so that groups stand for others. Which do so depends on
the way: ways are told apart by that, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from unblur.counting.deadline import check
from unblur.joint.flowing import Array, Kind
from unblur.joint.folding import Images, images
from unblur.joint.front import Layer
from unblur.joint.merging import Indices, Ints, merge

CHUNK = 4_000_000
"""How many moves to go on with at a time."""


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

    def onwards(self, layer: Layer) -> Iterator[tuple[Ints, Ints]]:
        """Go on with every move, some at a time: from which bundle, and which move."""
        firsts = np.cumsum(layer.moves, dtype=np.int64) - layer.moves
        number = layer.moves[self.state].astype(np.int64)
        upto = np.cumsum(number)
        cuts = np.searchsorted(upto, np.arange(0, upto[-1] if len(upto) else 0, CHUNK))
        for start, end in pairwise([*np.unique(cuts).tolist(), len(number)]):
            check()
            here = number[start:end]
            bundle = np.repeat(np.arange(start, end), here)
            yield (
                bundle,
                np.arange(len(bundle)) + np.repeat(firsts[self.state[start:end]] - (np.cumsum(here) - here), here),
            )


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
        for layer, before, after in zip(self.layers, self._before(), self.after, strict=True):
            found: Array = np.zeros((self.groups, most + 1), self.kind.dtype)
            moves, filled = self.kind.moves(layer), before.images[:, layer.step.group][before.image]
            for bundle, move in before.onwards(layer):
                ways = before.ways[bundle] * moves[move] * after[layer.target[move]]
                self.kind.add.at(found, (filled[bundle], layer.placed[move]), ways)
            yield found

    def _before(self) -> Iterator[Paths]:
        """Per layer, the ways to the states that it starts from; all that is not below a layer is left out."""
        found: dict[int, Paths] = {}
        values, own = self._values[0], np.arange(self.groups, dtype=np.int16)
        for place, layer in enumerate(self.layers):
            check()
            # Pop what is needed no more: there may be tens of millions of bundles, all in all.
            here = found.pop(place, None) or Paths.start(self.groups, self.kind)
            yield here
            there = self._beyond(layer, here)
            for branch in layer.branches:
                ways = there.ways
                for other in layer.branches:
                    if other is not branch:
                        ways = self.kind.scaled(ways * values[other.layer][other.state[there.state]])
                # What groups stand for that are filled elsewhere makes no difference here.
                rows, row = _numbered(np.where(self._below[branch.layer], there.images, own))
                paths = self._bundled(rows, row[there.image], branch.state[there.state], ways)
                found[branch.layer] = Paths(paths.images, paths.image, paths.state, self.kind.scaled(paths.ways))

    def _beyond(self, layer: Layer, before: Paths) -> Paths:
        moves, changes = self.kind.moves(layer), images(layer.mirrors, self.groups)
        some = [Paths(before.images, *(each[:0] for each in (before.image, before.state, before.ways)))]
        for bundle, move in before.onwards(layer):
            ways, image, state = before.ways[bundle] * moves[move], before.image[bundle], layer.target[move]
            rows = before.images
            if layer.mirrored is not None:
                # Where mirrors were used, each group stands for what its image stood for.
                first, pair = merge([image, layer.mirrored[move]], len(image))
                used = changes[layer.mirrored[move[first]]]
                rows, row = _numbered(np.take_along_axis(before.images[image[first]], used, axis=1))
                image = row[pair]
            some.append(self._bundled(rows, image, state, ways))
        found = self._joined(some)
        return found if layer.even is None else self._settled(layer, found)

    def _settled(self, layer: Layer, paths: Paths) -> Paths:
        """Where both limits of a mirror have the same room, it makes no difference whether they changed places."""
        assert layer.even is not None
        even = layer.even[paths.state]
        first, pair = merge([paths.image, even], len(even))
        rows, codes = paths.images[paths.image[first]], even[first]
        for place, mirror in enumerate(layer.mirrors):
            other = rows[:, mirror.image]
            differs = np.argmax(other != rows, axis=1)[:, None]
            less = np.take_along_axis(other, differs, axis=1) < np.take_along_axis(rows, differs, axis=1)
            rows = np.where(less & (codes >> place & 1).astype(bool)[:, None], other, rows)
        rows, row = _numbered(rows)
        return self._bundled(rows, row[pair], paths.state, paths.ways)

    def _joined(self, some: Sequence[Paths]) -> Paths:
        """Take together what was gone on with at different times."""
        starts = np.cumsum([0, *(len(each.images) for each in some[:-1])])
        rows, row = _numbered(np.concatenate([each.images for each in some]))
        image = np.concatenate([row[start + each.image] for start, each in zip(starts, some, strict=True)])
        state, ways = (np.concatenate(parts) for parts in zip(*((each.state, each.ways) for each in some), strict=True))
        return self._bundled(rows, image, state, ways)

    def _bundled(self, rows: Images, image: Indices, state: Indices, ways: Array) -> Paths:
        """Take ways together that lead to the same state, and in which the groups stand for the same."""
        first, bundle = merge([image, state], len(state))
        sums: Array = np.zeros(len(first), self.kind.dtype)
        self.kind.add.at(sums, bundle, ways)
        return Paths(rows, image[first], state[first], sums)

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


def _numbered(rows: Images) -> tuple[Images, Indices]:
    """Number rows that differ."""
    found, row = np.unique(rows, axis=0, return_inverse=True)
    return found, row.reshape(-1).astype(np.int32)
