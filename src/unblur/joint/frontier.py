"""Exact numbers by filling one group after the other.

After some groups are filled, only a few sums matter for the rest: what is left of each open class, and how much room
each open limit has. Histories that agree on them are one *state*. Room that cannot be used up any more, given what the
classes may still add, counts as just enough. So states merge early, and their number stays small where the order of the
groups is good.

Where what is to come falls apart, each branch goes on alone, with the sums that matter to it: states that agree on these
are one state for the branch.

The states and the transitions between them are found once; they do not depend on what is counted. Numbers then flow
through the transitions: backwards for counts, and forwards again for odds and samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unblur.counting.deadline import check
from unblur.joint.plan import Addition, Line, Plan, Step, System

Column = NDArray[np.int16]
Ints = NDArray[np.int64]
Indices = NDArray[np.int32]

MOST_STATES = 4_000_000
MOST_MOVES = 60_000_000
"""How many states a step may have, and how many moves all steps together: memory stays below 2 GB."""
MOST_RECORDS = 400
"""Larger classes have too many ways to be shared out."""
_FURTHER = 8
"""A step may have so many times more moves than states before it is refused without trying."""

_SALTS = np.random.default_rng(0).integers(2**62, size=10_000, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
_SAME = np.zeros(1, np.int32)


class OutOfReach(Exception):
    """The exact engine would need more memory or time than it may use; an estimate has to do."""


@dataclass(frozen=True)
class Branch:
    """What follows a step, or a part of it that has nothing to do with the others."""

    layer: int
    """The place of the next layer."""
    state: Indices
    """For each state that the step leads to, the state that the next layer starts from."""


@dataclass(frozen=True)
class Layer:
    """The moves of one step, in the order of the states that they start from."""

    step: Step
    moves: Indices
    """How many moves each state has."""
    placed: NDArray[np.int16]
    """How many records a move places in the group."""
    left: NDArray[np.int16]
    """How many records of the class each state had to place before."""
    target: Indices
    """The state that a move leads to."""
    states: int
    """The number of states that moves lead to."""
    branches: list[Branch] = field(default_factory=list)

    @property
    def source(self) -> Ints:
        """The state that each move starts from."""
        return np.repeat(np.arange(len(self.moves)), self.moves)


def explore(
    system: System, order: Sequence[int], *, most_states: int = MOST_STATES, most_moves: int = MOST_MOVES
) -> list[Layer]:
    """Find all states and moves; a layer comes before those that it leads to. Layers that none leads to have one state.

    Of what is to come, the group that is first in the order is filled next.
    """
    if max(system.sizes) > MOST_RECORDS:
        raise OutOfReach(f"a class of {max(system.sizes):,} records")
    rank = {group: place for place, group in enumerate(order)}
    layers: list[Layer] = []
    waiting: list[tuple[Plan, _Front, list[Branch] | None, Indices]]
    waiting = [(plan, _Front(system), None, _SAME) for plan in Plan.of(system).split(())]
    moves = 0
    while waiting:
        check()
        plan, front, before, state = waiting.pop()
        if before is not None:
            before.append(Branch(len(layers), state))
        layer = front.advance(plan.step(min(bits(plan.groups), key=rank.__getitem__)), most_states)
        moves += len(layer.target)
        if layer.states > most_states or moves > most_moves:
            raise OutOfReach(f"more than {most_states:,} states or {most_moves:,} moves")
        layers.append(layer)
        parts = plan.split(front.free)
        waiting.extend((part, *_parted(front, part, alone=len(parts) == 1, layer=layer)) for part in parts)
    return layers


def _parted(front: _Front, plan: Plan, *, alone: bool, layer: Layer) -> tuple[_Front, list[Branch], Indices]:
    if alone:
        return front, layer.branches, np.arange(layer.states, dtype=np.int32)
    branch, state = front.part(plan)
    return branch, layer.branches, state


def bits(number: int) -> Iterator[int]:
    """List the places of the bits that are set."""
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


class _Front:
    """The states after some steps: a column of numbers for every open line."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._columns: dict[Line, Column] = {}
        self._states = 1
        self.free: set[int] = set()
        """Limits that cannot be broken any more."""

    def part(self, plan: Plan) -> tuple[_Front, Indices]:
        """Keep what matters to a part of what is to come; also tell which state each state becomes."""
        found = _Front(self._system)
        lines = [("class", owner) for owner in plan.later] + [("limit", limit) for limit in plan.adding]
        columns = {line: self._columns[line] for line in lines if line in self._columns}
        first, state = _merge(columns, self._states)
        found._columns = {line: column[first] for line, column in columns.items()}
        found._states, found.free = len(first), set(self.free)
        return found, state

    def advance(self, step: Step, most_states: int) -> Layer:
        """Fill a group."""
        self._open(step)
        left = self._columns["class", step.owner]
        source, placed = self._moves(step, most_states)
        starts = self._states
        self._take(source)
        self._place(step, placed)
        possible = self._charge(step)
        if not possible.all():
            source, placed = source[possible], placed[possible]
            self._take(possible)
        self._states = len(source)
        self._close(step)
        first, target = _merge(self._columns, self._states)
        self._take(first)
        self._states = len(first)
        moves = np.bincount(source, minlength=starts).astype(np.int32)
        return Layer(step, moves, placed, left, target, self._states)

    def _take(self, chosen: NDArray[Any]) -> None:
        self._columns = {line: column[chosen] for line, column in self._columns.items()}

    def _open(self, step: Step) -> None:
        if ("class", step.owner) not in self._columns:
            self._columns["class", step.owner] = np.full(self._states, self._system.sizes[step.owner], np.int16)
        for limit in step.opens:
            if limit not in self.free:
                self._columns["limit", limit] = np.full(self._states, self._system.limits[limit][0], np.int16)

    def _moves(self, step: Step, most_states: int) -> tuple[Ints, Column]:
        """All ways to place records of the class in the group."""
        left = self._columns["class", step.owner]
        room = left.copy()
        for limit in step.touches:
            if limit not in self.free:
                np.minimum(room, self._columns["limit", limit], out=room)
        if step.last:
            source = np.flatnonzero(room >= left)
            return source, left[source]
        number = room.astype(np.int64) + 1
        if int(number.sum()) > most_states * _FURTHER:
            raise OutOfReach(f"more than {most_states * _FURTHER:,} moves in a step")
        source = np.repeat(np.arange(self._states), number)
        starts = np.cumsum(number) - number
        return source, (np.arange(len(source)) - np.repeat(starts, number)).astype(np.int16)

    def _place(self, step: Step, placed: Column) -> None:
        self._columns["class", step.owner] = self._columns["class", step.owner] - placed
        for limit in step.touches:
            if limit not in self.free:
                self._columns["limit", limit] = self._columns["limit", limit] - placed

    def _charge(self, step: Step) -> NDArray[np.bool_]:
        """Let limits take all that is left of the class."""
        left = self._columns["class", step.owner]
        possible = np.ones(len(left), bool)
        for limit in step.charges:
            if limit not in self.free:
                self._columns["limit", limit] = self._columns["limit", limit] - left
                possible &= self._columns["limit", limit] >= 0
        return possible

    def _close(self, step: Step) -> None:
        """Drop the lines that are done with, and cut room to what can be used up."""
        if step.last:
            del self._columns["class", step.owner]
        limits = [each for each in self._columns if each[0] == "limit"]
        for line in limits:
            if line[1] not in step.rest:
                del self._columns[line]
        for line in limits:
            if line not in self._columns:
                continue
            use = self._usable(step.rest[line[1]])
            if (self._columns[line] >= use).all():
                del self._columns[line]
                self.free.add(line[1])
            else:
                self._columns[line] = np.minimum(self._columns[line], use)

    def _usable(self, additions: Sequence[Addition]) -> Column:
        """How many records a limit may still be asked to take, in each state.

        Limits that are no longer watched must not be relied on: they may be kept only because this one is.
        """
        use = np.zeros(self._states, np.int16)
        for each in additions:
            lines: list[tuple[Line, int]] = [(("class", each.owner), each.size)]
            lines += [(("limit", number), most) for number, most in each.around if number not in self.free]
            most = np.full(self._states, min(most for _, most in lines), np.int16)
            for line, _ in lines:
                if line in self._columns:
                    np.minimum(most, self._columns[line], out=most)
            use += most
        return use


def _merge(columns: Mapping[Line, Column], number: int) -> tuple[Ints, Indices]:
    """Find rows that agree: where each kind comes first, and of which kind each row is."""
    check()
    keys = np.zeros(number, np.uint64)
    for place, column in enumerate(columns.values()):
        keys += column.astype(np.uint64) * _SALTS[place]
    _, first, kind = np.unique(keys, return_index=True, return_inverse=True)
    for column in columns.values():
        # Equal keys are taken for equal states, so make sure that they are.
        if not (column == column[first][kind]).all():
            raise AssertionError("two states share a key")
    return first, kind.astype(np.int32)
