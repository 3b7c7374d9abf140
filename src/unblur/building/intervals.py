"""Hierarchies of intervals for a column of numbers: leaves of equal width, or of about equal numbers of records.

Every cut is an exact decimal on the step, whatever the engine's floating-point numbers look like.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from unblur.building.drafts import Draft, draft, toml_number
from unblur.building.profiling import Column, Numbers, number_expression, profile_numbers
from unblur.errors import HierarchyError
from unblur.hierarchy import from_cuts


@dataclass(frozen=True)
class IntervalPlan:
    """What the user says about a hierarchy of intervals; None where the data decides."""

    leaves: int
    step: Decimal | None = None
    low: Decimal | None = None
    high: Decimal | None = None
    fanouts: tuple[int, ...] = (2,)
    """One fan-out is repeated up to a single node; several are those of the layers, from the leaves upwards."""

    def __post_init__(self) -> None:
        if self.leaves < 2:
            raise HierarchyError(f"at least 2 leaves are needed, not {self.leaves}")
        if self.step is not None and self.step <= 0:
            raise HierarchyError(f"step must be above 0, not {self.step}")
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise HierarchyError(f"low must be below high; they are {self.low} and {self.high}")


def build_equal(column: Column, plan: IntervalPlan) -> Draft:
    """Make leaves of equal width."""
    numbers = profile_numbers(column, step=plan.step)
    check_ends(numbers, plan)
    low, width = equal_leaves(numbers, plan)
    cuts = [low + width * i for i in range(plan.leaves + 1)]
    notes = []
    if plan.high is None and (unused := sum(cut >= numbers.end for cut in cuts[:-1])):
        notes.append(f"{_leaves(unused)} above every value: equal leaves on a step of {numbers.step} are this wide")
    return _draft(numbers, plan, cuts, notes)


def build_quantile(column: Column, plan: IntervalPlan) -> Draft:
    """Make leaves of about equal numbers of records; fewer than asked for where many records share a value."""
    numbers = profile_numbers(column, step=plan.step)
    check_ends(numbers, plan)
    low, high = _ends(numbers, plan)
    cuts = [low, *quantile_cuts(numbers, low, high, plan.leaves), high]
    found = len(cuts) - 1
    if found < 2:
        raise HierarchyError(f"{column.where}: the records share so few values that no cut between them is possible")
    notes = ["the cuts lie where the records lie, so they tell something about the data"]
    if found < plan.leaves:
        notes.append(f"{found} leaves instead of {plan.leaves}: many records share a value")
    return _draft(numbers, plan, cuts, notes)


def equal_leaves(numbers: Numbers, plan: IntervalPlan) -> tuple[Decimal, Decimal]:
    """Choose the lower end and the width of equal leaves: as round as possible, with values in the outer leaves."""
    low, high = _ends(numbers, plan)
    if plan.low is not None and plan.high is not None:
        return low, _exact_width(low, high, numbers.step, plan.leaves)
    for grain in tidy_grains(high - low, numbers.step):
        start = low if plan.low is not None or plan.high is not None else numbers.floor(low, grain)
        width = _ceiling((high - start) / plan.leaves, grain)
        if start + plan.leaves * width - high < width or grain == numbers.step:
            break
    # With only the upper end given, what is left over goes below.
    return (high - plan.leaves * width if plan.high is not None else start), width


def tidy_grains(span: Decimal, step: Decimal) -> Iterator[Decimal]:
    """List round multiples of the step, from about `span` downwards: 1, 2 and 5 times a power of ten, then the step.

    >>> [str(grain) for grain in tidy_grains(Decimal(20), Decimal("0.5"))]
    ['20', '10', '5', '2', '1', '0.5']
    """
    for exponent in range(span.adjusted(), step.adjusted() - 1, -1):
        for digit in (5, 2, 1):
            grain = Decimal(digit) * Decimal(10) ** exponent
            if step < grain <= span and grain % step == 0:
                yield grain
    yield step


def quantile_cuts(numbers: Numbers, low: Decimal, high: Decimal, leaves: int) -> list[Decimal]:
    """Choose the cuts between `low` and `high` whose shares of records are nearest to equal ones."""
    candidates, total = _cut_candidates(numbers, low, high, leaves)
    below = [records for _, records in candidates]
    chosen = set()
    for rank in range(1, leaves):
        # In whole numbers: the share `records / total` is compared with `rank / leaves`.
        after = bisect_left(below, rank * total, key=lambda records: records * leaves)
        around = candidates[max(after - 1, 0) : after + 1]
        if around:
            chosen.add(min(around, key=lambda each: abs(each[1] * leaves - rank * total))[0])
    return [low + unit * numbers.step for unit in sorted(chosen)]


def _cut_candidates(numbers: Numbers, low: Decimal, high: Decimal, leaves: int) -> tuple[list[tuple[int, int]], int]:
    """Find possible cuts, in steps above `low`, with the number of records below: the outermost two of each share.

    The nearest candidate below and above any equal share is among them, so at most 2 per leaf leave the engine.
    """
    import ibis

    rows, number, slack = numbers.column.table.rows, number_expression(numbers.column), float(numbers.slack)
    within = (number >= float(low) - slack) & (number < float(high) - slack)
    offset = ibis.ifelse(within, number - float(low) + slack, None)
    units = rows.select(unit=(offset / float(numbers.step)).floor().cast("int64")).drop_null()
    counted = units.group_by("unit").aggregate(records=units.count())
    running = counted.records.sum().over(ibis.cumulative_window(order_by=counted.unit)).cast("int64")
    total = counted.records.sum().over(ibis.window()).cast("int64")
    steps = counted.select("unit", below=running - counted.records, total=total)
    shares = steps.filter(steps.below > 0).mutate(share=(steps.below * leaves / steps.total).floor().cast("int64"))
    edges = shares.group_by("share").aggregate(
        first=shares.unit.min(), first_below=shares.below.min(),
        last=shares.unit.max(), last_below=shares.below.max(), total=shares.total.max(),
    )  # fmt: skip
    found = numbers.column.table.fetch(edges).to_pylist()
    candidates = {(each[end], each[f"{end}_below"]) for each in found for end in ("first", "last")}
    return sorted(candidates), found[0]["total"] if found else 0


def check_ends(numbers: Numbers, plan: IntervalPlan) -> None:
    """Refuse ends that leave no domain, or a step too fine for the numbers."""
    low, high = _ends(numbers, plan)
    if low >= high:
        given = f"low {plan.low} is above" if plan.low is not None else f"high {plan.high} is below"
        raise HierarchyError(f"{numbers.column.where}: {given} every value")
    top = low + _ceiling(high - low, numbers.step)
    from_cuts([low, top], step=numbers.step)  # raises if the step is too fine


def _ends(numbers: Numbers, plan: IntervalPlan) -> tuple[Decimal, Decimal]:
    low = plan.low if plan.low is not None else numbers.floor(numbers.least, numbers.step)
    high = plan.high if plan.high is not None else numbers.end
    if plan.high is None and plan.low is not None:
        high = low + _ceiling(high - low, numbers.step)
    return low, high


def _exact_width(low: Decimal, high: Decimal, step: Decimal, leaves: int) -> Decimal:
    unit = step * leaves
    if (high - low) % unit:
        better = low + _ceiling(high - low, unit)
        raise HierarchyError(
            f"{leaves} equal leaves over [{low}, {high}) do not fall on a step of {step}: "
            f"high - low must be a multiple of {unit}, such as with high {toml_number(better)}"
        )
    return (high - low) / leaves


def _ceiling(value: Decimal, grain: Decimal) -> Decimal:
    return -((-value / grain).to_integral_value("ROUND_FLOOR")) * grain


def _draft(numbers: Numbers, plan: IntervalPlan, cuts: Sequence[Decimal], notes: Sequence[str]) -> Draft:
    """Group the leaves, and say what the hierarchy reveals and whom it leaves out."""
    tree = from_cuts(cuts, fanouts=all_fanouts(plan.fanouts, len(cuts) - 1), step=numbers.step)
    return draft(numbers.column, tree, finest_layer=1, notes=[*_end_notes(plan), *notes])


def all_fanouts(fanouts: Sequence[int], leaves: int) -> list[int]:
    """Repeat a single fan-out until one node is left; several are taken as they are.

    >>> all_fanouts((2,), 8), all_fanouts((2,), 5), all_fanouts((4, 2), 16)
    ([2, 2, 2], [2, 2, 2], [4, 2])
    """
    if len(fanouts) != 1 or fanouts[0] < 2:
        return list(fanouts)
    result = []
    while leaves > 1:
        result.append(fanouts[0])
        leaves = -(-leaves // fanouts[0])
    return result


def _end_notes(plan: IntervalPlan) -> Iterator[str]:
    ends = {"low": ("lower", "smallest", plan.low), "high": ("upper", "largest", plan.high)}
    for option, (end, extreme, given) in ends.items():
        if given is None:
            yield f"the {end} end comes from the {extreme} value and may reveal it; --{option} sets one of your own"


def _leaves(count: int) -> str:
    return "1 leaf lies" if count == 1 else f"{count} leaves lie"
