"""Exact numbers by filling one group after the other.

The states that some groups leave are few where the order of the groups is good. Where what is to come falls apart, each
branch goes on alone, with the sums that matter to it: states that agree on these are one state for the branch.

The states and the transitions between them are found once, for whatever does not tell groups of a kind apart. Numbers
then flow through the transitions: backwards for counts, and forwards again for odds and samples.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unblur.counting.deadline import check
from unblur.joint.front import Branch, Front, Layer, OutOfReach
from unblur.joint.merging import Indices
from unblur.joint.plan import Plan, System, bits
from unblur.joint.rehearsing import rehearse

MOST_STATES = 8_000_000
MOST_MOVES = 150_000_000
"""How many states a step may have, and how many moves all steps together: memory stays below 4 GB."""
MOST_RECORDS = 400
"""Larger classes have too many ways to be shared out."""

FURTHER = 4
"""A step may have so many times more moves than states before it is refused without trying."""

_SAME = np.zeros(1, np.int32)


def explore(
    system: System, order: Sequence[int], *, most_states: int = MOST_STATES, most_moves: int = MOST_MOVES
) -> list[Layer]:
    """Find all states and moves; a layer comes before those that it leads to. Layers that none leads to have one state.

    Of what is to come, the group that is first in the order is filled next, or one of the same class.
    """
    if max(system.sizes) > MOST_RECORDS:
        raise OutOfReach(f"a class of {max(system.sizes):,} records")
    rank = {group: place for place, group in enumerate(order)}
    begun, layers = set[int](), list[Layer]()
    waiting: list[tuple[Plan, Front, list[Branch] | None, Indices]]
    waiting = [(plan, Front(system), None, _SAME) for plan in Plan.of(system).split(())]
    moves = 0
    while waiting:
        check()
        plan, front, before, state = waiting.pop()
        if before is not None:
            before.append(Branch(len(layers), state))
        group = min(bits(plan.groups), key=rank.__getitem__)
        if system.owners[group] not in begun:
            begun.add(system.owners[group])
            groups = sorted(bits(plan.later[system.owners[group]]), key=rank.__getitem__)
            rank |= dict(zip(rehearse(front, plan, groups), [rank[each] for each in groups], strict=True))
            group = min(groups, key=rank.__getitem__)
        layer = front.fill(plan, group, FURTHER * most_states)
        moves += len(layer.target)
        if layer.states > most_states or moves > most_moves:
            raise OutOfReach(f"more than {most_states:,} states or {most_moves:,} moves")
        layers.append(layer)
        parts = plan.split(front.free)
        waiting.extend((part, *_parted(front, part, alone=len(parts) == 1, layer=layer)) for part in parts)
    return layers


def _parted(front: Front, plan: Plan, *, alone: bool, layer: Layer) -> tuple[Front, list[Branch], Indices]:
    if alone:
        return front, layer.branches, np.arange(layer.states, dtype=np.int32)
    branch, state = front.part(plan)
    return branch, layer.branches, state
