from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unblur.labels import interval_label, number_label, parse_interval, parse_number


@pytest.mark.parametrize(
    ("number", "label"),
    [
        ("0", "0.0"),
        ("-0.5", "-0.5"),
        ("30", "30.0"),
        ("12.50", "12.5"),
        ("0.001", "0.001"),
        ("0.0001", "1.0E-4"),
        ("9999999", "9999999.0"),
        ("10000000", "1.0E7"),
        ("-12345678.5", "-1.23456785E7"),
    ],
)
def test_decimals_are_written_as_java_writes_doubles(number: str, label: str) -> None:
    assert number_label(Decimal(number), decimals=True) == label


def test_integers_are_written_plainly() -> None:
    assert interval_label(Decimal("1E+7"), Decimal(20000000), decimals=False) == "[10000000, 20000000["


@pytest.mark.parametrize(
    ("label", "bounds"),
    [
        ("[30, 50[", (30, 50)),
        ("[30.0, 50.0[", (30, 50)),
        ("[1.0E7, 2.0E7[", (10_000_000, 20_000_000)),
        ("[30, 50)", (30, 50)),
        ("(30, 50]", (31, 51)),
        ("]30, 50]", (31, 51)),
        ("30-50", (30, 51)),
        ("-5--1", (-5, 0)),
        ("-5 - 10", (-5, 11)),
        ("<18", (None, 18)),
        ("<=18", (None, 19)),
        (">=65", (65, None)),
        (">65", (66, None)),
    ],
)
def test_intervals_are_read_in_every_dialect(label: str, bounds: tuple[int | None, int | None]) -> None:
    interval = parse_interval(label)
    assert interval is not None
    assert interval.half_open(Decimal(1)) == bounds


@pytest.mark.parametrize("label", ["*", "", "male", "819**", "[50, 30[", "[a, b[", "30", "2024-03-17", "1-2-3"])
def test_other_labels_are_no_intervals(label: str) -> None:
    assert parse_interval(label) is None


def test_a_closed_label_can_mean_an_open_end() -> None:
    interval = parse_interval("[0, 10]")
    assert interval is not None
    assert interval.half_open(Decimal(1), closed_means_open=True) == (Decimal(0), Decimal(10))
    assert interval.half_open(Decimal(1)) == (Decimal(0), Decimal(11))


finite = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9, places=3)


@given(finite, finite)
def test_what_is_written_is_read_back(a: Decimal, b: Decimal) -> None:
    low, high = min(a, b), max(a, b)
    interval = parse_interval(interval_label(low, high, decimals=True))
    assert interval is not None
    assert (interval.low, interval.high) == (low, high)


@pytest.mark.parametrize("text", ["nan", "inf", "1,5", "1_000", "", "0x10", "twelve"])
def test_only_plain_finite_numbers_are_numbers(text: str) -> None:
    assert parse_number(text) is None
