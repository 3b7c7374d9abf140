"""The config of a release: one TOML file that every command reads, and that is written back beside every result."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import tomli_w

from unblur.arx.builders import read_builder
from unblur.arx.hierarchy_csv import read_hierarchy
from unblur.errors import ConfigError, HierarchyError
from unblur.hierarchy import Hierarchy, from_cuts, halves
from unblur.lattice import Lattice

BUILDER = ".ahs"
"""How the names of ARX's interval builders end."""
MECHANISMS: Mapping[str, frozenset[str]] = {
    "paper": frozenset(),
    "arx": frozenset({"records_per_iteration", "iterations", "suppression_limit", "gs_factor"}),
    "greedy": frozenset({"requirement"}),
    "iterative": frozenset(),
    "unknown": frozenset(),
}
"""How a release may have been made, and the settings that each name takes."""


@dataclass(frozen=True)
class Mechanism:
    """How a release was made, or is to be made."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def named(cls, name: str) -> Mechanism:
        """Take a mechanism by its name, with its default settings."""
        found = _mechanism(name)
        assert found is not None
        return found


@dataclass(frozen=True)
class QuasiIdentifier:
    """A column to be generalized, with its hierarchy."""

    name: str
    hierarchy: Hierarchy
    finest_layer: int
    """1 if the finest published labels are the leaves, 0 if raw values may be published."""
    source: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The entry of the config file that this was read from."""

    @property
    def by_length(self) -> bool:
        """Whether ARX's loss counts lengths of intervals here, because it has them, and not rows of a file."""
        builder = str(self.source.get("hierarchy", "")).lower().endswith(BUILDER)
        return "interval" in self.source or bool(self.source.get("lengths")) or builder


@dataclass(frozen=True)
class Config:
    """What describes a release: k, the quasi-identifiers, and how it was made.

    >>> config = Config.from_dict({"k": 3, "quasi_identifiers": [
    ...     {"name": "age", "interval": {"low": 0, "high": 80, "layers": 3}}]})
    >>> config.k, config.quasi_identifiers[0].hierarchy.nodes(1), config.records
    (3, 4, 'any')
    """

    k: int
    quasi_identifiers: tuple[QuasiIdentifier, ...]
    mechanism: Mechanism | None = None
    """None if the config names none."""
    records: Literal["any", "distinct"] = "any"
    made: Mapping[str, Any] = field(default_factory=dict)
    """What `anonymize` recorded when it made the release."""
    folder: Path = field(default=Path(), compare=False)
    """Where relative paths start."""
    path: Path | None = field(default=None, compare=False)

    @property
    def made_rows(self) -> int | None:
        """How many rows the release had when it was made; None if nobody wrote that down."""
        found = self.made.get("rows")
        return found if _is_int(found) else None

    @property
    def missing(self) -> int:
        """How many records were suppressed because a value was missing or impossible, not by the recoding."""
        found = self.made.get("missing", 0)
        return found if _is_int(found) else 0

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Config:
        """Read a config file."""
        path = Path(path)
        try:
            with path.open("rb") as file:
                entries = tomllib.load(file, parse_float=Decimal)
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror or error}") from error
        except UnicodeDecodeError as error:
            raise ConfigError(f"{path}: not a TOML file") from error
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{path}: not a TOML file: {error}") from error
        try:
            return replace(cls.from_dict(entries, folder=path.parent), path=path)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from error

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any], *, folder: Path = Path()) -> Config:
        """Check the entries of a config; relative paths are taken from `folder`."""
        _know(entries, {"k", "mechanism", "records", "finest_layer", "quasi_identifiers", "made"}, "the config")
        k: Any = entries.get("k")
        if not _is_int(k) or k < 2:
            raise ConfigError(f"k must be a whole number of 2 or more, {_found(k)}")
        records = entries.get("records", "any")
        if records not in ("any", "distinct"):
            raise ConfigError(f'records must be "any" or "distinct", {_found(records)}')
        listed = entries.get("quasi_identifiers")
        if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
            raise ConfigError("at least one [[quasi_identifiers]] is needed")
        finest = _finest_layer(entries, "the config")
        quasi_identifiers = tuple(_quasi_identifier(entry, finest, folder) for entry in listed)
        names = [each.name for each in quasi_identifiers]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ConfigError(f"the quasi-identifier {twice[0]!r} is listed twice")
        made = entries.get("made", {})
        if not isinstance(made, Mapping):
            raise ConfigError("made must be a table")
        return cls(k, quasi_identifiers, _mechanism(entries.get("mechanism")), records, made, folder)

    @cached_property
    def lattice(self) -> Lattice:
        """All states of the quasi-identifiers."""
        return Lattice(
            [each.hierarchy for each in self.quasi_identifiers],
            tuple(each.finest_layer for each in self.quasi_identifiers),
        )

    @property
    def paths(self) -> list[Path]:
        """The files this config was read from."""
        files = [each.source["hierarchy"] for each in self.quasi_identifiers if "hierarchy" in each.source]
        return [*([self.path] if self.path else []), *(self.folder / file for file in files)]

    def to_toml(self, folder: Path) -> str:
        """Write the config for a file in `folder`."""
        entries: dict[str, Any] = {"k": self.k}
        if self.mechanism is not None:
            settings = self.mechanism.settings
            entries["mechanism"] = {"name": self.mechanism.name, **settings} if settings else self.mechanism.name
        entries["records"] = self.records
        if self.made:
            entries["made"] = dict(self.made)
        entries["quasi_identifiers"] = [self._entry(each, folder) for each in self.quasi_identifiers]
        return tomli_w.dumps(entries)

    def _entry(self, each: QuasiIdentifier, folder: Path) -> dict[str, Any]:
        entry = {**each.source, "name": each.name, "finest_layer": each.finest_layer}
        if "hierarchy" in entry:
            path = self.folder / entry["hierarchy"]
            try:
                entry["hierarchy"] = Path(os.path.relpath(path, folder)).as_posix()
            except ValueError:  # another drive
                entry["hierarchy"] = path.resolve().as_posix()
        return entry


