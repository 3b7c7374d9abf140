"""The states of a lattice in key order, without a list of all of them.

The attributes are cut into a left and a right half of about as many combinations of layers each. With the combinations
of the right half sorted by loss, the states whose loss lies in a narrow band are, for every combination of the left
half, a run of neighbours on the right. So one band after the other is listed, and only of the states that nobody has
crossed out by then. The bands are found with logarithms; states whose logarithms are too close to tell apart stay in
one band, where their exact keys order them.

What is kept for every state is one bit: whether it is crossed out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from unblur.hierarchy import Ranks
from unblur.lattice import Lattice, State

CLOSE = 1e-9
"""Logarithms of losses that differ by less may stand for equal losses; rounding is far below."""
FEW = 4096
"""How many states a band should list, and up to how many a lattice is one band."""
MANY = 1_000_000
"""How many states are looked through at once for those not crossed out."""

KEPT = 1024
"""For how many combinations of layers those below are kept at hand."""

Floats = NDArray[np.float64]


class Walk:
    """All states from least to most loss, tied ones together, as `Lattice.groups`; but for those crossed out.

    >>> from decimal import Decimal
    >>> from unblur.hierarchy import halves
    >>> grid = [halves(Decimal(0), Decimal(100), layers=3), halves(Decimal(0), Decimal(80), layers=2)]
    >>> walk = Walk(Lattice(grid, finest=(1, 1)))
    >>> walk.cross_out((2, 1))
    >>> list(walk)
    [((1, 2),), ((3, 1),), ((2, 2),), ((3, 2),)]
    """

    def __init__(self, lattice: Lattice) -> None:
        self._lattice = lattice
        sizes = [len(layers) for layers in lattice.layers]
        self._cut = min(range(len(sizes) + 1), key=lambda cut: math.prod(sizes[:cut]) + math.prod(sizes[cut:]))
        self._left, self._right = _Half(lattice, 0, self._cut), _Half(lattice, self._cut, len(sizes))
        self._crossed = np.zeros((len(self._left.losses), -(-len(self._right.losses) // 8)), dtype=np.uint8)
        self._now = 0.0

    def cross_out(self, state: State, but: Sequence[State] = ()) -> None:
        """Leave out a state and all finer ones, but for some."""
        kept = [place for place in map(self._place, but) if not self._is_crossed(*place)]
        left, right = state[: self._cut], state[self._cut :]
        rows = self._left.below(left)
        # What has been passed does not matter: in a wide lattice that is much.
        least = self._now - self._right.loss(right) - CLOSE
        rows = rows[self._left.losses[rows].searchsorted(least) :]
        self._crossed[rows] |= self._right.mask(right)
        for row, column in kept:
            self._crossed[row, column >> 3] &= ~(128 >> (column & 7)) & 255

    def is_crossed_out(self, state: State) -> bool:
        """Whether this state, or one coarser, was crossed out; of states already passed it may not be known."""
        return self._is_crossed(*self._place(state))

    def _place(self, state: State) -> tuple[int, int]:
        return self._left.place(state[: self._cut]), self._right.place(state[self._cut :])

    def _is_crossed(self, row: int, column: int) -> bool:
        return bool(self._crossed[row, column >> 3] & (128 >> (column & 7)))

    def __iter__(self) -> Iterator[tuple[State, ...]]:
        for losses, rows, columns in self._bands():
            states = self._states(rows, columns)
            edges = [*np.flatnonzero(np.diff(losses, prepend=-1.0) > CLOSE).tolist(), len(states)]
            for start, end in pairwise(edges):
                if end > start + 1 or not self._is_crossed(int(rows[start]), int(columns[start])):
                    self._now = float(losses[start])
                    yield from self._tied(states[start:end])

    def _tied(self, states: Sequence[State]) -> Iterator[tuple[State, ...]]:
        """Order states of about the same loss exactly, those tied together."""
        if len(states) == 1:
            yield (states[0],)
            return
        keyed = sorted((self._lattice.key(state), state) for state in states if not self.is_crossed_out(state))
        for _, tied in groupby(keyed, key=lambda entry: entry[0]):
            if group := tuple(state for _, state in tied if not self.is_crossed_out(state)):
                yield group

    def _bands(self) -> Iterator[tuple[Floats, Ranks, Ranks]]:
        """List the states not crossed out, band by band, by loss: their losses, and their places in the halves."""
        low, end, least = -1.0, self._left.losses[-1] + self._right.losses[-1] + 1, CLOSE
        width = end - low if self._lattice.size <= FEW else (end - 1) / 64
        while low < end:
            width = max(least, self._narrow(low, width))
            high = max(low, -CLOSE) + width
            losses, rows, columns = self._between(low, high)
            # Cut where two neighbours are surely different, so that no tie is torn apart.
            gaps = np.flatnonzero(np.diff(losses, append=high) > CLOSE)
            if len(losses) and not len(gaps):
                least = 2 * width
                continue
            last = int(gaps[-1]) + 1 if len(gaps) else 0
            yield losses[:last], rows[:last], columns[:last]
            low = high if last == len(losses) else float(losses[last - 1] + losses[last]) / 2
            width, least = width * min(2.0, max(0.25, FEW / max(0.5, len(losses)))), CLOSE

    def _narrow(self, low: float, width: float) -> float:
        """Halve a band until it has not too many states, crossed out or not."""
        starts = self._right.losses.searchsorted(low - self._left.losses)
        while width > 2 * CLOSE:
            ends = self._right.losses.searchsorted(max(low, -CLOSE) + width - self._left.losses)
            if int((ends - starts).sum()) <= MANY:
                break
            width /= 2
        return width

    def _between(self, low: float, high: float) -> tuple[Floats, Ranks, Ranks]:
        starts, ends = (self._right.losses.searchsorted(edge - self._left.losses) for edge in (low, high))
        lengths = ends - starts
        rows = np.repeat(np.arange(len(lengths)), lengths)
        columns = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - ends, lengths)
        ahead = self._crossed[rows, columns >> 3] & (128 >> (columns & 7)).astype(np.uint8) == 0
        rows, columns = rows[ahead], columns[ahead]
        losses = self._left.losses[rows] + self._right.losses[columns]
        order = np.argsort(losses, kind="stable")
        return losses[order], rows[order], columns[order]

    def _states(self, rows: Ranks, columns: Ranks) -> list[State]:
        layers = np.concatenate([self._left.layers[rows], self._right.layers[columns]], axis=1)
        return list(map(tuple, layers.tolist()))


class _Half:
    """The combinations of layers of some attributes, from least to most loss."""

    def __init__(self, lattice: Lattice, start: int, end: int) -> None:
        self._finest = lattice.finest[start:end]
        shape = [len(layers) for layers in lattice.layers[start:end]]
        losses = np.zeros(1)
        for weights in lattice.weights[start:end]:
            losses = np.add.outer(losses, [math.log(weight) - math.log(weights[0]) for weight in weights]).ravel()
        order = np.argsort(losses, kind="stable")
        self.losses: Floats = losses[order]
        """Logarithms of the loss, relative to the finest layers."""
        self.layers = np.indices(shape).reshape(len(shape), len(order)).T[order] + np.array(self._finest, dtype=int)
        self._places = np.zeros([tree.height + 1 for tree in lattice.hierarchies[start:end]], dtype=np.int64)
        self._places[tuple(slice(low, None) for low in self._finest)] = np.argsort(order).reshape(shape)
        self.below, self.mask = lru_cache(KEPT)(self._below), lru_cache(KEPT)(self._mask)

    def place(self, layers: State) -> int:
        """Return the place of a combination in the order."""
        return int(self._places[layers])

    def loss(self, layers: State) -> float:
        """Return the logarithm of the loss of a combination."""
        return float(self.losses[self.place(layers)])

    def _below(self, layers: State) -> Ranks:
        """List the places of the combinations that are as fine or finer, in order."""
        box = tuple(slice(low, layer + 1) for layer, low in zip(layers, self._finest, strict=True))
        return np.sort(self._places[box].ravel())

    def _mask(self, layers: State) -> NDArray[np.uint8]:
        """Mark the places of the combinations that are as fine or finer, a bit each."""
        marks = np.zeros(len(self.losses), dtype=bool)
        marks[self._below(layers)] = True
        return np.packbits(marks)
