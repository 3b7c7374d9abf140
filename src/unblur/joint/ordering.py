"""Good orders of the groups: such that few sums are open at a time.

The number of states after some groups is at most the product of how many values each open line can take. The group
that is taken next is the one after which this bound is least. Ties and near ties are many, and some noise leads to
other orders, of which the best are proposed: those with the smallest bound on all states together.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle
from math import exp, log

from unblur.counting.deadline import check
from unblur.joint.plan import System

NOISE = (0.0, 0.3, 0.7, 1.5)
ROUNDS = 10
"""How often to go through all noises."""
STEPS = 5_000_000
"""So many steps, a few seconds, may be spent; large systems are ordered once."""


def good_orders(system: System, number: int, *, rounds: int = ROUNDS, seed: int = 0) -> list[list[int]]:
    """Propose some orders of the groups, the most promising first."""
    lines = _Lines(system)
    rng = random.Random(seed)
    tries = max(1, min(rounds * len(NOISE), STEPS // lines.steps))
    found = sorted(lines.greedy(noise, rng) for noise, _ in zip(cycle(NOISE), range(tries), strict=False))
    different = {tuple(order): None for _, order in found}
    return [list(order) for order in different][:number]


@dataclass(frozen=True)
class _Lines:
    """The lines of a system: classes first, then limits; and how many values each takes when it is open."""

    system: System

    @property
    def steps(self) -> int:
        """About how many steps it takes to find an order."""
        return len(self.system.owners) * sum(map(len, self._touched)) // 2 + 1

    def greedy(self, noise: float, rng: random.Random) -> tuple[float, list[int]]:
        """Take the group next after which the bound is least; also tell the bound on all states."""
        check()
        left = [dict(parts) for parts in self._parts]
        values = [0.0] * len(left)
        rest, order, bound, total = set(range(len(self.system.owners))), [], 0.0, 0.0
        while rest:
            scored = []
            for group in rest:
                more = self._more(group, left, values)
                scored.append((sum(more.values()) + noise * rng.random(), group))
            group = min(scored)[1]
            for line, more_values in self._more(group, left, values).items():
                left[line][self.system.owners[group]] -= 1
                values[line] += more_values
                bound += more_values
            rest.remove(group)
            order.append(group)
            total += exp(min(500.0, bound))
        return total, order

    def _more(self, group: int, left: Sequence[dict[int, int]], values: Sequence[float]) -> dict[int, float]:
        """By how much the logarithm of each line's values grows when a group is taken."""
        owner, found = self.system.owners[group], {}
        for line in self._touched[group]:
            left[line][owner] -= 1
            found[line] = self._values(line, left[line]) - values[line]
            left[line][owner] += 1
        return found

    def _values(self, line: int, left: dict[int, int]) -> float:
        """The logarithm of how many values a line can take, by how many groups of each class are to come."""
        parts, most = self._parts[line], self._most[line]
        if line < len(self.system.sizes):
            return log(most + 1) if 0 < left[line] < parts[line] else 0.0
        used = sum(min(most, self.system.sizes[owner]) for owner, number in parts.items() if left[owner] < number)
        use = sum(min(most, self.system.sizes[owner]) for owner, number in parts.items() if left[owner])
        return log(min(most, used) - max(0, most - use) + 1) if used and use else 0.0

    @cached_property
    def _most(self) -> list[int]:
        return [*self.system.sizes, *(most for most, _ in self.system.limits)]

    @cached_property
    def _members(self) -> list[list[int]]:
        classes: list[list[int]] = [[] for _ in self.system.sizes]
        for group, owner in enumerate(self.system.owners):
            classes[owner].append(group)
        return [*classes, *(sorted(members) for _, members in self.system.limits)]

    @cached_property
    def _parts(self) -> list[dict[int, int]]:
        """For each line, how many groups of each class touch it."""
        found = []
        for members in self._members:
            parts: dict[int, int] = defaultdict(int)
            for group in members:
                parts[self.system.owners[group]] += 1
            found.append(dict(parts))
        return found

    @cached_property
    def _touched(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self.system.owners]
        for line, members in enumerate(self._members):
            for group in members:
                found[group].append(line)
        return found
