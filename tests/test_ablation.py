from __future__ import annotations

from itertools import product
from math import log2, prod

import pytest

from tests.plausible import BruteForce, Cell, all_targets, attack_on, release_of
from tests.strategies import examples, random_case
from unblur.ablation import RULES, Ablation, Effect, ablate
from unblur.attacking import Attack, Target


def half_spans(attack: Attack, target: Target) -> list[tuple[int, list[tuple[int, int]]]]:
    subject = target.subject
    return [
        (attribute, spans)
        for attribute, (layer, rank) in enumerate(zip(subject.state, subject.segment, strict=True))
        if layer > attack.release.config.lattice.finest[attribute]
        and len(spans := attack.grid.children(attribute, layer, rank)) == 2
    ]


def has_both_halves(placement: dict[Cell, int], halves: list[tuple[int, list[tuple[int, int]]]]) -> bool:
    return all(
        any(first <= cell[attribute] < last for cell in placement)
        for attribute, spans in halves
        for first, last in spans
    )


def test_rules_are_what_they_take_away_one_by_one() -> None:
    seen = 0
    for seed in range(examples(60)):
        attack = attack_on(release_of(*random_case(seed)))
        for target in all_targets(attack):
            brute = BruteForce(attack, target)
            whole = BruteForce(attack, Target(target.subject, (), target.box, target.problem))
            if target.dropped or not brute.small or not whole.small or target.subject.size < attack.release.config.k:
                continue
            effects = ablate(attack, target, "any")
            left = sum(brute.weight(p, "any") for p in brute.placements())
            assert effects is not None
            sparse = sum(whole.weight(p, "any") for p in whole.placements())
            halves = half_spans(attack, target)
            free = sum(brute.weight(p, "any") for p in unbounded(brute))
            both = sum(brute.weight(p, "any") for p in unbounded(brute) if has_both_halves(p, halves))
            alone = sum(whole.weight(p, "any") for p in unbounded(whole) if has_both_halves(p, halves))
            label = attack.grid.volume(target.box) ** target.subject.size
            found = effects.effects
            assert found["overlap"] == approx(Effect(log2(label / free), log2(sparse / left)))
            assert found["halves"] == approx(Effect(log2(label / alone), 0))
            assert found["sparse"] == approx(Effect(log2(label / sparse), log2(both / left)))
            seen += bool(halves)
    assert seen > 50


def unbounded(brute: BruteForce) -> list[dict[Cell, int]]:
    size = brute.target.subject.size
    found = []
    for counts in product(range(size + 1), repeat=len(brute.cells)) if len(brute.cells) <= 4 else ():
        if sum(counts) == size:
            found.append({cell: n for cell, n in zip(brute.cells, counts, strict=True) if n})
    return found or list(compositions(brute))


def compositions(brute: BruteForce) -> list[dict[Cell, int]]:
    from tests.plausible import _compositions

    counts = _compositions(brute.target.subject.size, len(brute.cells))
    return [{cell: n for cell, n in zip(brute.cells, each, strict=True) if n} for each in counts]


def approx(effect: Effect) -> object:
    class Near:
        def __eq__(self, other: object) -> bool:
            assert isinstance(other, Effect)
            return other.alone == pytest.approx(effect.alone, abs=1e-9) and other.last == pytest.approx(
                effect.last, abs=1e-9
            )

    return Near()


def test_without_the_sum_all_sizes_count_that_the_other_rules_allow() -> None:
    """Two halves of one cell each with 10 points, k = 3: sizes 2, 3, 4 are possible, with 1 or 2 records in each."""
    from decimal import Decimal

    from unblur.config import Config, QuasiIdentifier
    from unblur.hierarchy import halves
    from unblur.release import EquivalenceClass, Release

    tree = halves(Decimal(0), Decimal(20), layers=2)
    release = Release(Config(3, (QuasiIdentifier("a", tree, 1),)), (EquivalenceClass((2,), (0,), 3),), 0)
    attack = attack_on(release)
    effects = ablate(attack, attack.target(0), "any")
    assert effects is not None
    ways = {size: sum(comb_ways(size, n) for n in (1, 2) if size - n in (1, 2)) for size in (2, 3, 4)}
    assert effects.effects["sum"].alone is None
    assert effects.effects["sum"].last == pytest.approx(log2(sum(ways.values()) / ways[3]))


def comb_ways(size: int, n: int) -> int:
    from math import comb

    return comb(size, n) * prod([10] * size)


def test_effects_of_several_classes_add_up() -> None:
    one = Ablation({rule: Effect(1.0, None) for rule in RULES})
    other = Ablation({rule: Effect(2.0, 0.5) for rule in RULES})
    assert Ablation.over([one, other]).effects["overlap"] == Effect(3.0, 0.5)
    assert Ablation.over([]).effects["sum"] == Effect(None, None)
