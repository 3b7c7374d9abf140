"""Counting where an order is open: some order must hold, so counts are added and subtracted.

The tables that keep to at least one of several sets of limits are those of the first, and of the second, less those of
both, and so on. Each *term* is a system with more limits, solved for itself, with a sign.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from unblur.counting.deadline import check
from unblur.counting.problem import Records
from unblur.grid import Grid
from unblur.joint.exact import Solved, solve
from unblur.joint.front import OutOfReach
from unblur.joint.frontier import MOST_MOVES, MOST_STATES
from unblur.joint.plan import Limits, System
from unblur.joint.program import Component
from unblur.joint.tightening import least

MOST_TERMS = 64
Alternative = frozenset[tuple[int, frozenset[int]]]
"""Limits that hold together."""


@dataclass(frozen=True)
class Blend:
    """A component in which some order is open."""

    component: Component
    terms: tuple[tuple[int, Solved], ...]
    """With the sign and number of times that each counts."""
    orders: tuple[Solved, ...]
    """The terms in which one order is taken; a plausible table is in at least one of them."""

    @cached_property
    def solutions(self) -> int:
        """Count the raw data sets."""
        return sum(times * each.solutions for times, each in self.terms)

    @cached_property
    def combinations(self) -> int:
        """Count the ways to say how many records each cell holds."""
        return sum(times * each.combinations for times, each in self.terms)

    def held(self, group: int) -> list[Fraction] | list[float]:
        """The odds that a group holds 0, 1, 2, … records."""
        shares = [(Fraction(times * each.solutions, self.solutions), each) for times, each in self.terms]
        columns: list[tuple[Fraction, Sequence[Fraction | float]]]
        columns = [(share, each.held(group)) for share, each in shares if share]
        exact = all(isinstance(chance, Fraction) for _, odds in columns for chance in odds)
        found = [Fraction(0)] * max(len(odds) for _, odds in columns)
        for share, odds in columns:
            for n, chance in enumerate(odds):
                found[n] += share * as_fraction(chance)
        return found if exact else [max(0.0, float(chance)) for chance in found]

    def possible(self, group: int) -> list[int]:
        """The numbers of records that a group may hold."""
        return sorted({n for each in self.orders if each.solutions for n in each.possible(group)})

    def without_singles(self, owner: int) -> int:
        """Count the raw data sets in which no cell holds exactly one record of a class."""
        return sum(times * each.without_singles(owner) for times, each in self.terms)

    def singling_out(self, owner: int) -> Fraction:
        """The odds that some cell holds exactly one record of a class."""
        return 1 - Fraction(self.without_singles(owner), self.solutions)

    def sample(self, number: int, rng: np.random.Generator) -> NDArray[np.int16]:
        """Draw the numbers of records per group: from an order, less often the more orders a draw is in."""
        weights = np.array([float(Fraction(each.solutions, self.solutions)) for each in self.orders])
        found: list[NDArray[np.int16]] = []
        while sum(map(len, found)) < number:
            check()
            for place, many in enumerate(rng.multinomial(2 * number, weights / weights.sum())):
                drawn = self.orders[place].sample(int(many), rng) if many else np.empty((0, 0), np.int16)
                if len(drawn):
                    found.append(drawn[rng.random(len(drawn)) * self._orders_of(drawn) < 1])
        together = np.concatenate(found)
        return together[rng.permutation(len(together))[:number]]

    def _orders_of(self, drawn: NDArray[np.int16]) -> NDArray[np.int64]:
        """In how many orders each draw is."""
        found = np.ones(len(drawn), int)
        for choice in self.component.choices:
            found *= np.sum([keeps(drawn, limits) for limits in choice], axis=0)
        return found


def as_fraction(chance: Fraction | float) -> Fraction:
    """The chance itself, whatever it is written in."""
    return chance if isinstance(chance, Fraction) else Fraction(float(chance))


def keeps(drawn: NDArray[np.int16], limits: Limits) -> NDArray[np.bool_]:
    """Tell which draws keep some limits."""
    kept = np.ones(len(drawn), bool)
    for most, members in limits:
        kept &= drawn[:, sorted(members)].sum(axis=1, dtype=int) <= most
    return kept


def in_some_order(drawn: NDArray[np.int16], component: Component) -> NDArray[np.bool_]:
    """Tell which draws keep to what some order says."""
    kept = np.ones(len(drawn), bool)
    for choice in component.choices:
        kept &= np.any([keeps(drawn, limits) for limits in choice], axis=0)
    return kept


def solve_component(grid: Grid, component: Component, records: Records, *, part: int = 1) -> Solved | Blend:
    """Solve a component, in every order, with a part of what the engine may use; raises `OutOfReach`."""
    terms, singles = _terms(component.choices), list(_singles(component.choices))
    alternatives = {**terms, **dict.fromkeys(singles)}
    known = {
        limits: solve(
            grid,
            _with(component.system, limits),
            component.groups,
            records,
            most_states=MOST_STATES // part,
            most_moves=MOST_MOVES // part // len(alternatives),  # the moves of all of them are kept
        )
        for limits in alternatives
    }
    if not component.choices:
        return known[frozenset()]
    found = tuple((times, known[limits]) for limits, times in terms.items())
    return Blend(component, found, tuple(known[limits] for limits in singles))


def _with(system: System, limits: Alternative) -> System:
    """Add limits to a system, and leave out what then follows."""
    return System(system.sizes, system.owners, tuple(least((*system.limits, *limits)))) if limits else system


def _singles(choices: Sequence[Sequence[Limits]]) -> Iterator[Alternative]:
    """One order of each choice."""
    for orders in product(*choices):
        yield frozenset(least([limit for order in orders for limit in order]))


def _terms(choices: Sequence[Sequence[Limits]]) -> dict[Alternative, int]:
    """Write "of every choice, some order" as a sum of sets of limits that all hold."""
    total: Counter[Alternative] = Counter({frozenset(): 1})
    for choice in choices:
        none: Counter[Alternative] = Counter({frozenset(): 1})
        for order in choice:
            for limits, times in list(none.items()):
                none[_both(limits, order)] -= times
        some = Counter({limits: -times for limits, times in none.items() if limits})
        joined: Counter[Alternative] = Counter()
        for (a, m), (b, n) in product(total.items(), some.items()):
            joined[_both(a, b)] += m * n
        total = Counter({limits: times for limits, times in joined.items() if times})
        if len(total) > MOST_TERMS:
            raise OutOfReach(f"more than {MOST_TERMS} terms for the orders that are open")
    return dict(total)


def _both(limits: Alternative, others: Limits | Alternative) -> Alternative:
    return frozenset(least([*limits, *others]))
