"""The application: routes, guard, and what is said when something goes wrong."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.telemetry import TelemetryConfig
from starlette.exceptions import HTTPException

from unblur.errors import UnblurError
from unblur.web import api, pages
from unblur.web.cases import Cases, every
from unblur.web.guard import Guard, Keys, Receive, Refusal, Scope, Send
from unblur.web.jobs import Queue
from unblur.web.rendering import render
from unblur.web.site import NotHere, Site
from unblur.web.uploads import UploadError
from unblur.web.words import place_of, sentence

IDLE = 3600.0
"""So many seconds after the last sign of life a case is removed."""
LIMIT = 1 << 30
SILENT: TelemetryConfig = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}
"""FastAPI would send what it sees of requests and errors to wherever the environment says; here it must not."""
NOWHERE = "There is no such page. Perhaps its files were deleted, or it belongs to another browser."


def build(
    *, hosts: Collection[str], keys: Keys | None = None, workers: int = 2, limit: int = LIMIT, idle: float = IDLE
) -> FastAPI:
    """Build the application for the addresses that it may be called by."""
    keys = keys or Keys()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        queue, ended = Queue(workers), threading.Event()
        cases = Cases(queue, idle=idle)
        app.state.site = Site(keys, queue, cases, hosts, limit)
        sweeper = threading.Thread(target=every, args=(min(60.0, idle), cases.sweep, ended), daemon=True)
        sweeper.start()
        try:
            yield
        finally:
            ended.set()
            queue.close()
            cases.close_all()

    app = FastAPI(
        title="unblur",
        telemetry=SILENT,
        version=version("unblur"),
        lifespan=lifespan,
        openapi_url="/api/openapi.json",
        docs_url=None,  # their scripts come from elsewhere
        redoc_url=None,
    )
    app.include_router(api.router)
    app.include_router(pages.router)
    app.add_exception_handler(UnblurError, _say_error)
    app.add_exception_handler(NotHere, _say_nowhere)
    app.add_exception_handler(HTTPException, _say_http_error)
    app.add_exception_handler(RequestValidationError, _say_invalid)
    app.add_exception_handler(Exception, _say_bug)
    app.add_middleware(Guard, hosts=hosts, keys=keys, refuse=_refuse)
    return app


def _answer(request: Request, status: int, title: str, message: str) -> Response:
    if request.url.path.startswith("/api/"):
        return JSONResponse({"message": message}, status)
    return pages.page(request, "error.html", status=status, title=title, message=message)


def _say_error(request: Request, error: Exception) -> Response:
    status = error.status if isinstance(error, UploadError) else 400
    return _answer(request, status, "This cannot be done", sentence(str(error)))


def _say_nowhere(request: Request, error: Exception) -> Response:
    return _answer(request, 404, "Nothing is here", NOWHERE)


def _say_http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 404:
        return _say_nowhere(request, error)
    answer = _answer(request, status, "This cannot be done", "The page cannot be asked for in this way.")
    if isinstance(error, HTTPException):
        answer.headers.update(error.headers or {})
    return answer


def _say_invalid(request: Request, error: Exception) -> Response:
    """Say where a request is not as it should be; never what was in it."""
    if not request.url.path.startswith("/api/"):
        return _say_nowhere(request, error)
    assert isinstance(error, RequestValidationError)
    places = {".".join(map(str, each["loc"])) for each in error.errors()}
    return JSONResponse({"message": f"not as the schema says: {', '.join(sorted(places)[:10])}"}, 422)


def _say_bug(request: Request, error: Exception) -> Response:
    message = f"This is a fault of unblur ({place_of(error)}), not of your files. Your other work goes on."
    return _answer(request, 500, "Something went wrong", message)


async def _refuse(scope: Scope, receive: Receive, send: Send, refusal: Refusal) -> None:
    """Answer a request that the guard turned away; nothing of the site is shown."""
    message = sentence(refusal.reason)
    answer: Response
    if scope["path"].startswith("/api/"):
        answer = JSONResponse({"message": message}, refusal.status)
    else:
        text = render("error.html", title="Not answered", message=message, token="", case=None, limit=0)
        answer = Response(text, refusal.status, media_type="text/html")
    await answer(scope, receive, send)
