"""How a release was made, as far as an attacker may rely on it.

A mechanism gives two things, and everything that is inferred rests on them alone:

- a *certain order*: `before(first, second)` says that a class was surely made before another, so that nobody of the
  later one can be in a cell of the earlier;
- a *bound*: in each attribute, those children of a class's node that hold k records or more hold together fewer records
  than this; None if nothing is known. With a bound of k, no child holds k.

Where the order of two classes is open, nothing follows from their overlap.

What each mechanism assumes, and why its order and bound follow, is said at its class. ARX has a module of its own.

A label may stand on two layers (a node with a single child). Then the state of its class is not certain: between its
*finest* and its *coarsest* reading everything is possible, and an order or a bound must hold for all of them. Under
`paper` the finest is certain, because it comes first and would have taken all the records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Literal, Protocol

from unblur.lattice import Lattice, State
from unblur.release import EquivalenceClass, Release

Order = Literal["sound", "paper"]
"""What to make of states that tie on loss, c1 and c2: their order is open, or that of the lattice."""


class Inference(Protocol):
    """What may be inferred from a release."""

    def before(self, first: EquivalenceClass, second: EquivalenceClass) -> bool:
        """Whether a class was surely made before another; the outliers come as a class of the top state."""
        ...

    def bound(self, each: EquivalenceClass) -> int | None:
        """The number that children of k records or more do not reach together in a class."""
        ...

    def misfits(self) -> Iterator[str]:
        """Say, a sentence each, why the release as a whole was not made by this mechanism."""
        ...


@dataclass(frozen=True)
class NoInference:
    """Nothing is known."""

    def before(self, first: EquivalenceClass, second: EquivalenceClass) -> bool:
        return False

    def bound(self, each: EquivalenceClass) -> int | None:
        return None

    def misfits(self) -> Iterator[str]:
        return iter(())


@dataclass(frozen=True)
class PaperInference:
    """The algorithm of the paper: states in the order of loss, c1 and c2; every step makes all classes it can."""

    lattice: Lattice
    k: int
    order: Order = "sound"

    def before(self, first: EquivalenceClass, second: EquivalenceClass) -> bool:
        return self._key(first.state) < self._key(second.state)

    def bound(self, each: EquivalenceClass) -> int | None:
        return self.k

    def misfits(self) -> Iterator[str]:
        return iter(())

    def _key(self, state: State) -> tuple[object, ...]:
        if state not in self._keys:
            key = self.lattice.key(state)
            self._keys[state] = (*key, state) if self.order == "paper" else key
        return self._keys[state]

    @cached_property
    def _keys(self) -> dict[State, tuple[object, ...]]:
        return {}


@dataclass(frozen=True)
class IterativeInference:
    """Each step applies one state to what remains, and releases every group of k or more.

    So a state that is finer than another in some attribute, and coarser in none, comes first: after the coarser one no
    group of k was left under it. How the steps are chosen does not matter, and nothing bounds the children.
    """

    lattice: Lattice

    def before(self, first: EquivalenceClass, second: EquivalenceClass) -> bool:
        return is_finer(self.coarsest(first), second.state)

    def bound(self, each: EquivalenceClass) -> int | None:
        return None

    def misfits(self) -> Iterator[str]:
        return iter(())

    def coarsest(self, each: EquivalenceClass) -> State:
        """The coarsest state that a class may have: up the layers on which its labels stand, too."""
        key = (each.state, each.segment)
        if key not in self._coarsest:
            nodes = zip(self.lattice.hierarchies, each.state, each.segment, strict=True)
            self._coarsest[key] = tuple(tree.highest(layer, rank) for tree, layer, rank in nodes)
        return self._coarsest[key]

    @cached_property
    def _coarsest(self) -> dict[tuple[State, State], State]:
        return {}


def is_finer(first: State, second: State) -> bool:
    """Whether a state is finer than another in some attribute, and coarser in none."""
    return first != second and all(a <= b for a, b in zip(first, second, strict=True))


@dataclass(frozen=True)
class GreedyInference:
    """Also: the cheapest usable state is taken, and usable is what covers enough of the remaining records.

    The loss never falls with generalization. So a finer state was cheaper and not usable: it covered less than was
    required, and that is at most what the state itself carries.
    """

    release: Release
    constant: bool = False
    """Whether every step but the first and the last requires the same number of records."""

    def before(self, first: EquivalenceClass, second: EquivalenceClass) -> bool:
        return self._order.before(first, second)

    def bound(self, each: EquivalenceClass) -> int | None:
        states = self.used.states(each)
        return max(self.release.config.k, max(self._required(state) for state in states))

    def misfits(self) -> Iterator[str]:
        return iter(())

    def _required(self, state: State) -> int:
        carried = self.used.carried[state]
        if self.constant and self.used.is_inner(state) and self._least is not None:
            return min(carried, self._least)
        return carried

    @cached_property
    def _least(self) -> int | None:
        """The requirement is at most this: what inner states carry, and the third smallest of all."""
        certain = self.used.certain
        inner = [self.used.carried[state] for state in certain if self.used.is_inner(state)]
        third = sorted(self.used.carried[state] for state in certain)[2:3]
        return min([*inner, *third], default=None)

    @cached_property
    def used(self) -> UsedStates:
        return UsedStates(self.release)

    @cached_property
    def _order(self) -> IterativeInference:
        return self.used.order


@dataclass(frozen=True)
class UsedStates:
    """The states that a release uses, the top state for its outliers included, and what each carries."""

    release: Release

    @cached_property
    def order(self) -> IterativeInference:
        return IterativeInference(self.release.config.lattice)

    @cached_property
    def everything(self) -> list[EquivalenceClass]:
        """The classes, and the outliers if there are k or more: they were released at the top."""
        return [*self.release.classes, *([self.outliers] if self.outliers else [])]

    @cached_property
    def outliers(self) -> EquivalenceClass | None:
        lattice = self.release.config.lattice
        if self.release.outliers < self.release.config.k:
            return None
        return EquivalenceClass(lattice.top, (0,) * len(lattice.top), self.release.outliers)

    def states(self, each: EquivalenceClass) -> list[State]:
        """All states that a class may have."""
        coarsest = self.order.coarsest(each)
        return list(product(*(range(a, b + 1) for a, b in zip(each.state, coarsest, strict=True))))

    @cached_property
    def carried(self) -> dict[State, int]:
        """How many records each state carries, at most: those of every class that may belong to it."""
        found: dict[State, int] = defaultdict(int)
        for each in self.everything:
            for state in self.states(each):
                found[state] += each.size
        found.setdefault(self.release.config.lattice.top, self.release.outliers)
        return found

    @cached_property
    def certain(self) -> set[State]:
        """The states that were surely used: some class can have no other."""
        readings = [self.states(each) for each in self.everything]
        return {states[0] for states in readings if len(states) == 1}

    def is_inner(self, state: State) -> bool:
        """Whether a state was surely neither the first nor the last."""
        return self.has_earlier(state) and any(is_finer(state, other) for other in self.certain)

    def has_earlier(self, state: State) -> bool:
        """Whether a state was surely not the first."""
        return any(is_finer(other, state) for other in self.certain)
