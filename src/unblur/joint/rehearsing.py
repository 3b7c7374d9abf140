"""In which order to fill the groups of a class, by what some of the states would become.

How the groups of a large class are best ordered shows only when the states are there. So the class is filled on a
sample of them first: in the order that was proposed, and in another, in which the group comes next that has the fewest
moves. Mirror images aside, states can only become the same if they agree in all that the class has nothing to do with.
All that agree in it are taken together, so that the sample's states become the same as often as they would among all
others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unblur.joint.front import Front
from unblur.joint.merging import Ints
from unblur.joint.plan import Plan

FEW_STATES = 200_000
"""With fewer states, trying would take longer than going on."""
MOST_GROUPS = 15
"""With more groups, too."""
SAMPLE = 3_000
"""About so many states are taken; up to twice as many where those that agree are many."""
BETTER = 0.7
"""Another order is taken if it has at most this part of the moves: a sample is only a sample."""


def rehearse(front: Front, plan: Plan, groups: Sequence[int]) -> Sequence[int]:
    """Order the groups of a class: as given, unless the sample is clearly for another order."""
    if front.states < FEW_STATES or not 2 < len(groups) <= MOST_GROUPS:
        return groups
    rows = _sample(front, plan, plan.system.owners[groups[0]])
    moves = _moves(front.copy(rows), plan.copy(), groups)
    other = _greedy(front.copy(rows), plan.copy(), groups, int(BETTER * moves))
    return other or groups


def _sample(front: Front, plan: Plan, owner: int) -> Ints:
    changing = {("class", owner), *(("limit", limit) for limit in plan.affected(owner))}
    kind = front.apart(changing)
    number = np.bincount(kind)
    shuffled = np.random.default_rng(0).permutation(len(number))
    taken = shuffled[: max(1, int(np.searchsorted(np.cumsum(number[shuffled]), SAMPLE)))]
    return np.flatnonzero(np.isin(kind, taken))[: 2 * SAMPLE]


def _moves(front: Front, plan: Plan, groups: Sequence[int]) -> int:
    """Count the moves of an order."""
    return sum(len(front.fill(plan, group).target) for group in groups)


def _greedy(front: Front, plan: Plan, groups: Sequence[int], most: int) -> list[int]:
    """Take the group with the fewest moves next; give up, with no order, beyond so many moves."""
    order, rest, total = list[int](), list(groups), 0
    while rest:
        tried = []
        for group in rest:
            then, ahead = front.copy(), plan.copy()
            tried.append((len(then.fill(ahead, group).target), group, then, ahead))
        moves, group, front, plan = min(tried, key=lambda each: each[0])
        total += moves
        if total > most:
            return []
        order.append(group)
        rest.remove(group)
    return order
