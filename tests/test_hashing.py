from __future__ import annotations

import hashlib
from concurrent.futures import Future
from io import FileIO
from pathlib import Path
from typing import Any

import pytest

import unblur
from tests.test_anonymizing import CONFIG, people
from unblur import hashing
from unblur.errors import TableError
from unblur.reading import read_release


def test_the_hash_is_that_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashing, "CHUNK", 64)
    unblur.anonymize(people(), CONFIG).save(tmp_path / "r.parquet")
    read = read_release(tmp_path / "r.parquet", tmp_path / "r.toml")
    assert read.sha256 == hashlib.sha256((tmp_path / "r.parquet").read_bytes()).hexdigest()
    assert read.bare().sha256 is None
    assert read_release(unblur.anonymize(people(), CONFIG).to_arrow(), CONFIG).sha256 is None


def test_a_file_that_changes_while_it_is_hashed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"before")

    class Slow(FileIO):
        def readinto(self, buffer: Any, /) -> int:
            path.write_bytes(b"afterwards")
            return super().readinto(buffer) if not self.tell() else 0

    found: Future[str | None] = Future()
    hashing._hash(Slow(path), found)
    with pytest.raises(TableError, match="t: the file changed while it was read"):
        found.result()


def test_a_file_may_go_once_it_was_read(tmp_path: Path) -> None:
    unblur.anonymize(people(), CONFIG).save(tmp_path / "r.csv")
    read = read_release(tmp_path / "r.csv", tmp_path / "r.toml")
    (tmp_path / "r.csv").unlink()
    assert len(unblur.audit(read).release.sha256 or "") == 64
