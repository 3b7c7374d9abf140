from __future__ import annotations

from itertools import product

import pytest

from unblur.datasets.catalogue import CONFIGURATIONS
from unblur.paper.claims import CLAIM, CLAIMS
from unblur.paper.published import KS, QUANTITIES, TABLES, all_quirks, published, quirks, said

PLACES = [(each.data_set, len(each.attributes), k) for each, k in product(CONFIGURATIONS, KS)]


def number(quantity: str, data_set: str, attributes: int, k: int) -> float:
    found = published(quantity, data_set, attributes, k)
    assert found is not None
    return found


def test_every_quantity_is_there_for_every_configuration_and_k() -> None:
    assert len(PLACES) == 25
    assert len(QUANTITIES) == 12
    assert all(number(quantity, *place) >= 0 for quantity, place in product(QUANTITIES, PLACES))


@pytest.mark.parametrize(
    ("quantity", "place", "value"),
    [
        ("classes_lr", ("hcup", 2, 3), 8.35e15),
        ("classes_cra", ("hcup", 3, 6), 7.37e25),
        ("classes_ratio", ("clinic", 3, 7), 1887.34),
        ("outliers_lr", ("clinic", 2, 5), 8.97e26),
        ("outliers_cra", ("hcup", 4, 4), 2.59e16),
        ("outliers_ratio", ("hcup", 2, 6), 26572.58),
        ("singled_none", ("hcup", 3, 6), 48),
        ("singled_one", ("hcup", 4, 6), 18.0),
        ("singled_more", ("hcup", 2, 4), 0),
        ("combinations", ("hcup", 4, 7), 895620.66),
        ("class_seconds", ("clinic", 3, 5), 6.1),
        ("outliers_seconds", ("clinic", 3, 4), 23),
    ],
)
def test_a_cell_of_each_column_is_as_printed(quantity: str, place: tuple[str, int, int], value: float) -> None:
    assert published(quantity, *place) == value


def test_there_is_nothing_where_the_paper_printed_nothing() -> None:
    assert published("classes_ratio", "clinic", 4, 3) is None
    assert published("classes_ratio", "hcup", 2, 8) is None
    with pytest.raises(KeyError):
        published("ratio", "hcup", 2, 3)


def test_shares_of_singling_out_add_up_to_a_hundred_but_for_rounding() -> None:
    for place in PLACES:
        assert sum(number(quantity, *place) for quantity in TABLES[4]) == pytest.approx(100, abs=0.11)


def test_only_one_cell_has_more_solutions_after_the_attack_and_it_has_a_note() -> None:
    odd = [
        (f"{what}_cra", *place)
        for what, place in product(("classes", "outliers"), PLACES)
        if number(f"{what}_cra", *place) > number(f"{what}_lr", *place)
    ]
    assert odd == [("classes_cra", "clinic", 2, 5)]
    assert [each.where for each in quirks(*odd[0])] == ["Table 2"]


def test_every_break_of_a_trend_that_the_text_claims_for_k_has_a_note() -> None:
    for quantity in ("classes_ratio", "outliers_ratio", "combinations", "class_seconds"):
        for data_set, attributes, k in PLACES:
            here, before = number(quantity, data_set, attributes, k), published(quantity, data_set, attributes, k - 1)
            if before is not None and here < before:
                assert any(each.k == k for each in quirks(quantity, data_set, attributes, k)), (quantity, data_set, k)


def test_a_note_names_only_what_the_paper_has() -> None:
    assert all(each.quantity in (*QUANTITIES, None) for each in all_quirks())
    assert all(each.data_set in ("hcup", "clinic", None) for each in all_quirks())
    tables = {quantity: f"Table {n}" for n, quantities in TABLES.items() for quantity in quantities}
    assert [each for each in all_quirks() if each.quantity and each.where != tables[each.quantity]] == []


def test_a_number_without_a_note_has_none() -> None:
    assert quirks("outliers_ratio", "hcup", 2, 3) == ()
    assert len(quirks("classes_ratio", "clinic", 3, 7)) == 2


def test_the_text_s_decline_is_the_difference_of_its_shares() -> None:
    assert said("clinic-basic-k3").value - said("clinic-basic-k8").value == pytest.approx(
        said("clinic-basic-decline").value
    )
    assert said("hcup-overlap-2").attributes == 2
    with pytest.raises(KeyError):
        said("no-such-number")


def test_claims_have_names_of_their_own_and_a_place_in_the_paper() -> None:
    assert len(CLAIM) == len(CLAIMS)
    assert all(each.where and all(place.split()[0] in PARTS for place in each.where) for each in CLAIMS)


PARTS = ("Section", "Table", "Figure", "Appendix,")


def test_every_table_and_the_figure_of_shares_has_a_claim() -> None:
    claimed = {place for each in CLAIMS for place in each.where}
    assert {f"Table {n}" for n in TABLES} | {"Figure 5"} <= claimed
