"""ARX's builders of interval hierarchies, as its wizard saves them (`.ahs`) and as its projects hold them.

A builder lists leaf intervals that repeat along the axis, the sizes of the groups that merge the intervals of a level
into those of the next, and three bounds at either end: intervals repeat up to the first, the outermost reach to the
second, and from there to the third values are coded `<a` or `>=b`. If the last level has more than one node, a root
`*` follows. This module lists the nodes of each level in order; ARX itself only makes those that its data need, so its
own hierarchy of the same builder may end earlier.

Numbers are added and multiplied as ARX does it, in double precision for decimals, because labels show the rounding
(`0.30000000000000004`); the bounds of the hierarchy are put back onto the step.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, DecimalException
from itertools import pairwise
from pathlib import Path
from typing import Any

from unblur.arx.serialized import JavaObject, StreamError, elements, items, object_of, read_stream, unboxed, whole
from unblur.errors import HierarchyError
from unblur.hierarchy import MOST_LEAVES, IntervalHierarchy, rounding_noise
from unblur.labels import ROOT_LABEL, number_label

Number = int | float
Naming = Callable[[str, str], str]
"""Makes a label of the two bounds of an interval, as ARX writes them."""

LARGEST_FILE = 64 << 20
LARGEST_GROUP = 1_000_000
MOST_LEVELS = 64
AS_CSV = "export the hierarchy as CSV from ARX"

_PACKAGE = "org.deidentifier.arx."
_INTERVAL_BUILDERS = {f"{_PACKAGE}aggregates.HierarchyBuilderIntervalBased", f"{_PACKAGE}metric.v2.DomainShareInterval"}
_OTHER_BUILDERS = {
    f"{_PACKAGE}aggregates.HierarchyBuilder{name}": words
    for name, words in {
        "OrderBased": "an ordering",
        "RedactionBased": "masking",
        "PriorityBased": "priorities",
        "Date": "dates",
    }.items()
}


@dataclass(frozen=True)
class Part:
    """An interval from `low` to below `high`, and what names it."""

    low: Number
    high: Number
    naming: Naming


@dataclass(frozen=True)
class Ends:
    """What happens at one end of the axis."""

    repeat: Number
    """Intervals repeat up to here,"""
    snap: Number
    """the outermost reaches to here,"""
    limit: Number
    """and values up to here are bottom or top coded."""


@dataclass(frozen=True)
class Node:
    """A node of a level."""

    low: Number
    high: Number
    label: str


@dataclass(frozen=True)
class IntervalBuilder:
    """The specification of an interval hierarchy."""

    decimals: bool
    parts: tuple[Part, ...]
    """The leaf intervals, which repeat as a whole."""
    groups: tuple[tuple[tuple[int, Naming], ...], ...]
    """For each level above the leaves, how many intervals are merged, and what names the result."""
    lower: Ends
    upper: Ends

    def hierarchy(self, *, step: Decimal | None = None) -> IntervalHierarchy:
        """Build the hierarchy; `step` is the resolution of the attribute, by default that of the builder's numbers."""
        notes = () if step is not None or not self.decimals else (f"step {self.resolution} taken from the builder",)
        try:
            return _tree(self.levels(), step if step is not None else self.resolution, notes)
        except (DecimalException, OverflowError):
            raise HierarchyError(f"the numbers of the builder are too far apart; {AS_CSV}") from None

    @property
    def resolution(self) -> Decimal:
        """The finest decimal place among the numbers of the builder; 1 for whole numbers."""
        ends = [bound for end in (self.lower, self.upper) for bound in (end.repeat, end.snap, end.limit)]
        numbers = [*ends, *(bound for part in self.parts for bound in (part.low, part.high))]
        return Decimal(1).scaleb(min(0, *map(_places, numbers))) if self.decimals else Decimal(1)

    def levels(self) -> list[list[Node]]:
        """List the nodes of every level from the leaves to the root, in ARX's own numbers."""
        parts, found = list(self.parts), [self._nodes(self.parts)]
        for groups in self.groups:
            if len(found[-1]) == 1:
                return found
            parts = _merge(parts, groups)
            found.append(self._nodes(parts))
        if len(found[-1]) > 1:
            found.append([Node(self.lower.limit, self.upper.limit, ROOT_LABEL)])
        return found

    def _nodes(self, parts: Sequence[Part]) -> list[Node]:
        """Repeat the intervals of a level from end to end."""
        first, last = _place(parts, self.lower.repeat), _place_below(parts, self.upper.repeat)
        if last - first >= MOST_LEAVES:
            raise HierarchyError(f"{last - first + 1:,} intervals are too many; {MOST_LEAVES:,} are accepted")
        row = [_repeated(parts, place) for place in range(first, max(first, last) + 1)]
        lows = [self.lower.snap, *(part.low for part in row[1:])]
        highs = [*(part.high for part in row[:-1]), self.upper.snap]
        nodes = [
            Node(low, high, part.naming(self._write(low), self._write(high)))
            for part, low, high in zip(row, lows, highs, strict=True)
        ]
        if self.lower.limit < self.lower.snap:
            nodes.insert(0, Node(self.lower.limit, self.lower.snap, f"<{self._write(self.lower.snap)}"))
        if self.upper.snap < self.upper.limit:
            nodes.append(Node(self.upper.snap, self.upper.limit, f">={self._write(self.upper.snap)}"))
        return nodes

    def _write(self, number: Number) -> str:
        return number_label(_decimal(number), decimals=self.decimals)


def read_builder(source: Path | bytes, *, name: str | None = None, step: Decimal | None = None) -> IntervalHierarchy:
    """Read the hierarchy that a builder file (`.ahs`) describes; `name` stands in errors, by default the path."""
    name = name or (str(source) if isinstance(source, Path) else "the builder")
    try:
        found = read_stream(_bytes(source))
        if len(found) != 1:
            raise StreamError(f"it holds {len(found)} objects instead of one builder")
        return interval_builder(found[0]).hierarchy(step=step)
    except StreamError as error:
        raise HierarchyError(f"{name}: not a builder file of ARX (.ahs): {error}") from None
    except HierarchyError as error:
        raise HierarchyError(f"{name}: {error}") from None


def interval_builder(found: Any) -> IntervalBuilder:
    """Take the specification out of a builder object of ARX."""
    if not isinstance(found, JavaObject) or found.class_name not in _INTERVAL_BUILDERS:
        kind = _OTHER_BUILDERS.get(found.class_name) if isinstance(found, JavaObject) else None
        what = f"a builder by {kind}" if kind else "no builder"
        raise HierarchyError(f"{what}; only interval builders are read: {AS_CSV}")
    try:
        return _specification(found)
    except StreamError as error:
        raise HierarchyError(f"the builder is damaged: {error}") from None


def _bytes(source: Path | bytes) -> bytes:
    if isinstance(source, bytes):
        return source
    try:
        with source.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise HierarchyError(error.strerror or str(error)) from error
    if len(data) > LARGEST_FILE:
        raise StreamError(f"it is larger than {LARGEST_FILE >> 20} MB")
    return data


# From ARX's objects to the specification.


def _specification(found: JavaObject) -> IntervalBuilder:
    decimals = _is_decimal(found["datatype"])
    parts = tuple(_part(each, decimals) for each in elements(found["intervals"]))
    if not parts:
        raise HierarchyError("the builder has no intervals")
    if any(left.high != right.low for left, right in pairwise(parts)):
        raise HierarchyError("the intervals of the builder do not join")
    lower = _ends(found["lowerRange"], parts[0].low, decimals)
    upper = _ends(found["upperRange"], parts[-1].high, decimals)
    rising = [lower.limit, lower.snap, lower.repeat, upper.repeat, upper.snap, upper.limit]
    if rising != sorted(rising) or lower.repeat == upper.repeat:
        raise HierarchyError("the ranges of the builder are not in order: the lower ones must be below the upper ones")
    return IntervalBuilder(decimals, parts, _groups(found["groups"]), lower, upper)


