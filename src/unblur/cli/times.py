"""Times as people write them on a command line."""

from __future__ import annotations

import re

from unblur.errors import ConfigError


def parse_budget(text: str) -> float:
    """Read a time such as 90, 60s, 5m or 2h.

    >>> parse_budget("1.5m")
    90.0
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|m|min|h|)\s*", text)
    if found is None or not float(found[1]):
        raise ConfigError(f"--budget {text!r}: a time is a number above 0 with s, m or h, as in 60s")
    return float(found[1]) * {"m": 60, "min": 60, "h": 3600}.get(found[2], 1)
