from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import unblur
from tests.test_auditing import CONFIG, patients, wide_release
from unblur import leaks
from unblur.leaks import find_leaks

Write = Callable[[str, str | bytes], Path]


def kinds(release: unblur.Release, *, by_position: bool = False) -> list[str]:
    return [leak.kind for leak in find_leaks(release, matched_by_position=by_position)]


def test_a_column_that_differs_in_every_row_is_an_identifier() -> None:
    table = patients()
    assert kinds(unblur.anonymize(table, CONFIG))[0] == "identifier_column"
    assert "identifier_column" not in kinds(unblur.anonymize(table.drop(columns="id"), CONFIG))
    table["id"] = table["id"] // 2
    assert "identifier_column" not in kinds(unblur.anonymize(table, CONFIG))


def test_raw_values_are_a_leak_where_they_could_be_intervals() -> None:
    table = patients(400)
    table["age"] = 40
    found = find_leaks(unblur.anonymize(table, CONFIG | {"finest_layer": 0}))
    assert [leak.finding for leak in found if leak.kind == "raw_values"][-1].endswith("show their raw value of 'age'")
    assert "raw_values" not in kinds(unblur.anonymize(table, CONFIG))


def test_classes_below_k_are_told(write: Write) -> None:
    unblur.anonymize(patients(), CONFIG).save(write("x", "").with_name("r.csv"))
    folder = write("x", "").parent
    (folder / "r.toml").write_text((folder / "r.toml").read_text().replace("k = 4", "k = 6"))
    assert "below_k" in kinds(unblur.read_release(folder / "r.csv", folder / "r.toml"))


def test_fewer_suppressed_rows_than_k_stand_out() -> None:
    release = unblur.anonymize(patients(), CONFIG)
    assert release.outliers == 3
    assert "few_suppressed" in kinds(release)
    more = unblur.anonymize(patients(seed=4).iloc[:60], CONFIG)
    assert more.outliers == 5
    assert "few_suppressed" not in kinds(more)


def test_a_hierarchy_file_of_observed_values_tells_them(write: Write) -> None:
    rows = [f"{v};[{v // 10 * 10}, {v // 10 * 10 + 10}[;*" for v in range(0, 100, 3)]
    config = {"k": 2, "quasi_identifiers": [{"name": "age", "hierarchy": str(write("h.csv", "\n".join(rows) + "\n"))}]}
    table = patients(50)[["age"]]
    table["age"] = table["age"] // 3 * 3
    assert "observed_values" in kinds(unblur.anonymize(table, config))


def test_matched_by_position_means_in_the_original_order() -> None:
    release = unblur.anonymize(patients(), CONFIG)
    assert "original_order" in kinds(release, by_position=True)
    assert "original_order" not in kinds(release)


def test_intervals_too_short_for_arx_are_a_remark_and_no_leak() -> None:
    config = {"k": 2, "quasi_identifiers": [{"name": "r", "interval": {"low": 0, "high": 2, "step": 0.1, "layers": 3}}]}
    import pandas as pd

    release = unblur.anonymize(pd.DataFrame({"r": [0.1, 0.1, 1.5, 1.6]}), config)
    assert kinds(release) == [], "it gives nothing away"
    told = [note for note in unblur.audit(release, mechanism="iterative").notes if "long" in note]
    assert told == [
        "r: an interval is 0.5 long, and ARX's loss counts all below 1 as single values; if ARX makes the release, "
        "rescale the attribute first, for example from ratios to per mille"
    ]
    assert not unblur.audit(release).notes, "unblur made it, and counts values"
    other = unblur.audit(unblur.anonymize(patients(), CONFIG), mechanism="iterative")
    assert not [note for note in other.notes if "long" in note]


def test_classes_alone_have_no_columns_to_look_at() -> None:
    assert kinds(wide_release()) == []


def test_an_audit_carries_the_leaks() -> None:
    table = patients()
    release = unblur.anonymize(table, CONFIG)
    audit = unblur.audit(release, truth=table)
    assert {leak.kind for leak in audit.leaks} >= {"identifier_column", "original_order"}
    assert audit.to_dict()["leaks"][0]["remedy"]
    by_id = unblur.audit(release, truth=table, id="id")
    assert "original_order" not in {leak.kind for leak in by_id.leaks}


@pytest.mark.parametrize("kind", ["identifier_column", "original_order"])
def test_no_raw_value_is_in_a_leak(kind: str) -> None:
    table = patients()
    table["id"] = [f"secret-{n}" for n in range(len(table))]
    audit = unblur.audit(unblur.anonymize(table, CONFIG), truth=table)
    assert not [leak for leak in audit.leaks if "secret" in leak.finding + leak.remedy]


def test_a_long_table_is_judged_by_some_of_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 40_000
    for name, value in (("LONG", 1_000), ("STRETCH", 500), ("FEW", 100)):
        monkeypatch.setattr(leaks, name, value)
    asked: list[list[str]] = []
    count_all = leaks._different_in_all

    def count(table: Any, names: Sequence[str]) -> list[str]:
        asked.append(list(names))
        return count_all(table, names)

    monkeypatch.setattr(leaks, "_different_in_all", count)
    number = np.arange(rows)
    table = pd.DataFrame(
        {
            "age": number % 80,
            "id": number,
            "almost": np.where(number % 20, number, 0),
            "visits": np.random.default_rng(1).permutation(number // 10),
            "pairs": np.where(number % 40 == 1, number - 1, number),
            "sex": number % 2,
            "rare": pd.array([n if n % 400 == 0 else None for n in range(rows)], dtype="Int64"),
        }
    )
    config = {"k": 2, "quasi_identifiers": [{"name": "age", "interval": {"low": 0, "high": 80, "layers": 3}}]}
    found = [leak.finding for leak in find_leaks(unblur.anonymize(table, config)) if leak.kind == "identifier_column"]
    assert [text.split("'")[1] for text in found] == ["id", "almost", "pairs", "rare"]
    assert asked == [["pairs", "rare"]], "only these are left open by some rows"
