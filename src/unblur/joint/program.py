"""The joint program: which numbers of records per cell, over all classes together, explain the release.

When a state was tried, the records of its own classes, of all later ones and of the outliers were still there. So each
of its groups that is no class holds fewer than k of them; a group that is a class holds nobody later, which is why its
cells are not free for later classes. These *rules*, with the sizes of the classes, describe exactly the tables that the
paper's algorithm turns into this release, provided no tie leaves the order of two states open. Where one does, what
some order says must hold (see `unblur.joint.orders`).

Under another mechanism the same is said of the states that were surely used, over the classes that surely came later;
and a state one layer finer, which was not usable, had no group that reached the mechanism's bound. That keeps the truth
feasible and may leave too much: the program is then *relaxed*, and its count an upper bound.

Only what the rules tell apart matters: free cells of a class that lie in the same rules are one *group*, told by its
volume. Classes that share no rule are independent of each other: they fall into *components*, and counts multiply.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_

import numpy as np

from unblur.attacking import Attack, Target
from unblur.counting.placements import Cell
from unblur.grid import Free
from unblur.joint.atoms import Atoms
from unblur.joint.orders import Choice, Orders, open_orders
from unblur.joint.plan import Limits, System, bits
from unblur.joint.rules import Rule, RuleBook
from unblur.joint.thinning import Caps, is_implied, thin
from unblur.mechanisms import IterativeInference, PaperInference

TIED = "states that tie leave their order open"
ANY_ORDER = "states that tie are taken in any order: what decides between them depends on more than the cells"
UNSURE = "the mechanism leaves the order of some classes open"
COARSE = "rules about single raw values are left out"
NARROWED = "of very many states, only those near the classes are asked about"
MISSING = "nothing is known of the outliers: some were suppressed for missing values"


@dataclass(frozen=True)
class Component:
    """Classes that share rules, directly or through others, and share none with the rest."""

    targets: tuple[Target, ...]
    numbers: tuple[int, ...]
    """Their places among the subjects of the program."""
    groups: tuple[Free, ...]
    """Free cells of one class that no rule tells apart."""
    system: System
    """The groups and the rules, in numbers; classes by their place in `targets`."""
    choices: tuple[tuple[Limits, ...], ...]
    """Further limits, where an order is open: of each choice, all limits of one alternative hold."""
    plain: bool
    """Whether this is a single class of which nothing is known beyond its own problem."""

    @property
    def linear(self) -> bool:
        """Whether sizes and limits say everything; not so where heavy children of a class count together."""
        return not any(target.problem.together for target in self.targets)


@dataclass(frozen=True)
class Program:
    """Everything that may be inferred from a release, over all classes together."""

    attack: Attack
    subjects: tuple[Target, ...]
    """The classes in the order of the release, then the outliers if there are any and something is known of them."""
    components: tuple[Component, ...]
    relaxed: tuple[str, ...]
    """Why the count may be too large, a phrase each; empty if the program is exact."""

    def allows(self, placements: Sequence[Mapping[Cell, int]]) -> bool:
        """Tell whether the records of each subject, by cell, keep all rules."""
        return all(self._keeps(component, placements) for component in self.components)

    def _keeps(self, component: Component, placements: Sequence[Mapping[Cell, int]]) -> bool:
        system = component.system

        def within(limits: Limits) -> bool:
            return all(sum(counts[group] for group in members) <= most for most, members in limits)

        counts = [
            sum(n for cell, n in placements[component.numbers[owner]].items() if _holds(free, cell))
            for free, owner in zip(component.groups, system.owners, strict=True)
        ]
        held = [0] * len(system.sizes)
        for owner, n in zip(system.owners, counts, strict=True):
            held[owner] += n
        some_order = all(any(map(within, choice)) for choice in component.choices)
        return tuple(held) == tuple(system.sizes) and within(system.limits) and some_order


def _holds(free: Free, cell: Cell) -> bool:
    return any(all(a <= x < b for x, (a, b) in zip(cell, piece, strict=True)) for piece in free.pieces)


def joint_program(attack: Attack) -> Program:
    """State the program of a release."""
    outliers = None if attack.release.config.missing else attack.outliers()
    subjects = (*attack.targets(), *([outliers] if outliers else []))
    atoms = Atoms(attack.grid, subjects)
    book = RuleBook(attack, atoms)
    caps = Caps.of_subjects(atoms, book.own())
    rules = thin(book.shared(), caps)
    orders = open_orders(book, caps, rules)
    components = _Parting(atoms, caps, rules, orders.choices).components()
    return Program(attack, subjects, tuple(components), tuple(_reasons(book, caps, rules, orders)))


def _reasons(book: RuleBook, caps: Caps, rules: Sequence[Rule], orders: Orders) -> Iterator[str]:
    """Say what the rules leave out."""
    release = book.attack.release
    inference = book.attack.inference
    if isinstance(inference, IterativeInference):
        several = any(inference.coarsest(each) != each.state for each in release.classes)
        yield from [UNSURE] if orders.left_out or several else []
    elif not isinstance(inference, PaperInference):
        yield UNSURE
    elif any(not is_implied(rule, caps, rules) for rule in book.of_ties()):
        yield TIED if orders.left_out else ANY_ORDER
    if book.atoms.coarse or any(target.dropped for target in book.atoms.subjects):
        yield COARSE
    if book.narrowed:
        yield NARROWED
    if release.outliers and release.config.missing:
        yield MISSING


@dataclass(frozen=True)
class _Parting:
    """Parts the program into classes that have to do with each other."""

    atoms: Atoms
    caps: Caps
    rules: Sequence[Rule]
    choices: Sequence[Choice]

    def components(self) -> Iterator[Component]:
        linked = [rule.atoms for rule in self.rules] + [_union(choice) for choice in self.choices]
        for members in _connected(len(self.atoms.subjects), [self.caps.owners(each) for each in linked]):
            yield self._component(members)

    def _component(self, members: Sequence[int]) -> Component:
        keys = [(owner, signature) for owner in members for signature in self._merged[owner]]
        groups = tuple(self.atoms.measure(self._merged[owner][signature]) for owner, signature in keys)
        places: dict[Rule, set[int]] = defaultdict(set)
        for group, (_, signature) in enumerate(keys):
            for number in signature:
                places[self._everything[number]].add(group)
        certain = [rule for rule in self.rules if rule in places]

        def limits(rules: Iterable[Rule]) -> Limits:
            return tuple((rule.most, frozenset(places[rule])) for rule in rules)

        choices = tuple(
            tuple(limits(order) for order in choice)
            for choice in self.choices
            if self.caps.owners(_union(choice))[0] in members
        )
        targets = tuple(self.atoms.subjects[owner] for owner in members)
        owners = tuple(members.index(owner) for owner, _ in keys)
        system = System(tuple(target.subject.size for target in targets), owners, limits(certain))
        own = {rule for owner in members for rule in self.caps.own[owner]}
        plain = len(members) == 1 and not choices and own.issuperset(certain)
        return Component(targets, tuple(members), groups, system, choices, plain)

    @cached_property
    def _everything(self) -> list[Rule]:
        """The rules that hold, and those that hold in some order."""
        return list(dict.fromkeys([*self.rules, *(rule for each in self.choices for order in each for rule in order)]))

    @cached_property
    def _merged(self) -> Mapping[int, Mapping[tuple[int, ...], list[int]]]:
        """Per class its atoms by the rules that they lie in."""
        signatures: list[list[int]] = [[] for _ in self.atoms.owners]
        for number, rule in enumerate(self._everything):
            for atom in bits(rule.atoms):
                signatures[atom].append(number)
        merged: dict[int, dict[tuple[int, ...], list[int]]] = defaultdict(lambda: defaultdict(list))
        for atom, (owner, signature) in enumerate(zip(self.atoms.owners.tolist(), signatures, strict=True)):
            merged[owner][tuple(signature)].append(atom)
        return merged


def _union(choice: Choice) -> int:
    """The atoms that a choice is about."""
    return reduce(or_, (rule.atoms for order in choice for rule in order))


def _connected(number: int, sets: Sequence[Sequence[int]]) -> list[list[int]]:
    """Part so many things into those that sets join."""
    label = np.arange(number)
    for members in sets:
        label[np.isin(label, label[list(members)])] = label[members[0]]
    return [np.flatnonzero(label == each).tolist() for each in dict.fromkeys(label.tolist())]
