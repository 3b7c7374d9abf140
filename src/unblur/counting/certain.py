"""The fewest records that some blocks must hold: what is certain about them.

Whether a placement is possible depends on little: which blocks are free, and how many records fit in each. Many classes
are alike in that, so what was found out is remembered.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from operator import ne

from unblur.counting.exact import ExactCount
from unblur.counting.problem import Block, Problem, Records
from unblur.counting.weights import DISTINCT, Marked, solutions
from unblur.grid import Free

Held = Mapping[tuple[int, int], int]
"""The records of each child, by attribute and child."""
MOST_REMEMBERED = 10_000


@dataclass(frozen=True)
class Rooms:
    """A class of which only that is kept on which it depends what is possible."""

    size: int
    fanouts: tuple[int, ...]
    bound: int | None
    heavy_from: int | None
    records: Records
    rooms: tuple[tuple[Block, int], ...]
    """The free blocks, in order, and how many of the records fit in each."""

    @classmethod
    def of(cls, problem: Problem, records: Records) -> Rooms:
        """Keep what matters."""
        rooms = tuple((block, room(problem.free[block].volume, problem.size, records)) for block in problem.blocks)
        return cls(problem.size, problem.fanouts, problem.bound, problem.heavy_from, records, rooms)

    @cached_property
    def problem(self) -> Problem:
        """The smallest problem of this kind: distinct records in blocks that have just so many values."""
        free = {block: Free(n, 1, (tuple((child, child + 1) for child in block),)) for block, n in self.rooms}
        return Problem(self.size, self.fanouts, free, self.bound, self.heavy_from)

    def least(self, blocks: frozenset[Block]) -> int:
        """The fewest records that some blocks may hold together."""
        if len(blocks) == len(self.rooms):
            return self.size
        if self.put_elsewhere(blocks) is not None or self._is_possible(blocks, 0):
            return 0
        if len(blocks) > 1:
            return next(n for n, chance in enumerate(held(self.problem, blocks, "distinct")) if chance)
        return next(n for n in range(1, self.size + 1) if self._is_possible(blocks, n))

    def _is_possible(self, blocks: frozenset[Block], most: int) -> bool:
        """Whether there are placements with at most so many records in each of some blocks."""
        free = {**self.problem.free, **dict.fromkeys(blocks, Free(most, min(most, 1)))}
        return ExactCount(Problem(self.size, self.fanouts, free, self.bound, self.heavy_from), DISTINCT).count() > 0

    def put_elsewhere(self, avoided: frozenset[Block]) -> set[Block] | None:
        """Try to place all records without some blocks: fill the others one by one; None if that does not succeed."""
        left = [(block, n) for block, n in self.rooms if block not in avoided]
        if self.size == self.bound and (found := self._scattered(left)):
            return found
        if found := self._halved(left):
            return found
        return self._filled(left) or self._filled(left[::-1])

    def _filled(self, rooms: Iterable[tuple[Block, int]]) -> set[Block] | None:
        """Fill one block after the other."""
        left, held, taken = self.size, Counter[tuple[int, int]](), set()
        for block, room in rooms:
            if left and (n := min(left, room, self._space(block, held))) > 0:
                taken.add(block)
                left -= n
                held.update(dict.fromkeys(enumerate(block), n))
        return taken if not left and keeps_rules(self.problem, held) else None

    def _scattered(self, rooms: Sequence[tuple[Block, int]]) -> set[Block] | None:
        """Where only all records are too many for a child: a block, and one apart from it in each attribute."""
        if not rooms:
            return None
        first, space = rooms[0]
        found = {first}
        for attribute, child in enumerate(first):
            if all(block[attribute] == child for block in found):
                apart = next((block for block, _ in rooms if block[attribute] != child), None)
                if apart is None:
                    return None
                found.add(apart)
        return found if space >= self.size - len(found) + 1 > 0 else None

    def _halved(self, rooms: Iterable[tuple[Block, int]]) -> set[Block] | None:
        """Half of the records in a block, and half in the one opposite, if that is another child in each attribute."""
        half = -(-self.size // 2)
        if self.bound is None or half >= min(self.bound, self.heavy_from or self.bound):
            return None
        roomy = {block for block, n in rooms if n >= half}
        for block in sorted(roomy):
            opposite = tuple(fanout - 1 - child for fanout, child in zip(self.fanouts, block, strict=True))
            if opposite in roomy and all(map(ne, block, opposite)):
                return {block, opposite}
        return None

    def _space(self, block: Block, held: Held) -> int:
        """How many records the children of a block can take beside those that they hold."""
        if self.bound is None:
            return self.size
        return min([self.size, *(self.bound - 1 - held[child] for child in enumerate(block))])


def room(volume: int, size: int, records: Records) -> int:
    """How many of a class's records fit in a volume."""
    return min(volume, size) if records == "distinct" or not volume else size


def keeps_rules(problem: Problem, held: Held) -> bool:
    """Whether the children may hold so many records."""
    by_attribute: dict[int, list[int]] = defaultdict(list)
    for (attribute, _), n in held.items():
        by_attribute[attribute].append(n)
    return all(map(problem.allows, by_attribute.values()))


@lru_cache(maxsize=MOST_REMEMBERED)
def least_held(rooms: Rooms, groups: tuple[frozenset[Block], ...]) -> tuple[int, ...]:
    """The fewest records that each group of blocks may hold."""
    left = set(groups)
    for blocks in groups:
        # A placement without some blocks leaves others empty, too.
        if blocks in left and (taken := rooms.put_elsewhere(blocks)) is not None:
            left = {each for each in left if each & taken}
    least = {blocks: rooms.least(blocks) for blocks in left}
    return tuple(least.get(blocks, 0) for blocks in groups)


def held(problem: Problem, blocks: Iterable[Block], records: Records) -> list[Fraction]:
    """The probability that some blocks together hold 0, 1, 2, … records, up to the most they can hold."""
    pieces = frozenset(problem.free[block].pieces for block in blocks)
    total = ExactCount(problem, solutions(records)).count()
    marked = Marked(solutions(records), pieces, total.bit_length())
    return [Fraction(n, total) for n in marked.read(ExactCount(problem, marked).count())]
