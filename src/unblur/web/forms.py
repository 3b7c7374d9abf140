"""The description of a release or of one to be made, as it comes from a form or as JSON: checked for shape, not sense.

Numbers are texts here, as they were typed; what they mean is found out where they are used, so that a message can
stand beside its field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from unblur.errors import ConfigError

Method = Literal["labels", "values", "file", "equal", "quantile", "cuts", "dates", "mask"]
MadeBy = Literal["unsaid", "arx", "unblur", "global", "cheapest", "stepwise", "nothing"]
MOST_COLUMNS = 500
Short = Field(default="", max_length=60)


class Choice(BaseModel):
    """What is to become of one column."""

    model_config = ConfigDict(extra="forbid")

    role: Literal["quasi", "other", "drop"] = "other"
    method: Method = "labels"
    low: str = Short
    high: str = Short
    step: str = Short
    leaves: str = Field(default="8", max_length=10)
    fanout: str = Field(default="2", max_length=60)
    cuts: str = Field(default="", max_length=2_000)
    periods: str = Field(default="month,quarter,year", max_length=60)
    mask_from: Literal["left", "right"] = "right"
    pad: str = Field(default="", max_length=4)
    finest: Literal["usual", "raw", "leaves"] = "usual"


class Setting(BaseModel):
    """The description as a whole; its columns are those of the file, in their order."""

    model_config = ConfigDict(extra="forbid")

    k: str = Field(default="", max_length=20)
    made_by: MadeBy = "unsaid"
    iterations: str = Field(default="100", max_length=20)
    suppression_limit: str = Field(default="", max_length=20)
    gs_factor: str = Field(default="", max_length=20)
    constant: bool = False
    records: Literal["any", "distinct"] = "any"
    id_column: str = Field(default="", max_length=1_000)
    missing: Literal["error", "suppress"] = "error"
    columns: list[Choice] = Field(default_factory=list, max_length=MOST_COLUMNS)


def setting_of(fields: Mapping[str, str]) -> Setting:
    """Read the fields of a form: `k`, and `columns.3.low` for the fourth column.

    >>> found = setting_of({"k": "5", "columns.0.role": "quasi", "columns.0.low": "30"})
    >>> found.k, found.columns[0].role, found.columns[0].low
    ('5', 'quasi', '30')
    """
    entries: dict[str, Any] = {}
    columns: dict[int, dict[str, str]] = {}
    for name, value in fields.items():
        if name.startswith("columns."):
            _, number, field = ([*name.split(".", 2), "", ""])[:3]
            if number.isdecimal() and int(number[:6]) < MOST_COLUMNS:
                columns.setdefault(int(number), {})[field] = value
        elif name in Setting.model_fields:
            entries[name] = value
    listed = [columns.get(number, {}) for number in range(max(columns, default=-1) + 1)]
    try:
        return Setting.model_validate({**entries, "columns": listed})
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"]))
        raise ConfigError(f"the form has something that is not expected in {place!r}; reload the page") from None
