"""What the page proposes before anybody has said anything; the user is told that these are guesses."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from decimal import Decimal
from importlib.resources import files
from typing import Any

from unblur.building.drafts import toml_number
from unblur.web.forms import Choice, Method, Setting
from unblur.web.looks import Look, Profile

RAW_METHODS: Mapping[str, Method] = {"numbers": "equal", "dates": "dates", "codes": "mask"}


def propose_release(profile: Profile) -> Setting:
    """Propose the description of a release: what is generalized is a quasi-identifier, k is the smallest group."""
    columns = [
        Choice(
            role="quasi" if each.generalized else "other",
            method="labels" if each.kind in ("intervals", "masks") else "values",
        )
        for each in profile.looks
    ]
    return Setting(k="" if profile.smallest is None else str(max(2, profile.smallest)), columns=columns)


def propose_raw(profile: Profile) -> Setting:
    """Propose how to make a release of a raw table."""
    columns = [
        Choice(role=_raw_role(each), method=RAW_METHODS.get(each.kind, "values"), leaves="8") for each in profile.looks
    ]
    return Setting(k="5", made_by="unblur", columns=columns)


def _raw_role(look: Look) -> Any:
    if look.unique and look.kind not in ("numbers", "dates"):
        return "drop"
    return "quasi" if look.likely else "other"


def demo_setting(profile: Profile) -> Setting:
    """Describe the bundled clinic as its config does."""
    text = (files("unblur.demo") / "clinic.toml").read_text(encoding="utf-8")
    config = tomllib.loads(text, parse_float=Decimal)
    chosen = {each["name"]: _choice(each) for each in config["quasi_identifiers"]}
    columns = [chosen.get(each.name, Choice(method="values")) for each in profile.looks]
    return Setting(k=str(config["k"]), made_by="unblur", columns=columns)


def _choice(entry: Mapping[str, Any]) -> Choice:
    interval = entry.get("interval")
    if interval is None:
        return Choice(role="quasi", method="values")
    step = toml_number(Decimal(interval.get("step", 1)))
    if "cuts" in interval:
        cuts = ", ".join(toml_number(Decimal(each)) for each in interval["cuts"])
        return Choice(
            role="quasi", method="cuts", cuts=cuts, fanout=", ".join(map(str, interval["fanouts"])), step=step
        )
    low, high = (toml_number(Decimal(interval[end])) for end in ("low", "high"))
    leaves = str(2 ** (interval["layers"] - 1))
    return Choice(role="quasi", method="equal", low=low, high=high, leaves=leaves, step=step)
