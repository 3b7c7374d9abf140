"""States that are mirror images of each other, so that only one of each needs to be followed.

Two open limits may differ in how much room they have, and in nothing else: exchange them, together with the groups that
lie in one of them, and what is to come is the same. Then a state with rooms 2 and 5 has just as many ways to the end as
one with rooms 5 and 2. So of two such limits the first gets the smaller room, and it is remembered that the groups of
one have changed places with those of the other.

The limit that allows less from the start comes first: so no limit ever has more room than that.

All pairs of limits that can be exchanged are put in order, one after the other, so that three that can all be exchanged
come out sorted. (Of very many pairs, the first few are.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from unblur.joint.plan import Line, Plan, bits

Images = NDArray[np.int16]
"""Rows that tell, for every group, which group it stands for."""

MOST_MIRRORS = 8
"""At a time: which of them were used is told by the bits of a byte."""


@dataclass(frozen=True)
class Mirror:
    """Two limits that can change places."""

    lines: tuple[Line, Line]
    """The first is the one that gets the smaller room."""
    image: tuple[int, ...]
    """For every group, the one that it changes places with: mostly itself."""


def mirrors(plan: Plan, free: Collection[int]) -> list[Mirror]:
    """Find open limits that what is to come does not tell apart; groups change places with those of their kind only.

    Limits that cannot be broken any more say nothing.
    """
    system = plan.system
    if not system.kinds:
        return []
    limits = {limit: adding for limit, adding in plan.adding.items() if limit not in free}
    alike: dict[Hashable, list[int]] = defaultdict(list)
    for limit in sorted(plan.opened & limits.keys(), key=lambda each: (system.limits[each][0], each)):
        alike[tuple(sorted((owner, groups.bit_count()) for owner, groups in limits[limit].items()))].append(limit)
    pairs = [pair for each in alike.values() for pair in combinations(each, 2)]
    if not pairs:
        return []
    around = _limits_of_groups(limits)
    return [found for pair in pairs if (found := _mirror(plan, around, *pair))]


def images(mirrors: Sequence[Mirror], groups: int) -> Images:
    """For each set of mirrors that was used, as bits: the group that each group stands for afterwards."""
    found = np.arange(groups, dtype=np.int16)[None]
    for mirror in mirrors:
        found = np.concatenate([found, found[:, mirror.image]])
    return found


def _limits_of_groups(limits: dict[int, dict[int, int]]) -> dict[int, int]:
    """The limits that each group lies in, as bits."""
    found: dict[int, int] = defaultdict(int)
    for limit, adding in limits.items():
        for groups in adding.values():
            for group in bits(groups):
                found[group] |= 1 << limit
    return found


def _mirror(plan: Plan, around: dict[int, int], first: int, second: int) -> Mirror | None:
    """Exchange two limits, if for every group of one there is a group of the other that is its like in all else."""
    image = list(range(len(plan.system.owners)))
    here, there = plan.adding[first], plan.adding[second]

    def alone(groups: int, limit: int) -> Iterator[tuple[int, int, int]]:
        for group in bits(groups):
            yield around[group] & ~(1 << limit), plan.system.kinds[group], group

    for owner in here:
        one = sorted(alone(here[owner] & ~there[owner], first))
        other = sorted(alone(there[owner] & ~here[owner], second))
        if [key for *key, _ in one] != [key for *key, _ in other]:
            return None
        for (*_, group), (*_, like) in zip(one, other, strict=True):
            image[group], image[like] = like, group
    return Mirror((("limit", first), ("limit", second)), tuple(image))
