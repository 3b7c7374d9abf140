"""Ways to place records outside some heavy children, few outside each.

A term of the inclusion and exclusion fixes a heavy child in each of `m` attributes. A record lies outside some set of
them, and these sets part the class into `2^m - 1` regions and the inside. We want, for each number n of records outside
any, the ways to place them so that at most `slack` lie outside each child.

The attributes are taken one by one, with the number of records outside each of those still to come as the state. First
come the regions outside the first child: afterwards that child's own count is done with. So most of the work is done on
few axes. Arrays hold Python's whole numbers, and all terms of one set of attributes go through together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from math import factorial, perm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unblur.counting.deadline import check
from unblur.counting.weights import Weights

Outside = tuple[int, ...]
"""The attributes, by their place in a term, in which a region lies outside the chosen child."""
Array = NDArray[np.object_]


@dataclass(frozen=True)
class Term:
    """What one choice of heavy children makes of the free regions."""

    sign: int
    """Of the inclusion and exclusion."""
    inside: Any
    """The region inside all chosen children."""
    outside: Mapping[Outside, Sequence[int]]
    """For each region outside some, its `weight_table`."""
    beside: tuple[int, ...]
    """How many records are known to lie outside each chosen child."""


def weight_table(weights: Weights, region: Any, slack: int) -> tuple[int, ...]:
    """The ways to place 0, 1, 2, … records in a region; times slack! / n! if records are told apart."""
    if weights.labelled:
        return tuple(weights.ways(region, n) * perm(slack, slack - n) for n in range(slack + 1))
    return tuple(weights.ways(region, n) for n in range(slack + 1))


@dataclass(frozen=True)
class Spread:
    """Places the records of terms that choose the same attributes."""

    weights: Weights
    terms: Sequence[Term]
    rest: int
    """How many records are to be placed."""
    slack: int
    """How many may lie outside each chosen child, those known included."""
    least: int = 0
    """How many must."""

    def count(self) -> int:
        """Count the ways to place all records, over all terms."""
        total: int = 0
        outside = self._outside()
        for number, term in enumerate(self.terms):
            for n, ways in enumerate(outside[number]):
                if ways:
                    inside = self.weights.ways(term.inside, self.rest - n)
                    total += term.sign * ways * inside * (perm(self.rest, n) if self.weights.labelled else 1)
        # Each region's ways were multiplied by slack! to keep them whole.
        return total // int(self._scale ** (2**self.places - 1))

    @property
    def places(self) -> int:
        """How many attributes have a heavy child."""
        return len(self.terms[0].beside)

    @cached_property
    def _scale(self) -> int:
        return factorial(self.slack) if self.weights.labelled else 1

    def _outside(self) -> Array:
        """Per term, and for each number of records outside any chosen child, the ways to place them."""
        state = self._outside_first()
        for place in range(1, self.places):
            state = self._lengthened(state)
            for later in _subsets(range(place + 1, self.places)):
                if later:
                    state = self._with_region(state, (place, *later), [2, *(axis - place + 2 for axis in later)])
            state = self._without_first(state, place)
        return state[:, : self.rest + 1]

    def _outside_first(self) -> Array:
        """Place the records outside the first child: as many as there are records, so one axis stands for both."""
        state = np.zeros((len(self.terms), *([self.slack + 1] * self.places)), dtype=object)
        for number, term in enumerate(self.terms):
            state[(number, 0, *term.beside[1:])] = 1
        for later in _subsets(range(1, self.places)):
            state = self._with_region(state, (0, *later), [axis + 1 for axis in later])
        for number, term in enumerate(self.terms):
            state[number, self.slack - term.beside[0] + 1 :] = 0
            state[number, : max(0, self.least - term.beside[0])] = 0
        return state

    def _lengthened(self, state: Array) -> Array:
        """Make room for the records that the next child leaves outside."""
        shape = (len(self.terms), self.slack, *state.shape[2:])
        return np.concatenate([state, np.zeros(shape, dtype=object)], axis=1)

    def _with_region(self, state: Array, region: Outside, axes: list[int]) -> Array:
        """Place 0, 1, 2, … records in a region: they move along the axes of the children it is outside of."""
        ways = self._ways(region)
        result: Array = state * _spread_out(ways[:, 0], state.ndim)
        for n in range(1, self.slack + 1):
            check()
            source, target = [slice(None)] * state.ndim, [slice(None)] * state.ndim
            for axis in (1, *axes):
                source[axis], target[axis] = slice(None, -n), slice(n, None)
            result[tuple(target)] += state[tuple(source)] * _spread_out(ways[:, n], state.ndim)
        return result

    def _without_first(self, state: Array, place: int) -> Array:
        """Place records outside the first child alone, and forget its count: it is within bounds."""
        ways = self._ways((place,))
        upto = np.cumsum(state, axis=2)
        result: Array = np.zeros_like(state[:, :, 0])
        for n in range(self.slack + 1):
            within = upto[:, :, self.slack - n]
            if n < self.least:
                within = within - upto[:, :, self.least - n - 1]
            result[:, n:] += within[:, : within.shape[1] - n] * _spread_out(ways[:, n], state.ndim - 1)
        return result

    def _ways(self, region: Outside) -> Array:
        """Per term, the weight table of a region."""
        return np.array([term.outside[region] for term in self.terms], dtype=object)


def _subsets(places: Sequence[int]) -> Iterator[Outside]:
    return chain.from_iterable(combinations(places, n) for n in range(len(places) + 1))


def _spread_out(column: Array, axes: int) -> Array:
    return column.reshape(-1, *([1] * (axes - 1)))
