from __future__ import annotations

import gzip
import io
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unblur
from tests.literal import LiteralRecoder
from tests.strategies import random_case
from unblur.config import Config, QuasiIdentifier
from unblur.errors import ConfigError, OutputError, TableError, UnblurError, UnblurWarning
from unblur.hierarchy import CategoryHierarchy, IntervalHierarchy
from unblur.labels import parse_interval

Write = Callable[[str, str | bytes], Path]

CONFIG = {
    "k": 3,
    "quasi_identifiers": [
        {"name": "age", "interval": {"low": 0, "high": 80, "layers": 4}},
        {"name": "weight", "interval": {"low": 30, "high": 110, "step": 0.5, "layers": 4}},
    ],
}


def people(n: int = 200, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "code": [f"{i:03d}" for i in range(n)],
            "age": rng.integers(0, 80, n),
            "weight": np.round(rng.uniform(30, 109.5, n) * 2) / 2,
            "note": rng.choice(["a;b", 'say "hi"', "", "plain"], n),
        }
    )


def ours(caught: pytest.WarningsRecorder) -> list[str]:
    return [str(each.message) for each in caught if each.category is UnblurWarning]


def covers(label: str, value: float) -> bool:
    if label == "*":
        return True
    interval = parse_interval(label)
    assert interval is not None
    assert interval.low is not None
    assert interval.high is not None
    return float(interval.low) <= value < float(interval.high)


def test_every_label_covers_its_value_and_every_group_has_k_records() -> None:
    table = people()
    release = unblur.anonymize(table, CONFIG)
    published = release.to_pandas()
    for name in ("age", "weight"):
        assert all(covers(label, value) for label, value in zip(published[name], table[name], strict=True))
    groups = Counter(zip(published["age"], published["weight"], strict=True))
    stars = groups.pop(("*", "*"), 0)
    assert stars == release.outliers
    assert min(groups.values()) >= 3
    assert groups == {release.labels(each): each.size for each in release.classes}


def test_other_columns_and_the_order_of_rows_are_untouched() -> None:
    table = people()
    published = unblur.anonymize(table, CONFIG).to_pandas()
    assert list(published.columns) == list(table.columns)
    assert published["code"].tolist() == table["code"].tolist()
    assert published["note"].tolist() == table["note"].tolist()


def test_a_file_gives_what_the_data_frame_gives(tmp_path: Path) -> None:
    table = people()
    expected = unblur.anonymize(table, CONFIG).to_pandas()
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_csv(tmp_path / "t.tsv", index=False, sep="\t")
    table.to_parquet(tmp_path / "t.parquet")
    table.to_excel(tmp_path / "t.xlsx", index=False)
    for name in ("t.csv", "t.tsv", "t.parquet", "t.xlsx"):
        published = unblur.anonymize(tmp_path / name, CONFIG).to_pandas()
        assert published[["age", "weight"]].to_numpy().tolist() == expected[["age", "weight"]].to_numpy().tolist(), name


