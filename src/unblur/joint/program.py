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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

import numpy as np

from unblur.attacking import Attack, Target
from unblur.counting.placements import Cell
from unblur.grid import Free
from unblur.joint.atoms import Atoms
from unblur.joint.orders import Choice, Orders, open_orders
from unblur.joint.plan import Limits, System
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
    components = _components(atoms, caps, rules, orders.choices)
    return Program(attack, subjects, tuple(components), tuple(_reasons(book, caps, rules, orders)))


def _reasons(book: RuleBook, caps: Caps, rules: Sequence[Rule], orders: Orders) -> Iterator[str]:
    """Say what the rules leave out."""
    release = book.attack.release
    inference = book.attack.inference
    if isinstance(inference, IterativeInference):
        yield from [UNSURE] if orders.left_out else []
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


def _components(atoms: Atoms, caps: Caps, rules: Sequence[Rule], choices: Sequence[Choice]) -> Iterator[Component]:
    """Part the program into classes that have to do with each other."""
    optional = dict.fromkeys(rule for choice in choices for order in choice for rule in order)
    everything = [*rules, *optional]
    place_of = {rule: len(rules) + place for place, rule in enumerate(optional)}
    signatures: list[list[int]] = [[] for _ in atoms.owners]
    for number, rule in enumerate(everything):
        for atom in bits(rule.atoms):
            signatures[atom].append(number)
    merged: dict[int, dict[tuple[int, ...], list[int]]] = defaultdict(lambda: defaultdict(list))
    for atom, (owner, signature) in enumerate(zip(atoms.owners.tolist(), signatures, strict=True)):
        merged[owner][tuple(signature)].append(atom)
    linked = [rule.atoms for rule in rules] + [_union(choice) for choice in choices]
    for members in _connected(len(atoms.subjects), [caps.owners(each) for each in linked]):
        keys = [(owner, signature) for owner in members for signature in merged[owner]]
        groups = tuple(atoms.measure(merged[owner][signature]) for owner, signature in keys)
        here = sorted({number for _, signature in keys for number in signature})
        limits = {
            n: (everything[n].most, frozenset(g for g, (_, signature) in enumerate(keys) if n in signature))
            for n in here
        }
        open_ = tuple(
            tuple(tuple(limits[place_of[rule]] for rule in order) for order in choice)
            for choice in choices
            if caps.owners(_union(choice))[0] in members
        )
        place = {owner: index for index, owner in enumerate(members)}
        targets = tuple(atoms.subjects[owner] for owner in members)
        sizes = tuple(target.subject.size for target in targets)
        certain = tuple(limits[n] for n in here if n < len(rules))
        system = System(sizes, tuple(place[owner] for owner, _ in keys), certain)
        own = {rule for owner in members for rule in caps.own[owner]}
        plain = len(members) == 1 and not open_ and all(rules[number] in own for number in here)
        yield Component(targets, tuple(members), groups, system, open_, plain)


def _union(choice: Choice) -> int:
    """The atoms that a choice is about."""
    return reduce(or_, (rule.atoms for order in choice for rule in order))


def _connected(number: int, sets: Sequence[Sequence[int]]) -> list[list[int]]:
    """Part so many things into those that sets join."""
    label = np.arange(number)
    for members in sets:
        label[np.isin(label, label[list(members)])] = label[members[0]]
    return [np.flatnonzero(label == each).tolist() for each in dict.fromkeys(label.tolist())]


def bits(number: int) -> Iterator[int]:
    """List the places of the bits that are set."""
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest
