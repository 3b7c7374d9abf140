"""Maps: classes and expected records on the grid of two attributes, and the hierarchies drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from unblur.attacking import Attack, Target
from unblur.config import QuasiIdentifier
from unblur.pictures.segments import Frame, SegmentGrid, Side, draw_segments
from unblur.pictures.style import VERMILLION, Picture
from unblur.pictures.trees import bars_of, draw_bars
from unblur.report.phrases import count, listed
from unblur.report.spreading import Floats, Piece, Plane, Scale, Spreader
from unblur.risk import Finding

MOST_ATTRIBUTES = 5
"""Pairs are drawn of so many attributes, those with the most leaves."""
MOST_FRAMES, FEW_FRAMES = 20, 12
"""So many outlines are drawn, those of several squares first, and up to so many named."""
NOBODY = 1e-12
"""What is expected below this is nothing but rounding."""

HATCHED = (
    " Hatched: the label of some class, or of the suppressed records, reaches here, but none of these records can be "
    "here: an earlier class has taken the place."
)

Outline = tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True)
class Choice:
    """A picture that the reader can choose, by the attributes it shows."""

    name: str
    picture: Picture


@dataclass
class _Map:
    """What is known about one plane."""

    plane: Plane
    expected: Floats
    taken: NDArray[np.bool_]
    outlines: Counter[Outline] = field(default_factory=Counter)
    classes: dict[Outline, list[int]] = field(default_factory=dict)

    def add(self, number: int | None, target: Target, pieces: Sequence[Piece], scales: Sequence[Scale]) -> None:
        here = self.plane.project(pieces, scales)
        self.expected += here
        outline = self.plane.outline(target.box, scales)
        (a, b), (c, d) = outline
        if here.any():
            self.taken[a:b, c:d] |= here[a:b, c:d] < NOBODY
        if number is not None:
            self.outlines[outline] += target.subject.size
            self.classes.setdefault(outline, []).append(number + 1)


@dataclass(frozen=True)
class Atlas:
    """All maps of a release."""

    attack: Attack
    spreader: Spreader

    @property
    def scales(self) -> list[Scale]:
        return self.spreader.scales

    @cached_property
    def planes(self) -> list[Plane]:
        """The pairs of attributes to draw; a single attribute stands alone."""
        if len(self.scales) == 1:
            return [Plane(0, None)]
        ranked = sorted(range(len(self.scales)), key=lambda i: (-len(self.scales[i].labels), i))
        return [Plane(a, b) for a, b in combinations(sorted(ranked[:MOST_ATTRIBUTES]), 2)]

    def _targets(self) -> Iterator[tuple[int | None, Target]]:
        yield from enumerate(self.attack.targets())
        outliers = self.attack.outliers()
        if outliers and not self.attack.release.config.missing:
            yield None, outliers

    @cached_property
    def _maps(self) -> list[_Map]:
        found = [
            _Map(plane, np.zeros(plane.shape(self.scales)), np.zeros(plane.shape(self.scales), np.bool_))
            for plane in self.planes
        ]
        for number, target in self._targets():
            pieces = self.spreader.pieces(target)
            for each in found:
                each.add(number, target, pieces, self.scales)
        return found

    def choices(self) -> tuple[Choice, ...]:
        """Draw a map for every pair of attributes."""
        return tuple(self._choice(number, each) for number, each in enumerate(self._maps, 1))

    def _choice(self, number: int, found: _Map) -> Choice:
        across, up = self._sides(found.plane)
        name = " and ".join(each.name for each in (across, up) if each.name)
        drawn = sorted(found.outlines, key=lambda each: (_squares(each) == 1, -found.outlines[each], each))[
            :MOST_FRAMES
        ]
        named = len(drawn) <= FEW_FRAMES
        frames = tuple(Frame(_frame_name(found.classes[each]) if named else "", *each) for each in sorted(drawn))
        grid = SegmentGrid(
            across,
            up,
            frames=frames,
            values=_values(found.expected),
            values_name="records expected",
            hatched=frozenset(zip(*(each.tolist() for each in np.nonzero(found.taken)), strict=True)),
            hatched_name="taken from a class that reaches here",
        )
        left = len(found.outlines) - len(drawn)
        caption = (
            f"Frames are published labels, colour is how many records to expect in each {self._what(found.plane)} "
            "if all that is left is equally likely."
            + (HATCHED if found.taken.any() else "")
            + (f" Not drawn: {count(left, 'more frame')}, single squares or of fewer records." if left else "")
            + self._evenly
        )
        return Choice(
            name,
            Picture(f"map-{number}", f"Where records are: {name}", caption, self._words(found), draw_segments(grid)),
        )

    @property
    def _evenly(self) -> str:
        number = self.spreader.evenly
        told = f"{count(number, 'class')} {'was' if number == 1 else 'were'} spread evenly over what is free for them"
        return f" {told}, because their odds would take too long." if number else ""

    def _what(self, plane: Plane) -> str:
        chosen = [self.scales[i] for i in (plane.across, plane.up) if i is not None]
        whole = len(chosen) == len(self.scales) and all(each.is_finest for each in chosen)
        return "cell" if whole else "square (summed over all other attributes and finer labels)"

    def _words(self, found: _Map) -> str:
        across, up = self._sides(found.plane)
        place = np.unravel_index(int(found.expected.argmax()), found.expected.shape)
        most = f"{found.expected.max():,.1f} in {_place(across, up, int(place[0]), int(place[1]))}"
        squares = f"{found.expected.size:,} squares, {int(found.taken.sum()):,} of them hatched"
        return (
            f"A grid of {squares}, {count(len(found.outlines), 'different frame')}. Most records are expected: {most}."
        )

    def _sides(self, plane: Plane) -> tuple[Side, Side]:
        across, up = (self.scales[i] if i is not None else None for i in (plane.across, plane.up))
        assert across is not None
        return _side(across), _side(up) if up else Side("", (" ",))

    def of_class(self, number: int, target: Target) -> Picture:
        """Draw one class: its own cells, with what to expect in each."""
        plane = self._widest(target)
        pieces = self.spreader.pieces(target)
        expected = plane.project(pieces, self.scales)
        (a, b), (c, d) = plane.outline(target.box, self.scales)
        across, up = self._sides(plane)
        inside = expected[a:b, c:d]
        empty = frozenset((int(x), int(y)) for x, y in zip(*np.nonzero(inside < NOBODY), strict=True))
        grid = SegmentGrid(
            Side(across.name, across.labels[a:b]),
            Side(up.name, up.labels[c:d]),
            values=_values(inside),
            values_name="records expected",
            names={cell: f"{value:.2g}" for cell, value in _values(inside).items()},
            hatched=empty,
        )
        name = listed([each.name for each in (across, up) if each.name])
        caption = f"Class {number:,} by {name}: how many of its records to expect in each {self._what(plane)}."
        words = (
            f"{b - a} by {d - c} squares; in {len(empty)} of them nobody can be, at most {inside.max():.2g} elsewhere."
        )
        return Picture(f"class-{number}", f"Class {number:,}", caption, words, draw_segments(grid))

    def _widest(self, target: Target) -> Plane:
        """The two attributes in which a class spans the most nodes."""
        if len(self.scales) == 1:
            return Plane(0, None)
        spans = [scale.touched(target.box[i]) for i, scale in enumerate(self.scales)]
        ranked = sorted(range(len(spans)), key=lambda i: (spans[i][0] - spans[i][1], i))
        across, up = sorted(ranked[:2])
        return Plane(across, up)

    def singled_out(self, findings: Sequence[Finding]) -> Picture | None:
        """Draw the classes in which the raw table shows somebody alone; their labels, not the cells."""
        alone = [each for each in findings if each.number and each.truth and each.truth.singles and not each.basic]
        if not alone:
            return None
        plane = max(self.planes, key=lambda each: np.prod(each.shape(self.scales)))
        found = _Map(plane, np.zeros(plane.shape(self.scales)), np.zeros(plane.shape(self.scales), np.bool_))
        records: Counter[Outline] = Counter()
        for each in alone:
            assert each.number is not None and each.truth is not None
            target = self.attack.target(each.number - 1)
            found.add(each.number - 1, target, self.spreader.pieces(target), self.scales)
            records[plane.outline(target.box, self.scales)] += each.truth.singles
        across, up = self._sides(plane)
        drawn = sorted(records, key=lambda each: (-records[each], each))[:FEW_FRAMES]
        frames = tuple(Frame(f"{records[each]:,} alone", *each, colour=VERMILLION) for each in sorted(drawn))
        grid = SegmentGrid(
            across, up, frames=frames, values=_values(found.expected), values_name="their records expected"
        )
        total, left = sum(records.values()), len(records) - len(drawn)
        caption = (
            f"{count(total, 'record')} stand alone in a cell among their class, in {count(len(alone), 'class')}. "
            "Frames are the published labels of these classes, with how many stand alone under each; which cells they "
            "are in is not kept." + (f" {count(left, 'more frame')} not drawn." if left else "")
        )
        words = (
            f"Frames around {count(len(drawn), 'label')}, holding up to {max(records.values()):,} lone records each."
        )
        return Picture("singled-out", "Where singled-out records sit", caption, words, draw_segments(grid))


def hierarchy(number: int, attribute: QuasiIdentifier) -> Picture:
    """Draw the hierarchy of an attribute."""
    tree = attribute.hierarchy
    lowest = 1 if tree.kind == "interval" else attribute.finest_layer
    bars = bars_of(attribute.name, tree, lowest=lowest)
    caption = f"{attribute.name}: what may be published, from the finest labels at the bottom to the whole domain."
    words = f"{count(len(bars.layers), 'layer')} of {count(len(bars.bars), 'node')} in all. {bars.note}".strip()
    return Picture(f"hierarchy-{number}", f"The hierarchy of {attribute.name}", caption, words, draw_bars(bars))


def _values(expected: Floats) -> dict[tuple[int, int], float]:
    places = zip(*np.nonzero(expected >= NOBODY), strict=True)
    return {(int(x), int(y)): float(f"{expected[x, y]:.3g}") for x, y in places}


def _squares(outline: Outline) -> int:
    (a, b), (c, d) = outline
    return (b - a) * (d - c)


def _side(scale: Scale) -> Side:
    return Side(scale.attribute.name, scale.labels)


def _frame_name(classes: Sequence[int]) -> str:
    return f"class {classes[0]:,}" if len(classes) == 1 else count(len(classes), "class")


def _place(across: Side, up: Side, x: int, y: int) -> str:
    return listed([f"{side.name} {side.labels[n]}" for side, n in ((across, x), (up, y)) if side.name])
