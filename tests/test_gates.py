from __future__ import annotations

from dataclasses import replace

import pytest

import unblur
from tests.test_auditing import CONFIG, patients, wide_release
from tests.test_report import ONE, release, unfinished, with_bound
from unblur.config import Mechanism
from unblur.errors import ConfigError
from unblur.gates import COUNTED, Gate
from unblur.report.verdicts import judge


@pytest.fixture(scope="module")
def audit() -> unblur.Audit:
    table = patients()
    return unblur.audit(unblur.anonymize(table, CONFIG), truth=table)


@pytest.mark.parametrize(
    "text", ["max_ratio > 1", "max_bits>0.5", "median_ratio >= 1", "suppressed < 50", "classes_below_k == 0"]
)
def test_a_gate_that_holds_fails_the_release(audit: unblur.Audit, text: str) -> None:
    assert (Gate.parse(text).failure(audit) or "").startswith(text.split(">")[0].split()[0])


@pytest.mark.parametrize(
    "text", ["max_ratio > 1e300", "classes_below_k > 0", "suppressed >= 50", "singled_out < 1", "certain_records < 0"]
)
def test_a_gate_that_does_not_hold_lets_the_release_pass(audit: unblur.Audit, text: str) -> None:
    assert Gate.parse(text).failure(audit) is None


def test_a_gate_names_the_figure_it_rests_on(audit: unblur.Audit) -> None:
    assert Gate.parse("singled_out>0").failure(audit) == f"singled_out > 0: it is {audit.summary.singled_out}"


@pytest.mark.parametrize("text", ["max_ratio", "max_ratio => 3", "maxratio > 3", "max_ratio > many", ""])
def test_what_is_no_gate_is_refused_with_what_would_be_one(text: str) -> None:
    with pytest.raises(ConfigError, match="fields are max_ratio, median_ratio"):
        Gate.parse(text)


def test_a_gate_that_cannot_be_told_does_not_pass() -> None:
    partial = unblur.audit(wide_release(), budget=1e-9)
    assert "cannot be told, since 2 parts of it were not analysed" in (
        Gate.parse("max_ratio > 1e9").failure(partial) or ""
    )
    assert Gate.parse("suppressed > 0").failure(partial) is None
    assert "cannot be told" in (Gate.parse("singled_out > 0").failure(partial) or "")


def test_a_bound_cannot_let_a_gate_pass() -> None:
    cut_short = unblur.audit(wide_release(), engine="cpsat", budget=4)
    assert "only bounds" in (Gate.parse("max_bits > 1e9").failure(cut_short) or "")


def test_a_gate_needs_a_finite_number() -> None:
    with pytest.raises(ConfigError, match="is no number"):
        Gate.parse("max_ratio > nan")


def open_audits() -> list[tuple[str, unblur.Audit]]:
    """Audits that leave something open, each with what that is."""
    unstated = unblur.audit(release(ONE, mechanism=None))
    return [
        ("1 part of it was not analysed", unfinished()),
        ("1 count is only a bound", with_bound("at_most")),
        ("missing values", unblur.audit(release(ONE, outliers=3, made={"missing": 2}))),
        ("some ways that fit would give away more", unstated),
        ("no other way was tried", replace(unstated, alternatives=())),
        ("nothing is assumed", unblur.audit(release(ONE, mechanism=Mechanism("unknown")))),
    ]


@pytest.mark.parametrize("field", COUNTED)
def test_gates_and_verdict_agree_on_what_cannot_be_told(field: str) -> None:
    gate = Gate.parse(f"{field} > 1e6")
    for reason, audit in open_audits():
        failure, verdict = gate.failure(audit) or "", judge(audit, [gate])
        assert "cannot be told, since " in failure and reason in failure
        assert verdict.kind == "open" and reason in verdict.sentence


def test_a_gate_that_passes_is_within_the_limit_and_one_that_holds_above_it(audit: unblur.Audit) -> None:
    for text in ("max_ratio > 1e300", "certain_records < 0", "max_ratio > 1", "median_ratio >= 1", "suppressed < 50"):
        gate = Gate.parse(text)
        assert judge(audit, [gate]).kind == ("above" if gate.failure(audit) else "within")


def test_a_search_that_was_cut_short_proves_no_excess() -> None:
    overstated, gate = with_bound("at_least", bits=10), Gate.parse("max_ratio > 100")
    assert "cannot be told" in (gate.failure(overstated) or "")
    assert judge(overstated, [gate]).kind == "open"


def test_what_may_still_grow_does_not_hold_a_gate_from_above() -> None:
    assert "cannot be told" in (Gate.parse("max_ratio < 1e6").failure(unfinished()) or "")


def test_a_bound_for_a_single_cell_says_nothing_about_certain_records() -> None:
    audit = unblur.audit(release(ONE, ((1, 1), (7, 7), 4)))
    single = audit.classes[1]
    assert single.basic and single.refinement is not None
    bound = replace(single, refinement=replace(single.refinement, counted="at_most"))
    audit = replace(audit, classes=replace(audit.classes, all=(audit.classes[0], bound)))
    assert Gate.parse("certain_records > 0").failure(audit) is None
    assert "only a bound" in (Gate.parse("max_ratio > 100").failure(audit) or "")
    assert judge(audit, [Gate.parse("certain_records > 0")]).kind == "within"
