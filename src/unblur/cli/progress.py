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
