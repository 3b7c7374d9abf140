"""Numbers that flow through the states of the exact engine.

What a group adds is told by its *ways*: how many there are to place 0, 1, 2, … records in it, times the choices of the
records where they are told apart. Whole numbers give exact counts. Floating-point numbers, rescaled at every step, give
odds and samples: all terms are positive, so nothing cancels; the odds are good to ten digits, far more than any number
of samples could show.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unblur.counting.deadline import check
from unblur.joint.frontier import Layer

Array = NDArray[Any]
Table = Sequence[int]
"""The ways to place 0, 1, 2, … records in a group."""

CHUNK = 200_000
"""How many moves to take at a time: whole numbers of many digits are large."""
FEW_STATES = 500_000
"""Up to so many states in all, odds are exact."""


@dataclass(frozen=True)
class Flow:
    """Layers of moves, and the ways of every group."""

    layers: Sequence[Layer]
    ways: Sequence[Table]
    """By the number of the group."""
    labelled: bool
    """Whether records are told apart."""

    def count(self) -> int:
        """Count all ways through the layers."""
        numbers: Array = np.ones(1, dtype=object)
        for layer in self.layers:
            numbers = _forward(layer, numbers, self._exact_moves(layer))
        return int(numbers.sum()) if len(numbers) else 0

    def held(self, group: int) -> list[Fraction] | list[float]:
        """The odds that a group holds 0, 1, 2, … records: exact if the states are few."""
        place = next(i for i, layer in enumerate(self.layers) if layer.step.group == group)
        layer, exact = self.layers[place], sum(layer.states for layer in self.layers) <= FEW_STATES
        before, after = (self._exact_sides if exact else self._sides)[place]
        moves = self._exact_moves(layer) if exact else self._moves(layer)
        weight = before[layer.source] * moves * after[_targets(layer)]
        sums = [weight[layer.placed == n].sum() for n in range(int(layer.placed.max(initial=0)) + 1)]
        if exact:
            return [Fraction(int(n), int(sum(sums))) for n in sums]
        return [float(n / sum(sums)) for n in sums]

    def possible(self, group: int) -> list[int]:
        """The numbers of records that a group can hold: decided by moves alone, so no rounding matters."""
        place = next(i for i, layer in enumerate(self.layers) if layer.step.group == group)
        layer, (before, after) = self.layers[place], self._reachable[place]
        good = before[layer.source] & self._open_moves(layer) & after[_targets(layer)]
        return [int(n) for n in np.unique(layer.placed[good])]

    @cached_property
    def _reachable(self) -> list[tuple[Array, Array]]:
        """Per layer, which states can be reached from the start, and from which the end can be reached."""
        here: Array = np.ones(1, bool)
        before = []
        for layer in self.layers:
            before.append(here)
            here = np.logical_or.reduceat(here[layer.source] & self._open_moves(layer), layer.first)
        after = []
        there: Array = np.ones(self.layers[-1].states, bool)
        for layer, starts in zip(self.layers[::-1], before[::-1], strict=True):
            after.append(there)
            good = self._open_moves(layer) & there[_targets(layer)]
            there = np.zeros(len(starts), bool)
            there[layer.source[good]] = True
        return list(zip(before, after[::-1], strict=True))

    def _open_moves(self, layer: Layer) -> NDArray[np.bool_]:
        """Whether there is any way to make each move."""
        return np.array([n > 0 for n in self.ways[layer.step.group]])[layer.placed]

    def sample(self, number: int, rng: np.random.Generator) -> NDArray[np.int16]:
        """Draw numbers of records per group, each data set being as likely as any other: a row for each draw."""
        drawn = np.zeros((number, len(self.ways)), np.int16)
        state = np.zeros(number, np.int64)
        for place in range(len(self.layers) - 1, -1, -1):
            check()
            layer = self.layers[place]
            upto = self._upto[place]
            ends = np.append(layer.first[1:], len(layer.source)) - 1
            low = np.where(layer.first[state] > 0, upto[layer.first[state] - 1], 0.0)
            point = low + rng.random(number) * (upto[ends[state]] - low)
            move = np.clip(np.searchsorted(upto, point, side="right"), layer.first[state], ends[state])
            drawn[:, layer.step.group] = layer.placed[move]
            state = layer.source[move].astype(np.int64)
        return drawn

    @cached_property
    def _upto(self) -> list[Array]:
        """Per layer the running sum of the weights of its moves: forwards, up to their target.

        Each state's moves are scaled to 1, so that no state is lost among others of much larger numbers.
        """
        found = []
        for layer, before in zip(self.layers, self._before, strict=True):
            weight = before[layer.source] * self._moves(layer)
            total = np.maximum(np.add.reduceat(weight, layer.first), np.finfo(float).tiny)
            found.append(np.cumsum(weight / np.repeat(total, np.diff(np.append(layer.first, len(weight))))))
        return found

    @cached_property
    def _before(self) -> list[Array]:
        """Per layer the rescaled numbers of the states that it starts from."""
        numbers: Array = np.ones(1)
        found = []
        for layer in self.layers:
            found.append(numbers)
            numbers = _forward(layer, numbers, self._moves(layer))
            numbers = numbers / numbers.max()
        return found

    @cached_property
    def _sides(self) -> list[tuple[Array, Array]]:
        return list(zip(self._before, _after(self.layers, map(self._moves, self.layers[::-1]), 1.0), strict=True))

    @cached_property
    def _exact_sides(self) -> list[tuple[Array, Array]]:
        numbers: Array = np.ones(1, dtype=object)
        before = []
        for layer in self.layers:
            before.append(numbers)
            numbers = _forward(layer, numbers, self._exact_moves(layer))
        return list(zip(before, _after(self.layers, map(self._exact_moves, self.layers[::-1]), 1), strict=True))

    def _exact_moves(self, layer: Layer) -> Array:
        return self._table(layer)[layer.left, layer.placed]

    def _moves(self, layer: Layer) -> Array:
        """The ways of the moves, each record counting as one in all the places of its class.

        All records of a class are placed in the end, so this divides everything by the same number. Without it, states
        with more records left would have so much smaller numbers that they were lost.
        """
        unit = max(1, self._units[layer.step.owner])
        scaled = [[float(Fraction(int(n), unit**placed)) for placed, n in enumerate(row)] for row in self._table(layer)]
        return np.asarray(np.array(scaled)[layer.left, layer.placed])

    @cached_property
    def _units(self) -> dict[int, int]:
        """For each class, the ways to place one record."""
        units: dict[int, int] = defaultdict(int)
        for layer in self.layers:
            units[layer.step.owner] += self.ways[layer.step.group][1]
        return units

    def _table(self, layer: Layer) -> Array:
        """The ways by how many records were left and how many are placed."""
        ways, most = self.ways[layer.step.group], int(layer.left.max(initial=0))
        table = np.zeros((most + 1, most + 1), dtype=object)
        for left in range(most + 1):
            for n in range(left + 1):
                table[left, n] = ways[n] * (comb(left, n) if self.labelled else 1)
        return table


def _forward(layer: Layer, numbers: Array, moves: Array) -> Array:
    """Send the numbers of states through the moves of a layer, some moves at a time."""
    parts = []
    cuts = [*range(0, layer.states, _states_at_a_time(layer)), layer.states]
    for start, end in pairwise(cuts):
        check()
        first = layer.first[start]
        last = layer.first[end] if end < layer.states else len(layer.source)
        weight = numbers[layer.source[first:last]] * moves[first:last]
        parts.append(np.add.reduceat(weight, layer.first[start:end] - first))
    return np.concatenate(parts) if parts else np.zeros(0, dtype=numbers.dtype)


def _states_at_a_time(layer: Layer) -> int:
    return max(1, CHUNK * layer.states // max(1, len(layer.source)))


def _after(layers: Sequence[Layer], moves: Iterator[Array], one: Any) -> list[Array]:
    """Per layer, the numbers of ways from the states that it leads to up to the end; rescaled if they are floats."""
    numbers: Array = np.array([one] * layers[-1].states, dtype=type(one) if isinstance(one, float) else object)
    found = []
    sizes = [1, *(layer.states for layer in layers[:-1])]
    for layer, each, size in zip(layers[::-1], moves, sizes[::-1], strict=True):
        check()
        found.append(numbers)
        before: Array = np.zeros(size, dtype=numbers.dtype)
        np.add.at(before, layer.source, each * numbers[_targets(layer)])
        numbers = before / before.max() if isinstance(one, float) else before
    return found[::-1]


def _targets(layer: Layer) -> NDArray[np.int64]:
    """The state that each move leads to."""
    return np.repeat(np.arange(layer.states), np.diff(np.append(layer.first, len(layer.source))))
