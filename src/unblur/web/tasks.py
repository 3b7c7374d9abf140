"""What a job does, in a process of its own: look at files, audit a release, make one and audit it.

A task is a dictionary of plain values; it runs in the job's folder and leaves its results there. Each imports what it
needs when it runs, because every job is a new process.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from unblur.config import Config
from unblur.errors import TableError
from unblur.files import open_file
from unblur.projects import open_project
from unblur.reading import read_release
from unblur.release import Release
from unblur.tables import Table
from unblur.web.looks import Profile, look_at, smallest_group, write_copy
from unblur.web.results import CONFIG, COPY, PACKED, PROFILE, RELEASE, WANTED
from unblur.workspace import Workspace

Show = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and of how much; 0 of 0 if nobody knows."""
Task = Mapping[str, Any]
TRANSFORMATIONS = {
    "arx": "Local transformation using iterations",
    "greedy": "Local transformation; less is assumed, see below",
    "iterative": "less is assumed than ARX's own settings would allow, see below",
}
"""What ARX calls a mechanism."""
MAIN_ENTRY = "project.dat"
"""What every project of ARX has in it, and no workbook."""


def run(task: Task, folder: Path, show: Show) -> None:
    """Do a task."""
    {"look": _look, "audit": _audit, "project": _audit_project, "make": _make}[task["kind"]](task, folder, show)


def _look(task: Task, folder: Path, show: Show) -> None:
    """Look at the files of a case: what they are, what their columns look like."""
    show("reading the file", 0, 0)
    path, names = Path(task["table"]), task["names"]
    if is_project(path):
        profile = _look_at_project(path)
    else:
        raw = task["raw"]
        with Workspace() as workspace:
            table = _open(path, names, workspace)
            write_copy(table, str(folder / COPY))
            show("looking at the columns", 0, 0)
            rows, looks = look_at(table, samples=not raw)
            if not rows:
                raise TableError(f"{table.name}: there are no rows, only a header")
            generalized = [each.name for each in looks if each.generalized]
            smallest = None if raw else smallest_group(table, generalized)
            profile = Profile(rows, looks, smallest, table.notes)
    if task.get("truth"):
        if profile.is_project:
            raise TableError("a project of ARX has its raw table in it; leave the other file out")
        show("reading the raw table", 0, 0)
        with Workspace() as workspace:
            truth = _open(Path(task["truth"]), names, workspace)
            known = {each.name for each in profile.looks}
            shared = tuple(name for name in truth.columns if name in known)
            profile = replace(profile, shared=shared, notes=(*profile.notes, *truth.notes))
    (folder / PROFILE).write_text(json.dumps(asdict(profile)), encoding="utf-8")


def is_project(path: Path) -> bool:
    """Whether a file is a project of ARX, whatever it is called."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return MAIN_ENTRY in archive.namelist()


def _look_at_project(path: Path) -> Profile:
    with open_project(path) as opened:
        project, release = opened.project, opened.release
        settings = ", ".join(f"{name} {value}" for name, value in project.mechanism.settings.items())
        facts = (
            ("Saved by", f"ARX {project.version}"),
            ("Records", f"{release.rows:,}"),
            ("k-Anonymity", f"k = {release.config.k}"),
            ("Quasi-identifying", ", ".join(each.name for each in project.quasi_identifiers)),
            ("Equivalence classes", f"{len(release.classes):,}"),
            ("Suppressed", f"{release.outliers:,}"),
            ("Transformation", TRANSFORMATIONS.get(project.mechanism.name, project.mechanism.name)),
            *([("Its settings", settings)] if settings else []),
        )
        return Profile(release.rows, (), notes=project.notes, facts=facts)


def _open(path: Path, names: Mapping[str, str], workspace: Workspace) -> Table:
    name = names.get(str(path), "the file")
    with path.open("rb") as file:
        start = file.read(4096)
    if start.startswith(b"\x1f\x8b"):
        raise TableError(f"{name}: a packed file (.gz); unpack it first")
    text = not start.startswith((b"PAR1", b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"\xff\xfe", b"\xfe\xff"))
    if start.startswith(b"%PDF") or (text and b"\0" in start):
        raise TableError(f"{name}: not a table; CSV, Parquet and Excel files (.xlsx) and projects of ARX are read")
    return open_file(path, name, workspace, (), None)


def _audit(task: Task, folder: Path, show: Show) -> None:
    show("reading the release", 0, 0)
    release = read_release(task["release"], Config.read(folder / CONFIG))
    truth = task.get("truth")
    replay = bool(truth) and task.get("replay", False)
    _conclude(release, folder, show, truth=truth, id=(task.get("id") or None) if truth else None, replay=replay)


def _audit_project(task: Task, folder: Path, show: Show) -> None:
    show("reading the project", 0, 0)
    with open_project(Path(task["release"])) as opened:
        opened.project.write_hierarchies(folder)
        opened.project.write_release(folder / RELEASE)
        config = opened.project.config(folder)
        (folder / CONFIG).write_text(config.to_toml(folder), encoding="utf-8")
        replay = opened.project.mechanism.name in ("paper", "arx")
        _conclude(opened.release, folder, show, truth=opened.table, replay=replay)


def _make(task: Task, folder: Path, show: Show) -> None:
    """Anonymize a raw table, then audit what came of it against that table."""
    from unblur.anonymizing import anonymize

    show("reading and grouping the rows", 0, 0)
    config = Config.read(folder / WANTED)
    source, separator = _without(task["dropped"], Path(task["table"]), folder)
    options = {"recoding": task["recoding"], "missing": task["missing"]}
    if task["recoding"] == "global":
        options["suppression_limit"] = task["suppression_limit"]
    with anonymize(source, config, progress=lambda done, of: show("forming classes", done, of), **options) as made:
        show("writing the release", 0, 0)
        written = replace(made, table=replace(made.table, separator=separator)) if separator else made
        written.save(folder / RELEASE)
    release = read_release(folder / RELEASE, Config.read(folder / CONFIG))
    missing = release.config.missing  # rows without a value have no cell to be compared with
    _conclude(release, folder, show, truth=None if missing else task["table"])


def _without(dropped: list[str], table: Path, folder: Path) -> tuple[Path, str | None]:
    """The table without some columns, so that they are not published, and the separator that it had."""
    if not dropped:
        return table, None
    with Workspace() as workspace:
        whole = open_file(table, "the table", workspace, (), None)
        target = folder / "kept.parquet"
        write_copy(replace(whole, rows=whole.rows.drop(*dropped)), str(target))
        return target, whole.separator


def _conclude(release: Release, folder: Path, show: Show, **options: Any) -> None:
    from unblur.auditing import audit
    from unblur.web.reporting import write_report

    stage = ""

    def enter(what: str) -> None:
        nonlocal stage
        stage = what
        show(stage, 0, 0)

    found = audit(release, progress=lambda done, of: show(stage, done, of), on_stage=enter, **options)
    show("writing the report", 0, 0)
    write_report(found, folder)
    pack_config(folder)


def pack_config(folder: Path) -> None:
    """Pack the config with the hierarchy files it names, if there are any."""
    others = [each for each in sorted(folder.iterdir()) if each.suffix in (".csv", ".ahs") and each.name != RELEASE]
    if others:
        with zipfile.ZipFile(folder / PACKED, "w", zipfile.ZIP_DEFLATED) as archive:
            for each in [folder / CONFIG, *others]:
                archive.write(each, each.name)
