"""One look for all pictures, and how a chart becomes SVG or PNG.

The accents are those of Okabe and Ito's palette that stand out on white, and people with any colour vision tell them
apart; still, nothing is told by colour alone. Every colour has a light and a dark form. In the file stands the light
one, which printers and old programs show; a style sheet in the picture exchanges all of them, paper included, where the
reader prefers dark. So ink and paper always change together, whatever page surrounds them. A page with a switch of its
own sets `--picture-ink`, `--picture-paper` and so on (the keys of `COLOURS`), and these win.

The same chart gives the same bytes: text is measured with a font that the renderer brings along, and the ids that it
counts up over its lifetime are numbered anew. They begin with the name of the picture, so pictures of different names
can share a page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from xml.sax.saxutils import escape

import altair as alt
import vl_convert

Chart = alt.Chart | alt.LayerChart | alt.HConcatChart | alt.VConcatChart
Row = Mapping[str, Any]

COLOURS = {
    "ink": ("#1f2328", "#e6e8eb"),
    "faint": ("#57606a", "#aab4be"),
    "line": ("#c4cad1", "#4b545e"),
    "cell": ("#f4f6f8", "#23282e"),
    "paper": ("#ffffff", "#15181c"),
    "blue": ("#0072b2", "#56b4e9"),
    "vermillion": ("#d55e00", "#ee8a4a"),
    "green": ("#009e73", "#3cc9a3"),
    "purple": ("#cc79a7", "#dd9cc0"),
}
"""Of each colour, the form on light and on dark paper."""
INK, FAINT, LINE, CELL, PAPER, BLUE, VERMILLION, GREEN, PURPLE = (light for light, _ in COLOURS.values())
ACCENTS = (BLUE, VERMILLION, GREEN, PURPLE)

FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
SCALE = 2
"""How many pixels of a PNG stand for one of the drawing."""
TEXT, SMALL = 13, 11
"""Sizes of text, in pixels."""
FEWEST = 5
"""A text that must be cut to fewer characters is left out."""
CONFIG: dict[str, Any] = {
    "aria": False,  # the picture as a whole has a description; hundreds of unnamed marks are noise
    "background": PAPER,
    "padding": 10,
    "font": FONT,
    "view": {"stroke": None},
    "text": {"color": INK, "fontSize": TEXT, "font": FONT},
    "title": {"color": INK, "fontSize": TEXT + 1, "anchor": "start", "offset": 12, "subtitleColor": FAINT},
    "axis": {
        "labelColor": INK,
        "labelFontSize": SMALL + 1,
        "titleColor": INK,
        "titleFontSize": TEXT,
        "titlePadding": 8,
        "domain": False,
        "grid": False,
        "ticks": False,
    },
    "legend": {
        "labelColor": INK,
        "labelFontSize": SMALL + 1,
        "labelLimit": 260,
        "titleColor": INK,
        "titleFontSize": SMALL + 1,
        "titleLimit": 260,
        "symbolStrokeColor": INK,
    },
    "concat": {"spacing": 36},
}


@dataclass(frozen=True)
class Picture:
    """A chart with the words that go with it."""

    name: str
    """Of its file, and what its ids begin with."""
    title: str
    caption: str
    """To be read beside the picture."""
    alternative: str
    """To be read instead of it."""
    chart: Chart

    def svg(self) -> str:
        return _dressed(self._drawn, name=self.name, title=self.title, alternative=self.alternative)

    def png(self) -> bytes:
        return vl_convert.svg_to_png(self._drawn, scale=SCALE)

    @cached_property
    def _drawn(self) -> str:
        return _render(self.chart)


def to_svg(chart: Chart, *, name: str, title: str, alternative: str) -> str:
    """Draw a chart as SVG, for a page or a file of its own; pictures on one page need different names."""
    return _dressed(_render(chart), name=name, title=title, alternative=alternative)


def _dressed(drawn: str, *, name: str, title: str, alternative: str) -> str:
    """Give a drawing its words, ids of its own, and colours for the dark."""
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise ValueError(f"the name of a picture is lower-case letters, digits and hyphens, not {name!r}")
    tag, body = _own_ids(drawn, name).split(">", 1)
    size = _size(tag)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="unblur-picture" {size} role="img" '
        f'aria-labelledby="{name}-title" aria-describedby="{name}-alternative">'
        f'<title id="{name}-title">{escape(printable(title))}</title>'
        f'<desc id="{name}-alternative">{escape(printable(alternative))}</desc>'
        f"<style>{_sheet()}</style>"
    )
    return head + body + "\n"


def to_png(chart: Chart, *, scale: float = SCALE) -> bytes:
    """Draw a chart as PNG, on light paper."""
    return vl_convert.svg_to_png(_render(chart), scale=scale)


def chart_of(values: Iterable[Row]) -> alt.Chart:
    """Make a chart of rows as they are."""
    return alt.Chart(alt.InlineData(values=[dict(row) for row in values]))


def layered(
    parts: Iterable[alt.Chart], *, width: float, height: float, title: str = "", note: str = ""
) -> alt.LayerChart:
    """Lay charts over each other, the first at the bottom."""
    chart: alt.LayerChart = alt.layer(*parts).resolve_scale(shape="independent").properties(width=width, height=height)
    if title or note:
        heading = alt.TitleParams(printable(title), subtitle=printable(note) if note else alt.Undefined)
        chart = chart.properties(title=heading)
    return chart


def written(chart: alt.Chart, *, rim: bool = True, **look: Any) -> list[alt.Chart]:
    """Write the texts of a chart, on a rim of paper if they are to stand out from lines."""
    ink = chart.mark_text(baseline="middle", fill=INK, **look)
    paper = chart.mark_text(baseline="middle", fill=PAPER, stroke=PAPER, strokeWidth=4, strokeJoin="round", **look)
    return [paper, ink] if rim else [ink]


def beside(*charts: Chart) -> alt.HConcatChart:
    """Put charts in a row, each with its own legend."""
    row: alt.HConcatChart = alt.hconcat(*charts).resolve_scale(**_OWN)
    return row


def below(*charts: Chart) -> alt.VConcatChart:
    """Put charts in a column, each with its own legend."""
    column: alt.VConcatChart = alt.vconcat(*charts).resolve_scale(**_OWN)
    return column


_OWN: dict[str, Any] = dict.fromkeys(
    ("fill", "fillOpacity", "opacity", "shape", "stroke", "strokeDash", "strokeWidth"), "independent"
)


def accent(number: int) -> str:
    """The colour of the thing of this number, counted from 0; they come round again."""
    return ACCENTS[number % len(ACCENTS)]


def printable(text: str) -> str:
    """Replace what XML cannot hold, or what would break the line, by blanks."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]", " ", text)


