from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import comb, inf, log2, log10
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.plausible import attack_on, release_of
from tests.strategies import examples, random_case
from unblur.auditing import audit
from unblur.audits import Audit
from unblur.config import Config, Mechanism, QuasiIdentifier
from unblur.counting.numbers import MOST_BITS, Count
from unblur.counting.placements import published_solutions
from unblur.counting.problem import Records
from unblur.counting.weights import ANY, COMBINATIONS, DISTINCT, log2_comb
from unblur.hierarchy import halves
from unblur.refining import refine
from unblur.release import EquivalenceClass, Release
from unblur.risk import Spread, find, find_cell

TREE = halves(Decimal(0), Decimal(40), layers=3)


def release(*classes: EquivalenceClass, k: int = 3, outliers: int = 0) -> Release:
    attributes = tuple(QuasiIdentifier(name, TREE, 1) for name in "ab")
    return Release(Config(k, attributes, Mechanism("paper")), classes, outliers)


def audit_of(*classes: EquivalenceClass, k: int = 3, outliers: int = 0) -> Audit:
    return audit(release(*classes, k=k, outliers=outliers))


def test_the_ratio_is_never_below_one_and_one_for_single_cells() -> None:
    for seed in range(examples(60)):
        result = audit(release_of(*random_case(seed)), mechanism="paper")
        assert result.fits
        for finding in result.classes:
            assert finding.ratio is not None
            assert finding.bits is not None
            assert finding.ratio >= 1
            assert finding.bits >= 0
            if finding.subject.state == result.release.config.lattice.finest:
                assert finding.basic
                assert (finding.ratio, finding.bits) == (1, 0)


def test_a_class_of_two_cells_at_k_loses_the_placements_in_one_half() -> None:
    """Three records over two cells of 100 points: 8 ways to choose halves, of which 2 have all in one."""
    (finding,) = audit_of(EquivalenceClass((2, 1), (0, 0), 3)).classes
    assert finding.refinement is not None
    assert (finding.published.exact, finding.refinement.plausible.exact) == (200**3, 6 * 100**3)
    assert finding.refinement.combinations.exact == 2
    assert finding.ratio == pytest.approx(4 / 3)
    assert finding.labels == ("[0, 20[", "[0, 10[")
    assert finding.refinement.certain_records == 2, "one in each half, wherever the third is"
    assert finding.refinement.singling_out == 1


def test_an_earlier_class_takes_its_cells_away() -> None:
    earlier, later = EquivalenceClass((1, 2), (0, 0), 4), EquivalenceClass((2, 2), (0, 0), 3)
    first, second = audit_of(earlier, later).classes
    assert not first.basic
    assert second.taken_by == (1,)
    assert second.refinement is not None
    assert second.refinement.plausible.exact == 0, "one half is taken, and the other cannot hold three"
    assert second.ratio is second.bits is None


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (release(EquivalenceClass((1, 1), (0, 0), 2)), "class 1 has 2 records, fewer than k = 3"),
        (release(EquivalenceClass((2, 1), (0, 0), 9)), "no placement of the 9 records of class 1 is possible"),
        (release(outliers=9), "no placement of the 9 records of the outliers is possible"),
    ],
)
def test_a_release_that_does_not_fit_is_told_in_a_sentence(given: Release, problem: str) -> None:
    (sentence,) = audit(given).problems
    assert sentence.startswith(problem)


def test_more_distinct_records_than_values_are_a_misfit() -> None:
    given = release(EquivalenceClass((1, 1), (0, 0), 101))
    assert audit(given).fits
    (sentence,) = audit(given, records="distinct").problems
    assert "records are not distinct" in sentence


def test_only_outliers_or_only_single_cells_are_ordinary_results() -> None:
    assert audit_of(outliers=2).summary.over_all == Spread(None, None, None)
    single = audit_of(EquivalenceClass((1, 1), (0, 0), 5)).summary
    assert (single.max_ratio, single.basic, single.compound) == (1, 1, 0)
    assert single.over_compound == Spread(None, None, None)


def test_records_of_single_cells_are_not_counted_as_placed_with_certainty() -> None:
    assert audit_of(EquivalenceClass((1, 1), (0, 0), 5)).summary.certain_records == 0
    assert audit_of(EquivalenceClass((2, 1), (0, 0), 3)).summary.certain_records == 2


def test_a_class_of_a_hundred_thousand_records_is_told_by_logarithms() -> None:
    many = 100_000
    for records in ("any", "distinct"):
        (finding,) = audit(release(EquivalenceClass((1, 1), (0, 0), many), k=many), records=records).classes
        assert finding.published.exact is None or records == "distinct"
    (finding,) = audit(release(EquivalenceClass((1, 1), (0, 0), many), k=many)).classes
    assert finding.published.log10 == pytest.approx(2 * many)
    assert (finding.ratio, finding.bits) == (1, 0)


