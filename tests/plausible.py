"""The obvious way to attack a class: try every placement of its records over its free cells. Judge of the engines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import comb, factorial, prod

import numpy as np

from tests.strategies import Record, histogram_of
from unblur.attacking import Attack, Target
from unblur.config import Config, QuasiIdentifier
from unblur.counting.problem import Records
from unblur.lattice import Lattice
from unblur.mechanisms import Order, PaperInference
from unblur.recoding import local_recoding
from unblur.release import EquivalenceClass, Release

Cell = tuple[int, ...]


@dataclass(frozen=True)
class Known:
    """What is inferred, stated by hand: an order only from finer to coarser states, and one bound for all."""

    least: int | None

    def before(self, first: EquivalenceClass, second: EquivalenceClass) -> bool:
        pairs = zip(first.state, second.state, strict=True)
        return first.state != second.state and all(a <= b for a, b in pairs)

    def bound(self, each: EquivalenceClass) -> int | None:
        return self.least

    def misfits(self) -> Iterator[str]:
        return iter(())


def release_of(lattice: Lattice, records: list[Record], k: int) -> Release:
    """Make a release of random records."""
    recoding = local_recoding(histogram_of(lattice, records), lattice, k=k)
    attributes = tuple(
        QuasiIdentifier(f"q{i}", tree, low)
        for i, (tree, low) in enumerate(zip(lattice.hierarchies, lattice.finest, strict=True))
    )
    return Release(Config(k, attributes), recoding.classes, recoding.suppressed)


def attack_on(release: Release, order: Order = "sound") -> Attack:
    return Attack(release, PaperInference(release.config.lattice, release.config.k, order))


def all_targets(attack: Attack) -> list[Target]:
    outliers = attack.outliers()
    return [*attack.targets(), *([outliers] if outliers else [])]


def truth_of(attack: Attack, target: Target, records: list[Record]) -> dict[Cell, int]:
    """Count the records of a class per cell, knowing all records: those in its box that no earlier class holds."""
    lattice, grid = attack.release.config.lattice, attack.grid
    counts: dict[Cell, int] = {}
    recoding = local_recoding(histogram_of(lattice, records), lattice, k=attack.release.config.k)
    histogram = histogram_of(lattice, records)
    wanted = (target.subject.state, target.subject.segment)
    for number in range(len(histogram.counts)):
        owner = recoding.class_of_cell[number]
        home = (
            (lattice.top, (0,) * len(lattice.top))
            if owner < 0
            else (recoding.classes[owner].state, recoding.classes[owner].segment)
        )
        if home == wanted:
            cell = tuple(int(grid.positions(i)[nodes[number]]) for i, nodes in enumerate(histogram.nodes))
            counts[cell] = int(histogram.counts[number])
    return counts


@dataclass
class BruteForce:
    """All placements of a target's records over its free cells, one by one."""

    attack: Attack
    target: Target

    def __post_init__(self) -> None:
        grid = self.attack.grid
        taken = [self.attack.boxes[number] for number in self.target.takers]
        self.cells = [
            cell
            for cell in grid.cells(self.target.box)
            if not any(all(a <= x < b for x, (a, b) in zip(cell, box, strict=True)) for box in taken)
        ]
        self.volumes = [grid.volume(tuple((x, x + 1) for x in cell)) for cell in self.cells]

    @property
    def small(self) -> bool:
        size = self.target.subject.size
        return len(self.cells) <= 40 and comb(len(self.cells) + size - 1, size) <= 2000

    def placements(self) -> Iterator[dict[Cell, int]]:
        families = list(self._families())
        for counts in compositions(self.target.subject.size, len(self.cells)):
            held = ([sum(counts[i] for i in members) for members in children] for children in families)
            if all(self._allows(each) for each in held):
                yield {cell: n for cell, n in zip(self.cells, counts, strict=True) if n}

    def _allows(self, held: list[int]) -> bool:
        """Children that hold k or more hold together fewer than the bound."""
        bound = self.attack.inference.bound(self.target.subject)
        return bound is None or sum(n for n in held if n >= self.attack.release.config.k) < bound

    def _families(self) -> Iterator[list[list[int]]]:
        """For each generalized attribute, the cells of each of its children."""
        finest, subject = self.attack.release.config.lattice.finest, self.target.subject
        for attribute, (layer, rank) in enumerate(zip(subject.state, subject.segment, strict=True)):
            if layer > finest[attribute]:
                yield [
                    [i for i, cell in enumerate(self.cells) if first <= cell[attribute] < last]
                    for first, last in self.attack.grid.children(attribute, layer, rank)
                ]

    def weight(self, placement: dict[Cell, int], records: Records) -> int:
        volumes = dict(zip(self.cells, self.volumes, strict=True))
        if records == "distinct":
            return prod(comb(volumes[cell], n) for cell, n in placement.items())
        ways = Fraction(factorial(self.target.subject.size))
        for cell, n in placement.items():
            ways *= Fraction(volumes[cell] ** n, factorial(n))
        assert ways.denominator == 1
        return int(ways)


def compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 0:
        if total == 0:
            yield ()
    elif parts == 1:
        yield (total,)
    else:
        for first in range(total + 1):
            for rest in compositions(total - first, parts - 1):
                yield (first, *rest)


def permuted(lattice: Lattice, records: list[Record], order: list[int]) -> tuple[Lattice, list[Record]]:
    """The same table with its attributes in another order."""
    trees = [lattice.hierarchies[i] for i in order]
    return Lattice(trees, tuple(lattice.finest[i] for i in order)), [tuple(r[i] for i in order) for r in records]


def random_order(attributes: int, seed: int) -> list[int]:
    return [int(i) for i in np.random.default_rng(seed).permutation(attributes)]
