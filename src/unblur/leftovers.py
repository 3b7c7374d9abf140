"""Temporary folders of runs that were killed: removed by the next run, for they may hold raw rows.

A run holds a lock on a file in its folder for as long as it lives, and the system lets go of it however the run ends.
The file gets its name only when it is locked: a folder whose file can be locked belongs to nobody any more.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: nothing is locked, and nothing removed
    fcntl = None  # type: ignore[assignment]

_LOCK = ".in-use"


def claim(folder: Path) -> Callable[[], None]:
    """Mark a folder as in use until this process ends, or the returned function is called."""
    if fcntl is None:
        return lambda: None
    unnamed = folder / f"{_LOCK}.new"
    handle = os.open(unnamed, os.O_WRONLY | os.O_CREAT, 0o600)
    with suppress(OSError):  # some network disks know no locks: then the folder is never taken for a leftover
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        unnamed.rename(folder / _LOCK)
    return lambda: os.close(handle)


def remove_leftovers(parent: Path, prefix: str) -> None:
    """Remove the folders of this prefix whose runs have died."""
    for lock in parent.glob(f"{prefix}*/{_LOCK}"):
        with suppress(OSError):  # gone meanwhile, or somebody else's
            if _is_free(lock):
                shutil.rmtree(lock.parent, ignore_errors=True)


def _is_free(lock: Path) -> bool:
    if fcntl is None or lock.parent.is_symlink():
        return False
    handle = os.open(lock, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        if os.fstat(handle).st_uid != os.getuid():
            return False
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True