def width_of(text: str, size: float = TEXT) -> float:
    """Guess how wide a text is, rather too wide than too narrow: by the kinds of its characters."""
    return size * sum(1.05 if ord(each) > 0x2E7F else 0.34 if each in " .,:;[](){}|!'ijl" else 0.63 for each in text)


def shortened(text: str, width: float, size: float = TEXT) -> str:
    """Cut a text to a width, but never within a number, which would read as another; nothing if too little is left.

    >>> shortened("[1250, 1375[", 60, size=12), shortened("cardiology", 60, size=12), shortened("[12, 13[", 20, size=12)
    ('[1250, …', 'cardiol…', '')
    """
    text = printable(text)
    if width_of(text, size) <= width:
        return text
    kept = next(n for n in range(len(text), -1, -1) if n == 0 or width_of(text[:n] + "…", size) <= width)
    if re.match(r"[.,]?\d", text[kept:]):
        kept = len(re.sub(r"\d[\d.,]*$", "", text[:kept]))
    return text[:kept] + "…" if len(text[:kept].strip()) >= FEWEST else ""


def _render(chart: Chart) -> str:
    spec = chart.to_dict()
    spec["config"] = CONFIG
    version = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    return vl_convert.vegalite_to_svg(spec, vl_version=version, allowed_base_urls=[])


def _own_ids(svg: str, name: str) -> str:
    """Number the ids from 1, behind the name; only inside tags, for a label may look like an id."""
    known: dict[str, str] = {}

    def own(found: re.Match[str]) -> str:
        return found[1] + known.setdefault(found[2], f"{name}-{len(known) + 1}")

    def in_tag(tag: re.Match[str]) -> str:
        return re.sub(r'((?: id="|url\(#|href="#))([^")]+)', own, tag[0])

    return re.sub(r"<[^>]*>", in_tag, svg)


def _size(tag: str) -> str:
    """As large as drawn, and smaller where there is less room."""
    found = re.search(r'width="([\d.]+)" height="([\d.]+)" viewBox="([^"]+)"', tag)
    assert found, "an SVG without its size"
    width, height, box = found.groups()
    return f'viewBox="{box}" width="{width}" height="{height}"'


def _sheet() -> str:
    """The style sheet: the same in every picture, so it does no harm to have it twice on a page.

    All that concerns colours is inside `@media`: paper is always light, and programs that do not know variables skip
    it, where some would paint everything black.
    """
    light, dark = ("".join(f"--unblur-{name}:{forms[i]};" for name, forms in COLOURS.items()) for i in (0, 1))
    exchange = "".join(
        f'.unblur-picture [{part}="{forms[0]}"]{{{part}:var(--picture-{name},var(--unblur-{name}))}}'
        for name, forms in COLOURS.items()
        for part in ("fill", "stroke")
    )
    return (
        f".unblur-picture{{max-width:100%;height:auto}}@media screen{{.unblur-picture{{{light}}}{exchange}}}"
        f"@media screen and (prefers-color-scheme:dark){{.unblur-picture{{{dark}}}}}"
    )
