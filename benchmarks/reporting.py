"""Tables in Markdown, and the machine they were measured on."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out a Markdown table; all columns but the first are numbers."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join(_line(row, widths) for row in (header, rule, *rows))


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (
        cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
    )
    return "| " + " | ".join([first, *others]) + " |"


def time_text(seconds: float) -> str:
    """Write a time with three figures or so."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms" if seconds >= 0.01 else f"{seconds * 1000:.1f} ms"
    return f"{seconds:.1f} s"


def count_text(number: int) -> str:
    """Write a count with its thousands marked."""
    return f"{number:,}"


def verdict(value: float, bar: float) -> str:
    """Say whether a bar is met."""
    return "met" if value <= bar else "MISSED"


def machine() -> str:
    """Describe the machine in one line."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    packages = ", ".join(f"{name} {version(name)}" for name in ("duckdb", "ibis-framework", "numpy"))
    return (
        f"{_processor()}, {os.cpu_count()} cores, {memory:.0f} GB RAM; Python {platform.python_version()}, {packages}; "
        f"{date.today().isoformat()}"
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()