def test_a_saved_csv_has_arx_s_dialect_and_the_input_s_separator(write: Write, tmp_path: Path) -> None:
    write("t.csv", 'code,age,weight,note\n007,5,31.5,"a,b"\n008,6,32,\n009,7,33,"x ""y"""\n010,71,99,z\n')
    unblur.anonymize(tmp_path / "t.csv", CONFIG).save(tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_bytes().decode() == (
        "code,age,weight,note\n"
        '007,"[0, 10[","[30.0, 40.0[","a,b"\n'
        '008,"[0, 10[","[30.0, 40.0[",\n'
        '009,"[0, 10[","[30.0, 40.0[","x ""y"""\n'
        "010,*,*,z\n"
    )


def test_without_a_csv_as_input_the_separator_is_a_semicolon(tmp_path: Path) -> None:
    unblur.anonymize(people(), CONFIG).save(tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text().startswith("code;age;weight;note\n")
    unblur.anonymize(people(), CONFIG).save(tmp_path / "r.tsv")
    assert (tmp_path / "r.tsv").read_text().startswith("code\tage\tweight\tnote\n")


def test_parquet_out_has_text_labels_and_untouched_types(tmp_path: Path) -> None:
    table = people().assign(seen=pd.Timestamp("2024-03-17"))
    unblur.anonymize(table, CONFIG).save(tmp_path / "r.parquet")
    schema = pq.read_schema(tmp_path / "r.parquet")
    assert schema.field("age").type == pa.string()
    assert pa.types.is_timestamp(schema.field("seen").type)


def test_the_config_beside_the_release_describes_it(tmp_path: Path) -> None:
    release = unblur.anonymize(people(), CONFIG)
    release.save(tmp_path / "r.csv")
    config = Config.read(tmp_path / "r.toml")
    assert config.mechanism is not None
    assert config.mechanism.name == "paper"
    assert config.made["recoding"] == "local"
    assert config.made["rows"] == 200
    assert config.made["suppressed"] == release.outliers
    assert [each.hierarchy for each in config.quasi_identifiers] == [
        each.hierarchy for each in release.config.quasi_identifiers
    ]


def test_global_recoding_applies_one_state_and_says_so(tmp_path: Path) -> None:
    release = unblur.anonymize(people(), CONFIG, recoding="global", suppression_limit=0.1)
    assert len({each.state for each in release.classes}) == 1
    assert release.outliers <= 20
    release.save(tmp_path / "r.csv")
    mechanism = Config.read(tmp_path / "r.toml").mechanism
    assert mechanism is not None
    assert mechanism.name == "iterative"


def test_the_trace_tells_every_decision() -> None:
    release = unblur.anonymize(people(), CONFIG)
    trace = release.trace()
    steps = trace["iterations"]
    assert trace["schema"] == "unblur/trace/1"
    assert [step["iteration"] for step in steps] == list(range(1, len(steps) + 1))
    assert [step["loss"] for step in steps] == sorted(step["loss"] for step in steps)
    left = trace["rows"]
    for step in steps:
        left -= sum(each["size"] for each in step["classes"])
        assert step["records_left"] == left
        assert step["c1"] == sum(step["state"])
    assert left == trace["suppressed"] == release.outliers
    json.dumps(trace, allow_nan=False)


def as_table(config_lattice: Any, records: list[tuple[int, ...]]) -> tuple[Config, int, pa.Table]:
    """Turn ranks of raw values into a table and a config."""
    attributes, columns = [], {}
    for i, tree in enumerate(config_lattice.hierarchies):
        attributes.append(QuasiIdentifier(f"q{i}", tree, config_lattice.finest[i]))
        ranks = [record[i] for record in records]
        if isinstance(tree, CategoryHierarchy):
            columns[f"q{i}"] = pa.array([tree.domain[rank] for rank in ranks])
        elif isinstance(tree, IntervalHierarchy):
            columns[f"q{i}"] = pa.array([str(tree.low + rank * tree.step) for rank in ranks])
    return Config(2, tuple(attributes)), len(records), pa.table(columns)


@pytest.mark.parametrize("seed", range(0, 120, 3))
def test_the_whole_way_through_the_engine_equals_the_literal_algorithms(seed: int) -> None:
    lattice, records, k = random_case(seed)
    config, _, table = as_table(lattice, records)
    release = unblur.anonymize(table, Config(k, config.quasi_identifiers))
    classes, remaining = LiteralRecoder(lattice, k).recode(records)
    assert [(s.state, {c.segment: c.size for c in s.classes}) for s in release.recoding.iterations] == classes
    assert release.outliers == len(remaining)


def test_some_of_these_tables_need_the_raw_values_to_break_a_tie() -> None:
    rivals = 0
    for seed in range(0, 120, 3):
        lattice, records, k = random_case(seed)
        config, _, table = as_table(lattice, records)
        release = unblur.anonymize(table, Config(k, config.quasi_identifiers))
        rivals += any(step.rivals for step in release.recoding.iterations)
    assert rivals >= 5


@pytest.mark.parametrize("kind", ["text", "float"])
def test_rounding_never_moves_a_value_to_another_cell(kind: str) -> None:
    config = {
        "k": 2,
        "finest_layer": 1,
        "quasi_identifiers": [{"name": "x", "interval": {"low": 0, "high": 1.6, "step": 0.1, "layers": 5}}],
    }
    values = [0.1 * i for i in range(16)] + [i / 10 for i in range(16)] + [0.7 + 0.1, 0.1 + 0.2]
    exact = [*range(16), *range(16), 8, 3]
    column = [repr(value) for value in values] if kind == "text" else values
    release = unblur.anonymize(pd.DataFrame({"x": column}), config)
    tree = release.config.quasi_identifiers[0].hierarchy
    assert release.to_pandas()["x"].tolist() == [tree.label(1, i) for i in exact]


def test_values_off_the_step_are_counted_in_one_warning() -> None:
    config = {"k": 2, "quasi_identifiers": [{"name": "x", "interval": {"low": 0, "high": 8, "step": 1, "layers": 2}}]}
    with pytest.warns(UnblurWarning, match=r"column 'x': 2 values are not on the step of 1") as caught:
        release = unblur.anonymize(pd.DataFrame({"x": ["3.9999", "4", "1.5", "2"]}), config)
    assert len(ours(caught)) == 1
    assert release.to_pandas()["x"].tolist() == ["[0, 4[", "*", "[0, 4[", "[0, 4["]


def test_raw_values_are_published_where_layer_0_is_allowed() -> None:
    config = {"k": 2, "finest_layer": 0, "quasi_identifiers": [CONFIG["quasi_identifiers"][1]]}  # type: ignore[index]
    published = unblur.anonymize(pd.DataFrame({"weight": ["70.50", "70.5", "31", "33"]}), config).to_pandas()
    assert published["weight"].tolist() == ["70.5", "70.5", "[30.0, 40.0[", "[30.0, 40.0["]


def test_categories_match_by_text_or_number(write: Write) -> None:
    path = write("h.csv", "1;low;*\n2;low;*\n3;high;*\n")
    config = {"k": 2, "quasi_identifiers": [{"name": "x", "hierarchy": str(path)}]}
    for column in (["1", "1", "2", "3"], [1, 1, 2, 3], [1.0, 1.0, 2.0, 3.0]):
        published = unblur.anonymize(pd.DataFrame({"x": column}), config).to_pandas()
        assert published["x"].tolist() == ["1", "1", "*", "*"]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["5", "6", "SECRET"], "column 'age': row 3: text where a number is needed"),
        (["5", "1,5", "7"], "column 'age': row 2: text where a number is needed"),
        (["5", "", "7"], "column 'age': row 2: a value is missing"),
        (["5", None, "7"], "column 'age': row 2: a value is missing"),
        (["NaN", "6", "7"], "column 'age': row 1: a value is missing"),
        (["5", " na ", "7"], "column 'age': row 2: a value is missing"),
        ([5.0, float("nan"), 7.0], "column 'age': row 2: a value is missing"),
        (["5", "80", "81"], r"column 'age': row 2: a value outside \[0, 80\) \(2 such rows\)"),
        (["5", "inf", "7"], r"column 'age': row 2: a value outside"),
        (["5", "1e300", "-1"], r"column 'age': row 2: a value outside"),
        ([True, False, True], "column 'age' holds boolean; an interval needs numbers"),
    ],
)
def test_rows_without_a_cell_are_refused_by_column_and_row(column: list[Any], message: str) -> None:
    config = {"k": 2, "quasi_identifiers": [CONFIG["quasi_identifiers"][0]]}  # type: ignore[index]
    table = pa.table({"age": column})
    with pytest.raises(TableError, match=message) as caught:
        unblur.anonymize(table, config)
    assert "SECRET" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_label_in_no_hierarchy_is_refused_and_an_empty_one_is_missing(write: Write) -> None:
    config = {"k": 2, "quasi_identifiers": [{"name": "sex", "hierarchy": str(write("h.csv", "m;*\nf;*\n"))}]}
    with pytest.raises(TableError, match=r"column 'sex': row 2: a value that the hierarchy does not list") as caught:
        unblur.anonymize(pd.DataFrame({"sex": ["m", "SECRET", "f"]}), config)
    assert "SECRET" not in str(caught.value)
    with pytest.raises(TableError, match="column 'sex': row 3: a value is missing"):
        unblur.anonymize(pd.DataFrame({"sex": ["m", "f", " "]}), config)


def test_rows_without_a_cell_can_be_suppressed_and_are_counted(tmp_path: Path) -> None:
    table = pd.DataFrame({"age": ["5", "6", "7", "", "text", "99"]})
    config = {"k": 3, "quasi_identifiers": [CONFIG["quasi_identifiers"][0]]}  # type: ignore[index]
    with pytest.warns(UnblurWarning) as caught:
        release = unblur.anonymize(table, config, missing="suppress")
    assert len(ours(caught)) == 3
    assert release.to_pandas()["age"].tolist() == ["[0, 10[", "[0, 10[", "[0, 10[", "*", "*", "*"]
    assert release.outliers == 3
    release.save(tmp_path / "r.csv")
    assert Config.read(tmp_path / "r.toml").made["missing"] == 3


def test_more_k_than_records_suppresses_everything_with_a_warning() -> None:
    with pytest.warns(UnblurWarning) as caught:
        release = unblur.anonymize(people(), CONFIG | {"k": 500})
    assert ours(caught) == [
        "k is 500, but there are only 200 records with all values",
        "no group reaches k: everything is suppressed",
    ]
    assert set(release.to_pandas()["age"]) == {"*"}
    assert release.classes == ()


@pytest.mark.parametrize("name", ["arx", "greedy", "iterative", "unknown"])
def test_only_mechanism_paper_makes_releases(name: str) -> None:
    with pytest.raises(ConfigError, match=f"mechanism {name}"):
        unblur.anonymize(people(), CONFIG | {"mechanism": name})


