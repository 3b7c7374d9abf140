"""Numbers, labels and lists put into words, the same way by every command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import floor, inf, log10
from textwrap import fill
from typing import TypeVar

WIDTH = 100
"""How long a line may be."""
KEPT = "\u00a0"
"""A space at which `wrap` does not break a line."""
PLURALS = {"leaf": "leaves"}

T = TypeVar("T")


def count(number: int, noun: str) -> str:
    """Write a number of things.

    >>> count(1, "class"), count(2, "class"), count(0, "record"), count(1234, "more cell")
    ('1 class', '2 classes', '0 records', '1,234 more cells')
    """
    return f"{number:,} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """Write the plural of a noun, or of words that end in one.

    >>> [plural(noun) for noun in ("class", "cell", "narrow leaf", "way", "entry", "box")]
    ['classes', 'cells', 'narrow leaves', 'ways', 'entries', 'boxes']
    """
    before, space, last = noun.rpartition(" ")
    if last in PLURALS:
        return f"{before}{space}{PLURALS[last]}"
    if last.endswith(("s", "x", "ch", "sh")):
        return f"{noun}es"
    return f"{noun[:-1]}ies" if last.endswith("y") and last[-2:-1] not in "aeiou" else f"{noun}s"


def are(number: int) -> str:
    """The verb that goes with a number of things.

    >>> are(0), are(1), are(2)
    ('are', 'is', 'are')
    """
    return "is" if number == 1 else "are"


def listed(parts: Sequence[str]) -> str:
    """Put a list into a sentence.

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def few(items: Sequence[T], most: int) -> Sequence[T]:
    """Those to name one by one; one alone is never left out.

    >>> few("abcd", 3), few("abcde", 3)
    ('abcd', 'abc')
    """
    return items if len(items) <= most + 1 else items[:most]


def bounds(least: int, most: int) -> str:
    """Say how many there may be.

    >>> bounds(0, 0), bounds(2, 2), bounds(1, 2000)
    ('none', 'exactly 2', '1 to 2,000')
    """
    if least < most:
        return f"{least:,} to {most:,}"
    return f"exactly {most:,}" if most else "none"


def percent(chance: Fraction | float) -> str:
    """Write a chance; only the impossible is 0%, only the certain 100%, and never what was rounded.

    >>> [percent(Fraction(n, 10000)) for n in (0, 1, 123, 5678, 9930, 9999, 10000)]
    ['0%', '< 0.1%', '1.2%', '57%', '99.3%', '> 99.9%', '100%']
    >>> percent(0.0), percent(1.0)
    ('< 0.1%', '> 99.9%')
    """
    share = float(chance) * 100
    if chance in (0, 1) and not isinstance(chance, float):
        return f"{share:.0f}%"
    if share < 0.1:
        return "< 0.1%"
    if share > 99.9:
        return "> 99.9%"
    return f"{share:.0f}%" if 9.95 <= share <= 98.5 else f"{share:.1f}%"


def average(number: Fraction) -> str:
    """Write a number of records that is expected, not counted.

    >>> [average(Fraction(n, 300)) for n in (0, 1, 100, 600, 4000)]
    ['0', '< 0.01', '0.33', '2', '13.3']
    """
    if number.denominator == 1:
        return f"{int(number):,}"
    if number < Fraction(1, 200):
        return "< 0.01"
    return f"{float(number):.2f}" if number < 10 else f"{float(number):,.1f}"


def rounded(bits: float) -> str:
    """Write a number, given by its logarithm to the base 2, with two digits or so.

    >>> [rounded(bits).replace(KEPT, " ") for bits in (0, 1.5, 10, 20, 23.25, 200)]
    ['1', '2.8', '1,024', '1.0 x 10^6', '1.0 x 10^7', '1.6 x 10^60']
    """
    if bits < 19.9:  # below a million
        number = 2.0**bits
        return f"{number:.1f}".removesuffix(".0") if number < 10 else f"{number:,.0f}"
    digits = bits * log10(2)
    exponent = floor(digits)
    lead = f"{10 ** (digits - exponent):.1f}"
    return kept(f"1.0 x 10^{exponent + 1}" if lead == "10.0" else f"{lead} x 10^{exponent}")


def times(ratio: float | None) -> str:
    """Write how many times fewer there are.

    >>> [times(ratio) for ratio in (None, 1.0, 4.23, 12345.6, 2.5e9, inf)]
    ['-', '1.0x', '4.2x', '12,345.6x', '2.5e+09x', 'over 1e308x']
    """
    if ratio is None:
        return "-"
    if ratio == inf:
        return "over 1e308x"
    return f"{ratio:,.1f}x" if ratio < 1e6 else f"{ratio:.2g}x"


def shown(label: str) -> str:
    """Keep a label on its line, and control characters off the screen.

    >>> shown("two\\nlines"), shown("\\x1b[31mred")
    ('two?lines', '?[31mred')
    """
    return "".join(c if c.isprintable() else "?" for c in label.replace(KEPT, " "))


def kept(text: str) -> str:
    """Keep words on one line when the text around them is wrapped."""
    return text.replace(" ", KEPT)


def labelled(labels: Mapping[str, str]) -> str:
    """Name attributes with their labels; neither is broken between two lines.

    >>> labelled({"age": "[0, 10[", "sex": "female"}).replace(KEPT, " ")
    'age [0, 10[, sex female'
    """
    return ", ".join(kept(f"{shown(name)} {shown(label)}") for name, label in labels.items())


def wrap(text: str, indent: int = 0) -> str:
    """Break a text into lines; those of a list item, or of an indented text, keep to its left edge.

    >>> print(wrap("- " + "word " * 24, 2))
      - word word word word word word word word word word word word word word word word word word word
        word word word word word
    """
    hanging = indent + (2 if text.startswith("- ") else 0)
    lines = fill(text, WIDTH, initial_indent=" " * indent, subsequent_indent=" " * hanging, break_on_hyphens=False)
    return lines.replace(KEPT, " ")


def item(text: str, below: Sequence[str] = ()) -> str:
    """Write an item of a list, with a list of its own below."""
    return "\n".join([wrap(f"- {text}", 2), *(wrap(f"- {line}", 4) for line in below)])
