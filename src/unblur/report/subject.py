"""What was audited: the release in numbers, its attributes, and what is assumed about how it was made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unblur.config import Mechanism
from unblur.report.phrases import count, share

if TYPE_CHECKING:
    from unblur.audits import Audit

ASSUMED = {
    "paper": "The published algorithm, exactly. States are tried in the order of information loss; each one publishes "
    "every group of at least k of the remaining records. So no part of a label can hold k of its records, and a class "
    "that came earlier has emptied its cells.",
    "arx": "ARX's local recoding with known settings. Each iteration takes the cheapest state that releases as many "
    "records as ARX requires. So the parts of a label cannot hold as many records as would have made a finer state "
    "usable, and a class that surely came earlier has emptied its cells.",
    "greedy": "Some local recoder that takes the cheapest usable state, with a loss that never falls with "
    "generalization. So a finer state was not usable: it covered less than the state that was taken.",
    "iterative": "Only what holds for every local recoding: each step applies one state to what remains and publishes "
    "every group of at least k. So a finer state came before a coarser one and has emptied its cells; nothing is "
    "assumed about how records spread inside a label.",
    "unknown": "Nothing. No label is narrowed down; only the fit and what lies around the classes is checked.",
}
"""What each mechanism lets an attacker infer."""
SETTINGS = {
    "records_per_iteration": "share of the records that each iteration must release",
    "iterations": "iterations (ARX's GUI: local transformation using iterations)",
    "suppression_limit": "suppression limit of the first run",
    "gs_factor": "generalization against suppression (gsFactor)",
    "requirement": "records that each step must release",
}
RECORDS = {
    "any": "Records may be equal: each takes any value of its cell.",
    "distinct": "All records are different points, as the published analysis assumes.",
}
ORDER = {
    "sound": "Where states tie on loss and both criteria, their order is left open.",
    "paper": "States that tie are taken in the order of the lattice; this can exclude the true data.",
}

RULES = {
    "sum": "sum: the class has just so many records",
    "overlap": "overlap: earlier classes emptied their cells",
    "halves": "halves: of two children both hold someone",
    "sparse": "sparse: no child holds enough for a class",
}


@dataclass(frozen=True)
class Fact:
    """A line of the table of facts."""

    name: str
    value: str
    code: bool = False
    """Whether the value is for machines."""


@dataclass(frozen=True)
class Attribute:
    """A quasi-identifier in numbers."""

    name: str
    kind: str
    values: int
    leaves: int
    layers: int
    finest: str


@dataclass(frozen=True)
class Alternative:
    """A mechanism that was tried because none was stated."""

    name: str
    possible: bool
    outcome: str


@dataclass(frozen=True)
class Subject:
    """What was audited."""

    facts: tuple[Fact, ...]
    attributes: tuple[Attribute, ...]
    mechanism: str
    assumed: str
    settings: tuple[Fact, ...]
    also: tuple[str, ...]
    """What else was assumed, a sentence each."""
    alternatives: tuple[Alternative, ...]


def describe(audit: Audit, *, public: bool) -> Subject:
    """Gather what there is to say about the release and the assumptions."""
    stated = "" if audit.stated and not audit.alternatives else " (no mechanism was stated)"
    return Subject(
        tuple(_facts(audit)),
        tuple(_attributes(audit)),
        f"{audit.mechanism.name}{stated}",
        ASSUMED[audit.mechanism.name],
        tuple(_settings(audit.mechanism)),
        (RECORDS[audit.settings.records], ORDER[audit.settings.order]),
        tuple(_alternatives(audit, public)),
    )


def _facts(audit: Audit) -> Iterator[Fact]:
    release = audit.release
    yield Fact("Rows", f"{release.rows:,}")
    yield Fact("k", f"{release.config.k:,}")
    several = f"{audit.summary.compound:,} of several cells, {audit.summary.basic:,} of a single one"
    yield Fact("Classes", f"{len(release.classes):,}: {several}" if release.classes else "none")
    if release.classes:
        sizes = sorted(each.size for each in release.classes)
        yield Fact("Records in a class", f"{sizes[0]:,} to {sizes[-1]:,}" if sizes[0] < sizes[-1] else f"{sizes[0]:,}")
    yield Fact("Suppressed", f"{release.outliers:,} ({share(release.outliers, release.rows)})")
    if release.config.missing:
        yield Fact("Suppressed for missing values", f"{release.config.missing:,}")
    if release.sha256:
        yield Fact("SHA-256 of the release", release.sha256, code=True)
    scope = "class by class and all together" if audit.together else "class by class"
    yield Fact("Audited by", f"unblur {audit.settings.version}, engine {audit.settings.engine}, {scope}")


def _attributes(audit: Audit) -> Iterator[Attribute]:
    for each in audit.release.config.quasi_identifiers:
        tree = each.hierarchy
        kind = "numbers in intervals" if tree.kind == "interval" else "categories"
        finest = "raw values" if each.finest_layer == 0 else "leaves"
        yield Attribute(each.name, kind, tree.values, tree.nodes(1), tree.height, finest)


def _settings(mechanism: Mechanism) -> Iterator[Fact]:
    for name, value in mechanism.settings.items():
        yield Fact(SETTINGS.get(name, name), f"{value}")


def _alternatives(audit: Audit, public: bool) -> Iterator[Alternative]:
    for each in audit.alternatives:
        if each.bits is not None:
            yield Alternative(each.name, True, f"{each.bits:,.1f} bits in all")
        else:
            yield Alternative(each.name, False, "the release contradicts it" if public else f"no: {each.problem}")


def limits(audit: Audit) -> tuple[str, ...]:
    """Say what was not looked at in this audit, a sentence each."""
    found = [f"{note[:1].upper()}{note[1:]}." for note in audit.notes]
    if audit.summary.not_done:
        found.append(f"{count(audit.summary.not_done, 'part')} of the release not analysed.")
    if audit.interrupted:
        found.append("The audit was stopped before its end.")
    return tuple(found)
