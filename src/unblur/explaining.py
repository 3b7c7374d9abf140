"""One class, or the outliers, laid open: which cells are impossible and why, which certain, and the odds of the rest.

All of it is data; words are for the doors. Odds count every raw data set that remains as equally likely.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import inf, log2, prod

from unblur.attacking import Attack, Target
from unblur.counting.exact import SLOWER, estimated_work
from unblur.counting.numbers import Count
from unblur.counting.placements import Placements, published_solutions
from unblur.counting.problem import Block, Records
from unblur.counting.weights import Family, solutions, split_ways
from unblur.errors import ConfigError
from unblur.explanations import Chance, Child, Entry, Explanation, Odds, Split, Taker
from unblur.grid import Box, Free, Span
from unblur.hierarchy import Hierarchy

MOST_CELLS = 200
"""A class of more cells is told by blocks: one child of each constrained attribute."""
MOST_EXACT = 1000
"""With more records, and no rule that binds them, chances are rounded: the fractions would have too many digits."""
MOST_WORK = 15_000_000
"""What takes more steps than this (a step is about a microsecond) is left out."""

EMPTY = Odds(Fraction(1), Fraction(0), Fraction(0), Fraction(0), 0)
"""Nobody is there, in any placement."""


def explain(attack: Attack, number: int | None, *, records: Records) -> Explanation:
    """Explain a class by its index in the release, or the outliers (None)."""
    target = attack.target(number) if number is not None else _outliers(attack)
    study = _Study(attack, target, records)
    fits = bool(study.plausible)
    return Explanation(
        id=None if number is None else number + 1,
        labels=study.named(attack.release.labels(target.subject)),
        state=target.subject.state,
        size=target.subject.size,
        k=attack.release.config.k,
        records=records,
        values=attack.grid.volume(target.box),
        all_cells=attack.grid.count_cells(target.box),
        free_cells=study.free_cells,
        published=published_solutions(attack.grid.volume(target.box), target.subject.size, records),
        plausible=study.plausible,
        bound=target.problem.bound,
        takers=tuple(study.takers()),
        children=tuple(study.splits()) if fits else (),
        cells=study.entries() if fits else None,
        by_block=not study.lists_cells,
        singling_out=study.left.singling_out_odds() if fits else None,
        raw_numbers=tuple(study.raw_numbers()),
        dropped=tuple(study.names[attribute] for attribute in target.dropped),
    )


def _outliers(attack: Attack) -> Target:
    if missing := attack.release.config.made.get("missing", 0):
        raise ConfigError(
            f"nothing can be said about the outliers: {missing} of them were suppressed for missing values, "
            "and may be anywhere"
        )
    target = attack.outliers()
    if target is None:
        raise ConfigError("there are no outliers to explain: no record is suppressed")
    return target


@dataclass(frozen=True)
class _Study:
    """One target, with what is asked of it."""

    attack: Attack
    target: Target
    records: Records

    @cached_property
    def left(self) -> Placements:
        return Placements(self.attack.grid, self.target.problem, self.records)

    @cached_property
    def plausible(self) -> Count:
        return self.left.count_solutions()

    @cached_property
    def names(self) -> list[str]:
        return [each.name for each in self.attack.release.config.quasi_identifiers]

    @property
    def free_cells(self) -> int:
        return sum(free.cells for free in self.target.problem.free.values())

    @property
    def lists_cells(self) -> bool:
        """Whether the class has so few cells that each has an entry of its own."""
        return self.attack.grid.count_cells(self.target.box) <= MOST_CELLS

    def named(self, labels: Sequence[str]) -> dict[str, str]:
        return dict(zip(self.names, labels, strict=True))

    def raw_numbers(self) -> Iterator[str]:
        """Name the attributes whose cells are finer than leaves."""
        for each in self.attack.release.config.quasi_identifiers:
            if each.finest_layer == 0 and each.hierarchy.kind == "interval":
                yield each.name

    def takers(self) -> Iterator[Taker]:
        """Tell the earlier classes, and how much of this one each covers."""
        for number in self.target.takers:
            each = self.attack.release.classes[number]
            common = _common(self.target.box, self.attack.boxes[number])
            yield Taker(number + 1, self.named(self.attack.release.labels(each)), each.size, common)

    def splits(self) -> Iterator[Split]:
        """Tell how many records each child may hold, attribute by attribute."""
        bounded = self.target.problem.constrained
        pieces = sum(len(free.pieces) for free in self.target.problem.free.values())
        for attribute in self._constrained if bounded else self._generalized:
            if bounded:
                place = self._constrained.index(attribute)
                children = [label for _, label in self._children(attribute)]
                found = [self._bounded_child(place, child, label) for child, label in enumerate(children)]
                yield Split(self.names[attribute], bounded, tuple(found))
            elif len(self._ranks(attribute)) * pieces <= MOST_WORK // 10:  # raw values may be very many
                found = [self._free_child(attribute, span, label) for span, label in self._children(attribute)]
                yield Split(self.names[attribute], bounded, tuple(found))

    def _free_child(self, attribute: int, span: Span, label: str) -> Child:
        """A child when any record may be anywhere in what is free."""
        pieces = (piece for free in self.target.problem.free.values() for piece in free.pieces)
        here = sum(self.attack.grid.volume(_narrowed(piece, attribute, span)) for piece in pieces)
        size = self.target.problem.size
        return Child(label, self._least(here), self._room(here), Fraction(size * here, self._volume))

    def _bounded_child(self, place: int, child: int, label: str) -> Child:
        inside = [block for block in self.target.problem.blocks if block[place] == child]
        if not inside:
            return Child(label, 0, 0, Fraction(0))
        if not self._affords(sum(self.target.problem.fanouts)):
            return self._rule_alone(place, label)
        chances = self.left.held(inside)
        return Child(label, _odds(chances).least, len(chances) - 1, _odds(chances).expected)

    def _rule_alone(self, place: int, label: str) -> Child:
        """What the bound alone says: no child holds more, so the others cannot hold all."""
        size, bound = self.target.problem.size, self.target.problem.bound
        assert bound is not None
        others = len({block[place] for block in self.target.problem.blocks}) - 1
        return Child(label, max(0, size - others * (bound - 1)), min(size, bound - 1), None)

    def entries(self) -> tuple[Entry, ...] | None:
        """Tell the odds of every cell, or of every block."""
        if not self._affords(len(self.target.problem.blocks)):
            return None
        found = self._cell_entries() if self.lists_cells else self._block_entries()
        return tuple(sorted(found, key=lambda each: (-each.odds.least, each.odds.nobody, -each.odds.expected)))

    def _cell_entries(self) -> Iterator[Entry]:
        grid, problem = self.attack.grid, self.target.problem
        pieces = [(block, piece) for block in problem.blocks for piece in problem.free[block].pieces]
        home = {cell: block for block, piece in pieces for cell in grid.cells(piece)}
        for cell in grid.cells(self.target.box):
            box = tuple((position, position + 1) for position in cell)
            odds = self._cell_odds(home[cell], grid.volume(box)) if cell in home else EMPTY
            yield Entry(self.named(grid.labels(cell)), 1, int(cell in home), self._taken_by(box), odds)

    def _block_entries(self) -> Iterator[Entry]:
        for block in product(*map(range, self.target.problem.fanouts)):
            free = self.target.problem.free.get(block, Free())
            labels = self.named(self.attack.release.labels(self.target.subject))
            box = list(self.target.box)
            for attribute, child in zip(self._constrained, block, strict=True):
                box[attribute], labels[self.names[attribute]] = self._children(attribute)[child]
            odds = self._block_odds(block) if free.cells else EMPTY
            yield Entry(labels, self.attack.grid.count_cells(tuple(box)), free.cells, self._taken_by(tuple(box)), odds)

    def _taken_by(self, box: Box) -> tuple[int, ...]:
        return tuple(number + 1 for number in self.target.takers if _common(box, self.attack.boxes[number]))

    def _block_odds(self, block: Block) -> Odds:
        if self.target.problem.constrained:
            return _odds(self.left.held([block]))
        return self._free_odds(self.target.problem.free[block].volume)

    def _cell_odds(self, block: Block, volume: int) -> Odds:
        """The odds of a cell: the same for all cells of one volume in a block."""
        if (block, volume) not in self._known:
            constrained = self.target.problem.constrained
            self._known[block, volume] = self._shared_odds(block, volume) if constrained else self._free_odds(volume)
        return self._known[block, volume]

    def _shared_odds(self, block: Block, here: int) -> Odds:
        """The odds of a part of a block: as many records as the block may hold, and the chance of each number here."""
        whole, family = self.target.problem.free[block].volume, solutions(self.records)
        chances = [Fraction(0)] * len(self.left.block_odds(block))
        for n, chance in enumerate(self.left.block_odds(block)):
            for j in range(n + 1 if chance else 0):
                chances[j] += chance * Fraction(split_ways(j, n, here, whole - here, family), family.ways(whole, n))
        return _odds(chances)

    @cached_property
    def _known(self) -> dict[tuple[Block, int], Odds]:
        return {}

    def _free_odds(self, here: int) -> Odds:
        """The odds of a volume when any record may be anywhere in what is free."""
        size = self.target.problem.size
        nobody, one = (_chance(n, size, here, self._volume, solutions(self.records)) for n in (0, 1))
        more = 1 - nobody - one if nobody + one < 1 else Fraction(0)
        return Odds(nobody, one, more, Fraction(size * here, self._volume), self._least(here))

    @cached_property
    def _volume(self) -> int:
        return sum(free.volume for free in self.target.problem.free.values())

    def _least(self, here: int) -> int:
        """How many records a volume must hold because they do not fit elsewhere."""
        return self.target.problem.size - self._room(self._volume - here)

    def _room(self, volume: int) -> int:
        """How many of the records fit in a volume."""
        size = self.target.problem.size
        return min(size, volume) if self.records == "distinct" or not volume else size

    def _affords(self, counts: int) -> bool:
        """Whether so many counts, each of a whole distribution in one number, are quick enough."""
        if not self.target.problem.constrained:
            return True
        longer = 1 + (self.target.problem.bound or 0) * self.plausible.log2 / 2000
        return self._work * longer * counts <= MOST_WORK

    @cached_property
    def _work(self) -> float:
        """Estimate the steps of one count: as measured, per state in the large case, per term and state otherwise."""
        problem = self.target.problem
        if not problem.constrained or problem.bound is None:
            return 1
        steps = estimated_work(problem.size, problem.bound, problem.fanouts, problem.heavy_from)
        if problem.size >= 2 * problem.bound:
            return steps / SLOWER
        return 5 * prod(fanout + 1 for fanout in problem.fanouts) + 0.03 * steps

    @cached_property
    def _generalized(self) -> list[int]:
        finest, state = self.attack.release.config.lattice.finest, self.target.subject.state
        return [attribute for attribute, layer in enumerate(state) if layer > finest[attribute]]

    @cached_property
    def _constrained(self) -> list[int]:
        """The attributes that the blocks are made of, in their order."""
        if not self.target.problem.fanouts:
            return []
        return [attribute for attribute in self._generalized if attribute not in self.target.dropped]

    def _children(self, attribute: int) -> list[tuple[Span, str]]:
        """The spans of an attribute's children in order, with their labels."""
        if attribute not in self._found:
            self._found[attribute] = sorted(self._spans(attribute))
        return self._found[attribute]

    @cached_property
    def _found(self) -> dict[int, list[tuple[Span, str]]]:
        return {}

    def _spans(self, attribute: int) -> Iterator[tuple[Span, str]]:
        state, segment = list(self.target.subject.state), list(self.target.subject.segment)
        tree, layer = self._tree(attribute), state[attribute] - 1
        for rank in self._ranks(attribute):
            state[attribute], segment[attribute] = layer, rank
            yield self.attack.grid.box(tuple(state), tuple(segment))[attribute], tree.label(layer, rank)

    def _ranks(self, attribute: int) -> Sequence[int]:
        subject = self.target.subject
        return self._tree(attribute).children(subject.state[attribute], subject.segment[attribute])

    def _tree(self, attribute: int) -> Hierarchy:
        return self.attack.release.config.quasi_identifiers[attribute].hierarchy


