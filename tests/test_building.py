from __future__ import annotations

import datetime
import tomllib
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unblur.arx.hierarchy_csv import read_hierarchy
from unblur.building.dates import build_dates, calendar
from unblur.building.drafts import Draft, check_draft_target, interval_entry
from unblur.building.intervals import IntervalPlan, build_equal, build_quantile, tidy_grains
from unblur.building.masks import build_mask
from unblur.building.profiling import ISO_DATE, Column, profile_numbers
from unblur.config import Config
from unblur.errors import HierarchyError, OutputError, TableError
from unblur.hierarchy import IntervalHierarchy, from_cuts
from unblur.sources import open_table
from unblur.workspace import Workspace

from .strategies import interval_hierarchies


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    with Workspace(threads=1) as found:
        yield found


def column(values: Any, workspace: Workspace) -> Column:
    return Column(open_table(pa.table({"x": values}), workspace), "x")


def tree_of(draft: Draft) -> IntervalHierarchy:
    assert isinstance(draft.hierarchy, IntervalHierarchy)
    return draft.hierarchy


def uncovered(draft: Draft) -> list[str]:
    return [note for note in draft.notes if "such row" in note]


def read_back(draft: Draft) -> IntervalHierarchy:
    entries = tomllib.loads(draft.to_toml(), parse_float=Decimal)
    tree = Config.from_dict({"k": 2, **entries}).quasi_identifiers[0].hierarchy
    assert isinstance(tree, IntervalHierarchy)
    return tree


tenths = st.lists(st.integers(-2_000, 5_000).map(lambda n: n / 10), min_size=1, max_size=60)


@settings(max_examples=12, deadline=None)
@given(tenths, st.integers(2, 20))
def test_equal_leaves_cover_every_value_and_are_equally_wide(values: list[float], leaves: int) -> None:
    with Workspace(threads=1) as workspace:
        draft = build_equal(column(values, workspace), IntervalPlan(leaves))
    tree = tree_of(draft)
    assert not uncovered(draft) and tree.nodes(1) == leaves
    assert len({high - low for low, high in zip(tree.bounds, tree.bounds[1:], strict=False)}) == 1
    assert all(tree.low <= Decimal(str(value)) < tree.high for value in values)
    assert read_back(draft) == tree


@settings(max_examples=12, deadline=None)
@given(tenths, st.integers(2, 12))
def test_each_cut_between_quantile_leaves_is_the_nearest_to_an_equal_share(values: list[float], leaves: int) -> None:
    with Workspace(threads=1) as workspace:
        try:
            draft = build_quantile(column(values, workspace), IntervalPlan(leaves))
        except HierarchyError:
            assert len(set(values)) == 1
            return
    tree = tree_of(draft)
    assert not uncovered(draft) and 2 <= tree.nodes(1) <= leaves
    exact = sorted(Decimal(str(value)) for value in values)
    below = {cut: sum(value < cut for value in exact) for cut in set(exact) - {exact[0]}}
    best = {min(abs(count * leaves - rank * len(exact)) for count in below.values()) for rank in range(1, leaves)}
    found = {
        min(abs(below[cut] * leaves - rank * len(exact)) for rank in range(1, leaves)) for cut in tree.bounds[1:-1]
    }
    assert found <= best
    assert read_back(draft) == tree


def test_quantile_leaves_of_different_values_hold_equal_numbers(workspace: Workspace) -> None:
    tree = tree_of(build_quantile(column(list(range(1_000)), workspace), IntervalPlan(8)))
    assert set(tree._lengths[0].tolist()) == {125}


def test_values_that_repeat_give_fewer_leaves_and_a_note(workspace: Workspace) -> None:
    draft = build_quantile(column([1] * 90 + [2] * 10, workspace), IntervalPlan(4))
    assert [*map(int, tree_of(draft).bounds)] == [1, 2, 3]
    assert any("2 leaves instead of 4" in note for note in draft.notes)


