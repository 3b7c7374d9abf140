"""The pages filled in: everything is escaped; the look is that of the report."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from unblur.web.uploads import readable_size

STATIC = {"page.css": "text/css", "page.js": "text/javascript"}


def render(template: str, **values: Any) -> str:
    """Fill in a template of the page."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=ChoiceLoader([PackageLoader("unblur.web", "templates"), PackageLoader("unblur.pages", "templates")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["version"] = version("unblur")
    environment.filters["size"] = readable_size
    return environment


@cache
def static(name: str) -> str:
    """A style sheet or script of the page; the style begins with that of the report."""
    own = (files("unblur.web") / "static" / name).read_text(encoding="utf-8")
    if not name.endswith(".css"):
        return own
    return (files("unblur.pages") / "templates" / "style.css").read_text(encoding="utf-8") + own
