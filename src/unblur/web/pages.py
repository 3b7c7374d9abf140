"""The pages: each a GET that can be asked for again, and forms that lead from one to the next."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from unblur.web.cases import Case, Kind
from unblur.web.describing import describe
from unblur.web.forms import setting_of
from unblur.web.guard import REPORT_POLICY
from unblur.web.jobs import Job
from unblur.web.rendering import STATIC, render, static
from unblur.web.site import NotHere, Site, next_page
from unblur.web.uploads import Form, UploadError, receive

router = APIRouter(include_in_schema=False)


def site_of(request: Request) -> Site:
    """The site that a request is for."""
    found: Site = request.app.state.site
    return found


def case_of(request: Request, case: str) -> Case:
    """The case that an address names, if it is the visitor's own."""
    return site_of(request).case(request.state.visitor, case)


def job_of(request: Request, case: str, number: int) -> tuple[Case, Job]:
    """The job that an address names, with its case."""
    found = case_of(request, case)
    return found, site_of(request).job(found, number)


Found = Annotated[Case, Depends(case_of)]
FoundJob = Annotated[tuple[Case, Job], Depends(job_of)]


def page(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Fill in a page for this visitor."""
    site, visitor = site_of(request), request.state.visitor
    token = site.keys.form_token(visitor) if visitor else ""
    values.setdefault("case", None)
    return HTMLResponse(render(template, token=token, limit=site.limit, **values), status)


def go(address: str) -> RedirectResponse:
    """Lead on after a form, so that going back or reloading sends nothing again."""
    return RedirectResponse(address, 303)


@router.get("/open/{token}")
def open_site(request: Request, token: str) -> Response:
    """Exchange the token of the start address for a cookie."""
    keys = site_of(request).keys
    visitor = keys.admit(token)
    if visitor is None:
        return page(request, "error.html", status=403, title="This address is not valid", message=WRONG_TOKEN)
    answer = go("/")
    answer.set_cookie(keys.cookie, visitor, httponly=True, samesite="strict", path="/")
    return answer


WRONG_TOKEN = "It belongs to another run of the program. Use the address that unblur serve has printed last."


@router.get("/static/{name}")
def serve_static(name: str) -> Response:
    if name not in STATIC:
        raise NotHere
    return Response(static(name), media_type=STATIC[name])


@router.get("/")
def start(request: Request, deleted: bool = False) -> Response:
    return page(request, "start.html", deleted=deleted)


async def form_of(request: Request, case: Case | None, *, small: bool = False) -> Form:
    """Receive a form, and make sure that it is one of ours."""
    site = site_of(request)
    folder = case.folder if case else site.cases.folder
    form = await receive(
        request.headers.get("content-type", ""), request.stream(), folder, limit=0 if small else site.limit
    )
    if not site.keys.accepts(request.state.visitor, form.fields.pop("token", "")):
        form.discard()
        raise UploadError("this form is out of date; reload the page and send it again", status=403)
    return form


@router.post("/cases")
async def open_case(request: Request) -> Response:
    site = site_of(request)
    case = site.cases.open(request.state.visitor, "release")
    try:
        form = await form_of(request, case)
        kind: Kind = "raw" if form.fields.get("kind") == "raw" else "release"
        if "table" not in form.files:
            raise UploadError(f"choose the {'raw table' if kind == 'raw' else 'release'} first")
    except BaseException:
        site.cases.close(case)
        raise
    case.kind, case.files = kind, {role: form.files[role] for role in ("table", "truth") if role in form.files}
    return go(_job_page(case, site.look(case)))


@router.post("/demo")
async def open_demo(request: Request) -> Response:
    await form_of(request, None, small=True)
    case = site_of(request).open_demo(request.state.visitor)
    return go(_job_page(case, case.jobs[-1]))


def _job_page(case: Case, job: Job) -> str:
    return f"/case/{case.id}/jobs/{job.number}"


@router.get("/case/{case}")
def show_case(found: Found) -> Response:
    return go(f"/case/{found.id}/describe")


@router.get("/case/{case}/describe")
def show_description(request: Request, found: Found) -> Response:
    if found.profile is None or found.setting is None:
        return go(_job_page(found, found.jobs[0]))
    if found.profile.is_project:
        return page(request, "project.html", case=found)
    return page(request, "describe.html", case=found, described=describe(found, found.setting))


@router.post("/case/{case}/describe")
async def take_description(request: Request, found: Found) -> Response:
    site, form = site_of(request), await form_of(request, found)
    if found.profile is None:
        raise NotHere
    if found.profile.is_project:
        return go(_job_page(found, site.start_project(found)))
    found.files |= {name: file for name, file in form.files.items() if name.startswith("columns.")}
    found.setting = setting_of(form.fields)
    if form.fields.get("action") == "start":
        described = await run_in_threadpool(describe, found, found.setting)
        if described.ok:
            return go(_job_page(found, await run_in_threadpool(site.start, found, described)))
    return go(f"/case/{found.id}/describe")


@router.get("/case/{case}/jobs/{number}")
def show_job(request: Request, found: FoundJob) -> Response:
    case, job = found
    if job.state == "done":
        return go(next_page(case, job))
    return page(request, "job.html", case=case, job=job, ahead=site_of(request).queue.ahead(job))


@router.post("/case/{case}/jobs/{number}/cancel")
async def cancel_job(request: Request, found: FoundJob) -> Response:
    await form_of(request, found[0], small=True)
    await run_in_threadpool(site_of(request).queue.cancel, found[1])
    return go(_job_page(*found))


@router.get("/case/{case}/jobs/{number}/report")
def show_report(request: Request, found: FoundJob) -> Response:
    case, job = found
    if not job.figures:
        return go(_job_page(case, job))
    packed = (job.folder / "config.zip").is_file()
    made = job.task["kind"] == "make"
    return page(request, "report-page.html", case=case, job=job, packed=packed, made=made)


@router.get("/case/{case}/jobs/{number}/show/{name}")
def show_file(request: Request, found: FoundJob, name: str) -> Response:
    """Show a report by itself, as if it came from nowhere."""
    path, download = site_of(request).file(found[1], name)
    if not download.name.endswith(".html"):
        raise NotHere
    return FileResponse(path, media_type=download.media, headers={"content-security-policy": REPORT_POLICY})


@router.get("/case/{case}/jobs/{number}/download/{name}")
def give_file(request: Request, found: FoundJob, name: str) -> Response:
    path, download = site_of(request).file(found[1], name)
    return FileResponse(
        path,
        media_type=download.media,
        filename=download.name,
        headers={"content-security-policy": REPORT_POLICY},
    )


@router.get("/case/{case}/compare")
def compare(request: Request, found: Found) -> Response:
    return page(request, "compare.html", case=found)


@router.post("/case/{case}/delete")
async def delete_case(request: Request, found: Found) -> Response:
    await form_of(request, found, small=True)
    await run_in_threadpool(site_of(request).cases.close, found)
    return go("/?deleted=1")
