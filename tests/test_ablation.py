from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from math import comb, log2

import pytest

from tests.plausible import BruteForce, Cell, all_targets, attack_on, compositions, release_of
from tests.strategies import examples, random_case
from unblur.ablation import RULES, Ablation, Effect, ablate
from unblur.attacking import Attack, Target
from unblur.config import Config, QuasiIdentifier
from unblur.grid import Span
from unblur.hierarchy import halves
from unblur.release import EquivalenceClass, Release

Halves = list[tuple[int, Sequence[Span]]]


def half_spans(attack: Attack, target: Target) -> Halves:
    subject = target.subject
    return [
        (attribute, spans)
        for attribute, (layer, rank) in enumerate(zip(subject.state, subject.segment, strict=True))
        if layer > attack.release.config.lattice.finest[attribute]
        and len(spans := attack.grid.children(attribute, layer, rank)) == 2
    ]


def has_both_halves(placement: dict[Cell, int], halves: Halves) -> bool:
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
            spans = half_spans(attack, target)
            free = sum(brute.weight(p, "any") for p in unbounded(brute))
            both = sum(brute.weight(p, "any") for p in unbounded(brute) if has_both_halves(p, spans))
            alone = sum(whole.weight(p, "any") for p in unbounded(whole) if has_both_halves(p, spans))
            label = attack.grid.volume(target.box) ** target.subject.size
            found = effects.effects
            assert numbers(found["overlap"]) == pytest.approx((log2(label / free), log2(sparse / left)), abs=1e-9)
            assert numbers(found["halves"]) == pytest.approx((log2(label / alone), 0), abs=1e-9)
            assert numbers(found["sparse"]) == pytest.approx((log2(label / sparse), log2(both / left)), abs=1e-9)
            seen += bool(spans)
    assert seen > 50


def unbounded(brute: BruteForce) -> list[dict[Cell, int]]:
    counts = compositions(brute.target.subject.size, len(brute.cells))
    return [{cell: n for cell, n in zip(brute.cells, each, strict=True) if n} for each in counts]


def numbers(effect: Effect) -> tuple[float | None, float | None]:
    return effect.alone, effect.last


def test_without_the_sum_all_sizes_count_that_the_other_rules_allow() -> None:
    """Two halves of one cell each with 10 points, k = 3: sizes 2, 3, 4 are possible, with 1 or 2 records in each."""
    tree = halves(Decimal(0), Decimal(20), layers=2)
    release = Release(Config(3, (QuasiIdentifier("a", tree, 1),)), (EquivalenceClass((2,), (0,), 3),), 0)
    attack = attack_on(release)
    effects = ablate(attack, attack.target(0), "any")
    assert effects is not None
    ways = {size: sum(comb(size, n) * 10**size for n in (1, 2) if size - n in (1, 2)) for size in (2, 3, 4)}
    assert effects.effects["sum"].alone is None
    assert effects.effects["sum"].last == pytest.approx(log2(sum(ways.values()) / ways[3]))


def test_effects_of_several_classes_add_up() -> None:
    one = Ablation({rule: Effect(1.0, None) for rule in RULES})
    other = Ablation({rule: Effect(2.0, 0.5) for rule in RULES})
    assert Ablation.over([one, other]).effects["overlap"] == Effect(3.0, 0.5)
    assert Ablation.over([]).effects["sum"] == Effect(None, None)
