"""Which mechanisms a release may have been made by, and how much sharper the attack is under each."""

from __future__ import annotations

from dataclasses import dataclass

from unblur.attacking import Attack, Target, inference_of
from unblur.config import Mechanism
from unblur.counting.problem import Records
from unblur.errors import ConfigError
from unblur.mechanisms import Inference
from unblur.refining import count
from unblur.release import Release
from unblur.risk import Finding, find, misfits

MOST_CLASSES = 2_000
"""Larger releases are not tried under several mechanisms."""


@dataclass(frozen=True)
class Alternative:
    """A mechanism, whether the release contradicts it, and what it takes away."""

    name: str
    """In words."""
    mechanism: Mechanism
    problem: str | None
    """Why the release was not made by it; None if it may have been."""
    bits: float | None
    """Bits taken away, over all classes and the outliers; None if the release contradicts it."""


def known_mechanisms(release: Release) -> list[tuple[str, Mechanism]]:
    """The mechanisms to try, from the one that assumes most."""
    return [
        ("the published algorithm", Mechanism("paper")),
        ("ARX, local transformation with 100 iterations (its GUI's default)", Mechanism("arx", {"iterations": 100})),
        (f"ARX with {release.rows:,} iterations (one per record)", Mechanism("arx", {"iterations": release.rows})),
        ("cheapest state first, constant requirement", Mechanism("greedy", {"requirement": "constant"})),
        ("cheapest state first", Mechanism("greedy")),
        ("any local recoding, step by step", Mechanism("iterative")),
    ]


def alternatives(release: Release, *, records: Records) -> tuple[Alternative, ...]:
    """Try a release under every mechanism we know."""
    if len(release.classes) > MOST_CLASSES:
        return ()
    return tuple(_try(name, mechanism, release, records) for name, mechanism in known_mechanisms(release))


def _try(name: str, mechanism: Mechanism, release: Release, records: Records) -> Alternative:
    try:
        inference = inference_of(mechanism, release)
    except ConfigError as error:
        return Alternative(name, mechanism, str(error), None)
    problems = list(inference.misfits())
    bits, findings = 0.0, _findings(release, inference, records)
    for finding in findings:
        problems += misfits(finding, release.config.k)
        bits += finding.bits or 0.0
    return Alternative(name, mechanism, problems[0] if problems else None, None if problems else bits)


def _findings(release: Release, inference: Inference, records: Records) -> list[Finding]:
    attack = Attack(release, inference)
    outliers = attack.outliers()
    numbered: list[tuple[int | None, Target]] = list(enumerate(attack.targets()))
    if outliers and not release.config.missing:
        numbered.append((None, outliers))
    return [find(attack, number, target, records, count(attack, target, records)) for number, target in numbered]
