"""Which boxes overlap: found by cutting space, not by comparing all pairs.

Space is cut in two until few boxes touch a part; there, all pairs are compared. A box that a cut goes through is in
both parts, so a pair may meet more than once: it counts where the lowest corner of their common part lies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from unblur.grid import Box

Ints = NDArray[np.int64]

FEW = 128
"""So many boxes are compared with one another."""


def overlapping_pairs(boxes: Sequence[Box]) -> Ints:
    """Return all pairs of overlapping boxes, by their numbers, the smaller first, in order."""
    if len(boxes) < 2:
        return np.empty((0, 2), dtype=np.int64)
    spans = np.array(boxes, dtype=np.int64)
    low, high = np.ascontiguousarray(spans[:, :, 0]), np.ascontiguousarray(spans[:, :, 1])
    whole = np.stack([low.min(axis=0), high.max(axis=0)])
    pairs = np.concatenate(list(_search(np.arange(len(boxes)), whole, low, high)))
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def _search(members: Ints, part: Ints, low: Ints, high: Ints) -> Iterator[Ints]:
    """Find the pairs that meet in a part of space: its first positions and those after its last, per attribute."""
    cut = _cut(members, part, low, high) if len(members) > FEW else None
    if cut is None:
        yield from _compare(members, part, low, high)
        return
    attribute, position = cut
    below, above = part.copy(), part.copy()
    below[1, attribute] = above[0, attribute] = position
    yield from _search(members[low[members, attribute] < position], below, low, high)
    yield from _search(members[high[members, attribute] > position], above, low, high)


def _cut(members: Ints, part: Ints, low: Ints, high: Ints) -> tuple[int, int] | None:
    """Find the cut that leaves the fewest boxes in the fuller part; None if no cut is worth it."""
    best, choice = 0.9 * len(members), None
    for attribute, (first, last) in enumerate(part.T.tolist()):
        edges = np.concatenate([low[members, attribute], high[members, attribute]])
        inside = np.sort(edges[(edges > first) & (edges < last)])
        if len(inside):
            position = int(inside[len(inside) // 2])
            below = int((low[members, attribute] < position).sum())
            above = int((high[members, attribute] > position).sum())
            if max(below, above) < best:
                best, choice = max(below, above), (attribute, position)
    return choice


def _compare(members: Ints, part: Ints, low: Ints, high: Ints) -> Iterator[Ints]:
    """Compare all pairs, attribute by attribute: their common part must begin inside, and before it ends."""
    begins, ends = low[members].T, np.minimum(high[members], part[1]).T
    for start in range(0, len(members), FEW):
        here = slice(start, start + FEW)
        meet = members[here, None] < members[start:]
        for begin, end, first in zip(begins, ends, part[0], strict=True):
            corner = np.maximum(begin[here, None], begin[start:])
            meet &= (corner < np.minimum(end[here, None], end[start:])) & (corner >= first)
        one, other = np.nonzero(meet)
        yield np.stack([members[here][one], members[start:][other]], axis=1)
