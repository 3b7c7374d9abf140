"""The joint attack the obvious way: recode every histogram there is, and see which give the same release."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import comb, factorial, prod

import numpy as np
from numpy.typing import NDArray

from tests.plausible import compositions
from unblur.config import Config, Mechanism, QuasiIdentifier
from unblur.counting.problem import Records
from unblur.hierarchy import halves
from unblur.lattice import Lattice, Segment, State
from unblur.release import EquivalenceClass, Release

Cell = tuple[int, ...]
Counts = tuple[int, ...]
"""Records per cell, all cells in order."""


def attributes_of(lattice: Lattice) -> tuple[QuasiIdentifier, ...]:
    pairs = zip(lattice.hierarchies, lattice.finest, strict=True)
    return tuple(QuasiIdentifier(f"q{i}", tree, low) for i, (tree, low) in enumerate(pairs))


def binary(*heights: int) -> Lattice:
    """Halves with leaves of 5 values."""
    trees = [halves(Decimal(0), Decimal(5 * 2 ** (height - 1)), layers=height) for height in heights]
    return Lattice(trees, (1,) * len(heights))


@dataclass(frozen=True)
class Everything:
    """All histograms of so many records over the cells of a lattice, and the release of each; ties are not decided."""

    lattice: Lattice
    records: int
    k: int

    @cached_property
    def cells(self) -> list[Cell]:
        pairs = zip(self.lattice.hierarchies, self.lattice.finest, strict=True)
        return list(product(*(range(tree.nodes(low)) for tree, low in pairs)))

    @cached_property
    def releases(self) -> list[tuple[Release, list[tuple[Counts, NDArray[np.int64]]]]]:
        """For every release, the histograms that give it, with the class of each cell."""
        histograms = np.array(list(compositions(self.records, len(self.cells))))
        left, homes = histograms.copy(), np.full_like(histograms, -1)
        classes: list[list[EquivalenceClass]] = [[] for _ in histograms]
        for tied in self.lattice.groups():
            assert len(tied) == 1, "states tie"
            if tied[0] == self.lattice.top:
                break
            for segment, inside in self.segments(tied[0]).items():
                sizes = left[:, inside].sum(axis=1)
                for row in np.flatnonzero(sizes >= self.k).tolist():
                    here = np.array(inside)[left[row, inside] > 0]
                    homes[row, here] = len(classes[row])
                    classes[row].append(EquivalenceClass(tied[0], segment, int(sizes[row])))
                    left[row, inside] = 0
        config = Config(self.k, attributes_of(self.lattice), Mechanism.named("paper"))
        found = defaultdict(list)
        for row, counts in enumerate(histograms.tolist()):
            key = (tuple(classes[row]), int(left[row].sum()))
            found[key].append((tuple(counts), homes[row]))
        return [(Release(config, *key), rows) for key, rows in found.items()]

    def segments(self, state: State) -> dict[Segment, list[int]]:
        found: dict[Segment, list[int]] = defaultdict(list)
        for number, cell in enumerate(self.cells):
            climbed = (
                int(tree.climb(np.array([rank]), low, layer)[0])
                for tree, rank, low, layer in zip(
                    self.lattice.hierarchies, cell, self.lattice.finest, state, strict=True
                )
            )
            found[tuple(climbed)].append(number)
        return found

    @cached_property
    def volumes(self) -> list[int]:
        trees = self.lattice.hierarchies
        return [
            prod(tree.length(low, rank) for tree, low, rank in zip(trees, self.lattice.finest, cell, strict=True))
            for cell in self.cells
        ]

    def weight(self, counts: Counts, homes: NDArray[np.int64], records: Records) -> int:
        """The raw data sets behind a histogram."""
        if records == "distinct":
            return prod(comb(volume, n) for volume, n in zip(self.volumes, counts, strict=True))
        ways = Fraction(1)
        for home in set(homes.tolist()):
            ways *= factorial(sum(n for n, other in zip(counts, homes, strict=True) if other == home and n))
        for volume, n in zip(self.volumes, counts, strict=True):
            ways *= Fraction(volume**n, factorial(n))
        return int(ways)


Made = tuple[tuple[EquivalenceClass, tuple[int, ...]], ...]
"""Classes, and the cells that each of them has its records in."""


@dataclass(frozen=True)
class AnyOrder:
    """Every histogram, recoded in every order that a mechanism leaves open."""

    lattice: Lattice
    records: int
    k: int
    mechanism: str

    @cached_property
    def everything(self) -> Everything:
        return Everything(self.lattice, self.records, self.k)

    @cached_property
    def releases(self) -> list[tuple[Release, list[tuple[Counts, NDArray[np.int64]]]]]:
        """For every release, the histograms that may give it, with the class of each cell."""
        found: dict[tuple[frozenset[EquivalenceClass], int], dict[Counts, list[int]]] = defaultdict(dict)
        for counts in compositions(self.records, len(self.everything.cells)):
            for made, left in self._by_key(counts) if self.mechanism == "paper" else self._at_will(counts):
                classes = sorted(made, key=lambda each: self._place(each[0]))
                home = {cell: place for place, (_, cells) in enumerate(classes) for cell in cells}
                homes = [home.get(cell, -1) for cell in range(len(counts))]
                key = frozenset(each for each, _ in made), sum(left)
                assert found[key].setdefault(tuple(counts), homes) == homes, "the order changes who is in a class"
        config = Config(self.k, attributes_of(self.lattice), Mechanism.named(self.mechanism))
        return [
            (
                Release(config, tuple(sorted(classes, key=self._place)), left),
                [(counts, np.array(homes)) for counts, homes in rows.items()],
            )
            for (classes, left), rows in found.items()
        ]

    def _place(self, each: EquivalenceClass) -> tuple[object, ...]:
        return self.lattice.key(each.state), each.state, each.segment

    def _by_key(self, counts: Counts) -> Iterator[tuple[Made, Counts]]:
        """Cheapest states first; those that tie in any order."""
        tied = [tuple(state for state in group if state != self.lattice.top) for group in self.lattice.groups()]

        def go(left: Counts, made: Made, place: int) -> Iterator[tuple[Made, Counts]]:
            if place == len(tied):
                yield made, left
                return
            usable = [state for state in tied[place] if self._large(left, state)]
            for state in usable:
                after, new = self._apply(left, state)
                yield from go(after, made + new, place)
            if not usable:
                yield from go(left, made, place + 1)

        return go(tuple(counts), (), 0)

    def _at_will(self, counts: Counts) -> Iterator[tuple[Made, Counts]]:
        """Any usable state at any time, and an end at any time."""
        waiting: list[tuple[Made, Counts]] = [((), tuple(counts))]
        while waiting:
            made, left = waiting.pop()
            yield made, left
            for state in self.lattice.states():
                if state != self.lattice.top and self._large(left, state):
                    after, new = self._apply(left, state)
                    waiting.append((made + new, after))

    def _large(self, left: Counts, state: State) -> list[tuple[Segment, list[int]]]:
        return [(s, cells) for s, cells in self._inside[state].items() if sum(left[c] for c in cells) >= self.k]

    @cached_property
    def _inside(self) -> dict[State, dict[Segment, list[int]]]:
        return {state: self.everything.segments(state) for state in self.lattice.states()}

    def _apply(self, left: Counts, state: State) -> tuple[Counts, Made]:
        after, made = list(left), []
        for segment, cells in self._large(left, state):
            size = sum(left[cell] for cell in cells)
            made.append((EquivalenceClass(state, segment, size), tuple(cell for cell in cells if left[cell])))
            for cell in cells:
                after[cell] = 0
        return tuple(after), tuple(made)
