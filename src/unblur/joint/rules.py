"""The rules that a release implies about the cells of all classes: sets of atoms that hold at most so many records.

A set of atoms is the bits of one whole number, so that unions and inclusions are single operations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from unblur.attacking import Attack
from unblur.joint.atoms import Atoms, Ints
from unblur.lattice import State
from unblur.mechanisms import NoInference, PaperInference, UsedStates
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
                yield from self._groups(state, self._late(_at(state)), self.attack.release.config.k - 1)
        else:
            yield from self._of_used_states()

    @cached_property
    def used(self) -> Mapping[State, EquivalenceClass]:
        """The states that were surely used, each with a class of it; none if they need not have been steps."""
        release = self.attack.release
        if isinstance(self.attack.inference, NoInference):
            return {}
        first = {each.state: each for each in reversed(release.classes)}
        known = first if isinstance(self.attack.inference, PaperInference) else UsedStates(release).certain
        return {state: each for state, each in sorted(first.items()) if state in known and self._asked(state)}

    def rivals(self, state: State) -> list[State]:
        """The used states of which it is open whether they came before or after."""
        before, each = self.attack.inference.before, self.used[state]
        return [
            rival
            for rival, other in self.used.items()
            if rival != state and not before(each, other) and not before(other, each)
        ]

    def of_ties(self) -> Iterator[Rule]:
        """What would hold if the third criterion had no choice: no state, used or not, could come before its rivals."""
        inference = self.attack.inference
        if not isinstance(inference, PaperInference):
            return
        for state in self.states:
            late, here = self._late(_at(state)), _at(state)
            tied = [
                not after and each.subject.state != state and not inference.before(each.subject, here)
                for each, after in zip(self.atoms.subjects, late, strict=True)
            ]
            if any(tied):
                there = [a or b for a, b in zip(late, tied, strict=True)]
                yield from self._groups(state, there, self.attack.release.config.k - 1)
                yield from self._taken(state, tied)

    def if_before(self, state: State, rivals: Collection[State]) -> Iterator[Rule]:
        """What would hold if a used state came before some rivals."""
        there = [each.subject.state in rivals and self._has_one_state(each.subject) for each in self.atoms.subjects]
        late = [a or b for a, b in zip(self._late(self.used[state]), there, strict=True)]
        yield from self._groups(state, late, self.attack.release.config.k - 1)
        yield from self._taken(state, there)

    def _has_one_state(self, subject: EquivalenceClass) -> bool:
        return isinstance(self.attack.inference, PaperInference) or len(self._states.states(subject)) == 1

    @cached_property
    def _states(self) -> UsedStates:
        return UsedStates(self.attack.release)

    @property
    def narrowed(self) -> bool:
        """Whether states were left out because they are too many."""
        states = self.attack.release.config.lattice.size
        return states > MOST_STATES or states * len(self.atoms.owners) > MOST_STEPS

    @property
    def states(self) -> Sequence[State]:
        """The states that are asked about, cheapest first."""
        lattice = self.attack.release.config.lattice
        top, used = lattice.top, {each.state for each in self.attack.release.classes}
        if self.narrowed:
            found = used | {finer for state in (*used, top) for finer in _one_finer(state)}
        else:
            found = set(lattice.states())
        inside = (state for state in found if state != top and self._asked(state))
        return sorted(inside, key=lambda state: (lattice.key(state), state))

    def _asked(self, state: State) -> bool:
        return all(layer in kept for layer, kept in zip(state, self.atoms.layers, strict=True))

    def _late(self, each: EquivalenceClass) -> list[bool]:
        """The subjects that surely came after a class."""
        return [self.attack.inference.before(each, other.subject) for other in self.atoms.subjects]

    def _of_used_states(self) -> Iterator[Rule]:
        release, inference = self.attack.release, self.attack.inference
        first = {each.state: each for each in reversed(release.classes)}
        for state, each in sorted(first.items()):
            if state not in self._states.certain:
                continue
            late = self._late(each)
            if self._asked(state):
                yield from self._groups(state, late, release.config.k - 1)
            if (bound := inference.bound(each)) is None:
                continue
            pairs = zip(late, self.atoms.subjects, strict=True)
            there = [after or other.subject.state == state for after, other in pairs]
            for finer in _one_finer(state):
                if self._asked(finer):
                    yield from self._groups(finer, there, max(bound, release.config.k) - 1, classes=False)

    def _groups(self, state: State, there: Sequence[bool], most: int, *, classes: bool = True) -> Iterator[Rule]:
        """Of the classes that were there, no group of a state holds more; its own classes excepted."""
        members = np.flatnonzero(np.array(there, bool)[self.atoms.owners])
        codes = self.atoms.segments(state)[members]
        published = self._published(state, self.attack.release.classes) if classes else np.empty(0, np.int64)
        sizes = np.array([each.subject.size for each in self.atoms.subjects])
        order = np.argsort(codes, kind="stable")
        ends = np.flatnonzero(np.diff(codes[order])) + 1
        for group in np.split(members[order], ends) if len(members) else ():
            within = int(sizes[np.unique(self.atoms.owners[group])].sum())
            if within > most and self.atoms.segments(state)[group[0]] not in published:
                yield Rule(most, _bits(group, len(self.atoms.owners)))

    def _taken(self, state: State, tied: Sequence[bool]) -> Iterator[Rule]:
        """Nobody of later classes is in a class of the state."""
        taken = self._published(state, [each for each in self.attack.release.classes if self._has_one_state(each)])
        members = np.array(tied, bool)[self.atoms.owners] & np.isin(self.atoms.segments(state), taken)
        if members.any():
            yield Rule(0, _bits(np.flatnonzero(members), len(members)))

    def _published(self, state: State, classes: Sequence[EquivalenceClass]) -> Ints:
        """The segments of a state that are among the classes."""
        segments = [each.segment for each in classes if each.state == state]
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
