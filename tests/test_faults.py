"""What a fault leaves behind: one line that says what is wrong, no half output, no temporary file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import unblur
from unblur.engines import DuckDBEngine, Engine
from unblur.errors import TableError
from unblur.parts import Found
from unblur.sources import open_table
from unblur.workspace import Workspace

CONFIG = """
k = 2
[[quasi_identifiers]]
name = "age"
interval = { low = 0, high = 80, layers = 3 }
[[quasi_identifiers]]
name = "weight"
interval = { low = 30, high = 110, step = 0.5, layers = 3 }
"""
ROWS = "SELECT i AS id, hash(i) % 80 AS age, 30 + (hash(i + 7) % 160) / 2 AS weight, md5(i::VARCHAR) AS note FROM range"
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
from unblur.cli import main
main()
"""


class Place:
    """A folder with a config, one for outputs and one for temporary files."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.out, self.temporary = folder, folder / "out", folder / "temporary"
        self.out.mkdir()
        self.temporary.mkdir()
        (folder / "c.toml").write_text(CONFIG)

    def table(self, name: str, rows: int, options: str = "") -> Path:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        duckdb.sql(f"COPY ({ROWS}({rows}) t(i)) TO '{path}' {options}")
        return path

    def start(self, table: Path, *program: str) -> subprocess.Popen[str]:
        arguments = ["anonymize", table, "-c", self.folder / "c.toml", "-o", self.out / "r.csv"]
        return subprocess.Popen(
            [sys.executable, *(program or ("-m", "unblur")), *map(str, arguments)],
            env={**os.environ, "TMPDIR": str(self.temporary)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def complaint(self, process: subprocess.Popen[str], status: int = 2) -> str:
        """Wait for the end, check that nothing is left, and return the one line that was said."""
        _, said = process.communicate(timeout=60)
        assert process.returncode == status, said
        assert [path.name for folder in (self.out, self.temporary) for path in folder.iterdir()] == []
        assert said.count("\n") == 1
        return said.strip()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def wait_for(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    while not condition() and process.poll() is None:
        time.sleep(0.002)


@pytest.mark.parametrize(
    ("name", "full"), [("t.parquet", "out/r.csv: no space left"), ("t.csv", "t.csv: no space left for temp")]
)
def test_a_full_disk_is_said(place: Place, name: str, full: str) -> None:
    assert f"{place.folder}/{full}" in place.complaint(place.start(place.table(name, 30_000), "-c", LIMITED))


@pytest.mark.parametrize("limit", ["SET max_temp_directory_size = '1MB'", "file size"])
def test_no_space_for_what_memory_cannot_hold_is_said(place: Place, limit: str) -> None:
    script = f"""
import resource, sys, unblur
with unblur.anonymize({str(place.table("t.parquet", 1_000_000))!r}, sys.argv[-3], order_by="note") as release:
    connection = release.workspace.duckdb.con
    connection.execute("SET memory_limit = '60MB'; SET threads = 1")
    if {limit!r} == "file size":
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    else:
        connection.execute({limit!r})
    try:
        release.save(sys.argv[-1])
    except unblur.UnblurError as error:
        sys.exit(str(error))
"""
    process = place.start(place.folder / "t.parquet", "-c", script)
    message = "t.parquet: no space left for temporary files (TMPDIR names another folder)"
    assert place.complaint(process, status=1).endswith(message)


def test_an_interrupt_while_rows_are_read_leaves_nothing(place: Place) -> None:
    process = place.start(place.table("t.csv", 600_000))
    wait_for(lambda: list(place.temporary.glob("*/*table.parquet")), process)
    process.send_signal(signal.SIGINT)
    assert place.complaint(process, status=130) == "unblur: interrupted; no half-written file is left"


def test_what_a_killed_run_leaves_is_removed_by_the_next(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    process = place.start(place.table("t.csv", 600_000))
    wait_for(lambda: list(place.temporary.glob("*/*table.parquet")), process)
    process.kill()
    process.communicate()
    (left,) = place.temporary.iterdir()
    monkeypatch.setenv("TMPDIR", str(place.temporary))
    with Workspace() as one, Workspace() as other:
        assert set(place.temporary.iterdir()) == {one.folder, other.folder}
        assert left not in (one.folder, other.folder)
    assert list(place.temporary.iterdir()) == []


def damaged(path: Path) -> Path:
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 20_000] = os.urandom(20_000)
    path.write_bytes(content)
    return path


def test_a_damaged_row_group_is_told_with_its_file(place: Place) -> None:
    path = damaged(place.table("t.parquet", 100_000, "(ROW_GROUP_SIZE 10_000)"))
    message = f"unblur: {path}: damaged; what it holds cannot be read to the end"
    assert place.complaint(place.start(path)) == message


def test_the_damaged_one_of_several_files_is_told(place: Place) -> None:
    place.table("many/1.parquet", 100_000)
    path = damaged(place.table("many/2.parquet", 100_000))
    message = f"unblur: {path}: damaged; what it holds cannot be read to the end"
    assert place.complaint(place.start(path.parent)) == message


@pytest.mark.parametrize("several", [False, True])
def test_a_file_that_goes_while_it_is_read_is_told(place: Place, several: bool) -> None:
    path = place.table("many/1.parquet", 1000)
    place.table("many/2.parquet", 1000)
    with unblur.anonymize(path.parent if several else path, place.folder / "c.toml") as release:
        path.unlink()
        with pytest.raises(TableError) as caught:
            release.save(place.out / "r.parquet")
    assert str(caught.value) == f"{path}: the file was removed while it was read; nothing was written"
    assert list(place.out.iterdir()) == []


def test_a_file_that_goes_between_listing_and_reading_is_told(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = place.table("many/1.parquet", 10).with_name("0.parquet")
    monkeypatch.setattr("unblur.sources.find_parts", lambda source: Found((gone, gone.with_name("1.parquet"))))
    with pytest.raises(TableError, match=r"0\.parquet: No such file or directory"):
        unblur.anonymize(gone.parent, place.folder / "c.toml")


def test_an_engine_that_fails_while_labels_are_brought_to_it_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Engine, columns: object) -> None:
        raise duckdb.IOException("SECRET")

    monkeypatch.setattr(DuckDBEngine, "push", fail)
    with (
        Workspace() as workspace,
        pytest.raises(TableError, match=r"^the table: the engine that has the rows failed") as caught,
    ):
        open_table(pa.table({"a": [1]}), workspace).push({"a": [1]})
    assert "SECRET" not in str(caught.value)
