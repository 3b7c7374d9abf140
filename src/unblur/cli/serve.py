"""`unblur serve`: the local web page."""

from __future__ import annotations

import sys
import webbrowser

from unblur.errors import ConfigError, MissingExtraError


def run(*, port: int | None = None, limit: int = 1024, workers: int | None = None, browser: bool = True) -> None:
    """Serve the page until Ctrl-C; `limit` is the size of uploads in megabytes."""
    try:
        from unblur.web.server import serve
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in (
            "fastapi",
            "pydantic",
            "python_multipart",
            "starlette",
            "uvicorn",
        ):
            raise
        raise MissingExtraError("the web page", "web") from error
    if limit < 1:
        raise ConfigError(f"--limit is a number of megabytes of 1 or more, not {limit}")

    def announce(address: str) -> None:
        print("Open this address in your browser; it works on this machine only and holds a secret:")
        print(address, flush=True)
        print("Ctrl-C ends the page and deletes everything that was uploaded.", file=sys.stderr)
        if browser:
            webbrowser.open(address)

    serve(port=port or 0, workers=workers, limit=limit << 20, announce=announce)
    print("The page has ended; its files are deleted.", file=sys.stderr)
