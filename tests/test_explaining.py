from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import product
from time import perf_counter

import numpy as np
import pytest

from tests.plausible import BruteForce, Cell, Known, attack_on, release_of
from tests.strategies import Record, examples, random_case
from unblur import explaining
from unblur.attacking import Attack
from unblur.cli.explain import describe, find_class
from unblur.config import Config, QuasiIdentifier
from unblur.counting.problem import Records
from unblur.errors import ConfigError
from unblur.explaining import explain
from unblur.explanations import Child, Entry, Explanation, Odds, Split
from unblur.hierarchy import from_cuts, from_rows, halves
from unblur.lattice import Lattice
from unblur.release import EquivalenceClass, Release
from unblur.whereabouts import spread
from unblur.words import KEPT

BOTH: list[Records] = ["any", "distinct"]
TREE = halves(Decimal(0), Decimal(40), layers=3)
EARLIER = EquivalenceClass((1, 1), (0, 0), 4)
LATER = EquivalenceClass((2, 2), (0, 0), 4)


@dataclass
class Case:
    """A class, or the outliers, explained and with all its placements."""

    attack: Attack
    number: int | None
    records: Records

    @cached_property
    def brute(self) -> BruteForce:
        target = self.attack.outliers() if self.number is None else self.attack.target(self.number)
        assert target is not None
        return BruteForce(self.attack, target)

    @cached_property
    def explanation(self) -> Explanation:
        return explain(self.attack, self.number, records=self.records)

    @cached_property
    def placements(self) -> list[tuple[dict[Cell, int], Fraction]]:
        """Every placement with its probability."""
        ways = [(placement, self.brute.weight(placement, self.records)) for placement in self.brute.placements()]
        total = sum(weight for _, weight in ways)
        return [(placement, Fraction(weight, total)) for placement, weight in ways if weight]

    def held(self, cells: set[Cell]) -> dict[int, Fraction]:
        """The probability of each number of records that some cells may hold together."""
        chances: dict[int, Fraction] = {}
        for placement, chance in self.placements:
            n = sum(count for cell, count in placement.items() if cell in cells)
            chances[n] = chances.get(n, Fraction(0)) + chance
        return chances

    def odds(self, cells: set[Cell]) -> Odds:
        chances = self.held(cells)
        nobody, one = chances.get(0, Fraction(0)), chances.get(1, Fraction(0))
        return Odds(nobody, one, 1 - nobody - one, sum((n * p for n, p in chances.items()), Fraction(0)), min(chances))

    def children(self, attribute: int) -> dict[str, set[int]]:
        """The children of an attribute's node by label: their positions on the axis; itself, if it has none."""
        grid, lattice = self.attack.grid, self.attack.release.config.lattice
        subject, tree, finest = self.brute.target.subject, lattice.hierarchies[attribute], lattice.finest[attribute]
        layer, rank = subject.state[attribute], subject.segment[attribute]
        if layer == finest:
            return {tree.label(layer, rank): set(range(*self.brute.target.box[attribute]))}
        place = {int(position): node for node, position in enumerate(grid.positions(attribute))}
        found = {}
        for first, last in grid.children(attribute, layer, rank):
            (child,) = tree.climb(np.array([place[first]]), finest, layer - 1)
            found[tree.label(layer - 1, int(child))] = set(range(first, last))
        return found

    def taken_by(self, cells: set[Cell]) -> tuple[int, ...]:
        boxes = self.attack.boxes
        return tuple(
            number + 1
            for number in self.brute.target.takers
            if any(all(a <= x < b for x, (a, b) in zip(cell, boxes[number], strict=True)) for cell in cells)
        )

    def check_entry(self, entry: Entry, cells: set[Cell]) -> None:
        free = cells & set(self.brute.cells)
        odds = self.odds(cells)
        assert entry.odds == odds
        assert (entry.cells, entry.free, entry.taken_by) == (len(cells), len(free), self.taken_by(cells))
        assert entry.verdict == ("impossible" if odds.nobody == 1 else "certain" if odds.nobody == 0 else "possible")


