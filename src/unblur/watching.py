"""How far DuckDB has come with a query: asked a few times a second, while the query runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

Progress = Callable[[int, int], None]
"""Called with what is done and what there is to do."""
PAUSE = 0.2


@contextmanager
def watched(connection: Any, rows: int, progress: Progress, *, groups: int = 0) -> Iterator[None]:
    """Report how many of so many rows a query, run inside, has read; the groups it makes of them come after."""
    connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
    ended = Event()

    def follow() -> None:
        furthest = 0
        while not ended.wait(PAUSE):
            share = connection.query_progress() / 100  # negative before anything is known
            furthest = max(furthest, min(rows, int(share * (rows + groups))))
            progress(furthest, rows)

    thread = Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    progress(rows, rows)
