from __future__ import annotations

import pytest

import unblur
from tests.test_auditing import CONFIG, patients, wide_release
from unblur.errors import ConfigError
from unblur.gates import Gate


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
    assert "cannot be told, since not all" in (Gate.parse("max_ratio > 1e9").failure(partial) or "")
    assert Gate.parse("suppressed > 0").failure(partial) is None
    assert "cannot be told" in (Gate.parse("singled_out > 0").failure(partial) or "")


def test_a_bound_cannot_let_a_gate_pass() -> None:
    cut_short = unblur.audit(wide_release(), engine="cpsat", budget=0.5)
    assert "only bounds" in (Gate.parse("max_bits > 1e9").failure(cut_short) or "")


def test_a_gate_needs_a_finite_number() -> None:
    with pytest.raises(ConfigError, match="is no number"):
        Gate.parse("max_ratio > nan")
