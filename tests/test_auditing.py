from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import unblur
from tests.plausible import release_of
from tests.strategies import Record, examples, random_case, recoding_cases
from unblur.audits import Audit
from unblur.config import Config, Mechanism, QuasiIdentifier
from unblur.errors import ConfigError, OutputError, TableError, UnblurWarning
from unblur.hierarchy import from_rows, halves
from unblur.lattice import Lattice
from unblur.release import EquivalenceClass, Release

SCHEMA = json.loads((files("unblur.schemas") / "audit-1.json").read_text())
CONFIG: dict[str, Any] = {
    "k": 4,
    "quasi_identifiers": [
        {"name": "weight", "interval": {"low": 30, "high": 190, "step": 0.5, "layers": 4}},
        {"name": "age", "interval": {"cuts": [0, 18, 40, 65, 120], "fanouts": [2]}},
    ],
}


def patients(rows: int = 120, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    weight = np.clip(np.round(rng.normal(80, 25, rows) * 2) / 2, 30, 189.5)
    return pd.DataFrame({"id": np.arange(rows), "weight": weight, "age": rng.integers(0, 100, rows)})


def validated(audit: Audit) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(audit.to_json())
    jsonschema.validate(found, SCHEMA)
    return found


def wide_release() -> Release:
    """A class of one cell, and two whose enumeration would take for ever."""
    tree = halves(Decimal(0), Decimal(3200), layers=6)
    attributes = tuple(QuasiIdentifier(name, tree, 1) for name in "ab")
    classes = (
        EquivalenceClass((1, 1), (0, 0), 9),
        EquivalenceClass((5, 5), (0, 0), 9),
        EquivalenceClass((5, 5), (1, 1), 9),
    )
    return Release(Config(9, attributes, Mechanism("paper")), classes, 0)


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_engines_agree_in_every_number_of_an_audit() -> None:
    compound = 0
    for seed in range(examples(10)):
        release = release_of(*random_case(seed))
        for records in ("any", "distinct"):
            exact = unblur.audit(release, mechanism="paper", records=records)
            slow = unblur.audit(release, mechanism="paper", records=records, engine="cpsat", budget=20)
            for one, other in zip(exact.everything, slow.everything, strict=True):
                assert other.refinement is not None
                if other.refinement.counted == "exact":
                    assert one.published == other.published
                    assert one.refinement is not None
                    assert one.refinement.plausible == other.refinement.plausible
                    assert one.refinement.combinations == other.refinement.combinations
                    compound += not one.basic
    assert compound > 40


@given(recoding_cases(), st.sampled_from(["any", "distinct"]))
@settings(max_examples=examples(60), deadline=None)
def test_every_audit_is_valid_and_the_same_twice(case: tuple[Lattice, list[Record], int], records: Any) -> None:
    release = release_of(*case)
    audit = unblur.audit(release, mechanism="paper", records=records, ablation=True)
    validated(audit)
    assert audit.to_json() == unblur.audit(release, mechanism="paper", records=records, ablation=True).to_json()
    if records == "any":
        assert audit.fits


def test_the_json_has_the_fields_that_others_rely_on() -> None:
    release = unblur.anonymize(patients(), CONFIG)
    found = validated(unblur.audit(release, records="distinct"))
    assert found["schema"] == "unblur/audit/1"
    assert found["release"]["rows"] == 120
    assert found["release"]["quasi_identifiers"][0] == {
        "name": "weight",
        "values": 320,
        "leaves": 8,
        "layers": 4,
        "finest_layer": 1,
    }
    assert found["mechanism"] == {"name": "paper"}
    assert found["settings"] | {"version": ""} == {
        "attack": "class",
        "engine": "exact",
        "order": "sound",
        "records": "distinct",
        "version": "",
    }
    assert found["fit"] == {"ok": True, "problems": []}
    assert [each["id"] for each in found["classes"]] == list(range(1, len(release.classes) + 1))
    for each in found["classes"]:
        assert int(each["lr_solutions"]) >= int(each["cra_solutions"]) >= 1
        assert each["ratio"] == pytest.approx(int(each["lr_solutions"]) / int(each["cra_solutions"]))
    assert found["joint"] is found["singling_out"] is found["ablation"] is None
    assert set(found["summary"]["ratio"]) == {"mean", "median", "max"} == set(found["summary"]["compound"]["ratio"])


def test_the_classes_come_as_data_frames() -> None:
    audit = unblur.audit(unblur.anonymize(patients(), CONFIG))
    frame = audit.classes.to_pandas()
    assert list(frame["id"]) == list(range(1, len(audit.classes) + 1))
    assert list(frame.columns) == list(audit.classes.to_rows()[0])
    assert audit.classes.to_polars()["lr_solutions"].to_list() == list(frame["lr_solutions"])
    assert audit.classes.to_arrow().num_rows == len(audit.classes[:]) == len(audit.classes)
    assert audit.classes[0].number == 1


def test_several_processes_find_what_one_finds() -> None:
    release = unblur.anonymize(patients(300), CONFIG)
    assert unblur.audit(release, jobs=2).to_json() == unblur.audit(release).to_json()


def test_the_truth_is_feasible_and_singles_out_as_a_person_would_count() -> None:
    singled_out = 0
    for seed in range(examples(8)):
        table = patients(seed=seed)
        release = unblur.anonymize(table, CONFIG)
        audit = unblur.audit(release, truth=table)
        found = validated(audit)
        assert all(each["truth_feasible"] for each in found["classes"])
        if found["outliers"]:
            assert found["outliers"]["truth_feasible"]
        cells = pd.DataFrame(
            {"weight": (table["weight"] - 30) // 20, "age": np.searchsorted([18, 40, 65], table["age"], "right")}
        )
        published = release.to_pandas()
        cells["labels"] = list(zip(published["weight"], published["age"], strict=True))
        counts = cells.groupby(["labels", "weight", "age"]).size()
        for finding in audit.classes:
            of_class = counts[finding.labels] if finding.labels in counts.index.get_level_values(0) else None
            assert of_class is not None
            assert finding.truth is not None
            assert finding.truth.singles == finding.truth.singles_in_table == int((of_class == 1).sum())
        outcome = found["singling_out"]
        compound = [each for each in audit.classes if not each.basic]
        assert outcome["classes"] == len(compound) == outcome["failed"] + outcome["one"] + outcome["many"]
        assert outcome["one"] == sum(each.truth.singles == 1 for each in compound if each.truth)
        singled_out += outcome["one"] + outcome["many"]
    assert singled_out > 0


def test_at_layer_0_a_cell_may_be_split_between_classes_and_the_whole_table_decides() -> None:
    """Two of three equal records... a leaf taken apart: a class holds one of its cells' records, another class more."""
    config = CONFIG | {"finest_layer": 0, "k": 3}
    found = 0
    for seed in range(6):
        table = patients(seed=seed)
        audit = unblur.audit(unblur.anonymize(table, config), truth=table)
        for each in audit.everything:
            assert each.truth is not None
            assert each.truth.feasible
            assert each.truth.singles_in_table <= each.truth.singles
            found += each.truth.singles
    assert found > 0


def test_rows_can_be_matched_by_an_id() -> None:
    table = patients()
    release = unblur.anonymize(table, CONFIG)
    shuffled = table.sample(frac=1, random_state=3)
    by_id = unblur.audit(release, truth=shuffled, id="id")
    assert by_id.classes.to_rows() == unblur.audit(release, truth=table).classes.to_rows()
    with pytest.raises(TableError, match="does not cover the raw value"):
        unblur.audit(release, truth=shuffled)


def test_a_release_of_classes_alone_has_no_rows_to_match() -> None:
    with pytest.raises(ConfigError, match="only the classes of this release are known"):
        unblur.audit(wide_release(), truth=patients())


def test_a_budget_ends_an_enumeration_and_says_so() -> None:
    audit = unblur.audit(wide_release(), engine="cpsat", budget=1)
    found = validated(audit)
    assert [each["counted"] for each in found["classes"]] == ["exact", "at_least", "at_least"]
    assert "a lower bound, since" in found["notes"][0]
    exact = unblur.audit(wide_release())
    for one, other in zip(audit.classes, exact.classes, strict=True):
        assert one.refinement is not None
        assert other.refinement is not None
        assert one.refinement.combinations.log2 <= other.refinement.combinations.log2
    assert audit.fits, "a search that found nothing in time proves nothing"


def test_a_budget_that_is_used_up_leaves_a_partial_result_that_says_what_is_missing() -> None:
    audit = unblur.audit(unblur.anonymize(patients(), CONFIG), budget=1e-9)
    found = validated(audit)
    assert found["summary"]["not_done"] >= len(audit.classes) - 1 + bool(audit.outliers)
    assert found["classes"][-1]["counted"] == "not_done"
    assert found["classes"][-1]["lr_solutions"] is not None
    assert "not analysed, since the budget of 1e-09 s was used up" in found["notes"][0]


def test_an_interrupt_can_keep_what_is_there() -> None:
    def stop(done: int, of: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    release = unblur.anonymize(patients(), CONFIG)
    with pytest.raises(KeyboardInterrupt):
        unblur.audit(release, progress=stop)
    audit = unblur.audit(release, progress=stop, on_interrupt="keep")
    assert audit.interrupted
    assert [each.refinement is not None for each in audit.classes[:5]] == [True, True, True, False, False]
    assert "it was interrupted" in validated(audit)["notes"][0]


def test_without_a_mechanism_only_what_holds_for_every_local_recoding_is_used() -> None:
    release = release_of(*random_case(3))
    assert release.config.mechanism is None
    audit = unblur.audit(release)
    found = validated(audit)
    assert found["mechanism"] == {"name": "iterative"}
    by_name = {each["mechanism"]["name"]: each for each in found["alternatives"]}
    assert set(by_name) == {"paper", "arx", "greedy", "iterative"}
    assert by_name["paper"]["possible"]
    assert by_name["paper"]["bits"] >= by_name["greedy"]["bits"] >= by_name["iterative"]["bits"]
    total = sum(each.bits or 0 for each in audit.everything)
    assert by_name["iterative"]["bits"] == pytest.approx(total)
    assert unblur.audit(release, mechanism="iterative").alternatives == ()


def test_the_settings_of_an_unknown_run_of_arx_are_narrowed_down() -> None:
    """A run with 100 iterations, each of which had to release 8 records, contradicts the published algorithm."""
    from tests.test_arx_golden import GOLDEN, config_of

    release = unblur.read_release(GOLDEN / "g21_gui_default" / "output.csv", config_of("g21_gui_default"))
    audit = unblur.audit(replace(release, config=replace(release.config, mechanism=None)))
    possible = {each.name: each.problem is None for each in audit.alternatives}
    assert possible["ARX, local transformation with 100 iterations (its GUI's default)"]
    assert possible["any local recoding, step by step"]
    assert not possible["the published algorithm"]


def test_nothing_is_claimed_about_outliers_that_were_suppressed_for_missing_values(tmp_path: Path) -> None:
    table = patients()
    table.loc[3, "weight"] = None
    with pytest.warns(UnblurWarning, match="a value is missing"):
        release = unblur.anonymize(table, CONFIG, missing="suppress")
    audit = unblur.audit(release, truth=table)
    found = validated(audit)
    assert audit.fits
    assert found["outliers"]["truth_feasible"] is None
    assert found["outliers"]["counted"] == "not_done"
    assert "nothing is claimed about the outliers: 1 of them" in found["notes"][0]
    assert found["summary"]["not_done"] == 0, "nothing is left to be done"
    release.save(tmp_path / "r.csv")
    again = unblur.audit(unblur.read_release(tmp_path / "r.csv", tmp_path / "r.toml"))
    assert again.notes == audit.notes


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"order": "none"}, "order must be sound or paper"),
        ({"engine": "z3"}, "engine must be exact or cpsat"),
        ({"records": "some"}, "records must be any or distinct"),
        ({"mechanism": "magic"}, "mechanism must be one of"),
        ({"jobs": 0}, "jobs must be 1 or more"),
        ({"budget": 0}, "a budget more than 0"),
        ({"id": "id"}, "give truth, too"),
    ],
)
def test_misuse_is_told(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        unblur.audit(wide_release(), **options)


def test_an_audit_is_saved_as_json_and_over_no_input(tmp_path: Path) -> None:
    unblur.anonymize(patients(), CONFIG).save(tmp_path / "r.csv")
    audit = unblur.audit(unblur.read_release(tmp_path / "r.csv", tmp_path / "r.toml"))
    audit.save(tmp_path / "a.json")
    assert (tmp_path / "a.json").read_text() == audit.to_json()
    assert len(json.loads(audit.to_json())["release"]["sha256"]) == 64
    with pytest.raises(OutputError, match=r"written as \.html, \.md, \.json"):
        audit.save(tmp_path / "a.txt")
    with pytest.raises(OutputError, match="JSON has every class in it"):
        audit.save(tmp_path / "a.json", public=True)
    audit.save(tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text() == audit.to_html()
    audit.save(tmp_path / "a.md", public=True)
    modes = {name: (tmp_path / name).stat().st_mode & 0o777 for name in ("a.json", "a.html", "a.md", "r.csv")}
    assert modes["a.json"] == modes["a.html"] == 0o600 and modes["a.md"] == modes["r.csv"]
    assert (tmp_path / "a.md").read_text() == audit.to_markdown(public=True) != audit.to_markdown()
    assert "<script" not in audit._repr_html_()
    (tmp_path / "r.json").symlink_to(tmp_path / "r.toml")
    with pytest.raises(OutputError, match="this is an input"):
        audit.save(tmp_path / "r.json")


def test_a_huge_class_is_told_by_logarithms_in_json() -> None:
    tree = halves(Decimal(0), Decimal(4000), layers=3)
    release = Release(
        Config(5, (QuasiIdentifier("a", tree, 1),), Mechanism("paper")), (EquivalenceClass((1,), (0,), 50_000),), 0
    )
    (found,) = validated(unblur.audit(release))["classes"]
    assert found["lr_solutions"] is found["cra_solutions"] is None
    assert found["lr_log10"] == found["cra_log10"] == pytest.approx(150_000)
    assert (found["ratio"], found["bits"], found["combinations"]) == (1, 0, "1")


def test_a_class_on_a_layer_of_one_node_is_no_outlier(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("a;g;*\nb;g;*\n")
    config = {"k": 2, "quasi_identifiers": [{"name": "x", "hierarchy": str(tmp_path / "h.csv")}]}
    table = pd.DataFrame({"x": ["a", "b"]})
    unblur.anonymize(table, config).save(tmp_path / "r.csv")
    release = unblur.read_release(tmp_path / "r.csv", tmp_path / "r.toml")
    assert (len(release.classes), release.outliers) == (1, 0)
    assert unblur.audit(release, truth=table).fits


def test_a_label_of_two_different_nodes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("other;other;*\nmisc;other;*\nx;xy;*\ny;xy;*\n")
    config = {"k": 3, "quasi_identifiers": [{"name": "q", "hierarchy": str(tmp_path / "h.csv")}]}
    (tmp_path / "r.csv").write_text("q\n" + "other\n" * 4 + "x\n" * 3)
    with pytest.raises(TableError, match="two different nodes"):
        unblur.read_release(tmp_path / "r.csv", config)


def test_outliers_beside_thousands_of_single_values_are_measured() -> None:
    values = [f"z{n:04}" for n in range(2500)]
    tree = from_rows([[value, "*"] for value in values])
    classes = tuple(EquivalenceClass((0,), (rank,), 5) for rank in range(0, 2500, 2))
    release = Release(Config(5, (QuasiIdentifier("z", tree, 0),), Mechanism("paper")), classes, 2)
    outliers = unblur.audit(release).outliers
    assert outliers is not None
    assert outliers.refinement is not None
    assert outliers.refinement.free_cells == 1250


def test_a_truth_that_disproves_the_mechanism_is_a_misfit() -> None:
    interval = {"low": 0, "high": 8, "layers": 3}
    config = {"k": 2, "mechanism": "paper", "quasi_identifiers": [{"name": "q", "interval": interval}]}
    release = unblur.read_release(pd.DataFrame({"q": ["[0, 4[", "[0, 4["]}), config)
    assert unblur.audit(release).fits
    (problem,) = unblur.audit(release, truth=pd.DataFrame({"q": [0, 1]})).problems
    assert problem.startswith("the raw table disproves it")


def test_a_budget_ends_also_inside_one_class() -> None:
    tree = from_rows([[f"{n}", f"g{n // 9}", "*"] for n in range(81)])
    attributes = tuple(QuasiIdentifier(name, tree, 1) for name in "abc")
    release = Release(Config(60, attributes, Mechanism("paper")), (EquivalenceClass((2, 2, 1), (0, 0, 0), 110),), 0)
    audit = unblur.audit(release, budget=0.05)
    assert audit.summary.not_done == 1
    assert validated(audit)["notes"] == ["not analysed, since the budget of 0.05 s was used up: 1 of 1 classes"]


def test_numbers_that_json_cannot_hold_exactly_are_left_out() -> None:
    tree = halves(Decimal(0), Decimal(2**12), layers=11)
    attributes = tuple(QuasiIdentifier(name, tree, 1) for name in "abcdef")
    release = Release(Config(5, attributes, Mechanism("paper")), (), 7)
    audit = unblur.audit(release)
    assert audit.outliers is not None
    assert audit.outliers.cells == 2**60
    assert validated(audit)["outliers"]["cells"] is None


def test_millions_of_raw_values_are_not_listed() -> None:
    tree = halves(Decimal(0), Decimal(2**40), layers=4)
    config = Config(5, (QuasiIdentifier("a", tree, 0), QuasiIdentifier("b", tree, 0)), Mechanism("greedy"))
    classes = (EquivalenceClass((0, 0), (2**39, 17), 6), EquivalenceClass((2, 1), (1, 0), 5))
    found = validated(unblur.audit(Release(config, classes, 2)))
    assert found["classes"][0]["lr_solutions"] == "1"
    assert found["classes"][1]["cells"] == 2


def test_the_ratio_of_the_outliers_counts_where_a_gate_asks_for_the_largest() -> None:
    tree = halves(Decimal(0), Decimal(8), layers=2)
    classes = (EquivalenceClass((1,), (0,), 4),)
    audit = unblur.audit(Release(Config(4, (QuasiIdentifier("a", tree, 1),), Mechanism("paper")), classes, 2))
    assert audit.summary.over_all.largest == 1
    assert audit.summary.max_ratio == 64 / 16


@pytest.mark.parametrize(("seed", "n", "k", "iterations"), [(16, 103, 4, 17), (119, 94, 5, 15), (198, 92, 5, 18)])
def test_suppressed_rows_that_were_left_out_still_count_for_what_arx_required(
    seed: int, n: int, k: int, iterations: int
) -> None:
    """Fewer rows mean a smaller requirement, which would exclude the truth."""
    intervals = {"a": {"low": 0, "high": 64, "layers": 4}, "b": {"low": 0, "high": 32, "layers": 3}}
    config = {
        "k": k,
        "mechanism": {"name": "arx", "iterations": iterations},
        "quasi_identifiers": [{"name": name, "interval": interval} for name, interval in intervals.items()],
    }
    rng = np.random.default_rng(seed)
    assert [int(rng.integers(*ends)) for ends in ((60, 140), (3, 6), (8, 20))] == [n, k, iterations]
    table = pd.DataFrame({"id": range(n), "a": rng.integers(0, 64, n), "b": rng.integers(0, 32, n)})
    with unblur.anonymize(table, config) as made:
        rows = made.to_pandas()
    kept = rows[~(rows["a"].isin(["*", "[0, 64["]) & rows["b"].isin(["*", "[0, 32["]))]
    truth = table[table["id"].isin(kept["id"])]
    told = unblur.read_release(kept, made.config)
    assert told.left_out == made.outliers > 0
    assert unblur.audit(told, truth=truth, id="id").fits
    untold = unblur.audit(unblur.read_release(kept, replace(made.config, made={})), truth=truth, id="id")
    assert not untold.fits
    assert any("if suppressed rows were left out" in note for note in untold.notes)


def test_rows_that_were_lost_or_added_are_a_misfit() -> None:
    with unblur.anonymize(patients(), CONFIG) as made:
        rows = made.to_pandas()
    lost = unblur.audit(unblur.read_release(rows.head(60), made.config))
    assert any("rows are missing, more than were suppressed" in problem for problem in lost.problems)
    added = unblur.audit(unblur.read_release(pd.concat([rows, rows]), made.config))
    assert any("the release has 240 rows, but 120 were made" in problem for problem in added.problems)


def test_an_unstated_mechanism_is_told_also_where_no_other_was_tried() -> None:
    release = release_of(*random_case(3))
    audit = unblur.audit(release, budget=1e-9)
    assert not audit.stated
    assert not audit.alternatives
    assert any("was not stated, and no other way was tried" in note for note in audit.notes)


def test_nothing_certain_among_some_says_nothing_about_the_rest() -> None:
    assert unblur.audit(wide_release(), budget=1e-9).summary.certain_records is None


def test_a_release_that_differs_from_its_replay_does_not_fit() -> None:
    table = patients()
    with unblur.anonymize(table, CONFIG) as made:
        other = replace(made.config, mechanism=Mechanism("arx", {"iterations": 10}))
        audit = unblur.audit(unblur.read_release(made.to_pandas(), other), truth=table, replay=True)
    assert audit.replay is not None
    assert not audit.replay.same
    assert any("rows differ: it was not made as stated" in problem for problem in audit.problems)


def test_all_classes_together_are_in_the_audit_and_its_json() -> None:
    table = patients(60)
    with unblur.anonymize(table, CONFIG) as release:
        audit = unblur.audit(release, truth=table, attack="joint", budget=20)
        whole, parts = unblur.attack(release, scope="joint", budget=20), unblur.attack(release)
    found = validated(audit)["joint"]
    assert found["truth_feasible"] is True
    assert found["log10_joint"] <= found["log10_class"] + 1e-9 <= found["log10_lr"] + 2e-9
    assert found["exact"] == (found["interval"] is None) == (found["solutions"] is not None)
    assert whole.count is None or str(whole.count.exact) == found["solutions"]
    assert [each.bits for each in parts] == [each.bits for each in audit.everything]
