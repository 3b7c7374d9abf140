"""The states after some steps, and the moves of one step more.

After some groups are filled, only a few sums matter for the rest: what is left of each open class, and how much room
each open limit has. Histories that agree on them are one *state*. Room that cannot be used up any more, given what the
classes may still add, counts as just enough. So states merge early.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unblur.counting.deadline import check
from unblur.joint.folding import MOST_MIRRORS, Mirror, mirrors
from unblur.joint.merging import Indices, Ints, merge
from unblur.joint.plan import Addition, Line, Plan, Step, System

Column = NDArray[Any]
"""Numbers of records, in as few bytes as the system allows."""

SMALL = 60
"""Twice as many records still fit in a byte."""

Codes = NDArray[np.uint8]
"""Sets of mirrors, as bits."""


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
    mirrors: Sequence[Mirror] = ()
    mirrored: Codes | None = None
    """For each move, the mirrors that its state was put in order with, as bits; None if there was no need to."""
    even: Codes | None = None
    """For each state that moves lead to, the mirrors whose limits have the same room, as bits; None if none have."""
    branches: list[Branch] = field(default_factory=list)


class Front:
    """The states after some steps: a column of numbers for every open line."""

    def __init__(self, system: System) -> None:
        self._system = system
        largest = max([*system.sizes, *(most for most, _ in system.limits)])
        self._type: type[np.signedinteger[Any]] = np.int8 if largest <= SMALL else np.int16
        self._columns: dict[Line, Column] = {}
        self.states = 1
        self.free: set[int] = set()
        """Limits that cannot be broken any more."""

    def part(self, plan: Plan) -> tuple[Front, Indices]:
        """Keep what matters to a part of what is to come; also tell which state each state becomes."""
        found = Front(self._system)
        lines = [("class", owner) for owner in plan.later] + [("limit", limit) for limit in plan.adding]
        columns = {line: self._columns[line] for line in lines if line in self._columns}
        first, state = merge(columns.values(), self.states)
        found._columns = {line: column[first] for line, column in columns.items()}
        found.states, found.free = len(first), set(self.free)
        return found, state

    def copy(self, rows: Ints | None = None) -> Front:
        """Copy all states, or some of them."""
        found = Front(self._system)
        found._columns = {line: column if rows is None else column[rows] for line, column in self._columns.items()}
        found.states, found.free = self.states if rows is None else len(rows), set(self.free)
        return found

    def apart(self, changing: Collection[Line]) -> Indices:
        """Number what states hold in all but some lines: only mirror images that differ in it become the same."""
        return merge([column for line, column in self._columns.items() if line not in changing], self.states)[1]

    def fill(self, plan: Plan, group: int, most_moves: float = inf) -> Layer:
        """Fill a group; of states that are mirror images of each other, go on with one."""
        step = plan.step(group)
        return self._advance(step, mirrors(plan, self.free), most_moves)

    def _advance(self, step: Step, alike: Sequence[Mirror], most_moves: float) -> Layer:
        self._open(step)
        left = self._columns["class", step.owner]
        source, placed = self._moves(step, most_moves)
        moved = _Moved(self._columns, source, placed)
        moved.place(step, self.free)
        for limit in _affected(step):
            if ("limit", limit) in self._columns and limit not in self.free:
                self._cut(limit, step, moved)
        closed = {("class", step.owner)} if step.last else set()
        closed |= {line for line in self._columns if line[0] == "limit" and line[1] not in step.rest}
        closed |= {("limit", limit) for limit in self.free}
        open_mirrors = [each for each in alike if closed.isdisjoint(each.lines)][:MOST_MIRRORS]
        mirrored = moved.ordered(open_mirrors)
        first, target = moved.merged([line for line in self._columns if line not in closed])
        moves = np.bincount(moved.source, minlength=self.states).astype(np.int32)
        source = moved.source[first]
        self._columns = {
            line: moved.changed[line][first] if line in moved.changed else column[source]
            for line, column in self._columns.items()
            if line not in closed
        }
        self.states = len(first)
        even = None if mirrored is None else self._even(open_mirrors)
        return Layer(step, moves, moved.placed, left, target, self.states, open_mirrors, mirrored, even)

    def _even(self, alike: Sequence[Mirror]) -> Codes | None:
        found = np.zeros(self.states, np.uint8)
        for place, (first, second) in enumerate(each.lines for each in alike):
            found |= (self._columns[first] == self._columns[second]).astype(np.uint8) << np.uint8(place)
        return found if found.any() else None

    def _open(self, step: Step) -> None:
        if ("class", step.owner) not in self._columns:
            self._columns["class", step.owner] = np.full(self.states, self._system.sizes[step.owner], self._type)
        for limit in step.opens:
            if limit not in self.free:
                self._columns["limit", limit] = np.full(self.states, self._system.limits[limit][0], self._type)

    def _moves(self, step: Step, most_moves: float) -> tuple[Ints, Column]:
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
        if int(number.sum()) > most_moves:
            raise OutOfReach(f"more than {most_moves:,} moves in a step")
        source = np.repeat(np.arange(self.states), number)
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

    def ordered(self, alike: Sequence[Mirror]) -> Codes | None:
        """Give the first limit of each mirror the smaller room; tell for each move which mirrors were used for that."""
        used: Codes | None = None
        for place, (first, second) in enumerate(each.lines for each in alike):
            if not {first, second} & self.changed.keys() and (self._columns[first] <= self._columns[second]).all():
                continue
            here, there = self.value(first), self.value(second)
            larger = here > there
            if larger.any():
                self.changed[first], self.changed[second] = np.minimum(here, there), np.maximum(here, there)
                used = np.zeros(len(larger), np.uint8) if used is None else used
                used |= larger.astype(np.uint8) << np.uint8(place)
        return used

    def merged(self, lines: Sequence[Line]) -> tuple[Ints, Indices]:
        """Find moves that lead to the same state, told by the given lines."""
        same = {line: self._columns[line] for line in lines if line not in self.changed}
        changed = {line: self.changed[line] for line in lines if line in self.changed}
        if not same:
            return merge(changed.values(), len(self.source))
        _, kind = merge(same.values(), len(next(iter(same.values()))))
        # The kind comes first: together with rows that are numbered anew it might not fit.
        return merge([kind[self.source], *changed.values()], len(self.source))


def _affected(step: Step) -> list[int]:
    """Open limits that a step has to do with: it takes from them, or from what may still be added to them."""
    changed = {*step.touches, *step.charges}
    return [
        limit
        for limit, additions in step.rest.items()
        if limit in changed
        or any(each.owner == step.owner or any(n in changed for n, _ in each.around) for each in additions)
    ]
