"""Leave out rules that say nothing: those that cannot be broken, and those that follow from another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from unblur.counting.deadline import check
from unblur.joint.atoms import Atoms
from unblur.joint.rules import Rule


@dataclass(frozen=True)
class Caps:
    """How many records of each class a set of atoms can hold, by the class's own rules."""

    sizes: Sequence[int]
    atoms: Sequence[int]
    """Per class its atoms, as bits."""
    own: Sequence[Sequence[Rule]]
    """Per class its own rules."""

    @classmethod
    def of_subjects(cls, atoms: Atoms, own: Iterable[Rule]) -> Caps:
        """Sort the own rules of classes by class."""
        members = [0] * len(atoms.subjects)
        for atom, owner in enumerate(atoms.owners.tolist()):
            members[owner] |= 1 << atom
        rules: list[list[Rule]] = [[] for _ in atoms.subjects]
        for rule in own:
            rules[int(atoms.owners[rule.atoms.bit_length() - 1])].append(rule)
        return cls([target.subject.size for target in atoms.subjects], members, rules)

    def owners(self, atoms: int) -> list[int]:
        """The classes that some atoms belong to."""
        return [owner for owner, whole in enumerate(self.atoms) if whole & atoms]

    def holds(self, rule: Rule) -> bool:
        """Whether a rule cannot be broken, whatever the other classes do."""
        return sum(self._most(owner, rule.atoms & self.atoms[owner]) for owner in self.owners(rule.atoms)) <= rule.most

    def _most(self, owner: int, atoms: int) -> int:
        """At most so many records of a class fit in some of its atoms."""
        return min([self.sizes[owner], *(rule.most for rule in self.own[owner] if not atoms & ~rule.atoms)])


def thin(shared: Iterable[Rule], caps: Caps) -> list[Rule]:
    """Return rules that say the same as the given ones and each class's own."""
    least: dict[int, int] = {}
    for rule in (*(rule for each in caps.own for rule in each), *(rule for rule in shared if not caps.holds(rule))):
        least[rule.atoms] = min(rule.most, least.get(rule.atoms, rule.most))
    kept: list[Rule] = []
    # The larger a set is, the less can contain it: what implies a rule comes before it.
    for atoms, most in sorted(least.items(), key=lambda each: (-each[0].bit_count(), each)):
        check()
        if not _follows(rule := Rule(most, atoms), kept):
            kept.append(rule)
    return kept


def is_implied(rule: Rule, caps: Caps, rules: Sequence[Rule]) -> bool:
    """Whether a rule says nothing new."""
    return caps.holds(rule) or _follows(rule, rules)


def _follows(rule: Rule, rules: Sequence[Rule]) -> bool:
    return any(other.most <= rule.most and not rule.atoms & ~other.atoms for other in rules)
