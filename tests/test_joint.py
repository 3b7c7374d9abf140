from __future__ import annotations

import json
import os
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from math import exp, log, prod

import numpy as np
import pytest
from hypothesis import given, settings

from tests.joint_brute_force import Everything, attributes_of, binary
from tests.plausible import attack_on, permuted, random_order, release_of, truth_of
from tests.strategies import Record, examples, histogram_of, random_case, recoding_cases
from tests.test_mechanisms import simulated, true_placements
from unblur.attacking import Attack, inference_of
from unblur.config import Config, Mechanism
from unblur.counting.placements import Placements
from unblur.counting.problem import Records
from unblur.hierarchy import halves
from unblur.joint import flow
from unblur.joint.estimating import Estimator
from unblur.joint.exact import solve, weight_of
from unblur.joint.front import OutOfReach
from unblur.joint.interval import beta_share, clopper_pearson
from unblur.joint.parts import Part
from unblur.joint.program import ANY_ORDER, Component, joint_program
from unblur.joint.proposing import propose
from unblur.joint.solving import JointResult, joint
from unblur.lattice import Lattice
from unblur.mechanisms import PaperInference
from unblur.recoding import local_recoding
from unblur.release import EquivalenceClass, Release

Cell = tuple[int, ...]
LONG = os.environ.get("UNBLUR_TESTS") == "long"


def on(release: Release) -> PaperInference:
    return PaperInference(release.config.lattice, release.config.k)


def solve_jointly(release: Release, records: Records = "any") -> JointResult:
    return joint(release, on(release), records=records)


def is_small(release: Release) -> bool:
    """Whether the exact engine is quick with a release."""
    components = joint_program(Attack(release, on(release))).components
    return all(component.plain or len(component.groups) <= 25 for component in components)


def shared_parts(result: JointResult) -> list[Part]:
    return [part for part in result.parts if part.solved]


REFERENCE = [
    ((3, 2), 8, 3, 689, 1.1832, 17.750),
    ((3, 2), 10, 3, 2856, 1.1694, 12.0),
    ((3, 2), 12, 4, 2051, 1.2498, 56.707),
    ((4, 2), 6, 2, 9318, 1.0156, 4.0),
]


