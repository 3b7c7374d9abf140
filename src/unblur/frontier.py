"""Which states would make a class: what is known, and what has to be looked at.

Coarser states have larger groups, and records only ever go. So a state that fails, fails for good, with every finer
one. And a state is used only for groups that it fits: a group that would stay together under a finer state was released
there, because that comes first. Hence a look at a state that has a few groups of k, all of which would fall apart
without any of their cells, says everything about all finer states too: only those that fit a group can ever be used.

So a state in question is raised, layer by layer, as long as its groups are few and so simple. Then all states below it
are crossed out, but for those that fit its groups.
"""

from __future__ import annotations

from collections.abc import Callable

from unblur.lattice import Lattice, State
from unblur.remaining import FAILURE, Group, Look
from unblur.walk import Walk

MOST_REFUSALS = 8192
"""How many refusals are kept at most; when they are too many, the older half is forgotten."""


class Frontier:
    """The border between the states that fail and those that do not, as far as it is known."""

    def __init__(
        self, lattice: Lattice, walk: Walk, look: Callable[[State], Look], holds: Callable[[Group], bool]
    ) -> None:
        """Ask `look` about a state, and whether a group still `holds` all its cells."""
        self._walk, self._look, self._holds, self._top = walk, look, holds, lattice.top
        self._refusals = _Refusals(lattice.top, holds)
        self._fitted: dict[State, list[Group]] = {}
        self._tidy_at = 10_000

    def reaches(self, state: State) -> bool:
        """Whether a state, the next of the walk or one tied with it, succeeds; if not, cross out what fails with it."""
        if state in self._fitted:
            return any(map(self._holds, self._fitted[state]))
        if self._refusals.answer(state):
            return True
        if self._walk.is_crossed_out(state):
            return False
        found = self._look(state)
        if not found.groups:
            self._raise(state)
        elif found.is_closed:
            self._fitted[state] = list(found.groups)
        else:
            self._refusals.add(found.groups[0])
        return bool(found.groups)

    def _raise(self, state: State) -> None:
        """Go up from a state that fails as long as the groups are few and simple, all attributes in turn."""
        layers, groups = list(state), FAILURE.groups
        rising = [i for i, most in enumerate(self._top) if layers[i] < most]
        while rising:
            for i in rising.copy():
                layers[i] += 1
                found = self._closed(tuple(layers))
                if found is None:
                    layers[i] -= 1
                else:
                    groups = found.groups
                if found is None or layers[i] == self._top[i]:
                    rising.remove(i)
        for group in groups:
            self._fitted.setdefault(group.state, []).append(group)
        self._walk.cross_out(tuple(layers), but=[group.state for group in groups])
        self._tidy()

    def _closed(self, state: State) -> Look | None:
        """Look at a state, unless it is known to have too much to see."""
        if self._refusals.answer(state):
            return None
        found = self._look(state)
        if not found.is_closed:
            self._refusals.add(found.groups[0])
            return None
        return found

    def _tidy(self) -> None:
        """Forget the groups of states that were crossed out since, once they are many."""
        if len(self._fitted) > self._tidy_at:
            left = ((state, groups) for state, groups in self._fitted.items() if any(map(self._holds, groups)))
            self._fitted = dict(left)
            self._tidy_at = 2 * len(self._fitted) + 10_000


class _Refusals:
    """Groups that are too much to be listed, found by the states they belong to."""

    def __init__(self, top: State, holds: Callable[[Group], bool]) -> None:
        self._top, self._holds = top, holds
        self._forget_all()

    def _forget_all(self) -> None:
        self._groups: list[Group] = []
        self._valid = 0
        # Sets of groups, a bit each: per attribute and layer, those that answer for states with this layer.
        self._of_layer = [[0] * (most + 1) for most in self._top]

    def add(self, group: Group) -> None:
        if len(self._groups) == MOST_REFUSALS:
            kept = [each for each in self._groups[MOST_REFUSALS // 2 :] if self._holds(each)]
            self._forget_all()
            for each in kept:
                self.add(each)
        bit = 1 << len(self._groups)
        self._groups.append(group)
        self._valid |= bit
        for row, layer in zip(self._of_layer, group.state, strict=True):
            for above in range(layer, len(row)):
                row[above] |= bit

    def answer(self, state: State) -> bool:
        """Whether a group that still holds answers for a state."""
        found = self._valid
        for row, layer in zip(self._of_layer, state, strict=True):
            found &= row[layer]
            if not found:
                return False
        while found:
            latest = found.bit_length() - 1
            if self._holds(self._groups[latest]):
                return True
            found ^= 1 << latest
            self._valid ^= 1 << latest
        return False
