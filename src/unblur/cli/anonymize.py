"""`unblur anonymize`: the table in, the release out, a summary on the screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from unblur.anonymizing import AnonymizedRelease, anonymize
from unblur.cli.progress import first_of, progress_bar
from unblur.config import Config
from unblur.sources import check_source
from unblur.targets import open_target


def run(
    table: str,
    *,
    config: Path,
    out: str | Path,
    recoding: Literal["local", "global"] = "local",
    trace: Path | None = None,
    overwrite: bool = False,
    **options: Any,
) -> None:
    """Make the release and say what it looks like."""
    description = Config.read(config)
    check_source(table)
    with progress_bar(first_of("reading and grouping the rows", table, out)) as show:
        target = open_target(out, source=table)
        target.check([Path(table), *description.paths], trace=trace, overwrite=overwrite, source=table)

        def advance(done: int, of: int) -> None:
            show(description="forming classes", completed=done, total=of)

        def move(done: int, of: int) -> None:
            show(completed=done, total=of)

        release = anonymize(table, description, recoding=recoding, progress=advance, on_rows=move, **options)
        show(description="writing the release", completed=0, total=None)
        with release:
            release.save(out, trace=trace, overwrite=overwrite, on_rows=move)
    print(summary(release))
    print(f"release: {target.name}")
    print(f"config:  {target.config}")
    if trace is not None:
        print(f"trace:   {trace}")


def summary(release: AnonymizedRelease) -> str:
    """Say in a line what was made."""
    sizes = [each.size for each in release.classes]
    spread = f"{min(sizes):,} to {max(sizes):,}" if len(set(sizes)) > 1 else f"{sizes[0]:,}" if sizes else ""
    classes = f"{len(sizes):,} {'class' if len(sizes) == 1 else 'classes'} of {spread}" if sizes else "no classes"
    if release.config.made["recoding"] == "global" and release.recoding.iterations:
        layers = zip(release.config.quasi_identifiers, release.recoding.iterations[0].state, strict=True)
        classes += f" at {', '.join(f'{each.name} layer {layer}' for each, layer in layers)}"
    share = release.outliers / release.rows
    return f"{release.rows:,} rows, k = {release.config.k}: {classes}, {release.outliers:,} suppressed ({share:.1%})"
