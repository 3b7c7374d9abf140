from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from math import floor

import numpy as np
import pytest

from tests.plausible import BruteForce, Known, all_targets, release_of
from tests.strategies import Record, examples, histogram_of, random_case
from unblur.arx.settings import ArxSettings
from unblur.attacking import Attack, Target, inference_of
from unblur.config import Config, Mechanism, QuasiIdentifier
from unblur.counting.cpsat import enumerate_program
from unblur.counting.placements import Placements
from unblur.hierarchy import from_cuts, from_rows, halves
from unblur.lattice import Lattice
from unblur.mechanisms import GreedyInference, IterativeInference, is_finer
from unblur.program import build_program
from unblur.release import EquivalenceClass, Release
from unblur.remaining import Remaining

Home = tuple[tuple[int, ...], tuple[int, ...]]


def steps(
    lattice: Lattice, records: list[Record], k: int, required: int, seed: int | None
) -> tuple[Remaining, list[EquivalenceClass]]:
    """Recode step by step: of the states that cover enough records take the cheapest, or any if there is a seed."""
    rng = np.random.default_rng(seed)
    remaining = Remaining(histogram_of(lattice, records), lattice, k)
    classes: list[EquivalenceClass] = []
    states = sorted((state for state in lattice.states() if state != lattice.top), key=lattice.key)
    while remaining.records >= k:
        usable = [state for state in states if remaining.covered(state) >= max(1, min(required, remaining.records))]
        if not usable:
            break
        classes += remaining.release(usable[0] if seed is None else usable[rng.integers(len(usable))])
    return remaining, classes


def recoded(lattice: Lattice, records: list[Record], k: int, required: int, seed: int | None) -> list[Home | None]:
    """For every occupied cell, the class that it went to."""
    remaining, classes = steps(lattice, records, k, required, seed)
    return [None if n < 0 else (classes[n].state, classes[n].segment) for n in remaining.class_of_cell.tolist()]


def simulated(lattice: Lattice, records: list[Record], k: int, required: int, seed: int | None = None) -> Release:
    """The release of a recoder that requires so many records in each step."""
    remaining, classes = steps(lattice, records, k, required, seed)
    attributes = tuple(
        QuasiIdentifier(f"q{i}", tree, low)
        for i, (tree, low) in enumerate(zip(lattice.hierarchies, lattice.finest, strict=True))
    )
    found = sorted(classes, key=lambda each: (*lattice.key(each.state), each.state, each.segment))
    return Release(Config(k, attributes), tuple(found), remaining.records)


def true_placements(
    attack: Attack, lattice: Lattice, records: list[Record], k: int, required: int, seed: int | None
) -> list[tuple[Target, dict[tuple[int, ...], int]]]:
    """The cells of every class's records: the recoder runs again, and tells which cells each step took."""
    histogram = histogram_of(lattice, records)
    homes = [*((each.state, each.segment) for each in attack.release.classes), None]
    placements: dict[object, dict[tuple[int, ...], int]] = {home: {} for home in homes}
    owners = recoded(lattice, records, k, required, seed)
    for number in range(len(histogram.counts)):
        cell = tuple(int(attack.grid.positions(i)[nodes[number]]) for i, nodes in enumerate(histogram.nodes))
        placements[owners[number]][cell] = int(histogram.counts[number])
    targets = [*attack.targets(), attack.outliers()]
    return [(t, placements[home]) for t, home in zip(targets, homes, strict=True) if t is not None]


@pytest.mark.parametrize("least", [None, 3, 4, 5, 7])
def test_engines_and_brute_force_agree_where_heavy_children_count_together(least: int | None) -> None:
    """Whatever the bound is, whether or not two children may be heavy."""
    together = seen = 0
    for seed in range(examples(120)):
        lattice, records, k = random_case(seed)
        release = release_of(lattice, records, k)
        attack = Attack(release, Known(least if least is None else max(k, least)))
        for target in all_targets(attack):
            brute = BruteForce(attack, target)
            if not brute.small or target.dropped:
                continue
            seen += 1
            together += target.problem.together
            placements = list(brute.placements())
            for counting in ("any", "distinct"):
                left = Placements(attack.grid, target.problem, counting)
                assert left.solutions == sum(brute.weight(p, counting) for p in placements)
                assert left.combinations == len(placements)
            if target.problem.together:
                found = enumerate_program(build_program(attack, target))
                assert (found.combinations, found.complete) == (len(placements), True)
                assert all(Placements(attack.grid, target.problem, "any").allows(p) for p in placements)
    assert seen > 100
    if least in (4, 5, 7):
        assert together > 0


def test_a_class_of_two_children_and_twice_k_records_has_one_light_child() -> None:
    """Seven records, k = 3, bound 6: the heavy child holds 5, the light one 2."""
    tree = halves(Decimal(0), Decimal(20), layers=2)
    release = Release(Config(3, (QuasiIdentifier("a", tree, 1),)), (EquivalenceClass((2,), (0,), 7),), 0)
    target = Attack(release, Known(6)).target(0)
    assert target.problem.together
    left = Placements(Attack(release, Known(6)).grid, target.problem, "any")
    assert left.combinations == 2
    assert left.solutions == 2 * 21 * 10**7
    assert left.held([(0,)]) == [0, 0, pytest.approx(0.5), 0, 0, pytest.approx(0.5)]
    with pytest.raises(Exception, match="no linear row"):
        build_program(Attack(release, Known(6)), target).to_lp("never.lp")


