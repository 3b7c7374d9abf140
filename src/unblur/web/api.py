"""What the script of the page asks for, as JSON: checks while the user types, progress, a hierarchy file."""

from __future__ import annotations

import secrets
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel

from unblur.web.cases import Case
from unblur.web.describing import Described, describe
from unblur.web.forms import MOST_COLUMNS, Setting
from unblur.web.jobs import Job, State
from unblur.web.pages import Found, FoundJob, site_of
from unblur.web.rendering import render
from unblur.web.site import NotHere, next_page
from unblur.web.uploads import Upload, UploadError, shown_name, too_large

MOST_HIERARCHY_BYTES = 64 << 20


class Refused(BaseModel):
    """Why a request was not answered."""

    message: str


router = APIRouter(
    prefix="/api/cases/{case}",
    responses={code: {"model": Refused} for code in (400, 403, 404, 413, 421, 422)},
)


class FieldProblem(BaseModel):
    """What is wrong, and with which field of the form."""

    field: str
    message: str


class Checked(BaseModel):
    """What a description comes to; trees and preview are pieces of HTML."""

    ok: bool
    problems: list[FieldProblem]
    trees: dict[int, str]
    preview: str


class Progress(BaseModel):
    """How far a job is."""

    state: State
    stage: str
    done: int
    of: int
    ahead: int
    """How many jobs wait before it."""
    problem: str
    next: str | None
    """Where to go when it is done."""


class Alive(BaseModel):
    """That a case is still there."""

    jobs: int


def described_case(found: Found) -> Case:
    """A case whose table has been looked at."""
    if found.profile is None or found.profile.is_project:
        raise NotHere
    return found


Described_ = Annotated[Case, Depends(described_case)]


@router.get("/alive")
def alive(found: Found) -> Alive:
    """Say that the page is still open, so that its files are kept."""
    return Alive(jobs=len(found.jobs))


@router.post("/check")
def check(found: Described_, setting: Setting) -> Checked:
    """Look into a description, and keep it."""
    found.setting = setting
    return _checked(describe(found, setting))


def _checked(described: Described) -> Checked:
    return Checked(
        ok=described.ok,
        problems=[FieldProblem(field=each.field, message=each.message) for each in described.problems],
        trees={number: render("tree.html", tree=each) for number, each in described.trees.items()},
        preview=render("preview.html", described=described),
    )


@router.put("/columns/{number}/hierarchy")
async def take_hierarchy(
    request: Request, found: Described_, number: int, name: Annotated[str, Query(max_length=1_000)]
) -> Alive:
    """Take the hierarchy file of a column; the request has nothing else in it."""
    if not 0 <= number < MOST_COLUMNS:
        raise NotHere
    content = b""
    async for piece in request.stream():
        content += piece
        if len(content) > MOST_HIERARCHY_BYTES:
            raise UploadError(too_large(MOST_HIERARCHY_BYTES), status=413)
    path = found.folder / f"upload-{secrets.token_hex(8)}"
    path.write_bytes(content)
    found.files[f"columns.{number}.file"] = Upload(shown_name(name), path, len(content))
    return Alive(jobs=len(found.jobs))


@router.get("/jobs/{number}")
def progress(request: Request, found: FoundJob) -> Progress:
    """Say how far a job is."""
    return _progress(request, *found)


@router.post("/jobs/{number}/cancel")
def cancel(request: Request, found: FoundJob) -> Progress:
    """Stop a job."""
    site_of(request).queue.cancel(found[1])
    return _progress(request, *found)


def _progress(request: Request, case: Case, job: Job) -> Progress:
    return Progress(
        state=job.state,
        stage=job.stage,
        done=job.done,
        of=job.of,
        ahead=site_of(request).queue.ahead(job),
        problem=job.problem,
        next=next_page(case, job) if job.state == "done" else None,
    )
