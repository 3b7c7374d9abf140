"""What may be inferred from a release of ARX whose settings are known, with gsFactor 0.

As under `greedy` a finer state comes first, and was cheaper and not usable. Usable is what ARX's settings require, so
the bound is the most that an iteration may have had to release; never more than the state carries. Where the loss does
not depend on the data (interval lengths, equal on every layer) it orders more: a state that is cheaper, and carries
what any iteration may have required, would have been usable whenever a costlier one was used.

What an iteration must release grows with the number of rows, suppressed ones included, so these must be known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from unblur.arx.settings import ArxSettings
from unblur.config import QuasiIdentifier
from unblur.hierarchy import IntervalHierarchy
from unblur.lattice import State
from unblur.mechanisms import UsedStates, is_finer
from unblur.release import EquivalenceClass, Release

NOISE = 1e-9
"""ARX decides between losses that are closer than this by rounding and by the order of its search."""


@dataclass(frozen=True)
class ArxInference:
    """ARX's local recoding with gsFactor 0."""

    release: Release
    settings: ArxSettings

    def before(self, first: EquivalenceClass, second: EquivalenceClass) -> bool:
        return self.used.order.before(first, second) or (self._has_loss and self._is_cheaper(first, second))

    def bound(self, each: EquivalenceClass) -> int | None:
        return max(self.release.config.k, max(self.required(state) for state in self.used.states(each)))

    def misfits(self) -> Iterator[str]:
        """States that carry fewer records than an iteration must release; the last one, and the first, may."""
        rows = self.release.made_rows
        required = self.settings.least_required(rows)
        short = [state for state in self.used.certain if self.used.carried[state] < required]
        excused = 1 + (self.settings.first_required(rows) < required)
        inner = [state for state in short if self.used.is_inner(state)]
        if inner or len(short) > excused:
            state = min(inner or short)
            yield (
                f"the state {state} carries {self.used.carried[state]:,} records, "
                f"but ARX under these settings releases at least {required:,} in an iteration"
            )

    def required(self, state: State) -> int:
        """What a state had to release at most, and it did release that."""
        carried = self.used.carried[state]
        if state not in self._required:
            rows = self.release.made_rows
            remaining = rows - sum(each.size for each in self.used.everything if self._is_earlier(each, state))
            most = self.settings.most_required(rows, carried, remaining)
            self._required[state] = (
                most if self.used.has_earlier(state) else max(most, self.settings.first_required(rows))
            )
        return min(carried, self._required[state])

    def _is_earlier(self, each: EquivalenceClass, state: State) -> bool:
        return is_finer(self.used.order.coarsest(each), state)

    @cached_property
    def _required(self) -> dict[State, int]:
        return {}

    def _is_cheaper(self, first: EquivalenceClass, second: EquivalenceClass) -> bool:
        """Whether the first is cheaper, and would have been usable whenever the second was used."""
        coarsest = self.used.order.coarsest(first)
        if self._loss(coarsest) + NOISE >= self._loss(second.state):
            return False
        if coarsest != first.state:
            return False
        rows = self.release.made_rows
        carried = self._surely_carried[first.state]
        return carried >= max(self.settings.first_required(rows), self.settings.most_required(rows, 1, rows))

    @cached_property
    def _surely_carried(self) -> dict[State, int]:
        found: dict[State, int] = defaultdict(int)
        for each in self.used.everything:
            if len(self.used.states(each)) == 1:
                found[each.state] += each.size
        return found

    @cached_property
    def _has_loss(self) -> bool:
        """Whether ARX's loss of a state does not depend on the data: interval lengths, equal on every layer."""
        return all(_has_equal_widths(each) for each in self.release.config.quasi_identifiers)

    def _loss(self, state: State) -> float:
        if state not in self._losses:
            loss = 1.0
            for each, layer in zip(self.release.config.quasi_identifiers, state, strict=True):
                loss *= (1 + _arx_share(each, layer)) ** (1 / len(state))
            self._losses[state] = loss - 1
        return self._losses[state]

    @cached_property
    def _losses(self) -> dict[State, float]:
        return {}

    @cached_property
    def used(self) -> UsedStates:
        return UsedStates(self.release)


def _has_equal_widths(attribute: QuasiIdentifier) -> bool:
    tree = attribute.hierarchy
    if not isinstance(tree, IntervalHierarchy) or not attribute.by_length:
        return False
    widths = ({tree.length(layer, rank) for rank in range(tree.nodes(layer))} for layer in range(1, tree.height + 1))
    return all(len(each) == 1 for each in widths)


def _arx_share(attribute: QuasiIdentifier, layer: int) -> float:
    """ARX's share of the domain that a node of a layer spans, less that of a value: in absolute units."""
    tree = attribute.hierarchy
    assert isinstance(tree, IntervalHierarchy)
    domain = float(tree.high - tree.low)
    length = 1.0 if layer == 0 else float(tree.step) * tree.length(layer, 0)
    if domain <= 1:
        return 0.0
    return max(0.0, (length - 1) / (domain - 1))
