from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from math import comb, prod

import numpy as np
import pytest

from tests.plausible import Known, all_targets, attack_on, release_of, truth_of
from tests.strategies import Record, examples, random_case
from unblur.attacking import Attack, Target
from unblur.config import Config, QuasiIdentifier
from unblur.counting import cpsat
from unblur.counting.cpsat import Assignment, Enumeration, enumerate_program, enumerate_targets
from unblur.counting.exact import ExactCount
from unblur.counting.weights import ANY, COMBINATIONS, DISTINCT
from unblur.hierarchy import Hierarchy, from_cuts, from_rows, halves
from unblur.lattice import Lattice
from unblur.program import Program, build_program
from unblur.release import EquivalenceClass, Release

Three = tuple[int, int, int]


def wide_trees(rng: np.random.Generator) -> list[Hierarchy]:
    """One or two trees with fan-outs 2 to 5 and leaves of unequal length."""
    trees: list[Hierarchy] = []
    for _ in range(int(rng.integers(1, 3))):
        fanout = int(rng.integers(2, 6))
        cuts = np.concatenate(([0], np.cumsum(rng.integers(1, 5, fanout * int(rng.integers(1, 3))))))
        trees.append(from_cuts([Decimal(int(cut)) for cut in cuts], fanouts=[fanout]))
    return trees


def wide_case(seed: int) -> tuple[Lattice, list[Record], int]:
    """A table with few records over wide trees."""
    rng = np.random.default_rng(seed)
    trees = wide_trees(rng)
    size, k = int(rng.integers(4, 14)), int(rng.integers(2, 5))
    columns = [rng.integers(0, tree.values, size).tolist() for tree in trees]
    return Lattice(trees, (1,) * len(trees)), list(zip(*columns, strict=True)), k


def made_up_release(seed: int) -> Release:
    """A release that no table gave: any classes of any size, possible or not."""
    rng = np.random.default_rng(seed)
    trees = wide_trees(rng)
    attributes = tuple(QuasiIdentifier(f"q{i}", tree, int(rng.integers(0, 2))) for i, tree in enumerate(trees))
    classes = {}
    for _ in range(int(rng.integers(1, 4))):
        state = tuple(int(rng.integers(each.finest_layer, each.hierarchy.height + 1)) for each in attributes)
        segment = tuple(int(rng.integers(tree.nodes(layer))) for tree, layer in zip(trees, state, strict=True))
        classes[state, segment] = EquivalenceClass(state, segment, int(rng.integers(1, 10)))
    return Release(Config(int(rng.integers(2, 5)), attributes), tuple(classes.values()), int(rng.integers(0, 10)))


def exact(target: Target) -> Three | None:
    """The three numbers by the exact engine, if there are few enough cells and placements to enumerate."""
    if not 1 < prod(b - a for a, b in target.box) <= 150 or target.dropped:
        return None
    cells, size = sum(free.cells for free in target.problem.free.values()), target.subject.size
    if cells and comb(cells + size - 1, size) > 50_000:
        return None
    combinations = ExactCount(target.problem, COMBINATIONS).count()
    if combinations > 3000:
        return None
    return combinations, ExactCount(target.problem, DISTINCT).count(), ExactCount(target.problem, ANY).count()


def numbers(found: Enumeration) -> Three:
    return found.combinations, found.solutions_distinct, found.solutions_any


def small_targets(attacks: Iterator[Attack]) -> Iterator[tuple[Attack, Target, Three]]:
    for attack in attacks:
        for target in all_targets(attack):
            if (expected := exact(target)) is not None:
                yield attack, target, expected


def traits(attack: Attack, target: Target) -> set[str]:
    """What makes a case special."""
    k, subject, lattice = attack.release.config.k, target.subject, attack.release.config.lattice
    keys = [lattice.key(state) for state in {each.state for each in attack.release.classes}]
    found = {f"fan-out {fanout}" for fanout in target.problem.fanouts}
    found |= {"outliers"} if subject.state == lattice.top else {"class"}
    found |= {"2k or more"} if target.problem.constrained and subject.size >= 2 * k else set()
    found |= {"slack"} if k < subject.size < 2 * k else set()
    found |= {"layer 0"} if 0 in lattice.finest else set()
    found |= {"categories"} if any(tree.kind == "categories" for tree in lattice.hierarchies) else set()
    found |= {"overlap"} if target.takers else set()
    found |= {"tied states"} if len(set(keys)) < len(keys) else set()
    return found


