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
from math import ldexp, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unblur.counting.deadline import check
from unblur.joint.flowing import Array, Float, Kind, Open, Table, Whole, summed
from unblur.joint.folding import Images, images
from unblur.joint.front import Layer
from unblur.joint.sides import Sides

FEW_STATES = 500_000
"""Up to so many states in all, odds are exact."""


@dataclass(frozen=True)
class Flow:
    """Layers of moves, and the ways of every group."""

    layers: Sequence[Layer]
    ways: Sequence[Table]
    """By the number of the group; groups of the same kind, in the same class, have the same."""
    labelled: bool
    """Whether records are told apart."""

    def count(self) -> int:
        """Count all ways through the layers."""
        kind = Whole(self.ways, self.labelled, self.layers)
        return kind.divisor * prod(map(int, self._roots(kind)))

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
        kind = Float(self.ways, self.labelled, units)
        return prod(map(float, self._roots(kind))), kind.exponent

    def _roots(self, kind: Kind) -> list[Any]:
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
        """The odds that a group holds 0, 1, 2, … records: exact if the states are few; none if there is no way."""
        ways = np.trim_zeros(self._filled[group], "b")
        if self.small:
            return [Fraction(int(n), int(ways.sum())) for n in ways]
        return [float(n / ways.sum()) for n in ways]

    @cached_property
    def _filled(self) -> Array:
        """For every group, the ways by the records that it holds; some ways fill it in one layer, others in another."""
        if self.small:
            return np.asarray(sum(self._whole.filled()))
        return np.asarray(sum(ways / (ways.sum() or 1.0) for ways in self._float.filled()))

    def possible(self, group: int) -> list[int]:
        """The numbers of records that a group can hold: decided by moves alone, so no rounding matters."""
        found: list[int] = np.flatnonzero(self._possible[group]).tolist()
        return found

    @cached_property
    def _possible(self) -> Array:
        return np.asarray(np.max(list(self._open.filled()), axis=0))

    def sample(self, number: int, rng: np.random.Generator) -> NDArray[np.int16]:
        """Draw numbers of records per group, each data set being as likely as any other: a row for each draw."""
        groups = len(self.ways)
        drawn, draws = np.zeros((number, groups), np.int16), np.arange(number)
        themselves: Images = np.tile(np.arange(groups, dtype=np.int16), (number, 1))
        at: dict[int, tuple[Array, Images]] = {}
        for place, layer in enumerate(self.layers):
            check()
            state, image = at.pop(place, (np.zeros(number, np.int64), themselves))
            upto, ends = self._upto[place], np.cumsum(layer.moves, dtype=np.int64)
            starts = ends[state] - layer.moves[state]
            low = np.where(starts > 0, upto[starts - 1], 0.0)
            point = low + rng.random(number) * (upto[ends[state] - 1] - low)
            move = np.clip(np.searchsorted(upto, point, side="right"), starts, ends[state] - 1)
            drawn[draws, image[:, layer.step.group]] = layer.placed[move]
            if layer.mirrored is not None:
                changes = images(layer.mirrors, groups)[layer.mirrored[move]]
                image = np.take_along_axis(image, changes, axis=1)
            for branch in layer.branches:
                at[branch.layer] = branch.state[layer.target[move]], image
        return drawn

    @cached_property
    def _upto(self) -> list[Array]:
        """Per layer the running sum of the weights of its moves, up to the end.

        Each state's moves are scaled to 1, so that no state is lost among others of much larger numbers.
        """
        sides, found = self._float, []
        for place, layer in enumerate(self.layers):
            weight = sides.kind.moves(layer) * sides.after[place][layer.target]
            total = np.maximum(summed(np.add, layer, weight), np.finfo(float).tiny)
            found.append(np.cumsum(weight / np.repeat(total, layer.moves)))
        return found

    @cached_property
    def _whole(self) -> Sides:
        return self._sides(Whole(self.ways, self.labelled, self.layers))

    @cached_property
    def _float(self) -> Sides:
        return self._sides(Float(self.ways, self.labelled, self.units))

    @cached_property
    def _open(self) -> Sides:
        return self._sides(Open(self.ways, self.labelled))

    def _sides(self, kind: Kind) -> Sides:
        return Sides(self.layers, kind, len(self.ways))