def _chance(j: int, n: int, here: int, whole: int, family: Family) -> Chance:
    """The chance that just j (none or one) of n records fall in a part of what they may be in."""
    if n <= MOST_EXACT:
        return Fraction(split_ways(j, n, here, whole - here, family), family.ways(whole, n))
    logs = family.log2(whole - here, n - j) - family.log2(whole, n)
    if logs == -inf:
        return Fraction(0)
    choices = here * (n if family.labelled else 1) if j else 1
    return min(1.0, float(2.0 ** (logs + log2(choices))))


def _odds(chances: Sequence[Fraction]) -> Odds:
    """Sum up a distribution."""
    nobody, one, *more = (*chances, Fraction(0), Fraction(0))
    expected = sum((n * chance for n, chance in enumerate(chances)), Fraction(0))
    return Odds(nobody, one, sum(more, Fraction(0)), expected, next(n for n, chance in enumerate(chances) if chance))


def _narrowed(box: Box, attribute: int, span: Span) -> Box:
    """The part of a box that lies in a span of one attribute."""
    first, last = max(box[attribute][0], span[0]), min(box[attribute][1], span[1])
    return (*box[:attribute], (first, max(first, last)), *box[attribute + 1 :])


def _common(one: Box, other: Box) -> int:
    """Count the cells that two boxes share."""
    return prod(max(0, min(b, d) - max(a, c)) for (a, b), (c, d) in zip(one, other, strict=True))
