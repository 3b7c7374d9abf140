"""Exact numbers by filling one group after the other.

After some groups are filled, only a few sums matter for the rest: what is left of each open class, and how much room
each open limit has. Histories that agree on them are one *state*. Room that cannot be used up any more, given what the
classes may still add, counts as just enough. So states merge early, and their number stays small where the order of the
groups is good.

The states and the transitions between them are found once; they do not depend on what is counted. Numbers then flow
through the transitions: forwards for counts, and backwards for odds and samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unblur.counting.deadline import check
from unblur.joint.plan import Addition, Line, Step, System, plan

Column = NDArray[np.int16]
Ints = NDArray[np.int64]

MOST_STATES = 4_000_000
MOST_MOVES = 40_000_000
"""How many states a step may have, and how many moves all steps together: memory stays below 2 GB."""
MOST_RECORDS = 400
"""Larger classes have too many ways to be shared out."""
_FURTHER = 16
"""A step may have so many times more moves than states before it is refused without trying."""


class OutOfReach(Exception):
    """The exact engine would need more memory or time than it may use; an estimate has to do."""


@dataclass(frozen=True)
class Layer:
    """The moves of one step, sorted by the state they lead to."""

    step: Step
    source: NDArray[np.int32]
    """The state that each move starts from."""
    placed: NDArray[np.int16]
    """How many records it places in the group."""
    left: NDArray[np.int16]
    """How many records of the class were to be placed before."""
    first: Ints
    """Where the moves to each state begin."""

    @property
    def states(self) -> int:
        return len(self.first)


def explore(
    system: System, order: Sequence[int], *, most_states: int = MOST_STATES, most_moves: int = MOST_MOVES
) -> list[Layer]:
    """Find all states and moves; the last layer has one state, or none if nothing is feasible."""
    if max(system.sizes) > MOST_RECORDS:
        raise OutOfReach(f"a class of {max(system.sizes):,} records")
    front = _Front(system)
    layers: list[Layer] = []
    moves = 0
    for step in plan(system, order):
        check()
        layer = front.advance(step, most_states)
        moves += len(layer.source)
        if layer.states > most_states or moves > most_moves:
            raise OutOfReach(f"more than {most_states:,} states or {most_moves:,} moves")
        layers.append(layer)
    return layers


class _Front:
    """The states after some steps: a column of numbers for every open line."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._columns: dict[Line, Column] = {}
        self._states = 1
        self._free: set[int] = set()
        """Limits that cannot be broken any more."""
        rng = np.random.default_rng(0)
        lines: list[Line] = [("class", owner) for owner in range(len(system.sizes))]
        lines += [("limit", number) for number in range(len(system.limits))]
        self._salt = {line: np.uint64(int(rng.integers(2**62)) * 2 + 1) for line in lines}

    def advance(self, step: Step, most_states: int) -> Layer:
        """Fill a group."""
        self._open(step)
        source, placed = self._moves(step, most_states)
        left = self._columns["class", step.owner][source]
        self._columns = {line: column[source] for line, column in self._columns.items()}
        self._place(step, placed)
        possible = self._charge(step)
        if not possible.all():
            source, placed, left = source[possible], placed[possible], left[possible]
            self._columns = {line: column[possible] for line, column in self._columns.items()}
        self._states = len(source)
        self._close(step)
        order, first = self._merge()
        self._columns = {line: column[order[first]] for line, column in self._columns.items()}
        self._states = len(first)
        return Layer(step, source[order].astype(np.int32), placed[order], left[order], first)

    def _open(self, step: Step) -> None:
        if ("class", step.owner) not in self._columns:
            self._columns["class", step.owner] = np.full(self._states, self._system.sizes[step.owner], np.int16)
        for limit in step.opens:
            if limit not in self._free:
                self._columns["limit", limit] = np.full(self._states, self._system.limits[limit][0], np.int16)

    def _moves(self, step: Step, most_states: int) -> tuple[Ints, Column]:
        """All ways to place records of the class in the group."""
        left = self._columns["class", step.owner]
        room = left.copy()
        for limit in step.touches:
            if limit not in self._free:
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
            if limit not in self._free:
                self._columns["limit", limit] = self._columns["limit", limit] - placed

    def _charge(self, step: Step) -> NDArray[np.bool_]:
        """Let limits take all that is left of the class."""
        left = self._columns["class", step.owner]
        possible = np.ones(len(left), bool)
        for limit in step.charges:
            if limit not in self._free:
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
                self._free.add(line[1])
            else:
                self._columns[line] = np.minimum(self._columns[line], use)

    def _usable(self, additions: Sequence[Addition]) -> Column:
        """How many records a limit may still be asked to take, in each state.

        Limits that are no longer watched must not be relied on: they may be kept only because this one is.
        """
        use = np.zeros(self._states, np.int16)
        for each in additions:
            lines: list[tuple[Line, int]] = [(("class", each.owner), each.size)]
            lines += [(("limit", number), most) for number, most in each.around if number not in self._free]
            most = np.full(self._states, min(most for _, most in lines), np.int16)
            for line, _ in lines:
                if line in self._columns:
                    np.minimum(most, self._columns[line], out=most)
            use += most
        return use

    def _merge(self) -> tuple[Ints, Ints]:
        """Sort the moves by the state that they lead to; tell where each state begins."""
        keys = np.zeros(self._states, np.uint64)
        for line, column in self._columns.items():
            keys += column.astype(np.uint64) * self._salt[line]
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        new = np.ones(self._states, bool)
        new[1:] = keys[1:] != keys[:-1]
        for column in self._columns.values():
            # Equal keys are taken for equal states, so make sure that they are.
            sorted_column = column[order]
            if not (new[1:] | (sorted_column[1:] == sorted_column[:-1])).all():
                raise AssertionError("two states share a key")
        return order, np.flatnonzero(new)