def agree(attacks: Iterator[Attack]) -> Counter[str]:
    """Enumerate every small target, compare with the exact engine, and count what kinds of cases there were."""
    seen: Counter[str] = Counter()
    for attack, target, expected in small_targets(attacks):
        found = enumerate_program(build_program(attack, target))
        assert found.complete
        assert numbers(found) == expected
        seen.update({"cases", "possible" if found.combinations else "impossible"} | traits(attack, target))
    return seen


def test_engines_agree_on_every_small_class_of_random_tables() -> None:
    seen = agree(attack_on(release_of(*random_case(seed))) for seed in range(examples(200)))
    assert seen["cases"] > 300
    rare = {trait for trait in ("outliers", "class", "slack", "layer 0", "categories", "overlap") if seen[trait] < 20}
    assert not rare, f"too few cases with {rare}"


def test_engines_agree_where_states_tie() -> None:
    seen = agree(attack_on(release_of(*random_case(3 * seed))) for seed in range(examples(25)))
    assert seen["tied states"] > 15


def test_engines_agree_on_wide_trees() -> None:
    seen = agree(attack_on(release_of(*wide_case(seed))) for seed in range(examples(150)))
    assert min(seen[f"fan-out {fanout}"] for fanout in (2, 3, 4, 5)) > 20


def test_engines_agree_on_releases_that_no_table_gave() -> None:
    seen = agree(attack_on(made_up_release(seed)) for seed in range(examples(200)))
    assert min(seen["2k or more"], seen["slack"], seen["layer 0"], seen["overlap"]) > 50
    assert seen["impossible"] > 20, "a class that cannot be must have no solution in either engine"


@pytest.mark.parametrize("more", [1, 2, None])
def test_engines_agree_under_other_bounds_and_orders(more: int | None) -> None:
    def attacks() -> Iterator[Attack]:
        for seed in range(examples(40)):
            release = release_of(*wide_case(seed))
            yield Attack(release, Known(None if more is None else release.config.k + more))

    assert agree(attacks())["cases"] > 20


def test_fewer_sparse_rows_give_the_same_solutions() -> None:
    tables = [random_case(seed) for seed in range(examples(30))] + [wide_case(seed) for seed in range(examples(30))]
    releases = [release_of(*table) for table in tables] + [made_up_release(seed) for seed in range(examples(30))]
    tried = 0
    for attack, target, expected in small_targets(map(attack_on, releases)):
        if expected[0] <= 500:
            every, fewer = build_program(attack, target), build_program(attack, target, sparse="children")
            assert found(every) == found(fewer)
            tried += 1
    assert tried > 100


def found(program: Program) -> set[Assignment]:
    solutions: list[Assignment] = []
    enumerate_program(program, visit=solutions.append)
    assert len(solutions) == len(set(solutions)), "each solution is visited once"
    return set(solutions)


def test_the_truth_is_among_the_solutions_and_every_solution_satisfies_every_row() -> None:
    for seed in range(examples(30)):
        lattice, records, k = wide_case(seed)
        attack = attack_on(release_of(lattice, records, k))
        for _, target, expected in small_targets(iter([attack])):
            if expected[0] > 300:
                continue
            program = build_program(attack, target)
            z = [0] * program.columns
            for cell, n in truth_of(attack, target, records).items():
                z[program.column(cell)] = n
            solutions = found(program)
            assert tuple(z) in solutions
            assert all(program.broken(each) == [] for each in solutions)


def attack_with_outliers(outliers: int, k: int = 10, leaves: int = 6) -> Attack:
    """An attack on outliers alone, spread over `leaves` leaves of 5 values below a root."""
    tree = from_cuts([Decimal(5 * cut) for cut in range(leaves + 1)])
    return attack_on(Release(Config(k, (QuasiIdentifier("age", tree, 1),)), (), outliers))