def cases(seeds: range, records: Records) -> Iterator[Case]:
    """Small classes and outliers that fit: of random releases, and of patchworks that leave little room."""
    for seed in seeds:
        for given in (release_of(*random_case(seed)), *(patchwork(3 * seed + i) for i in range(3))):
            attack = attack_on(given)
            for number in [*range(len(given.classes)), *([None] if given.outliers else [])]:
                case = Case(attack, number, records)
                small = case.brute.small and not case.brute.target.dropped
                if small and any(case.brute.weight(p, records) for p in case.brute.placements()):
                    yield case


def patchwork(seed: int) -> Release:
    """A class of 2 x 2, 3 x 2 or 4 x 2 cells, some of them taken, with almost as many records as it can have."""
    rng = np.random.default_rng(seed)
    k, leaves = int(rng.integers(3, 5)), 2 + seed % 3
    tree = from_cuts([Decimal(10 * i) for i in range(leaves + 1)], fanouts=[2] if leaves == 4 else [])
    attributes = (QuasiIdentifier("age", tree, 1), QuasiIdentifier("weight", TREE, 1))
    taken = [(a, b) for a in range(leaves) for b in range(2) if rng.random() < 0.35]
    classes = [EquivalenceClass((1, 1), cell, k) for cell in taken]
    size = 2 * k - 2 - int(rng.integers(2))
    return Release(Config(k, attributes), (*classes, EquivalenceClass((tree.height, 2), (0, 0), size)), 0)


def labelled(entry: Entry) -> tuple[str, ...]:
    return tuple(entry.labels.values())


@pytest.mark.parametrize("records", BOTH)
def test_every_cell_has_the_odds_and_reasons_that_trying_all_placements_gives(records: Records) -> None:
    verdicts: Counter[str] = Counter()
    for case in cases(range(examples(40)), records):
        found, grid = case.explanation, case.attack.grid
        if found.by_block:
            continue
        assert found.cells is not None
        entries = {labelled(entry): entry for entry in found.cells}
        cells = list(grid.cells(case.brute.target.box))
        assert len(entries) == len(cells) == found.all_cells
        for cell in cells:
            case.check_entry(entries[grid.labels(cell)], {cell})
        verdicts.update(
            "ruled out" if entry.verdict == "impossible" and entry.free else entry.verdict for entry in found.cells
        )
        assert found.free_cells == len(case.brute.cells)
        alone = sum(chance for placement, chance in case.placements if 1 in placement.values())
        assert found.singling_out == (None if grid.has_points else alone)
        assert bool(found.raw_numbers) == grid.has_points
    assert min(verdicts[each] for each in ("impossible", "ruled out", "certain", "possible")) > 10, verdicts


@pytest.mark.parametrize("records", BOTH)
def test_every_block_has_the_odds_that_trying_all_placements_gives(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explaining, "MOST_CELLS", 0)
    tried: Counter[str] = Counter()
    for case in cases(range(examples(30)), records):
        found, box = case.explanation, case.brute.target.box
        assert found.by_block and found.cells is not None
        if not case.brute.target.problem.fanouts:
            (whole,) = found.cells
            assert whole.labels == found.labels
            case.check_entry(whole, set(case.attack.grid.cells(box)))
            continue
        children = [case.children(attribute) for attribute in range(len(box))]
        entries = {labelled(entry): entry for entry in found.cells}
        assert set(entries) == set(product(*children))
        for labels, entry in entries.items():
            spans = [each[label] for each, label in zip(children, labels, strict=True)]
            case.check_entry(entry, set(product(*spans)))
            tried[entry.verdict] += 1
    assert min(tried.values()) > 10, tried