def _is_decimal(datatype: Any) -> bool:
    kinds = {f"{_PACKAGE}DataType$ARXInteger": False, f"{_PACKAGE}DataType$ARXDecimal": True}
    if not isinstance(datatype, JavaObject) or datatype.class_name not in kinds:
        raise HierarchyError(f"a builder for dates, or for another type than numbers; {AS_CSV}")
    if datatype["format"] is not None or datatype["string"] is not None:
        raise HierarchyError(f"numbers with their own format; {AS_CSV}")
    return kinds[datatype.class_name]


def _part(found: Any, decimals: bool) -> Part:
    interval = object_of(found, "interval")
    part = Part(_number(interval["min"], decimals), _number(interval["max"], decimals), _naming(interval["function"]))
    if not part.low < part.high:
        raise HierarchyError("an interval of the builder ends where it begins, or before")
    return part


def _ends(found: Any, default: Number, decimals: bool) -> Ends:
    """Read the bounds of one end; one that is not given is the one before it."""
    bounds = [default]
    for name in ("repeatBound", "snapBound", "labelBound"):
        bound = object_of(found, "range")[name]
        bounds.append(bounds[-1] if bound is None else _number(bound, decimals))
    return Ends(*bounds[1:])


def _groups(levels: Any) -> tuple[tuple[tuple[int, Naming], ...], ...]:
    by_level = {}
    for _, each in items(levels):
        level = object_of(each, "level")
        by_level[whole(level["level"], "a level")] = [object_of(one, "group") for one in elements(level["list"])]
    found = [
        tuple((whole(group["size"], "a size"), _naming(group["function"])) for group in by_level[level])
        for level in sorted(by_level)
    ]
    while found and not found[-1]:
        found.pop()
    if not all(found):
        raise HierarchyError("a level of the builder has no groups")
    if len(found) > MOST_LEVELS:
        raise HierarchyError(f"{len(found):,} levels are too many; {MOST_LEVELS} are accepted")
    return tuple(found)


def _naming(function: Any) -> Naming:
    """Read how an interval is named."""
    found = object_of(function, "name for an interval")
    kind = found.class_name.removeprefix(f"{_PACKAGE}aggregates.AggregateFunction$Generic")
    if kind == "Interval":
        left, right = "[" if found["lowerIncluded"] is True else "]", "]" if found["upperIncluded"] is True else "["
        return lambda low, high: f"{left}{low}, {high}{right}"
    if kind == "Bounds":
        return lambda low, high: f"[{low}, {high}]"
    if kind == "Set":
        return lambda low, high: f"{{{low}, {high}}}"
    if kind == "Constant" and isinstance(constant := found["value"], str) and constant:
        return lambda low, high: constant
    raise HierarchyError(f"intervals named by something else than bounds or a fixed text; {AS_CSV}")


def _number(found: Any, decimals: bool) -> Number:
    number = unboxed(found)
    if not isinstance(number, float if decimals else int) or isinstance(number, bool) or not math.isfinite(number):
        raise StreamError("a bound is no number")
    return number + 0.0 if decimals else number


# ARX's arithmetic: the intervals repeat in both directions, and are counted from the first one given (place 0).


def _width(parts: Sequence[Part]) -> Number:
    return parts[-1].high - parts[0].low


def _repeated(parts: Sequence[Part], place: int) -> Part:
    repetition, position = divmod(place, len(parts))
    part, offset = parts[position], _width(parts) * repetition
    return Part(part.low + offset, part.high + offset, part.naming)


