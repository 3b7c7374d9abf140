"""Good orders of the classes: such that few limits are open at a time, and what is to come soon falls apart.

Which limits are open depends only on the set of classes that are to come. So the best order is found set by set: take
one of its classes first, and go on with each part that what is left falls into. The cost is a guess at the number of
states: those classes that were filled have so many different counts in the limits that are open. Large systems have too
many sets; then only the cheapest classes are tried as the first. The guess is rough, so other mixtures and some noise
give further orders to try.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, repeat
from math import comb, exp, inf, log

from unblur.counting.deadline import check
from unblur.joint.filling import Filling
from unblur.joint.plan import System, bits

WIDTH = 4
"""So many classes are tried as the first of a set."""
PATIENCE = 400
"""After so many sets, only the cheapest class is tried; the very first order, found at once, has only such."""
MIXTURES = (0.0, 0.25, 0.5)
"""How much the states while a class is filled count, besides those before and after."""
NOISE = 1.5


@dataclass(frozen=True)
class Order:
    """An order of the groups."""

    groups: list[int]
    states: float
    """A guess at the number of states; too large rather than too small, by a factor of up to a hundred or so."""


def good_orders(system: System, *, seed: int = 0) -> Iterator[Order]:
    """Propose orders of the groups, the most promising first; there is no end to them, but they may repeat."""
    rng, filling, seen = random.Random(seed), Filling(system), set[tuple[int, ...]]()
    planned = (((0.0, 0.0, 0),), ((mixture, 0.0, PATIENCE) for mixture in MIXTURES), repeat((0.25, NOISE, PATIENCE)))
    for mixture, noise, patience in chain(*planned):
        states, classes = _Classes(system, mixture, noise, patience, rng).best((1 << len(system.sizes)) - 1)
        if noise or classes not in seen:
            seen.add(classes)
            yield Order(filling.order(classes), states)


@dataclass(frozen=True)
class _Classes:
    """Classes and the limits that they share, as bits of whole numbers."""

    system: System
    mixture: float
    noise: float
    patience: int
    rng: random.Random
    _known: dict[int, tuple[float, tuple[int, ...]]] = field(default_factory=dict)
    _tables: dict[tuple[int, int], float] = field(default_factory=dict)

    def best(self, coming: int) -> tuple[float, tuple[int, ...]]:
        """The best order of the classes that are to come, and its cost."""
        if coming not in self._known:
            check()
            found: tuple[float, tuple[int, ...]] = (inf, ())
            for cost, first in self._firsts(coming)[:WIDTH]:
                if cost < found[0] and (not found[1] or len(self._known) < self.patience):
                    found = min(found, self._starting(coming, first, cost, found[0]))
            self._known[coming] = found
        return self._known[coming]

    def _starting(self, coming: int, first: int, cost: float, most: float) -> tuple[float, tuple[int, ...]]:
        order: tuple[int, ...] = (first,)
        for part in self._parts(coming & ~(1 << first)):
            more, classes = self.best(part)
            cost, order = cost + more, order + classes
            if cost >= most:
                return inf, ()
        return cost, order

    def _firsts(self, coming: int) -> list[tuple[float, int]]:
        """What each class costs as the first, the cheapest before."""
        filled = (1 << len(self.system.sizes)) - 1 & ~coming
        opened = self._lines(coming) & self._lines(filled)
        before = self._states(filled, opened)
        found = []
        for first in bits(coming):
            lines, filled_then = opened | self._shared[first], filled | 1 << first
            ends = max(before, self._states(filled_then, lines & self._lines(coming & ~(1 << first))))
            cost = ends + self.mixture * (self._states(filled_then, lines) - ends) if self.mixture else ends
            found.append((exp(min(500.0, cost + self.noise * self.rng.random())), first))
        return sorted(found)

    def _states(self, filled: int, lines: int) -> float:
        """Guess the logarithm of the number of states, by the classes that are filled and the limits that are open.

        Where classes and limits hang together, either may be few.
        """
        total = 0.0
        left = [owner for owner in bits(filled) if self._shared[owner] & lines]
        while left:
            owners, here = [left.pop()], 0
            for owner in owners:  # grows
                here |= self._shared[owner] & lines
                joined = [other for other in left if self._shared[other] & here]
                left = [other for other in left if other not in joined]
                owners += joined
            counts = sum(self._table(owner, here & self._shared[owner]) for owner in owners)
            total += min(counts, sum(self._values(limit, filled) for limit in bits(here)))
        return total

    def _table(self, owner: int, lines: int) -> float:
        """The logarithm of how many different counts a class can have in some limits, at most."""
        key = owner, lines
        if key not in self._tables:
            different = len({self._touched[group] & lines for group in self._groups[owner]})
            ways = log(comb(self.system.sizes[owner] + different - 1, different - 1))
            self._tables[key] = min(ways, sum(log(self._caps[limit][owner] + 1) for limit in bits(lines)))
        return self._tables[key]

    def _values(self, limit: int, filled: int) -> float:
        """The logarithm of how many values the room of a limit can have."""
        most = self.system.limits[limit][0]
        used = sum(cap for owner, cap in self._caps[limit].items() if filled >> owner & 1)
        use = sum(cap for owner, cap in self._caps[limit].items() if not filled >> owner & 1)
        return log(max(1, min(most, used) - (max(0, most - use) if use else 0) + 1))

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
    def _caps(self) -> list[dict[int, int]]:
        """For each limit, how many records of each class it can hold."""
        owned = [{self.system.owners[group] for group in members} for _, members in self.system.limits]
        pairs = zip(self.system.limits, owned, strict=True)
        return [{owner: min(most, self.system.sizes[owner]) for owner in sorted(owners)} for (most, _), owners in pairs]

    @cached_property
    def _groups(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self.system.sizes]
        for group, owner in enumerate(self.system.owners):
            found[owner].append(group)
        return found

    @cached_property
    def _touched(self) -> list[int]:
        """For each group, the limits that it lies in."""
        found = [0] * len(self.system.owners)
        for limit, (_, members) in enumerate(self.system.limits):
            for group in members:
                found[group] |= 1 << limit
        return found

    @cached_property
    def _shared(self) -> list[int]:
        """For each class, the limits that it shares with others."""
        found = [0] * len(self.system.sizes)
        for limit, caps in enumerate(self._caps):
            for owner in caps if len(caps) > 1 else ():
                found[owner] |= 1 << limit
        return found

    @cached_property
    def _near(self) -> list[int]:
        """For each class, the classes that it shares limits with."""
        found = [0] * len(self.system.sizes)
        for caps in self._caps:
            joined = sum(1 << owner for owner in caps)
            for owner in caps:
                found[owner] |= joined
        return found