@pytest.mark.parametrize("records", BOTH)
def test_children_hold_as_many_records_as_some_placement_gives_them(records: Records) -> None:
    tried: Counter[str] = Counter()
    for case in cases(range(examples(60)), records):
        names = [each.name for each in case.attack.release.config.quasi_identifiers]
        finest = case.attack.release.config.lattice.finest
        state = case.brute.target.subject.state
        assert [split.attribute for split in case.explanation.children] == [
            name for name, layer, low in zip(names, state, finest, strict=True) if layer > low
        ]
        for split in case.explanation.children:
            attribute = names.index(split.attribute)
            expected = case.children(attribute)
            assert [child.label for child in split.children] == list(expected)
            assert split.bounded == case.brute.target.problem.constrained
            for child in split.children:
                held = case.held({cell for cell in case.brute.cells if cell[attribute] in expected[child.label]})
                assert (child.least, child.most) == (min(held), max(held))
                assert child.expected == sum(n * chance for n, chance in held.items())
                tried["bounded" if split.bounded else "free"] += 1
    assert min(tried["bounded"], tried["free"]) > 50


def test_where_counting_would_take_too_long_the_rule_alone_bounds_the_children(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explaining, "MOST_WORK", 0)
    tight: Counter[bool] = Counter()
    for case in cases(range(examples(40)), "any"):
        found, names = case.explanation, [each.name for each in case.attack.release.config.quasi_identifiers]
        for split in found.children:
            assert split.bounded and found.cells is None
            attribute = names.index(split.attribute)
            for child, positions in zip(split.children, case.children(attribute).values(), strict=True):
                held = case.held({cell for cell in case.brute.cells if cell[attribute] in positions})
                assert child.least <= min(held) <= max(held) <= child.most
                assert child.expected is None or child.most == 0
                tight[(child.least, child.most) == (min(held), max(held))] += 1
    assert tight[True] > tight[False] > 0


def test_takers_are_the_earlier_classes_with_their_share_of_the_cells() -> None:
    tried = 0
    for case in cases(range(examples(30)), "any"):
        cells = list(case.attack.grid.cells(case.brute.target.box))
        shares = Counter(number for cell in cells for number in case.taken_by({cell}))
        assert [(taker.id, taker.cells) for taker in case.explanation.takers] == sorted(shares.items())
        for taker in case.explanation.takers:
            each = case.attack.release.classes[taker.id - 1]
            assert tuple(taker.labels.values()) == case.attack.release.labels(each)
            assert taker.size == each.size
            tried += 1
    assert tried > 50


def test_entries_stand_in_order_the_certain_first_then_the_likeliest() -> None:
    for case in cases(range(20), "any"):
        assert case.explanation.cells is not None
        least = [entry.odds.least for entry in case.explanation.cells]
        assert least == sorted(least, reverse=True)
        nobody = [entry.odds.nobody for entry in case.explanation.cells if not entry.odds.least]
        assert nobody == sorted(nobody)


