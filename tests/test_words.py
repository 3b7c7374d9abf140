from __future__ import annotations

from fractions import Fraction
from math import log2

import pytest

from unblur.words import (
    KEPT,
    WIDTH,
    average,
    bounds,
    count,
    few,
    item,
    labelled,
    listed,
    percent,
    rounded,
    shown,
    times,
    wrap,
)


@pytest.mark.parametrize("noun", ["class", "more class", "record", "cell", "possible value", "leaf", "entry"])
def test_only_one_is_singular(noun: str) -> None:
    assert count(1, noun) == f"1 {noun}"
    for number in (0, 2, 1000):
        words = count(number, noun)
        assert words.startswith(f"{number:,} ") and not words.endswith(noun)


def test_only_the_impossible_is_zero_and_only_the_certain_a_hundred_percent() -> None:
    assert (percent(Fraction(0)), percent(Fraction(1))) == ("0%", "100%")
    for tiny in (Fraction(1, 10**30), 0.0, 1e-300):
        assert percent(tiny) == "< 0.1%"
        assert percent(1 - tiny) == "> 99.9%"


def test_percent_is_never_off_by_more_than_half_of_its_last_digit() -> None:
    for n in range(10, 9990):
        words = percent(Fraction(n, 10000))
        last = 0.1 if "." in words else 1.0
        assert abs(float(words.removesuffix("%")) - n / 100) <= last / 2 + 1e-9


def test_rounded_numbers_are_within_five_percent() -> None:
    for number in (1, 2, 7, 9.96, 99, 12345, 999_999, 10**6, 10**7 - 1, 10**300, 9.99 * 10**99):
        words = rounded(log2(number)).replace(KEPT, "").replace(",", "").replace("x10^", "e")
        assert float(words) == pytest.approx(number, rel=0.05)
    assert rounded(40_000.0).replace(KEPT, " ") == "1.6 x 10^12041", "beyond any float"


def test_rounded_numbers_and_labels_stay_on_one_line() -> None:
    for words in (rounded(200.0), labelled({"age": "[0, 10["})):
        assert wrap("x" * (WIDTH - 5) + " " + words).splitlines()[1] == words.replace(KEPT, " ")


def test_no_line_is_longer_than_the_screen_and_items_hang() -> None:
    lines = item("word " * 50, ["below " * 40]).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert lines[0].startswith("  - word") and lines[1].startswith("    word")
    assert any(line.startswith("    - below") for line in lines) and lines[-1].startswith("      below")


def test_a_range_of_one_number_is_that_number() -> None:
    assert [bounds(*each) for each in ((0, 0), (1, 1), (0, 1), (3, 3000))] == [
        "none",
        "exactly 1",
        "0 to 1",
        "3 to 3,000",
    ]


def test_one_alone_is_never_left_out_of_a_list() -> None:
    assert [len(few("x" * n, 5)) for n in range(9)] == [0, 1, 2, 3, 4, 5, 6, 5, 5]


def test_a_list_has_one_and() -> None:
    assert [listed(list("abcd"[:n])) for n in range(1, 5)] == ["a", "a and b", "a, b and c", "a, b, c and d"]


def test_averages_are_rounded_unless_they_are_whole() -> None:
    assert [average(Fraction(*each)) for each in ((2, 1), (2001, 1000), (1, 1000), (5000, 3))] == [
        "2",
        "2.00",
        "< 0.01",
        "1,666.7",
    ]


def test_ratios_have_a_decimal_until_they_are_large() -> None:
    assert [times(each) for each in (None, 4.24, 999_999.0, 1e6, float("inf"))] == [
        "-",
        "4.2x",
        "999,999.0x",
        "1e+06x",
        "over 1e308x",
    ]


@pytest.mark.parametrize("hidden", ["\n", "\r", "\x1b", "\u202e", "\x00", "\u2028"])
def test_control_characters_do_not_reach_the_screen(hidden: str) -> None:
    assert shown(f"a{hidden}b") == "a?b"
    assert hidden not in wrap(labelled({f"a{hidden}": f"{hidden}b"}))
