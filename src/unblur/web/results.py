"""The files that jobs leave in their folders, and which of them can be downloaded under which names."""

from __future__ import annotations

from dataclasses import dataclass

PROFILE, COPY, WANTED = "profile.json", "table.parquet", "wanted.toml"
RELEASE, CONFIG, PACKED = "release.csv", "release.toml", "config.zip"
REPORT, PUBLIC, RESULT, FIGURES = "report.html", "report-public.html", "audit.json", "figures.json"


@dataclass(frozen=True)
class Download:
    """A file of a result."""

    file: str
    media: str
    name: str
    """What the browser calls it."""


HTML, JSON, TOML, ZIP, CSV = "text/html", "application/json", "application/toml", "application/zip", "text/csv"
DOWNLOADS = {
    "report": Download(REPORT, HTML, "unblur-report-internal.html"),
    "public": Download(PUBLIC, HTML, "unblur-report-public.html"),
    "json": Download(RESULT, JSON, "unblur-audit.json"),
    "config": Download(CONFIG, TOML, "release.toml"),
    "config-zip": Download(PACKED, ZIP, "unblur-config.zip"),
    "release": Download(RELEASE, CSV, "release.csv"),
}
