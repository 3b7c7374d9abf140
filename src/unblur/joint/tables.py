"""Whole plausible tables: cells, and raw values in them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unblur.counting.placements import Cell
from unblur.counting.problem import Records
from unblur.grid import Free, Grid

RawRecord = tuple[int, ...]
"""Per attribute the rank of the raw value."""


@dataclass(frozen=True)
class PlausibleTable:
    """One of the tables that could have produced the release."""

    placements: tuple[Counter[Cell], ...]
    """For each subject of the program, how many of its records each cell holds."""
    rows: tuple[tuple[RawRecord, ...], ...]
    """For each subject its records, by the ranks of their raw values."""


@dataclass(frozen=True)
class Drawer:
    """Draws records in what is free of a group."""

    grid: Grid
    records: Records

    def draw(self, free: Free, number: int, rng: random.Random) -> Iterator[tuple[Cell, RawRecord]]:
        """Draw so many raw records from a region, all different if records are distinct."""
        seen: set[RawRecord] = set()
        volumes = [self.grid.volume(piece) for piece in free.pieces]
        while number:
            cell = self.grid.random_cell(rng.choices(free.pieces, volumes)[0], rng)
            row = tuple(self._value(attribute, position, rng) for attribute, position in enumerate(cell))
            if self.records == "distinct" and row in seen:
                continue
            seen.add(row)
            number -= 1
            yield cell, row

    def _value(self, attribute: int, position: int, rng: random.Random) -> int:
        """Draw a raw value under a node of the finest layer."""
        tree, layer = self.grid.lattice.hierarchies[attribute], self.grid.lattice.finest[attribute]
        rank = int(self._ranks[attribute][position])
        while layer:
            below = tree.children(layer, rank)
            rank = (
                rng.choices(below, [tree.length(layer - 1, each) for each in below])[0]
                if layer > 1
                else rng.choice(below)
            )
            layer -= 1
        return rank

    @cached_property
    def _ranks(self) -> list[np.ndarray[tuple[int], np.dtype[np.int64]]]:
        """Per attribute the node at each position of its axis."""
        found = []
        for attribute in range(len(self.grid.lattice.finest)):
            positions = self.grid.positions(attribute)
            ranks = np.empty_like(positions)
            ranks[positions] = np.arange(len(positions))
            found.append(ranks)
        return found
