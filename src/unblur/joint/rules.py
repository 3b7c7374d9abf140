"""The rules that a release implies about the cells of all classes: sets of atoms that hold at most so many records.

A set of atoms is the bits of one whole number, so that unions and inclusions are single operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unblur.attacking import Attack
from unblur.joint.atoms import Atoms, Ints
from unblur.lattice import State
from unblur.mechanisms import PaperInference, UsedStates
from unblur.release import EquivalenceClass

MOST_STEPS = 100_000_000
"""States times atoms; beyond, only states that were used, and those one layer finer, are asked about."""
MOST_STATES = 1_000_000
"""States that are listed; beyond, likewise."""


@dataclass(frozen=True)
class Rule:
    """Some atoms hold together at most so many records."""

    most: int
    atoms: int
    """A set, as bits."""


@dataclass(frozen=True)
class RuleBook:
    """Everything that a mechanism says about a release, rule by rule."""

    attack: Attack
    atoms: Atoms

    def own(self) -> Iterator[Rule]:
        """What each class's own problem says: no child reaches the bound."""
        blocks = self.atoms.blocks
        for owner, target in enumerate(self.atoms.subjects):
            problem = target.problem
            if not problem.constrained or problem.together or problem.bound is None:
                continue
            members = np.flatnonzero(self.atoms.owners == owner)
            for children in np.array([blocks[atom] for atom in members.tolist()]).T:
                for child in np.unique(children):
                    yield Rule(problem.bound - 1, _bits(members[children == child], len(blocks)))

    def shared(self) -> Iterator[Rule]:
        """What the states say about all classes that were there when they were tried."""
        if isinstance(self.attack.inference, PaperInference):
            for state in self.states:
                yield from self._groups(state, self._late(state), self.attack.release.config.k - 1)
        else:
            yield from self._of_used_states()

    def open(self) -> Iterator[Rule]:
        """What would also hold if tied states came in the order that says most; zero for cells of a tied class."""
        inference = self.attack.inference
        if not isinstance(inference, PaperInference):
            return
        for state in self.states:
            late = self._late(state)
            tied = [
                not after and each.subject.state != state and not inference.before(each.subject, _at(state))
                for each, after in zip(self.atoms.subjects, late, strict=True)
            ]
            if any(tied):
                with_tied = [a or b for a, b in zip(late, tied, strict=True)]
                yield from self._groups(state, with_tied, self.attack.release.config.k - 1)
                yield from self._taken(state, tied)

    @property
    def narrowed(self) -> bool:
        """Whether states were left out because they are too many."""
        states = self.attack.release.config.lattice.size
        return states > MOST_STATES or states * len(self.atoms.owners) > MOST_STEPS

    @property
    def states(self) -> Sequence[State]:
        """The states that are asked about, cheapest first."""
        lattice, layers = self.attack.release.config.lattice, self.atoms.layers
        top, used = lattice.top, {each.state for each in self.attack.release.classes}
        if self.narrowed:
            found = used | {finer for state in (*used, top) for finer in _one_finer(state)}
        else:
            found = set(lattice.states())
        inside = (state for state in found if all(layer in each for layer, each in zip(state, layers, strict=True)))
        return sorted((state for state in inside if state != top), key=lambda state: (lattice.key(state), state))

    def _late(self, state: State) -> list[bool]:
        before = self.attack.inference.before
        return [before(_at(state), each.subject) for each in self.atoms.subjects]

    def _of_used_states(self) -> Iterator[Rule]:
        release, inference, layers = self.attack.release, self.attack.inference, self.atoms.layers
        known = UsedStates(release).certain
        first = {each.state: each for each in reversed(release.classes)}
        for state, each in sorted(first.items()):
            if state not in known:
                continue
            late = [inference.before(each, other.subject) for other in self.atoms.subjects]
            if all(layer in kept for layer, kept in zip(state, layers, strict=True)):
                yield from self._groups(state, late, release.config.k - 1)
            if (bound := inference.bound(each)) is None:
                continue
            pairs = zip(late, self.atoms.subjects, strict=True)
            there = [after or other.subject.state == state for after, other in pairs]
            for finer in _one_finer(state):
                if all(layer in kept for layer, kept in zip(finer, layers, strict=True)):
                    yield from self._groups(finer, there, max(bound, release.config.k) - 1, classes=False)

    def _groups(self, state: State, there: Sequence[bool], most: int, *, classes: bool = True) -> Iterator[Rule]:
        """Of the classes that were there, no group of a state holds more; its own classes excepted."""
        members = np.flatnonzero(np.array(there, bool)[self.atoms.owners])
        codes = self.atoms.segments(state)[members]
        published = self._published(state) if classes else np.empty(0, np.int64)
        sizes = np.array([each.subject.size for each in self.atoms.subjects])
        order = np.argsort(codes, kind="stable")
        ends = np.flatnonzero(np.diff(codes[order])) + 1
        for group in np.split(members[order], ends) if len(members) else ():
            within = int(sizes[np.unique(self.atoms.owners[group])].sum())
            if within > most and self.atoms.segments(state)[group[0]] not in published:
                yield Rule(most, _bits(group, len(self.atoms.owners)))

    def _taken(self, state: State, tied: Sequence[bool]) -> Iterator[Rule]:
        members = np.array(tied, bool)[self.atoms.owners] & np.isin(self.atoms.segments(state), self._published(state))
        if members.any():
            yield Rule(0, _bits(np.flatnonzero(members), len(members)))

    def _published(self, state: State) -> Ints:
        """The segments of a state that are classes."""
        segments = [each.segment for each in self.attack.release.classes if each.state == state]
        if not segments:
            return np.empty(0, np.int64)
        return self.atoms.code(state, list(np.array(segments, np.int64).T))


def _at(state: State) -> EquivalenceClass:
    """A class of a state, wherever."""
    return EquivalenceClass(state, (0,) * len(state), 0)


def _one_finer(state: State) -> Iterator[State]:
    for attribute, layer in enumerate(state):
        yield (*state[:attribute], layer - 1, *state[attribute + 1 :])


def _bits(members: NDArray[np.int64], total: int) -> int:
    flags = np.zeros(total, bool)
    flags[members] = True
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")