@pytest.mark.parametrize("records", BOTH)
def test_rounded_odds_are_those_that_are_counted(records: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = 0
    for case in cases(range(30), records):
        if case.brute.target.problem.constrained:
            continue
        exact = case.explanation
        monkeypatch.setattr(explaining, "MOST_EXACT", 0)
        rounded = explain(case.attack, case.number, records=records)
        monkeypatch.undo()
        assert exact.cells is not None and rounded.cells is not None
        known = {labelled(entry): entry.odds for entry in exact.cells}
        for entry in rounded.cells:
            odds = known[labelled(entry)]
            assert (entry.odds.least, entry.odds.expected) == (odds.least, odds.expected)
            for mine, right in zip(
                (entry.odds.nobody, entry.odds.one, entry.odds.more), (odds.nobody, odds.one, odds.more), strict=True
            ):
                assert float(mine) == pytest.approx(float(right), abs=1e-12)
            tried += 1
    assert tried > 100


def release(*classes: EquivalenceClass, k: int = 3, outliers: int = 0, missing: int = 0) -> Release:
    attributes = tuple(QuasiIdentifier(name, TREE, 1) for name in ("age", "weight"))
    return Release(Config(k, attributes, made={"missing": missing}), classes, outliers)


def told(attack: Attack, number: int | None, *, records: Records = "any", cells: int = 20) -> str:
    """The words of an explanation, on one line."""
    text = describe(explain(attack, number, records=records), cells=cells)
    assert max(map(len, text.splitlines())) <= 100
    return " ".join(text.split())


def test_a_class_that_is_pinned_down_is_told_with_its_reasons() -> None:
    """Of 2 x 2 cells one is taken; 4 records, at most 2 in each half: 2 in each of the cells beside it."""
    text = told(attack_on(release(EARLIER, LATER)), 1)
    for sentence in [
        "Class 2: 4 records, published as age [0, 20[, weight [0, 20[.",
        "4 records anywhere in 4 cells (400 possible values), 2.6 x 10^10 ways to fill in the raw data.",
        "What is left: 6.0 x 10^8 ways, 1 in 43 (5.4 bits less; each bit halves what is left).",
        "1 of the 4 cells is empty. A class takes everybody who is in its cells, and this one was made before: "
        "- class 1 covers 1 cell: 4 records in age [0, 10[, weight [0, 10[",
        "Had 3 or more of these records shared a narrower label, they would have been published under it. "
        "So, of the 4 records: - age: exactly 2 in each of [0, 10[ and [10, 20[ "
        "- weight: exactly 2 in each of [0, 10[ and [10, 20[",
        "1 more cell is empty though no class was there: these limits leave no room (age [10, 20[, weight [10, 20[).",
        "Exactly 2 records are certainly in age [0, 10[, weight [10, 20[. "
        "Exactly 2 records are certainly in age [10, 20[, weight [0, 10[.",
        "age weight nobody one two or more expected [0, 10[ [10, 20[ 0% 0% 100% 2 [10, 20[ [0, 10[ 0% 0% 100% 2",
        "Chance that some cell holds exactly one record (that record is singled out): 0%.",
    ]:
        assert sentence in text
    assert text.count("- age: exactly 2") == 1


def test_a_class_that_nobody_came_before_is_told_by_chances() -> None:
    """Three records, at most 2 in each half: 6 of the 8 ways to choose halves are left."""
    text = told(attack_on(release(EquivalenceClass((2, 1), (0, 0), 3))), 0)
    assert "What is left: 6.0 x 10^6 ways, 75% of them (0.4 bits less; each bit halves what is left)." in text
    assert "age: 1 to 2 (on average 1.50) in each of [0, 10[ and [10, 20[" in text
    assert "age nobody one two or more expected [0, 10[ 0% 50% 50% 1.50 [10, 20[ 0% 50% 50% 1.50" in text
    assert "singled out): 100%." in text
    assert "taken" not in text and "empty" not in text


def test_rows_beyond_those_asked_for_are_summed_up() -> None:
    text = told(attack_on(release(EARLIER, EquivalenceClass((2, 2), (0, 0), 3))), 1, cells=1)
    assert "expected [0, 10[ [10, 20[ " in text and "[10, 20[ [0, 10[ " not in text
    assert "and 1 more cell with about the same chances and 1 more cell: the chance that somebody is there is" in text


def test_of_many_rows_that_are_alike_only_some_are_listed() -> None:
    given = attack_on(release(EquivalenceClass((3, 3), (0, 0), 3)))
    short, long = (told(given, 0, cells=cells) for cells in (15, 16))
    assert short.count("[0, 10[ [") == 3
    assert "and 13 more cells with about the same chances" in short
    assert long.count("[0, 10[ [") == 4
    assert "about the same chances" not in long


def test_a_single_cell_says_all_there_is_to_say() -> None:
    given = attack_on(release(EARLIER))
    found = explain(given, 0, records="any")
    assert found.all_cells == found.ratio == 1
    assert found.bits == found.singling_out == 0
    assert found.cells is not None
    assert found.cells[0].odds == Odds(Fraction(0), Fraction(0), Fraction(1), Fraction(4), 4)
    text = told(given, 0)
    assert "The label says all there is to say: 4 records in a single cell (100 possible values)" in text
    assert "Why" not in text


def test_nothing_is_said_to_be_taken_away_where_nothing_is() -> None:
    text = told(Attack(release(LATER), Known(None)), 0)
    assert "What is left: all of it. Nothing was taken away" in text
    assert "What is known: - How the records spread inside their label is not known" in text


def test_an_infeasible_class_does_not_fit_and_has_no_odds() -> None:
    taker, rest = EquivalenceClass((1, 2), (0, 0), 4), EquivalenceClass((2, 2), (0, 0), 3)
    given = attack_on(release(taker, rest))
    found = explain(given, 1, records="any")
    assert not found.fits
    assert (found.ratio, found.bits, found.cells, found.children, found.singling_out) == (None, None, None, (), None)
    text = told(given, 1)
    assert "What is left: nothing. No way to fill in the raw data leads to this release" in text
    assert "class 1 covers 2 cells" in text
    assert "The 3 records cannot spread over the 2 cells that are left so that this holds." in text


def test_a_single_cell_above_the_finest_layer_that_cannot_be_does_not_fit() -> None:
    """A class of y alone must not be published as Y, and one of x not as X when x was there before."""
    tree = from_rows([["a", "x", "X", "*"], ["b", "y", "Y", "*"]])
    config = Config(3, tuple(QuasiIdentifier(name, tree, 1) for name in ("age", "weight")))
    at = [EquivalenceClass(state, segment, 4) for state, segment in (((1, 1), (0, 0)), ((2, 1), (0, 0)))]
    given = attack_on(Release(config, (*at, EquivalenceClass((2, 2), (1, 1), 3)), 0))
    assert [explain(given, number, records="any").fits for number in range(3)] == [True, False, False]
    for number, reason in [
        (1, "Its only cell is empty. A class takes everybody who is in its cells, and this one was made before"),
        (2, "The 3 records cannot spread so that this holds."),
    ]:
        text = told(given, number)
        assert "What is left: nothing. No way to fill in the raw data leads to this release" in text
        assert reason in text
        assert "nothing was taken away" not in text
        assert "1 cells" not in text


def test_every_class_that_does_not_fit_says_so() -> None:
    """Random classes of random sizes: most cannot be."""
    tried: Counter[bool] = Counter()
    for seed in range(60):
        rng = np.random.default_rng(seed)
        states = sorted({(int(a), int(b)) for a, b in rng.integers(1, 4, size=(4, 2))})
        classes = [EquivalenceClass(state, (0, 0), int(rng.integers(3, 9))) for state in states]
        given = attack_on(release(*classes))
        for number, records in product(range(len(classes)), BOTH):
            fits = explain(given, number, records=records).fits
            assert (
                "No way to fill in the raw data leads to this release" in told(given, number, records=records)
            ) != fits
            tried[fits] += 1
    assert min(tried.values()) > 50, tried


def test_a_class_without_a_free_cell_does_not_fit() -> None:
    halves_of_it = [EquivalenceClass((1, 2), (rank, 0), 4) for rank in (0, 1)]
    found = explain(Attack(release(*halves_of_it, LATER), Known(None)), 2, records="any")
    assert (found.fits, found.free_cells) == (False, 0)
    text = " ".join(describe(found).split())
    assert "All 4 cells are empty" in text
    assert "cannot spread" not in text


def test_more_distinct_records_than_values_do_not_fit() -> None:
    text = told(attack_on(release(EquivalenceClass((1, 1), (0, 0), 101))), 0, records="distinct")
    assert "This does not fit. There are 100 possible values for 101 records, so some are equal" in text


def test_a_class_below_k_is_remarked_on() -> None:
    assert "That is fewer than k = 3" in told(attack_on(release(EquivalenceClass((2, 1), (0, 0), 2))), 0)


def test_raw_numbers_are_why_nobody_is_said_to_be_alone() -> None:
    """Four records are not too many to count, but a cell is a single age."""
    attributes = (QuasiIdentifier("age", TREE, 0), QuasiIdentifier("weight", TREE, 1))
    given = attack_on(Release(Config(3, attributes), (EquivalenceClass((1, 2), (0, 0), 4),), 0))
    found = explain(given, 0, records="any")
    assert (found.singling_out, found.raw_numbers) == (None, ("age",))
    text = told(given, 0)
    assert "singled out): not computed, because the narrowest labels of 'age' are single numbers" in text
    assert "too long" not in text


def test_raw_categories_are_cells_like_any_other() -> None:
    tree = from_rows([["a", "x", "*"], ["b", "x", "*"]])
    given = attack_on(Release(Config(3, (QuasiIdentifier("sex", tree, 0),)), (EquivalenceClass((1,), (0,), 4),), 0))
    found = explain(given, 0, records="any")
    assert found.singling_out == 0
    assert found.raw_numbers == ()


def test_raw_values_are_not_listed_if_they_are_too_many() -> None:
    tree = from_cuts([Decimal(0), Decimal(10**8)])
    given = Attack(Release(Config(3, (QuasiIdentifier("income", tree, 0),)), (), 3), Known(None))
    start = perf_counter()
    assert explain(given, None, records="any").children == ()
    assert perf_counter() - start < 5


def test_outliers_are_told_by_what_is_free() -> None:
    """One half of the ages is taken as a whole: both outliers are in the other."""
    given = attack_on(release(EquivalenceClass((2, 3), (0, 0), 4), outliers=2))
    found = explain(given, None, records="any")
    assert (found.id, found.all_cells, found.free_cells) == (None, 16, 8)
    assert found.ratio == 4
    assert [(child.least, child.most) for child in found.children[0].children] == [(0, 0), (2, 2)]
    text = told(given, None)
    assert "The outliers: 2 records, suppressed: published as * everywhere." in text
    assert "made before: - class 1 covers 8 cells: 4 records in age [0, 20[ - These are" in text
    assert "age: none in [0, 20[ and all in [20, 40[" in text
    assert "These are fewer than 3 records, so no rule says how they spread." in text
    assert "Nobody is in" not in text, "the list of earlier classes says it"


def test_outliers_in_many_cells_are_told_by_attribute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explaining, "MOST_CELLS", 15)
    text = told(attack_on(release(EquivalenceClass((2, 3), (0, 0), 4), outliers=2)), None)
    assert "anywhere in the 8 cells that are left. That is: - age: none in [0, 20[ and all in [20, 40[" in text


