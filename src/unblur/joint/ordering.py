"""Good orders of the classes: such that few limits are open at a time, and what is to come soon falls apart.

Which limits are open depends only on the set of classes that are to come. So the best order is found set by set: take
one of its classes first, and go on with each part that what is left falls into. The cost is a guess at the number of
states (see `unblur.joint.guessing`). Large systems have too many sets; then only the cheapest classes are tried as the
first. A guess remains a guess, so other mixtures and some noise give further orders to try.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, combinations, repeat
from math import exp, inf, log

from unblur.counting.deadline import check
from unblur.joint.filling import Filling
from unblur.joint.guessing import CloseGuess, Guess, Lines, RoughGuess
from unblur.joint.plan import System, bits

WIDTH = 8
"""So many classes are tried as the first of a set."""
PATIENCE = 800
"""After so many sets, only the cheapest class is tried; the very first order, found at once, has only such."""
MIXTURES = ((0.25, False), (0.25, True), (0.0, True))
"""How much the states while a class is filled count, besides those before and after; and whether they count once for
each of its groups. The first order tells whether there is any hope."""
NOISE = 1.5

_Found = tuple[float, float, float, tuple[int, ...]]
"""What is to be least, the cost of an order of classes, its states, and the order."""
_NONE: _Found = (inf, inf, inf, ())


@dataclass(frozen=True)
class Order:
    """An order of the groups."""

    groups: list[int]
    cost: float
    """What orders are compared by: the states, times the groups in which they are there."""
    states: float
    """A guess at the number of states; mostly within a factor of ten, but for the very first order, which is rough."""


def good_orders(system: System, *, seed: int = 0) -> Iterator[Order]:
    """Propose orders of the groups, the most promising first; there is no end to them, but they may repeat."""
    rng, filling, seen = random.Random(seed), Filling(system), set[tuple[int, ...]]()
    whole = (1 << len(system.sizes)) - 1
    *_, states, classes = _Classes(system, _Guesses(RoughGuess(system)), 0.0, False, 0.0, 0, rng).best(whole)
    yield Order(filling.order(classes), states, states)
    guesses = _Guesses(CloseGuess(system))
    for (mixture, steps), noise in chain(((each, 0.0) for each in MIXTURES), repeat((MIXTURES[1], NOISE))):
        _, cost, states, classes = _Classes(system, guesses, mixture, steps, noise, PATIENCE, rng).best(whole)
        if noise or classes not in seen:
            seen.add(classes)
            yield Order(filling.order(classes), cost, states)


@dataclass(frozen=True)
class _Guesses:
    """A guess, and what was found out by it: the same for every order that is looked for."""

    guess: Guess
    states: dict[tuple[int, int], float] = field(default_factory=dict)
    """By the classes that are filled and the limits that are open."""
    rooms: dict[tuple[int, int], tuple[int, float]] = field(default_factory=dict)
    """By limit, and those of its classes that are filled."""
    _vectors: dict[tuple[int, Lines], float] = field(default_factory=dict)
    _agreeing: dict[tuple[int, int], float] = field(default_factory=dict)

    def vectors(self, owner: int, lines: Lines) -> float:
        if (owner, lines) not in self._vectors:
            self._vectors[owner, lines] = self.guess.vectors(owner, lines)
        return self._vectors[owner, lines]

    def agreeing(self, first: int, second: int) -> float:
        if (first, second) not in self._agreeing:
            self._agreeing[first, second] = self.guess.agreeing(first, second)
        return self._agreeing[first, second]


@dataclass(frozen=True)
class _Classes:
    """Classes and the limits that they share, as bits of whole numbers."""

    system: System
    guesses: _Guesses
    mixture: float
    steps: bool
    noise: float
    patience: int
    rng: random.Random
    _known: dict[int, _Found] = field(default_factory=dict)

    def best(self, coming: int) -> _Found:
        """The best order of the classes that are to come."""
        if coming not in self._known:
            check()
            found = _NONE
            for begun in self._firsts(coming)[:WIDTH]:
                if begun[0] < found[0] and (not found[-1] or len(self._known) < self.patience):
                    found = min(found, self._starting(coming, begun, found[0]))
            self._known[coming] = found
        return self._known[coming]

    def _starting(self, coming: int, begun: _Found, most: float) -> _Found:
        least, cost, states, order = begun
        for part in self._parts(coming & ~(1 << order[0])):
            further = self.best(part)
            least, cost, states = least + further[0], cost + further[1], states + further[2]
            order += further[3]
            if least >= most:
                return _NONE
        return least, cost, states, order

    def _firsts(self, coming: int) -> list[_Found]:
        """Begin with each class; the best before."""
        filled = (1 << len(self.system.sizes)) - 1 & ~coming
        opened = self._lines(coming) & self._lines(filled)
        before = self._states(filled, opened)
        found = []
        for first in bits(coming):
            lines, filled_then, rest = opened | self._shared[first], filled | 1 << first, coming & ~(1 << first)
            # What falls apart in the end does so on the way, more or less: between all together and the largest part.
            parts = list(self._parts(rest))
            apart = max([before, *(self._states(filled_then, lines & self._lines(part)) for part in parts)])
            together = self._states(filled_then, lines & self._lines(rest)) if len(parts) > 1 else apart
            ends = (apart + max(apart, together)) / 2
            states = ends + self.mixture * (self._states(filled_then, lines) - ends) if self.mixture else ends
            number, cost = (exp(min(500.0, each)) for each in (states, states + self._groups[first]))
            least = (cost if self.steps else number) * exp(self.noise * self.rng.random())
            found.append((least, cost, number, (first,)))
        return sorted(found)

    def _states(self, filled: int, lines: int) -> float:
        """Guess the logarithm of the number of states, by the classes that are filled and the limits that are open."""
        if (filled, lines) not in self.guesses.states:
            self.guesses.states[filled, lines] = self._guess(filled, lines)
        return self.guesses.states[filled, lines]

    def _guess(self, filled: int, lines: int) -> float:
        """Where classes and limits hang together, either may be few."""
        total = 0.0
        left = [owner for owner in bits(filled) if self._shared[owner] & lines]
        while left:
            owners, here, counts = [left.pop()], 0, 0.0
            for owner in owners:  # grows
                here |= self._shared[owner] & lines
                joined = [other for other in left if self._shared[other] & here]
                left = [other for other in left if other not in joined]
                owners += joined
            rooms = {limit: self._room(limit, filled) for limit in bits(here)}
            for owner in owners:
                lines_of = bits(here & self._shared[owner])
                counts += self.guesses.vectors(owner, tuple((limit, rooms[limit][0]) for limit in lines_of))
            for first, second in combinations(sorted(owners), 2):
                if self._shared[first] & self._shared[second]:
                    counts += self.guesses.agreeing(first, second)
            total += max(0.0, min(counts, sum(values for _, values in rooms.values())))
        return total

    def _room(self, limit: int, filled: int) -> tuple[int, float]:
        """Up to how many records a limit cannot be broken any more; and the logarithm of its number of values."""
        key = limit, filled & self._joined[limit]
        if key not in self.guesses.rooms:
            most, caps = self.system.limits[limit][0], self.guesses.guess.caps[limit]
            used = sum(cap for owner, cap in caps.items() if filled >> owner & 1)
            use = sum(caps.values()) - used
            values = min(most, used) - (max(0, most - use) if use else 0) + 1
            self.guesses.rooms[key] = max(0, most - use), log(max(1, values))
        return self.guesses.rooms[key]

    def _parts(self, coming: int) -> Iterator[int]:
        """Part classes that share no limit."""
        while coming:
            part, grown = 0, coming & -coming
            while part != grown:
                part = grown
                for owner in bits(part):
                    grown |= self._near[owner] & coming
            yield part
            coming &= ~part

    def _lines(self, owners: int) -> int:
        found = 0
        for owner in bits(owners):
            found |= self._shared[owner]
        return found

    @cached_property
    def _shared(self) -> list[int]:
        """For each class, the limits that it shares with others."""
        found = [0] * len(self.system.sizes)
        for limit, caps in enumerate(self.guesses.guess.caps):
            for owner in caps if len(caps) > 1 else ():
                found[owner] |= 1 << limit
        return found

    @cached_property
    def _groups(self) -> list[float]:
        """For each class, the logarithm of its groups against the average: states are there while each is filled."""
        groups = Counter(self.system.owners)
        average = len(self.system.owners) / len(self.system.sizes)
        return [log(groups[owner] / average) for owner in range(len(self.system.sizes))]

    @cached_property
    def _near(self) -> list[int]:
        """For each class, the classes that it shares limits with."""
        found = [0] * len(self.system.sizes)
        for caps, joined in zip(self.guesses.guess.caps, self._joined, strict=True):
            for owner in caps:
                found[owner] |= joined
        return found

    @cached_property
    def _joined(self) -> list[int]:
        """For each limit, the classes that it has to do with."""
        return [sum(1 << owner for owner in caps) for caps in self.guesses.guess.caps]
