"""A project of ARX opened for an audit: its release, its raw table, and what it tells of the run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from unblur.arx.project import Project, read_project
from unblur.reading import PublishedRelease, read_release
from unblur.workspace import Workspace

NO_CONFIG = "--config is needed: the TOML file that describes the release (only a .deid project has its own)"


def is_project(source: str) -> bool:
    """Whether this is a project of ARX."""
    return source.lower().endswith(".deid")


@dataclass(frozen=True)
class OpenProject:
    """What a project holds, unpacked in a folder that only its owner can read and that is removed at the end."""

    project: Project
    release: PublishedRelease
    table: Path
    """The raw rows."""

    @property
    def findings(self) -> tuple[str, ...]:
        """What the project says of the run, and why no more may be assumed."""
        run = self.project.run
        names = ", ".join(each.name for each in self.project.quasi_identifiers)
        mechanism = self.project.mechanism
        settings = "".join(f", {name} = {value}" for name, value in mechanism.settings.items())
        return (
            f"project of ARX {self.project.version}: k = {run.k}, quasi-identifiers {names}; "
            f"mechanism {mechanism.name}{settings}",
            *self.project.notes,
        )


@contextmanager
def open_project(path: Path) -> Iterator[OpenProject]:
    """Unpack a project for as long as it is needed."""
    project = read_project(path)
    with Workspace() as workspace:
        folder = workspace.folder
        release, table = folder / "release.csv", folder / "input.csv"
        project.write_hierarchies(folder)
        project.write_release(release)
        project.write_table(table)
        opened = read_release(release, project.config(folder))
        try:
            yield OpenProject(project, opened, table)
        finally:
            opened.workspace.close()