def test_quantile_leaves_within_given_bounds_ignore_what_lies_outside(workspace: Workspace) -> None:
    plan = IntervalPlan(2, low=Decimal(0), high=Decimal(100))
    draft = build_quantile(column([*range(10, 20), *[500] * 50], workspace), plan)
    assert [*map(int, tree_of(draft).bounds)] == [0, 15, 100]
    assert len(uncovered(draft)) == 1


def test_bounds_are_tidy(workspace: Workspace) -> None:
    weights = column([30.5, 189.5, 77.0], workspace)
    assert interval_entry(build_equal(weights, IntervalPlan(8)).hierarchy) == (
        "{ low = 30, high = 190, step = 0.1, layers = 4 }"
    )


def test_bounds_from_the_data_are_called_out_and_given_ones_are_not(workspace: Workspace) -> None:
    ages = column([18, 97, 30], workspace)
    assert sum("may reveal it" in note for note in build_equal(ages, IntervalPlan(4)).notes) == 2
    assert build_equal(ages, IntervalPlan(4, low=Decimal(0), high=Decimal(120))).notes == ()


def test_with_one_end_given_the_other_moves(workspace: Workspace) -> None:
    ages = column([18, 97, 30], workspace)
    low = tree_of(build_equal(ages, IntervalPlan(5, low=Decimal(3))))
    high = tree_of(build_equal(ages, IntervalPlan(5, high=Decimal(101))))
    assert low.low == 3 and low.high >= 98 and high.high == 101 and high.low <= 18


def test_the_step_is_found_in_texts_floats_with_noise_and_decimals(workspace: Workspace) -> None:
    cases = {
        "0.1": [0.1 + 0.2, 0.7 + 0.1],
        "0.01": [Decimal("1.25"), Decimal("3.00")],
        "1": ["70.0", " 80", "1e2", "NA"],
    }
    for step, values in cases.items():
        with Workspace(threads=1) as fresh:
            assert profile_numbers(column(values, fresh)).step == Decimal(step)


def test_rounding_noise_moves_no_bound(workspace: Workspace) -> None:
    numbers = profile_numbers(column([0.1 + 0.2, 0.7 + 0.1], workspace))
    assert (numbers.least, numbers.greatest, numbers.end) == (Decimal("0.3"), Decimal("0.8"), Decimal("0.9"))


def test_a_fanout_list_gives_each_layer(workspace: Workspace) -> None:
    tree = tree_of(build_equal(column([0, 59], workspace), IntervalPlan(12, fanouts=(2, 3))))
    assert [tree.nodes(layer) for layer in range(1, tree.height + 1)] == [12, 6, 2, 1]
    assert tree.label(tree.height, 0) == "*"


@given(st.integers(1, 10**6), st.sampled_from(["1", "0.5", "0.25", "7", "0.01"]))
def test_tidy_grains_are_multiples_of_the_step_and_end_with_it(span: int, step: str) -> None:
    grains = list(tidy_grains(Decimal(span), Decimal(step)))
    assert grains == sorted(grains, reverse=True) and grains[-1] == Decimal(step)
    assert all(grain % Decimal(step) == 0 for grain in grains)


@settings(deadline=None)
@given(interval_hierarchies())
def test_a_draft_says_the_same_as_toml_and_as_csv(tree: IntervalHierarchy) -> None:
    draft = Draft("x", tree, 1)
    assert read_back(draft) == tree
    with Workspace() as workspace:
        draft.save(workspace.folder / "x.csv")
        again = read_hierarchy(workspace.folder / "x.csv", step=tree.step)
    if tree.nodes(1) > 1 or tree.labels[-1][0] == "*":
        assert again.labels == tree.labels and again.parents == tree.parents


