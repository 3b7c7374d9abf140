"""The result of an audit: one object that the command line, the report and the web page show."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from unblur.ablation import Ablation
from unblur.config import Mechanism, QuasiIdentifier
from unblur.counting.problem import Records
from unblur.detecting import Alternative
from unblur.errors import OutputError
from unblur.findings import Findings, finite, to_row
from unblur.gates import Gate
from unblur.leaks import Leak
from unblur.mechanisms import Order
from unblur.output import Outputs, check_target
from unblur.refining import Engine
from unblur.release import Release
from unblur.replay import Replay
from unblur.risk import Finding, Outcomes, Spread, misfits
from unblur.together import Together

SCHEMA = "unblur/audit/1"
Scope = Literal["class", "joint"]

NO_TABLE = "each class is possible, but all together are not: no table gives this release under this mechanism"
DISPROVED = (
    "the raw table disproves it: it is not among those that all classes together leave, so no figure can be trusted"
)


@dataclass(frozen=True)
class Settings:
    """How an audit was made."""

    attack: Scope
    engine: Engine
    order: Order
    records: Records
    version: str = field(default_factory=lambda: version("unblur"))


@dataclass(frozen=True)
class Summary:
    """The figures that a decision may rest on."""

    over_all: Spread
    """The ratios of all classes."""
    over_compound: Spread
    """The ratios of the classes of more than one cell."""
    basic: int
    compound: int
    max_ratio: float | None
    """The largest ratio of any class, or of the outliers."""
    max_bits: float | None
    """The same in bits."""
    certain_records: int | None
    """Records whose cell is certain although their label spans several; None if not looked for."""
    singled_out: int | None
    """Records that the raw table shows to be singled out; None without it."""
    suppressed: int
    classes_below_k: int
    not_done: int
    """Classes, and outliers, that the attack did not come to."""

    @property
    def median_ratio(self) -> float | None:
        return self.over_all.median


@dataclass(frozen=True, repr=False)
class Audit:
    """What a release gives away."""

    release: Release
    mechanism: Mechanism
    settings: Settings
    classes: Findings
    """Class by class, in the order of the attack."""
    outliers: Finding | None
    """The suppressed records; None if there are none."""
    misfits: tuple[str, ...] = ()
    """Why the release as a whole was not made by the mechanism."""
    stated: bool = True
    """Whether the config, or the caller, said how the release was made."""
    alternatives: tuple[Alternative, ...] = ()
    """The mechanisms it may have been made by, if none was stated and the release is not too large to try them."""
    ablation: Ablation | None = None
    """What each rule takes away, over all classes and outliers; None if not asked for."""
    not_done: int = 0
    """How many classes, and outliers, the attack was to come to but did not."""
    leaks: tuple[Leak, ...] = ()
    """What gives something away around the classes."""
    replay: Replay | None = None
    """How the release differs from one made again from the raw table; None if not asked for."""
    together: Together | None = None
    """What all classes say together; None if not asked for."""
    notes: tuple[str, ...] = ()
    """What was not done, and what to bear in mind."""
    interrupted: bool = False
    """Whether someone stopped it before its end."""

    def __repr__(self) -> str:
        fit = "" if self.fits else ", does not fit"
        return f"<audit of {len(self.classes):,} classes and {self.release.outliers:,} suppressed records{fit}>"

    @cached_property
    def everything(self) -> tuple[Finding, ...]:
        """The classes, and the outliers if there are any."""
        return (*self.classes, *([self.outliers] if self.outliers else []))

    @cached_property
    def problems(self) -> tuple[str, ...]:
        """Why the release cannot have been made as stated, a sentence each; none if it can."""
        of_classes = [sentence for each in self.everything for sentence in misfits(each, self.release.config.k)]
        impossible = self.together is not None and not self.together.feasible and not of_classes
        disproved = self.together is not None and self.together.truth_feasible is False and not of_classes
        replayed = f"made again from the raw table, {self.replay.rows:,} rows differ" if self.replay else ""
        return (
            *self.misfits,
            *of_classes,
            *([f"{replayed}: it was not made as stated"] if self.replay and not self.replay.same else []),
            *([NO_TABLE] if impossible else []),
            *([DISPROVED] if disproved and not impossible else []),
        )

    @property
    def fits(self) -> bool:
        """Whether the release can have been made as stated."""
        return not self.problems

    @cached_property
    def singling_out(self) -> Outcomes | None:
        """How many classes single somebody out; None without the raw table."""
        return Outcomes.of(self.classes) if any(each.truth for each in self.everything) else None

    @cached_property
    def summary(self) -> Summary:
        """The figures that a decision may rest on."""
        compound = [each for each in self.classes if not each.basic]
        bits = [each.bits for each in self.everything if each.bits is not None]
        ratios = [each.ratio for each in self.everything if each.ratio is not None]
        return Summary(
            over_all=Spread.of(self.classes),
            over_compound=Spread.of(compound),
            basic=len(self.classes) - len(compound),
            compound=len(compound),
            max_ratio=max(ratios, default=None),
            max_bits=max(bits, default=None),
            certain_records=self._certain_records(),
            singled_out=self._singled_out(),
            suppressed=self.release.outliers,
            classes_below_k=sum(each.subject.size < self.release.config.k for each in self.classes),
            not_done=self.not_done,
        )

    def _certain_records(self) -> int | None:
        found = [each.refinement.certain_records for each in self.everything if each.refinement and not each.basic]
        known = sum(each for each in found if each is not None)
        # None found among some says nothing about the others.
        return None if None in found or (self.not_done and not known) else known

    def _singled_out(self) -> int | None:
        known = [each.truth.singles for each in self.everything if each.truth and not each.basic]
        return sum(known) if self.singling_out else None

    def to_dict(self) -> dict[str, Any]:
        """Describe the audit by plain values: `unblur/audit/1`."""
        return {
            "schema": SCHEMA,
            "release": self._about_release(),
            "mechanism": _mechanism_row(self.mechanism),
            "settings": asdict(self.settings),
            "fit": {"ok": self.fits, "problems": list(self.problems)},
            "classes": self.classes.to_rows(),
            "outliers": _outliers_row(self.outliers) if self.outliers else None,
            "joint": self.together.to_dict() if self.together else None,
            "singling_out": asdict(self.singling_out) if self.singling_out else None,
            "leaks": [asdict(each) for each in self.leaks],
            "replay": _replay_row(self.replay) if self.replay else None,
            "ablation": _ablation_rows(self.ablation) if self.ablation else None,
            "alternatives": [_alternative_row(each) for each in self.alternatives],
            "summary": _summary_row(self.summary),
            "notes": list(self.notes),
        }

    def to_json(self) -> str:
        """Write the audit as JSON: the same audit, the same text."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def to_html(self, *, public: bool = False, gates: Sequence[Gate] = ()) -> str:
        """Write a report as one HTML file; the public version has aggregates only. `gates` set the verdict's limit."""
        from unblur.report.rendering import html

        return html(self, public=public, gates=gates)

    def to_markdown(self, *, public: bool = False, gates: Sequence[Gate] = ()) -> str:
        """Write a summary as Markdown; the public version has aggregates only."""
        from unblur.report.rendering import markdown

        return markdown(self, public=public, gates=gates)

    def _repr_html_(self) -> str:
        from unblur.report.rendering import notebook

        return notebook(self)

    def save(self, path: str | os.PathLike[str], *, public: bool = False) -> None:
        """Write the audit to a file: a report (.html), a summary (.md) or all of it (.json).

        With `public=True` a report or summary has aggregates only; JSON has no public form. All but a public version is
        for its owner alone to read.
        """
        target = Path(path)
        written = {
            ".html": lambda: self.to_html(public=public),
            ".md": lambda: self.to_markdown(public=public),
            ".json": self.to_json,
        }
        ending = target.suffix.lower()
        if ending not in written:
            raise OutputError(f"{target}: an audit is written as {', '.join(written)}; choose one of these endings")
        if public and ending == ".json":
            raise OutputError(f"{target}: JSON has every class in it; the public version is .html or .md")
        check_target(target, self.release.paths)
        with Outputs() as outputs:
            outputs.write_text(target, written[ending](), private=not public)

    def _about_release(self) -> dict[str, Any]:
        return {
            "rows": self.release.rows,
            "k": self.release.config.k,
            "classes": len(self.release.classes),
            "outliers": self.release.outliers,
            "sha256": self.release.sha256,
            "quasi_identifiers": [_about(each) for each in self.release.config.quasi_identifiers],
        }


