"""One column and what was chosen for it become a quasi-identifier with its hierarchy."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from unblur.arx.builders import read_builder
from unblur.arx.hierarchy_csv import read_hierarchy
from unblur.building.dates import build_dates, check_periods
from unblur.building.drafts import Draft, draft
from unblur.building.inferring import Domain, infer
from unblur.building.intervals import IntervalPlan, all_fanouts, build_equal, build_quantile
from unblur.building.masks import build_mask
from unblur.building.profiling import Column
from unblur.config import BUILDER, QuasiIdentifier
from unblur.errors import ConfigError, HierarchyError
from unblur.hierarchy import IntervalHierarchy, from_cuts, from_rows
from unblur.labels import ROOT_LABEL, parse_number
from unblur.web.forms import Choice
from unblur.web.uploads import Upload

MOST_VALUES = 5_000
"""So many values can be listed one by one under a single root."""


@dataclass(frozen=True)
class Attribute:
    """A quasi-identifier as it was chosen."""

    draft: Draft
    file: Upload | None = None
    """The hierarchy file that it comes from."""

    @property
    def identifier(self) -> QuasiIdentifier:
        """For looking at the release here and now; the config of a job refers to files instead."""
        return QuasiIdentifier(self.draft.column, self.draft.hierarchy, self.draft.finest_layer)

    def write(self, folder: Path, number: int) -> dict[str, Any]:
        """Write the file it needs, if it needs one, and return its entry of the config."""
        entry: dict[str, Any] = {"name": self.draft.column, "finest_layer": self.draft.finest_layer}
        if self.file is not None:
            ending = BUILDER if _is_builder(self.file) else ".csv"
            shutil.copyfile(self.file.path, folder / f"hierarchy-{number}{ending}")
            return {**entry, "hierarchy": f"hierarchy-{number}{ending}"}
        if self.draft.interval is not None:
            parsed = tomllib.loads(self.draft.to_toml(), parse_float=Decimal)["quasi_identifiers"][0]
            return {**entry, "interval": parsed["interval"]}
        self.draft.save(folder / f"hierarchy-{number}.csv")
        entry["hierarchy"] = f"hierarchy-{number}.csv"
        if isinstance(self.draft.hierarchy, IntervalHierarchy):
            # Whoever made such labels most likely had ARX's interval builder, whose loss counts lengths.
            entry |= {"lengths": True, "step": self.draft.hierarchy.step}
        return entry


def attribute_of(column: Column, choice: Choice, file: Upload | None, *, raw: bool) -> Attribute:
    """Build the hierarchy that was chosen for a column of a raw table, or of a release."""
    if choice.method == "file":
        made = _from_file(column, choice, file)
    else:
        made = Attribute(BUILDERS[choice.method](column, choice))
    if raw and choice.method in ("values", "cuts", "file"):
        made = replace(made, draft=_with_gaps(column, made.draft))
    finest = {"usual": made.draft.finest_layer, "raw": 0, "leaves": 1}[choice.finest]
    if finest == 1 and made.draft.hierarchy.height == 1 and choice.method == "values":
        raise ConfigError("a list of values has only the root above it: raw values must be allowed")
    return replace(made, draft=replace(made.draft, finest_layer=finest))


def _with_gaps(column: Column, made: Draft) -> Draft:
    """Say also which rows of a raw table have no place in a hierarchy; the other builders do so by themselves."""
    return draft(column, made.hierarchy, finest_layer=made.finest_layer, notes=made.notes)


def _from_labels(column: Column, choice: Choice) -> Draft:
    domain = Domain(_number("From", choice.low), _number("To", choice.high), _number("Step", choice.step))
    return infer(column, domain)


def _from_values(column: Column, choice: Choice) -> Draft:
    found = column.distinct(column.values.cast("string"))
    values = [each["value"] for each in found if each["value"].strip(f"{ROOT_LABEL} ")]
    if not values:
        raise HierarchyError("every label is * or empty; nothing to list")
    if len(values) > MOST_VALUES:
        raise HierarchyError(f"{len(values):,} different values are too many to list; give a hierarchy file")
    note = "only the values that occur are listed: others that nobody has leave no trace"
    return Draft(column.name, from_rows([[value, ROOT_LABEL] for value in values]), 0, (note,))


def _equal(column: Column, choice: Choice) -> Draft:
    return build_equal(column, _plan(choice))


def _quantile(column: Column, choice: Choice) -> Draft:
    return build_quantile(column, _plan(choice))


def _plan(choice: Choice) -> IntervalPlan:
    leaves = _whole("Intervals", choice.leaves)
    low, high = _number("From", choice.low), _number("To", choice.high)
    return IntervalPlan(leaves, _number("Step", choice.step), low, high, _fanouts(choice.fanout))


def _cuts(column: Column, choice: Choice) -> Draft:
    texts = [each for each in choice.cuts.replace(";", ",").split(",") if each.strip()]
    cuts = [_number("Cut points", each) for each in texts]
    if len(cuts) < 3:
        raise ConfigError("“Cut points” needs three or more numbers with commas between them, as in 0, 18, 40, 65, 120")
    known = [each for each in cuts if each is not None]
    step = _number("Step", choice.step) or Decimal(1)
    tree = from_cuts(known, fanouts=all_fanouts(_fanouts(choice.fanout), len(known) - 1), step=step)
    return Draft(column.name, tree, 1)


def _dates(column: Column, choice: Choice) -> Draft:
    periods = [each.strip() for each in choice.periods.split(",") if each.strip()]
    check_periods(periods)
    return build_dates(column, periods, first_year=_year("From", choice.low), last_year=_year("To", choice.high))


def _mask(column: Column, choice: Choice) -> Draft:
    if len(choice.pad) > 1:
        raise ConfigError("“Padding character” takes one character")
    made = build_mask(column, mask_from=choice.mask_from, pad=choice.pad or None)
    return replace(made, finest_layer=1)


BUILDERS: dict[str, Callable[[Column, Choice], Draft]] = {
    "labels": _from_labels,
    "values": _from_values,
    "equal": _equal,
    "quantile": _quantile,
    "cuts": _cuts,
    "dates": _dates,
    "mask": _mask,
}


def _from_file(column: Column, choice: Choice, file: Upload | None) -> Attribute:
    if file is None:
        raise ConfigError("choose the hierarchy file of this column (ARX: Export hierarchy)")
    read = read_builder if _is_builder(file) else read_hierarchy
    tree = read(file.path, step=_number("Step", choice.step))
    return Attribute(Draft(column.name, tree, 0), file)


def _is_builder(file: Upload) -> bool:
    return file.name.lower().endswith(BUILDER)


def _number(field: str, text: str) -> Decimal | None:
    if not text.strip():
        return None
    number = parse_number(text)
    if number is None or abs(number) > Decimal(10) ** 15:
        raise ConfigError(f"“{field}” must be a number such as 0.5, with a point")
    return number


def _whole(field: str, text: str) -> int:
    if not (text.strip().isascii() and text.strip().isdigit()):
        raise ConfigError(f"“{field}” must be a whole number")
    return int(text)


def _year(field: str, text: str) -> int | None:
    if not text.strip():
        return None
    year = _whole(field, text)
    if not 1 <= year <= 9999:
        raise ConfigError(f"“{field}” must be a year such as 2024")
    return year


def _fanouts(text: str) -> tuple[int, ...]:
    parts = [each.strip() for each in text.split(",") if each.strip()]
    if not parts or not all(each.isascii() and each.isdigit() and 2 <= int(each) <= 4096 for each in parts):
        raise ConfigError("“Group size” must be a whole number of 2 or more, or a list such as 2, 2, 3")
    return tuple(map(int, parts))