def test_logarithms_agree_with_the_numbers_themselves() -> None:
    for family in (ANY, DISTINCT, COMBINATIONS):
        for region, n in ((0, 0), (0, 3), (1, 5), (7, 3), (5000, 2000), (10**6, 1500), (3, 10)):
            expected = Count.of(family.formula(region, n))
            assert family.log2(region, n) == pytest.approx(expected.log2, rel=1e-9)


def test_counts_have_texts_of_up_to_ten_thousand_digits() -> None:
    assert Count.of(0).text == "0"
    assert not Count.of(0)
    assert Count.of(10**9999).text == "1" + "0" * 9999
    assert Count.of(10**10000).text is None
    assert Count.of(10**10000).log10 == pytest.approx(10000)


def test_a_ratio_beyond_any_float_is_infinite_but_has_bits() -> None:
    assert Count.of(10**400).over(Count.of(1)) == inf
    assert Count(5000.0, None).over(Count(10.0, None)) == inf
    assert Count.of(6).over(Count.of(0)) is None


def test_the_certain_cells_are_those_that_no_placement_leaves_empty() -> None:
    from tests.plausible import BruteForce, all_targets
    from unblur.counting.placements import Placements

    found = 0
    for seed in range(examples(150)):
        attack = attack_on(release_of(*random_case(seed)))
        for target in all_targets(attack):
            brute = BruteForce(attack, target)
            if not brute.small:
                continue
            for records in ("any", "distinct"):
                possible = [p for p in brute.placements() if brute.weight(p, records)]
                leaf = attack.grid.leaf
                held = [
                    {cell: sum(n for c, n in p.items() if leaf(c) == cell) for cell in map(leaf, brute.cells)}
                    for p in possible
                ]
                least = {cell: min(p[cell] for p in held) for cell in map(leaf, brute.cells)} if possible else {}
                if attack.grid.has_points and records == "distinct":
                    continue
                certain = Placements(attack.grid, target.problem, records).certain() if possible else {}
                assert certain == {cell: n for cell, n in least.items() if n}
                found += len(certain)
    assert found > 100


@settings(deadline=None)
@given(m=st.integers(0, 3000) | st.integers(0, 10**40), n=st.integers(0, 3000))
def test_the_logarithm_of_a_binomial_coefficient_is_right_to_many_digits(m: int, n: int) -> None:
    exact = comb(m, n)
    assert log2_comb(m, n) == (pytest.approx(log2(exact), rel=1e-13, abs=1e-13) if exact else -inf)


@pytest.mark.parametrize("records", ["any", "distinct"])
@given(volume=st.integers(1, 10**30), size=st.integers(0, 4000))
@settings(max_examples=examples(50), deadline=None)
def test_counts_are_told_by_logarithms_that_are_right_to_many_digits(records: Any, volume: int, size: int) -> None:
    for found in (published_solutions(volume, size, records), COMBINATIONS.count(volume % 100, size)):
        if found.make is not None and (number := found.make()):
            assert found.log2 == pytest.approx(log2(number), rel=1e-13, abs=1e-13)
        assert found.exact is None or found.log2 < MOST_BITS
        assert bool(found) == (found.exact != 0)


def test_a_number_is_made_only_when_it_is_asked_for() -> None:
    def make() -> int:
        raise AssertionError("nobody asked")

    long = Count(20_000.0, None, make)
    assert long.over(Count(19_990.0, None, make)) == 1024
    assert long.log10 == pytest.approx(20_000 * log10(2))
    with pytest.raises(AssertionError, match="nobody asked"):
        _ = long.text
    assert Count(40_000.0, None, make).text is None


def test_long_numbers_are_divided_by_their_logarithms_just_as_well() -> None:
    for one, other in ((3**2000, 3**1990), (7**3000, 7**2999 * 5), (10**5000, 10**5000)):
        long = Count.of(one).over(Count.of(other))
        assert long == pytest.approx(float(Fraction(one, other)), rel=1e-9)


def test_counts_are_equal_if_their_numbers_are_however_they_came_about() -> None:
    assert published_solutions(1000, 7, "any") == Count.of(1000**7) != Count.of(1000**7 + 1)
    assert len({published_solutions(1000, 7, "any"), Count.of(1000**7)}) == 1
    assert published_solutions(1000, 10**6, "any") == published_solutions(1000, 10**6, "any")
    assert Count.of(1) != 1


@pytest.mark.parametrize("seed", range(examples(60)))
@pytest.mark.parametrize("records", ["any", "distinct"])
def test_a_free_cell_is_told_as_if_it_had_been_counted(seed: int, records: Records) -> None:
    attack = attack_on(release_of(*random_case(seed)))
    for number in filter(attack.is_free_cell, range(len(attack.release.classes))):
        target = attack.target(number)
        slowly = find(attack, number, target, records, refine(attack, target, records))
        assert find_cell(attack, number, records) == slowly
        assert slowly.basic
