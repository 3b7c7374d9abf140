"""Progress on standard error, and only where someone sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
    """Show a bar; call what is yielded with `description`, `completed` and `total` to move it."""
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
        yield lambda **changes: progress.update(task, **changes)
