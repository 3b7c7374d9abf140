"""Guesses at the number of states, by which orders of the classes are chosen.

After some classes are filled, a state is told by what they hold together in the limits that are open. A class alone can
hold so many different *vectors* there. Classes that share limits leave each other fewer: of the pairs of their vectors,
only a share keeps the limits. The product of all this is the guess, or the number of values that the limits can take,
if that is less.

The rough guess bounds the vectors of a class by formulas. The close one lists them (some of them, where they are many).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb, log
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from unblur.counting.deadline import check
from unblur.joint.plan import System

MOST_VECTORS = 4_000
"""Of a class with more vectors, some are drawn."""
SOME_VECTORS = 400
"""So many vectors of each class are held against each other."""

Lines = tuple[tuple[int, int], ...]
"""Limits, each with a number of records up to which it makes no difference how many there are."""


class Guess(Protocol):
    """What orders are chosen by."""

    caps: Sequence[Mapping[int, int]]
    """For each limit, how many records of each class it can hold."""

    def vectors(self, owner: int, lines: Lines) -> float:
        """The logarithm of how many vectors a class has in some limits."""

    def agreeing(self, first: int, second: int) -> float:
        """The logarithm of the share of pairs of vectors of two classes that keep all limits."""


class RoughGuess:
    """Formulas: at once, but far too large."""

    def __init__(self, system: System) -> None:
        self._system = system
        self.caps: Sequence[Mapping[int, int]] = [
            {owner: min(most, system.sizes[owner]) for owner in sorted({system.owners[group] for group in members})}
            for most, members in system.limits
        ]

    def vectors(self, owner: int, lines: Lines) -> float:
        """As many as there are ways to share out the records, or values of the limits."""
        own = {group for group, other in enumerate(self._system.owners) if other == owner}
        inside = [self._system.limits[limit][1] & own for limit, _ in lines]
        different = len({tuple(group in members for members in inside) for group in own})
        ways = log(comb(self._system.sizes[owner] + different - 1, different - 1))
        return min(ways, sum(log(self.caps[limit][owner] + 1) for limit, _ in lines))

    def agreeing(self, first: int, second: int) -> float:
        """All of them."""
        return 0.0


class CloseGuess:
    """Vectors of every class are listed: mostly within a factor of ten, but not at once."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._lists = [_list_vectors(system, owner) for owner in range(len(system.sizes))]
        self._weights = np.random.default_rng(0).integers(1, 2**62, len(system.limits)) * 2 + 1
        self.caps: Sequence[Mapping[int, int]] = [
            {
                owner: int(each.held[limit].max(initial=0))
                for owner, each in enumerate(self._lists)
                if limit in each.held
            }
            for limit in range(len(system.limits))
        ]

    def vectors(self, owner: int, lines: Lines) -> float:
        """As many as are told apart."""
        found = self._lists[owner]
        key = np.zeros(found.number, np.int64)
        for limit, least in lines:
            key += np.maximum(found.held[limit], least) * self._weights[limit]
        different = len(np.unique(key))
        # Where nearly all that were drawn differ, so do those that were not drawn.
        return log(max(1, different)) + (found.further if 2 * different > found.number else 0.0)

    def agreeing(self, first: int, second: int) -> float:
        """The share among some pairs."""
        here, there = self._lists[first], self._lists[second]
        if not here.number or not there.number:
            return 0.0
        a, b = (np.linspace(0, each.number - 1, SOME_VECTORS).astype(np.int64) for each in (here, there))
        kept = np.ones((len(a), len(b)), bool)
        for limit in here.held.keys() & there.held.keys():
            kept &= here.held[limit][a][:, None] + there.held[limit][b] <= self._system.limits[limit][0]
        return log(max(float(kept.mean()), 1 / SOME_VECTORS))


@dataclass(frozen=True)
class _Vectors:
    """What a class can hold in the limits that it has to do with."""

    held: Mapping[int, NDArray[np.int16]]
    number: int
    further: float
    """The logarithm of how many times more there are than were drawn."""


def _list_vectors(system: System, owner: int) -> _Vectors:
    """Fill a class group by group; beyond so many vectors, go on with some of them."""
    groups = [group for group, other in enumerate(system.owners) if other == owner]
    limits = [limit for limit, (_, members) in enumerate(system.limits) if not members.isdisjoint(groups)]
    left = np.full(1, system.sizes[owner], np.int16)
    held = np.zeros((len(limits), 1), np.int16)
    most = np.array([system.limits[limit][0] for limit in limits], np.int16)[:, None]
    rng, further = np.random.default_rng(owner), 0.0
    for group in groups:
        check()
        touched = np.array([group in system.limits[limit][1] for limit in limits], bool)
        room = np.minimum(left, (most[touched] - held[touched]).min(axis=0, initial=np.iinfo(np.int16).max))
        first = left if group == groups[-1] else np.zeros_like(left)
        number = np.maximum(room.astype(np.int64) - first + 1, 0)
        source = np.repeat(np.arange(len(left)), number)
        placed = (np.arange(len(source)) - np.repeat(np.cumsum(number) - number, number)).astype(np.int16)
        placed += first[source]
        if len(source) > 2 * MOST_VECTORS:
            drawn = np.sort(rng.choice(len(source), MOST_VECTORS, replace=False))
            further += log(len(source) / MOST_VECTORS)
            source, placed = source[drawn], placed[drawn]
        left = left[source] - placed
        held = held[:, source] + np.where(touched[:, None], placed, np.int16(0))
    return _Vectors(dict(zip(limits, held, strict=True)), len(left), further)
