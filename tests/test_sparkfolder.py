"""Spark writes a release where its workers can, as the table lay in files, and no row passes through the driver."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import unblur
from unblur.errors import OutputError, TableError
from unblur.spark import Layout
from unblur.sparkfolder import SparkFolder

pytestmark = pytest.mark.slow

ROWS = 50_000
CONFIG = {
    "k": 5,
    "quasi_identifiers": [
        {"name": "age", "interval": {"low": 0, "high": 80, "layers": 4}},
        {"name": "weight", "interval": {"low": 30, "high": 110, "layers": 4}},
    ],
}


def patients(rows: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(11)
    return pa.table(
        {
            "id": np.arange(rows),
            "age": np.sort(rng.integers(0, 80, rows)),  # an order that must not be seen in the release
            "weight": rng.integers(30, 110, rows),
            "note": [f"{number:032x}" for number in rng.integers(0, 2**62, rows)],
        }
    )


def write_parts(folder: Path, table: pa.Table, parts: int) -> Path:
    folder.mkdir(parents=True)
    size = -(-table.num_rows // parts)
    for part in range(parts):
        pq.write_table(table.slice(part * size, size), folder / f"{part}.parquet")
    return folder


def parts(folder: Path) -> Counter[str]:
    """How many files there are in each folder."""
    return Counter(str(path.parent.relative_to(folder)) for path in folder.rglob("*.parquet"))


def labels(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(zip(*(table[name].to_pylist() for name in ("id", "age", "weight", "note")), strict=True))


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_rows_that_the_driver_could_not_hold_are_released(spark: Any, tmp_path: Path) -> None:
    raw = write_parts(tmp_path / "raw", patients(), 5)
    with pytest.raises(Exception, match="maxResultSize"):
        spark.read.parquet(str(raw)).toArrow()
    with unblur.anonymize(f"pyspark://#parquet:{raw}", CONFIG) as release:
        release.save(f"pyspark://#parquet:{tmp_path}/release.parquet", trace=tmp_path / "trace.json")
        classes, found = release.classes, unblur.audit(release)
    written = tmp_path / "release.parquet"
    assert left_in(tmp_path) == ["raw", "release.parquet", "release.toml", "trace.json"], "nothing else is left"
    assert parts(written) == {".": 5}, "as many files as before"
    here = unblur.anonymize(patients(), CONFIG)
    assert classes == here.classes
    assert labels(pq.read_table(written)) == labels(here.to_arrow())
    ids = pq.read_table(next(written.glob("part-00000*")))["id"].to_numpy()
    assert abs(np.corrcoef(ids, np.arange(len(ids)))[0, 1]) < 0.05, "shuffled"
    assert np.ptp(ids) > ROWS * 0.9, "over all files"
    again = unblur.read_release(f"pyspark://#parquet:{written}", tmp_path / "release.toml")
    assert unblur.audit(again).to_json() == found.to_json()
    known = unblur.audit(again, truth=f"pyspark://#parquet:{raw}", id="id")
    assert known.to_json() == unblur.audit(here, truth=patients(), id="id").to_json(), "also with the raw table"


def test_rows_are_matched_where_they_are(spark: Any) -> None:
    table = patients(400)
    ids = [f" {number}.0 " if number % 2 else str(number) for number in range(400)]
    raw = spark.createDataFrame(table.set_column(0, "id", pa.array(np.arange(400, dtype=float))))
    release = unblur.read_release(unblur.anonymize(table, CONFIG).to_arrow().set_column(0, "id", [ids]), CONFIG)
    rows = spark.createDataFrame(release.open_rows(release.workspace).rows.drop("__unblur_row").to_pyarrow())
    published = unblur.read_release(rows, CONFIG)
    expected = unblur.audit(release, truth=table, id="id").to_json()
    assert unblur.audit(published, truth=raw, id="id").to_json() == expected
    with pytest.raises(TableError, match=r"an id that the table does not have \(2 such rows\)"):
        unblur.audit(published, truth=raw.filter("id < 398"), id="id")
    for wrong, problem in {"CAST(NULL AS STRING)": "an id is missing", "'1'": "an id that another row has too"}.items():
        with pytest.raises(TableError, match=rf"column 'id': {problem} \((400|399) such rows\)"):
            unblur.audit(published, truth=raw.selectExpr(f"{wrong} AS id", "age", "weight"), id="id")
    with pytest.raises(TableError, match="does not cover the raw value"):
        unblur.audit(published, truth=raw.selectExpr("399 - id AS id", "age", "weight"), id="id")


def test_folders_stay_folders_with_their_files(spark: Any, tmp_path: Path) -> None:
    table = patients(6000)
    for number, (name, files) in enumerate([("01", 3), ("02", 1), ("a b%2Fc", 1), ("__HIVE_DEFAULT_PARTITION__", 2)]):
        write_parts(tmp_path / "raw" / f"zip={name}", table.slice(number * 1500, 1500), files)
    pq.write_table(table.slice(0, 0), tmp_path / "raw" / "zip=01" / "empty.parquet")
    source = f"pyspark://#parquet:{tmp_path}/raw"
    with unblur.anonymize(source, CONFIG) as release:
        release.save(f"pyspark://#parquet:{tmp_path}/release")
        expected = release.to_arrow()
    assert parts(tmp_path / "release") == {
        "zip=01": 3, "zip=02": 1, "zip=a b%2Fc": 1, "zip=__HIVE_DEFAULT_PARTITION__": 2,
    }  # fmt: skip
    assert labels(ds.dataset(tmp_path / "release", partitioning="hive").to_table()) == labels(expected)
    with unblur.anonymize(source, CONFIG, order_by="id") as release:
        release.save(f"pyspark://#parquet:{tmp_path}/ordered")
    assert set(parts(tmp_path / "ordered")) == set(parts(tmp_path / "release"))
    for path in (tmp_path / "ordered").rglob("*.parquet"):
        ids = pq.read_table(path, partitioning=None)["id"].to_pylist()
        assert ids == sorted(ids)


def test_a_folder_by_a_quasi_identifier_becomes_one_by_its_labels(spark: Any, tmp_path: Path) -> None:
    for age in (5, 33, 77):
        write_parts(tmp_path / "raw" / f"age={age}", patients(600).slice(age, 100).drop_columns("age"), 1)
    with unblur.anonymize(f"pyspark://#parquet:{tmp_path}/raw", CONFIG) as release:
        release.save(f"pyspark://#parquet:{tmp_path}/release")
    names = {path.name for path in (tmp_path / "release").iterdir() if path.is_dir()}
    assert names == {"age=%5B0, 10%5B", "age=%5B30, 40%5B", "age=%5B70, 80%5B"}
    assert unblur.read_release(f"pyspark://#parquet:{tmp_path}/release", tmp_path / "release.toml").rows == 300


def test_data_frames_and_expressions_of_a_session_are_taken(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame(patients(3000)).repartition(3)
    frame.createOrReplaceTempView("expressed")
    expression = ibis.pyspark.connect(spark).table("expressed").filter(ibis._.id < 2000)
    for number, (table, rows) in enumerate([(frame, 3000), (expression, 2000)]):
        with unblur.anonymize(table, CONFIG) as release:
            release.save(f"pyspark://#parquet:{tmp_path}/{number}")
            release.save(tmp_path / f"{number}.csv")
        assert pq.read_table(tmp_path / str(number)).num_rows == rows
        assert len((tmp_path / f"{number}.csv").read_text().splitlines()) == rows + 1
    assert parts(tmp_path / "0") == {".": 3}
    assert not [name for name in left_in(tmp_path) if name.startswith(".")]


def test_what_is_there_is_replaced_only_if_asked(spark: Any, tmp_path: Path) -> None:
    raw = write_parts(tmp_path / "raw", patients(500), 2)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine").write_text("x")
    with unblur.anonymize(f"pyspark://#parquet:{raw}", CONFIG) as release:
        for place, problem in {
            "taken": "it is there already; --overwrite replaces it",
            "raw": "this is an input, or inside it",
            "raw/inside": "this is an input, or inside it",
        }.items():
            with pytest.raises(OutputError, match=f"{place}: {problem}"):
                release.save(f"pyspark://#parquet:{tmp_path}/{place}", overwrite=place == "raw")
        assert left_in(tmp_path) == ["raw", "taken"] and left_in(tmp_path / "taken") == ["mine"]
        release.save(f"pyspark://#parquet:{tmp_path}/taken", overwrite=True)
    assert left_in(tmp_path) == ["raw", "taken", "taken.toml"] and parts(tmp_path / "taken") == {".": 2}
    with pytest.raises(OutputError, match="only rows that Spark has go there"):
        unblur.anonymize(patients(500), CONFIG).save(f"pyspark://#parquet:{tmp_path}/other")


def test_files_that_disagree_are_told_by_the_column(spark: Any, tmp_path: Path) -> None:
    table = patients(100)
    raw = write_parts(tmp_path / "raw", table, 2)
    for name, kind in (("age", pa.string()), ("note", pa.binary()), ("weight", pa.int32())):
        changed = table.set_column(table.column_names.index(name), name, table[name].cast(kind))
        pq.write_table(changed, raw / "1.parquet")
        with pytest.raises(TableError, match=f"the column '{name}' has one type in some of the files and another"):
            unblur.anonymize(f"pyspark://#parquet:{raw}", CONFIG)
        if name == "age":  # a data frame may have taken one file's word for all
            with pytest.raises(TableError, match=f"the table: the column '{name}' has one type in some of the files"):
                unblur.anonymize(spark.read.schema("age bigint, weight bigint").parquet(str(raw)), CONFIG)


def test_a_job_that_fails_leaves_nothing_and_is_told_in_one_line(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"cannot be opened \(no such path\)"):
        unblur.anonymize(f"pyspark://#parquet:{tmp_path}/none", CONFIG)
    raw = write_parts(tmp_path / "raw", patients(5000), 3)
    with unblur.anonymize(f"pyspark://#parquet:{raw}", CONFIG) as release:
        content = (raw / "2.parquet").read_bytes()
        (raw / "2.parquet").write_bytes(content[:500] + bytes(len(content) - 1000) + content[-500:])
        for target in (f"pyspark://#parquet:{tmp_path}/release", tmp_path / "release.parquet"):
            with pytest.raises(TableError) as caught:
                release.save(target)
            assert "\n" not in str(caught.value) and "the engine that has the rows failed" in str(caught.value)
    assert left_in(tmp_path) == ["raw"]


def test_rows_that_changed_meanwhile_are_not_released(spark: Any, tmp_path: Path) -> None:
    raw = write_parts(tmp_path / "raw", patients(500), 1)
    with unblur.anonymize(f"pyspark://#parquet:{raw}", CONFIG) as release:
        pq.write_table(patients(400), raw / "0.parquet")
        with pytest.raises(TableError):
            release.save(f"pyspark://#parquet:{tmp_path}/release")
    assert left_in(tmp_path) == ["raw"]


def start(master: str, folder: Path, **environment: str) -> subprocess.Popen[str]:
    """Anonymize the table `raw` of a folder in a process of its own, with a Spark of its own."""
    (folder / "c.toml").write_text(unblur.Config.from_dict(CONFIG).to_toml(folder))
    settings = f"spark.local.dir={folder}/local&spark.driver.memory=1g"
    command = [sys.executable, "-m", "unblur", "anonymize", f"pyspark://{master}?{settings}#parquet:{folder}/raw"]
    command += ["-c", "c.toml", "-o", f"pyspark://#parquet:{folder}/release"]
    known = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "SPARK_WORKER_DIR": str(folder / "work")}
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=os.environ | known | environment,
    )


def wait_until_it_writes(folder: Path, running: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 240
    while not list(folder.glob(".unblur-*/_temporary/0/_temporary/*")):
        assert running.poll() is None and time.monotonic() < deadline, running.communicate()
        time.sleep(0.01)


def children(parent: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True)
    return [int(line) for line in found.stdout.split()]


def test_a_spark_that_dies_while_it_writes_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    if shutil.which("java") is None:
        pytest.skip("no Java for Spark: install a JRE (Debian: default-jre-headless)")
    write_parts(tmp_path / "raw", patients(200_000), 2)
    running = start("local[2]", tmp_path)
    wait_until_it_writes(tmp_path, running)
    for child in children(running.pid):
        os.kill(child, signal.SIGKILL)
    out, error = running.communicate(timeout=60)
    assert running.returncode == 2 and out == ""
    assert error.startswith("unblur: pyspark://…#parquet:") and error.count("\n") == 1
    assert set(left_in(tmp_path)) <= {"c.toml", "local", "raw"}


def test_what_a_task_makes_anew_while_it_ends_is_removed_too(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, frame, looks = SparkFolder("pyspark://", str(tmp_path / "release")), spark.range(10), iter(range(99))
    staging = Path(unquote(urlsplit(folder._staged_at).path))

    def busy(self: SparkFolder) -> bool:
        if (look := next(looks)) == 2:
            (staging / "_temporary").mkdir(parents=True)
        return look < 2

    monkeypatch.setattr(SparkFolder, "_busy", busy)
    with pytest.raises(KeyboardInterrupt), folder.staged(frame, Layout(frame), ["id"], None):
        assert staging.exists()
        raise KeyboardInterrupt
    assert left_in(tmp_path) == []
    assert next(looks) == 6, "it looked until nothing came any more"


def test_tasks_of_a_job_that_was_called_off_are_waited_for(spark: Any, tmp_path: Path) -> None:
    folder = SparkFolder("pyspark://", str(tmp_path / "release"))

    def write() -> None:
        spark.sparkContext.setJobGroup(folder._staged_at, "a task that takes long")
        with suppress(Exception):
            spark.sparkContext.parallelize([1], 1).foreach(lambda _: time.sleep(30))

    assert not folder._busy()
    writer = threading.Thread(target=write)
    writer.start()
    start = time.monotonic()
    while not folder._busy():
        assert time.monotonic() < start + 20
    folder._stop_writing()
    assert not folder._busy()
    writer.join(timeout=20)
    assert not writer.is_alive()


LONG = pytest.mark.skipif(os.environ.get("UNBLUR_TESTS") != "long", reason="a minute: `make test-long`")


@LONG
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_while_spark_writes_leaves_nothing(number: signal.Signals, tmp_path: Path) -> None:
    write_parts(tmp_path / "raw", patients(), 40)
    running = start("local[2]", tmp_path)
    wait_until_it_writes(tmp_path, running)
    running.send_signal(number)
    out, error = running.communicate(timeout=60)
    assert (running.returncode, out) == (128 + number, "")
    assert error == "unblur: interrupted; no half-written file is left\n"
    assert set(left_in(tmp_path)) <= {"c.toml", "local", "raw"}


@LONG
def test_a_worker_that_dies_while_it_writes_costs_nothing_but_time(tmp_path: Path) -> None:
    write_parts(tmp_path / "raw", patients(), 40)
    running = start("local-cluster[2,1,1024]", tmp_path)
    workers: list[int] = []
    while len(workers) < 2:
        assert running.poll() is None, running.communicate()
        workers = [each for driver in children(running.pid) for each in children(driver)]
        time.sleep(0.1)
    wait_until_it_writes(tmp_path, running)
    os.kill(workers[0], signal.SIGKILL)
    assert not (tmp_path / "release").exists(), "it was writing"
    _, error = running.communicate(timeout=300)
    assert running.returncode == 0, error
    assert parts(tmp_path / "release") == {".": 40}
    assert labels(pq.read_table(tmp_path / "release")) == labels(unblur.anonymize(patients(), CONFIG).to_arrow())
