"""Every generator of random cases."""

from __future__ import annotations

import os
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
from hypothesis import strategies as st

from unblur.hierarchy import Hierarchy, from_cuts, from_rows, halves
from unblur.histogram import Histogram
from unblur.lattice import Lattice

Record = tuple[int, ...]


def examples(number: int) -> int:
    """How many cases to draw: `make test-long` draws twenty times as many."""
    return number * (20 if os.environ.get("UNBLUR_TESTS") == "long" else 1)


@st.composite
def interval_hierarchies(draw: st.DrawFn) -> Hierarchy:
    """Equal halves, or own cuts with mixed fan-outs; small domains, so that ties are common."""
    if draw(st.booleans()):
        layers = draw(st.integers(1, 3))
        return halves(Decimal(0), Decimal(draw(st.sampled_from([8, 12]))), layers=layers)
    widths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=7))
    cuts = [Decimal(sum(widths[:i])) for i in range(len(widths) + 1)]
    fanouts, nodes = [], len(widths)
    while nodes > 1 and draw(st.booleans()):
        fanouts.append(draw(st.integers(2, 4)))
        nodes = -(-nodes // fanouts[-1])
    return from_cuts(cuts, fanouts=fanouts)


@st.composite
def category_hierarchies(draw: st.DrawFn) -> Hierarchy:
    values = draw(st.integers(1, 6))
    middle = draw(st.integers(1, 3))
    rows = [[f"v{i}", f"group {draw(st.integers(1, middle))}", "*"] for i in range(values)]
    return from_rows(rows)


def hierarchies() -> st.SearchStrategy[Hierarchy]:
    return st.one_of(interval_hierarchies(), category_hierarchies())


@st.composite
def lattices(draw: st.DrawFn) -> Lattice:
    trees = draw(st.lists(hierarchies(), min_size=1, max_size=3))
    if draw(st.booleans()):  # equal attributes: ties
        trees = [trees[0]] * len(trees)
    return Lattice(trees, tuple(draw(st.integers(0, 1)) for _ in trees))


@st.composite
def recoding_cases(draw: st.DrawFn) -> tuple[Lattice, list[Record], int]:
    lattice = draw(lattices())
    record = st.tuples(*(st.integers(0, tree.values - 1) for tree in lattice.hierarchies))
    return lattice, draw(st.lists(record, min_size=1, max_size=40)), draw(st.integers(2, 5))


def random_case(seed: int) -> tuple[Lattice, list[Record], int]:
    """A table like those above, drawn fast: a third of them have equal attributes, so ties have to be decided."""
    rng = np.random.default_rng(seed)
    attributes = int(rng.integers(2, 4))
    trees: list[Hierarchy] = []
    for _ in range(attributes):
        kind = rng.integers(3)
        if kind == 0:
            trees.append(halves(Decimal(0), Decimal(int(rng.choice([16, 24, 40]))), layers=int(rng.integers(2, 4))))
        elif kind == 1:
            leaves = int(rng.integers(2, 7))
            trees.append(from_cuts([Decimal(4 * i) for i in range(leaves + 1)], fanouts=[int(rng.integers(2, 4))]))
        else:
            trees.append(from_rows([[f"v{i}", f"g{i % int(rng.integers(1, 4))}", "*"] for i in range(7)]))
    if seed % 3 == 0:
        trees = [trees[0]] * attributes
    finest = (1,) * attributes if seed % 2 else tuple(int(layer) for layer in rng.integers(0, 2, attributes))
    size = int(rng.integers(8, 45))
    columns = [
        np.minimum((rng.beta(1.3, 2, size) * tree.values).astype(int), tree.values - 1).tolist() for tree in trees
    ]
    return Lattice(trees, finest), list(zip(*columns, strict=True)), int(rng.integers(2, 6))


def histogram_of(lattice: Lattice, records: Sequence[Record]) -> Histogram:
    """Count the records of each cell."""
    return Histogram.of(lattice, np.array(records, dtype=np.int64).reshape(len(records), len(lattice.hierarchies)))