@pytest.mark.parametrize(("heights", "n", "k", "number", "mean", "largest"), REFERENCE)
def test_every_count_equals_brute_force(
    heights: tuple[int, ...], n: int, k: int, number: int, mean: float, largest: float
) -> None:
    """All histograms of n records, anonymized: the reference values of the theory; a part of the releases, or all."""
    everything = Everything(binary(*heights), n, k)
    assert len(everything.releases) == number
    logs = []
    for release, rows in everything.releases[:: 1 if LONG else number // 60]:
        for records in ("any", "distinct"):  # the last is what the reference values are of
            result = solve_jointly(release, records)
            assert not result.relaxed and result.count is not None
            assert result.count.exact == sum(everything.weight(*row, records) for row in rows)
            assert prod(part.combinations.exact or 0 for part in result.parts if part.combinations) == len(rows)
            if records == "distinct":
                logs.append(result.product.log2 - result.count.log2)
    assert min(logs) >= 0
    assert 2 ** max(logs) <= largest * 1.0001
    if LONG:
        assert exp(log(2) * sum(logs) / len(logs)) == pytest.approx(mean, abs=1e-4)
        assert 2 ** max(logs) == pytest.approx(largest, rel=1e-4)


@pytest.mark.parametrize("fanouts", [[3], [2, 2]])
def test_uneven_trees_agree_with_brute_force(fanouts: list[int]) -> None:
    from unblur.hierarchy import from_cuts

    cuts = [Decimal(c) for c in (0, 3, 4, 9, 11)]
    trees = [from_cuts(cuts, fanouts=fanouts), halves(Decimal(0), Decimal(14), layers=2)]
    everything = Everything(Lattice(trees, (1, 1)), 7, 3)
    releases = everything.releases
    for release, rows in releases[:: 1 if LONG else max(1, len(releases) // 60)]:
        for records in ("any", "distinct"):
            count = solve_jointly(release, records).count
            assert count and count.exact == sum(everything.weight(*row, records) for row in rows)


def test_odds_and_certain_cells_equal_brute_force() -> None:
    everything = Everything(binary(3, 2), 10, 3)
    seen = certain = 0
    for release, rows in everything.releases[::40]:
        for records in ("any", "distinct"):
            result = solve_jointly(release, records)
            weights = [everything.weight(*row, records) for row in rows]
            for number in range(len(result.program.subjects)):
                home = number if number < len(release.classes) else -1
                least: Counter[Cell] = Counter()
                for place, cell in enumerate(everything.cells):
                    held = [counts[place] if homes[place] == home else 0 for counts, homes in rows]
                    odds = result.cell_odds(number, cell)
                    assert odds is not None
                    for n, chance in enumerate(odds):
                        found = sum(w for w, h in zip(weights, held, strict=True) if h == n)
                        assert chance == Fraction(found, sum(weights))
                    if min(held):
                        least[cell] = min(held)
                assert result.certain(number) == dict(least)
                certain += len(least)
                part, owner = result.part_of(number)
                alone = sum(
                    w
                    for w, (counts, homes) in zip(weights, rows, strict=True)
                    if any(n == 1 and h == home for n, h in zip(counts, homes, strict=True))
                )
                assert part.singling_out(owner) == Fraction(alone, sum(weights))
                if part.solved:
                    with pytest.MonkeyPatch.context() as patch:  # as if there were many states
                        patch.setattr(flow, "FEW_STATES", 0)
                        assert float(part.singling_out(owner) or 0) == pytest.approx(alone / sum(weights), abs=1e-12)
                        assert (part.singling_out(owner) == 1) == (alone == sum(weights))
                seen += part.solved is not None
    assert seen > 50 and certain > 50


@settings(max_examples=examples(150), deadline=None)
@given(recoding_cases())
def test_the_truth_is_always_feasible(case: tuple[Lattice, list[Record], int]) -> None:
    """Ties, raw values, fan-outs and all."""
    lattice, records, k = case
    attack = attack_on(release_of(lattice, records, k))
    program = joint_program(attack)
    assert program.allows([truth_of(attack, target, records) for target in program.subjects])


@pytest.mark.parametrize("seeded", [False, True])
def test_the_truth_is_feasible_under_every_mechanism(seeded: bool) -> None:
    shared = 0
    for seed in range(examples(100)):
        lattice, records, k = random_case(seed)
        required, choice = 1 + seed % 12, seed if seeded else None
        release = simulated(lattice, records, k, required, choice)
        for name in ["iterative"] if seeded else ["iterative", "greedy", "constant"]:
            settings_ = {"requirement": "constant"} if name == "constant" else {}
            inference = inference_of(Mechanism("greedy" if name == "constant" else name, settings_), release)
            attack = Attack(release, inference)
            program = joint_program(attack)
            truth = [placement for _, placement in true_placements(attack, lattice, records, k, required, choice)]
            assert program.allows(truth), (seed, name)
            shared += sum(not component.plain for component in program.components)
            assert program.relaxed or name == "iterative"
    assert shared > 10


def same_release(release: Release, rows: list[Record]) -> bool:
    """Whether a table gives the same rows: nobody sees in which order tied states made their classes."""
    again = local_recoding(histogram_of(release.config.lattice, rows), release.config.lattice, k=release.config.k)
    return (set(again.classes), again.suppressed) == (set(release.classes), release.outliers)


def test_samples_anonymized_again_give_the_same_release() -> None:
    shared = 0
    for seed in range(examples(40)):
        lattice, records, k = random_case(seed)
        release = release_of(lattice, records, k)
        if not is_small(release) or (result := solve_jointly(release)).relaxed:
            continue
        shared += bool(shared_parts(result))
        for table in result.sample(5, seed=seed):
            rows = [row for rows in table.rows for row in rows]
            assert len(rows) == len(records)
            assert same_release(release, rows)
    assert shared > 2


def test_samples_are_uniform() -> None:
    """Chi-squared over all histograms that give a release."""
    everything = Everything(binary(3, 2), 10, 3)
    release, rows = next(
        (r, rows) for r, rows in everything.releases if 12 < len(rows) < 40 and len(shared_parts(solve_jointly(r))) == 1
    )
    weights = {counts: everything.weight(counts, homes, "distinct") for counts, homes in rows}
    result, number = solve_jointly(release, "distinct"), 4000
    found = Counter(
        tuple(sum(each[cell] for each in table.placements) for cell in everything.cells)
        for table in result.sample(number)
    )
    assert set(found) <= set(weights)
    expected = {counts: number * weight / sum(weights.values()) for counts, weight in weights.items()}
    distance = sum((found[counts] - mean) ** 2 / mean for counts, mean in expected.items())
    assert distance < 2 * len(weights) + 20


def test_together_classes_say_at_least_as_much_as_alone() -> None:
    equal = less = 0
    for seed in range(examples(30)):
        lattice, records, k = random_case(seed)
        release = release_of(lattice, records, k)
        for counting in ("any", "distinct"):
            if not is_small(release) or not all(_class_counts(release, counting)):
                continue
            result = solve_jointly(release, counting)
            assert result.count is not None and result.count.exact is not None and result.product.exact is not None
            assert result.count.exact <= result.product.exact
            if all(part.component.plain for part in result.parts):
                assert result.count.exact == result.product.exact
                equal += 1
            less += result.count.exact < result.product.exact
    assert equal > 10 and less > 5


def _class_counts(release: Release, records: Records) -> list[int]:
    attack = attack_on(release)
    return [Placements(attack.grid, target.problem, records).solutions for target in attack.targets()]


def test_the_order_of_attributes_changes_nothing() -> None:
    for seed in range(examples(40)):
        lattice, records, k = random_case(seed)
        if any(len(tied) > 1 for tied in lattice.groups()) or not is_small(release_of(lattice, records, k)):
            continue
        order = random_order(len(lattice.hierarchies), seed)
        counts = [
            solve_jointly(release_of(*case, k)).count
            for case in ((lattice, records), permuted(lattice, records, order))
        ]
        assert counts[0] and counts[1] and counts[0].exact == counts[1].exact


def test_mechanisms_give_joint_counts_at_most_the_product() -> None:
    for seed in range(examples(30)):
        lattice, records, k = random_case(seed)
        release = simulated(lattice, records, k, 1 + seed % 7)
        for name in ("unknown", "iterative", "greedy"):
            attack = Attack(release, inference_of(Mechanism.named(name), release))
            for component in joint_program(attack).components:
                if component.linear and not component.plain:
                    try:
                        solved = solve(attack.grid, component.system, component.groups, "any", most_states=20_000)
                    except OutOfReach:
                        continue
                    classes = [Placements(attack.grid, target.problem, "any") for target in component.targets]
                    assert 0 < solved.solutions <= prod(each.solutions for each in classes)
                    assert name != "unknown"


def coupled() -> tuple[Attack, Component]:
    """A component of several classes, small enough for everything."""
    rng = np.random.default_rng(10)
    lattice = Lattice(
        [halves(Decimal(0), Decimal(n), layers=layers) for n, layers in ((20, 3), (24, 3), (14, 2))], (1, 1, 1)
    )
    rows = [tuple(int(x) for x in rng.integers(0, [20, 24, 14])) for _ in range(40)]
    attack = attack_on(release_of(lattice, rows, 4))
    program = joint_program(attack)
    assert not program.relaxed
    found = max(program.components, key=lambda each: len(each.numbers))
    assert len(found.numbers) > 2
    return attack, found


@pytest.mark.parametrize("records", ["any", "distinct"])
def test_a_simpler_system_times_the_share_kept_is_the_count(records: Records) -> None:
    attack, component = coupled()
    exact = solve(attack.grid, component.system, component.groups, records)
    simpler = propose(attack.grid, component, frozenset(), records, most_states=10_000, known={})
    classes = [Placements(attack.grid, target.problem, records).solutions for target in component.targets]
    assert exact.solutions < simpler.solutions <= prod(classes)
    drawn = simpler.sample(20_000, np.random.default_rng(1))
    kept = (~simpler.broken(drawn).any(axis=1)).mean()
    assert kept == pytest.approx(exact.solutions / simpler.solutions, abs=0.02)
    assert all(weight_of(component.system, component.groups, records, row) > 0 for row in drawn[:20].tolist())


def test_estimates_cover_the_truth() -> None:
    """However one stops, and however often one goes on: the interval misses at most one time in twenty."""
    attack, component = coupled()
    exact = solve(attack.grid, component.system, component.groups, "any").solutions
    misses, runs = 0, examples(200)
    for seed in range(runs):
        estimator = Estimator(attack.grid, component, "any", seed=seed, error=0.05)
        for precision in (0.3, 0.05):
            estimate = estimator.run(0.02, precision)
            assert estimate.at_least <= exact <= estimate.at_most
        low, high = estimate.interval
        misses += not low <= exact <= high
    assert misses <= 0.05 * runs + 3


def test_an_estimate_goes_on_where_it_stopped() -> None:
    release = coupled()[0].release
    result = joint(release, on(release), records="any", exact=False, budget=0.2)
    exact = solve_jointly(release).count
    assert not result.exact and result.count is None and result.range and exact
    assert result.range.low <= exact.log10 <= result.range.high
    assert result.range.at_least <= exact.log10 <= result.range.at_most
    further = result.continued(0.5)
    drawn = [[part.estimate.drawn for part in each.parts if part.estimate] for each in (result, further)]
    assert all(a < b for a, b in zip(*drawn, strict=True))
    tables = further.sample(3)
    assert all(same_release(release, [row for rows in table.rows for row in rows]) for table in tables)


def test_an_estimate_goes_on_another_day() -> None:
    """Written down and taken up again, the draws go on as if nothing had happened."""
    release = coupled()[0].release
    first = joint(release, on(release), records="any", exact=False, budget=0.2, seed=3)
    written = json.loads(json.dumps(first.draws))
    assert written and all(each["drawn"] for each in written)
    again = joint(release, on(release), records="any", exact=False, budget=0.3, seed=3, earlier=written)
    drawn = [[part.estimate.drawn for part in each.parts if part.estimate] for each in (first, again)]
    assert all(a < b for a, b in zip(*drawn, strict=True))
    counted = solve_jointly(release).count
    assert again.range and counted and again.range.low <= counted.log10 <= again.range.high
    other_seed = joint(release, on(release), records="any", exact=False, budget=0.2, seed=4, earlier=written)
    assert other_seed.draws[0]["seed"] == 4


def test_ties_are_said_to_be_open_where_they_matter() -> None:
    tree = halves(Decimal(0), Decimal(20), layers=2)
    lattice = Lattice([tree, tree], (1, 1))
    classes = (EquivalenceClass((1, 2), (0, 0), 3), EquivalenceClass((2, 1), (0, 1), 3))
    release = Release(Config(3, attributes_of(lattice)), classes, 0)
    program = joint_program(Attack(release, PaperInference(lattice, 3)))
    assert program.relaxed == (ANY_ORDER,)
    assert not joint_program(Attack(release, PaperInference(lattice, 3, "paper"))).relaxed


def test_what_is_out_of_reach_is_refused() -> None:
    attack, component = coupled()
    with pytest.raises(OutOfReach, match="states"):
        solve(attack.grid, component.system, component.groups, "any", most_states=10)


def test_clopper_pearson_is_exact() -> None:
    from math import comb

    def tail(n: int, p: float, least: int) -> float:
        return sum(comb(n, x) * p**x * (1 - p) ** (n - x) for x in range(least, n + 1))

    for n, x in [(1, 0), (1, 1), (7, 3), (50, 1), (200, 199), (300, 120)]:
        low, high = clopper_pearson(x, n, 0.1)
        assert low == 0 or 0.0499 < tail(n, low, x) <= 0.05
        assert high == 1 or 0.0499 < 1 - tail(n, high, x + 1) <= 0.05
    assert clopper_pearson(0, 0, 0.05) == (0.0, 1.0)
    assert beta_share(3, 5, 0.4) == pytest.approx(tail(7, 0.4, 3))
    low, high = clopper_pearson(10**6, 2 * 10**6, 0.05)
    assert 0.4992 < low < 0.5 < high < 0.5008


def test_draws_are_the_same_for_the_same_seed() -> None:
    release = coupled()[0].release
    first, again, other = (solve_jointly(release).sample(2, seed=seed) for seed in (1, 1, 2))
    assert first == again != other
