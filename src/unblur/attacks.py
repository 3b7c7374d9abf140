"""The attack from Python: class by class, or on all classes together."""

from __future__ import annotations

from typing import Literal, overload

from unblur.attacking import inference_of
from unblur.auditing import audit, mechanism_of
from unblur.config import Mechanism
from unblur.counting.problem import Records
from unblur.errors import ConfigError
from unblur.findings import Findings
from unblur.joint.solving import JointResult, Progress, joint
from unblur.mechanisms import Order
from unblur.release import Release


@overload
def attack(
    release: Release,
    *,
    scope: Literal["class"] = "class",
    mechanism: str | Mechanism | None = None,
    order: Order = "sound",
    records: Records | None = None,
    budget: float | None = None,
    seed: int = 0,
    progress: Progress = ...,
) -> Findings: ...
@overload
def attack(
    release: Release,
    *,
    scope: Literal["joint"],
    mechanism: str | Mechanism | None = None,
    order: Order = "sound",
    records: Records | None = None,
    budget: float | None = None,
    seed: int = 0,
    progress: Progress = ...,
) -> JointResult: ...
def attack(
    release: Release,
    *,
    scope: Literal["class", "joint"] = "class",
    mechanism: str | Mechanism | None = None,
    order: Order = "sound",
    records: Records | None = None,
    budget: float | None = None,
    seed: int = 0,
    progress: Progress = lambda done, of: None,
) -> Findings | JointResult:
    """Narrow down what a release leaves plausible.

    With `scope="class"` every class is attacked on its own; the findings end with the outliers, if there are any. With
    `scope="joint"` all are seen together: the tables that the mechanism turns into this very release are counted, or
    estimated where counting is out of reach; `budget` is in seconds, `seed` is that of an estimate's draws.
    """
    if scope == "class":
        found = audit(release, mechanism=mechanism, order=order, records=records, budget=budget, progress=progress)
        return Findings(found.everything)
    if scope != "joint":
        raise ConfigError(f"scope must be class or joint, not {scope!r}")
    inference = inference_of(mechanism_of(release, mechanism), release, order)
    return joint(release.bare(), inference, records=records, budget=budget, seed=seed, progress=progress)
