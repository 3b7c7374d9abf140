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
from math import comb, gcd, prod
from typing import Any, NamedTuple

import numpy as np

from unblur.counting.deadline import check
from unblur.counting.light import BITS, count_light
from unblur.counting.problem import Block, Problem
from unblur.counting.spread import Outside, Spread, Term, weight_table
from unblur.counting.weights import Family, Weights

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


def estimated_work(size: int, bound: int, fanouts: Sequence[int], heavy_from: int | None = None) -> int:
    """Estimate the steps of a count, before any region is measured."""
    if size < bound:
        return 1
    k = heavy_from or bound
    one_light = 2 * k <= size and k < bound and all(fanout <= 2 for fanout in fanouts)
    attributes, slack = len(fanouts), k - 1 if one_light else size - bound
    if size < 2 * k or one_light:
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
        check()
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
        if problem.together:
            few = all(len(children) <= 2 for children in self._children)
            return self._with_one_light(fixed, rest) if few else self._by_blocks(fixed, rest)
        if problem.size < 2 * problem.bound:
            if not fixed and isinstance(self.weights, Family):
                return self._light(self.weights, problem.bound)
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

    def _with_one_light(self, fixed: Mapping[Block, int], rest: int) -> int:
        """Count when of two children one must be heavy: the other takes what the bound does not let the heavy one hold.

        Both heavy would hold all records together, which is too many; both light cannot hold so many.
        """
        problem = self.problem
        assert problem.bound is not None and problem.heavy_from is not None
        most, least = problem.heavy_from - 1, problem.size - problem.bound + 1
        if least > most:
            return 0
        attributes = tuple(range(len(problem.fanouts)))
        terms = [self._term(attributes, choice, fixed, most) for choice in product(*self._children)]
        terms = [term for term in terms if all(n <= most for n in term.beside)]
        return (-1) ** len(attributes) * Spread(self.weights, terms, rest, most, least).count() if terms else 0

    def _light(self, family: Family, bound: int) -> int:
        """Count by arrays: much faster, but only where a region is a number and no block is given."""
        unit = (gcd(*self._regions.values()) or 1) if family.scales else 1
        numbers = {block: number // unit for block, number in self._regions.items()}
        dtype = np.int64 if sum(numbers.values()) < 2**BITS else object
        blocks = np.zeros(self.problem.fanouts, dtype=dtype)
        for block, number in numbers.items():
            blocks[block] = number
        size = self.problem.size
        return int(unit**size) * count_light(blocks, size, bound, family.formula, labelled=family.labelled)

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
        check()
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
        """Go through the blocks, those of one child of the widest attribute after those of another.

        The state is what the children of the other attributes hold, the heavy children of the widest one together, and
        the current child.
        """
        problem = self.problem
        assert problem.bound is not None
        outer = max(range(len(problem.fanouts)), key=problem.fanouts.__getitem__)
        held = [[0] * fanout for fanout in problem.fanouts]
        for block, n in fixed.items():
            for attribute, child in enumerate(block):
                held[attribute][child] += n
        known = held.pop(outer)
        if any(n >= problem.bound for each in (known, *held) for n in each):
            return 0
        states: dict[_State, int] = {_State(tuple(map(tuple, held)), 0, 0, 0): 1}
        for child in sorted({block[outer] for block in problem.blocks}):
            states = {state._replace(current=known[child]): ways for state, ways in states.items()}
            for block in problem.blocks:
                if block[outer] == child and block not in fixed:
                    states = self._put(states, block, outer, rest)
            states = self._leave(states)
        return sum(ways for state, ways in states.items() if state.n == rest and all(map(problem.allows, state.held)))

    def _put(self, states: Mapping[_State, int], block: Block, outer: int, rest: int) -> dict[_State, int]:
        """Place 0, 1, 2, … records in a block."""
        assert self.problem.bound is not None
        following: dict[_State, int] = defaultdict(int)
        inner, most = (*block[:outer], *block[outer + 1 :]), self.problem.bound - 1
        ways = [self.weights.ways(self._regions[block], n) for n in range(min(rest, most) + 1)]
        for state, before in states.items():
            check()
            others = (most - each[child] for each, child in zip(state.held, inner, strict=True))
            for more in range(min([rest - state.n, most - state.current, *others]) + 1):
                if ways[more]:
                    orders = comb(state.n + more, more) if self.weights.labelled else 1
                    following[state.placed(inner, more)] += before * ways[more] * orders
        return following

    def _leave(self, states: Mapping[_State, int]) -> dict[_State, int]:
        """Leave the current child: its number is forgotten, unless heavy children count together."""
        assert self.problem.bound is not None
        merged: dict[_State, int] = defaultdict(int)
        for state, ways in states.items():
            counts = self.problem.together and state.current >= (self.problem.heavy_from or 0)
            heavy = state.heavy + (state.current if counts else 0)
            if heavy < self.problem.bound:
                merged[state._replace(current=0, heavy=heavy)] += ways
        return merged


class _State(NamedTuple):
    """How far the blocks have been filled."""

    held: tuple[tuple[int, ...], ...]
    """The records of each child of the attributes but the widest."""
    current: int
    """The records of the current child of the widest."""
    heavy: int
    """The records of its heavy children, where they count together."""
    n: int
    """All records that were placed."""

    def placed(self, inner: Block, more: int) -> _State:
        """Place more records in a block."""
        if not more:
            return self
        held = tuple(
            (*each[:child], each[child] + more, *each[child + 1 :])
            for each, child in zip(self.held, inner, strict=True)
        )
        return _State(held, self.current + more, self.heavy, self.n + more)


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
