"""Exact counts without enumeration.

Let a child be *heavy* if it holds `bound` records or more; we count the placements without a heavy child. While the
class has fewer than twice `bound` records, an attribute has at most one heavy child, and then at most
`slack = size - bound` records lie outside it. So inclusion and exclusion over "which attributes have a heavy child, and
which" needs, per term, only a small table of how many records lie outside each of the chosen children; for a slack of 0
(the usual class) each term is a single number. Larger classes (possible where nodes have three children or more) go
block by block, with the children's counts as the state.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from math import comb, prod
from typing import Any

from unblur.counting.problem import Block, Problem
from unblur.counting.weights import Weights

Outside = tuple[int, ...]
"""The attributes, by their place in a term, in which a region lies outside the chosen child."""


def estimated_work(size: int, bound: int, fanouts: Sequence[int]) -> int:
    """Estimate the steps of a count, before any region is measured."""
    if size < bound:
        return 1
    attributes, slack = len(fanouts), size - bound
    if size < 2 * bound:
        spread = int((slack + 1) ** (attributes + 1)) * (attributes * slack + 1) if slack else 1
        return prod(fanout + 1 for fanout in fanouts) * int(2**attributes) * spread
    states = [min(comb(size + fanout, fanout), int(bound**fanout)) for fanout in sorted(fanouts)]
    return prod(fanouts) * prod(states[:-1]) * bound**2


@dataclass(frozen=True)
class _Term:
    """One term of the inclusion and exclusion: the children taken to be heavy, and the regions they make."""

    sign: int
    heavy: tuple[tuple[int, int], ...]
    """Attribute and child."""
    regions: Mapping[Outside, Any]

    def outside(self, block: Block) -> Outside:
        """In which of the chosen attributes a block lies outside the chosen child."""
        return tuple(place for place, (attribute, child) in enumerate(self.heavy) if block[attribute] != child)


@dataclass(frozen=True)
class ExactCount:
    """Counts the placements of one problem under one kind of weights."""

    problem: Problem
    weights: Weights

    def count(self, fixed: Mapping[Block, int] | None = None) -> int:
        """Count the placements in which the given blocks hold just the given numbers of records."""
        fixed = fixed or {}
        rest = self.problem.size - sum(fixed.values())
        if rest < 0:
            return 0
        ways = self._fill(fixed, rest)
        return ways * self._fill_others(fixed, rest) if ways else 0

    def distribution(self, block: Block, fixed: Mapping[Block, int] | None = None) -> list[int]:
        """Count the placements for each number of records that a block may hold."""
        fixed = dict(fixed or {})
        rest = self.problem.size - sum(fixed.values())
        most = rest if self.problem.bound is None else min(rest, self.problem.bound - 1)
        if not self.problem.constrained:
            most = rest
        return [self.count(fixed | {block: n}) for n in range(most + 1)]

    def _fill(self, fixed: Mapping[Block, int], rest: int) -> int:
        """Count the ways to fill the given blocks, and to choose the records for them if they are told apart."""
        ways, seen = 1, rest
        for block, n in fixed.items():
            seen += n
            ways *= self.weights.ways(self._regions[block], n) * (comb(seen, n) if self.weights.labelled else 1)
        return ways

    def _fill_others(self, fixed: Mapping[Block, int], rest: int) -> int:
        problem = self.problem
        if not problem.constrained:
            others = [self._regions[block] for block in problem.blocks if block not in fixed]
            return self.weights.ways(self.weights.join(others), rest)
        assert problem.bound is not None
        if problem.size < 2 * problem.bound:
            return sum(term.sign * self._under(term, fixed, rest) for term in self._terms)
        return self._by_blocks(fixed, rest)

    @cached_property
    def _regions(self) -> dict[Block, Any]:
        return {block: self.weights.of(self.problem.free[block]) for block in self.problem.blocks}

    @cached_property
    def _terms(self) -> list[_Term]:
        """Choose, in every attribute, one child to be heavy, or none."""
        return [self._term(choice) for choice in product(*([None, *each] for each in self._children))]

    @cached_property
    def _children(self) -> list[list[int]]:
        """The children of each attribute that a record can be in."""
        return [sorted({block[a] for block in self.problem.blocks}) for a in range(len(self.problem.fanouts))]

    def _term(self, choice: tuple[int | None, ...]) -> _Term:
        heavy = tuple((attribute, child) for attribute, child in enumerate(choice) if child is not None)
        slack = self.problem.size - (self.problem.bound or 0)
        places = range(len(heavy)) if slack else ()  # without slack no record lies outside
        regions = {}
        for size in range(len(places) + 1):
            for outside in combinations(places, size):
                key = list(choice)
                for place in outside:
                    attribute, child = heavy[place]
                    key[attribute] = ~child
                regions[outside] = self._box(tuple(key))
        return _Term((-1) ** len(heavy), heavy, regions)

    def _box(self, key: tuple[int | None, ...]) -> Any:
        """Describe a box of blocks: in each attribute one child, all (None), or all but a child (its complement)."""
        if key not in self._boxes:
            self._boxes[key] = self._describe(key)
        return self._boxes[key]

    def _describe(self, key: tuple[int | None, ...]) -> Any:
        for attribute, entry in enumerate(key):
            before, after = key[:attribute], key[attribute + 1 :]
            if entry is None:
                return self.weights.join([self._box((*before, c, *after)) for c in self._children[attribute]])
            if entry < 0:
                return self.weights.without(self._box((*before, None, *after)), self._box((*before, ~entry, *after)))
        return self._regions.get(key, self._nothing)  # type: ignore[arg-type]

    @cached_property
    def _boxes(self) -> dict[tuple[int | None, ...], Any]:
        return {}

    @cached_property
    def _nothing(self) -> Any:
        return self.weights.join([])

    def _under(self, term: _Term, fixed: Mapping[Block, int], rest: int) -> int:
        """Count the ways to place the rest so that every chosen child is heavy: few records lie outside each."""
        assert self.problem.bound is not None
        slack = self.problem.size - self.problem.bound
        regions, beside = dict(term.regions), [0] * len(term.heavy)
        for block, n in fixed.items():
            outside = term.outside(block)
            if outside in regions:
                regions[outside] = self.weights.without(regions[outside], self._regions[block])
            for place in outside:
                beside[place] += n
        if any(n > slack for n in beside):
            return 0
        inside = regions.pop(())
        if not slack:
            return self.weights.ways(inside, rest)
        states = self._spread(regions, tuple(beside), rest, slack)
        labelled = self.weights.labelled
        return sum(
            ways * self.weights.ways(inside, rest - n) * (comb(rest, n) if labelled else 1)
            for (_, n), ways in states.items()
        )

    def _spread(
        self, regions: Mapping[Outside, Any], beside: tuple[int, ...], rest: int, slack: int
    ) -> dict[tuple[tuple[int, ...], int], int]:
        """Place up to `slack` records outside each chosen child: how many lie outside each, how many in all, ways."""
        states = {(beside, 0): 1}
        for outside, region in regions.items():
            following: dict[tuple[tuple[int, ...], int], int] = defaultdict(int)
            for (counts, n), ways in states.items():
                room = min(rest - n, *(slack - counts[place] for place in outside))
                for more in range(room + 1):
                    new = self.weights.ways(region, more) * (comb(n + more, more) if self.weights.labelled else 1)
                    if not new:
                        continue
                    moved = tuple(c + more if place in outside else c for place, c in enumerate(counts))
                    following[moved, n + more] += ways * new
            states = following
        return states

    def _by_blocks(self, fixed: Mapping[Block, int], rest: int) -> int:
        """Go through the blocks with the number of records in every child as the state."""
        assert self.problem.bound is not None
        most = self.problem.bound - 1
        outer = max(range(len(self.problem.fanouts)), key=self.problem.fanouts.__getitem__)
        start = [[0] * fanout for fanout in self.problem.fanouts]
        for block, n in fixed.items():
            for attribute, child in enumerate(block):
                start[attribute][child] += n
        if not _within(start, most):
            return 0
        states: dict[Any, int] = {(tuple(map(tuple, start)), 0): 1}
        for child in range(self.problem.fanouts[outer]):
            blocks = [b for b in self.problem.blocks if b[outer] == child and b not in fixed]
            for block in blocks:
                states = self._put(states, block, rest, most)
            states = _forget(states, outer, child)
        return sum(ways for (counts, n), ways in states.items() if n == rest and _within(counts, most))

    def _put(self, states: Mapping[Any, int], block: Block, rest: int, most: int) -> dict[Any, int]:
        following: dict[Any, int] = defaultdict(int)
        region = self._regions[block]
        for (counts, n), ways in states.items():
            room = min(rest - n, *(most - counts[attribute][child] for attribute, child in enumerate(block)))
            for more in range(room + 1):
                new = self.weights.ways(region, more) * (comb(n + more, more) if self.weights.labelled else 1)
                following[_added(counts, block, more), n + more] += ways * new
        return following


def _added(counts: Any, block: Block, more: int) -> Any:
    if not more:
        return counts
    return tuple(
        tuple(n + more if child == here else n for here, n in enumerate(each))
        for each, child in zip(counts, block, strict=True)
    )


def _forget(states: Mapping[Any, int], outer: int, child: int) -> dict[Any, int]:
    """Forget the count of a child whose blocks are all done (its bound has been kept)."""
    merged: dict[Any, int] = defaultdict(int)
    for (counts, n), ways in states.items():
        done = tuple(0 if here == child else m for here, m in enumerate(counts[outer]))
        merged[(*counts[:outer], done, *counts[outer + 1 :]), n] += ways
    return merged


def _within(counts: Any, most: int) -> bool:
    return all(n <= most for each in counts for n in each)
