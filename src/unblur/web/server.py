"""The server: on this machine only, with a start address that nobody can guess."""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn

from unblur.errors import ConfigError
from unblur.web.app import IDLE, LIMIT, build
from unblur.web.guard import Keys

ADDRESS = "127.0.0.1"


class Server(uvicorn.Server):
    """Ends by itself on Ctrl-C, a signal or a closed terminal, so that everything is cleaned up."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        def stop(number: int, frame: FrameType | None) -> None:
            self.handle_exit(number, frame)

        kinds = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
        before = {kind: signal.signal(kind, stop) for kind in kinds}
        try:
            yield
        finally:
            for kind, handler in before.items():
                signal.signal(kind, handler)


def serve(
    *,
    port: int = 0,
    workers: int | None = None,
    limit: int = LIMIT,
    idle: float = IDLE,
    announce: Callable[[str], None] = print,
) -> None:
    """Run until told to stop; `announce` is called with the start address as soon as it can be opened."""
    listener = _listen(port)
    port = listener.getsockname()[1]
    keys = Keys()
    hosts = [f"{name}:{port}" for name in (ADDRESS, "localhost")]
    hosts += [ADDRESS, "localhost"] if port == 80 else []  # browsers leave the usual port out
    app = build(hosts=hosts, keys=keys, workers=workers or _cores(), limit=limit, idle=idle)
    for name in ("uvicorn", "asyncio"):  # a traceback may repeat values
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    config = uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, proxy_headers=False, timeout_graceful_shutdown=3
    )
    announce(f"http://{ADDRESS}:{port}/open/{keys.token}")
    with listener:
        Server(config).run([listener])


def _cores() -> int:
    return max(1, min(4, os.cpu_count() or 1))


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((ADDRESS, port))
        listener.listen(128)  # so that the address can be opened at once
    except OSError as error:
        listener.close()
        raise ConfigError(f"port {port} cannot be used: {error.strerror or error}; leave --port out") from error
    return listener
