"""What the exact engine does, step by step: which group is filled next, and which sums are open meanwhile.

A *line* is a number that must be remembered: how many records of a class are still to be placed, or how many more a
limit allows. A line opens with the first group that touches it and closes with the last.

Once all groups of a class that are still to come lie in one limit, the limit will take all that is left of the class:
so it is charged at once, and the class touches it no more.

Groups to come that no line joins have nothing to do with each other any more: the plan branches.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
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
    kinds: tuple[int, ...] = ()
    """Groups of the same kind are the same to whatever is counted; without kinds, no two groups are."""


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


@dataclass
class Plan:
    """What is still to come: sets of groups, as the bits of whole numbers."""

    system: System
    later: dict[int, int]
    """The groups of each class that are not filled."""
    adding: dict[int, dict[int, int]]
    """For each limit, the groups of each class that will still add to it; no entry if there are none."""
    opened: set[int]
    """The limits that were touched before."""

    @classmethod
    def of(cls, system: System) -> Plan:
        """Start with all groups."""
        classes = dict.fromkeys(range(len(system.sizes)), 0)
        for group, owner in enumerate(system.owners):
            classes[owner] |= 1 << group
        adding = {}
        for number, (_, members) in enumerate(system.limits):
            inside = sum(1 << group for group in members)
            adding[number] = {owner: here for owner, groups in classes.items() if (here := groups & inside)}
        return cls(system, {owner: groups for owner, groups in classes.items() if groups}, adding, set())

    def copy(self) -> Plan:
        """Copy what steps change."""
        return Plan(self.system, dict(self.later), {n: dict(each) for n, each in self.adding.items()}, set(self.opened))

    def affected(self, owner: int) -> set[int]:
        """The open limits that filling a class has to do with: they take its records, or depend on those that do."""
        touched = {limit for limit, adding in self.adding.items() if owner in adding}
        rest = self._rest().items()
        return touched | {n for n, parts in rest if any(m in touched for each in parts for m, _ in each.around)}

    @property
    def groups(self) -> int:
        """All groups that are not filled."""
        return sum(self.later.values())  # no group has two classes, so this is the union

    def step(self, group: int) -> Step:
        """Fill a group next."""
        owner = self.system.owners[group]
        touches = [n for n, adding in self.adding.items() if adding.get(owner, 0) >> group & 1]
        self.later[owner] &= ~(1 << group)
        for limit in touches:
            self._leave(limit, owner, 1 << group)
        left = self.later[owner]
        charges = [n for n, adding in self.adding.items() if left and adding.get(owner) == left]
        for limit in charges:
            self._leave(limit, owner, left)
        if not left:
            del self.later[owner]
        opens = sorted({*touches, *charges} - self.opened)
        self.opened = {limit for limit in {*self.opened, *opens} if limit in self.adding}
        return Step(group, owner, tuple(touches), tuple(opens), tuple(charges), not left, self._rest())

    def split(self, free: Collection[int]) -> list[Plan]:
        """Part what is to come where no line joins it; limits that cannot be broken any more join nothing."""
        for limit in free:
            self.adding.pop(limit, None)
        bundles = list(self.later.items())
        parts: list[tuple[int, set[int], set[int]]] = []
        for owner, groups in bundles:
            parts.append((groups, {owner}, set()))
        for limit, adding in self.adding.items():
            joined = [part for part in parts if part[1] & adding.keys()]
            parts = [part for part in parts if not part[1] & adding.keys()]
            groups = sum(part[0] for part in joined)
            parts.append((groups, set().union(*(p[1] for p in joined)), set().union({limit}, *(p[2] for p in joined))))
        return [
            Plan(
                self.system,
                {owner: self.later[owner] for owner in sorted(owners)},
                {limit: self.adding[limit] for limit in sorted(limits)},
                self.opened & limits,
            )
            for _, owners, limits in parts
        ]

    def _leave(self, limit: int, owner: int, groups: int) -> None:
        self.adding[limit][owner] &= ~groups
        if not self.adding[limit][owner]:
            del self.adding[limit][owner]
            if not self.adding[limit]:
                del self.adding[limit]

    def _rest(self) -> dict[int, tuple[Addition, ...]]:
        """What may still be added to each open limit."""
        by_owner: dict[int, list[tuple[int, int]]] = {owner: [] for owner in self.later}
        for limit, adding in self.adding.items():
            for owner, groups in adding.items():
                by_owner[owner].append((limit, groups))
        return {
            limit: tuple(
                self._addition(limit, owner, groups, by_owner[owner]) for owner, groups in self.adding[limit].items()
            )
            for limit in sorted(self.opened)
        }

    def _addition(self, limit: int, owner: int, groups: int, limits: list[tuple[int, int]]) -> Addition:
        around = ((n, self.system.limits[n][0]) for n, others in limits if n != limit and not groups & ~others)
        return Addition(owner, self.system.sizes[owner], tuple(around))


def bits(number: int) -> Iterator[int]:
    """List the places of the bits that are set."""
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest
