from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction

import pytest

from tests.plausible import BruteForce, all_targets, attack_on, release_of
from tests.strategies import examples, random_case
from unblur.counting.exact import ExactCount
from unblur.counting.placements import Placements, published_solutions
from unblur.counting.problem import Block, Problem, Records
from unblur.counting.weights import ANY, COMBINATIONS, DISTINCT, Series
from unblur.grid import Free

BOTH: list[Records] = ["any", "distinct"]


def cases(seeds: range) -> list[BruteForce]:
    found = []
    for seed in seeds:
        attack = attack_on(release_of(*random_case(seed)))
        brutes = [BruteForce(attack, target) for target in all_targets(attack)]
        found += [brute for brute in brutes if brute.small and not brute.target.dropped]
    return found


def test_counts_equal_brute_force_class_by_class() -> None:
    sizes: Counter[str] = Counter()
    for brute in cases(range(examples(150))):
        placements = list(brute.placements())
        problem = brute.target.problem
        assert ExactCount(problem, COMBINATIONS).count() == len(placements)
        assert ExactCount(problem, DISTINCT).count() == sum(brute.weight(p, "distinct") for p in placements)
        assert ExactCount(problem, ANY).count() == sum(brute.weight(p, "any") for p in placements)
        bound = problem.bound or 0
        sizes["slack" if bound < problem.size < 2 * bound else "large" if problem.size >= 2 * bound else "tight"] += 1
    assert min(sizes["slack"], sizes["large"], sizes["tight"]) > 20, "every way of counting must be tried"


@pytest.mark.parametrize("records", BOTH)
def test_odds_singling_out_and_enumeration_equal_brute_force(records: Records) -> None:
    tried = 0
    for brute in cases(range(examples(40))):
        every = {tuple(sorted(p.items())): brute.weight(p, records) for p in brute.placements()}
        every = {placement: weight for placement, weight in every.items() if weight}
        total = sum(every.values())
        left = Placements(brute.attack.grid, brute.target.problem, records)
        assert left.solutions == total
        if not total or len(every) > 300:
            continue
        tried += 1
        assert sorted(tuple(sorted(p.items())) for p in left.enumerate()) == sorted(every)
        single = sum(weight for placement, weight in every.items() if 1 in dict(placement).values())
        assert left.singling_out == Fraction(single, total)
        for cell in list(brute.attack.grid.cells(brute.target.box))[:30]:
            odds = [Fraction(0)] * (brute.target.subject.size + 1)
            for placement, weight in every.items():
                odds[dict(placement).get(cell, 0)] += Fraction(weight, total)
            found = left.cell_odds(cell)
            assert found == odds[: len(found)]
            assert sum(found) == 1
    assert tried > 100


def test_expected_counts_of_all_cells_sum_to_the_size() -> None:
    for seed in range(12):
        attack = attack_on(release_of(*random_case(seed)))
        for target in all_targets(attack):
            left = Placements(attack.grid, target.problem, "any")
            cells = list(attack.grid.cells(target.box))
            if left.solutions and len(cells) < 200:
                mean = sum(n * chance for cell in cells for n, chance in enumerate(left.cell_odds(cell)))
                assert mean == target.subject.size


@pytest.mark.parametrize("records", BOTH)
def test_samples_are_plausible_and_as_frequent_as_they_should_be(records: Records) -> None:
    brute = max((b for b in cases(range(12))), key=lambda b: len(list(b.placements())))
    left = Placements(brute.attack.grid, brute.target.problem, records)
    every = {tuple(sorted(p.items())) for p in brute.placements()}
    rng = random.Random(1)
    draws = [left.sample(rng) for _ in range(300)]
    assert {tuple(sorted(draw.items())) for draw in draws} <= every
    for cell in brute.cells:
        expected = float(left.cell_odds(cell)[0])
        seen = sum(cell not in draw for draw in draws) / len(draws)
        assert abs(seen - expected) < 5 * (expected * (1 - expected) / len(draws)) ** 0.5 + 1e-9


def test_a_class_without_bound_has_all_placements_of_its_free_cells() -> None:
    free = Free(volume=10, cells=2)
    problem = Problem(size=3, fanouts=(), free={(): free}, bound=None)
    assert ExactCount(problem, ANY).count() == 1000 == published_solutions(10, 3, "any").exact
    assert ExactCount(problem, DISTINCT).count() == 120 == published_solutions(10, 3, "distinct").exact
    assert ExactCount(problem, COMBINATIONS).count() == 4


def test_halves_of_one_cell_each() -> None:
    """Two cells, 4 records, k = 3: (1, 3) and (3, 1) would have made a class, so both hold 2."""
    problem = Problem(size=4, fanouts=(2,), free={(0,): Free(5, 1), (1,): Free(5, 1)}, bound=3)
    assert ExactCount(problem, COMBINATIONS).count() == 1
    assert ExactCount(problem, DISTINCT).count() == 100
    assert ExactCount(problem, ANY).count() == 6 * 5**4
    assert ExactCount(problem, ANY).distribution((0,)) == [0, 0, 6 * 5**4]


def test_more_records_than_two_children_may_hold_have_no_placement() -> None:
    """Of two children one is heavy, with 2 records at most, and the other has one at most: 6 records do not fit."""
    problem = Problem(size=6, fanouts=(2,), free={(0,): Free(5, 1), (1,): Free(5, 1)}, bound=3, heavy_from=2)
    assert not any(problem.allows((n, 6 - n)) for n in range(7))
    assert ExactCount(problem, ANY).count() == 0


def test_a_child_that_is_not_free_makes_a_binary_class_infeasible() -> None:
    problem = Problem(size=4, fanouts=(2,), free={(0,): Free(5, 1), (1,): Free()}, bound=3)
    assert ExactCount(problem, COMBINATIONS).count() == 0


def test_huge_sizes_need_no_enumeration() -> None:
    free: dict[Block, Free] = {(a, b, c): Free(10**6, 4096) for a in (0, 1) for b in (0, 1) for c in (0, 1)}
    problem = Problem(size=54, fanouts=(2, 2, 2), free=free, bound=50)
    assert 1 < Fraction((8 * 10**6) ** 54, ExactCount(problem, ANY).count()) < 2


@pytest.mark.parametrize("labelled", [True, False])
def test_series_divide_what_they_multiply(labelled: bool) -> None:
    series = Series(labelled, 4, lambda free: ())
    one, other = (1, 3, 5, 7, 9), (1, 0, 2, 0, 4)
    assert series.without(series.product(one, other), other) == one
    assert series.power(one, 3) == series.product(one, series.product(one, one))
