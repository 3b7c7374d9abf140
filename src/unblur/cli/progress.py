"""Progress on standard error, and only where someone sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

Show = Callable[..., None]


def first_of(stage: str, *places: object) -> str:
    """Name the first stage: where a table comes from Spark, or goes there, that has to start, which takes a while.

    >>> first_of("reading the release", "pyspark://#parquet:visits")
    'starting Spark, reading the release'
    """
    return f"starting Spark, {stage}" if any(str(each).startswith("pyspark://") for each in places) else stage


@contextmanager
def progress_bar(first: str, *, time_left: bool = False) -> Iterator[Show]:
    """Show a bar; call what is yielded with `description`, `completed` and `total` (None: not known) to move it."""
    screen = Console(stderr=True)
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        *([TextColumn("left:"), TimeRemainingColumn()] if time_left else []),
        console=screen,
        transient=True,
        disable=not screen.is_terminal,
    ) as progress:
        task = progress.add_task(first, total=None)

        def show(**changes: Any) -> None:
            if changes.get("total", 0) is None:  # which `update` takes for "as it was"
                progress.tasks[0].total = None
            progress.update(task, **changes)

        yield show
