"""How a release was made, as far as an attacker may rely on it.

A mechanism gives two things, and everything that is inferred rests on them alone:

- a *certain order*: `before(first, second)` says that a class was surely made before another, so that nobody of the
  later one can be in a cell of the earlier;
- a *bound*: in each attribute, those children of a class's node that hold k records or more hold together fewer records
  than this; None if nothing is known. With a bound of k, no child holds k.

Where the order of two classes is open, nothing follows from their overlap.

| mechanism | assumes | order | bound |
|---|---|---|---|
| unknown | nothing | none | none |
| iterative | each step applies one state to what remains and releases every group of k or more | a state that is finer in every attribute comes first: after the coarser one no group of k was left under it | none |
| greedy | also: the cheapest usable state is taken; a state is usable if enough of what remains falls in groups of k or more; the loss never falls with generalization | the same | what the state carries: the finer state was cheaper and not usable, so it covered less than was required, and that is at most what this one covers |
| greedy, constant | also: every step but the first and the last requires the same number of records | the same | the smaller of that and of what other states carry |
| arx | ARX with gsFactor 0 and given settings | also by loss, where the loss does not depend on the data | what ARX requires at most; never more than the state carries |
| paper | the published algorithm | loss, c1, c2 | k |

ARX with a gsFactor above 0 weighs suppression against generalization, so a cheaper state need not have been unusable:
only the order of `iterative` holds.

A label may stand on two layers (a node with a single child). Then the state of its class is not certain: between its
*finest* and its *coarsest* reading everything is possible, and an order or a bound must hold for all of them. Under
`paper` the finest is certain, because it comes first and would have taken all the records.
"""  # noqa: E501

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import ceil, floor
from typing import Literal, Protocol

import numpy as np

from unblur.config import Mechanism, QuasiIdentifier
from unblur.errors import ConfigError
from unblur.hierarchy import IntervalHierarchy
from unblur.lattice import Lattice, State
from unblur.release import EquivalenceClass, Release

Order = Literal["sound", "paper"]
"""What to make of states that tie on loss, c1 and c2: their order is open, or that of the lattice."""
NOISE = 1e-9
"""ARX decides between losses that are closer than this by rounding and by the order of its search."""
MANY = 2_000_000
"""Up to so many records, ARX's requirement is computed for each number that may remain."""


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


def inference_of(mechanism: Mechanism, release: Release, order: Order = "sound") -> Inference:
    """Say what may be inferred from a release that was made by a mechanism."""
    lattice, k = release.config.lattice, release.config.k
    if mechanism.name == "paper":
        return PaperInference(lattice, k, order)
    if mechanism.name == "unknown":
        return NoInference()
    if mechanism.name == "greedy":
        constant = mechanism.settings.get("requirement") == "constant"
        return GreedyInference(release, constant=constant)
    if mechanism.name == "arx" and not mechanism.settings.get("gs_factor"):
        return ArxInference(release, ArxRule.of(mechanism))
    return IterativeInference(lattice)


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
    """Each step applies one state to what remains, and releases every group of k or more."""

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
    """Also: the cheapest usable state is taken, and usable is what covers enough of the remaining records."""

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


@dataclass(frozen=True)
class ArxRule:
    """How many records ARX's iterations must release."""

    share: float
    """Of all records, in each iteration."""
    limit: float
    """The share that the first run may suppress."""

    @classmethod
    def of(cls, mechanism: Mechanism) -> ArxRule:
        """Read the settings of a mechanism."""
        settings = mechanism.settings
        if ("records_per_iteration" in settings) == ("iterations" in settings):
            raise ConfigError("mechanism arx needs records_per_iteration or iterations (the GUI's default is 100)")
        share = (
            1 / int(settings["iterations"]) if "iterations" in settings else float(settings["records_per_iteration"])
        )
        limit = float(settings["suppression_limit"]) if "suppression_limit" in settings else 1 - share
        if not 0 < share <= 1 or not 0 <= limit <= 1:
            raise ConfigError(
                "mechanism arx: records_per_iteration is a share above 0, suppression_limit one from 0 to 1"
            )
        return cls(share, limit)

    def first(self, rows: int) -> int:
        """What the first run must release."""
        return rows - floor(self.limit * rows)

    def later(self, rows: int, remaining: int) -> int:
        """What an iteration must release when so many records remain, in ARX's floating-point arithmetic."""
        return remaining - floor((1 - min(1.0, self.share * rows / remaining)) * remaining)

    def fewest(self, rows: int) -> int:
        """The fewest that an iteration must release while more remain."""
        if rows > MANY:
            return floor(self.share * rows)
        numbers = np.arange(floor(self.share * rows) + 1, rows + 1, dtype=np.float64)
        allowed = np.floor((1 - np.minimum(1.0, self.share * rows / numbers)) * numbers)
        return int((numbers - allowed).min(initial=rows))

    def most(self, rows: int, least: int, most: int) -> int:
        """The most that an iteration may have had to release, when between `least` and `most` records remained."""
        if most <= MANY:
            numbers = np.arange(max(1, least), max(1, most) + 1, dtype=np.float64)
            allowed = np.floor((1 - np.minimum(1.0, self.share * rows / numbers)) * numbers)
            return int((numbers - allowed).max(initial=0))
        return ceil(self.share * rows) + 1


