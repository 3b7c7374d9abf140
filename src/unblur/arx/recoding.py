"""ARX's own local recoding, decision for decision (`optimizeIterativeFast` of ARX 3.9.2).

A first run looks for the state of least loss that leaves at most a share of all records, the suppression limit, outside
classes of k. Every further iteration does the same with the records that are still suppressed, and has to release at
least about `records_per_iteration` of *all* records, or all that are left if they are fewer. It ends when fewer than k
are left, when no state will do, or when an iteration releases nothing.

Unlike in the paper, an iteration that has to release more than k records may pass over a state under which a class can
be formed, and the losses are those of the remaining records. They are compared as floating-point numbers: `loss` and
`search` say how, and why it matters. Everything rests on the order of the rows only through the rounding of sums, so a
histogram with the first row of every cell is enough.

A class that is `*` in every attribute counts as suppressed, unless no record of the iteration may be suppressed: then
it is a class like any other, though in the table it looks like suppression.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from unblur.arx.loss import Floats, LossMetric, Shares
from unblur.arx.search import Check, SearchOrder, search
from unblur.arx.settings import ArxSettings
from unblur.hierarchy import Ranks
from unblur.histogram import Histogram
from unblur.labels import ROOT_LABEL
from unblur.lattice import Lattice, State
from unblur.recoding import Iteration, Progress, Recoding
from unblur.release import EquivalenceClass

MOST_STATES = 100_000
"""A larger lattice ARX searches by chance and clock, so nothing can be said of the result."""


@dataclass(frozen=True, slots=True)
class ArxIteration(Iteration):
    """One optimization of ARX: the state that won, its loss, and the classes it released at once."""

    loss: float = field(kw_only=True)
    before: int = field(kw_only=True)
    """The records that were left for it."""
    allowed: int = field(kw_only=True)
    """How many of them it was allowed to suppress."""

    @property
    def released(self) -> int:
        """How many records it put into classes."""
        return self.before - self.left


@dataclass(frozen=True)
class ArxRecoding(Recoding):
    """What ARX decided: the first run, then the iterations. The last may have released nothing."""

    iterations: tuple[ArxIteration, ...]

    def as_published(self, lattice: Lattice) -> ArxRecoding:
        """Count a class that is `*` in every attribute as suppressed: nobody who reads the table can tell."""
        shown = np.array([not is_all_stars(each, lattice) for each in self.classes], dtype=bool)
        number = np.append(np.where(shown, np.cumsum(shown) - 1, -1), -1)
        class_of_cell = number[self.class_of_cell]
        iterations, hidden = [], 0
        for step in self.iterations:
            classes = tuple(each for each in step.classes if not is_all_stars(each, lattice))
            hidden += sum(each.size for each in step.classes) - sum(each.size for each in classes)
            iterations.append(replace(step, classes=classes, left=step.left + hidden))
        return ArxRecoding(tuple(iterations), class_of_cell, self.suppressed + hidden)


def check_searchable(lattice: Lattice) -> None:
    """Refuse a lattice that ARX would not search completely."""
    lattice.check_size(MOST_STATES, "are searched completely by ARX")


def is_all_stars(each: EquivalenceClass, lattice: Lattice) -> bool:
    """Whether a class is labelled `*` in every attribute."""
    return all(
        layer > 0 and tree.labels[layer - 1][rank] == ROOT_LABEL
        for tree, layer, rank in zip(lattice.hierarchies, each.state, each.segment, strict=True)
    )


def arx_recoding(
    histogram: Histogram,
    lattice: Lattice,
    *,
    first_rows: Ranks,
    shares: Sequence[Shares],
    settings: ArxSettings,
    progress: Progress = lambda done, of: None,
) -> ArxRecoding:
    """Recode a histogram as ARX does.

    The attributes must stand in the order of the table's columns, and so must their `shares`. `first_rows` has the
    number of the first row of each cell. The classes of an iteration come in the order of their first rows.
    """
    check_searchable(lattice)
    rest = _Rest(histogram, lattice, first_rows, shares, settings)
    order = SearchOrder(lattice, rest.distinct_nodes(), histogram.raw_values.count())
    iterations: list[ArxIteration] = []
    limit, total = settings.first_limit, histogram.records
    while step := rest.optimize(order, limit):
        iterations.append(step)
        progress(total - step.left, total)
        if step.left < settings.k or (len(iterations) > 1 and not step.released):
            break
        limit = settings.later_limit(total, step.left)
    return ArxRecoding(tuple(iterations), rest.class_of_cell, rest.records)


@dataclass(frozen=True)
class _Classes:
    """The groups of a state among the records left, by first row."""

    group_of: Ranks
    """The group of each cell."""
    first: Ranks
    """The first cell of each group."""
    counts: Floats


class _Rest:
    """The records still suppressed: cells in the order of their first rows."""

    def __init__(
        self, histogram: Histogram, lattice: Lattice, first_rows: Ranks, shares: Sequence[Shares], settings: ArxSettings
    ) -> None:
        self._lattice, self._k = lattice, settings.k
        self._metric = LossMetric([each.size for each in shares], settings.gs_factor)
        self._cells = np.argsort(first_rows, kind="stable")
        self._counts = histogram.counts[self._cells].astype(np.float64)
        self._nodes = [
            [tree.climb(column[self._cells], layers[0], layer) for layer in layers]
            for tree, column, layers in zip(lattice.hierarchies, histogram.nodes, lattice.layers, strict=True)
        ]
        self._shares = [
            [each.of(layer, nodes) for layer, nodes in zip(layers, per_layer, strict=True)]
            for each, layers, per_layer in zip(shares, lattice.layers, self._nodes, strict=True)
        ]
        self._widths = [[int(nodes.max(initial=0)) + 1 for nodes in per_layer] for per_layer in self._nodes]
        self._classes = 0
        self.class_of_cell = np.full(len(self._cells), -1, dtype=np.int64)
        self.records = histogram.records

    def distinct_nodes(self) -> list[list[int]]:
        """Count, per attribute and layer, the nodes that occur."""
        return [[len(np.unique(nodes)) for nodes in per_layer] for per_layer in self._nodes]

    def optimize(self, order: SearchOrder, limit: float) -> ArxIteration | None:
        """Find the best state for what is left and apply it; None if no state suppresses few enough."""
        before, allowed = self.records, math.floor(limit * self.records)
        found = search(order, lambda state: self._check(state, allowed), suppression=limit != 0)
        if found is None:
            return None
        classes = self._release(found.state, stars=allowed == 0)
        return ArxIteration(found.state, classes, self.records, loss=found.loss, before=before, allowed=allowed)

    def _check(self, state: State, allowed: int) -> Check:
        groups = self._group(state)
        kept = groups.counts >= self._k
        shares = [self._shares[i][place][groups.first] for i, place in self._places(state)]
        bound = self._metric.bound(self.records, groups.counts, shares)
        eligible = self.records - int(groups.counts[kept].sum()) <= allowed
        loss = self._metric.loss(self.records, groups.counts, shares, kept) if eligible else math.inf
        return Check(eligible, loss, bound)

    def _release(self, state: State, *, stars: bool) -> tuple[EquivalenceClass, ...]:
        """Turn the groups of at least k into classes, one of `*` alone only if asked to, and take them away."""
        groups = self._group(state)
        kept = np.flatnonzero(groups.counts >= self._k)
        columns = [self._nodes[i][place][groups.first[kept]] for i, place in self._places(state)]
        sizes = groups.counts[kept].astype(np.int64)
        classes = [
            EquivalenceClass(state, tuple(segment), size)
            for segment, size in zip(np.stack(columns, axis=1).tolist(), sizes.tolist(), strict=True)
        ]
        if not stars:
            shown = np.array([not is_all_stars(each, self._lattice) for each in classes], dtype=bool)
            kept, classes = kept[shown], list(compress(classes, shown))
        number = np.full(len(groups.counts), -1, dtype=np.int64)
        number[kept] = np.arange(len(kept)) + self._classes
        self.class_of_cell[self._cells] = number[groups.group_of]
        self._classes += len(kept)
        self._keep(number[groups.group_of] < 0)
        return tuple(classes)

    def _keep(self, cells: NDArray[np.bool_]) -> None:
        self._cells, self._counts = self._cells[cells], self._counts[cells]
        self._nodes = [[nodes[cells] for nodes in per_layer] for per_layer in self._nodes]
        self._shares = [[shares[cells] for shares in per_layer] for per_layer in self._shares]
        self.records = int(self._counts.sum())

    def _group(self, state: State) -> _Classes:
        codes, span = self._codes(state)
        if span > 4 * len(codes) + 1024:
            codes, span = _dense(codes)
        cell = np.arange(len(codes))
        first = np.full(span, len(codes))
        first[codes[::-1]] = cell[::-1]  # the last assignment stands: that of the first cell
        heads = np.sort(first[first < len(codes)])
        number = np.empty(span, dtype=np.int64)
        number[codes[heads]] = np.arange(len(heads))
        group_of = number[codes]
        counts = np.bincount(group_of, weights=self._counts, minlength=len(heads)).astype(np.float64, copy=False)
        return _Classes(group_of, heads, counts)

    def _codes(self, state: State) -> tuple[Ranks, int]:
        """Number the groups of a state from 0 to a span: equal codes, same group."""
        codes, span = np.zeros(len(self._cells), dtype=np.int64), 1
        for i, place in self._places(state):
            column, width = self._nodes[i][place], self._widths[i][place]
            if span * width > 2**62:
                (codes, span), (column, width) = _dense(codes), _dense(column)
            codes = codes * width + column
            span *= width
        return codes, span

    def _places(self, state: State) -> Iterator[tuple[int, int]]:
        """For each attribute, the place of the state's layer among those that states may use."""
        return enumerate(layer - low for layer, low in zip(state, self._lattice.finest, strict=True))


def _dense(codes: Ranks) -> tuple[Ranks, int]:
    values, dense = np.unique(codes, return_inverse=True)
    return dense.astype(np.int64, copy=False), len(values)
