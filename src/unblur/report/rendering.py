"""The report written: HTML in one file, Markdown, and a few lines for a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from unblur.gates import Gate
from unblur.pages.rendering import render
from unblur.report.contents import gather
from unblur.report.markdown import write

if TYPE_CHECKING:
    from unblur.audits import Audit


def html(audit: Audit, *, public: bool = False, gates: Sequence[Gate] = ()) -> str:
    """Write a report as one HTML file: no scripts, nothing from outside; the same audit, the same text.

    `gates` replace the default limit of the verdict. `public=True` leaves out everything but aggregates.
    """
    return render("report.html", report=gather(audit, public=public, gates=gates))


def markdown(audit: Audit, *, public: bool = False, gates: Sequence[Gate] = ()) -> str:
    """Write a summary as Markdown."""
    return write(gather(audit, public=public, gates=gates))


def notebook(audit: Audit, *, gates: Sequence[Gate] = ()) -> str:
    """Write the first screen without its picture, to stand in a page of others."""
    return render("notebook.html", report=gather(audit, gates=gates))
