"""What is free of a box: it is cut along the edges of the boxes that others have taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from unblur.hierarchy import Ranks

Span = tuple[int, int]
"""A run of neighbouring nodes of the finest layer: first, and one after the last."""
Box = tuple[Span, ...]
MANY = 64
"""So many boxes are cut at with arrays."""
MOST_MARKED = 1_000_000
"""Of boxes of more cells, these are not looked at one by one."""


def free_pieces(box: Box, taken: Sequence[Box]) -> Iterator[Box]:
    """Cut a box into pieces that no taken box touches; together they are all that is free of it."""
    if len(taken) < MANY:
        return _pieces(box, _overlapping(box, taken))
    boxes = np.array(taken, dtype=np.int64)
    low, high = np.array(box).T
    overlapping = boxes[((boxes[:, :, 0] < high) & (boxes[:, :, 1] > low)).all(axis=1)]
    return _pieces_among(box, overlapping, _Rest.of(box, overlapping))


def _overlapping(box: Box, others: Sequence[Box]) -> list[Box]:
    return [other for other in others if all(a < d and c < b for (a, b), (c, d) in zip(box, other, strict=True))]


@dataclass(frozen=True)
class _Rest:
    """Which cells of a box are not taken: where there are none, nothing needs to be cut."""

    box: Box
    free: NDArray[np.bool_] | None
    """None if there are too many cells to look at each."""

    @classmethod
    def of(cls, box: Box, taken: Ranks) -> _Rest:
        """Mark the cells: those that are boxes of their own at once, the other boxes in turn."""
        low, high = np.array(box).T
        if prod((high - low).tolist()) > MOST_MARKED:
            return cls(box, None)
        free = np.ones(high - low, dtype=np.bool_)
        spans = np.clip(taken, low[:, None], high[:, None]) - low[:, None]
        alone = (spans[:, :, 1] - spans[:, :, 0] == 1).all(axis=1)
        free[tuple(spans[alone, :, 0].T)] = False
        for each in spans[~alone].tolist():
            free[tuple(slice(a, b) for a, b in each)] = False
        return cls(box, free)

    def is_in(self, part: Box) -> bool:
        """Whether some of it may lie in a part of the box."""
        if self.free is None:
            return True
        spans = zip(part, self.box, strict=True)
        return bool(self.free[tuple(slice(a - low, b - low) for (a, b), (low, _) in spans)].any())


def _pieces(box: Box, taken: Sequence[Box], rest: _Rest | None = None) -> Iterator[Box]:
    """Cut a box along the edges of the taken ones, all of which overlap it; yield the pieces that are free."""
    waiting = [(box, taken)]
    while waiting:
        box, taken = waiting.pop()
        if not taken:
            yield box
        elif (rest is None or rest.is_in(box)) and (cut := _best_cut(box, taken)):
            attribute, position = cut
            first, last = box[attribute]
            before, after = box[:attribute], box[attribute + 1 :]
            above = [each for each in taken if each[attribute][1] > position]
            below = [each for each in taken if each[attribute][0] < position]
            waiting.append(((*before, (position, last), *after), above))
            waiting.append(((*before, (first, position), *after), below))


def _pieces_among(box: Box, taken: Ranks, rest: _Rest) -> Iterator[Box]:
    """The same for many boxes, in an array; the cuts are the same, too."""
    if not rest.is_in(box):
        return
    if len(taken) < MANY:
        yield from _pieces(box, [tuple((a, b) for a, b in each) for each in taken.tolist()], rest)
        return
    low, high = np.array(box).T
    inside = (taken > low[:, None]) & (taken < high[:, None])
    if not inside.any(axis=(1, 2)).all():
        return
    length = int(high.max()) + 1
    edges, counts = np.unique((taken + np.arange(len(box))[:, None] * length)[inside], return_counts=True)
    shared = edges[counts == counts.max()]
    attribute, position = divmod(int(shared[len(shared) // 2]), length)
    first, last = box[attribute]
    before, after = box[:attribute], box[attribute + 1 :]
    yield from _pieces_among((*before, (first, position), *after), taken[taken[:, attribute, 0] < position], rest)
    yield from _pieces_among((*before, (position, last), *after), taken[taken[:, attribute, 1] > position], rest)


def _best_cut(box: Box, taken: Sequence[Box]) -> tuple[int, int] | None:
    """Find an edge of a taken box inside this one, the edge that most boxes share, so that they part early.

    None if there is none: then some box covers this one.
    """
    wide = [(attribute, a, b) for attribute, (a, b) in enumerate(box) if b - a > 1]
    found: list[tuple[int, int]] = []
    for other in taken:
        before = len(found)
        for attribute, a, b in wide:
            c, d = other[attribute]  # c < b and a < d, for the boxes overlap
            if a < c:
                found.append((attribute, c))
            if d < b:
                found.append((attribute, d))
        if len(found) == before:
            return None
    edges = Counter(found)
    most = max(edges.values())
    shared = sorted(edge for edge, count in edges.items() if count == most)
    return shared[len(shared) // 2]  # the middle one: the depth of the cuts then grows with the logarithm
