"""ARX's search for the best state of a lattice (FLASH, the optimal search), in its own order.

A state is *eligible* if it suppresses few enough records; then so is every coarser one. Of the eligible states the one
of least loss wins, of equals the one with the smaller sum of layers, and of these the first that the search visits. So
what is equal is decided by the way the search takes:

- States are ordered by the sum of their layers, their mean height, and the share of distinct values they lose; what is
  still equal, by number (the first attribute fastest).
- The lattice is swept from the bottom, level by level. From each state of unknown status a chain is built upwards,
  always to the first successor of unknown status, and searched by halving. A state of the chain that is not eligible
  puts its unknown successors on a heap, from which further chains start. A depth-first search goes up from the lowest
  eligible state of the chain.
- A bound that no coarser state beats is known of every state that was checked. Once it is no less than the best loss,
  the state is cut, with everything above it.
- If nothing may be suppressed, the least loss is on the lower rim of the eligible states. Then only chains are
  searched, and nothing is cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from unblur.hierarchy import Ranks
from unblur.lattice import Lattice, State


@dataclass(frozen=True, slots=True)
class Check:
    """What is learned from applying a state to the records."""

    eligible: bool
    loss: float
    """Of no meaning unless the state is eligible."""
    bound: float
    """No coarser state has less loss."""


@dataclass(frozen=True, slots=True)
class Found:
    """The state that wins, and its loss."""

    state: State
    loss: float


class SearchOrder:
    """The states of a lattice, numbered and ordered as ARX does; the same for all iterations on a table."""

    def __init__(self, lattice: Lattice, distinct: Sequence[Sequence[int]], raw: Sequence[int]) -> None:
        """Order by the counts of distinct nodes, per attribute and layer, and of raw values, in the whole table."""
        self.finest, self.top = lattice.finest, lattice.top
        self.shape = tuple(len(layers) for layers in reversed(lattice.layers))
        self._layers = np.indices(self.shape).reshape(len(self.shape), -1)[::-1] + np.array(self.finest)[:, None]
        self._strides = np.cumprod([1, *self.shape[:0:-1]]).tolist()
        criteria = [self._layers.sum(axis=0), self._mean_height(), self._lost_values(distinct, raw)]
        order = np.lexsort(criteria[::-1])  # stable: equals stay in the order of their numbers
        changes = np.any([each[order[1:]] != each[order[:-1]] for each in criteria], axis=0)
        self._rank = np.empty(len(order), dtype=np.int64)
        self._rank[order] = np.concatenate([[0], np.cumsum(changes)])
        self._ordered, self._level_sums = order, criteria[0][order]
        self._successors: dict[int, list[int]] = {}

    def state(self, number: int) -> State:
        """Return the state of a number."""
        return tuple(self._layers[:, number].tolist())

    def place(self, number: int) -> tuple[int, ...]:
        """Return the place of a state in an array of the lattice's shape."""
        return tuple((self._layers[::-1, number] - np.array(self.finest)[::-1]).tolist())

    def level(self, number: int) -> int:
        """Sum the layers of a state."""
        return int(self._layers[:, number].sum())

    @cached_property
    def levels(self) -> list[Ranks]:
        """The states of each level, in order."""
        starts = np.flatnonzero(np.diff(self._level_sums)) + 1
        return np.split(self._ordered, starts)

    @cached_property
    def ranks(self) -> list[int]:
        """For each state its place in the order; states that no criterion tells apart have the same."""
        ranks: list[int] = self._rank.tolist()
        return ranks

    def successors(self, number: int) -> list[int]:
        """List the states one layer up in one attribute, in order."""
        if number not in self._successors:
            layers = self._layers[:, number].tolist()
            above = [
                number + stride
                for stride, layer, most in zip(self._strides, layers, self.top, strict=True)
                if layer < most
            ]
            self._successors[number] = sorted(above, key=self.ranks.__getitem__)
        return self._successors[number]

    def _mean_height(self) -> NDArray[np.float64]:
        heights = np.zeros(self._layers.shape[1])
        for layers, most in zip(self._layers, self.top, strict=True):
            heights += layers / most
        return heights / len(self.top)

    def _lost_values(self, distinct: Sequence[Sequence[int]], raw: Sequence[int]) -> NDArray[np.float64]:
        kept = np.zeros(self._layers.shape[1])
        for layers, low, counts, values in zip(self._layers, self.finest, distinct, raw, strict=True):
            kept += (np.array(counts) / values)[layers - low]
        return 1.0 - kept / len(self.top)


def search(order: SearchOrder, check: Callable[[State], Check], *, suppression: bool) -> Found | None:
    """Find the best eligible state, None if there is none; `suppression` says whether any record may be suppressed."""
    run = _Search(order, check, suppression)
    run.sweep()
    return Found(order.state(run.best), run.best_loss) if run.best is not None else None


