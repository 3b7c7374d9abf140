"""Exact numbers by filling one group after the other.

After some groups are filled, only a few sums matter for the rest: what is left of each open class, and how much room
each open limit has. Histories that agree on them are one *state*. Room that cannot be used up any more, given what the
classes may still add, counts as just enough. So states merge early, and their number stays small where the order of the
groups is good.

Where what is to come falls apart, each branch goes on alone, with the sums that matter to it: states that agree on
these are one state for the branch.

The states and the transitions between them are found once; they do not depend on what is counted. Numbers then flow
through the transitions: backwards for counts, and forwards again for odds and samples.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unblur.counting.deadline import check
from unblur.joint.plan import Addition, Line, Plan, Step, System, bits

Column = NDArray[Any]
"""Numbers of records, in as few bytes as the system allows."""
Ints = NDArray[np.int64]
Indices = NDArray[np.int32]

MOST_STATES = 8_000_000
MOST_MOVES = 150_000_000
"""How many states a step may have, and how many moves all steps together: memory stays below 4 GB."""
SMALL = 60
"""Twice as many records still fit in a byte."""
MOST_RECORDS = 400
"""Larger classes have too many ways to be shared out."""
_FURTHER = 4
"""A step may have so many times more moves than states before it is refused without trying."""

_SAME = np.zeros(1, np.int32)
_BITS = 63
"""Of a whole number, without its sign."""


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
    placed: Column
    """How many records a move places in the group."""
    left: Column
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


class _Front:
    """The states after some steps: a column of numbers for every open line."""

    def __init__(self, system: System) -> None:
        self._system = system
        largest = max([*system.sizes, *(most for most, _ in system.limits)])
        self._type: type[np.signedinteger[Any]] = np.int8 if largest <= SMALL else np.int16
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
        moved = _Moved(self._columns, source, placed)
        moved.place(step, self.free)
        for limit in _affected(step):
            if ("limit", limit) in self._columns and limit not in self.free:
                self._cut(limit, step, moved)
        closed = {("class", step.owner)} if step.last else set()
        closed |= {line for line in self._columns if line[0] == "limit" and line[1] not in step.rest}
        closed |= {("limit", limit) for limit in self.free}
        first, target = moved.merge([line for line in self._columns if line not in closed])
        moves = np.bincount(moved.source, minlength=self._states).astype(np.int32)
        source = moved.source[first]
        self._columns = {
            line: moved.changed[line][first] if line in moved.changed else column[source]
            for line, column in self._columns.items()
            if line not in closed
        }
        self._states = len(first)
        return Layer(step, moves, moved.placed, left, target, self._states)

    def _open(self, step: Step) -> None:
        if ("class", step.owner) not in self._columns:
            self._columns["class", step.owner] = np.full(self._states, self._system.sizes[step.owner], self._type)
        for limit in step.opens:
            if limit not in self.free:
                self._columns["limit", limit] = np.full(self._states, self._system.limits[limit][0], self._type)

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
        return source, (np.arange(len(source)) - np.repeat(starts, number)).astype(self._type)

    def _cut(self, limit: int, step: Step, moved: _Moved) -> None:
        """Cut the room of a limit to what can be used up; forget a limit that cannot be broken any more."""
        check()
        room, use = moved.value(("limit", limit)), self._usable(limit, step.rest[limit], moved)
        if (room >= use).all():
            self.free.add(limit)
        else:
            moved.changed["limit", limit] = np.minimum(room, use)

    def _usable(self, limit: int, additions: Sequence[Addition], moved: _Moved) -> Column:
        """How many records a limit may still be asked to take, after each move; what it cannot take is all the same.

        Limits that are no longer watched must not be relied on: they may be kept only because this one is.
        """
        use = np.zeros(len(moved.source), self._type)
        for each in additions:
            lines: list[tuple[Line, int]] = [(("class", each.owner), each.size)]
            lines += [(("limit", number), most) for number, most in each.around if number not in self.free]
            most = np.full(len(use), min(most for _, most in lines), self._type)
            for line, _ in lines:
                if line in self._columns:
                    np.minimum(most, moved.value(line), out=most)
            np.minimum(use + most, self._type(self._system.limits[limit][0] + 1), out=use)
        return use


class _Moved:
    """The lines after each of some moves; those that a step does not change are looked up when they are asked for."""

    def __init__(self, columns: Mapping[Line, Column], source: Ints, placed: Column) -> None:
        self._columns = columns
        self.source, self.placed = source, placed
        self.changed: dict[Line, Column] = {}
        self._same: dict[Line, Column] = {}

    def value(self, line: Line) -> Column:
        """The numbers of a line."""
        if line in self.changed:
            return self.changed[line]
        if line not in self._same:
            self._same[line] = self._columns[line][self.source]
        return self._same[line]

    def place(self, step: Step, free: Collection[int]) -> None:
        """Take the placed records from the class and the limits, and let limits take all that is left of the class."""
        for line in (("class", step.owner), *(("limit", limit) for limit in step.touches if limit not in free)):
            self.changed[line] = self._columns[line][self.source] - self.placed
        possible = np.ones(len(self.source), bool)
        for limit in step.charges:
            if limit not in free:
                room = self.value(("limit", limit)) - self.changed["class", step.owner]
                self.changed["limit", limit] = room
                possible &= room >= 0
        self._same.clear()
        if not possible.all():
            self.source, self.placed = self.source[possible], self.placed[possible]
            self.changed = {line: column[possible] for line, column in self.changed.items()}

    def merge(self, lines: Sequence[Line]) -> tuple[Ints, Indices]:
        """Find moves that lead to the same state, told by the given lines."""
        same = {line: self._columns[line] for line in lines if line not in self.changed}
        changed = {line: self.changed[line] for line in lines if line in self.changed}
        if not same:
            return _merge(changed, len(self.source))
        _, kind = _merge(same, len(next(iter(same.values()))))
        # The kind comes first: together with rows that are numbered anew it might not fit.
        return _merge({("kind", 0): kind[self.source], **changed}, len(self.source))


def _affected(step: Step) -> list[int]:
    """Open limits that a step has to do with: it takes from them, or from what may still be added to them."""
    changed = {*step.touches, *step.charges}
    return [
        limit
        for limit, additions in step.rest.items()
        if limit in changed
        or any(each.owner == step.owner or any(n in changed for n, _ in each.around) for each in additions)
    ]


def _merge(columns: Mapping[Line, NDArray[Any]], number: int) -> tuple[Ints, Indices]:
    """Find rows that agree: where each kind comes first, and of which kind each row is."""
    keys, width, most = np.zeros(number, np.int64), 0, _BITS - number.bit_length()
    for column in columns.values():
        check()
        more = int(column.max(initial=0)).bit_length()
        if width + more > most:
            # What is there is numbered anew, so that it needs fewer bits.
            keys = _kinds(keys)[1].astype(np.int64)
            width = int(keys.max(initial=0)).bit_length()
        keys <<= more
        keys |= column
        width += more
    check()
    return _kinds(keys)


def _kinds(keys: Ints) -> tuple[Ints, Indices]:
    """Number the different keys: where each comes first, and the number of each row's key.

    Keys are sorted with the row's number in their last bits: plain numbers are sorted many times faster than rows are
    put in order by them.
    """
    bits = len(keys).bit_length()
    rows = keys << bits
    rows |= np.arange(len(keys))
    rows.sort()
    order = rows & ((1 << bits) - 1)
    rows >>= bits
    new = np.zeros(len(keys), bool)
    np.not_equal(rows[1:], rows[:-1], out=new[1:])
    kind = np.empty(len(keys), np.int32)
    kind[order] = np.cumsum(new, dtype=np.int32)
    new[:1] = True
    return order[new], kind
