"""Releases from lattices of sixty million states: everything works, and nothing lists the states."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import unblur
from unblur.errors import ConfigError
from unblur.hierarchy import halves
from unblur.lattice import Lattice
from unblur.recoding import check_time

ATTRIBUTES, LAYERS, VALUES = 10, 6, 320


def config(**more: Any) -> dict[str, Any]:
    interval = {"low": 0, "high": VALUES, "step": 1, "layers": LAYERS}
    names = [f"a{i}" for i in range(ATTRIBUTES)]
    return {"k": 5, "quasi_identifiers": [{"name": name, "interval": interval} for name in names], **more}


@pytest.fixture(scope="module")
def patients() -> pa.Table:
    """Twelve times five records that differ in two attributes, and one record that is like no other."""
    rng = np.random.default_rng(0)
    rows = np.repeat(rng.integers(0, VALUES, (12, ATTRIBUTES)), 5, axis=0)
    for start in range(0, 60, 5):
        rows[start : start + 5, rng.choice(ATTRIBUTES, 2, replace=False)] = rng.integers(0, VALUES, (5, 2))
    rows = np.concatenate([rows, rng.integers(0, VALUES, (1, ATTRIBUTES))])
    return pa.table({f"a{i}": rows[:, i] for i in range(ATTRIBUTES)})


@pytest.fixture
def no_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    def listed(lattice: Lattice) -> Iterator[Any]:
        raise AssertionError("somebody lists all states")

    monkeypatch.setattr(Lattice, "states", listed)
    monkeypatch.setattr(Lattice, "groups", listed)


@pytest.mark.usefixtures("no_listing")
def test_a_release_from_sixty_million_states_is_made_read_and_audited(patients: pa.Table, tmp_path: Path) -> None:
    with unblur.anonymize(patients, config()) as made:
        assert made.config.lattice.size == LAYERS**ATTRIBUTES
        assert len(made.classes) == 12 and made.outliers == 1
        made.save(tmp_path / "release.csv")
    release = unblur.read_release(tmp_path / "release.csv", config=tmp_path / "release.toml")
    audit = unblur.audit(release, truth=patients, attack="joint")
    assert audit.summary.not_done == 0
    assert all(finding.truth is not None and finding.truth.feasible for finding in audit.classes)
    assert audit.notes == (
        "the classes were not looked at together: the joint program tells more than 200,000 cells apart",
    )


def test_arx_refuses_before_the_table_is_opened() -> None:
    with pytest.raises(ConfigError, match=r"60,466,176 states .*at most 100,000 are searched completely by ARX: drop"):
        unblur.anonymize("no_such_table.csv", config(mechanism={"name": "arx"}))


def test_what_takes_long_is_said_before_it_begins_and_what_takes_days_is_refused() -> None:
    lattice = Lattice([halves(Decimal(0), Decimal(VALUES), layers=LAYERS)] * ATTRIBUTES, (1,) * ATTRIBUTES)
    assert check_time(lattice, 1_000, 5) is None
    said = check_time(lattice, 1_000_000, 5)
    assert said is not None and said.startswith("60,466,176 states (6 x 6 x") and "hours" in said
    few = Lattice(lattice.hierarchies[:3], lattice.finest[:3])
    assert check_time(few, 20_000_000, 5) is None
    with pytest.raises(ConfigError, match=r"20,000,000 different cells: choosing states may take .* days; fewer attr"):
        check_time(lattice, 20_000_000, 5)
