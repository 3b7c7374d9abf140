"""The hash of a file, found beside all else that is done with it."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import Future
from io import FileIO
from pathlib import Path
from threading import Thread
from typing import Any

from unblur.errors import TableError

CHUNK = 1 << 22
"""So many bytes are hashed at a time: after each, the thread has to wait for its turn."""


def start_hashing(source: Any) -> Future[str | None]:
    """Begin to hash a file by SHA-256; None for what is no file."""
    hashing: Future[str | None] = Future()
    if isinstance(source, str | os.PathLike) and Path(source).is_file():
        # A daemon: who interrupts the run does not wait for the end of the file.
        Thread(target=_hash, args=(FileIO(source), hashing), daemon=True).start()
    else:
        hashing.set_result(None)
    return hashing


def _hash(file: FileIO, hashing: Future[str | None]) -> None:
    digest, chunk = hashlib.sha256(), memoryview(bytearray(CHUNK))
    try:
        with file:
            before = _stamp(file)
            while size := file.readinto(chunk):
                digest.update(chunk[:size])
            if _stamp(file) != before:
                raise TableError(f"{os.fspath(file.name)}: the file changed while it was read")
        hashing.set_result(digest.hexdigest())
    except Exception as error:
        hashing.set_exception(error)


def _stamp(file: FileIO) -> tuple[int, int]:
    """What changes when a file is written to; it may be removed meanwhile."""
    found = os.fstat(file.fileno())
    return found.st_size, found.st_mtime_ns
