"""`unblur demo`: the main job on bundled data."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from unblur.cli import anonymize
from unblur.errors import OutputError


def run(out: Path) -> None:
    """Anonymize the bundled clinic into a folder, and end with the path of the result."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name in ("clinic.csv", "clinic.toml", "hierarchy_sex.csv"):
            (out / name).write_bytes((files("unblur.demo") / name).read_bytes())
    except OSError as error:
        raise OutputError(f"{out}: {error.strerror or error}") from error
    print("A synthetic clinic: 500 invented patients.")
    print(f"unblur anonymize {out / 'clinic.csv'} --config {out / 'clinic.toml'} --out {out / 'release.csv'}")
    release = out / "release.csv"
    anonymize.run(str(out / "clinic.csv"), config=out / "clinic.toml", out=release, trace=out / "trace.json")
    print(release)
