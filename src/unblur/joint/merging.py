"""Rows of numbers that agree."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unblur.counting.deadline import check

Ints = NDArray[np.int64]
Indices = NDArray[np.int32]

_BITS = 63
"""Of a whole number, without its sign."""


def merge(columns: Iterable[NDArray[Any]], number: int) -> tuple[Ints, Indices]:
    """Find rows that agree: where each kind comes first, and of which kind each row is."""
    keys, width, most = np.zeros(number, np.int64), 0, _BITS - number.bit_length()
    for column in columns:
        check()
        more = int(column.max(initial=0)).bit_length()
        if width + more > most:
            # What is there is numbered anew, so that it needs fewer bits.
            keys = kinds(keys)[1].astype(np.int64)
            width = int(keys.max(initial=0)).bit_length()
        keys <<= more
        keys |= column
        width += more
        if width > most:
            # There is no room for the number of the row beside it, which `kinds` needs.
            keys = np.unique(keys, return_inverse=True)[1].astype(np.int64)
            width = int(keys.max(initial=0)).bit_length()
    check()
    return kinds(keys)


def kinds(keys: Ints) -> tuple[Ints, Indices]:
    """Number the different keys: where each comes first, and the number of each row's key.

    Keys are sorted with the row's number in their last bits: plain numbers are sorted many times faster than rows are
    put in order by them.
    """
    bits = len(keys).bit_length()
    rows = keys << bits
    rows |= np.arange(len(keys))
    rows.sort()
    order = rows & ((1 << bits) - 1)
    rows >>= bits
    new = np.zeros(len(keys), bool)
    np.not_equal(rows[1:], rows[:-1], out=new[1:])
    kind = np.empty(len(keys), np.int32)
    kind[order] = np.cumsum(new, dtype=np.int32)
    new[:1] = True
    return order[new], kind
