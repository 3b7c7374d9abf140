"""The draws behind estimates, kept in a file: a later run goes on from them instead of starting anew."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unblur.errors import ConfigError

SCHEMA = "unblur/draws/1"
FIELDS = {"system", "seed", "error", "drawn", "kept", "looks", "at_least", "limits", "generator"}


def read_draws(path: Path) -> list[dict[str, Any]]:
    """Read the draws of an earlier run; none if there is no such file."""
    if not path.exists():
        return []
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        estimates = content["estimates"]
        known = content["schema"] == SCHEMA and all(set(each) == FIELDS for each in estimates)
    except (OSError, ValueError, KeyError, TypeError):
        known = False
    if not known:
        raise ConfigError(f"{path}: not a file of draws that unblur wrote; name another, or one that is not there yet")
    return list(estimates)


def draws_text(draws: Sequence[Mapping[str, Any]], earlier: Sequence[Mapping[str, Any]]) -> str:
    """Write draws down; those of other releases, or seeds, that were there stay."""
    fresh = {(each["system"], each["seed"]) for each in draws}
    others = [each for each in earlier if (each["system"], each["seed"]) not in fresh]
    return json.dumps({"schema": SCHEMA, "estimates": [*others, *draws]}, indent=1) + "\n"
