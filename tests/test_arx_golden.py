"""45 real runs of ARX 3.9.2: made again row by row, read back, and attacked without ever excluding the truth."""

from __future__ import annotations

import csv
import json
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import unblur
from tests.test_golden import interval_entry
from unblur.attacking import Attack, inference_of
from unblur.config import Config, Mechanism
from unblur.joint.program import joint_program
from unblur.truth import read_truth
from unblur.workspace import Workspace

GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())
LONG = os.environ.get("UNBLUR_TESTS") == "long"
SLOW_TOGETHER = ("g18", "g31", "g33", "g36", "g40")
"""Runs whose joint program takes a quarter of a minute or more, or is too large (g33)."""
PAPER_IS_WRONG = ("g21", "g23", "g25", "g36")


def facts_of(case: str) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((GOLDEN / case / "config.json").read_text(), parse_float=Decimal)
    return facts


def config_of(case: str) -> Config:
    """Describe a run as a user would: intervals where ARX had the builder, hierarchy files where it had files."""
    facts = facts_of(case)
    settings = facts["settings"]
    attributes = [
        {"name": each["name"], **(interval_entry(each) if has_builder(each) else {"hierarchy": each["hierarchy_file"]})}
        for each in facts["attributes"]
    ]
    mechanism = {
        "name": "arx",
        "records_per_iteration": settings["records_per_iteration_fraction"],
        "suppression_limit": settings["initial_suppression_limit"],
        "gs_factor": settings["gs_factor"],
    }
    entries = {
        "k": facts["k"],
        "finest_layer": settings["minimum_generalization_level"],
        "mechanism": mechanism,
        "quasi_identifiers": attributes,
    }
    return Config.from_dict(entries, folder=GOLDEN / case)


def has_builder(attribute: dict[str, Any]) -> bool:
    return bool(attribute["hierarchy"] == "interval" and attribute["share"] == "interval_length")


def truths(case: str, mechanism: Mechanism) -> list[bool]:
    release = unblur.read_release(GOLDEN / case / "output.csv", config_of(case))
    audit = unblur.audit(release, truth=GOLDEN / case / "input.csv", mechanism=mechanism)
    return [each.truth.feasible for each in audit.everything if each.truth]


def test_all_45_runs_are_there() -> None:
    assert len(CASES) == 45


@pytest.mark.parametrize("case", CASES)
def test_anonymize_gives_what_arx_gave_row_by_row(case: str) -> None:
    release = unblur.anonymize(GOLDEN / case / "input.csv", config_of(case))
    with (GOLDEN / case / "output.csv").open(newline="", encoding="utf-8") as file:
        expected = list(csv.reader(file, delimiter=";"))[1:]
    assert [list(row.values()) for row in release.to_arrow().to_pylist()] == expected
    read = unblur.read_release(GOLDEN / case / "output.csv", config_of(case))
    assert (sorted(read.classes, key=str), read.outliers) == (sorted(release.classes, key=str), release.outliers)


@pytest.mark.parametrize("case", CASES)
def test_the_truth_is_feasible_under_the_settings_of_the_run(case: str) -> None:
    mechanism = config_of(case).mechanism
    assert mechanism is not None
    assert all(truths(case, mechanism))
    assert all(truths(case, Mechanism("iterative")))
    if not mechanism.settings["gs_factor"]:
        assert all(truths(case, Mechanism("greedy")))
        assert all(truths(case, Mechanism("greedy", {"requirement": "constant"})))


@pytest.mark.parametrize("case", [case for case in CASES if LONG or not case.startswith(SLOW_TOGETHER)])
def test_the_truth_is_feasible_for_all_classes_together(case: str) -> None:
    release = unblur.read_release(GOLDEN / case / "output.csv", config_of(case))
    with Workspace() as workspace:
        truth = read_truth(GOLDEN / case / "input.csv", release, release.open_rows(workspace))
    for mechanism in (release.config.mechanism, Mechanism("iterative")):
        assert mechanism is not None
        if case.startswith("g33") and mechanism.name == "arx":
            continue
        program = joint_program(Attack(release.bare(), inference_of(mechanism, release)))
        assert program.allows(truth.all)


@pytest.mark.parametrize("case", [case for case in CASES if case.startswith(PAPER_IS_WRONG)])
def test_the_papers_rules_exclude_the_truth_where_arx_had_other_settings(case: str) -> None:
    assert not all(truths(case, Mechanism("paper")))


@pytest.mark.parametrize("case", [case for case in CASES if "matched" in case])
def test_under_matching_settings_arx_and_paper_find_the_same_but_for_ties(case: str) -> None:
    release = unblur.read_release(GOLDEN / case / "output.csv", config_of(case))
    lattice = release.config.lattice
    arx, paper = unblur.audit(release), unblur.audit(release, mechanism="paper")
    for one, other in zip(arx.everything, paper.everything, strict=True):
        assert one.refinement is not None
        assert other.refinement is not None
        assert one.refinement.plausible.log2 >= other.refinement.plausible.log2 - 1e-9
        tied = [
            taker
            for taker in set(other.taken_by) - set(one.taken_by)
            if lattice.loss(release.classes[taker - 1].state) + 1e-9 < lattice.loss(other.subject.state)
        ]
        assert not tied


@pytest.mark.parametrize("case", ["g21_gui_default", "g26_materialised", "g38_categorical", "g28_gs_half"])
def test_a_replay_says_yes_or_shows_the_first_difference(case: str) -> None:
    release = unblur.read_release(GOLDEN / case / "output.csv", config_of(case))
    again = unblur.audit(release, truth=GOLDEN / case / "input.csv", replay=True).replay
    assert again is not None
    assert again.same
    other = Mechanism("arx", {"records_per_iteration": 0.2})
    differs = unblur.audit(release, truth=GOLDEN / case / "input.csv", replay=True, mechanism=other).replay
    assert differs is not None
    assert differs.rows > 0
    assert differs.first is not None
    assert differs.expected != differs.found


def test_builders_that_arx_saved_describe_its_intervals() -> None:
    """The release of g07 is made again from the .ahs files of its attributes."""
    case = "g07_matched"
    facts = facts_of(case)
    config = config_of(case)
    entries = {
        "k": facts["k"],
        "finest_layer": facts["settings"]["minimum_generalization_level"],
        "mechanism": {"name": "arx", **(config.mechanism.settings if config.mechanism else {})},
        "quasi_identifiers": [
            {"name": each["name"], "hierarchy": f"hierarchy_{each['name']}.ahs"} for each in facts["attributes"]
        ],
    }
    built = Config.from_dict(entries, folder=GOLDEN / case)
    again = unblur.anonymize(GOLDEN / case / "input.csv", built)
    assert again.to_arrow().equals(unblur.anonymize(GOLDEN / case / "input.csv", config).to_arrow())
