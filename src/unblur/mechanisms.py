"""How a release was made, as far as an attacker may rely on it.

A mechanism gives two things, and everything that is inferred rests on them alone:

- a *certain order*: `before(g1, g2)` says that the classes of state `g1` were surely made before those of `g2`, so that
  nobody of the later ones can be in a cell of the earlier;
- a *bound*: in a class of state `g`, no child of an attribute's node holds that many records; None if nothing is known.

Where the order of two states is open, nothing follows from their overlap.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

from unblur.config import Mechanism
from unblur.errors import ConfigError
from unblur.lattice import Lattice, State
from unblur.release import Release

Order = Literal["sound", "paper"]
"""What to make of states that tie on loss, c1 and c2: their order is open, or that of the lattice."""


class Inference(Protocol):
    """What may be inferred from a release."""

    def before(self, first: State, second: State) -> bool:
        """Whether the classes of one state were surely made before those of another."""
        ...

    def bound(self, state: State) -> int | None:
        """The number of records that no child reaches in a class of this state."""
        ...


@dataclass(frozen=True)
class PaperInference:
    """The algorithm of the paper: states in the order of loss, c1 and c2; every step makes all classes it can."""

    lattice: Lattice
    k: int
    order: Order = "sound"

    def before(self, first: State, second: State) -> bool:
        return self._key(first) < self._key(second)

    def bound(self, state: State) -> int | None:
        return self.k

    def _key(self, state: State) -> tuple[object, ...]:
        if state not in self._keys:
            key = self.lattice.key(state)
            self._keys[state] = (*key, state) if self.order == "paper" else key
        return self._keys[state]

    @cached_property
    def _keys(self) -> dict[State, tuple[object, ...]]:
        return {}


def inference_of(mechanism: Mechanism, release: Release, order: Order) -> Inference:
    """Say what may be inferred from a release that was made by a mechanism."""
    if mechanism.name != "paper":
        raise ConfigError(f"the mechanism {mechanism.name!r} cannot be audited yet; paper can")
    return PaperInference(release.config.lattice, release.config.k, order)
