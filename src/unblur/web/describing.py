"""From a description to a config: what is wrong with it, field by field, and what it would make of the files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import tomli_w

from unblur.attacking import inference_of
from unblur.building.drafts import Draft, toml_number
from unblur.building.profiling import Column
from unblur.cells import Cells, assign_cells
from unblur.cli.tree import Branch, branch, summary
from unblur.config import Config, Mechanism
from unblur.errors import ConfigError, TableError, UnblurError
from unblur.files import open_file
from unblur.hierarchy import Hierarchy, IntervalHierarchy
from unblur.labels import parse_number
from unblur.reading import read_release
from unblur.release import Release
from unblur.tables import Table
from unblur.web.attributes import Attribute, attribute_of
from unblur.web.cases import Case
from unblur.web.forms import Choice, Setting
from unblur.web.words import in_page_words, sentence
from unblur.words import count
from unblur.workspace import Workspace

LINES = 40
"""How long the drawing of a tree may be."""
MOST_REMEMBERED = 100
"""So many hierarchies of a case are kept in memory while its user tries things."""


@dataclass(frozen=True)
class Problem:
    """What is wrong, and with which field."""

    field: str
    message: str


@dataclass(frozen=True)
class Drawn:
    """A hierarchy to look at."""

    summary: str
    root: Branch
    few: int
    """So many children of each node are shown."""
    notes: tuple[str, ...]
    guesses: dict[str, str]
    """The ends and the step of numbers, shown where the user has left them open."""


@dataclass
class Described:
    """A description that was looked into."""

    setting: Setting
    problems: list[Problem] = field(default_factory=list)
    attributes: dict[int, Attribute] = field(default_factory=dict)
    """The quasi-identifiers by the number of their column."""
    trees: dict[int, Drawn] = field(default_factory=dict)
    preview: list[str] = field(default_factory=list)
    """What would be audited, in a few sentences."""
    mechanism: Mechanism | None = None
    k: int = 0

    @property
    def ok(self) -> bool:
        return not self.problems

    def entries(self, folder: Path) -> dict[str, Any]:
        """The entries of the config, with the hierarchy files written to a folder."""
        quasi = [each.write(folder, n) for n, each in enumerate(self.attributes.values(), 1)]
        stated = self.mechanism
        found: dict[str, Any] = {"k": self.k}
        if stated is not None:
            found["mechanism"] = {"name": stated.name, **stated.settings} if stated.settings else stated.name
        return {**found, "records": self.setting.records, "quasi_identifiers": quasi}

    def write_config(self, path: Path) -> None:
        """Write the config, and beside it the files that it names."""
        path.write_text(tomli_w.dumps(self.entries(path.parent)), encoding="utf-8")


def describe(case: Case, setting: Setting) -> Described:
    """Look into a description: every problem is told, and what is right is drawn."""
    found = Described(setting)
    with case.lock, Workspace() as workspace:
        table = _open(case, workspace)
        columns = setting.columns[: len(table.columns)]
        for number, (name, choice) in enumerate(zip(table.columns, columns, strict=False)):
            if choice.role == "quasi":
                _add(found, case, number, Column(table, name), choice)
        if not any(each.role == "quasi" for each in columns):
            found.problems.append(Problem("columns", "Choose at least one quasi-identifying column."))
        _read_k(found)
        _read_mechanism(found, case)
        if found.ok:
            try:
                found.preview += _preview(case, found, table)
            except UnblurError as error:
                found.problems.append(Problem(_place(case, error), _say(error, case)))
    return found


def _open(case: Case, workspace: Workspace) -> Table:
    return open_file(case.copy, case.files["table"].name, workspace, (), None)


def _say(error: UnblurError | str, case: Case) -> str:
    return sentence(in_page_words(str(error), {**case.names, str(case.copy): case.files["table"].name}))


def _place(case: Case, error: UnblurError) -> str:
    """The column that a message is about, if it names one."""
    assert case.profile is not None
    for number, look in enumerate(case.profile.looks):
        if f"column {look.name!r}" in str(error):
            return f"columns.{number}"
    return ""


def _add(found: Described, case: Case, number: int, column: Column, choice: Choice) -> None:
    file = case.files.get(f"columns.{number}.file")
    key = json.dumps([number, choice.model_dump(), str(file and file.path)])
    try:
        if len(case.memory) > MOST_REMEMBERED:
            case.memory.clear()
        if key not in case.memory:
            case.memory[key] = attribute_of(column, choice, file, raw=case.kind == "raw")
    except UnblurError as error:
        message = str(error).removeprefix(f"{column.where}: ")
        found.problems.append(Problem(f"columns.{number}", _say(message, case)))
        return
    made: Attribute = case.memory[key]
    found.attributes[number] = made
    found.trees[number] = _draw(made, case)


def _draw(made: Attribute, case: Case) -> Drawn:
    root = branch(made.draft.hierarchy)
    few = next((few for few in (20, 12, 8, 6, 5, 4, 3, 2) if root.lines(few) <= LINES), 1)
    told = summary(made.identifier).removeprefix(f"{made.draft.column}: ")
    notes = tuple(_say(note, case) for note in _notes(made.draft))
    return Drawn(told, root, few, notes, _guesses(made.draft.hierarchy))


def _guesses(tree: Hierarchy) -> dict[str, str]:
    ends = ("low", "high", "step")
    known = isinstance(tree, IntervalHierarchy)
    return {end: toml_number(getattr(tree, end)) if known else "" for end in ends}


def _notes(made: Draft) -> Iterator[str]:
    yield from dict.fromkeys((*made.notes, *made.hierarchy.notes))


def _read_k(found: Described) -> None:
    text = found.setting.k.strip()
    if not (text.isascii() and text.isdigit() and int(text[:9]) >= 2 and len(text) < 10):
        found.problems.append(Problem("k", "k must be a whole number of 2 or more."))
    else:
        found.k = int(text)


def _read_mechanism(found: Described, case: Case) -> None:
    setting = found.setting
    try:
        stated = mechanism_of(setting)
        # A global recoding is told by an option of its own; of itself it follows no mechanism that makes releases.
        found.mechanism = None if case.kind == "raw" and setting.made_by == "global" else stated
    except ConfigError as error:
        found.problems.append(Problem("iterations", _say(error, case)))
    if case.kind == "raw" and setting.made_by not in ("arx", "unblur", "global"):
        found.problems.append(Problem("made_by", "Choose how the release is to be made."))


def mechanism_of(setting: Setting) -> Mechanism | None:
    """The mechanism behind the words of the page; None if nobody has said."""
    if setting.made_by == "arx":
        return Mechanism("arx", _arx_settings(setting))
    if setting.made_by == "global":
        _share("Suppression limit", setting.suppression_limit)
    names = {
        "unblur": "paper",
        "global": "iterative",
        "stepwise": "iterative",
        "nothing": "unknown",
        "cheapest": "greedy",
    }
    if setting.made_by == "unsaid":
        return None
    constant = setting.constant and setting.made_by == "cheapest"
    return Mechanism(names[setting.made_by], {"requirement": "constant"} if constant else {})


def _arx_settings(setting: Setting) -> dict[str, Any]:
    text = setting.iterations.strip()
    if not (text.isascii() and text.isdigit() and int(text) >= 1):
        raise ConfigError("the number of iterations must be a whole number of 1 or more; ARX proposes 100")
    settings: dict[str, Any] = {"iterations": int(text)}
    for key, name in (("suppression_limit", "Suppression limit"), ("gs_factor", "gsFactor")):
        if (number := _share(name, getattr(setting, key))) is not None:
            settings[key] = number
    return settings


def _share(field: str, text: str) -> Decimal | None:
    if not text.strip():
        return None
    number = parse_number(text)
    if number is None or not 0 <= number <= 1:
        raise ConfigError(f"“{field}” must be a number from 0 to 1, with a point")
    return number


def _config(found: Described) -> Config:
    attributes = tuple(each.identifier for each in found.attributes.values())
    return Config(found.k, attributes, found.mechanism, found.setting.records)


def _preview(case: Case, found: Described, table: Table) -> Iterator[str]:
    config = _config(found)
    config.lattice.check_size()
    if case.kind == "raw":
        yield from _preview_raw(config, assign_cells(table, config), found.setting)
        return
    release = read_release(case.copy, config)
    try:
        if config.mechanism is not None:
            inference_of(config.mechanism, release)
        yield from _preview_release(release)
    finally:
        release.workspace.close()


def _preview_release(release: Release) -> Iterator[str]:
    sizes = [each.size for each in release.classes]
    if not sizes:
        yield f"All {release.rows:,} records are suppressed: there are no classes to attack."
        return
    spread = f"{min(sizes):,} to {max(sizes):,}" if len(set(sizes)) > 1 else f"{sizes[0]:,}"
    suppressed = f"{count(release.outliers, 'record')} suppressed" if release.outliers else "no record suppressed"
    yield f"{count(release.rows, 'record')}, {count(len(sizes), 'class')} of {spread} records, {suppressed}."
    k = release.config.k
    if small := sum(size < k for size in sizes):
        has = "class has" if small == 1 else "classes have"
        yield f"{small:,} {has} fewer than k = {k:,} records: is k smaller, or were rows removed afterwards?"
    elif min(sizes) > k:
        yield f"The smallest class has {min(sizes):,} records; k may have been anything up to that."


def _preview_raw(config: Config, cells: Cells, setting: Setting) -> Iterator[str]:
    gaps = cells.problems()
    if gaps and setting.missing == "error":
        raise TableError(f"{gaps[0]}; “Missing values” (under “More”) can suppress such rows")
    complete, states = int(cells.counts[cells.valid].sum()), config.lattice.size
    yield f"{count(complete, 'record')} with all values, {count(states, 'way')} to generalize them."
    if gaps:
        yield f"{count(cells.without_cell(), 'record')} without a place in some hierarchy: suppressed."