def _place(parts: Sequence[Part], value: Number) -> int:
    """Find the interval that holds a value."""
    repetition, inside = _inside(parts, value)
    if inside == parts[-1].high:  # by rounding
        return (repetition + 1) * len(parts)
    for position, part in enumerate(parts):
        if part.low <= inside < part.high:
            return repetition * len(parts) + position
    raise HierarchyError(f"a bound of the builder falls between its intervals by rounding; {AS_CSV}")


def _place_below(parts: Sequence[Part], value: Number) -> int:
    """Find the interval that holds the values just below a value."""
    repetition, inside = _inside(parts, value)
    for position, part in enumerate(parts):
        if part.low <= inside < part.high:
            return repetition * len(parts) + position - (inside == part.low)
    if len(parts) == 1:
        return repetition
    raise HierarchyError(f"a bound of the builder falls between its intervals by rounding; {AS_CSV}")


def _inside(parts: Sequence[Part], value: Number) -> tuple[int, Number]:
    """Move a value by whole repetitions into the intervals as given."""
    width = _width(parts)
    ratio = float(value - parts[0].low) / float(width)
    if not math.isfinite(ratio):
        raise HierarchyError(f"the numbers of the builder are too far apart; {AS_CSV}")
    repetition = math.floor(ratio)
    return repetition, value - width * repetition


def _merge(parts: Sequence[Part], groups: Sequence[tuple[int, Naming]]) -> list[Part]:
    """Make the intervals of the next level: as many as there are groups, or groups repeat while intervals are left."""
    sizes = [size for size, _ in groups]
    if min(sizes) < 1 or sum(sizes) > LARGEST_GROUP:
        raise HierarchyError(f"a group must have 1 to {LARGEST_GROUP:,} intervals")
    merged: list[Part] = []
    start, enough = 0, sum(sizes) >= len(parts)
    while not merged or (start < len(parts) and not enough):
        for size, naming in groups:
            if not enough and start >= len(parts):
                raise HierarchyError("the groups of the builder do not add up to its intervals; ARX refuses it too")
            end = start + size if enough else min(start + size, len(parts))
            merged.append(Part(_repeated(parts, start).low, _repeated(parts, end - 1).high, naming))
            start = end
    return merged


# From nodes to a hierarchy.


def _decimal(number: Number) -> Decimal:
    if not math.isfinite(number):
        raise OverflowError
    return Decimal(repr(number))


def _places(number: Number) -> int:
    exponent = _decimal(number).normalize().as_tuple().exponent
    assert isinstance(exponent, int), "bounds are finite"
    return exponent


def _tree(levels: Sequence[Sequence[Node]], step: Decimal, notes: tuple[str, ...]) -> IntervalHierarchy:
    origin = _decimal(levels[0][0].low)
    if step <= 0:
        raise HierarchyError(f"step must be above 0, not {step}")
    bounds = [
        [*(_on_step(node.low, origin, step) for node in level), _on_step(level[-1].high, origin, step)]
        for level in levels
    ]
    for number, level in enumerate(levels, 1):
        if len({node.label for node in level}) < len(level):
            raise HierarchyError(f"two intervals of level {number} have the same label; {AS_CSV}")
    for number, (lower, upper) in enumerate(pairwise(bounds), 2):
        if not set(upper) <= set(lower):
            raise HierarchyError(f"an interval of level {number} cuts one of the level below; ARX made no tree of it")
    return IntervalHierarchy(
        labels=tuple(tuple(node.label for node in level) for level in levels),
        parents=tuple(tuple(bisect_right(upper, low) - 1 for low in lower[:-1]) for lower, upper in pairwise(bounds)),
        bounds=tuple(bounds[0]),
        step=step,
        notes=notes,
    )


def _on_step(number: Number, origin: Decimal, step: Decimal) -> Decimal:
    """Undo the rounding of double precision: take the multiple of the step that was meant."""
    written = _decimal(number)
    meant = origin + ((written - origin) / step).to_integral_value() * step
    return meant if abs(meant - written) <= rounding_noise([written, origin]) else written
