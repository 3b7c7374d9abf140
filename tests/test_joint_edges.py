"""The joint attack where little is left, or nothing, or very much."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import comb

import jsonschema
import numpy as np
import pytest

import unblur
from tests.joint_brute_force import attributes_of, binary
from tests.plausible import release_of
from tests.strategies import random_case
from tests.test_auditing import SCHEMA
from tests.test_joint import coupled, is_small, on
from tests.test_joint_orders import solved
from unblur.audits import Audit
from unblur.cli.audit import describe
from unblur.config import Config, Mechanism
from unblur.drawing import FIELDS, draws_text
from unblur.errors import ProgramError
from unblur.grid import Free, Grid
from unblur.hierarchy import from_cuts
from unblur.joint import estimating
from unblur.joint.exact import Solved, solve
from unblur.joint.plan import System
from unblur.joint.program import UNSURE
from unblur.joint.solving import JointResult, joint
from unblur.joint.standing import standings
from unblur.lattice import Lattice
from unblur.release import EquivalenceClass, Release
from unblur.report.rendering import html
from unblur.together import Together


@pytest.mark.parametrize("seed", range(12))
def test_a_class_may_be_left_out_whatever_its_limits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lattice, k = (binary(3, 3), binary(3, 3, 2))[seed % 2], 5 + seed % 5
    sizes = [tree.values for tree in lattice.hierarchies]
    rows = [tuple(row) for row in rng.integers(0, sizes, (60, len(sizes))).tolist()]
    release = release_of(lattice, rows, k)
    if is_small(release):
        for each in standings(joint(release, on(release)), None):
            assert each.left is None or each.left > 0


def one_class(size: int, most: int, volumes: tuple[int, int]) -> Solved:
    """A class of two groups, one of which holds at most so many records."""
    grid = Grid(binary(2, 2))
    groups = [Free(pieces=(((n, n + 1), (0, 1)),), volume=volume, cells=1) for n, volume in enumerate(volumes)]
    return solve(grid, System((size,), (0, 0), ((most, frozenset({0})),)), groups, "distinct")


@pytest.mark.parametrize("size", [20, 200])
def test_samples_of_large_groups_are_as_odds_say(size: int) -> None:
    found = one_class(size, size * 2 // 3, (10**6, 10**6))
    odds: Sequence[Fraction | float] = found.held(0)
    mean = sum(n * float(chance) for n, chance in enumerate(odds))
    drawn = found.sample(2000, np.random.default_rng(1))[:, 0]
    assert abs(drawn.mean() - mean) < 5 * drawn.std() / 2000**0.5 + 0.01
    assert drawn.std() > 1


def test_many_large_classes_in_one_limit_are_counted_right() -> None:
    classes, most = 90, 9
    grid, whole = Grid(binary(2, 2)), range(classes)
    groups = [Free(pieces=(((n, n + 1), (0, 1)),), volume=1, cells=1) for _ in whole for n in (0, 1)]
    limit = (most, frozenset(range(0, 2 * classes, 2)))
    system = System((400,) * classes, tuple(n // 2 for n in range(2 * classes)), (limit,))
    assert solve(grid, system, groups, "any").combinations == comb(most + classes, classes)


def impossible() -> Release:
    """So many suppressed records that some of them would have made a class."""
    lattice = binary(2, 2)
    return Release(Config(3, attributes_of(lattice), Mechanism.named("paper")), (), 12)


@pytest.mark.parametrize("exact", [True, False])
def test_a_release_that_no_table_gives_is_said_to_be_so(exact: bool) -> None:
    release = impossible()
    audit = unblur.audit(release, attack="joint")
    assert audit.together and not audit.fits
    jsonschema.validate(json.loads(audit.to_json()), SCHEMA)
    assert "inf" not in "\n".join(describe(audit)) and html(audit)
    wrong = replace(release_of(*random_case(1)), classes=release_of(*random_case(1)).classes[:3])
    result = solved(replace(wrong, config=replace(wrong.config, k=2, mechanism=Mechanism.named("paper"))), exact=exact)
    jsonschema.validate(Together(result).to_dict(), SCHEMA["properties"]["joint"])


def without_luck() -> Audit:
    """An audit whose estimate has no plausible draw."""
    release = coupled()[0].release
    result = joint(release, on(release), exact=False, budget=0.2)
    parts = tuple(
        replace(part, estimate=replace(part.estimate, kept=0, share=(0.0, 0.01), at_least=0)) if part.estimate else part
        for part in result.parts
    )
    return replace(unblur.audit(release), together=Together(replace(result, parts=parts)))


def test_an_estimate_without_a_plausible_draw_is_a_bound() -> None:
    audit = without_luck()
    found = audit.together
    assert found and found.log10_joint is None and found.bits is None and found.feasible
    assert found.log10_at_most is not None and found.log10_at_most < found.log10_class
    row = json.loads(audit.to_json())["joint"]
    jsonschema.validate(row, SCHEMA["properties"]["joint"])
    assert row["log10_joint"] is None and row["interval"][0] is None and row["interval"][1] == found.log10_at_most
    told = "\n".join(describe(audit))
    assert "at most 10^" in told and "inf" not in told and "a larger budget may tell more" in told
    assert "no table that was drawn for an estimate is plausible" in html(audit)


def test_drawing_ends_when_hardly_any_table_is_plausible(monkeypatch: pytest.MonkeyPatch) -> None:
    release = coupled()[0].release
    result = joint(release, on(release), exact=False, budget=0.2)
    monkeypatch.setattr(estimating, "MOST_SECONDS", -1.0)
    with pytest.raises(ProgramError, match="hardly any table"):
        result.sample(3)


def test_draws_of_other_releases_stay() -> None:
    one, other = (dict.fromkeys(FIELDS, 0) | {"system": name, "seed": 1} for name in "ab")
    assert json.loads(draws_text([other], [one]))["estimates"] == [one, other]
    assert json.loads(draws_text([one | {"drawn": 7}], [one]))["estimates"] == [one | {"drawn": 7}]


def test_damaged_draws_are_refused() -> None:
    release = coupled()[0].release
    result = joint(release, on(release), exact=False, budget=0.2)
    for damage in ({"limits": [10**6]}, {"generator": {"state": 1}}, {"at_least": "many"}):
        with pytest.raises(ProgramError, match="draws of an earlier run are damaged"):
            joint(release, on(release), exact=False, budget=0.2, earlier=[each | damage for each in result.draws])


def test_an_interrupt_keeps_what_the_classes_say(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*arguments: object, **options: object) -> JointResult:
        raise KeyboardInterrupt

    monkeypatch.setattr("unblur.auditing.joint", stop)
    release = coupled()[0].release
    audit = unblur.audit(release, attack="joint", on_interrupt="keep")
    assert audit.interrupted and audit.together is None and not audit.not_done
    assert "the classes were not looked at together: someone stopped it" in audit.notes
    with pytest.raises(KeyboardInterrupt):
        unblur.audit(release, attack="joint")


def test_a_label_on_two_layers_leaves_something_open() -> None:
    cuts = [Decimal(c) for c in (0, 1, 4, 5, 7, 8)]
    tree = from_cuts(cuts, fanouts=[2, 2])
    lattice = Lattice([tree, tree], (1, 1))
    classes = (EquivalenceClass((1, 1), (4, 0), 4),)
    release = Release(Config(3, attributes_of(lattice), Mechanism.named("iterative")), classes, 4)
    assert UNSURE in solved(release).program.relaxed


def test_together_at_least_as_much_is_certain_as_alone() -> None:
    more = 0
    for seed in range(60):
        release = release_of(*random_case(seed))
        if not is_small(release):
            continue
        result = joint(release, on(release))
        for number in range(len(result.program.subjects)):
            part, owner = result.part_of(number)
            alone, found = part.classes[owner].certain(), Counter(result.certain(number))
            assert all(found[cell] >= n for cell, n in alone.items())
            more += sum(found.values()) > sum(alone.values())
    assert more > 3