@pytest.mark.parametrize("seeded", [False, True])
def test_the_truth_is_feasible_whatever_each_step_required(seeded: bool) -> None:
    """A greedy recoder under greedy, one that takes any usable state under iterative."""
    compound = 0
    for seed in range(examples(150)):
        lattice, records, k = random_case(seed)
        required = 1 + seed % 12
        release = simulated(lattice, records, k, required, seed if seeded else None)
        names = ["iterative"] if seeded else ["iterative", "greedy", "constant"]
        for name in names:
            settings = {"requirement": "constant"} if name == "constant" else {}
            mechanism = Mechanism("greedy" if name == "constant" else name, settings)
            attack = Attack(release, inference_of(mechanism, release))
            for target, placement in true_placements(attack, lattice, records, k, required, seed if seeded else None):
                assert Placements(attack.grid, target.problem, "any").allows(placement), (seed, name)
                compound += bool(target.problem.fanouts)
    assert seeded or compound > 100


def test_states_are_finer_in_some_attribute_and_coarser_in_none() -> None:
    assert is_finer((1, 2), (2, 2))
    assert not is_finer((1, 2), (1, 2))
    assert not is_finer((1, 3), (2, 2))


def test_a_label_on_two_layers_may_be_read_either_way() -> None:
    tree = from_rows([["a", "a", "letters", "*"], ["b", "bc", "letters", "*"], ["c", "bc", "letters", "*"]])
    lattice = Lattice([tree], (0,))
    order = IterativeInference(lattice)
    alone, group = EquivalenceClass((0,), (0,), 5), EquivalenceClass((1,), (1,), 5)
    assert order.coarsest(alone) == (1,)
    assert order.coarsest(group) == (1,)
    assert not order.before(alone, group), "the label a may be that of layer 1, as bc is"
    assert order.before(alone, EquivalenceClass((2,), (0,), 5))


def test_greedy_bounds_by_what_a_state_carries() -> None:
    tree = halves(Decimal(0), Decimal(40), layers=3)
    attributes = tuple(QuasiIdentifier(name, tree, 1) for name in "ab")
    classes = (
        EquivalenceClass((1, 1), (0, 0), 3),
        EquivalenceClass((1, 1), (3, 3), 4),
        EquivalenceClass((2, 1), (0, 1), 6),
        EquivalenceClass((2, 2), (0, 1), 5),
        EquivalenceClass((3, 2), (0, 0), 8),
    )
    greedy = GreedyInference(Release(Config(3, attributes), classes, 2))
    assert [greedy.bound(each) for each in classes] == [7, 7, 6, 5, 8]
    constant = GreedyInference(Release(Config(3, attributes), classes, 2), constant=True)
    assert [constant.bound(each) for each in classes] == [7, 7, 5, 5, 8], "the first and the last may have needed more"


def test_arx_requires_what_its_doubles_say() -> None:
    settings = ArxSettings.of(Mechanism("arx", {"records_per_iteration": 0.01}), 3)
    assert settings.required(500, np.array([17.0, 4.0])).tolist() == [6, 4], "not 5: rounding demands one more; all 4"
    assert settings.first_required(500) == 5
    each = [left - floor(settings.later_limit(500, left) * left) for left in range(1, 501)]
    assert settings.required(500, np.arange(1.0, 501.0)).tolist() == each
    assert settings.most_required(500, 1, 500) == max(each)
    assert settings.least_required(500) == min(each[5:])
    assert ArxSettings.of(Mechanism("arx", {"iterations": 100}), 3) == settings


@pytest.mark.parametrize(
    "settings", [{}, {"iterations": 100, "records_per_iteration": 0.1}, {"records_per_iteration": 2}]
)
def test_arx_without_sensible_settings_is_refused(settings: dict[str, float]) -> None:
    tree = from_cuts([Decimal(0), Decimal(10)])
    release = Release(Config(3, (QuasiIdentifier("a", tree, 1),)), (), 5)
    with pytest.raises(Exception, match=r"arx needs|records_per_iteration must be"):
        inference_of(Mechanism("arx", settings), release)


def test_a_gs_factor_leaves_the_order_of_nested_states_only() -> None:
    tree = from_cuts([Decimal(0), Decimal(10)])
    release = Release(Config(3, (QuasiIdentifier("a", tree, 1),)), (), 5)
    assert isinstance(inference_of(Mechanism("arx", {"iterations": 10, "gs_factor": 0.5}), release), IterativeInference)


def test_nothing_is_inferred_when_nothing_is_known() -> None:
    for seed in range(20):
        release = release_of(*random_case(seed))
        attack = Attack(release, inference_of(Mechanism("unknown"), release))
        for target in all_targets(attack):
            left = Placements(attack.grid, target.problem, "any")
            assert left.solutions == attack.grid.volume(target.box) ** target.subject.size


def test_what_is_assumed_more_takes_more_away() -> None:
    chain = ["unknown", "iterative", "greedy", "paper"]
    for seed in range(examples(40)):
        release = release_of(*random_case(seed))
        counts = []
        for name in chain:
            attack = Attack(release, inference_of(Mechanism(name), release))
            targets = all_targets(attack)
            counts.append([None if t.dropped else Placements(attack.grid, t.problem, "any").solutions for t in targets])
        for less, more in pairwise(counts):
            assert all(a >= b for a, b in zip(less, more, strict=True) if a is not None and b is not None)
