"""The files that an audit leaves for the page: the report in both versions, its JSON, and the figures to compare."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from unblur.audits import Audit
from unblur.report.phrases import fold
from unblur.report.rendering import html
from unblur.report.verdicts import judge
from unblur.web.results import FIGURES, PUBLIC, REPORT, RESULT


def write_report(audit: Audit, folder: Path) -> None:
    """Write everything that is shown or offered for download."""
    (folder / RESULT).write_text(audit.to_json(), encoding="utf-8")
    (folder / REPORT).write_text(html(audit), encoding="utf-8")
    (folder / PUBLIC).write_text(html(audit, public=True), encoding="utf-8")
    (folder / FIGURES).write_text(json.dumps(figures(audit)), encoding="utf-8")


def figures(audit: Audit) -> dict[str, Any]:
    """What two audits are compared by, in words."""
    verdict, summary, release = judge(audit), audit.summary, audit.release
    sizes = [each.size for each in release.classes]
    return {
        "verdict": verdict.kind,
        "title": verdict.title,
        "symbol": verdict.symbol,
        "sentence": verdict.sentence,
        "rows": [
            ["k", f"{release.config.k:,}"],
            ["Mechanism", _mechanism(audit)],
            ["Records", f"{release.rows:,}"],
            ["Classes", f"{len(sizes):,}"],
            ["Records in a class", f"{min(sizes):,} to {max(sizes):,}" if sizes else "–"],
            ["Suppressed", f"{release.outliers:,} ({release.outliers / release.rows:.1%})"],
            ["Narrowed down, at most", _fold(summary.max_bits)],
            ["Records whose cell is certain", _number(summary.certain_records)],
            ["Records singled out, by the raw table", _number(summary.singled_out)],
        ],
    }


def _mechanism(audit: Audit) -> str:
    settings = ", ".join(f"{name} {value}" for name, value in audit.mechanism.settings.items())
    return f"{audit.mechanism.name}, {settings}" if settings else audit.mechanism.name


def _fold(bits: float | None) -> str:
    if bits is None:
        return "–"
    return fold(bits) if bits > 0 else "not at all"


def _number(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"