def load_config(config: Config | Mapping[str, Any] | str | os.PathLike[str]) -> Config:
    """Take a config in any form: a path, the entries as a dictionary, or a `Config`."""
    if isinstance(config, Config):
        return config
    if isinstance(config, Mapping):
        return Config.from_dict(_exact(config))
    if not isinstance(config, str | os.PathLike):
        raise ConfigError(f"a config is a path, a dictionary or a Config, not a {type(config).__name__}")
    return Config.read(config)


def _exact(entry: Any) -> Any:
    """Take the numbers of a dictionary as they are written: 0.1 is one tenth."""
    if isinstance(entry, float):
        return Decimal(repr(entry))
    if isinstance(entry, Mapping):
        return {key: _exact(value) for key, value in entry.items()}
    if isinstance(entry, list | tuple):
        return [_exact(value) for value in entry]
    return entry


def _quasi_identifier(entry: Any, finest: int | None, folder: Path) -> QuasiIdentifier:
    if not isinstance(entry, Mapping):
        raise ConfigError("each quasi-identifier must be a table with a name and an interval or a hierarchy")
    name = entry.get("name")
    if not isinstance(name, str) or not name:
        raise ConfigError(f"each quasi-identifier needs a name, {_found(name)}")
    what = f"quasi-identifier {name!r}"
    if ("interval" in entry) == ("hierarchy" in entry):
        raise ConfigError(f"{what}: give either interval or hierarchy")
    own_keys = {"interval"} if "interval" in entry else {"hierarchy", "lengths", "step"}
    _know(entry, {"name", "finest_layer", *own_keys}, what)
    try:
        hierarchy = _interval(entry["interval"], what) if "interval" in entry else _hierarchy(entry, folder, what)
    except HierarchyError as error:
        raise ConfigError(f"{what}: {error}") from error
    own = _finest_layer(entry, what)
    default = 1 if "interval" in entry else 0
    layer = own if own is not None else finest if finest is not None else default
    return QuasiIdentifier(name, hierarchy, layer, dict(entry))


