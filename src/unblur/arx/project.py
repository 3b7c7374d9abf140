"""ARX's projects (`.deid`): the original table, the output, and how it was made.

A project holds patient data, so only the custodian has it. What is read of a run is what that run left behind, not what
the windows of ARX showed afterwards: the privacy models and hierarchies under `output/`, the metric with the shares it
counted, the statistics of the iterations. In a local transformation ARX sets the suppression limit of the first run to
1 - 1/iterations, and gsFactor to 0 unless it is told to use the settings of the coding model; the metric has the
gsFactor that was used, and the number of records that could be suppressed confirms the limit.

Where a project does not show that ARX did what the mechanism `arx` assumes, less is assumed, and `notes` say why.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unblur.arx.archive import Archive, open_archive, printable
from unblur.arx.hierarchy_csv import write_hierarchy
from unblur.arx.project_attributes import (
    Definition,
    ProjectAttribute,
    read_attribute,
    read_definitions,
    read_rows,
    shown_rows,
)
from unblur.arx.project_output import Output, read_output
from unblur.arx.project_run import MODEL, Doubt, Iteration, Model, Run, read_model, read_run
from unblur.arx.serialized import JavaObject, unboxed
from unblur.config import Config, Mechanism, QuasiIdentifier
from unblur.errors import HierarchyError, OutputError
from unblur.hierarchy import CategoryHierarchy, Hierarchy, IntervalHierarchy, from_cuts
from unblur.labels import ROOT_LABEL
from unblur.lattice import State

TABLE = "data/input.csv"
NEWEST_VERSION = 3
"""The newest major version of ARX whose projects are known."""
VOCABULARY = 2
MOST_COMPARISONS = 2_000_000_000
"""How many rows times iterations are compared; more count as unexplained."""


@dataclass(frozen=True)
class Project:
    """A project of ARX with an output."""

    path: Path
    version: str
    """That of the ARX which saved it."""
    separator: str
    quasi_identifiers: tuple[ProjectAttribute, ...]
    run: Run
    """How the output was made."""
    output: Output = field(compare=False)
    mechanism: Mechanism
    """What may be assumed about the release."""
    notes: tuple[str, ...]
    """Why no more may be assumed, and what is otherwise than in the project."""

    def config(self, folder: Path = Path()) -> Config:
        """Describe the release; `write_hierarchies` puts the files that this names into the folder."""
        attributes = tuple(
            QuasiIdentifier(each.name, each.hierarchy, each.finest_layer, _source(place, each))
            for place, each in enumerate(self.quasi_identifiers, 1)
        )
        return Config(self.run.k, attributes, self.mechanism, folder=folder)

    def write_table(self, path: Path) -> None:
        """Unpack the original table, a CSV file in UTF-8."""
        with open_archive(self.path) as archive, _writing(path), path.open("wb") as file:
            for piece in archive.pieces(TABLE):
                file.write(piece)

    def write_release(self, path: Path) -> None:
        """Write the quasi-identifiers of the output as ARX exports them."""
        with _writing(path), path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter=self.separator, lineterminator="\n")
            writer.writerow([each.name for each in self.quasi_identifiers])
            writer.writerows(self.output)

    def write_hierarchies(self, folder: Path) -> None:
        """Write the hierarchy files that the config names."""
        with open_archive(self.path) as archive:
            for each, described in zip(self.quasi_identifiers, self.config().quasi_identifiers, strict=True):
                if "hierarchy" in described.source:
                    self._write_hierarchy(archive, each, folder / described.source["hierarchy"])

    def _write_hierarchy(self, archive: Archive, attribute: ProjectAttribute, path: Path) -> None:
        with _writing(path):
            if attribute.by_length and not attribute.notes:
                write_hierarchy(attribute.hierarchy, path)
                return
            rows = read_rows(archive, attribute.entry, self.separator)
            with path.open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file, delimiter=";", lineterminator="\n")
                writer.writerows(shown_rows(rows, attribute.lowest_level))


def read_project(path: str | os.PathLike[str]) -> Project:
    """Read a project and the output in it."""
    with open_archive(Path(path)) as archive:
        return _read(archive)


def _read(archive: Archive) -> Project:
    version, separator = _version(archive), _separator(archive)
    if TABLE not in archive:
        raise archive.error(TABLE, "there is no such entry; a project saved by ARX has it")
    definitions = read_definitions(archive)
    names = [each.name for each in definitions]
    output = read_output(archive, names)
    model = read_model(archive)
    run = read_run(archive, model, names, rows=len(output))
    with archive.blaming(MODEL):
        builders = _builders(model, names)
    attributes = tuple(read_attribute(archive, each, separator, builders[each.name]) for each in definitions)
    doubts = [doubt for pair in zip(definitions, attributes, strict=True) for doubt in _doubts(*pair)]
    if run.steps and not _is_told(attributes, output, run.steps):
        doubts.append(
            Doubt("the output is not what the iterations made; another one may have been applied", "iterative")
        )
    notes = tuple(doubt.reason for doubt in (*run.doubts, *doubts))
    return Project(archive.path, version, separator, attributes, run, output, run.mechanism(doubts), notes)


def _version(archive: Archive) -> str:
    entry = "metadata.xml"
    metadata = archive.xml(entry)
    version, vocabulary = (metadata.findtext(name) or "" for name in ("version", "vocabulary"))
    major, words = (re.match(r"\d{1,6}(?=\.|$)", text) for text in (version, vocabulary))
    if not major or not words:
        raise archive.error(entry, "it does not say which version of ARX saved the project")
    if int(major[0]) > NEWEST_VERSION or int(words[0]) != VOCABULARY:
        raise archive.error(
            entry,
            f"saved by ARX {printable(version)} (format {printable(vocabulary)}); "
            f"projects of ARX {NEWEST_VERSION} (format {VOCABULARY}) are read",
        )
    return printable(version)


def _separator(archive: Archive) -> str:
    separator = archive.xml("project.xml").findtext("separator") or ""
    if len(separator) != 1 or separator in '\r\n"':
        raise archive.error("project.xml", "the separator must be one character, and no quote or line break")
    return separator


def _builders(model: Model, names: list[str]) -> dict[str, list[Any]]:
    """For each attribute whose loss counts lengths, the builders that it may have been made with."""
    attached = model.builders() if unboxed(model.root["useFunctionalHierarchies"]) is not False else {}
    found: dict[str, list[Any]] = {}
    for name, share in zip(names, model.shares(len(names)), strict=True):
        counted = isinstance(share, JavaObject) and share.class_name.endswith(".DomainShareInterval")
        candidates = [share, attached.get(name)] if counted or share is None else []
        found[name] = [each for each in candidates if each is not None]
    return found


def _doubts(definition: Definition, attribute: ProjectAttribute) -> Iterator[Doubt]:
    name = definition.name
    for note in attribute.notes:
        yield Doubt(f"{name!r}: {note}", "iterative")
    if definition.lowest > 1:
        yield Doubt(f"{name!r}: ARX began at level {definition.lowest}, which is layer 1 here", "arx")
    if definition.highest is not None:
        yield Doubt(f"{name!r}: ARX ended at level {definition.highest}; the layers above it are not used", "arx")


def _is_told(attributes: Sequence[ProjectAttribute], output: Output, steps: Sequence[Iteration]) -> bool:
    """Whether the iterations account for the output: every row has a state of theirs, each as many as it should."""
    rows, counts = np.unique(output.codes[~output.suppressed], axis=0, return_counts=True)
    top = tuple(each.highest_level for each in attributes)
    if len(rows) * len(steps) > MOST_COMPARISONS or not all(_is_between(step.state, top) for step in steps):
        return False
    levels = [_levels(each, output.labels[j]) for j, each in enumerate(attributes)]

    def fitting(state: State) -> NDArray[np.bool_]:
        mask: NDArray[np.bool_] = np.all([levels[j][:, level][rows[:, j]] for j, level in enumerate(state)], axis=0)
        return mask

    states = sum((fitting(step.state).astype(np.int64) for step in steps), np.zeros(len(rows), dtype=np.int64))
    surely = [int(counts[fitting(step.state) & (states == 1)].sum()) for step in steps]
    # Records at the top may or may not be marked as suppressed.
    least, most = (sum(step.records for step in steps if step.state != except_for) for except_for in (top, None))
    fair = all(count <= step.records for count, step in zip(surely, steps, strict=True))
    return bool(states.all()) and fair and least <= int(counts.sum()) <= most


def _is_between(state: State, top: State) -> bool:
    return all(0 <= level <= highest for level, highest in zip(state, top, strict=True))


def _levels(attribute: ProjectAttribute, labels: Sequence[str]) -> NDArray[np.bool_]:
    """For each label of the output, the levels on which it may stand; one that is in no hierarchy is a raw value."""
    found = np.zeros((len(labels), attribute.highest_level + 1), dtype=np.bool_)
    for layer in range(1, attribute.hierarchy.height + 1):
        known = set(attribute.hierarchy.labels[layer - 1])
        found[:, attribute.level(layer)] = [label in known for label in labels]
    raw = set(attribute.hierarchy.domain) if isinstance(attribute.hierarchy, CategoryHierarchy) else set()
    found[:, 0] |= ~found.any(axis=1) | np.array([label in raw for label in labels], dtype=np.bool_)
    return found


def _source(place: int, attribute: ProjectAttribute) -> dict[str, Any]:
    """The entry of a config file that describes an attribute: as intervals if they are regular, else by a file."""
    if attribute.by_length and (interval := _interval(attribute.hierarchy)):
        return {"name": attribute.name, "interval": interval}
    file = f"hierarchy_{attribute.name}.csv" if re.fullmatch(r"\w{1,50}", attribute.name) else f"hierarchy_{place}.csv"
    return {"name": attribute.name, "hierarchy": file} | ({"lengths": True} if attribute.by_length else {})


def _interval(tree: Hierarchy) -> dict[str, Any] | None:
    """Describe intervals by cuts and fan-outs, if that gives the same hierarchy."""
    if not isinstance(tree, IntervalHierarchy):
        return None
    groupings = tree.parents[:-1] if tree.labels[-1] == (ROOT_LABEL,) else tree.parents
    fanouts = [parents.count(0) for parents in groupings]
    try:
        same = from_cuts(tree.bounds, fanouts=fanouts, step=tree.step) == tree
    except HierarchyError:
        return None
    numbers = [_plain(bound) for bound in tree.bounds]
    return {"cuts": numbers, "fanouts": fanouts, "step": _plain(tree.step)} if same else None


def _plain(number: Decimal) -> Decimal | int:
    return int(number) if number == number.to_integral_value() else number


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror or error}") from error
