"""The process of one job: reads its task, does it, tells its progress on standard output, and ends.

If the server goes away, standard input ends, and so does this process. Temporary files lie in the job's folder, so
that nothing is left however it ends. What goes wrong is told without a traceback: that would repeat values.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

from unblur.errors import UnblurError, UnblurWarning
from unblur.web.words import place_of

TASK, PROBLEM, REMARKS = "task.json", "problem.json", "remarks.json"
PAUSE = 0.1
"""Seconds between two reports of progress."""


class _Progress:
    def __init__(self) -> None:
        self._stage, self._last = "", 0.0

    def show(self, stage: str, done: int, of: int) -> None:
        now = time.monotonic()
        if stage == self._stage and done < of and now - self._last < PAUSE:
            return
        self._stage, self._last = stage, now
        print(json.dumps({"stage": stage, "done": done, "of": of}), flush=True)


def main(folder: Path) -> int:
    """Do the task of a folder; 0 if it was done, 2 if the user can mend what went wrong, 1 if it is our fault."""
    threading.Thread(target=_end_with_server, daemon=True).start()
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder / "temporary")
    os.makedirs(tempfile.tempdir, mode=0o700)
    from unblur.web.tasks import run

    task = json.loads((folder / TASK).read_text(encoding="utf-8"))
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UnblurWarning)
            run(task, folder, _Progress().show)
        _write(folder / REMARKS, [str(each.message) for each in caught if issubclass(each.category, UnblurWarning)])
    except UnblurError as error:
        _write(folder / PROBLEM, {"message": str(error), "ours": False})
        return 2
    except BaseException as error:
        _write(folder / PROBLEM, {"message": place_of(error), "ours": True})
        return 1
    return 0


def _end_with_server() -> None:
    os.read(0, 1)  # not through sys.stdin: its lock would be held when the interpreter ends
    os._exit(3)


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