@pytest.mark.parametrize(
    "values, plan, message",
    [
        (["12", "x", "13"], IntervalPlan(2), "row 2: no number (decimals are written with a point) (1 such row)"),
        ([1.0, float("inf")], IntervalPlan(2), "row 2: an infinite number"),
        ([None, None], IntervalPlan(2), "the column is empty"),
        (["", "NA"], IntervalPlan(2), "the column is empty"),
        ([True], IntervalPlan(2), "holds boolean; numbers are needed"),
        ([1e300], IntervalPlan(2), "more than 15 digits"),
        ([1e-12, 0.25], IntervalPlan(2), "--step"),
        ([1, 9], IntervalPlan(3, low=Decimal(0), high=Decimal(10)), "high - low must be a multiple of 3"),
        ([1, 9], IntervalPlan(3, low=Decimal(20)), "low 20 is above every value"),
        ([1, 9], IntervalPlan(3, high=Decimal(0)), "high 0 is below every value"),
        ([1, 10**12], IntervalPlan(3, step=Decimal("0.0001")), "too fine"),
        ([1, 9], IntervalPlan(5000), "5,000 leaves are too many"),
    ],
)
def test_what_no_interval_fits_is_refused(workspace: Workspace, values: Any, plan: IntervalPlan, message: str) -> None:
    with pytest.raises((TableError, HierarchyError)) as caught:
        build_equal(column(pa.array(values), workspace), plan)
    assert message in str(caught.value)


def test_plans_without_sense_are_refused() -> None:
    with pytest.raises(HierarchyError, match="at least 2 leaves"):
        IntervalPlan(1)
    with pytest.raises(HierarchyError, match="step must be above 0"):
        IntervalPlan(2, step=Decimal(0))
    with pytest.raises(HierarchyError, match="low must be below high"):
        IntervalPlan(2, low=Decimal(2), high=Decimal(2))


def test_a_missing_column_is_suggested(workspace: Workspace) -> None:
    table = open_table(pa.table({"weight": [1]}), workspace)
    with pytest.raises(TableError, match="did you mean 'weight'"):
        Column(table, "wieght")


