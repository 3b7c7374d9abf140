"""Guess a hierarchy from the labels of a release.

Labels of intervals must be nested or disjoint. Then every label is a node of some tree, and the tree that is guessed
is the plainest one that has them all: leaves of one width, grouped evenly, if that fits; else the intervals as they
are, with a leaf in each gap between them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from unblur.building.drafts import Draft, toml_number
from unblur.building.laminar import Bounds, Family
from unblur.building.masks import infer_masks, is_mask
from unblur.building.profiling import Column, Tally
from unblur.errors import HierarchyError, TableError
from unblur.hierarchy import IntervalHierarchy
from unblur.labels import ROOT_LABEL, Interval, parse_interval, parse_number

HalfOpen = tuple[Decimal | None, Decimal | None]

ACCEPTED = "neither an interval ([30, 50[, [30, 50), (30, 50], 30-49, <50, >=30) nor a mask (819**)"
UNKNOWABLE = "layers and labels that nobody has cannot be seen"


@dataclass(frozen=True)
class Domain:
    """What the user knows of the domain behind the labels; None where it is guessed."""

    low: Decimal | None = None
    high: Decimal | None = None
    step: Decimal | None = None

    def __post_init__(self) -> None:
        if self.step is not None and self.step <= 0:
            raise HierarchyError(f"step must be above 0, not {self.step}")
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise HierarchyError(f"low must be below high; they are {self.low} and {self.high}")


EVERYTHING = Domain()


def infer(column: Column, domain: Domain = EVERYTHING) -> Draft:
    """Guess the hierarchy of a column of a release."""
    found = column.distinct(column.values.cast("string"))
    labels = {each["value"]: Tally(each["count"], each.get("first")) for each in found}
    known = {label: tally for label, tally in labels.items() if label.strip(f"{ROOT_LABEL} ")}
    if not known:
        raise TableError(f"{column.where}: every label is {ROOT_LABEL} or empty; nothing to guess from")
    if any(is_mask(label) for label in known):
        _refuse_others(column, known, lambda label: not parse_interval(label))
        codes, finest_layer, notes = infer_masks(column.where, known)
        return Draft(column.name, codes, finest_layer, (*notes, UNKNOWABLE))
    _refuse_others(column, known, lambda label: bool(parse_interval(label) or parse_number(label) is not None))
    tree, notes = infer_intervals(column.where, known, domain)
    numbers = any(parse_interval(label) is None for label in known)
    return Draft(column.name, tree, 0 if numbers else 1, (*notes, UNKNOWABLE))


def _refuse_others(column: Column, labels: Mapping[str, Tally], accept: Callable[[str], bool]) -> None:
    others = [tally for label, tally in labels.items() if not accept(label)]
    if others:
        first = min((tally.first for tally in others if tally.first is not None), default=None)
        total = Tally(sum(tally.count for tally in others), first)
        column.refuse(total, f"a label that is {ACCEPTED}; write a hierarchy file for such labels")


def infer_intervals(
    where: str, labels: Collection[str], domain: Domain = EVERYTHING
) -> tuple[IntervalHierarchy, list[str]]:
    """Guess the hierarchy behind interval labels; raw numbers among them are values inside the leaves.

    >>> tree, notes = infer_intervals("age", ["[0, 10[", "[10, 20[", "[20, 40[", "73"])
    >>> tree.nodes(1), tree.label(2, 1), tree.label(3, 0)
    (8, '[20, 40[', '*')
    """
    try:
        tree = _family(labels, domain).tree()
    except HierarchyError as error:
        raise HierarchyError(f"{where}: {error}") from error
    return tree, list(_notes(domain, tree))


def _notes(domain: Domain, tree: IntervalHierarchy) -> Iterator[str]:
    if domain.step is None:
        yield f"the step {tree.step} is taken from the numbers in the labels; --step sets another"
    options = " and ".join(f"--{end}" for end in ("low", "high") if getattr(domain, end) is None)
    if options:
        low, high = map(toml_number, (tree.low, tree.high))
        yield f"the domain [{low}, {high}) only reaches as far as the labels do; {options} set other ends"


def _family(labels: Collection[str], domain: Domain) -> Family:
    intervals = {label: found for label in labels if (found := parse_interval(label)) is not None}
    values = [value for label in labels if (value := parse_number(label)) is not None]
    if not intervals:
        raise HierarchyError("only raw numbers, no interval; `unblur hierarchy build` makes hierarchies for such")
    step = domain.step if domain.step is not None else resolution(labels)
    touching = _touching(intervals.values())
    stated = {label: each.half_open(step, closed_means_open=touching) for label, each in intervals.items()}
    low, high = _ends(stated.values(), values, step)
    low = low if domain.low is None else domain.low
    high = high if domain.high is None else domain.high
    bounds = {
        label: (low if start is None else start, high if end is None else end) for label, (start, end) in stated.items()
    }
    _check_within(bounds, values, low, high)
    return Family(
        {node: label for label, node in bounds.items()},
        low,
        high,
        step,
        low_fixed=domain.low is not None,
        high_fixed=domain.high is not None,
        keep_labels=any(None in (each.low, each.high) for each in intervals.values()),
    )


def resolution(labels: Collection[str]) -> Decimal:
    """Tell the step from the numbers in labels: their last decimal place; a tenth if all end in `.0`.

    >>> str(resolution(["[0, 10["])), str(resolution(["[0.0, 10.0["])), str(resolution(["[0.25, 10.0["]))
    ('1', '0.1', '0.01')
    """
    numbers = [number for label in labels for number in _numbers(label)]
    exponents = [number.normalize().as_tuple().exponent for number in numbers]
    place = min([0, *(exponent for exponent in exponents if isinstance(exponent, int))])
    if place == 0 and any("." in label for label in labels):
        place = -1
    return Decimal(1).scaleb(place)


def _numbers(label: str) -> Iterator[Decimal]:
    value, interval = parse_number(label), parse_interval(label)
    ends = (interval.low, interval.high) if interval is not None else ()
    yield from (number for number in (value, *ends) if number is not None)


def _touching(intervals: Collection[Interval]) -> bool:
    """Tell whether `[0, 10]` stands next to `[10, 20]`: that can only mean that 10 belongs to the second."""
    starts = {interval.low for interval in intervals if interval.low_closed}
    return any(each.high_closed and each.high in starts and each.low != each.high for each in intervals)


def _ends(bounds: Collection[HalfOpen], values: Sequence[Decimal], step: Decimal) -> Bounds:
    """The ends of all that is seen; beyond an open-ended label, the widest other interval is added.

    Numbers that are never negative are taken not to be so below `<18` either.
    """
    seen = [bound for pair in bounds for bound in pair if bound is not None]
    width = max((high - low for low, high in bounds if low is not None and high is not None), default=step)
    low, high = min([*seen, *values]), max([*seen, *(value + step for value in values)])
    if any(pair[0] is None for pair in bounds):
        low = Decimal(0) if low > 0 else low - width
    if any(pair[1] is None for pair in bounds):
        high += width
    return low, high


def _check_within(bounds: Mapping[str, Bounds], values: Sequence[Decimal], low: Decimal, high: Decimal) -> None:
    for label, (start, end) in bounds.items():
        if start >= end:
            raise HierarchyError(f"no value lies in {label}")
        if start < low or end > high:
            raise HierarchyError(f"{label} reaches beyond the domain [{low}, {high})")
    if outside := sum(not low <= value < high for value in values):
        raise HierarchyError(f"{outside:,} raw numbers lie outside the domain [{low}, {high})")
