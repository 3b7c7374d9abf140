"""Where the order of used states is open: what each order would say, so that all of them can be allowed.

States that tie may have come in any order; so may, under mechanisms other than the paper's, states of which neither is
finer. Each order says something of its own: a state that came before another leaves none of the other's records in its
classes, and fewer than k of them in any other group. A table is plausible if it keeps to what *some* order says. (Which
class a record is in does not depend on the order: the class that came first has all the records of its group, in any
other order at most as many, and its size is published; and so on.)

States that say nothing about each other do not matter to each other: only small *clusters* of states have to be put in
order. Of a cluster, orders that say more than another one are left out, for whoever keeps to them keeps to the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations

from unblur.counting.deadline import check
from unblur.joint.rules import Rule, RuleBook
from unblur.joint.thinning import Caps, is_implied
from unblur.lattice import State

Choice = tuple[tuple[Rule, ...], ...]
"""What the orders of a cluster say: all the rules of one of them hold."""

MOST_STATES = 5
"""Clusters of more states have too many orders."""
MOST_WORK = 20_000_000
"""Used states times atoms; beyond, orders are not looked at."""


@dataclass(frozen=True)
class Orders:
    """What open orders leave to choose."""

    choices: tuple[Choice, ...]
    """A choice for each cluster in which every order says something."""
    left_out: bool
    """Whether a cluster was too large: nothing is said about the order of its states."""


def open_orders(book: RuleBook, caps: Caps, rules: Sequence[Rule]) -> Orders:
    """Put states into order, in every way that the release and the mechanism allow."""
    if len(book.used) * len(book.atoms.owners) > MOST_WORK:
        return Orders((), any(book.rivals(state) for state in book.used))
    found = _Clusters(book, caps, rules)
    clusters = list(found.clusters())
    small = [cluster for cluster in clusters if len(cluster) <= MOST_STATES]
    choices = (tuple(found.orders(cluster)) for cluster in small)
    return Orders(tuple(choice for choice in choices if all(choice)), len(small) < len(clusters))


@dataclass(frozen=True)
class _Clusters:
    book: RuleBook
    caps: Caps
    rules: Sequence[Rule]

    def clusters(self) -> Iterator[list[State]]:
        """States of which some order says something about others, directly or in a chain."""
        links = {state: self._concerned(state) for state in self.book.used}
        for state, others in links.items():
            for other in others:
                links[other].add(state)
        seen: set[State] = set()
        for start in links:
            if start in seen or not links[start]:
                continue
            cluster, fresh = {start}, [start]
            while fresh:
                reached = links[fresh.pop()] - cluster
                cluster |= reached
                fresh += reached
            seen |= cluster
            yield sorted(cluster)

    def _concerned(self, state: State) -> set[State]:
        """The rivals about which a state would say something, had it come before all of them."""
        check()
        rivals = self.book.rivals(state)
        if not rivals:
            return set()
        told = self._telling(self.book.if_before(state, rivals))
        owners = {owner for rule in told for owner in self.caps.owners(rule.atoms)}
        return {self.book.atoms.subjects[owner].subject.state for owner in owners} & set(rivals)

    def _telling(self, rules: Iterator[Rule]) -> list[Rule]:
        return [rule for rule in rules if not is_implied(rule, self.caps, self.rules)]

    def orders(self, cluster: Sequence[State]) -> list[tuple[Rule, ...]]:
        """What the orders of a cluster say, those left out that say more than another."""
        rivals = {state: set(self.book.rivals(state)) & set(cluster) for state in cluster}

        @cache
        def told(state: State, later: frozenset[State]) -> tuple[Rule, ...]:
            return tuple(self._telling(self.book.if_before(state, later)))

        found: dict[tuple[Rule, ...], None] = {}
        for order in permutations(cluster):
            if self._is_possible(order, rivals):
                later = [frozenset(order[place:]) & rivals[state] for place, state in enumerate(order)]
                everything = {rule for each in zip(order, later, strict=True) for rule in told(*each)}
                found[tuple(sorted(everything, key=lambda rule: (rule.most, rule.atoms)))] = None
        kept: list[tuple[Rule, ...]] = []
        for rules in sorted(found, key=len):
            if not any(self._follow(other, rules) for other in kept):
                kept = [other for other in kept if not self._follow(rules, other)] + [rules]
        return kept

    def _is_possible(self, order: Sequence[State], rivals: dict[State, set[State]]) -> bool:
        """Whether no state stands before one that surely came earlier."""
        before, used = self.book.attack.inference.before, self.book.used
        pairs = ((a, b) for place, a in enumerate(order) for b in order[place + 1 :] if b not in rivals[a])
        return all(before(used[a], used[b]) for a, b in pairs)

    def _follow(self, rules: Sequence[Rule], others: Sequence[Rule]) -> bool:
        """Whether some rules say nothing beyond others."""
        return all(is_implied(rule, self.caps, others) for rule in rules)
