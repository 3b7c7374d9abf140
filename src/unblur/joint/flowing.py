"""What flows through the states of the exact engine: whole or floating-point numbers, or whether there is any way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from math import comb, frexp, gcd, perm, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unblur.counting.deadline import check
from unblur.joint.front import Layer
from unblur.joint.merging import merge

Array = NDArray[Any]
Table = Sequence[int]
"""The ways to place 0, 1, 2, … records in a group; there is one way to place none."""

CHUNK = 20_000
"""How many moves to take at a time: whole numbers of many digits are large, and soon pushed out of the caches."""


class Kind:
    """What flows."""

    dtype: Any = object
    add: np.ufunc = np.add

    def __init__(self, ways: Sequence[Table], labelled: bool) -> None:
        self._ways = ways
        self._labelled = labelled

    def moves(self, layer: Layer) -> Array:
        """The weight of each move."""
        found: Array = self.table(layer)[np.repeat(layer.left, layer.moves), layer.placed]
        return found

    def table(self, layer: Layer) -> Array:
        """The ways by how many records were left and how many are placed."""
        ways, most = self._ways[layer.step.group], int(layer.left.max(initial=0))
        table = np.zeros((most + 1, most + 1), dtype=object)
        for left in range(most + 1):
            for n in range(left + 1):
                table[left, n] = ways[n] * (comb(left, n) if self._labelled else 1)
        return table

    def scaled(self, numbers: Array) -> Array:
        """Keep numbers within what they can be."""
        return numbers

    def product(self, layer: Layer, values: Sequence[Array]) -> Array:
        """Multiply the values of the branches, for each state that a layer leads to."""
        if len(values) == 1:
            return values[0]  # what does not part leads on as it is
        factors = [(value, branch.state) for value, branch in zip(values, layer.branches, strict=True)]
        factors.sort(key=lambda factor: len(factor[0]))
        found, state = factors.pop(0) if factors else (np.ones(1, self.dtype), np.zeros(layer.states, np.int32))
        # The smallest branch first: few of its states come together with few others, and no product is made twice.
        for value, other in factors:
            first, same = merge([state, other], layer.states)
            found, state = self.scaled(found[state[first]] * value[other[first]]), same
        return np.asarray(found[state])

    def times(self, table: Array, left: Array, placed: Array, target: Array, after: Array) -> Array:
        """Multiply the weights of moves by the values of the states that they lead to."""
        return np.asarray(after[target] * table[left, placed])

    def back(self, layer: Layer, after: Array) -> Array:
        """The values of the states that a layer starts from, some states at a time."""
        table, parts = self.table(layer), [np.zeros(0, self.dtype)]
        ends = np.cumsum(layer.moves, dtype=np.int64)
        cuts = [*range(0, len(ends), max(1, CHUNK * len(ends) // max(1, len(layer.target)))), len(ends)]
        for start, end in pairwise(cuts):
            check()
            span = slice(int(ends[start] - layer.moves[start]), int(ends[end - 1]))
            target, placed = layer.target[span], layer.placed[span]
            weight = after[target]
            # Many moves place nothing: there is one way to do that, and multiplying by it would take half the time.
            some = np.flatnonzero(placed)
            left = np.repeat(layer.left[start:end], layer.moves[start:end])[some]
            weight[some] = self.times(table, left, placed[some], target[some], after)
            parts.append(summed(self.add, layer, weight, start, end))
        return self.scaled(np.concatenate(parts))


class Whole(Kind):
    """Whole numbers, without what all of them have in common.

    Where places are many, so is what every way to place a record is a multiple of. Numbers that are divided by it have
    far fewer digits.
    """

    def __init__(self, ways: Sequence[Table], labelled: bool, layers: Sequence[Layer]) -> None:
        super().__init__(ways, labelled)
        by_owner: dict[int, list[Layer]] = defaultdict(list)
        for layer in layers:
            by_owner[layer.step.owner].append(layer)
        self._common = {owner: self._divisors(own) for owner, own in by_owner.items()}
        self.divisor = prod(divisors[-1] for divisors in self._common.values())
        """What the count was divided by."""

    def _divisors(self, layers: Sequence[Layer]) -> list[int]:
        """For each number of records that are left of a class: what the ways to place them are a multiple of."""
        most = max(int(layer.placed.max(initial=0)) for layer in layers)
        size = max(int(layer.left.max(initial=0)) for layer in layers)
        shared = [gcd(*(self._ways[layer.step.group][n] for layer in layers)) for n in range(most + 1)]
        found = [1]
        for left in range(1, size + 1):
            found.append(gcd(*(shared[n] * found[left - n] for n in range(1, min(left, most) + 1))) or 1)
        return found

    def table(self, layer: Layer) -> Array:
        table, divisors = super().table(layer), self._common[layer.step.owner]
        for left, row in enumerate(table):
            row[: left + 1] = [
                n * divisors[left - placed] // divisors[left] for placed, n in enumerate(row[: left + 1])
            ]
        return table

    def times(self, table: Array, left: Array, placed: Array, target: Array, after: Array) -> Array:
        # Many moves lead to the same state and place as many records: numbers of many digits are multiplied once.
        first, same = merge([target, left, placed], len(target))
        return super().times(table, left[first], placed[first], target[first], after)[same]


class Open(Kind):
    """1 where there is any way, else 0."""

    dtype = np.uint8
    add = np.maximum

    def table(self, layer: Layer) -> Array:
        return (super().table(layer) > 0).astype(np.uint8)


class Float(Kind):
    """Floating-point numbers; each record counts as one in all the places of its class.

    All records of a class are placed in the end, so this divides everything by the same number. Without it, states with
    more records left would have so much smaller numbers that they were lost. For the same reason records are told apart
    here even where they are not: that multiplies everything by the same number, too.
    """

    dtype = np.float64

    def __init__(self, ways: Sequence[Table], labelled: bool, units: Mapping[int, int]) -> None:
        super().__init__(ways, labelled)
        self._units = units
        self.exponent = 0
        """By how many powers of two numbers were made smaller, all in all."""

    def table(self, layer: Layer) -> Array:
        unit = max(1, self._units.get(layer.step.owner, 0))
        return np.array(
            [
                [float(Fraction(int(n) * self._orders(left, placed), unit**placed)) for placed, n in enumerate(row)]
                for left, row in enumerate(super().table(layer))
            ]
        )

    def _orders(self, left: int, placed: int) -> int:
        return 1 if self._labelled else perm(left, placed)

    def scaled(self, numbers: Array) -> Array:
        exponent = frexp(numbers.max(initial=0.0))[1]
        self.exponent += exponent
        return np.ldexp(numbers, -exponent)


def summed(add: np.ufunc, layer: Layer, weight: Array, start: int = 0, end: int | None = None) -> Array:
    """Sum the numbers of the moves of each state; zero if it has none."""
    moves = layer.moves[start:end]
    found: Array = np.zeros(len(moves), weight.dtype)
    some = moves > 0
    if some.any():
        found[some] = add.reduceat(weight, (np.cumsum(moves, dtype=np.int64) - moves)[some])
    return found