def test_a_header_without_rows_is_refused(write: Write) -> None:
    with pytest.raises(TableError, match="no rows, only a header"):
        unblur.anonymize(write("t.csv", "age;weight\n"), CONFIG)


def test_a_column_that_is_not_there_is_refused_with_a_suggestion() -> None:
    with pytest.raises(TableError, match="there is no column 'weight'; did you mean 'Weight'"):
        unblur.anonymize(people().rename(columns={"weight": "Weight"}), CONFIG)


def test_a_lattice_too_large_is_refused_before_the_table_is_opened() -> None:
    interval = {"low": 0, "high": 64, "layers": 7}
    config = {"k": 2, "quasi_identifiers": [{"name": f"q{i}", "interval": interval} for i in range(11)]}
    with pytest.raises(ConfigError, match="1,977,326,743 states"):
        unblur.anonymize("no-such-table.csv", config)


@pytest.mark.parametrize("target", ["t.csv", "link.csv", "c.toml", "h.csv"])
def test_an_output_that_is_an_input_is_refused(write: Write, tmp_path: Path, target: str) -> None:
    write("t.csv", "age;sex\n" + "5;m\n" * 5)
    write("h.csv", "m;*\nf;*\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "t.csv")
    config = write("c.toml", "k = 2\n[[quasi_identifiers]]\nname = 'sex'\nhierarchy = 'h.csv'\n")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    out = tmp_path / target if target != "c.toml" else tmp_path / "c.csv"
    from unblur.cli.anonymize import run

    with pytest.raises(OutputError, match="this is an input"):
        run(str(tmp_path / "t.csv"), config=config, out=out)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("none.csv", "none.csv: no such file"),
        ("none-*.csv", "no file matches this pattern"),
        ("t.csv", "pyspark://…#parquet:r: only rows that Spark has go there"),
    ],
)
def test_what_cannot_go_to_spark_is_told_before_it_starts(
    write: Write, monkeypatch: pytest.MonkeyPatch, table: str, message: str
) -> None:
    from unblur.cli.anonymize import run

    config = write(
        "c.toml", "k = 2\n[[quasi_identifiers]]\nname = 'age'\ninterval = { low = 0, high = 8, layers = 2 }\n"
    )
    monkeypatch.setattr("unblur.sparkfolder.attach", lambda address: pytest.fail("Spark was started"))
    path = write("t.csv", "age\n5\n5\n").with_name(table)
    with pytest.raises(UnblurError, match=re.escape(message)):
        run(str(path), config=config, out="pyspark://local[1]#parquet:r")


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("r.xlsx", "choose one of these endings"),
        ("r", "choose one of these endings"),
        ("none/r.csv", "the folder .*none does not exist"),
        ("folder.csv", "a folder, not a file"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused(tmp_path: Path, out: str, message: str) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(OutputError, match=message):
        unblur.anonymize(people(), CONFIG).save(tmp_path / out)


def test_an_unknown_column_to_order_by_is_refused() -> None:
    with pytest.raises(TableError, match="there is no column 'none'"):
        unblur.anonymize(people(), CONFIG, order_by="none")


def test_ordering_by_a_quasi_identifier_is_refused_because_it_would_publish_the_order_of_its_values() -> None:
    with pytest.raises(ConfigError, match="'age' is a quasi-identifier: the order"):
        unblur.anonymize(people(), CONFIG, order_by="age")


def test_an_expression_in_memory_is_anonymized() -> None:
    release = unblur.anonymize(ibis.memtable(pa.Table.from_pandas(people())), CONFIG, order_by="code")
    assert release.to_pandas()["age"].tolist() == unblur.anonymize(people(), CONFIG).to_pandas()["age"].tolist()


def test_order_by_orders_the_rows() -> None:
    published = unblur.anonymize(people(), CONFIG, order_by="note").to_pandas()
    assert published["note"].tolist() == sorted(people()["note"])


LIMITED = """
import resource, sys, unblur
release = unblur.anonymize(sys.argv[1], sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    release.save(sys.argv[3])
except unblur.UnblurError as error:
    print(error)
"""


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_full_disk_leaves_no_half_file(tmp_path: Path, ending: str) -> None:
    people(60_000).to_parquet(tmp_path / "t.parquet")
    (tmp_path / "c.toml").write_text(Config.from_dict(_exact(CONFIG)).to_toml(tmp_path))
    out = tmp_path / "out"
    out.mkdir()
    (out / f"r.{ending}").write_text("the release of last year")
    command: list[str | Path] = [
        sys.executable,
        "-c",
        LIMITED,
        tmp_path / "t.parquet",
        tmp_path / "c.toml",
        out / f"r.{ending}",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"r.{ending}: no space left" in done.stdout
    assert [path.name for path in out.iterdir()] == [f"r.{ending}"]
    assert (out / f"r.{ending}").read_text() == "the release of last year"


def _exact(entries: Any) -> Any:
    from unblur.config import _exact

    return _exact(entries)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_million_rows_keep_their_order_on_two_threads(tmp_path: Path, ending: str) -> None:
    rows = 1_200_000
    source = tmp_path / f"t.{ending}"
    duckdb.sql(
        f"COPY (SELECT i AS id, (hash(i) % 80) AS age, 30 + (hash(i + 7) % 160) / 2 AS weight, 'n' || i AS note "
        f"FROM range({rows}) t(i)) TO '{source}'"
    )
    unblur.anonymize(source, CONFIG | {"k": 50}, threads=2).save(tmp_path / "r.parquet")
    query = f"SELECT count(*), count(*) FILTER (id::BIGINT = file_row_number) FROM read_parquet('{tmp_path}/r.parquet')"
    out = duckdb.execute(query).fetchall()
    assert out == [(rows, rows)]


def test_single_precision_is_read_as_it_is_written() -> None:
    config = {
        "k": 2,
        "finest_layer": 0,
        "quasi_identifiers": [{"name": "x", "interval": {"low": 0, "high": 1.6, "step": 0.1, "layers": 2}}],
    }
    table = pa.table({"x": pa.array([0.7, 0.7, 1.4, 1.4], pa.float32())})
    assert unblur.anonymize(table, config).to_pandas()["x"].tolist() == ["0.7", "0.7", "1.4", "1.4"]


def test_nan_in_a_parquet_file_is_a_missing_value(tmp_path: Path) -> None:
    config = {"k": 2, "quasi_identifiers": [CONFIG["quasi_identifiers"][0]]}  # type: ignore[index]
    pq.write_table(pa.table({"age": [1.0] * 39 + [float("nan")]}), tmp_path / "t.parquet")
    with pytest.raises(TableError, match="column 'age': row 40: a value is missing"):
        unblur.anonymize(tmp_path / "t.parquet", config)


def test_a_hierarchy_that_lists_a_number_twice_cannot_double_rows(write: Write) -> None:
    config = {"k": 2, "quasi_identifiers": [{"name": "x", "hierarchy": str(write("h.csv", "1;g;*\n1.0;g;*\n"))}]}
    with pytest.raises(TableError, match="lists the same number twice"):
        unblur.anonymize(pa.table({"x": [1.0, 1.0]}), config)
    assert len(unblur.anonymize(pa.table({"x": ["1", "1"]}), config).to_arrow()) == 2


def test_an_expression_that_gives_other_rows_the_second_time_is_refused(tmp_path: Path) -> None:
    rows = ibis.memtable(pa.table({"age": list(range(80)) * 20, "weight": [50] * 1600}))
    shuffled = rows.order_by(ibis.random()).limit(60)
    release = unblur.anonymize(shuffled, CONFIG)
    with pytest.raises(TableError, match="the rows changed while they were read"):
        release.to_arrow()
    with pytest.raises(TableError, match="the rows changed while they were read"):
        release.save(tmp_path / "r.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_release_is_never_saved_over_its_table(tmp_path: Path) -> None:
    people().to_csv(tmp_path / "t.csv", index=False)
    before = (tmp_path / "t.csv").read_bytes()
    release = unblur.anonymize(tmp_path / "t.csv", CONFIG)
    with pytest.raises(OutputError, match="this is an input"):
        release.save(tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_bytes() == before


def test_a_config_of_somebody_else_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("precious = true\n[made]\nby = 'me'\n")
    release = unblur.anonymize(people(), CONFIG)
    with pytest.raises(OutputError, match="was not written by unblur"):
        release.save(tmp_path / "mine.csv")
    release.save(tmp_path / "r.csv")
    release.save(tmp_path / "r.csv")  # its own may be replaced


def test_permissions_and_links_are_kept_and_the_trace_is_private(tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "real.csv").chmod(0o640)
    (tmp_path / "r.csv").symlink_to("real.csv")
    (tmp_path / "trace.json").write_text("old")
    (tmp_path / "trace.json").chmod(0o644)
    unblur.anonymize(people(), CONFIG).save(tmp_path / "r.csv", trace=tmp_path / "trace.json")
    assert (tmp_path / "r.csv").is_symlink()
    assert oct((tmp_path / "real.csv").stat().st_mode)[-3:] == "640"
    assert oct((tmp_path / "trace.json").stat().st_mode)[-3:] == "600"
    assert (tmp_path / "real.csv").read_text().startswith("code;")


def test_a_failing_rename_leaves_everything_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = unblur.anonymize(people(), CONFIG)
    release.save(tmp_path / "r.csv")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    replace = os.replace

    def fail_for_configs(source: Path, target: Path) -> None:
        if target.suffix == ".toml":
            raise OSError(5, "Input/output error", str(source), None, str(target))
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail_for_configs)
    with pytest.raises(OutputError, match=r"r\.toml: Input/output error"):
        unblur.anonymize(people(seed=2), CONFIG).save(tmp_path / "r.csv")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(("option", "value"), [("recoding", "Local"), ("missing", "ignore")])
def test_unknown_choices_are_refused(option: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"{option} must be"):
        unblur.anonymize(people(), CONFIG, **{option: value})  # type: ignore[arg-type]


def test_columns_may_be_called_anything(tmp_path: Path) -> None:
    names = {"note": "self", "code": 'rows "x".\\ é'}
    release = unblur.anonymize(people().rename(columns=names).assign(first=1, last=2), CONFIG)
    release.save(tmp_path / "r.csv")
    assert list(release.to_pandas().columns) == ['rows "x".\\ é', "age", "weight", "self", "first", "last"]


def test_a_tie_under_global_recoding_is_decided_without_fetching_values() -> None:
    interval = {"low": 0, "high": 8, "layers": 3}
    config = {"k": 2, "quasi_identifiers": [{"name": name, "interval": interval} for name in ("a", "b")]}
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"a": rng.integers(0, 8, 12), "b": rng.integers(0, 8, 12)})
    release = unblur.anonymize(table, config, recoding="global", suppression_limit=0.2)
    assert release.recoding.iterations[0].rival_count == len(release.recoding.iterations[0].rivals)
    assert all(each.size >= 2 for each in release.classes)


def test_a_release_shows_itself_in_a_line() -> None:
    assert repr(unblur.anonymize(people(), CONFIG)).startswith("<release of 200 rows: k = 3, ")


def test_rows_without_an_order_of_their_own_are_shuffled() -> None:
    """An engine may leave rows in the order of the raw values; so may an ordered expression."""
    table = pa.table({"age": list(range(80)) * 3, "weight": [50] * 240, "copy": list(range(80)) * 3})
    ordered = ibis.memtable(table).order_by("age")
    copies = unblur.anonymize(ordered, CONFIG).to_pandas()["copy"].tolist()
    assert sorted(copies) == sorted(table["copy"].to_pylist())
    assert sum(a > b for a, b in pairwise(copies)) > 80


@pytest.mark.parametrize("config", [None, 5, b"c.toml"])
def test_what_is_no_config_is_refused(config: Any) -> None:
    with pytest.raises(ConfigError, match="a config is a path, a dictionary or a Config"):
        unblur.anonymize(people(), config)


def test_a_parquet_file_that_is_replaced_meanwhile_is_refused(tmp_path: Path) -> None:
    people().to_parquet(tmp_path / "t.parquet")
    release = unblur.anonymize(tmp_path / "t.parquet", CONFIG)
    people(seed=2).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(TableError, match="the rows changed while they were read"):
        release.save(tmp_path / "r.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


def test_packed_parquet_and_parquet_on_standard_input_are_anonymized(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people().to_parquet(tmp_path / "t.parquet")
    expected = unblur.anonymize(tmp_path / "t.parquet", CONFIG).to_arrow()
    packed = gzip.compress((tmp_path / "t.parquet").read_bytes())
    (tmp_path / "t.gz").write_bytes(packed)
    assert unblur.anonymize(tmp_path / "t.gz", CONFIG).to_arrow() == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((tmp_path / "t.parquet").read_bytes())))
    assert unblur.anonymize("-", CONFIG).to_arrow() == expected


def test_a_config_beside_a_linked_release_finds_its_hierarchies(write: Write, tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "deep").mkdir(parents=True)
    (tmp_path / "elsewhere" / "deep" / "real.csv").touch()
    (tmp_path / "r.csv").symlink_to(tmp_path / "elsewhere" / "deep" / "real.csv")
    config = {"k": 2, "quasi_identifiers": [{"name": "x", "hierarchy": str(write("h.csv", "a;*\nb;*\n"))}]}
    unblur.anonymize(pa.table({"x": ["a", "a", "b", "b"]}), config).save(tmp_path / "r.csv")
    assert Config.read(tmp_path / "r.toml").quasi_identifiers[0].hierarchy.values == 2
