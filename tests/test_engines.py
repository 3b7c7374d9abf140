"""The same table gives the same release on every engine."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pytest

import unblur
from unblur.errors import TableError, UnblurWarning


def patients() -> pa.Table:
    rng = np.random.default_rng(7)
    n = 400
    day = datetime.date(2024, 1, 1)
    weights = [f" {w:.1f} " if i % 9 == 0 else f"{w:.1f}" for i, w in enumerate(rng.uniform(30, 109.9, n))]
    return pa.table(
        {
            "id": [f"{i:04d}" for i in range(n)],
            "Age": pa.array(rng.integers(0, 80, n), pa.int32()),
            "weight": weights,
            "height": pa.array([Decimal(int(h)) / 10 for h in rng.integers(1400, 2040, n)], pa.decimal128(6, 1)),
            "sex": rng.choice(["male", "female"], n),
            'note; "x"': [None if i % 7 == 0 else f"007 é{i}" for i in range(n)],
            "seen": pa.array([day + datetime.timedelta(days=i) for i in range(n)]),
            "cost": pa.array([None if i % 5 == 0 else Decimal(i) / 100 for i in range(n)], pa.decimal128(10, 2)),
        }
    )


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    sex = tmp_path_factory.mktemp("hierarchy") / "sex.csv"
    sex.write_text("male;*\nfemale;*\n")
    return {
        "k": 4,
        "quasi_identifiers": [
            {"name": "Age", "interval": {"low": 0, "high": 80, "layers": 3}, "finest_layer": 0},
            {"name": "weight", "interval": {"low": 30, "high": 110, "step": 0.1, "layers": 3}},
            {"name": "height", "interval": {"low": 140, "high": 204, "step": 0.1, "layers": 3}},
            {"name": "sex", "hierarchy": str(sex)},
        ],
    }


@pytest.fixture(scope="module")
def expected(config: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("expected") / "r.csv"
    unblur.anonymize(patients(), config).save(path)
    return path.read_text()


@pytest.fixture(scope="module")
def duckdb_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("duckdb") / "x.duckdb"
    connection = ibis.duckdb.connect(path)
    connection.create_table("patients", patients())
    connection.create_table("Wrong", wrong())
    connection.create_table("tied", tied())
    connection.disconnect()
    return f"duckdb://{path}"


@pytest.fixture(scope="module")
def postgres_url(postgres_address: str) -> Iterator[str]:
    connection = ibis.connect(postgres_address)
    connection.create_table("patients", patients())
    connection.create_table("Wrong", wrong())
    connection.create_table("tied", tied())
    connection.raw_sql("CREATE ROLE reader LOGIN; GRANT SELECT ON patients TO reader").close()
    connection.raw_sql("REVOKE TEMP ON DATABASE postgres FROM public").close()
    connection.con.commit()
    yield postgres_address
    connection.disconnect()


@pytest.fixture(scope="module")
def reader_url(postgres_url: str) -> str:
    """The address of a user who may read one table and make nothing, not even a temporary table."""
    return postgres_url.replace("postgres@", "reader@")


@pytest.fixture(scope="module")
def spark_url(spark: Any) -> str:
    spark.createDataFrame(patients()).repartition(3).createOrReplaceTempView("patients")
    spark.createDataFrame(wrong()).createOrReplaceTempView("Wrong")
    spark.createDataFrame(tied()).createOrReplaceTempView("tied")
    return "pyspark://"


def wrong() -> pa.Table:
    return pa.table(
        {
            "Age": pa.array([1.0, None, float("nan"), 99.0, 7.0, 7.5]),
            "weight": ["50", "51", "", "x", "1,5", "nan"],
            "height": [150, 150, 150, 150, 1500, 150],
            "sex": ["male", "female", None, "other", "male", " "],
        }
    )


ENGINES = [
    "duckdb_url",
    "postgres_url",
    "reader_url",
    pytest.param("spark_url", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_makes_the_same_release(
    engine: str, config: dict[str, Any], expected: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = request.getfixturevalue(engine)
    with unblur.anonymize(f"{url}#patients", config, order_by="id") as release:
        release.save(tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text() == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_without_an_order_the_same_rows_come_out(
    engine: str, config: dict[str, Any], expected: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = request.getfixturevalue(engine)
    with unblur.anonymize(f"{url}#patients", config) as release:
        release.save(tmp_path / "r.csv")
    assert sorted((tmp_path / "r.csv").read_text().splitlines()) == sorted(expected.splitlines())


@pytest.mark.parametrize("engine", [each for each in ENGINES if each != "reader_url"])
def test_problems_are_named_by_column_and_count(
    engine: str, config: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue(engine)
    with pytest.raises(TableError, match=r"…#Wrong: column 'Age': a value outside \[0, 80\) \(1 such row\)"):
        unblur.anonymize(f"{url}#Wrong", config)
    with pytest.warns(UnblurWarning) as caught:
        release = unblur.anonymize(f"{url}#Wrong", config, missing="suppress")
    found = [str(each.message).split("#Wrong: column ")[-1] for each in caught if each.category is UnblurWarning]
    assert found == [
        "'Age': a value outside [0, 80) (1 such row)",
        "'Age': a value is missing (2 such rows)",
        "'weight': text where a number is needed; decimals are written with a point (2 such rows)",
        "'weight': a value is missing (2 such rows)",
        "'height': a value outside [140, 204) (1 such row)",
        "'sex': a value that the hierarchy does not list; case and blanks count (1 such row)",
        "'sex': a value is missing (2 such rows)",
        "k is 4, but there is only 1 record with all values",
        "no group reaches k: everything is suppressed",
    ]
    assert release.outliers == 6
    release.close()


def tied() -> pa.Table:
    rng = np.random.default_rng(5)
    return pa.table({name: [f"{v:.1f}" for v in rng.integers(0, 80, 150) / 10] for name in ("a", "b", "c")})


TIED = {"k": 3, "quasi_identifiers": [
    {"name": name, "interval": {"low": 0, "high": 8, "step": 0.1, "layers": 4}} for name in ("a", "b", "c")
]}  # fmt: skip


@pytest.mark.parametrize("engine", [each for each in ENGINES if each != "reader_url"])
def test_ties_are_decided_alike_on_every_engine(engine: str, request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue(engine)
    expected = unblur.anonymize(tied(), TIED)
    with unblur.anonymize(f"{url}#tied", TIED) as release:
        assert release.recoding.iterations == expected.recoding.iterations
    assert any(step.rivals for step in expected.recoding.iterations)


@pytest.mark.slow
def test_spark_reads_parquet_files_by_path(spark: Any, config: dict[str, Any], expected: str, tmp_path: Path) -> None:
    spark.createDataFrame(patients()).repartition(2).write.parquet(str(tmp_path / "patients"))
    with unblur.anonymize(f"pyspark://#parquet:{tmp_path}/patients", config, order_by="id") as release:
        release.save(tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text() == expected


def test_a_postgres_table_that_changes_meanwhile_is_read_in_one_state(
    postgres_url: str, config: dict[str, Any], tmp_path: Path
) -> None:
    connection = ibis.connect(postgres_url)
    connection.create_table("moving", patients())
    connection.con.commit()
    with unblur.anonymize(f"{postgres_url}#moving", config) as release:
        connection.raw_sql("DELETE FROM moving WHERE id < '0100'").close()
        connection.con.commit()
        release.save(tmp_path / "r.csv")
    assert len((tmp_path / "r.csv").read_text().splitlines()) == 401
    connection.disconnect()


def test_the_command_line_reads_a_database(postgres_url: str, config: dict[str, Any], tmp_path: Path) -> None:
    from unblur.config import load_config

    (tmp_path / "c.toml").write_text(load_config(config).to_toml(tmp_path))
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "unblur",
        "anonymize",
        f"{postgres_url}#patients",
        "-c",
        tmp_path / "c.toml",
    ]
    done = subprocess.run([*command, "-o", tmp_path / "r.csv"], capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    assert "400 rows, k = 4" in done.stdout