def outliers_program(outliers: int, k: int = 10, leaves: int = 6) -> Program:
    attack = attack_with_outliers(outliers, k, leaves)
    target = attack.outliers()
    assert target is not None
    return build_program(attack, target)


def test_the_weights_are_those_of_the_definition() -> None:
    # 2 records over 2 leaves of 5 values each: distinct C(10, 2), any 10^2, and (2,0), (1,1), (0,2).
    assert numbers(enumerate_program(outliers_program(2, leaves=2))) == (3, 45, 100)


def test_a_limit_by_number_gives_at_least_so_many() -> None:
    program = outliers_program(5)
    everything = enumerate_program(program)
    assert everything.complete and everything.combinations == 252
    part = enumerate_program(program, solutions=100)
    assert not part.complete and part.combinations == 100
    assert 0 < part.solutions_any < everything.solutions_any
    assert 0 < part.solutions_distinct < everything.solutions_distinct


def test_a_limit_that_is_just_enough_leaves_the_result_complete() -> None:
    program = outliers_program(5)
    assert enumerate_program(program, solutions=252).complete
    assert not enumerate_program(program, solutions=251).complete


def test_a_limit_of_nothing_finds_out_whether_there_is_anything() -> None:
    nothing = enumerate_program(outliers_program(5), solutions=0)
    assert (numbers(nothing), nothing.complete) == ((0, 0, 0), False)


def test_a_limit_by_time_gives_at_least_so_many() -> None:
    program = outliers_program(9, leaves=30)  # 163 million combinations
    part = enumerate_program(program, seconds=0.3)
    assert not part.complete
    assert part.combinations < 163_011_640
    assert part.seconds < 5


def test_an_impossible_class_has_no_solution_and_that_is_all() -> None:
    tree = halves(Decimal(0), Decimal(20), layers=2)
    release = Release(Config(3, (QuasiIdentifier("age", tree, 1),)), (EquivalenceClass((2,), (0,), 5),), 0)
    attack = attack_on(release)
    result = enumerate_program(build_program(attack, attack.target(0)))
    assert (numbers(result), result.complete) == ((0, 0, 0), True)


def test_more_records_than_values_leave_nothing_under_distinct_only() -> None:
    tree = from_rows([["m", "*"], ["f", "*"]])
    release = Release(Config(9, (QuasiIdentifier("sex", tree, 0),)), (), 3)
    attack = attack_on(release)
    target = attack.outliers()
    assert target is not None
    result = enumerate_program(build_program(attack, target))
    assert numbers(result) == (4, 0, 8)
    assert (result.solutions("distinct"), result.solutions("any")) == (0, 8)


def test_a_solution_that_comes_twice_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    single = cpsat._Tally.on_solution_callback

    def twice(tally: cpsat._Tally) -> None:
        single(tally)
        single(tally)

    monkeypatch.setattr(cpsat._Tally, "on_solution_callback", twice)
    result = enumerate_program(outliers_program(5), solutions=252)
    assert result.complete and result.combinations == 252


def test_ctrl_c_ends_an_enumeration_and_still_works_after_it() -> None:
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            enumerate_program(outliers_program(5), visit=lambda z: signal.raise_signal(signal.SIGINT))
    assert enumerate_program(outliers_program(5)).complete


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_many_targets_come_back_in_order(n_jobs: int) -> None:
    attack = attack_on(release_of(*wide_case(4)))
    listed = [(target, expected) for _, target, expected in small_targets(iter([attack]))] * 3
    listed.reverse()
    results = enumerate_targets(attack, [target for target, _ in listed], n_jobs=n_jobs)
    assert [numbers(each) for each in results] == [expected for _, expected in listed]
    assert len({expected for _, expected in listed}) > 1


def test_limits_hold_for_each_target() -> None:
    attack = attack_with_outliers(5)
    target = attack.outliers()
    assert target is not None
    results = enumerate_targets(attack, [target] * 3, solutions=7, sparse="children")
    assert [(each.combinations, each.complete) for each in results] == [(7, False)] * 3
