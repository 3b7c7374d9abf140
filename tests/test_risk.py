from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from tests.plausible import attack_on, release_of
from tests.strategies import examples, random_case
from unblur.config import Config, QuasiIdentifier
from unblur.hierarchy import halves
from unblur.release import EquivalenceClass, Release
from unblur.risk import Spread, assess

TREE = halves(Decimal(0), Decimal(40), layers=3)


def release(*classes: EquivalenceClass, k: int = 3, outliers: int = 0) -> Release:
    attributes = tuple(QuasiIdentifier(name, TREE, 1) for name in "ab")
    return Release(Config(k, attributes), classes, outliers)


def test_the_ratio_is_never_below_one_and_one_for_single_cells() -> None:
    for seed in range(examples(60)):
        assessment = assess(attack_on(release_of(*random_case(seed))))
        assert assessment.problems() == []
        for finding in assessment.classes:
            assert finding.ratio is not None
            assert finding.ratio >= 1
            assert finding.bits == pytest.approx(0 if finding.ratio == 1 else finding.bits)
            if finding.basic:
                assert finding.ratio == 1


def test_a_class_of_two_cells_at_k_loses_the_placements_in_one_half() -> None:
    """Three records over two cells of 100 points: 8 ways to choose halves, of which 2 have all in one."""
    attack = attack_on(release(EquivalenceClass((2, 1), (0, 0), 3)))
    (finding,) = assess(attack).classes
    assert (finding.published, finding.plausible, finding.combinations) == (200**3, 6 * 100**3, 2)
    assert finding.ratio == Fraction(4, 3)
    assert finding.labels == ("[0, 20[", "[0, 10[")


def test_an_earlier_class_takes_its_cells_away() -> None:
    earlier, later = EquivalenceClass((1, 2), (0, 0), 4), EquivalenceClass((2, 2), (0, 0), 3)
    first, second = assess(attack_on(release(earlier, later))).classes
    assert not first.basic
    assert second.plausible == 0, "one half is taken, and the other cannot hold three"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (release(EquivalenceClass((1, 1), (0, 0), 2)), "class 1 has 2 records, fewer than k = 3"),
        (release(EquivalenceClass((2, 1), (0, 0), 9)), "no placement of the 9 records of class 1 is possible"),
        (release(outliers=9), "no placement of the 9 records of the outliers is possible"),
    ],
)
def test_a_release_that_does_not_fit_is_told_in_a_sentence(given: Release, problem: str) -> None:
    (sentence,) = assess(attack_on(given)).problems()
    assert sentence.startswith(problem)


def test_more_distinct_records_than_values_are_a_misfit() -> None:
    given = release(EquivalenceClass((1, 1), (0, 0), 101))
    assert assess(attack_on(given)).problems() == []
    (sentence,) = assess(attack_on(given), records="distinct").problems()
    assert "records are not distinct" in sentence


def test_only_outliers_or_only_single_cells_are_ordinary_results() -> None:
    assert assess(attack_on(release(outliers=2))).over_all == Spread(None, None, None)
    single = assess(attack_on(release(EquivalenceClass((1, 1), (0, 0), 5))))
    assert single.over_all.largest == 1
    assert single.over_compound == Spread(None, None, None)
