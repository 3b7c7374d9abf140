"""How much each rule of the attack takes away, by itself and on top of the others.

- *sum*: the class has just so many records. It is what the label says anyway, so by itself it takes nothing away;
  without it, any number of records that the other rules allow could be there.
- *overlap*: earlier classes have emptied their cells.
- *halves*: where a node has two children, each holds someone.
- *sparse*: no child holds as many records as would have made a class. With two children this implies the halves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, log2

from unblur.attacking import Attack, Target
from unblur.counting.exact import estimated_work
from unblur.counting.numbers import Count
from unblur.counting.placements import Placements, published_solutions
from unblur.counting.problem import Problem, Records

RULES = ("sum", "overlap", "halves", "sparse")


@dataclass(frozen=True)
class Effect:
    """Bits that a rule takes away."""

    alone: float | None
    """On top of label and size only; None for the sum, which is in them."""
    last: float | None
    """On top of all other rules: what would come back without it. None if that is unbounded, or takes too long."""


@dataclass(frozen=True)
class Ablation:
    """The effect of each rule on one class, or on several together."""

    effects: dict[str, Effect]

    @classmethod
    def over(cls, parts: Sequence[Ablation]) -> Ablation:
        """Add up the effects on several classes."""
        alone = {rule: _total([part.effects[rule].alone for part in parts]) for rule in RULES}
        last = {rule: _total([part.effects[rule].last for part in parts]) for rule in RULES}
        return cls({rule: Effect(alone[rule], last[rule]) for rule in RULES})


def ablate(attack: Attack, target: Target, records: Records) -> Ablation | None:
    """Count again with rules left out; None if nothing is feasible to begin with."""
    counts = _Counts(attack, target, records)
    label, everything = counts.of_label(), counts.of(target.problem)
    if not everything:
        return None
    nothing_taken, sparse = counts.of(counts.halves([])), counts.of(counts.sparse([]))
    overlap, both = counts.of(counts.free(target.takers)), counts.of(counts.halves(target.takers))
    return Ablation(
        {
            "sum": Effect(None, _bits(counts.any_size(), everything)),
            "overlap": Effect(_bits(label, overlap), _bits(sparse, everything)),
            "halves": Effect(_bits(label, nothing_taken), 0.0),
            "sparse": Effect(_bits(label, sparse), _bits(both, everything)),
        }
    )


@dataclass(frozen=True)
class _Counts:
    attack: Attack
    target: Target
    records: Records

    def of(self, problem: Problem) -> Count:
        return Placements(self.attack.grid, problem, self.records).count_solutions()

    def of_label(self) -> Count:
        return published_solutions(self.attack.grid.volume(self.target.box), self.target.subject.size, self.records)

    def free(self, takers: Sequence[int]) -> Problem:
        return self.attack.pose(self.target.subject, takers, None)[0]

    def halves(self, takers: Sequence[int]) -> Problem:
        """Of two children, none holds all records."""
        bound = self.target.subject.size if self.target.problem.bound is not None else None
        return self.attack.pose(self.target.subject, takers, bound, most_children=2)[0]

    def sparse(self, takers: Sequence[int]) -> Problem:
        return self.attack.pose(self.target.subject, takers, self.target.problem.bound)[0]

    def _work(self, size: int) -> int:
        problem = self.target.problem
        return estimated_work(size, problem.bound or 0, problem.fanouts, problem.heavy_from)

    def any_size(self) -> Count | None:
        """Count over all sizes that the other rules allow; None if they allow any, or too many."""
        problem = self.target.problem
        if not problem.constrained or problem.bound is None:
            return None
        most = min(fanout * (problem.bound - 1) for fanout in problem.fanouts)
        if sum(self._work(size) for size in range(problem.bound, most + 1)) > self.attack.effort:
            return None
        total = 0
        for size in range(1, most + 1):
            of_size = replace(problem, size=size)
            if size < problem.bound:
                subject = replace(self.target.subject, size=size)
                of_size = self.attack.pose(subject, self.target.takers, size, most_children=2)[0]
            total += Placements(self.attack.grid, of_size, self.records).solutions
        return Count.of(total)


def _bits(before: Count | None, after: Count) -> float | None:
    ratio = before.over(after) if before else None
    if before is None or ratio is None:
        return None
    return log2(ratio) if ratio < inf else before.log2 - after.log2


def _total(bits: Sequence[float | None]) -> float | None:
    known = [each for each in bits if each is not None]
    return sum(known) if known else None