@dataclass(frozen=True)
class ArxInference:
    """ARX's local recoding with gsFactor 0."""

    release: Release
    rule: ArxRule

    def before(self, first: EquivalenceClass, second: EquivalenceClass) -> bool:
        return self.used.order.before(first, second) or (self._has_loss and self._is_cheaper(first, second))

    def bound(self, each: EquivalenceClass) -> int | None:
        return max(self.release.config.k, max(self.required(state) for state in self.used.states(each)))

    def misfits(self) -> Iterator[str]:
        """States that carry fewer records than an iteration must release; the last one, and the first, may."""
        rows = self.release.rows
        required = self.rule.fewest(rows)
        short = [state for state in self.used.certain if self.used.carried[state] < required]
        excused = 1 + (self.rule.first(rows) < required)
        inner = [state for state in short if self.used.is_inner(state)]
        if inner or len(short) > excused:
            state = min(inner or short)
            yield (
                f"the state {state} carries {self.used.carried[state]:,} records, "
                f"but ARX under these settings releases at least {required:,} in an iteration"
            )

    def required(self, state: State) -> int:
        """What a state had to release at most, and it did release that."""
        carried = self.used.carried[state]
        if state not in self._required:
            rows = self.release.rows
            remaining = rows - sum(each.size for each in self.used.everything if self._is_earlier(each, state))
            most = self.rule.most(rows, carried, remaining)
            self._required[state] = most if self.used.has_earlier(state) else max(most, self.rule.first(rows))
        return min(carried, self._required[state])

    def _is_earlier(self, each: EquivalenceClass, state: State) -> bool:
        return is_finer(self.used.order.coarsest(each), state)

    @cached_property
    def _required(self) -> dict[State, int]:
        return {}

    def _is_cheaper(self, first: EquivalenceClass, second: EquivalenceClass) -> bool:
        """Whether the first is cheaper, and would have been usable whenever the second was used."""
        coarsest = self.used.order.coarsest(first)
        if self._loss(coarsest) + NOISE >= self._loss(second.state):
            return False
        if coarsest != first.state:
            return False
        rows = self.release.rows
        carried = self._surely_carried[first.state]
        return carried >= max(self.rule.first(rows), self.rule.most(rows, 1, rows))

    @cached_property
    def _surely_carried(self) -> dict[State, int]:
        found: dict[State, int] = defaultdict(int)
        for each in self.used.everything:
            if len(self.used.states(each)) == 1:
                found[each.state] += each.size
        return found

    @cached_property
    def _has_loss(self) -> bool:
        """Whether ARX's loss of a state does not depend on the data: interval lengths, equal on every layer."""
        return all(_has_equal_widths(each) for each in self.release.config.quasi_identifiers)

    def _loss(self, state: State) -> float:
        if state not in self._losses:
            loss = 1.0
            for each, layer in zip(self.release.config.quasi_identifiers, state, strict=True):
                loss *= (1 + _arx_share(each, layer)) ** (1 / len(state))
            self._losses[state] = loss - 1
        return self._losses[state]

    @cached_property
    def _losses(self) -> dict[State, float]:
        return {}

    @cached_property
    def used(self) -> UsedStates:
        return UsedStates(self.release)


def _has_equal_widths(attribute: QuasiIdentifier) -> bool:
    tree = attribute.hierarchy
    if not isinstance(tree, IntervalHierarchy) or not attribute.by_length:
        return False
    widths = ({tree.length(layer, rank) for rank in range(tree.nodes(layer))} for layer in range(1, tree.height + 1))
    return all(len(each) == 1 for each in widths)


def _arx_share(attribute: QuasiIdentifier, layer: int) -> float:
    """ARX's share of the domain that a node of a layer spans, less that of a value: in absolute units."""
    tree = attribute.hierarchy
    assert isinstance(tree, IntervalHierarchy)
    domain = float(tree.high - tree.low)
    length = 1.0 if layer == 0 else float(tree.step) * tree.length(layer, 0)
    if domain <= 1:
        return 0.0
    return max(0.0, (length - 1) / (domain - 1))
