"""The lattice of states, and the exact order in which the anonymizer tries them.

A state is one layer per attribute. Its information loss is the geometric mean of `1 + Q` over the attributes, less 1,
where `Q = (length - 1) / (values - 1)` and `length` counts the raw values of a node of that layer (their mean, where
nodes differ). None of it depends on the data, and the order needs no roots: states are compared by the product of
`1 + Q`, brought to a common denominator, so every comparison is one of integers. Ties are real (two attributes of equal
domain and height tie in every permutation), and floating-point noise must not break them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import groupby, product

from unblur.errors import ConfigError
from unblur.hierarchy import Hierarchy

State = tuple[int, ...]
"""One layer per attribute."""
Segment = tuple[int, ...]
"""One node, by its rank in the state's layer, per attribute."""

MOST_STATES = 1_000_000_000
"""A larger lattice is refused: a bit is kept for every state."""


@dataclass(frozen=True)
class Lattice:
    """All states over some hierarchies, from the finest layers allowed up to the roots.

    >>> from decimal import Decimal
    >>> from unblur.hierarchy import halves
    >>> grid = [halves(Decimal(0), Decimal(100), layers=2), halves(Decimal(0), Decimal(80), layers=2)]
    >>> list(Lattice(grid, finest=(1, 1)).groups())
    [((1, 1),), ((2, 1),), ((1, 2),), ((2, 2),)]
    """

    hierarchies: Sequence[Hierarchy]
    finest: State

    @cached_property
    def layers(self) -> list[range]:
        """The layers of each attribute that states may use."""
        return [range(low, tree.height + 1) for low, tree in zip(self.finest, self.hierarchies, strict=True)]

    @property
    def size(self) -> int:
        """How many states there are."""
        return math.prod(map(len, self.layers))

    @property
    def top(self) -> State:
        """The state with every attribute at its root."""
        return tuple(tree.height for tree in self.hierarchies)

    @cached_property
    def weights(self) -> list[list[int]]:
        """For each attribute and layer, `1 + Q` times a constant of the attribute that makes it an integer."""
        factors = [[self._factor(i, layer) for layer in layers] for i, layers in enumerate(self.layers)]
        scales = [math.lcm(*(factor.denominator for factor in row)) for row in factors]
        return [[int(factor * scale) for factor in row] for row, scale in zip(factors, scales, strict=True)]

    def states(self) -> Iterator[State]:
        """Go through the states in lattice order: the last attribute fastest."""
        return product(*self.layers)

    def check_size(self, most: int = MOST_STATES, why: str = "are accepted") -> None:
        """Refuse a lattice that would take too long."""
        if self.size > most:
            raise ConfigError(f"the lattice has {self.shape}; at most {most:,} {why}: drop attributes or layers")

    @property
    def shape(self) -> str:
        """How many states there are, in words."""
        return f"{self.size:,} states ({' x '.join(str(len(layers)) for layers in self.layers)})"

    def groups(self) -> Iterator[tuple[State, ...]]:
        """Go through the states from least to most loss, those tied on loss, c1 and c2 together, in lattice order.

        All states are listed; `walk.Walk` lists none that is crossed out, nor those far ahead.
        """
        keys: list[tuple[int, int, int]] = [(1, 0, 0)]
        for weights, layers, share in zip(self.weights, self.layers, self._height_shares, strict=True):
            steps = [(weight, layer, layer * share) for weight, layer in zip(weights, layers, strict=True)]
            keys = [(w * dw, c1 + d1, c2 + d2) for w, c1, c2 in keys for dw, d1, d2 in steps]
        ordered = sorted(zip(keys, self.states(), strict=True))
        for _, tied in groupby(ordered, key=lambda entry: entry[0]):
            yield tuple(state for _, state in tied)

    def key(self, state: State) -> tuple[int, int, int]:
        """What orders the states: loss, c1 and c2, each brought to a whole number."""
        places = [(layer - low, layer) for layer, low in zip(state, self.finest, strict=True)]
        loss = math.prod(weights[place] for weights, (place, _) in zip(self.weights, places, strict=True))
        c2 = sum(layer * share for (_, layer), share in zip(places, self._height_shares, strict=True))
        return loss, sum(state), c2

    def loss(self, state: State) -> float:
        """Return the information loss of a state, for display; `groups` compares exactly."""
        product_of_factors = float(math.prod(self._factor(i, layer) for i, layer in enumerate(state)))
        return math.pow(product_of_factors, 1 / len(state)) - 1

    def c1(self, state: State) -> int:
        """Sum the layers."""
        return sum(state)

    def c2(self, state: State) -> Fraction:
        """Average the layers relative to their heights."""
        heights = self.top
        return sum((Fraction(layer, h) for layer, h in zip(state, heights, strict=True)), Fraction(0)) / len(state)

    @cached_property
    def _height_shares(self) -> list[int]:
        common = math.lcm(*self.top)
        return [common // height for height in self.top]

    def _factor(self, attribute: int, layer: int) -> Fraction:
        tree = self.hierarchies[attribute]
        if tree.values == 1:
            return Fraction(1)
        return 1 + (Fraction(tree.values, tree.nodes(layer)) - 1) / (tree.values - 1)
