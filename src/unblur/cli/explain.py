"""`unblur explain`: one class in plain words, for someone who must decide and is no programmer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import floor
from pathlib import Path
from textwrap import fill
from typing import TypeVar

from unblur.attacking import Attack, inference_of
from unblur.auditing import mechanism_of
from unblur.cli.progress import progress_bar
from unblur.counting.numbers import Count
from unblur.errors import ConfigError
from unblur.explaining import Chance, Child, Entry, Explanation, Split, Taker, explain
from unblur.mechanisms import Order
from unblur.reading import read_release

WIDTH = 100
MOST_EFFORT = 1_000_000_000
"""A single class may take half a minute."""
MOST_TAKERS = 5
"""So many earlier classes, or groups of cells, are named one by one."""
MOST_CHILDREN = 6
"""So many parts of a label are named one by one."""
COLUMNS = ("nobody", "one", "two or more", "expected")

T = TypeVar("T")


def run(
    release: str,
    *,
    config: Path,
    chosen: str,
    mechanism: str | None = None,
    order: Order = "sound",
    cells: int = 20,
    encoding: str | None = None,
) -> None:
    """Read the release and put one class into words."""
    with progress_bar("reading the release"):
        opened = read_release(release, config, encoding=encoding)
        number = _number(chosen, len(opened.classes))
        made_by = mechanism_of(opened, mechanism)
        attack = Attack(opened.bare(), inference_of(made_by, opened, order), effort=MOST_EFFORT)
        explanation = explain(attack, number, records=opened.config.records)
    print(describe(explanation, cells=cells))
    print(
        fill(
            f"Assumed: mechanism {made_by.name}, order {order}, records {opened.config.records}. This looks at "
            "one class at a time; all together say more. Evidence for review, not a certificate.",
            WIDTH,
        )
    )


def _number(chosen: str, classes: int) -> int | None:
    """Find the index of a class by its id; None for the outliers."""
    if chosen.strip().lower() == "outliers":
        return None
    if not chosen.strip().isdecimal() or not 1 <= int(chosen) <= classes:
        raise ConfigError(f"--class {chosen!r}: a class is a number from 1 to {classes:,}, or outliers")
    return int(chosen) - 1


def describe(explanation: Explanation, *, cells: int = 20) -> str:
    """Put an explanation into words: lines of at most 100 characters, and at most so many rows of cells."""
    paragraphs = [_title(explanation), *_promise(explanation)]
    if not explanation.fits:
        paragraphs += _section("What speaks against it:", [*_takers(explanation), *_limit(explanation)])
    elif explanation.all_cells > 1:
        title = "What is known:" if explanation.plausible == explanation.published else "Why:"
        paragraphs += _section(title, list(_reasons(explanation)))
        paragraphs += [*_places(explanation, cells), *_alone(explanation)]
    return "\n\n".join(paragraphs).replace("\u00a0", " ") + "\n"


def _title(explanation: Explanation) -> str:
    if explanation.id is None:
        return _wrap(f"The outliers: {_records(explanation.size)}, suppressed: published as * everywhere.")
    labels = _labels(explanation.labels)
    return _wrap(f"Class {explanation.id}: {_records(explanation.size)}, published as {labels}.")


def _promise(explanation: Explanation) -> Iterator[str]:
    """Say what the label leaves open, and what is left of it."""
    size, k = _records(explanation.size), explanation.k
    if explanation.id is not None and explanation.size < k:
        yield _wrap(f"That is fewer than k = {k}: k was another, or rows are missing.")
    if not explanation.published:
        yield _wrap(
            f"This does not fit. There are {explanation.values:,} possible values for {size}, so some are equal, "
            'but records were said to be distinct. Try again with records = "any".'
        )
        return
    yield "\n".join(_wrap(line) for line in _ways_left(explanation))


def _ways_left(explanation: Explanation) -> Iterator[str]:
    size, values = _records(explanation.size), _count(explanation.values, "possible value")
    ways = _ways(explanation.published)
    if explanation.all_cells == 1:
        yield (
            f"The label says all there is to say: {size} in a single cell ({values}), {ways} to fill in the raw data. "
            "Nothing is narrower than this label, and nothing was taken away from it."
        )
        return
    cells = f"{explanation.all_cells:,} cells ({values})"
    yield f"What the label says: {size} anywhere in {cells}, {ways} to fill in the raw data."
    yield "(A cell is one combination of the narrowest labels that this release may use.)"
    if not explanation.fits:
        yield (
            "What is left: nothing. No way to fill in the raw data leads to this release, so it was not made by this "
            "mechanism, with this k and these hierarchies; or its rows were changed afterwards."
        )
    elif explanation.plausible == explanation.published:
        yield "What is left: all of it. Nothing was taken away; the records may be anywhere under their label."
    else:
        yield f"What is left: {_ways(explanation.plausible)}, {_part(explanation)}."
    if explanation.fits and explanation.upper_bound:
        rules = _listed([f"'{_clean(name)}'" for name in explanation.dropped])
        yield (
            f"The true number may be smaller still: the rule for {rules} was left out, here and in all chances below, "
            "because it would take too long."
        )


def _part(explanation: Explanation) -> str:
    bits = explanation.bits or 0.0
    less = f"{bits:,.1f} bits less; each bit halves what is left" if bits >= 0.05 else "less than 0.1 bits less"
    ratio = explanation.ratio
    if ratio is not None and ratio < 2:
        return f"{percent(1 / ratio)} of them ({less})"
    return f"1 in {_rounded(bits)} ({less})"


def _reasons(explanation: Explanation) -> Iterator[str]:
    yield from _takers(explanation)
    yield from _rule(explanation)
    emptied = [each for each in explanation.cells or () if each.free and each.verdict == "impossible"]
    if emptied:
        number = sum(each.free for each in emptied)
        lead = "1 more cell is" if number == 1 else f"{number:,} more cells are"
        yield _item(
            f"{lead} empty though no class was there: these limits leave no room ({_some(explanation, emptied)})."
        )
    if explanation.bound is None:
        yield _item("How the records spread inside their label is not known: nothing is assumed about that.")
    elif explanation.size < explanation.bound:
        yield _item(f"These are fewer than {explanation.bound} records, so no rule says how they spread.")


def _limit(explanation: Explanation) -> Iterator[str]:
    if explanation.published and explanation.bound is not None and explanation.size >= explanation.bound:
        yield _item(
            f"No narrower labels may hold {explanation.bound} or more of these records: they would have been used."
        )


def _takers(explanation: Explanation) -> Iterator[str]:
    """Say which cells earlier classes took."""
    if not explanation.takers:
        return
    taken, every = explanation.all_cells - explanation.free_cells, explanation.all_cells
    ranked = sorted(explanation.takers, key=lambda each: (-each.cells, each.id))
    lines = [f"- {_taker(each, explanation)}" for each in _few(ranked)]
    if others := len(ranked) - len(lines):
        lines.append(f"- and {others:,} more classes")
    shared = " (they share some cells)" if sum(each.cells for each in ranked) > taken else ""
    yield _item(
        f"{taken:,} of the {every:,} cells {'is' if taken == 1 else 'are'} empty. A class takes everybody who is in "
        f"its cells, and {'these were' if len(ranked) > 1 else 'this one was'} made before{shared}:",
        lines,
    )


def _taker(taker: Taker, explanation: Explanation) -> str:
    where = _difference(taker.labels, explanation.labels)
    return f"class {taker.id} covers {_count(taker.cells, 'cell')}: {_records(taker.size)} in {where}"


def _difference(labels: Mapping[str, str], here: Mapping[str, str]) -> str:
    other = {name: label for name, label in labels.items() if label != here[name]}
    return _labels(other or labels)


def _rule(explanation: Explanation) -> Iterator[str]:
    """Say what follows for each part of a label from the rule that no part may hold too many."""
    bounded = [split for split in explanation.children if split.bounded]
    if bounded:
        yield _item(
            f"{_why(explanation)} So, of the {_records(explanation.size)}:",
            [f"- {_spread(split, explanation.size)}" for split in bounded],
        )


def _why(explanation: Explanation) -> str:
    """Say why narrower labels cannot hold too many."""
    if explanation.bound == explanation.k:
        many = f"Had {explanation.k} or more of these records shared a narrower label"
        return f"{many}, they would have been published under it."
    return (
        f"Had narrower labels, each with {explanation.k} or more of these records, held {explanation.bound} of them "
        "together, a finer and cheaper step would have released them."
    )


def _spread(split: Split, size: int) -> str:
    shown = sorted(split.children, key=lambda each: (-each.least, -(each.expected or 0)))
    shown = list(split.children) if len(shown) <= MOST_CHILDREN else shown[: MOST_CHILDREN - 2]
    parts = [f"{_range(each, size)} in {_clean(each.label)}" for each in shown]
    others = [each for each in split.children if each not in shown]
    if others:
        most = max(each.most for each in others)
        parts.append(
            f"at most {most} in each of the {len(others):,} others" if most else f"none in {len(others):,} others"
        )
    alone = "" if all(each.expected is not None for each in shown) else " (what the rule alone says)"
    return f"{_clean(split.attribute)}: {_listed(parts)}{alone}"


def _range(child: Child, size: int) -> str:
    if not child.most:
        return "none"
    if child.least == child.most:
        return "all" if child.least == size else f"{child.least:,}"
    expected = "" if child.expected is None else f" (on average {_average(child.expected)})"
    return f"{child.least:,} to {child.most:,}{expected}"


def _places(explanation: Explanation, most: int) -> Iterator[str]:
    """Say where the records are: what is certain, the odds of the likeliest cells, and what is impossible."""
    what = f"Where the {_records(explanation.size)} are" if explanation.size > 1 else "Where the record is"
    free = [split for split in explanation.children if not split.bounded and explanation.takers]
    if explanation.cells is None:
        yield _wrap(f"{what}: the chances of single cells were not computed, because it would take too long.")
        return
    listed = [_wrap(f"- {_spread(split, explanation.size)}", 2) for split in free]
    if explanation.by_block and len(explanation.cells) == 1:
        head = f"{what}: anywhere in the {explanation.free_cells:,} cells that are left{'. That is:' if free else '.'}"
        yield "\n".join([_wrap(head), *listed])
        return
    parts = " (parts of the label, because its cells are too many to list)" if explanation.by_block else ""
    yield "\n".join([_wrap(f"{what}, if every way that is left is equally likely{parts}:"), *listed])
    possible = [each for each in explanation.cells if each.verdict != "impossible"]
    if certain := [each for each in possible if each.odds.least]:
        yield "\n".join(_certain(explanation, certain[:most]))
    yield "\n".join([*_table(explanation, possible[:most]), *_rest(explanation, possible[most:])])
    yield from _impossible(explanation)


def _certain(explanation: Explanation, entries: Sequence[Entry]) -> Iterator[str]:
    for each in entries:
        n = each.odds.least
        several = "s are" if n > 1 else " is"
        yield _wrap(f"At least {n:,} record{several} certainly in {_place(explanation, each)}.", 2)


def _table(explanation: Explanation, entries: Sequence[Entry]) -> Iterator[str]:
    """Show the odds in columns; in sentences, if the labels are too long for columns."""
    names = _telling(explanation)
    counted = ["cells left"] if explanation.by_block else []
    rows = [[*map(_clean, names), *counted, *COLUMNS]]
    for each in entries:
        left = [f"{each.free:,} of {each.cells:,}"] if explanation.by_block else []
        rows.append([*(_clean(each.labels[name]) for name in names), *left, *_numbers(each)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if sum(widths) + 2 * len(widths) > WIDTH:
        yield from (_sentence(explanation, each) for each in entries)
        return
    for row in rows:
        cells = [
            text.ljust(width) if place < len(names) else text.rjust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield ("  " + "  ".join(cells)).rstrip()


def _numbers(entry: Entry) -> list[str]:
    odds = entry.odds
    return [percent(odds.nobody), percent(odds.one), percent(odds.more), _average(odds.expected)]


def _sentence(explanation: Explanation, entry: Entry) -> str:
    numbers = ", ".join(f"{name} {number}" for name, number in zip(COLUMNS, _numbers(entry), strict=True))
    left = f" ({entry.free:,} of {entry.cells:,} cells left)" if explanation.by_block else ""
    return _wrap(f"- {_place(explanation, entry)}{left}: {numbers}", 2)


def _rest(explanation: Explanation, entries: Sequence[Entry]) -> Iterator[str]:
    if entries:
        more = _count(len(entries), "more part" if explanation.by_block else "more cell")
        chance = percent(max(1 - each.odds.nobody for each in entries))
        yield _wrap(f"and {more}: the chance that somebody is there is at most {chance}.", 2)


def _impossible(explanation: Explanation) -> Iterator[str]:
    """Say which cells nobody can be in, and who took them."""
    empty = [each for each in explanation.cells or () if not each.free]
    if not empty:
        return
    groups = Counter(each.taken_by for each in empty).most_common()
    named = [f"{n:,} by {_classes(takers)}" for takers, n in _few(groups)]
    if others := len(empty) - sum(n for _, n in _few(groups)):
        named.append(f"{others:,} by others")
    what = _count(len(empty), "part" if explanation.by_block else "cell")
    yield _wrap(f"Nobody is in {what} taken before: {_listed(named)}.", 2)


def _classes(ids: Sequence[int]) -> str:
    if len(ids) > MOST_TAKERS:
        return f"{len(ids):,} classes"
    return f"class {ids[0]}" if len(ids) == 1 else f"classes {_listed([str(each) for each in ids])}"


def _alone(explanation: Explanation) -> Iterator[str]:
    chance = explanation.singling_out
    what = "Chance that some cell holds exactly one record (that record is singled out)"
    yield _wrap(f"{what}: {'not computed for so many records' if chance is None else percent(chance)}.")


def _telling(explanation: Explanation) -> list[str]:
    """The attributes in which cells differ."""
    entries = explanation.cells or ()
    return [name for name in explanation.labels if len({each.labels[name] for each in entries}) > 1]


def _place(explanation: Explanation, entry: Entry) -> str:
    return _labels({name: entry.labels[name] for name in _telling(explanation)} or entry.labels)


def _some(explanation: Explanation, entries: Sequence[Entry]) -> str:
    few = [_place(explanation, each) for each in entries[:3]]
    return "; ".join([*few, *([f"and {len(entries) - 3:,} more"] if entries[3:] else [])])


def _labels(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{_clean(name)}\u00a0{_clean(label)}" for name, label in labels.items())


def _clean(text: str) -> str:
    """Keep a label on its line, and control characters off the screen."""
    return "".join(c if c.isprintable() else "?" for c in text).replace(" ", "\u00a0")


def _ways(number: Count) -> str:
    return f"{_rounded(number.log2)} way{'' if number.exact == 1 else 's'}"


def _rounded(bits: float) -> str:
    """Write a number, given by its logarithm, with two digits or so.

    >>> [_rounded(bits) for bits in (0, 1.5, 10, 20, 23.25, 200)]
    ['1', '2.8', '1,024', '1.0 x 10^6', '1.0 x 10^7', '1.6 x 10^60']
    """
    if bits < 19.9:  # below a million
        number = 2.0**bits
        return f"{number:.1f}".removesuffix(".0") if number < 10 else f"{number:,.0f}"
    exponent = floor(bits * _LOG)
    lead = f"{10 ** (bits * _LOG - exponent):.1f}"
    return f"1.0 x 10^{exponent + 1}" if lead == "10.0" else f"{lead} x 10^{exponent}"


_LOG = 0.30102999566398120
"""The logarithm of 2 to the base 10."""


def percent(chance: Chance) -> str:
    """Write a chance; only the impossible is 0%, only the certain 100%, and never what was rounded.

    >>> [percent(Fraction(n, 10000)) for n in (0, 1, 123, 5678, 9930, 9999, 10000)]
    ['0%', '< 0.1%', '1.2%', '57%', '99.3%', '> 99.9%', '100%']
    """
    share = float(chance) * 100
    if chance in (0, 1) and not isinstance(chance, float):
        return f"{share:.0f}%"
    if share < 0.1:
        return "< 0.1%"
    if share > 99.9:
        return "> 99.9%"
    return f"{share:.0f}%" if 9.95 <= share <= 98.5 else f"{share:.1f}%"


def _average(number: Fraction) -> str:
    if number.denominator == 1:
        return f"{int(number):,}"
    if number < Fraction(1, 200):
        return "< 0.01"
    return f"{float(number):.2f}" if number < 10 else f"{float(number):,.1f}"


def _records(number: int) -> str:
    return _count(number, "record")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _listed(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _section(title: str, items: Sequence[str]) -> list[str]:
    return ["\n".join([title, *items])] if items else []


def _item(text: str, below: Sequence[str] = ()) -> str:
    return "\n".join([_wrap(f"- {text}", 2), *(_wrap(line, 4) for line in below)])


def _few(items: Sequence[T]) -> Sequence[T]:
    """Those to name one by one; one alone is never left out."""
    return items if len(items) <= MOST_TAKERS + 1 else items[:MOST_TAKERS]


def _wrap(text: str, indent: int = 0) -> str:
    """Break a text into lines; those of a list item, or of an indented text, keep to its left edge."""
    hanging = indent + (2 if text.startswith("- ") else 0)
    return fill(text, WIDTH, initial_indent=" " * indent, subsequent_indent=" " * hanging, break_on_hyphens=False)