def test_dates_list_every_day_of_whole_years(workspace: Workspace) -> None:
    draft = build_dates(
        column(["2023-11-30", "2024-02-29", ""], workspace), ["day", "month", "quarter", "year", "decade"]
    )
    assert draft.hierarchy.values == 365 + 366 and draft.finest_layer == 0
    assert len(uncovered(draft)) == 1  # the empty one
    assert [draft.hierarchy.label(layer, 0) for layer in range(6)] == [
        "2023-01-01", "2023-01", "2023-Q1", "2023", "2020s", "*",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us"), pa.timestamp("s")])
def test_date_and_timestamp_columns_are_covered(workspace: Workspace, kind: pa.DataType) -> None:
    days = pa.array([datetime.datetime(2024, 3, 17, 0), datetime.datetime(2023, 1, 1)]).cast(kind)
    draft = build_dates(column(days, workspace), ["month"])
    assert not uncovered(draft) and draft.hierarchy.values == 365 + 366 and draft.finest_layer == 1


def test_years_can_be_given(workspace: Workspace) -> None:
    draft = build_dates(column(["2023-11-30"], workspace), ["year"], first_year=2020, last_year=2029)
    assert draft.hierarchy.nodes(1) == 10 and draft.notes == ()


@pytest.mark.parametrize(
    "periods, message",
    [
        (["week"], "unknown period 'week'"),
        (["year", "month"], "must rise"),
        (["year", "year"], "must rise"),
        ([], "must"),
    ],
)
def test_periods_out_of_order_are_refused(workspace: Workspace, periods: list[str], message: str) -> None:
    with pytest.raises(HierarchyError, match=message):
        build_dates(column(["2023-11-30"], workspace), periods)


@pytest.mark.parametrize(
    "values, message",
    [
        (["2024-01-01", "2023-02-29", "01.02.2024"], r"row 2: a text that is no date .* \(2 such rows\)"),
        ([1, 2], "holds int64; dates"),
        (pa.array([None], pa.string()), "the column is empty"),
        (["0202-01-01", "2024-01-01"], "the dates span 1,823 years"),
    ],
)
def test_wrong_dates_are_refused(workspace: Workspace, values: Any, message: str) -> None:
    with pytest.raises((TableError, HierarchyError), match=message):
        build_dates(column(values, workspace), ["year"])


@settings(max_examples=300)
@given(st.integers(0, 9999), st.integers(0, 13), st.integers(0, 32))
def test_the_pattern_of_dates_accepts_the_calendar(year: int, month: int, day: int) -> None:
    import re

    text = f"{year:04}-{month:02}-{day:02}"
    try:
        datetime.date.fromisoformat(text)
        valid = True
    except ValueError:
        valid = False
    assert bool(re.search(ISO_DATE, text)) is valid


@pytest.mark.parametrize("year", [4, 100, 400, 1900, 1904, 2000, 2023, 2024, 2100, 4000, 9996])
def test_the_pattern_of_dates_knows_leap_years(year: int) -> None:
    import calendar
    import re

    assert bool(re.search(ISO_DATE, f"{year:04}-02-29")) is calendar.isleap(year)


def test_a_century_of_days_is_written_quickly(tmp_path: Path) -> None:
    Draft("day", calendar(1930, 2029, ["month", "year", "decade"]), 0).save(tmp_path / "days.csv")
    assert len((tmp_path / "days.csv").read_text().splitlines()) == 36_525


def test_codes_are_masked_from_either_side(workspace: Workspace) -> None:
    codes = column(["81931", "81929", "81931", None], workspace)
    right, left = build_mask(codes), build_mask(codes, mask_from="left")
    assert right.hierarchy.labels[0] == ("8192*", "8193*") and right.hierarchy.labels[-1] == ("*",)
    assert left.hierarchy.labels[0] == ("*1929", "*1931") and left.hierarchy.height == 5
    assert any("should not be published" in note for note in right.notes)


def test_padded_codes_keep_their_values_and_share_labels(workspace: Workspace) -> None:
    draft = build_mask(column(["1067", "01067"], workspace), pad="0")
    assert draft.hierarchy.labels[0] == ("0106*",) and draft.hierarchy.values == 2


@pytest.mark.parametrize(
    "values, message",
    [
        (["1067", "81931", "80331"], r"1 of 4 characters, 2 of 5 characters\); --pad 0"),
        (["AB", "ABC"], r"\(1 of 2 characters, 1 of 3 characters\)$"),
        (["819**"], r"row 1: a code with a \*"),
        ([1.5], "holds float64; codes are texts or whole numbers"),
        (["", " "], "the column is empty"),
    ],
)
def test_codes_that_cannot_be_masked_alike_are_refused(workspace: Workspace, values: Any, message: str) -> None:
    with pytest.raises(TableError, match=message):
        build_mask(column(values, workspace))


def test_a_draft_is_not_written_over_a_config_or_to_another_format(tmp_path: Path) -> None:
    config = tmp_path / "unblur.toml"
    config.write_text("k = 5\n")
    with pytest.raises(OutputError, match="is there already"):
        check_draft_target(config, "clinic.csv")
    with pytest.raises(OutputError, match=r"\.toml .* or \.csv"):
        check_draft_target(tmp_path / "x.parquet", "clinic.csv")
    table = tmp_path / "clinic.csv"
    table.write_text("age\n1\n")
    with pytest.raises(OutputError, match="this is an input"):
        check_draft_target(table, str(table))


def test_trees_that_cuts_and_fanouts_cannot_describe_have_no_entry() -> None:
    tree = from_cuts([Decimal(c) for c in (0, 1, 2, 3, 4)], fanouts=[2])
    odd = IntervalHierarchy(
        (tree.labels[0], ("[0, 1[", "[1, 4["), ("*",)), ((0, 1, 1, 1), (0, 0)), tree.bounds, tree.step
    )
    assert interval_entry(odd) is None and Counter(odd.parents[0])[1] == 3