class _Search:
    """One search: what is known of every state so far."""

    def __init__(self, order: SearchOrder, check: Callable[[State], Check], suppression: bool) -> None:
        self._order, self._check, self._suppression = order, check, suppression
        self._eligible, self._not_eligible, self._cut, self._visited = (np.zeros(order.shape, bool) for _ in range(4))
        self._known = [each.reshape(-1) for each in (self._eligible, self._not_eligible, self._cut)]
        self._been = self._visited.reshape(-1)
        self._bounds: dict[int, float] = {}
        self.best: int | None = None
        self.best_loss = np.inf

    def sweep(self) -> None:
        """Go through the lattice from the bottom."""
        for level in self._order.levels:
            unknown = level[~np.any([each[level] for each in self._known], axis=0)]
            for number in unknown.tolist():
                self._chains_from(number)

    def _chains_from(self, start: int) -> None:
        heap = _Heap(self._order.ranks)
        heap.push(start)
        while heap:
            number = heap.pop()
            if not self._is_settled(number):
                lowest = self._halve(self._chain(number), heap)
                if self._suppression and lowest is not None:
                    self._climb(lowest)

    def _chain(self, number: int) -> list[int]:
        """Go up to the top, always to the first successor of unknown status."""
        chain = [number]
        while unknown := [up for up in self._order.successors(chain[-1]) if not self._is_settled(up)]:
            chain.append(unknown[0])
        return chain

    def _halve(self, chain: list[int], heap: _Heap) -> int | None:
        """Search a chain for its lowest eligible state; None if none of those checked is."""
        low, high, lowest = 0, len(chain) - 1, None
        while low <= high:
            middle = (low + high) // 2
            number = chain[middle]
            if self._is_settled(number):
                high = middle - 1
            elif self._examine(number):
                lowest, high = number, middle - 1
            else:
                for up in self._order.successors(number):
                    if not self._is_settled(up):
                        heap.push(up)
                low = middle + 1
        return lowest

    def _climb(self, number: int) -> None:
        """Go up depth first through eligible states that are neither visited nor cut."""
        if self._been[number] or self._is_cut(number):
            return
        if number not in self._bounds:
            self._examine(number)
        self._been[number] = True
        for up in self._order.successors(number):
            self._climb(up)

    def _is_settled(self, number: int) -> bool:
        """Whether it is known if a state is eligible, or it is cut."""
        eligible, not_eligible, _ = self._known
        return bool(eligible[number] or not_eligible[number]) or self._is_cut(number)

    def _is_cut(self, number: int) -> bool:
        """Whether a state is cut; if its bound says so by now, cut it, with everything above it."""
        if not self._suppression or self.best is None:
            return False
        if not self._known[2][number] and self._bounds.get(number, -np.inf) >= self.best_loss:
            self._mark_upwards(self._cut, number)
        return bool(self._known[2][number])

    def _examine(self, number: int) -> bool:
        """Check a state, draw the conclusions, and say whether it is eligible."""
        found = self._check(self._order.state(number))
        self._bounds[number] = found.bound
        if found.eligible:
            self._mark_upwards(self._eligible, number)
        else:
            self._mark_downwards(self._not_eligible, number)
        if found.eligible and self._is_better(number, found.loss):
            self.best, self.best_loss = number, found.loss
            for other in self._bounds:
                if other != number:
                    self._is_cut(other)
        else:
            self._is_cut(number)
        return found.eligible

    def _is_better(self, number: int, loss: float) -> bool:
        if self.best is None or loss < self.best_loss:
            return True
        return loss == self.best_loss and self._order.level(number) < self._order.level(self.best)

    def _mark_upwards(self, marks: NDArray[np.bool_], number: int) -> None:
        marks[tuple(slice(place, None) for place in self._order.place(number))] = True

    def _mark_downwards(self, marks: NDArray[np.bool_], number: int) -> None:
        marks[tuple(slice(place + 1) for place in self._order.place(number))] = True


class _Heap:
    """The binary heap of Java: which of several equal states comes out first depends on how it sifts."""

    def __init__(self, ranks: Sequence[int]) -> None:
        self._ranks, self._items = ranks, list[int]()

    def __len__(self) -> int:
        return len(self._items)

    def push(self, item: int) -> None:
        items, ranks = self._items, self._ranks
        items.append(item)
        place = len(items) - 1
        while place and ranks[item] < ranks[items[parent := (place - 1) // 2]]:
            items[place] = items[parent]
            place = parent
        items[place] = item

    def pop(self) -> int:
        items, ranks = self._items, self._ranks
        first, item = items[0], items.pop()
        if not items:
            return first
        place, size = 0, len(items)
        while place < size // 2:
            child = 2 * place + 1
            if child + 1 < size and ranks[items[child]] > ranks[items[child + 1]]:
                child += 1
            if ranks[item] <= ranks[items[child]]:
                break
            items[place] = items[child]
            place = child
        items[place] = item
        return first