def test_nothing_is_said_about_outliers_that_were_suppressed_for_missing_values() -> None:
    given = attack_on(release(EARLIER, LATER, outliers=2, missing=1))
    with pytest.raises(ConfigError, match=r"nothing can be said about the outliers: 1 of them .* missing values"):
        explain(given, None, records="any")
    assert explain(given, 1, records="any").fits


def test_a_single_record_is_told_by_chances_not_averages() -> None:
    text = told(attack_on(release(EquivalenceClass((2, 3), (0, 0), 4), outliers=1)), None)
    assert "- age: none in [0, 20[ and certainly in [20, 40[" in text
    assert "- weight: a chance of 50% in each of [0, 20[ and [20, 40[" in text
    assert "No rule says more about a single record." in text
    assert "average" not in text and "records" not in text.split("Where the record is")[1]


@pytest.mark.parametrize("chosen", ["0", "56", "-1", "1.0", "", "one", "9" * 5000, "٣", "²", "1_0", "x" * 5000])
def test_an_id_that_no_class_has_is_an_error_of_one_line(chosen: str) -> None:
    many = release(*(EquivalenceClass((1, 1), (n // 4 % 4, n % 4), 3) for n in range(55)), outliers=1)
    with pytest.raises(ConfigError, match=r"a class is a number from 1 to 55, or outliers$") as error:
        find_class(chosen, many)
    assert len(str(error.value)) < 100
    assert "\n" not in str(error.value)


def test_the_message_names_the_ids_that_there_are() -> None:
    for given, known in [
        (release(outliers=3), "there are no classes, only outliers"),
        (release(EARLIER), "the only class is 1"),
        (release(EARLIER, outliers=3), "the only class is 1, or outliers"),
        (release(EARLIER, LATER), "a class is a number from 1 to 2"),
    ]:
        with pytest.raises(ConfigError, match=f"--class '7': {known}$"):
            find_class("7", given)


def test_a_class_is_found_by_its_id() -> None:
    given = release(EARLIER, LATER)
    assert [find_class(text, given) for text in ("1", " 2 ", "002", "0" * 5000 + "1", "Outliers")] == [0, 1, 1, 0, None]


def test_without_outliers_there_are_none_to_explain() -> None:
    with pytest.raises(ConfigError, match="no outliers"):
        explain(attack_on(release(EARLIER)), None, records="any")


def test_all_of_it_is_said_to_be_left_only_as_far_as_it_was_computed() -> None:
    given = attack_on(release(EquivalenceClass((2, 1), (0, 0), 4)))
    text = told(Attack(given.release, given.inference, effort=0), 0)
    assert "What is left: all of it, as far as this was computed. The true number may be smaller still" in text
    assert "the rule for 'age' was left out" in text
    assert "Nothing was taken away" not in text


def test_a_rule_that_was_left_out_is_named() -> None:
    given = attack_on(release(EARLIER, LATER))
    hasty = Attack(given.release, given.inference, effort=0)
    found = explain(hasty, 1, records="any")
    assert found.upper_bound
    assert set(found.dropped) == {"age", "weight"}
    assert found.plausible.exact == 300**4
    assert [split.bounded for split in found.children] == [False, False]
    text = told(hasty, 1)
    assert "The true number may be smaller still: the rules for 'age' and 'weight' were left out" in text


def test_classes_with_a_rule_left_out_are_explained_soundly() -> None:
    """Seed 172 has an attribute that is too wide: its rule is dropped, the others are kept."""
    given = attack_on(release_of(*random_case(172)))
    numbers = [number for number in range(len(given.release.classes)) if given.target(number).dropped]
    everyone = [*numbers, *([None] if (outliers := given.outliers()) and outliers.dropped else [])]
    assert everyone
    for number in everyone:
        found = explain(given, number, records="any")
        assert found.upper_bound and found.fits
        assert not {split.attribute for split in found.children if split.bounded} & set(found.dropped)
        if found.cells is not None:
            assert sum(entry.odds.expected for entry in found.cells) == found.size
        assert "left out, here and in all chances below" in " ".join(describe(found).split())


def test_a_grid_of_sixteen_to_the_sixth_cells_is_explained_by_blocks_at_once() -> None:
    lattice = Lattice([halves(Decimal(0), Decimal(160), layers=5)] * 6, (1,) * 6)
    _, records, _ = random_case(5)
    points: list[Record] = [tuple((a * 37 + i * b) % 160 for i in range(6)) for a, b, *_ in records]
    given = attack_on(release_of(lattice, points, 3))
    start = perf_counter()
    for number in [*range(len(given.release.classes)), None]:
        found = explain(given, number, records="any")
        assert found.cells is not None
        assert found.by_block == (found.all_cells > explaining.MOST_CELLS)
        assert sum(entry.cells for entry in found.cells) == found.all_cells
        assert sum(entry.free for entry in found.cells) == found.free_cells
        assert sum(entry.odds.expected for entry in found.cells) == found.size
        for split in found.children:
            assert sum(child.expected or 0 for child in split.children) == found.size
        told(given, number)
    assert perf_counter() - start < 30


def test_very_many_records_are_explained_by_their_logarithms() -> None:
    """A hundred thousand records, no rule: numbers of half a million digits are neither made nor printed."""
    given = Attack(release(EARLIER, EquivalenceClass((2, 2), (0, 0), 100_000)), Known(None))
    start = perf_counter()
    for records, number in product(BOTH, (0, 1)):
        found = explain(given, number, records=records)
        assert found.fits == (records == "any" or number == 0)
    found = explain(given, 1, records="any")
    assert found.ratio is None and found.bits == pytest.approx(100_000 * np.log2(4 / 3))
    assert found.cells is not None
    assert [float(entry.odds.nobody) for entry in found.cells] == pytest.approx([0, 0, 0, 1])
    assert all(isinstance(entry.odds.nobody, float) for entry in found.cells if entry.free)
    text = told(given, 1)
    assert "1 in 7.5 x 10^12493" in text
    assert "[0, 10[ [10, 20[ < 0.1% < 0.1% > 99.9% 33,333.3" in text, "rounded, so never 0% or 100%"
    assert "singled out): not computed, because it would take too long." in text
    assert perf_counter() - start < 20


def test_what_is_certain_of_very_many_records_is_not_rounded() -> None:
    takers = [EquivalenceClass((1, 1), cell, 4) for cell in ((0, 0), (0, 1), (1, 0))]
    given = Attack(release(*takers, EquivalenceClass((2, 2), (0, 0), 100_000)), Known(None))
    assert "[10, 20[ [10, 20[ 0% 0% 100% 100,000" in told(given, 3)


def wide(*taken: int, size: int = 3) -> Attack:
    """A class of eight ages, some of which were taken."""
    tree = from_cuts([Decimal(10 * i) for i in range(9)])
    config = Config(3, (QuasiIdentifier("age", tree, 1), QuasiIdentifier("weight", TREE, 1)))
    classes = [EquivalenceClass((1, 1), (rank, 0), 3) for rank in taken]
    return attack_on(Release(config, (*classes, EquivalenceClass((2, 1), (0, 0), size)), 0))


def test_children_that_may_hold_as_many_are_told_together() -> None:
    text = told(wide(7), 1)
    assert "- age: 0 to 2 (on average 0.43) in each of 7 parts and none in [70, 80[" in text


def test_of_many_children_that_differ_the_likeliest_are_named() -> None:
    children = tuple(Child(f"part {n}", 0, n, Fraction(n, 2)) for n in range(9))
    words = spread(Split("age", True, children), 12).replace(KEPT, " ")
    assert words.startswith("age: 0 to 8 (on average 4) in part 8, 0 to 7 (on average 3.50) in part 7, 0 to 6")
    assert words.endswith(" in part 5 and at most 4 in each of the 5 others")


def test_of_many_takers_those_of_most_cells_are_named_and_one_alone_is_never_left_out() -> None:
    text = told(wide(0, 1, 2, 3, 4, 5, size=4), 6)
    assert "class 6 covers 1 cell: 3 records in age [50, 60[" in text and "more class" not in text
    text = told(wide(0, 1, 2, 3, 4, 5, 6, size=2), 7)
    assert "class 5 covers 1 cell" in text and "class 6 covers" not in text and "and 2 more classes" in text
    assert "Nobody is in 7 cells taken before: 1 by class 1," in text and "and 2 by others." in text
    text = told(attack_on(release(EARLIER, LATER, outliers=2)), None)
    assert text.index("class 2 covers 4 cells") < text.index("class 1 covers 1 cell")
    assert "(they share some cells)" in text


def test_labels_cannot_break_lines_or_reach_the_terminal() -> None:
    tree = from_rows([["a", "one\nline", "*"], ["b", "\x1b[31mred", "*"]])
    config = Config(2, (QuasiIdentifier("co\tlour", tree, 1),))
    given = attack_on(Release(config, (EquivalenceClass((2,), (0,), 2),), 0))
    text = describe(explain(given, 0, records="any"))
    assert "one?line" in text and "?[31mred" in text and "co?lour" in text


def test_labels_too_long_for_columns_are_told_in_sentences() -> None:
    tree = from_rows([[name, f"{name} {'very ' * 12}long", "*"] for name in "ab"])
    config = Config(2, tuple(QuasiIdentifier(name, tree, 1) for name in ("colour", "shape")))
    text = told(attack_on(Release(config, (EquivalenceClass((2, 2), (0, 0), 2),), 0)), 0)
    assert "long: nobody 50%, one 50%, two or more 0%, expected 0.50" in text
