"""`unblur demo`: the main job on bundled data."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from unblur.cli import anonymize, audit, explain
from unblur.errors import OutputError


def run(out: Path) -> None:
    """Anonymize the bundled clinic into a folder, audit the release, and end with the path of the result."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name in ("clinic.csv", "clinic.toml", "hierarchy_sex.csv"):
            (out / name).write_bytes((files("unblur.demo") / name).read_bytes())
    except OSError as error:
        raise OutputError(f"{out}: {error.strerror or error}") from error
    print("A synthetic clinic: 500 invented patients.")
    print(f"unblur anonymize {out / 'clinic.csv'} --config {out / 'clinic.toml'} --out {out / 'release.csv'}")
    release, raw, result, report = (out / name for name in ("release.csv", "clinic.csv", "audit.json", "report.html"))
    anonymize.run(str(raw), config=out / "clinic.toml", out=release, trace=out / "trace.json")
    config = release.with_suffix(".toml")
    print(f"\nunblur explain {release} --config {config} --class 51")
    explain.run(str(release), config=config, chosen="51")
    print(f"\nunblur audit {release} --config {config} --truth {raw} --json {result} --html {report}")
    audit.run(str(release), config=config, truth=str(raw), json=str(result), html=report)
    print(report)
