"""The site: its cases, its queue, and the steps from files to a report."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from unblur.web.cases import Case, Cases
from unblur.web.describing import Described
from unblur.web.forms import Setting
from unblur.web.guard import Keys
from unblur.web.jobs import Job, Queue
from unblur.web.looks import Profile
from unblur.web.proposals import demo_setting, propose_raw, propose_release
from unblur.web.results import CONFIG, DOWNLOADS, FIGURES, PROFILE, WANTED, Download
from unblur.web.uploads import Upload

MAKING = "Making a release and auditing it"


class NotHere(Exception):
    """There is no such page, or it belongs to somebody else."""


@dataclass(frozen=True)
class Site:
    """What all routes share."""

    keys: Keys
    queue: Queue
    cases: Cases
    hosts: Collection[str]
    limit: int
    """How many bytes the files of one form may have."""

    def case(self, visitor: str, id: str) -> Case:
        """Find a case, and take note of what its jobs have done meanwhile."""
        case = self.cases.find(visitor, id)
        if case is None:
            raise NotHere
        with case.lock:
            for job in list(case.jobs):
                self._take_note(case, job)
        return case

    def job(self, case: Case, number: int) -> Job:
        """Find a job of a case."""
        if not 1 <= number <= len(case.jobs):
            raise NotHere
        return case.jobs[number - 1]

    def _take_note(self, case: Case, job: Job) -> None:
        if job.state != "done" or job.figures:
            return
        if job.task["kind"] != "look":
            job.figures = job.read(FIGURES)
        elif case.profile is None:
            case.profile = Profile.of(job.read(PROFILE))
            if case.is_demo:
                case.setting = demo_setting(case.profile)
            else:
                case.setting = case.proposal = (propose_raw if case.kind == "raw" else propose_release)(case.profile)

    def look(self, case: Case) -> Job:
        """Begin to look at the files of a case."""
        files = {role: str(upload.path) for role, upload in case.files.items() if role in ("table", "truth")}
        job = case.new_job("Reading your files", {"kind": "look", "raw": case.kind == "raw", **files})
        self.queue.add(job)
        return job

    def open_demo(self, visitor: str) -> Case:
        """Begin a case with the bundled clinic."""
        case = self.cases.open(visitor, "raw")
        case.is_demo = True
        path = case.folder / "upload-demo"
        _copy_demo("clinic.csv", path)
        case.files["table"] = Upload("clinic.csv (synthetic)", path, path.stat().st_size)
        self.look(case)
        making = {"recoding": "local", "missing": "error", "suppression_limit": "0"}
        job = case.new_job(MAKING, {"kind": "make", "table": str(path), "dropped": [], **making})
        job.folder.mkdir(mode=0o700)
        _copy_demo("clinic.toml", job.folder / WANTED)
        _copy_demo("hierarchy_sex.csv", job.folder / "hierarchy_sex.csv")
        self.queue.add(job)
        return case

    def start(self, case: Case, described: Described) -> Job:
        """Audit a release as it was described, or make one and audit it."""
        setting, table = described.setting, str(case.files["table"].path)
        if case.kind == "raw":
            task = {"kind": "make", "table": table, "dropped": _dropped(case, setting), **_making(setting)}
            job = case.new_job(MAKING, task)
        else:
            truth = case.files.get("truth")
            replay = described.mechanism is not None and described.mechanism.name in ("paper", "arx")
            beside = {"truth": str(truth.path) if truth else None, "id": setting.id_column, "replay": replay}
            job = case.new_job("Auditing the release", {"kind": "audit", "release": table, **beside})
        job.folder.mkdir(mode=0o700)
        described.write_config(job.folder / (WANTED if case.kind == "raw" else CONFIG))
        self.queue.add(job)
        return job

    def start_project(self, case: Case) -> Job:
        """Audit a project of ARX, which says everything itself."""
        task = {"kind": "project", "release": str(case.files["table"].path)}
        job = case.new_job("Auditing the project", task)
        self.queue.add(job)
        return job

    def file(self, job: Job, name: str) -> tuple[Path, Download]:
        """Find a file of a result by the name of its link."""
        found = DOWNLOADS.get(name)
        if found is None or not job.figures or not (job.folder / found.file).is_file():
            raise NotHere
        return job.folder / found.file, found


def _dropped(case: Case, setting: Setting) -> list[str]:
    assert case.profile is not None
    return [look.name for look, each in zip(case.profile.looks, setting.columns, strict=False) if each.role == "drop"]


def _making(setting: Setting) -> dict[str, str]:
    recoding = "global" if setting.made_by == "global" else "local"
    share = setting.suppression_limit.strip() if recoding == "global" else ""
    return {"recoding": recoding, "missing": setting.missing, "suppression_limit": share or "0"}


def _copy_demo(name: str, target: Path) -> None:
    target.write_bytes((files("unblur.demo") / name).read_bytes())


def next_page(case: Case, job: Job) -> str:
    """Where to go when a job is done."""
    if job.task["kind"] == "look":
        return f"/case/{case.id}/describe"
    return f"/case/{case.id}/jobs/{job.number}/report"
