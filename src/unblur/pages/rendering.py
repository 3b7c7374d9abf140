"""Templates filled in: everything is escaped unless it is a picture of ours."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


def render(template: str, **values: Any) -> str:
    """Fill in a template of this folder."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("unblur.pages", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    style = (files("unblur.pages") / "templates" / "style.css").read_text(encoding="utf-8")
    environment.globals |= {"style": Markup(style), "version": version("unblur")}
    environment.filters["picture"] = lambda svg: Markup(svg)
    return environment
