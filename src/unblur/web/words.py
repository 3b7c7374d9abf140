"""Messages of the command line in the words of the page: fields instead of options, file names instead of paths."""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping
from pathlib import Path

FIELDS = {
    "low": "From",
    "high": "To",
    "step": "Step",
    "pad": "Padding character",
    "mask": "masking",
    "fanout": "Group size",
    "missing": "Missing values",
}
"""What the page calls an option of the command line."""
PHRASES = (
    ("; --encoding NAME says otherwise", "; if that is wrong, save it as UTF-8"),
    ("; name the encoding with --encoding", "; save it as UTF-8"),
    (": add --out FILE.csv", ""),
    ("; `unblur hierarchy build` makes hierarchies for such", "; is this the raw table? Then choose “Make a release”"),
    ("; write a hierarchy file for such labels", "; choose “List of values” or give a hierarchy file"),
    ("give it with --truth", "add it on the first page"),
)


def in_page_words(message: str, names: Mapping[str, str] | None = None) -> str:
    """Say a message as the page would; `names` are what users call the files behind paths.

    >>> in_page_words("/private/upload-1: the step 0.1 is taken; --step sets another", {"/private/upload-1": "a.csv"})
    'a.csv: the step 0.1 is taken; “Step” sets another'
    """
    for path, name in sorted((names or {}).items(), key=lambda pair: -len(pair[0])):
        message = message.replace(path, name)
    for said, instead in PHRASES:
        message = message.replace(said, instead)
    return re.sub(r"--([a-z]+(?:-[a-z]+)*)", lambda found: f"“{FIELDS.get(found[1], found[1])}”", message)


def sentence(message: str) -> str:
    """Begin with a capital letter and end with a full stop, unless it begins with a name of its own."""
    first = message.split(" ", 1)[0]
    start = message[:1].upper() + message[1:] if first.isalpha() else message
    return start if start.endswith((".", "?", "!", "…")) else f"{start}."


def place_of(error: BaseException) -> str:
    """Say what kind of error it was and where, but none of its words."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [each for each in frames if "unblur" in each.filename] or frames
    where = f" in {Path(ours[-1].filename).name}, line {ours[-1].lineno}" if ours else ""
    return f"{type(error).__name__}{where}"