def _about(attribute: QuasiIdentifier) -> dict[str, Any]:
    tree = attribute.hierarchy
    return {
        "name": attribute.name,
        "values": tree.values,
        "leaves": tree.nodes(1),
        "layers": tree.height,
        "finest_layer": attribute.finest_layer,
    }


def _outliers_row(finding: Finding) -> dict[str, Any]:
    return {key: value for key, value in to_row(finding).items() if key not in ("id", "taken_by")}


def _summary_row(summary: Summary) -> dict[str, Any]:
    return {
        "ratio": _spread_row(summary.over_all),
        "compound": {"ratio": _spread_row(summary.over_compound), "classes": summary.compound},
        "basic": {"classes": summary.basic},
        "max_ratio": finite(summary.max_ratio),
        "max_bits": summary.max_bits,
        "certain_records": summary.certain_records,
        "singled_out": summary.singled_out,
        "suppressed": summary.suppressed,
        "classes_below_k": summary.classes_below_k,
        "not_done": summary.not_done,
    }


def _spread_row(spread: Spread) -> dict[str, float | None]:
    return {"mean": finite(spread.mean), "median": finite(spread.median), "max": finite(spread.largest)}


def _ablation_rows(ablation: Ablation) -> dict[str, Any]:
    return {rule: asdict(effect) for rule, effect in ablation.effects.items()}


def _replay_row(replay: Replay) -> dict[str, Any]:
    return {"same": replay.same, "different_rows": replay.rows, "first_row": replay.first}


def _alternative_row(each: Alternative) -> dict[str, Any]:
    return {
        "name": each.name,
        "mechanism": _mechanism_row(each.mechanism),
        "possible": each.problem is None,
        "problem": each.problem,
        "bits": each.bits,
    }


def _mechanism_row(mechanism: Mechanism) -> dict[str, Any]:
    return {"name": mechanism.name, **{name: _plain(value) for name, value in mechanism.settings.items()}}


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | bool) else float(value)
