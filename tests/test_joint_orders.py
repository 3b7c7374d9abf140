"""Where the order of states is open, every order is allowed, and no table is counted twice."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from math import log10, prod

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.joint_brute_force import AnyOrder, Counts, attributes_of, binary
from unblur.attacking import Attack, inference_of
from unblur.config import Config, Mechanism
from unblur.counting.problem import Records
from unblur.hierarchy import halves
from unblur.joint import orders
from unblur.joint.blending import Blend
from unblur.joint.program import ANY_ORDER, TIED, joint_program
from unblur.joint.solving import JointResult, joint
from unblur.lattice import Lattice
from unblur.release import EquivalenceClass, Release

Rows = list[tuple[Counts, NDArray[np.int64]]]


def equal(layers: int, attributes: int) -> Lattice:
    """Attributes that are alike, so that states tie in every permutation."""
    tree = halves(Decimal(0), Decimal(5 * 2 ** (layers - 1)), layers=layers)
    return Lattice([tree] * attributes, (1,) * attributes)


def solved(release: Release, records: Records = "any", *, exact: bool = True) -> JointResult:
    assert release.config.mechanism
    inference = inference_of(release.config.mechanism, release)
    return joint(release, inference, records=records, exact=exact, budget=None if exact else 0.5)


def is_blended(result: JointResult) -> bool:
    return any(isinstance(part.solved, Blend) for part in result.parts)


TIES = AnyOrder(equal(2, 3), 8, 3, "paper")
CASES = [
    (TIES, 250),
    (AnyOrder(equal(3, 2), 5, 2, "paper"), 80),
    (AnyOrder(binary(3, 2), 6, 2, "iterative"), 100),
]


def some(found: AnyOrder, number: int) -> list[tuple[Release, Rows]]:
    """About so many of the releases, evenly."""
    return found.releases[:: max(1, len(found.releases) // number)]


@pytest.mark.parametrize(("found", "number"), CASES)
def test_every_count_equals_brute_force(found: AnyOrder, number: int) -> None:
    blended = 0
    for release, rows in some(found, number):
        for counting in ("any", "distinct"):
            result = solved(release, counting)
            assert result.count
            assert result.count.exact == sum(found.everything.weight(*row, counting) for row in rows)
            assert prod(part.combinations.exact or 0 for part in result.parts if part.combinations) == len(rows)
            assert TIED not in result.program.relaxed
        blended += is_blended(result)
    assert blended > 2


def test_odds_equal_brute_force() -> None:
    blended = 0
    for release, rows in TIES.releases:
        if blended == 12:
            break
        if not has_choices(release):
            continue
        blended += is_blended(result := solved(release))
        weights = [TIES.everything.weight(*row, "any") for row in rows]
        for number in range(len(result.program.subjects)):
            home = number if number < len(release.classes) else -1
            held = np.array([np.where(homes == home, counts, 0) for counts, homes in rows])
            for place, cell in enumerate(TIES.everything.cells):
                odds = result.cell_odds(number, cell)
                assert odds is not None
                for n, chance in enumerate(odds):
                    found = sum(w for w, row in zip(weights, held, strict=True) if row[place] == n)
                    assert chance == Fraction(found, sum(weights))
            least = {cell: int(n) for cell, n in zip(TIES.everything.cells, held.min(axis=0), strict=True) if n}
            assert result.certain(number) == least
            part, owner = result.part_of(number)
            single = sum(w for w, row in zip(weights, held, strict=True) if (row == 1).any())
            assert part.singling_out(owner) == Fraction(single, sum(weights))
    assert blended == 12


def has_choices(release: Release) -> bool:
    assert release.config.mechanism
    program = joint_program(Attack(release, inference_of(release.config.mechanism, release)))
    return any(component.choices for component in program.components)


def most_open() -> tuple[Release, Rows]:
    """A release that many tables give, in which the open orders say more than the classes one by one."""
    return next(each for each in TIES.releases if len(each[1]) == 36 and has_choices(each[0]))


@pytest.mark.parametrize("exact", [True, False])
def test_samples_are_uniform(exact: bool) -> None:
    """Chi-squared over all histograms that give a release in some order, by counting and by drawing."""
    release, rows = most_open()
    weights = {counts: TIES.everything.weight(counts, homes, "any") for counts, homes in rows}
    result, number = solved(release, exact=exact), 4000
    found = Counter(
        tuple(sum(each[cell] for each in table.placements) for cell in TIES.everything.cells)
        for table in result.sample(number)
    )
    assert set(found) <= set(weights)
    expected = {counts: number * weight / sum(weights.values()) for counts, weight in weights.items()}
    assert sum((found[counts] - mean) ** 2 / mean for counts, mean in expected.items()) < 2 * len(weights) + 20
    if not exact:
        assert result.range
        assert result.range.low < log10(sum(weights.values())) < result.range.high


def test_too_many_orders_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    release, _ = most_open()
    result = solved(release)
    assert result.program.relaxed == (ANY_ORDER,)
    monkeypatch.setattr(orders, "MOST_STATES", 1)
    relaxed = solved(release)
    assert relaxed.program.relaxed == (TIED,)
    assert relaxed.count and result.count and (relaxed.count.exact or 0) > (result.count.exact or 0)


def test_stating_nothing_about_the_tool_orders_nothing() -> None:
    lattice = equal(2, 2)
    classes = (EquivalenceClass((1, 2), (0, 0), 3), EquivalenceClass((2, 1), (0, 1), 3))
    release = Release(Config(3, attributes_of(lattice), Mechanism.named("unknown")), classes, 0)
    program = joint_program(Attack(release, inference_of(Mechanism.named("unknown"), release)))
    assert all(component.plain for component in program.components)
