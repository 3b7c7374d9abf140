"""How the output of a project was made: privacy models, metric, iterations, as the run itself left them behind."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal
from xml.etree.ElementTree import Element

import numpy as np

from unblur.arx.archive import Archive, printable
from unblur.arx.serialized import JavaObject, StreamError, constant, elements, items, object_of, text_of, unboxed, whole
from unblur.config import Mechanism
from unblur.lattice import State

MODEL = "project.dat"
SETTINGS = "output/config.xml"

_PACKAGE = "org.deidentifier.arx."
_LOSS = f"{_PACKAGE}metric.v2.MetricMDNMLoss"
_SHARES = f"{_PACKAGE}metric.v2.DomainShare"


@dataclass(frozen=True)
class Doubt:
    """Something that a project does not show, or shows to be otherwise than the mechanism `arx` assumes."""

    reason: str
    leaves: Literal["arx", "iterative", "unknown"]
    """The strongest mechanism that may still be assumed."""


@dataclass(frozen=True)
class Iteration:
    """What one search did: the first ran over all records, each later one over those still suppressed."""

    state: State
    """One level per quasi-identifier, as ARX counts: 0 is the raw value."""
    score: float
    """The loss."""
    records: int
    """How many records got this state."""
    optimal: bool


@dataclass(frozen=True)
class Run:
    """The settings of a run, and what it did."""

    k: int
    other_models: tuple[str, ...]
    """The privacy models beside k-anonymity, as ARX names them."""
    metric: str
    """As ARX names it."""
    gs_factor: float
    weights: tuple[float, ...]
    """One per quasi-identifier."""
    transformation: Literal["local", "global"]
    iterations: int
    """What the GUI calls so: the inverse of the share of records that each step must release."""
    suppression_limit: float
    """That of the first search, as it was used."""
    steps: tuple[Iteration, ...]
    doubts: tuple[Doubt, ...]

    def mechanism(self, further: Sequence[Doubt] = ()) -> Mechanism:
        """Say what may be assumed about the release."""
        left = {doubt.leaves for doubt in (*self.doubts, *further)}
        for name in ("unknown", "iterative"):
            if name in left:
                return Mechanism(name)
        settings: dict[str, Any] = {"iterations": self.iterations}
        return Mechanism("arx", settings | ({"gs_factor": self.gs_factor} if self.gs_factor else {}))


@dataclass(frozen=True)
class Model:
    """The object in which ARX keeps a project."""

    root: JavaObject
    configuration: JavaObject
    """Of the run that made the output."""
    metric: JavaObject

    def shares(self, count: int) -> list[JavaObject | None]:
        """For each quasi-identifier, what the loss counted: for intervals, an object that is their builder, too."""
        found = elements(self.metric["shares"])
        kept = [each if isinstance(each, JavaObject) else None for each in found]
        return kept if len(kept) == count else [None] * count

    def builders(self) -> dict[str, Any]:
        """The builders that are attached to the attributes in the editor."""
        settings = self.root["inputConfig"]
        builders = settings["hierarchyBuilders"] if isinstance(settings, JavaObject) else None
        return {name: each for name, each in items(builders) if isinstance(name, str)}


def read_model(archive: Archive) -> Model:
    """Read what the windows of ARX work on."""
    objects = archive.objects(MODEL)
    with archive.blaming(MODEL):
        root = object_of(objects[0] if objects else None, "model")
        output = object_of(root["outputConfig"], "configuration of the output")
        configuration = object_of(output["config"], "configuration of the output")
        return Model(root, configuration, object_of(configuration["metric"], "metric"))


def read_run(archive: Archive, model: Model, names: Sequence[str], *, rows: int) -> Run:
    """Read how the output was made; `rows` counts its records."""
    settings = archive.xml(SETTINGS)
    k, others = _privacy_models(archive, settings)
    with archive.blaming(MODEL):
        return _RunReader(model, names, rows).run(k, others, settings)


def _privacy_models(archive: Archive, settings: Element) -> tuple[int, tuple[str, ...]]:
    found = [each.text or "" for each in settings.findall("criteria/criterion")]
    sizes = [int(match[1]) for each in found if (match := re.fullmatch(r"(\d{1,9})-anonymity", each))]
    others = tuple(printable(each) for each in found if not re.fullmatch(r"\d{1,9}-anonymity", each))
    if not sizes:
        named = ", ".join(others) or "none"
        raise archive.error(SETTINGS, f"no k-anonymity among the privacy models ({named}); it is what an audit needs")
    if max(sizes) < 2:
        raise archive.error(SETTINGS, f"{max(sizes)}-anonymity; k must be 2 or more")
    return max(sizes), others


class _RunReader:
    """Reads the objects of one run, and notes what is in doubt."""

    def __init__(self, model: Model, names: Sequence[str], rows: int) -> None:
        self.model, self.names, self.rows = model, names, rows
        self.doubts: list[Doubt] = []

    def run(self, k: int, others: tuple[str, ...], settings: Element) -> Run:
        metric = settings.findtext("metric") or ""
        stars = [each.text for each in settings.findall("suppressedAttributeTypes/type")]
        self.doubt("QUASI_IDENTIFYING_ATTRIBUTE" not in stars, "quasi-identifiers were not to be suppressed", "unknown")
        self.doubt(bool(others), f"privacy models beside k-anonymity: {', '.join(others)}", "unknown")
        self._check_subset()
        transformation, iterations = self._transformation()
        self._check_metric(metric)
        return Run(
            k=k,
            other_models=others,
            metric=printable(metric),
            gs_factor=self._gs_factor(transformation),
            weights=self._weights(),
            transformation=transformation,
            iterations=iterations,
            suppression_limit=self._limit(transformation, iterations),
            steps=self._steps(transformation),
            doubts=tuple(self.doubts),
        )

    def doubt(self, is_so: bool, reason: str, leaves: Literal["arx", "iterative", "unknown"] = "iterative") -> None:
        if is_so:
            self.doubts.append(Doubt(reason, leaves))

    def _transformation(self) -> tuple[Literal["local", "global"], int]:
        chosen = constant(object_of(self.model.root["anonymizationConfiguration"], "dialog")["transformationType"])
        if chosen not in ("LOCAL", "GLOBAL"):
            raise StreamError("the transformation is neither local nor global")
        iterations = whole(object_of(self.model.root["localRecodingModel"], "dialog")["numIterations"], "iterations")
        if iterations < 1:
            raise StreamError("the number of iterations is below 1")
        self.doubt(chosen == "GLOBAL", "a global transformation: one state for all records")
        return ("local" if chosen == "LOCAL" else "global"), iterations

    def _check_subset(self) -> None:
        """ARX can anonymize a part of the records as a sample of the rest."""
        subset = object_of(self.model.root["outputConfig"], "configuration of the output")["researchSubset"]
        if isinstance(subset, JavaObject):
            part = whole(subset["size"], "a size") != whole(subset["length"], "a size")
            self.doubt(part, "a research subset was chosen, and the other records were left out", "unknown")

    def _check_metric(self, name: str) -> None:
        metric = self.model.metric
        is_loss = metric.class_name == _LOSS
        self.doubt(not is_loss, f"another metric than Loss: {printable(name)}")
        mean = constant(metric["function"]) == "GEOMETRIC_MEAN"
        self.doubt(is_loss and not mean, "Loss with another aggregate than the geometric mean")
        self.doubt(len(set(self._weights())) > 1, "attributes of different weight")
        for attribute, share in zip(self.names, self.model.shares(len(self.names)), strict=True):
            known = share is not None and share.class_name in (f"{_SHARES}Interval", f"{_SHARES}Materialized")
            self.doubt(is_loss and not known, f"{attribute!r}: the loss counts neither interval lengths nor rows")

    def _gs_factor(self, transformation: str) -> float:
        factor = _share(self.model.metric["gsFactor"], "gsFactor")
        kept = unboxed(object_of(self.model.root["anonymizationConfiguration"], "dialog")["useCodingModelSettings"])
        unexpected = transformation == "local" and factor != 0 and kept is not True
        self.doubt(unexpected, f"gsFactor {factor} in a local transformation that should have set it to 0")
        return factor

    def _weights(self) -> tuple[float, ...]:
        weights = self.model.metric["weights"]
        if isinstance(weights, np.ndarray) and len(weights) == len(self.names):
            return tuple(map(float, weights))
        return (1.0,) * len(self.names)

    def _limit(self, transformation: str, iterations: int) -> float:
        if transformation == "global":
            return _share(self.model.configuration["relMaxOutliers"], "the suppression limit")
        limit = 1 - 1 / iterations
        allowed = whole(self.model.configuration["absMaxOutliers"], "the suppression limit")
        fits = allowed == math.floor(limit * self.rows)
        self.doubt(
            not fits, f"the first run could suppress {allowed:,} records, which {iterations} iterations do not say"
        )
        return limit

    def _steps(self, transformation: str) -> tuple[Iteration, ...]:
        statistics = self.model.root["optimizationStatistics"]
        saved = elements(object_of(statistics, "list")["steps"]) if statistics is not None else []
        steps = tuple(map(self._step, saved))
        local = transformation == "local"
        self.doubt(local and not steps, "no statistics of the iterations were saved")
        self.doubt(not all(step.optimal for step in steps), "a search was not optimal")
        return steps

    def _step(self, found: Any) -> Iteration:
        step = object_of(found, "iteration")
        places = {text_of(name, "a name"): whole(place, "a place") for name, place in items(step["headermap"])}
        levels, score = step["transformation"], object_of(step["score"], "score")
        if not isinstance(levels, np.ndarray) or levels.dtype.kind != "i" or sorted(places) != sorted(self.names):
            raise StreamError("an iteration has other attributes than the output")
        if sorted(places.values()) != list(range(len(levels))):
            raise StreamError("an iteration has another number of levels than of attributes")
        loss = score["aggregate"] if isinstance(score["aggregate"], float) else score["value"]
        return Iteration(
            state=tuple(int(levels[places[name]]) for name in self.names),
            score=loss if isinstance(loss, float) else math.nan,
            records=whole(step["numRecordsTransformed"], "a number of records"),
            optimal=step["optimal"] is True,
        )


def _share(value: Any, what: str) -> float:
    if not isinstance(value, float) or not 0 <= value <= 1:
        raise StreamError(f"{what} is no share")
    return value
