"""Where the records of a class are, in words: what is certain, the odds of cells, and what is impossible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from unblur.explanations import Child, Entry, Explanation, Split
from unblur.words import (
    WIDTH,
    are,
    average,
    bounds,
    count,
    few,
    kept,
    labelled,
    listed,
    percent,
    shown,
    wrap,
)

COLUMNS = ("nobody", "one", "two or more", "expected")
MOST_CHILDREN = 6
"""So many parts of a label are named one by one."""
MOST_PLACES = 5
"""So many cells that were taken are named one by one."""
MOST_ALIKE, FEW_ALIKE = 6, 3
"""Where not all cells can be listed, of more than so many with the same chances only a few are."""

Row = tuple[list[Entry], int]
"""Entries to list that have the same chances, and how many more have them, too."""


def places(explanation: Explanation, most: int) -> Iterator[str]:
    """Say where the records are, in at most so many rows."""
    size = explanation.size
    what = f"Where the {count(size, 'record')} are" if size > 1 else "Where the record is"
    if explanation.cells is None:
        yield wrap(f"{what}: the chances of single cells were not computed, because it would take too long.")
        return
    free = [split for split in explanation.children if not split.bounded and explanation.takers]
    parts = [wrap(f"- {spread(split, size)}", 2) for split in free]
    if explanation.by_block and len(explanation.cells) == 1:
        left = " that are left" if explanation.takers else ""
        end = ". That is:" if free else "."
        yield "\n".join([wrap(f"{what}: anywhere in the {count(explanation.free_cells, 'cell')}{left}{end}"), *parts])
        return
    blocks = " (parts of the label, because its cells are too many to list)" if explanation.by_block else ""
    yield "\n".join([wrap(f"{what}, if every way that is left is equally likely{blocks}:"), *parts])
    possible = [each for each in explanation.cells if each.verdict != "impossible"]
    yield from _certain(explanation, [each for each in possible if each.odds.least], most)
    yield "\n".join(_listing(explanation, possible, most))
    yield from _impossible(explanation)


def alone(explanation: Explanation) -> Iterator[str]:
    """Say how likely it is that somebody is singled out, or why that was not computed."""
    what = "Chance that some cell holds exactly one record (that record is singled out)"
    if explanation.singling_out is not None:
        yield wrap(f"{what}: {percent(explanation.singling_out)}.")
    elif explanation.raw_numbers:
        names = listed([kept(f"'{shown(name)}'") for name in explanation.raw_numbers])
        yield wrap(
            f"{what}: not computed, because the narrowest labels of {names} are single numbers, and to be alone in so "
            "small a cell says little."
        )
    else:
        yield wrap(f"{what}: not computed, because it would take too long.")


def spread(split: Split, size: int) -> str:
    """Say how many of the records each part of a label may hold; parts that may hold as many are told together."""
    groups: dict[str, list[Child]] = {}
    for each in split.children:
        groups.setdefault(_range(each, size), []).append(each)
    ranked = list(groups)
    if len(groups) > MOST_CHILDREN:
        ranked.sort(key=lambda text: (-groups[text][0].least, -(groups[text][0].expected or 0)))
        ranked = ranked[: MOST_CHILDREN - 2]
    told = [f"{text} in {_parts(groups[text])}" for text in ranked]
    if others := [each for text in groups.keys() - set(ranked) for each in groups[text]]:
        most = max(each.most for each in others)
        told.append(f"{f'at most {most:,}' if most else 'none'} in each of the {len(others):,} others")
    counted = all(each.expected is not None for each in split.children)
    return f"{kept(shown(split.attribute))}: {listed(told)}{'' if counted else ' (what the rule alone says)'}"


def _parts(children: Sequence[Child]) -> str:
    labels = [kept(shown(each.label)) for each in children]
    if len(labels) == 1:
        return labels[0]
    return f"each of {listed(labels) if len(labels) <= MOST_CHILDREN else f'{len(labels):,} parts'}"


def _range(child: Child, size: int) -> str:
    if child.least == size:
        return "all" if size > 1 else "certainly"
    if child.expected is None or child.least == child.most:
        return bounds(child.least, child.most)
    if size == 1:
        return f"a chance of {percent(child.expected)}"
    return f"{bounds(child.least, child.most)} {kept(f'(on average {average(child.expected)})')}"


def _certain(explanation: Explanation, entries: Sequence[Entry], most: int) -> Iterator[str]:
    lines = []
    for each in entries[:most]:
        least = each.odds.least
        how = "Exactly" if each.odds.expected == least else "At least"
        lines.append(wrap(f"{how} {count(least, 'record')} {are(least)} certainly in {place(explanation, each)}.", 2))
    if others := len(entries) - len(lines):
        lines.append(wrap(f"In {count(others, _what(explanation, 'more'))} somebody certainly is, too.", 2))
    if lines:
        yield "\n".join(lines)


def _listing(explanation: Explanation, entries: Sequence[Entry], most: int) -> Iterator[str]:
    """Show the odds in columns; in sentences, if the labels are too long for columns."""
    rows = list(_rows(entries, most))
    lines = _columns(explanation, rows) or [[_sentence(explanation, each) for each in named] for named, _ in rows]
    for (_, alike), told in zip(rows, lines, strict=True):
        yield from told
        if alike:
            yield f"  and {count(alike, _what(explanation, 'more'))} with about the same chances"
    if rest := entries[sum(len(named) + alike for named, alike in rows) :]:
        chance = percent(max(1 - each.odds.nobody for each in rest))
        more = count(len(rest), _what(explanation, "more"))
        yield wrap(f"and {more}: the chance that somebody is there is at most about {chance}.", 2)


def _rows(entries: Sequence[Entry], most: int) -> Iterator[Row]:
    left = most
    for _, group in groupby(entries, _numbers):
        same = list(group)
        shorten = len(entries) > most and len(same) > MOST_ALIKE
        named = same[: min(left, FEW_ALIKE) if shorten else left]
        left -= len(named)
        if named:
            yield named, len(same) - len(named)


def _columns(explanation: Explanation, rows: Sequence[Row]) -> list[list[str]] | None:
    """The rows of a table, its head with the first of them; None if they are too long."""
    names = _telling(explanation)
    head = [*map(shown, names), *(["cells left"] if explanation.by_block else []), *COLUMNS]
    texts = [[_fields(explanation, each, names) for each in named] for named, _ in rows]
    widths = [max(map(len, column)) for column in zip(head, *(each for told in texts for each in told), strict=True)]
    if sum(widths) + 2 * len(widths) > WIDTH:
        return None
    texts[0] = [head, *texts[0]]
    return [[_aligned(each, widths, len(names)) for each in told] for told in texts]


def _fields(explanation: Explanation, entry: Entry, names: Sequence[str]) -> list[str]:
    left = [f"{entry.free:,} of {entry.cells:,}"] if explanation.by_block else []
    return [*(shown(entry.labels[name]) for name in names), *left, *_numbers(entry)]


def _aligned(fields: Sequence[str], widths: Sequence[int], labels: int) -> str:
    """Put labels to the left, numbers to the right."""
    texts = [
        text.ljust(width) if position < labels else text.rjust(width)
        for position, (text, width) in enumerate(zip(fields, widths, strict=True))
    ]
    return ("  " + "  ".join(texts)).rstrip()


def _numbers(entry: Entry) -> list[str]:
    odds = entry.odds
    return [percent(odds.nobody), percent(odds.one), percent(odds.more), average(odds.expected)]


def _sentence(explanation: Explanation, entry: Entry) -> str:
    numbers = ", ".join(kept(f"{name} {number}") for name, number in zip(COLUMNS, _numbers(entry), strict=True))
    left = kept(f"({entry.free:,} of {entry.cells:,} cells left)")
    return wrap(f"- {place(explanation, entry)}{f' {left}' if explanation.by_block else ''}: {numbers}", 2)


def _impossible(explanation: Explanation) -> Iterator[str]:
    """Say which parts nobody can be in, and who took them; or which cells, unless the list of takers has said it."""
    taken = [each for each in explanation.cells or () if not each.free]
    named = len(explanation.takers) <= MOST_PLACES + 1
    if not taken or (named and not explanation.by_block):
        return
    what = _what(explanation) if len(taken) == 1 else count(len(taken), _what(explanation))
    many = len(taken) > MOST_PLACES + 1
    how = _taken_by(taken) if many else "; ".join(f"{place(explanation, each)} ({_classes(each)})" for each in taken)
    yield wrap(f"Nobody is in {'' if many else 'this ' if len(taken) == 1 else 'these '}{what} taken before: {how}.", 2)


def _taken_by(entries: Sequence[Entry]) -> str:
    groups = Counter(map(_classes, entries)).most_common()
    told = [f"{number:,} by {classes}" for classes, number in few(groups, MOST_PLACES)]
    others = len(entries) - sum(number for _, number in few(groups, MOST_PLACES))
    return listed([*told, *([f"{others:,} by others"] if others else [])])


def _classes(entry: Entry) -> str:
    ids = entry.taken_by
    if len(ids) > MOST_PLACES:
        return kept(f"{len(ids):,} classes")
    return kept(f"class {ids[0]}" if len(ids) == 1 else f"classes {listed([str(each) for each in ids])}")


def place(explanation: Explanation, entry: Entry) -> str:
    """Name a cell, or a part, by the labels in which it differs from others."""
    return labelled({name: entry.labels[name] for name in _telling(explanation)} or entry.labels)


def _telling(explanation: Explanation) -> list[str]:
    """The attributes in which cells differ."""
    entries = explanation.cells or ()
    return [name for name in explanation.labels if len({each.labels[name] for each in entries}) > 1]


def _what(explanation: Explanation, before: str = "") -> str:
    return f"{before} {'part' if explanation.by_block else 'cell'}".strip()
