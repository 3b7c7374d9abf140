"""What the shell sees: the exit status, and standard output, which bears a reader who has gone away."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from unblur.errors import OutputError

FAILED, MISFIT = 1, 3
"""Exit status: a gate has failed; the release does not fit."""


class Screen(io.TextIOWrapper):
    """Standard output that goes on when nobody reads any more: files are still written, the exit status still told."""

    def write(self, text: str) -> int:
        with self._still_there():
            return super().write(text)
        return len(text)

    def flush(self) -> None:
        with self._still_there():
            super().flush()

    @contextmanager
    def _still_there(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())  # what is still to be said goes nowhere
            if not isinstance(error, BrokenPipeError):
                raise OutputError(f"standard output: {error.strerror or error}") from error


def open_screen() -> None:
    """Replace standard output by one that bears what may happen to it."""
    if sys.stdout is sys.__stdout__ and isinstance(sys.stdout, io.TextIOWrapper):
        encoding, buffered = sys.stdout.encoding, sys.stdout.line_buffering
        sys.stdout = Screen(sys.stdout.detach(), encoding, errors="backslashreplace", line_buffering=buffered)
