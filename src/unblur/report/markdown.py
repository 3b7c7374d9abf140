"""The report as Markdown: the verdict, the figures, the findings and the worst classes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from unblur.report.classes import Row
from unblur.report.contents import Contents

MOST_CLASSES = 20
"""So many classes are listed."""


def write(report: Contents) -> str:
    """Write a report as Markdown."""
    parts = (_start, _subject, _checks, _findings, _classes, _together, _outliers, _rules, _limits)
    return "\n".join(line for part in parts for line in part(report)) + "\n"


def _start(report: Contents) -> Iterator[str]:
    version = " (public version)" if report.public else ""
    yield f"# What this release gives away{version}\n"
    yield f"**{report.verdict.title}.** {_safe(report.verdict.sentence)}\n"
    for each in report.figures:
        yield f"- **{_safe(each.number)}** {_safe(each.text)}"
    yield f"\n{_safe(report.limit)} Evidence for review, not a certificate."


def _subject(report: Contents) -> Iterator[str]:
    found = report.subject
    yield "\n## What was audited\n"
    yield from _table(["", ""], [[each.name, each.value] for each in found.facts])
    yield ""
    head = ["Attribute", "Kind", "Values", "Leaves", "Layers", "Finest label"]
    rows = [
        [each.name, each.kind, f"{each.values:,}", f"{each.leaves:,}", f"{each.layers:,}", each.finest]
        for each in found.attributes
    ]
    yield from _table(head, rows, numbers=(2, 3, 4))
    yield f"\nMechanism assumed: **{_safe(found.mechanism)}**. {_safe(found.assumed)} {_safe(' '.join(found.also))}"
    yield from (f"- {_safe(each.name)}: {_safe(each.value)}" for each in found.settings)
    if found.alternatives:
        yield "\nNo mechanism was stated. Stating one would take away:\n"
        yield from (f"- {_safe(each.name)}: {_safe(each.outcome)}" for each in found.alternatives)


def _checks(report: Contents) -> Iterator[str]:
    yield "\n## Fit and leaks\n"
    rows = [[each.question, each.sign, each.answer] for each in (*report.fit, *report.leaks)]
    yield from _table(["Check", "Result", "Answer"], rows)
    if report.problems:
        yield ""
        yield from (f"- {_safe(each)}" for each in report.problems)


def _findings(report: Contents) -> Iterator[str]:
    yield "\n## Findings\n"
    if not report.advice:
        yield "Nothing was found."
    for severity, meaning, found in report.advice:
        yield f"### {severity.capitalize()}: {meaning}\n"
        for each in found:
            yield f"- **{_safe(each.title)}.** {_safe(each.text)}"
            yield from (f"  - {_safe(remedy)}" for remedy in each.remedies)
        yield ""


def _classes(report: Contents) -> Iterator[str]:
    if report.summaries:
        yield "## Classes\n"
        if report.warning:
            yield f"{_safe(report.warning)}\n"
        rows = [[each.name, f"{each.classes:,}", each.median, each.mean, each.largest] for each in report.summaries]
        yield from _table(["Narrowed down", "Classes", "Median", "Mean", "Most"], rows, numbers=(1, 2, 3, 4))
    if report.truth:
        yield f"\nWith the raw table: {_safe(report.truth)}"
    if report.pages:
        names = [each.name for each in report.subject.attributes]
        head = ["Class", *names, "Records", "Cells", "Published", "Left", "Narrowed down", "Bits", "Certain"]
        listed = [row for page in report.pages for row in page.rows]
        yield f"\nThe worst {min(MOST_CLASSES, len(listed)):,} of {len(listed):,}:\n"
        yield from _table(head, [_row(each) for each in listed[:MOST_CLASSES]])


def _row(row: Row) -> list[str]:
    numbers = [f"{row.size:,}", row.cells, row.published, row.plausible, row.fold, row.bits, row.certain]
    return [f"{row.number:,}" if row.number else "suppressed", *row.labels, *numbers]


def _together(report: Contents) -> Iterator[str]:
    if report.together:
        yield "\n## All classes together\n"
        yield from _table(["", "Raw data sets"], report.together.rows, numbers=(1,))
        yield ""
        yield from (f"- {_safe(each)}" for each in report.together.words)
        if members := report.together.members:
            yield ""
            head = ["Class", "Alone", "Among the others", "Certain records", "Chance that somebody is alone in a cell"]
            rows = [[each.name, each.alone, each.together, each.certain, each.single] for each in members]
            yield from _table(head, rows, numbers=(1, 2, 3, 4))


def _outliers(report: Contents) -> Iterator[str]:
    yield "\n## Suppressed records\n"
    yield _safe(report.outliers_words)


def _rules(report: Contents) -> Iterator[str]:
    if report.rules:
        yield "\n## What each rule takes away, in bits\n"
        if report.warning:
            yield f"{_safe(report.warning)}\n"
        rows = [[each.name, each.alone, each.last] for each in report.rules]
        yield from _table(["Rule", "Alone", "On top of the others"], rows, numbers=(1, 2))


def _limits(report: Contents) -> Iterator[str]:
    yield "\n## Limits\n"
    scope = "" if report.together else " at one class at a time,"
    yield f"This is evidence for review, not a certificate. It looks{scope} at the quasi-identifiers only, and knows no"
    yield "attacker with other sources."
    yield from (f"- {_safe(each)}" for each in report.limits)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> Iterator[str]:
    yield _line(head)
    yield _line(["---:" if place in numbers else "---" for place in range(len(head))], safe=True)
    yield from map(_line, rows)


def _line(cells: Sequence[str], safe: bool = False) -> str:
    return "| " + " | ".join(cells if safe else map(_safe, cells)) + " |"


def _safe(text: str) -> str:
    """Take the meaning from what Markdown, or HTML in it, would take for its own.

    >>> _safe("a|b <b> *x* [30, 50[")
    'a\\\\|b &lt;b> \\\\*x\\\\* \\\\[30, 50\\\\['
    """
    text = re.sub(r"\s+", " ", text).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_\[\]|#])", r"\\\1", text)
