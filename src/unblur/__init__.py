"""What a k-anonymized release still gives away, before it is published."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unblur.anonymizing import AnonymizedRelease, anonymize
    from unblur.attacks import attack
    from unblur.auditing import audit
    from unblur.audits import Audit
    from unblur.config import Config, QuasiIdentifier
    from unblur.errors import UnblurError, UnblurWarning
    from unblur.hierarchy import Hierarchy
    from unblur.reading import read_release
    from unblur.release import EquivalenceClass, Release

__all__ = [
    "AnonymizedRelease",
    "Audit",
    "Config",
    "EquivalenceClass",
    "Hierarchy",
    "QuasiIdentifier",
    "Release",
    "UnblurError",
    "UnblurWarning",
    "anonymize",
    "attack",
    "audit",
    "read_release",
]

_HOMES = {
    "AnonymizedRelease": "unblur.anonymizing",
    "Audit": "unblur.audits",
    "Config": "unblur.config",
    "EquivalenceClass": "unblur.release",
    "Hierarchy": "unblur.hierarchy",
    "QuasiIdentifier": "unblur.config",
    "Release": "unblur.release",
    "UnblurError": "unblur.errors",
    "UnblurWarning": "unblur.errors",
    "anonymize": "unblur.anonymizing",
    "attack": "unblur.attacks",
    "audit": "unblur.auditing",
    "read_release": "unblur.reading",
}


def __getattr__(name: str) -> object:
    """Load a public name when it is first asked for: `unblur --help` must not wait for numpy."""
    if name not in _HOMES:
        raise AttributeError(f"module 'unblur' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
