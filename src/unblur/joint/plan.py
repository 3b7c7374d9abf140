"""What the exact engine does, step by step: which group is filled next, and which sums are open meanwhile.

A *line* is a number that must be remembered: how many records of a class are still to be placed, or how many more a
limit allows. A line opens with the first group that touches it and closes with the last.

Once all groups of a class that are still to come lie in one limit, the limit will take all that is left of the class:
so it is charged at once, and the class touches it no more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Line = tuple[str, int]
"""`("class", owner)` or `("limit", number)`."""

Limits = tuple[tuple[int, frozenset[int]], ...]
"""At most so many records in some groups together."""


@dataclass(frozen=True)
class System:
    """Sums of numbers: groups of classes of given sizes, and limits on some groups together."""

    sizes: tuple[int, ...]
    """The records of each class."""
    owners: tuple[int, ...]
    """The class of each group."""
    limits: Limits
    """How many records some groups hold together at most."""

    def touched(self, group: int) -> tuple[int, ...]:
        """The limits that a group lies in."""
        return tuple(number for number, (_, members) in enumerate(self.limits) if group in members)


@dataclass(frozen=True)
class Step:
    """One group is filled."""

    group: int
    owner: int
    touches: tuple[int, ...]
    """The limits that take the group's records, but for those that were charged with all of the class before."""
    opens: tuple[int, ...]
    """Limits that are touched for the first time, by this group or by charging a class."""
    charges: tuple[int, ...]
    """Limits that will take all that is left of the class after this group."""
    last: bool
    """Whether the class has no further group."""
    rest: Mapping[int, tuple[Addition, ...]]
    """For every limit that stays open, what classes may still add to it."""


@dataclass(frozen=True)
class Addition:
    """A class may still add to a limit: at most what is left of it, and what limits around the groups allow."""

    owner: int
    size: int
    around: tuple[tuple[int, int], ...]
    """Limits that contain all the groups in question, and what each allows from the start."""


def plan(system: System, order: Sequence[int]) -> list[Step]:
    """Lay out the steps of an order of the groups."""
    plan_ = _Plan(system)
    return [plan_.step(group) for group in order]


class _Plan:
    """What is still to come: sets of groups, as the bits of whole numbers."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._limits = [sum(1 << group for group in members) for _, members in system.limits]
        self._touched = [system.touched(group) for group in range(len(system.owners))]
        classes = [0] * len(system.sizes)
        for group, owner in enumerate(system.owners):
            classes[owner] |= 1 << group
        self._later = classes
        # Invariant: the groups of a class that will still add to a limit; no entry if there are none.
        self._adding = [
            {owner: members & all_ for owner, members in enumerate(classes) if members & all_} for all_ in self._limits
        ]
        self._opened: set[int] = set()

    def step(self, group: int) -> Step:
        """Fill a group next."""
        owner = self._system.owners[group]
        touches = [n for n in self._touched[group] if self._adding[n].get(owner, 0) >> group & 1]
        self._later[owner] &= ~(1 << group)
        for limit in touches:
            self._leave(limit, owner, 1 << group)
        charges = [
            n for n, adding in enumerate(self._adding) if owner in adding and adding[owner] == self._later[owner]
        ]
        for limit in charges:
            self._leave(limit, owner, self._later[owner])
        opens = sorted({*touches, *charges} - self._opened)
        self._opened = {limit for limit in {*self._opened, *opens} if self._adding[limit]}
        rest = {
            limit: tuple(self._addition(limit, other) for other in self._adding[limit])
            for limit in sorted(self._opened)
        }
        return Step(group, owner, tuple(touches), tuple(opens), tuple(charges), not self._later[owner], rest)

    def _leave(self, limit: int, owner: int, groups: int) -> None:
        self._adding[limit][owner] &= ~groups
        if not self._adding[limit][owner]:
            del self._adding[limit][owner]

    def _addition(self, limit: int, owner: int) -> Addition:
        groups = self._adding[limit][owner]
        around = (
            (number, self._system.limits[number][0])
            for number, adding in enumerate(self._adding)
            if number != limit and not groups & ~adding.get(owner, 0)
        )
        return Addition(owner, self._system.sizes[owner], tuple(around))