def _interval(entry: Any, what: str) -> Hierarchy:
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{what}: interval must be a table such as {{ low = 0, high = 80, step = 1, layers = 4 }}")
    _know(entry, {"low", "high", "step", "layers", "cuts", "fanouts"}, f"{what}: interval")
    step = _number(entry.get("step", 1), f"{what}: step")
    if "cuts" in entry:
        _know(entry, {"cuts", "fanouts", "step"}, f"{what}: interval with cuts")
        cuts, fanouts = entry["cuts"], entry.get("fanouts", [])
        if not isinstance(cuts, Sequence) or isinstance(cuts, str):
            raise ConfigError(f"{what}: cuts must be a list of numbers")
        if not isinstance(fanouts, Sequence) or not all(_is_int(fanout) for fanout in fanouts):
            raise ConfigError(f"{what}: fanouts must be a list of whole numbers")
        return from_cuts([_number(cut, f"{what}: a cut") for cut in cuts], fanouts=fanouts, step=step)
    _know(entry, {"low", "high", "step", "layers"}, f"{what}: interval with layers")
    layers: Any = entry.get("layers")
    if not _is_int(layers):
        raise ConfigError(f"{what}: interval needs layers (a whole number) with low and high, or cuts")
    low, high = (_number(entry.get(end), f"{what}: {end}") for end in ("low", "high"))
    return halves(low, high, step=step, layers=layers)


def _hierarchy(entry: Mapping[str, Any], folder: Path, what: str) -> Hierarchy:
    if not isinstance(entry["hierarchy"], str):
        raise ConfigError(f"{what}: hierarchy must be the path of a file")
    if not isinstance(entry.get("lengths", False), bool):
        raise ConfigError(f"{what}: lengths must be true or false")
    step = _number(entry["step"], f"{what}: step") if "step" in entry else None
    if entry["hierarchy"].lower().endswith(BUILDER):
        return read_builder(folder / entry["hierarchy"], step=step)
    return read_hierarchy(folder / entry["hierarchy"], step=step)


def _mechanism(entry: Any) -> Mechanism | None:
    if entry is None:
        return None
    settings = dict(entry) if isinstance(entry, Mapping) else {"name": entry}
    name = settings.pop("name", None)
    if not isinstance(name, str) or name not in MECHANISMS:
        raise ConfigError(f"mechanism must be one of {', '.join(MECHANISMS)}, {_found(name)}")
    _know(settings, MECHANISMS[name], f"mechanism {name}")
    return Mechanism(name, settings)


def _finest_layer(entry: Mapping[str, Any], what: str) -> int | None:
    layer: int | None = entry.get("finest_layer")
    if layer is not None and (not _is_int(layer) or layer not in (0, 1)):
        raise ConfigError(f"{what}: finest_layer must be 0 (raw values) or 1 (leaf intervals), {_found(layer)}")
    return layer


def _number(value: Any, what: str) -> Decimal:
    if isinstance(value, Decimal) or _is_int(value):
        number = Decimal(value)
        if number.is_finite():
            return number
    raise ConfigError(f"{what} must be a number, {_found(value)}")


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _know(entry: Mapping[str, Any], known: set[str] | frozenset[str], what: str) -> None:
    for key in entry:
        if key not in known:
            close = difflib.get_close_matches(key, known, 1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; known are: {', '.join(sorted(known)) or 'none'}"
            raise ConfigError(f"{what} has an unknown key {key!r}{hint}")


def _found(value: Any) -> str:
    if value is None:
        return "but it is missing"
    return f"not {value}" if isinstance(value, Decimal) else f"not {value!r}"
