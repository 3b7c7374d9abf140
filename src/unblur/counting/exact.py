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
from functools import cached_property, lru_cache
from itertools import combinations, product
from math import comb, prod
from typing import Any

from unblur.counting.problem import Block, Problem
from unblur.counting.spread import Outside, Spread, Term, weight_table
from unblur.counting.weights import Weights

Key = tuple[int | None, ...]
"""A box of blocks: in each attribute one child, all of them (None), or all but one (its complement, negative)."""
NOTHING: Key = ()
Choice = tuple[int | None, ...]
"""One child per attribute that is taken to be heavy; None where none is."""
SLOWER = 20
"""How much longer a step takes when it goes block by block."""
FEW_STATES = 20_000
MOST_STATES = 1_000_000
"""How many numbers to hold at a time: for one pass to be worth it, and at most."""


def estimated_work(size: int, bound: int, fanouts: Sequence[int]) -> int:
    """Estimate the steps of a count, before any region is measured."""
    if size < bound:
        return 1
    attributes, slack = len(fanouts), size - bound
    if size < 2 * bound:
        steps = int((slack + 1) ** attributes) * slack if slack else 1
        return prod(fanout + 1 for fanout in fanouts) * int(2**attributes) * steps // 4
    states = [min(comb(size + fanout, fanout), int(bound**fanout)) for fanout in sorted(fanouts)]
    return SLOWER * prod(fanouts) * prod(states[:-1]) * bound**2


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
        if problem.size == problem.bound and not fixed:
            return self._without_slack(rest)
        if problem.size < 2 * problem.bound:
            return sum(self._with_heavy(*options, fixed, rest) for options in self._options)
        return self._by_blocks(fixed, rest)

    @cached_property
    def _regions(self) -> dict[Block, Any]:
        return {block: self.weights.of(self.problem.free[block]) for block in self.problem.blocks}

    @cached_property
    def _children(self) -> tuple[tuple[int, ...], ...]:
        """The children of each attribute that a record can be in."""
        attributes = range(len(self.problem.fanouts))
        return tuple(tuple(sorted({block[attribute] for block in self.problem.blocks})) for attribute in attributes)

    def _without_slack(self, rest: int) -> int:
        """Count when a heavy child would hold all records: every term is a single number."""
        total = 0
        for choice in product(*((None, *children) for children in self._children)):
            ways = self.weights.ways(self._box(choice), rest)
            total += ways if (len(choice) - choice.count(None)) % 2 == 0 else -ways
        return total

    @cached_property
    def _options(self) -> list[tuple[Outside, list[list[int | None]]]]:
        """Attributes, and which of their children may be taken to be heavy (None: no matter): all that is to be tried.

        Small problems go through in one piece, large ones by the set of attributes that have a heavy child.
        """
        attributes = tuple(range(len(self.problem.fanouts)))
        slack = self.problem.size - (self.problem.bound or 0)
        if prod((len(children) + 1) * (slack + 1) for children in self._children) <= FEW_STATES:
            return [(attributes, [[None, *children] for children in self._children])]
        chosen = (each for n in range(len(attributes) + 1) for each in combinations(attributes, n))
        return [(each, [list(self._children[attribute]) for attribute in each]) for each in chosen]

    def _with_heavy(
        self, attributes: Outside, options: list[list[int | None]], fixed: Mapping[Block, int], rest: int
    ) -> int:
        """Count the ways to place the rest with heavy children among the options, by inclusion and exclusion."""
        assert self.problem.bound is not None
        slack = self.problem.size - self.problem.bound
        terms = [self._term(attributes, choice, fixed, slack) for choice in product(*options)]
        terms = [term for term in terms if all(n <= slack for n in term.beside)]
        if not slack or not attributes:
            return sum(term.sign * self.weights.ways(term.inside, rest) for term in terms)
        batch = max(1, MOST_STATES // (slack + 1) ** (len(attributes) + 1))
        return sum(
            Spread(self.weights, terms[start : start + batch], rest, slack).count()
            for start in range(0, len(terms), batch)
        )

    def _term(self, attributes: Outside, choice: Choice, fixed: Mapping[Block, int], slack: int) -> Term:
        """Describe the regions inside and outside of the chosen children, without the blocks that are given."""
        sign = (-1) ** sum(child is not None for child in choice)
        keys = _keys(self._children, attributes, choice, bool(slack))
        if not fixed:
            tables = {outside: self._table(key, slack) for outside, key in keys.items() if outside}
            return Term(sign, self._box(keys[()]), tables, (0,) * len(attributes))
        regions = {outside: self._box(key) for outside, key in keys.items()}
        beside = [0] * len(attributes)
        for block, n in fixed.items():
            outside = tuple(
                place for place, child in enumerate(choice) if child is not None and block[attributes[place]] != child
            )
            if outside in regions:
                regions[outside] = self.weights.without(regions[outside], self._regions[block])
            for place in outside:
                beside[place] += n
        tables = {outside: weight_table(self.weights, regions[outside], slack) for outside in regions if outside}
        return Term(sign, regions[()], tables, tuple(beside))

    def _table(self, key: Key, slack: int) -> tuple[int, ...]:
        if key not in self._tables:
            self._tables[key] = weight_table(self.weights, self._box(key), slack)
        return self._tables[key]

    @cached_property
    def _tables(self) -> dict[Key, tuple[int, ...]]:
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


@lru_cache(maxsize=50_000)
def _keys(
    children: tuple[tuple[int, ...], ...], attributes: Outside, choice: Choice, outside_too: bool
) -> Mapping[Outside, Key]:
    """Name the boxes inside and outside of the chosen children: many classes have the same."""
    inside: list[int | None] = [None] * len(children)
    for attribute, child in zip(attributes, choice, strict=True):
        inside[attribute] = child
    keys: dict[Outside, Key] = {(): tuple(inside)}
    for place, child in enumerate(choice if outside_too else ()):
        for outside, key in list(keys.items()):
            keys[(*outside, place)] = _all_but(key, attributes[place], child, children[attributes[place]])
    return keys


def _all_but(key: Key, attribute: int, child: int | None, children: tuple[int, ...]) -> Key:
    """Take all children of an attribute but one: the other if there are two, nothing if none is left out."""
    if child is None or not key:
        return NOTHING
    others = sum(children) - child if len(children) == 2 else ~child
    return (*key[:attribute], others, *key[attribute + 1 :])


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
