from __future__ import annotations

from collections import Counter
from decimal import Decimal
from itertools import combinations_with_replacement, product

import pytest
from hypothesis import given, settings

from tests.plausible import all_targets, attack_on, permuted, random_order, release_of, truth_of
from tests.strategies import Record, examples, random_case, recoding_cases
from unblur import cutting
from unblur.counting.placements import Placements
from unblur.hierarchy import from_cuts, halves
from unblur.lattice import Lattice
from unblur.mechanisms import Order


def counted(lattice: Lattice, records: list[Record], k: int, order: Order = "sound") -> Counter[tuple[object, ...]]:
    attack = attack_on(release_of(lattice, records, k), order)
    found: Counter[tuple[object, ...]] = Counter()
    for target in all_targets(attack):
        left = Placements(attack.grid, target.problem, "any")
        found[target.subject.size, left.solutions, left.combinations] += 1
    return found


def feasible(lattice: Lattice, records: list[Record], k: int, order: Order = "sound") -> bool:
    """Whether the true placement of every class, and of the outliers, is one of those counted."""
    attack = attack_on(release_of(lattice, records, k), order)
    for target in all_targets(attack):
        blocks: Counter[tuple[int, ...]] = Counter()
        left = Placements(attack.grid, target.problem, "any")
        for cell, n in truth_of(attack, target, records).items():
            block = left.block_of(cell)
            if block is None:
                return False
            blocks[block] += n
        if target.problem.constrained:
            for attribute in range(len(target.problem.fanouts)):
                children = Counter[int]()
                for block, n in blocks.items():
                    children[block[attribute]] += n
                if max(children.values()) >= (target.problem.bound or 0):
                    return False
    return True


def test_the_truth_is_always_feasible() -> None:
    assert all(feasible(*random_case(seed)) for seed in range(examples(400)))


@given(recoding_cases())
@settings(max_examples=examples(100), deadline=None)
def test_the_truth_is_feasible_in_every_table(case: tuple[Lattice, list[Record], int]) -> None:
    assert feasible(*case)


def test_taking_tied_states_in_the_paper_s_order_can_exclude_the_truth() -> None:
    wrong = [seed for seed in range(0, 300, 3) if not feasible(*random_case(seed), order="paper")]
    assert wrong, "the cases must include a release whose ties fell the other way"
    assert all(feasible(*random_case(seed)) for seed in wrong)


@pytest.mark.parametrize("seed", range(30))
def test_permuting_attributes_changes_nothing(seed: int) -> None:
    lattice, records, k = random_case(seed * 3 + 1)  # without equal attributes: lattice order decides open ties
    other, moved = permuted(lattice, records, random_order(len(lattice.finest), seed))
    release, again = release_of(lattice, records, k), release_of(other, moved, k)
    if sorted(each.size for each in release.classes) == sorted(each.size for each in again.classes):
        assert counted(lattice, records, k) == counted(other, moved, k)


def test_mirroring_a_hierarchy_changes_nothing() -> None:
    tree = halves(Decimal(0), Decimal(16), layers=4)
    lattice = Lattice([tree, from_cuts([Decimal(i) for i in (0, 3, 6, 9)])], (1, 1))
    for seed in range(20):
        _, records, _ = random_case(seed)
        moved = [(record[0] % 16, record[1] % 9) for record in records]
        mirrored = [(15 - a, b) for a, b in moved]
        assert counted(lattice, list(moved), 3) == counted(lattice, list(mirrored), 3)


def test_a_grid_of_sixteen_to_the_sixth_cells_is_no_trouble() -> None:
    lattice = Lattice([halves(Decimal(0), Decimal(160), layers=5)] * 6, (1,) * 6)
    _, records, _ = random_case(5)
    points: list[Record] = [tuple((a * 37 + i * b) % 160 for i in range(6)) for a, b, *_ in records]
    attack = attack_on(release_of(lattice, points, 3))
    total = [Placements(attack.grid, target.problem, "any").solutions for target in all_targets(attack)]
    assert all(count > 0 for count in total)


def test_every_table_that_yields_the_release_is_counted() -> None:
    """All histograms of 5 records on 4 x 2 cells, k = 2: each is a placement of every class of its release."""
    lattice = Lattice([halves(Decimal(0), Decimal(4), layers=3), halves(Decimal(0), Decimal(2), layers=2)], (1, 1))
    cells = list(product(range(4), range(2)))
    for records in combinations_with_replacement(cells, 5):
        assert feasible(lattice, list(records), 2)


def test_a_constraint_that_would_take_forever_is_dropped_and_the_count_is_an_upper_bound() -> None:
    lattice, records, k = random_case(172)
    attack = attack_on(release_of(lattice, records, k))
    dropped = [target for target in all_targets(attack) if target.dropped]
    assert dropped
    for target in dropped:
        assert Placements(attack.grid, target.problem, "any").solutions > 0
    assert feasible(lattice, records, k)


def test_many_boxes_are_cut_off_as_few_are(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(examples(20)):
        attack = attack_on(release_of(*random_case(seed)))
        monkeypatch.setattr(cutting, "MANY", 10**6)
        one_by_one = [target.problem.free for target in all_targets(attack)]
        monkeypatch.setattr(cutting, "MANY", 1)
        for most in (10**6, 0):
            monkeypatch.setattr(cutting, "MOST_MARKED", most)
            assert [target.problem.free for target in all_targets(attack)] == one_by_one
