"""In which order to fill the groups of a class: such that few sums are open at a time.

The number of states after some groups is at most the product of how many values each open line can take. The group
that is taken next is the one after which this bound is least.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log

from unblur.counting.deadline import check
from unblur.joint.plan import System


@dataclass(frozen=True)
class Filling:
    """The lines of a system: classes first, then limits; and how many values each takes when it is open."""

    system: System

    def order(self, classes: Sequence[int]) -> list[int]:
        """List the groups of each class, class by class."""
        left = [dict(parts) for parts in self._parts]
        values = [0.0] * len(left)
        order: list[int] = []
        for owner in classes:
            rest = set(self._members[owner])
            while rest:
                check()
                grown = {group: self._more(group, left, values) for group in rest}
                group = min(rest, key=lambda each: (sum(grown[each].values()), each))
                for line, more in grown[group].items():
                    left[line][owner] -= 1
                    values[line] += more
                rest.remove(group)
                order.append(group)
        return order

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
        return log(max(1, min(most, used) - max(0, most - use) + 1)) if used and use else 0.0

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
