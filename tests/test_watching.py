from __future__ import annotations

import pyarrow as pa
import pytest

import unblur
from unblur import watching
from unblur.watching import watched

CONFIG = {"k": 2, "quasi_identifiers": [{"name": "age", "interval": {"low": 0, "high": 80, "layers": 3}}]}


class Connection:
    """Answers as DuckDB does: below zero at first, a share then, that of the groups included."""

    def __init__(self) -> None:
        self.answers = [-1.0, 10.0, 5.0, 40.0, 60.0]

    def execute(self, query: str) -> None: ...

    def query_progress(self) -> float:
        return self.answers.pop(0) if self.answers else 60.0


def test_rows_are_counted_up_to_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "PAUSE", 0.001)
    connection, seen = Connection(), list[tuple[int, int]]()
    with watched(connection, 1000, lambda done, of: seen.append((done, of)), groups=1000):
        while connection.answers:
            pass
    counts = [done for done, of in seen]
    assert counts[:5] == [0, 200, 200, 800, 1000]
    assert seen[-1] == (1000, 1000)


def test_an_error_is_not_taken_for_the_end() -> None:
    seen = list[tuple[int, int]]()
    with pytest.raises(ZeroDivisionError), watched(Connection(), 5, lambda done, of: seen.append((done, of))):
        raise ZeroDivisionError
    assert (5, 5) not in seen


def test_reading_and_writing_tell_how_many_rows_there_are(tmp_path: object) -> None:
    seen, written = list[tuple[int, int]](), list[tuple[int, int]]()
    table = pa.table({"age": [5, 6, 70]})
    with unblur.anonymize(table, CONFIG, on_rows=lambda *each: seen.append(each)) as release:
        release.save(f"{tmp_path}/r.csv", on_rows=lambda *each: written.append(each))
    assert seen[-1] == written[-1] == (3, 3)
