"""The counting problem of one class, collapsed to blocks.

A class of `size` records lies in a segment. Each of its generalized attributes has children, and no child may hold
`bound` records or more: they would have made a class of their own. Nothing finer needs to be said, because every
smaller segment lies inside a child. So only the *blocks* matter, the products of one child per attribute, and of a
block only what is free in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from unblur.grid import Free

Records = Literal["any", "distinct"]
"""Whether two records may be equal: each takes any value of its cell, or all are distinct points."""
Block = tuple[int, ...]
"""One child per constrained attribute."""


@dataclass(frozen=True)
class Problem:
    """How many ways are there to place the records of a class?"""

    size: int
    fanouts: tuple[int, ...]
    """How many children each constrained attribute has."""
    free: Mapping[Block, Free]
    """What is free in each block; blocks with nothing free may be left out."""
    bound: int | None
    """Children of `heavy_from` records or more hold together fewer than this; None if nothing is known."""
    heavy_from: int | None = None
    """None if every child counts alone: none reaches the bound."""

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks in which a record can be, in order."""
        return tuple(sorted(block for block, free in self.free.items() if free.cells))

    @property
    def together(self) -> bool:
        """Whether several children may be heavy, and are then counted together."""
        return (
            self.heavy_from is not None and self.bound is not None and self.size >= 2 * self.heavy_from < 2 * self.bound
        )

    def allows(self, held: Sequence[int]) -> bool:
        """Whether the children of an attribute may hold these numbers of records."""
        if self.bound is None:
            return True
        if self.together:
            return sum(n for n in held if n >= (self.heavy_from or 0)) < self.bound
        return all(n < self.bound for n in held)

    @property
    def constrained(self) -> bool:
        """Whether some child could reach the bound."""
        return self.bound is not None and self.size >= self.bound and bool(self.fanouts)
