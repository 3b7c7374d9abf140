"""Numbers that flow through the states of the exact engine.

What a group adds is told by its *ways*: how many there are to place 0, 1, 2, … records in it, times the choices of the
records where they are told apart. The *value* of a state is the number of ways from there to the end; where layers
branch, the values of the branches multiply. Whole numbers give exact counts. Floating-point numbers, rescaled at every
step, give odds and samples: all terms are positive, so nothing cancels; the odds are good to ten digits, far more than
any number of samples could show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import comb, frexp, ldexp, perm, prod
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
        return prod(map(int, self._roots(_Whole(self))))

    def share(self, whole: Flow) -> float:
        """How large the count is against that of another flow through the same layers, to ten digits.

        Zero also where floating-point numbers are lost on the way.
        """
        (part, exponent), (all_, common) = self._scaled(whole.units), whole._own_scaled
        return ldexp(part / all_, exponent - common) if all_ else 0.0

    @cached_property
    def _own_scaled(self) -> tuple[float, int]:
        return self._scaled(self.units)

    def _scaled(self, units: Mapping[int, int]) -> tuple[float, int]:
        """The count in some units, as a number and a power of two."""
        kind = _Float(self, units)
        return prod(map(float, self._roots(kind))), kind.exponent

    def _roots(self, kind: _Kind) -> list[Any]:
        """The values of the first states: one for each part that has nothing to do with the others."""
        values: dict[int, Array] = {}
        for place in range(len(self.layers) - 1, -1, -1):
            # Pop what is needed no more: whole numbers of many digits are large.
            after = kind.product(self.layers[place], [values.pop(each.layer) for each in self.layers[place].branches])
            values[place] = kind.back(self.layers[place], after)
        return [value for (value,) in values.values()]

    @property
    def small(self) -> bool:
        """Whether whole numbers are quick enough to tell odds by."""
        return sum(layer.states for layer in self.layers) <= FEW_STATES

    @cached_property
    def units(self) -> dict[int, int]:
        """For each class, the ways to place one record."""
        units: dict[int, int] = {}
        for layer in self.layers:
            units[layer.step.owner] = units.get(layer.step.owner, 0) + self.ways[layer.step.group][1]
        return units

    def held(self, group: int) -> list[Fraction] | list[float]:
        """The odds that a group holds 0, 1, 2, … records: exact if the states are few."""
        place = self._places[group]
        layer = self.layers[place]
        sides = self._whole if self.small else self._float
        weight = sides.before[place][layer.source] * sides.kind.moves(layer) * sides.after[place][layer.target]
        sums = [weight[layer.placed == n].sum() for n in range(int(layer.placed.max(initial=0)) + 1)]
        if self.small:
            return [Fraction(int(n), int(sum(sums))) for n in sums]
        return [float(n / sum(sums)) for n in sums]

    def possible(self, group: int) -> list[int]:
        """The numbers of records that a group can hold: decided by moves alone, so no rounding matters."""
        place = self._places[group]
        layer, sides = self.layers[place], self._open
        good = sides.before[place][layer.source] & sides.kind.moves(layer) & sides.after[place][layer.target]
        return [int(n) for n in np.unique(layer.placed[good > 0])]

    def sample(self, number: int, rng: np.random.Generator) -> NDArray[np.int16]:
        """Draw numbers of records per group, each data set being as likely as any other: a row for each draw."""
        drawn = np.zeros((number, len(self.ways)), np.int16)
        at: dict[int, Array] = {}
        for place, layer in enumerate(self.layers):
            check()
            state = at.pop(place, None)
            state = np.zeros(number, np.int64) if state is None else state
            upto, ends = self._upto[place], np.cumsum(layer.moves, dtype=np.int64)
            starts = ends[state] - layer.moves[state]
            low = np.where(starts > 0, upto[starts - 1], 0.0)
            point = low + rng.random(number) * (upto[ends[state] - 1] - low)
            move = np.clip(np.searchsorted(upto, point, side="right"), starts, ends[state] - 1)
            drawn[:, layer.step.group] = layer.placed[move]
            for branch in layer.branches:
                at[branch.layer] = branch.state[layer.target[move]]
        return drawn

    @cached_property
    def _upto(self) -> list[Array]:
        """Per layer the running sum of the weights of its moves, up to the end.

        Each state's moves are scaled to 1, so that no state is lost among others of much larger numbers.
        """
        sides, found = self._float, []
        for place, layer in enumerate(self.layers):
            weight = sides.kind.moves(layer) * sides.after[place][layer.target]
            total = np.maximum(_summed(np.add, layer, weight), np.finfo(float).tiny)
            found.append(np.cumsum(weight / np.repeat(total, layer.moves)))
        return found

    @cached_property
    def _places(self) -> dict[int, int]:
        return {layer.step.group: place for place, layer in enumerate(self.layers)}

    @cached_property
    def _whole(self) -> _Sides:
        return _Sides(self.layers, _Whole(self))

    @cached_property
    def _float(self) -> _Sides:
        return _Sides(self.layers, _Float(self, self.units))

    @cached_property
    def _open(self) -> _Sides:
        return _Sides(self.layers, _Open(self))


class _Kind:
    """What flows."""

    dtype: Any = object
    add: np.ufunc = np.add

    def __init__(self, flow: Flow) -> None:
        self.flow = flow

    def moves(self, layer: Layer) -> Array:
        """The weight of each move."""
        found: Array = self.table(layer)[np.repeat(layer.left, layer.moves), layer.placed]
        return found

    def table(self, layer: Layer) -> Array:
        """The ways by how many records were left and how many are placed."""
        ways, most = self.flow.ways[layer.step.group], int(layer.left.max(initial=0))
        table = np.zeros((most + 1, most + 1), dtype=object)
        for left in range(most + 1):
            for n in range(left + 1):
                table[left, n] = ways[n] * (comb(left, n) if self.flow.labelled else 1)
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
            parts.append(_summed(self.add, layer, weight, start, end))
        return self.scaled(np.concatenate(parts))


class _Whole(_Kind):
    """Whole numbers."""

    def times(self, table: Array, left: Array, placed: Array, target: Array, after: Array) -> Array:
        # Many moves lead to the same state and place as many records: numbers of many digits are multiplied once.
        first, same = merge([target, left, placed], len(target))
        return super().times(table, left[first], placed[first], target[first], after)[same]


class _Open(_Kind):
    """1 where there is any way, else 0."""

    dtype = np.uint8
    add = np.maximum

    def table(self, layer: Layer) -> Array:
        return (super().table(layer) > 0).astype(np.uint8)


class _Float(_Kind):
    """Floating-point numbers; each record counts as one in all the places of its class.

    All records of a class are placed in the end, so this divides everything by the same number. Without it, states with
    more records left would have so much smaller numbers that they were lost. For the same reason records are told apart
    here even where they are not: that multiplies everything by the same number, too.
    """

    dtype = np.float64

    def __init__(self, flow: Flow, units: Mapping[int, int]) -> None:
        super().__init__(flow)
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
        return 1 if self.flow.labelled else perm(left, placed)

    def scaled(self, numbers: Array) -> Array:
        exponent = frexp(numbers.max(initial=0.0))[1]
        self.exponent += exponent
        return np.ldexp(numbers, -exponent)


@dataclass(frozen=True)
class _Sides:
    """The numbers of ways from the start to the states, and from the states to the end."""

    layers: Sequence[Layer]
    kind: _Kind

    @cached_property
    def after(self) -> list[Array]:
        """Per layer, for the states that it leads to."""
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

    @cached_property
    def before(self) -> list[Array]:
        """Per layer, for the states that it starts from; all that is not below a layer is left out."""
        found: dict[int, Array] = {}
        values = self._values[0]
        for place, layer in enumerate(self.layers):
            check()
            here = found.setdefault(place, np.ones(1, self.kind.dtype))
            there: Array = np.zeros(layer.states, self.kind.dtype)
            self.kind.add.at(there, layer.target, here[layer.source] * self.kind.moves(layer))
            for branch in layer.branches:
                others = there
                for other in layer.branches:
                    if other is not branch:
                        others = self.kind.scaled(others * values[other.layer][other.state])
                sums: Array = np.zeros(len(values[branch.layer]), self.kind.dtype)
                self.kind.add.at(sums, branch.state, others)
                found[branch.layer] = self.kind.scaled(sums)
        return [found[place] for place in range(len(self.layers))]


def _summed(add: np.ufunc, layer: Layer, weight: Array, start: int = 0, end: int | None = None) -> Array:
    """Sum the numbers of the moves of each state; zero if it has none."""
    moves = layer.moves[start:end]
    found: Array = np.zeros(len(moves), weight.dtype)
    some = moves > 0
    if some.any():
        found[some] = add.reduceat(weight, (np.cumsum(moves, dtype=np.int64) - moves)[some])
    return found
