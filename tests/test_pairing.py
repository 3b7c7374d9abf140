"""Long tables matched by position, a stretch at a time; matching by ids, all rows at once, is the judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unblur
from unblur import matching, pairing
from unblur.errors import TableError
from unblur.reading import PublishedRelease
from unblur.replay import Replay
from unblur.truth import Truth, read_truth
from unblur.workspace import Workspace

ROWS = 30_000
CONFIG: dict[str, Any] = {
    "k": 5,
    "quasi_identifiers": [
        {"name": "age", "interval": {"low": 0, "high": 80, "layers": 4}},
        {"name": "weight", "interval": {"low": 0, "high": 160, "layers": 4}},
    ],
}


@pytest.fixture(autouse=True)
def _short_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairing, "STRETCH", 3_000)
    monkeypatch.setattr(pairing, "MOST_GROUPS", 100)


def people() -> pa.Table:
    rng = np.random.default_rng(1)
    ages, weights = (np.clip(rng.normal(0.5, 0.2, ROWS) * top, 0, top - 1).astype(int) for top in (80, 160))
    return pa.table({"id": np.arange(ROWS), "age": ages, "weight": weights})


@pytest.fixture
def published(tmp_path: Path) -> PublishedRelease:
    unblur.anonymize(people(), CONFIG).save(tmp_path / "release.parquet")
    return unblur.read_release(tmp_path / "release.parquet", tmp_path / "release.toml")


def write(table: pa.Table, folder: Path, kind: str) -> Path:
    """Write a table as one file, or as several of unlike lengths."""
    if kind == "folder":
        (folder / "raw").mkdir()
        for name, start, end in (("a", 0, 5_001), ("b", 5_001, 5_002), ("c", 5_002, 23_456), ("d", 23_456, ROWS)):
            pq.write_table(table.slice(start, end - start), folder / "raw" / f"{name}.parquet", row_group_size=4_000)
        return folder / "raw"
    if kind == "csv":
        table.to_pandas().to_csv(folder / "raw.csv", index=False)
        return folder / "raw.csv"
    pq.write_table(table, folder / "raw.parquet", row_group_size=7_000)
    return folder / "raw.parquet"


def truth_of(source: Path, release: PublishedRelease, **options: Any) -> Truth:
    with Workspace() as workspace:
        return read_truth(source, release, release.open_rows(workspace), **options)


@pytest.mark.parametrize("kind", ["parquet", "csv", "folder"])
def test_rows_read_in_step_say_the_same_as_rows_matched_by_their_ids(
    tmp_path: Path, published: PublishedRelease, kind: str
) -> None:
    source = write(people(), tmp_path, kind)
    seen: list[tuple[int, int]] = []
    found = truth_of(source, published, progress=lambda done, of: seen.append((done, of)))
    assert found == truth_of(source, published, id_column="id")
    assert len(seen) > 5 and seen == sorted(seen) and seen[-1] == (ROWS, ROWS)
    assert sum(found.totals.values()) == ROWS


@pytest.mark.parametrize("kind", ["parquet", "folder"])
def test_the_first_wrong_row_is_named_in_whatever_stretch_it_is(
    tmp_path: Path, published: PublishedRelease, kind: str
) -> None:
    ages = people()["age"].to_numpy().copy()
    wrong = [23_999, 29_999]
    ages[wrong] = (ages[wrong] + 40) % 80  # in the other half: no label below the root covers both
    source = write(people().set_column(1, "age", pa.array(ages)), tmp_path, kind)
    with pytest.raises(TableError, match=r"row 24000: the published label of column 'age' .* \(2 such rows\)"):
        truth_of(source, published)


def test_rows_in_another_order_are_noticed(tmp_path: Path, published: PublishedRelease) -> None:
    source = write(people().take(pa.array(np.arange(ROWS)[::-1])), tmp_path, "parquet")
    with pytest.raises(TableError, match="its rows are in another order"):
        truth_of(source, published)


def test_a_replay_reads_both_in_step_and_names_the_first_row_that_differs(
    tmp_path: Path, published: PublishedRelease
) -> None:
    source = write(people(), tmp_path, "parquet")
    same = unblur.audit(published, truth=source, replay=True).replay
    assert same == Replay(0, None)
    rows = pq.read_table(tmp_path / "release.parquet").to_pydict()
    for row in (12_344, 25_000):
        rows["weight"][row] = "*"
    other = unblur.read_release(pa.table(rows), tmp_path / "release.toml")
    differs = unblur.audit(other, truth=source, replay=True).replay
    by_id = unblur.audit(other, truth=source, replay=True, id="id").replay
    assert differs is not None and differs == by_id
    assert (differs.rows, differs.first, differs.found[1]) == (2, 12_345, "*")
    assert differs.expected[0] == differs.found[0] and differs.expected[1] != "*"


def test_ids_are_matched_in_parts(tmp_path: Path, published: PublishedRelease, monkeypatch: pytest.MonkeyPatch) -> None:
    shuffled = people().take(pa.array(np.random.default_rng(2).permutation(ROWS)))
    source = write(shuffled, tmp_path, "parquet")
    whole = truth_of(source, published, id_column="id")
    monkeypatch.setattr(matching, "MOST_IDS", 1_000)
    assert truth_of(source, published, id_column="id") == whole
    ids = shuffled["id"].to_numpy().copy()
    ids[[100, 20_000, 25_000]] = ids[99]
    repeated = write(shuffled.set_column(0, "id", pa.array(ids)), tmp_path, "parquet")
    with pytest.raises(TableError, match=r"row 101: an id that another row has too \(3 such rows\)"):
        truth_of(repeated, published, id_column="id")
    ids[[100, 20_000, 25_000]] = [ROWS + 7, ROWS + 8, ROWS + 9]
    others = write(shuffled.set_column(0, "id", pa.array(ids)), tmp_path, "parquet")
    first = shuffled["id"].take(pa.array([100, 20_000, 25_000])).to_numpy().min() + 1
    with pytest.raises(TableError, match=rf"row {first}: an id that .*raw.parquet does not have \(3 such rows\)"):
        truth_of(others, published, id_column="id")
