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
from unblur.counting.spread import Outside, Spread, Term, weight_table
from unblur.counting.weights import Weights

Key = tuple[int | None, ...]
"""A box of blocks: in each attribute one child, all of them (None), or all but one (its complement, negative)."""
MOST_STATES = 1_000_000
"""How many numbers to hold at a time, at most."""


def estimated_work(size: int, bound: int, fanouts: Sequence[int]) -> int:
    """Estimate the steps of a count, before any region is measured."""
    if size < bound:
        return 1
    attributes, slack = len(fanouts), size - bound
    if size < 2 * bound:
        steps = int((slack + 1) ** attributes) * slack if slack else 1
        return prod(fanout + 1 for fanout in fanouts) * int(2**attributes) * steps // 4
    states = [min(comb(size + fanout, fanout), int(bound**fanout)) for fanout in sorted(fanouts)]
    return prod(fanouts) * prod(states[:-1]) * bound**2


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
            attributes = range(len(problem.fanouts))
            return sum(
                (-1) ** n * self._with_heavy(chosen, fixed, rest)
                for n in range(len(attributes) + 1)
                for chosen in combinations(attributes, n)
            )
        return self._by_blocks(fixed, rest)

    @cached_property
    def _regions(self) -> dict[Block, Any]:
        return {block: self.weights.of(self.problem.free[block]) for block in self.problem.blocks}

    @cached_property
    def _children(self) -> list[list[int]]:
        """The children of each attribute that a record can be in."""
        return [sorted({block[a] for block in self.problem.blocks}) for a in range(len(self.problem.fanouts))]

    def _with_heavy(self, attributes: Outside, fixed: Mapping[Block, int], rest: int) -> int:
        """Count the ways to place the rest so that each of these attributes has a heavy child, whichever."""
        assert self.problem.bound is not None
        slack = self.problem.size - self.problem.bound
        choices = product(*(self._children[attribute] for attribute in attributes))
        terms = [self._term(attributes, choice, fixed, slack) for choice in choices]
        terms = [term for term in terms if all(n <= slack for n in term.beside)]
        if not slack or not attributes:
            return sum(self.weights.ways(term.inside, rest) for term in terms)
        batch = max(1, MOST_STATES // (slack + 1) ** (len(attributes) + 1))
        return sum(
            Spread(self.weights, terms[start : start + batch], rest, slack).count()
            for start in range(0, len(terms), batch)
        )

    def _term(self, attributes: Outside, choice: Block, fixed: Mapping[Block, int], slack: int) -> Term:
        """Describe the regions inside and outside of the chosen children, without the blocks that are given."""
        keys = self._keys(attributes, choice, bool(slack))
        if not fixed:
            tables = {outside: self._table(key, slack) for outside, key in keys.items() if outside}
            return Term(self._box(keys[()]), tables, (0,) * len(attributes))
        regions = {outside: self._box(key) for outside, key in keys.items()}
        beside = [0] * len(attributes)
        for block, n in fixed.items():
            outside = tuple(place for place, child in enumerate(choice) if block[attributes[place]] != child)
            if outside in regions:
                regions[outside] = self.weights.without(regions[outside], self._regions[block])
            for place in outside:
                beside[place] += n
        tables = {outside: weight_table(self.weights, regions[outside], slack) for outside in regions if outside}
        return Term(regions[()], tables, tuple(beside))

    def _table(self, key: Key, slack: int) -> tuple[int, ...]:
        if key not in self._tables:
            self._tables[key] = weight_table(self.weights, self._box(key), slack)
        return self._tables[key]

    @cached_property
    def _tables(self) -> dict[Key, tuple[int, ...]]:
        return {}

    def _keys(self, attributes: Outside, choice: Block, outside_too: bool) -> Mapping[Outside, Key]:
        if (attributes, choice) not in self._parted:
            inside: list[int | None] = [None] * len(self.problem.fanouts)
            for attribute, child in zip(attributes, choice, strict=True):
                inside[attribute] = child
            keys: dict[Outside, Key] = {(): tuple(inside)}
            for place in range(len(attributes) if outside_too else 0):
                attribute = attributes[place]
                other = self._all_but(attribute, choice[place])
                for outside, key in list(keys.items()):
                    keys[(*outside, place)] = (*key[:attribute], other, *key[attribute + 1 :])
            self._parted[attributes, choice] = keys
        return self._parted[attributes, choice]

    def _all_but(self, attribute: int, child: int) -> int:
        """Name the children of an attribute but one: the other if there are two, the complement if there are more."""
        children = self._children[attribute]
        return sum(children) - child if len(children) == 2 else ~child

    @cached_property
    def _parted(self) -> dict[tuple[Outside, Block], Mapping[Outside, Key]]:
        return {}

    def _box(self, key: Key) -> Any:
        """Describe a box of blocks."""
        if key not in self._boxes:
            self._boxes[key] = self._describe(key)
        return self._boxes[key]

    def _describe(self, key: Key) -> Any:
        for attribute, entry in enumerate(key):
            before, after = key[:attribute], key[attribute + 1 :]
            if entry is None:
                return self.weights.join([self._box((*before, c, *after)) for c in self._children[attribute]])
            if entry < 0:
                return self.weights.without(self._box((*before, None, *after)), self._box((*before, ~entry, *after)))
        return self._regions.get(key, self._nothing)  # type: ignore[arg-type]

    @cached_property
    def _boxes(self) -> dict[Key, Any]:
        return {}

    @cached_property
    def _nothing(self) -> Any:
        return self.weights.join([])

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
