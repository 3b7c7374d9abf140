"""One class among the others, against listing all numbers of records per group."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import product

import pytest

from tests.joint_brute_force import AnyOrder, Everything, binary
from tests.plausible import compositions
from tests.test_joint_orders import equal, has_choices, solved
from unblur.joint.exact import weight_of
from unblur.joint.parts import Part
from unblur.joint.standing import standings
from unblur.release import Release
from unblur.together import Together

EVERYTHING = Everything(binary(3, 2), 10, 3)


@cache
def some_releases() -> list[Release]:
    without_ties = [release for release, _ in EVERYTHING.releases[::40]]
    ties = [release for release, _ in AnyOrder(equal(2, 3), 8, 3, "paper").releases if has_choices(release)]
    return without_ties + ties[:8]


def tables(part: Part, owners: list[int]) -> Iterator[tuple[int, ...]]:
    """All ways to fill the groups of some classes that keep the limits; nothing in the groups of others."""
    component = part.component
    filled = []
    for owner, size in enumerate(component.system.sizes):
        groups = part.groups_of(owner)
        filled.append(list(compositions(size, len(groups))) if owner in owners else [(0,) * len(groups)])
    places = [group for owner in range(len(filled)) for group in part.groups_of(owner)]
    for chosen in product(*filled):
        counts = dict(zip(places, [n for each in chosen for n in each], strict=True))

        def keeps(limits: object, counts: dict[int, int] = counts) -> bool:
            return all(sum(counts[g] for g in members) <= most for most, members in limits)  # type: ignore[attr-defined]

        if keeps(component.system.limits) and all(any(map(keeps, choice)) for choice in component.choices):
            yield tuple(counts[group] for group in range(len(places)))


def weight(part: Part, owners: list[int]) -> int:
    """The raw data sets of some classes that go along with each other."""
    system, groups = part.component.system, part.component.groups
    return sum(weight_of(system, groups, part.records, counts) for counts in tables(part, owners))


def test_what_the_others_leave_equals_listing() -> None:
    seen = choices = 0
    for release in some_releases():
        result = solved(release)
        found = {each.number: each for each in standings(result, None)}
        for part in result.parts:
            numbers = part.component.numbers
            if part.component.plain:
                assert not set(numbers) & set(found)
                continue
            everyone = list(range(len(numbers)))
            for owner, number in enumerate(numbers):
                others = weight(part, [each for each in everyone if each != owner])
                assert found[number].left == Fraction(weight(part, everyone), others)
                seen += 1
            choices += bool(part.component.choices)
    assert seen > 50 and choices > 3


@pytest.mark.parametrize("place", range(0, 600, 60))
def test_a_class_is_described_by_plain_numbers(place: int) -> None:
    release, _ = EVERYTHING.releases[place]
    result = solved(release)
    together = Together(result, None, tuple(standings(result, None)))
    rows = {row["id"]: row for row in together.to_dict()["classes"]}
    for each in together.standings:
        row = rows[each.number + 1 if each.number < len(release.classes) else None]
        part, owner = result.part_of(each.number)
        size = part.component.system.sizes[owner]
        assert row["factor"] >= 1 - 1e-9 and row["ratio"] >= row["factor"] - 1e-9
        assert row["certain_records"] == sum((part.certain(owner) or {}).values())
        assert row["impossible_cells"] == len(list(part.impossible(owner) or ()))
        assert sum(n * chance for cell in row["cells"] for n, chance in enumerate(cell["odds"])) == pytest.approx(size)
        assert all(sum(cell["odds"]) == pytest.approx(1) for cell in row["cells"])


def test_without_time_nothing_is_said() -> None:
    release = next(release for release in some_releases() if list(standings(solved(release), None)))
    assert list(standings(solved(release), -1.0)) == []


def test_odds_of_an_estimate_are_near_the_exact_ones() -> None:
    release = next(each for each in some_releases() if any(not part.component.plain for part in solved(each).parts))
    exact = {each.number: each for each in standings(solved(release), None)}
    guessed = {each.number: each for each in standings(solved(release, exact=False), None)}
    assert set(exact) == set(guessed)
    for number, each in guessed.items():
        assert each.draws and each.left is None and each.odds and exact[number].odds
        for (cell, odds), (same, true) in zip(each.odds, exact[number].odds or (), strict=True):
            assert cell == same
            assert abs(float(odds[0]) - float(true[0])) < 5 / each.draws**0.5
