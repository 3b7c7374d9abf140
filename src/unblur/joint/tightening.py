"""Limits that follow from others, stated so that dead ends are seen early.

If two limits cover a class, all its records lie in one or the other. What they allow together, less the size of the
class, is all that is left for the other classes there. The exact engine would find out when it comes to that class;
with the limit stated, what leaves it too little room is not even begun.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations

from unblur.counting.deadline import check
from unblur.joint.plan import System


def tighten(system: System) -> System:
    """State the limits that follow; all solutions stay the same."""
    return replace(system, limits=tuple(least((*system.limits, *_following(system)))))


def _following(system: System) -> Iterator[tuple[int, frozenset[int]]]:
    """What pairs of limits that cover a class leave for the others."""
    for owner, size in enumerate(system.sizes):
        check()
        own = frozenset(group for group, other in enumerate(system.owners) if other == owner)
        partly = [(most, members) for most, members in system.limits if members & own and not own <= members]
        for (first, here), (second, there) in combinations(partly, 2):
            others, most = (here | there) - own, first + second - size
            if own <= here | there and 0 <= most < _records(system, others):
                yield most, others


def _records(system: System, groups: frozenset[int]) -> int:
    """All records of the classes that have some groups."""
    return sum(system.sizes[owner] for owner in {system.owners[group] for group in groups})


def least(limits: Iterable[tuple[int, frozenset[int]]]) -> list[tuple[int, frozenset[int]]]:
    """Leave out limits that follow from a single other one."""
    kept: list[tuple[int, frozenset[int]]] = []
    # The larger a set is, the less can contain it: what implies a limit comes before it.
    for most, members in sorted(set(limits), key=lambda each: (-len(each[1]), each[0], sorted(each[1]))):
        check()
        if not any(other <= most and members <= larger for other, larger in kept):
            kept.append((most, members))
    return kept
