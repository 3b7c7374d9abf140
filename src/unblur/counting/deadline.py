"""A time by which counting must end: long loops look at it, so that a budget holds also inside one class."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_end: ContextVar[float | None] = ContextVar("_end", default=None)


class OutOfTime(Exception):
    """The deadline has passed; never reaches the user."""


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Let `check` stop what is done inside after so many seconds; None for no limit."""
    token = _end.set(None if seconds is None else time.monotonic() + seconds)
    try:
        yield
    finally:
        _end.reset(token)


def check() -> None:
    """Stop if the deadline has passed.

    >>> with deadline(0.0):
    ...     check()
    Traceback (most recent call last):
    ...
    unblur.counting.deadline.OutOfTime
    """
    end = _end.get()
    if end is not None and time.monotonic() >= end:
        raise OutOfTime
