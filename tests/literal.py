"""The paper's Algorithms 1 and 2, word for word: slow, obvious, and the judge of the one-pass recoding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from math import prod

import numpy as np

from unblur.hierarchy import Hierarchy
from unblur.lattice import Lattice, State

Record = tuple[int, ...]
"""Per attribute, the rank of the raw value."""
Classes = list[tuple[State, dict[Record, int]]]
"""Per iteration the state, and the size of the class at each segment."""


def generalize(trees: Sequence[Hierarchy], state: State, record: Record) -> Record:
    return tuple(
        int(tree.climb(np.array([value]), 0, layer)[0]) for tree, layer, value in zip(trees, state, record, strict=True)
    )


def q_loss(tree: Hierarchy, layer: int, n: int) -> Fraction:
    """The paper's Q_loss, normalized; lengths of a layer are averaged where its nodes differ."""

    def loss(length: Fraction) -> Fraction:
        return length / tree.values * n

    least, most = loss(Fraction(1)), loss(Fraction(tree.values))
    lengths = [1] if layer == 0 else [tree.length(layer, rank) for rank in range(tree.nodes(layer))]
    here = loss(Fraction(sum(lengths), len(lengths)))
    return (here - least) / (most - least) if most != least else Fraction(0)


class LiteralRecoder:
    def __init__(self, lattice: Lattice, k: int) -> None:
        self.lattice, self.trees, self.k = lattice, lattice.hierarchies, k
        self._memory: dict[tuple[State, Record], Record] = {}

    def apply(self, state: State, data: Sequence[Record]) -> Counter[Record]:
        return Counter(self.segment(state, record) for record in data)

    def segment(self, state: State, record: Record) -> Record:
        if (state, record) not in self._memory:
            self._memory[state, record] = generalize(self.trees, state, record)
        return self._memory[state, record]

    def criteria(self, state: State, data: Sequence[Record]) -> tuple[Fraction, int, Fraction, Fraction]:
        """Loss (as the product that grows with it), c1, c2, c3."""
        m = len(state)
        loss = prod(
            (1 + q_loss(tree, layer, 1) for tree, layer in zip(self.trees, state, strict=True)), start=Fraction(1)
        )
        c2 = sum(Fraction(layer, tree.height) for tree, layer in zip(self.trees, state, strict=True)) / Fraction(m)
        shares = Fraction(0)
        for i in range(m):
            generalized = {self.segment(state, record)[i] for record in data}
            shares += Fraction(len(generalized), len({record[i] for record in data}))
        return loss, sum(state), c2, 1 - shares / m

    def anonymizer(self, data: Sequence[Record]) -> State | None:
        """Algorithm 1."""
        best: State | None = None
        for state in self.lattice.states():
            if max(self.apply(state, data).values(), default=0) < self.k:
                continue
            if best is None or self.criteria(state, data) < self.criteria(best, data):
                best = state
        return best

    def recode(self, data: Sequence[Record]) -> tuple[Classes, list[Record]]:
        """Algorithm 2."""
        remaining, classes = list(data), []
        while len(remaining) >= self.k:
            state = self.anonymizer(remaining)
            if state is None or state == self.lattice.top:
                break
            groups = {s: n for s, n in self.apply(state, remaining).items() if n >= self.k}
            classes.append((state, groups))
            remaining = [record for record in remaining if self.segment(state, record) not in groups]
        return classes, remaining
