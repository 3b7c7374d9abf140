"""ARX's builder files and projects: real ones read exactly, hostile ones refused in one line."""

from __future__ import annotations

import csv
import json
import random
import re
import struct
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from unblur.arx import archive, project_output, serialized
from unblur.arx.builders import Ends, IntervalBuilder, Part, read_builder
from unblur.arx.project import Project, read_project
from unblur.arx.serialized import MAGIC, StreamError, read_stream
from unblur.config import Config, Mechanism
from unblur.errors import HierarchyError, OutputError, TableError, UnblurError
from unblur.hierarchy import Hierarchy, IntervalHierarchy
from unblur.reading import read_release

GOLDEN = Path(__file__).parent / "golden"
PROJECTS = ["g21_gui_default", "g22_gui_default"]
BUILDERS = sorted((GOLDEN / "g07_matched").glob("*.ahs"))
ARX = "org.deidentifier.arx."

Change = Callable[[bytes], bytes]
Rebuild = Callable[..., Path]


# A writer of Java object streams, as far as these tests need one. It describes every class anew.


def utf(text: str) -> bytes:
    return struct.pack(">H", len(text.encode())) + text.encode()


def class_of(name: str, fields: bytes = b"\0\0", *, flags: int = 2, parent: bytes = b"\x70") -> bytes:
    return b"\x72" + utf(name) + bytes(8) + bytes([flags]) + fields + b"\x78" + parent


def string(text: str) -> bytes:
    return b"\x74" + utf(text)


def java(name: str, /, *, flags: int = 2, extra: bytes = b"", **fields: Any) -> bytes:
    """An object; a field is an int, a bool, a pair of a type code and a number, or an object already written."""
    kinds = {int: "I", bool: "Z", float: "D"}
    described, values = struct.pack(">H", len(fields)), b""
    for key, value in fields.items():
        code, number = value if isinstance(value, tuple) else (kinds.get(type(value)), value)
        if code:
            described += code.encode() + utf(key)
            values += struct.pack({"I": ">i", "Z": ">?", "D": ">d", "J": ">q"}[code], number)
        else:
            described += b"L" + utf(key) + string("Ljava/lang/Object;")
            values += b"\x70" if value is None else value
    return b"\x73" + class_of(name, described, flags=flags) + values + extra


def boxed(number: float) -> bytes:
    kind = "Double" if isinstance(number, float) else "Long"
    return java(f"java.lang.{kind}", value=("D" if kind == "Double" else "J", number))


def java_list(*contents: bytes) -> bytes:
    extra = b"\x77\x04" + struct.pack(">i", len(contents)) + b"".join(contents) + b"\x78"
    return java("java.util.ArrayList", flags=3, extra=extra, size=len(contents))


def java_map(entries: Mapping[bytes, bytes]) -> bytes:
    extra = b"\x77\x08" + bytes(8) + b"".join(key + value for key, value in entries.items()) + b"\x78"
    return java("java.util.HashMap", flags=3, extra=extra, threshold=12)


def naming(kind: str = "Interval", **fields: Any) -> bytes:
    return java(f"{ARX}aggregates.AggregateFunction$Generic{kind}", **fields)


HALF_OPEN = naming(lowerIncluded=True, upperIncluded=False)


def builder_file(
    cuts: list[float],
    groups: list[list[int]] | None = None,
    lower: tuple[float | None, ...] = (None, None, None),
    upper: tuple[float | None, ...] = (None, None, None),
    *,
    kind: str = "IntervalBased",
    datatype: str = "Integer",
    names: list[bytes] | None = None,
    **own: Any,
) -> bytes:
    """A file of ARX's interval builder, with the same objects and fields as real ones."""
    builder = f"{ARX}aggregates.HierarchyBuilder"
    intervals = [
        java(f"{builder}IntervalBased$Interval", min=boxed(low), max=boxed(high), function=name)
        for (low, high), name in zip(pairwise(cuts), names or [HALF_OPEN] * len(cuts), strict=False)
    ]
    levels = {
        java("java.lang.Integer", value=level): java(
            f"{builder}GroupingBased$Level",
            level=level,
            list=java_list(*(java(f"{builder}GroupingBased$Group", size=size, function=HALF_OPEN) for size in sizes)),
        )
        for level, sizes in enumerate(groups or [])
    }
    ranges = [
        java(f"{builder}IntervalBased$Range", **{key: None if bound is None else boxed(bound) for key, bound in pairs})
        for ends in (lower, upper)
        for pairs in [list(zip(("repeatBound", "snapBound", "labelBound"), ends, strict=True))]
    ]
    fields = {
        "datatype": java(f"{ARX}DataType$ARX{datatype}", format=None, string=None),
        "groups": java_map(levels),
        "intervals": java_list(*intervals),
        "lowerRange": ranges[0],
        "upperRange": ranges[1],
    }
    return MAGIC + java(builder + kind, **(fields | own))


# Builder files.


def labels_of(tree: Hierarchy, value: str) -> list[str]:
    assert isinstance(tree, IntervalHierarchy)
    rank = np.array([int((Decimal(value) - tree.low) / tree.step)])
    return [tree.label(layer, int(tree.climb(rank, 0, layer)[0])) for layer in range(1, tree.height + 1)]


@pytest.mark.parametrize("path", BUILDERS, ids=lambda path: path.stem)
def test_a_real_builder_gives_the_labels_that_arx_wrote(path: Path) -> None:
    tree = read_builder(path)
    with path.with_suffix(".csv").open(newline="") as file:
        for value, *labels in csv.reader(file, delimiter=";"):
            assert labels_of(tree, value) == labels
    facts = json.loads((path.parent / "config.json").read_text())
    (attribute,) = (each for each in facts["attributes"] if each["hierarchy_file"] == path.with_suffix(".csv").name)
    assert [int(tree.low), int(tree.high), tree.height] == [*attribute["domain"], attribute["height"]]


def test_intervals_repeat_to_the_ends_of_the_range_and_are_cut_there() -> None:
    data = builder_file([0, 10], [[2], [2]], (17, 17, 17), (94, 94, 94))
    tree = read_builder(data)
    assert tree.labels[0][:2] == ("[17, 20[", "[20, 30[") and tree.labels[0][-1] == "[90, 94["
    assert tree.labels[1] == ("[17, 20[", "[20, 40[", "[40, 60[", "[60, 80[", "[80, 94[")
    assert tree.labels[2:] == (("[17, 40[", "[40, 80[", "[80, 94["), ("*",))


def test_values_beyond_the_range_are_bottom_and_top_coded_on_every_level() -> None:
    tree = read_builder(builder_file([20, 40], [[2]], (20, 18, 0), (80, 90, 120)))
    assert tree.labels[0] == ("<18", "[18, 40[", "[40, 60[", "[60, 90[", ">=90")
    assert tree.labels[1] == ("<18", "[18, 60[", "[60, 90[", ">=90")
    assert [int(bound) for bound in tree.bounds] == [0, 18, 40, 60, 90, 120]
    assert tree.labels[-1] == ("*",)


def test_one_node_at_the_top_is_the_root_and_nothing_follows() -> None:
    assert read_builder(builder_file([0, 5, 10], [[2], [2]])).labels == (("[0, 5[", "[5, 10["), ("[0, 10[",))
    assert read_builder(builder_file([0, 5, 10])).labels == (("[0, 5[", "[5, 10["), ("*",))


def test_labels_show_the_rounding_of_decimals_but_bounds_do_not() -> None:
    tree = read_builder(builder_file([0.0, 0.1], [[2]], upper=(0.4, 0.4, 0.4), datatype="Decimal"))
    assert tree.labels[0] == ("[0.0, 0.1[", "[0.1, 0.2[", "[0.2, 0.30000000000000004[", "[0.30000000000000004, 0.4[")
    assert tree.bounds == tuple(map(Decimal, ("0", "0.1", "0.2", "0.3", "0.4")))
    assert tree.step == Decimal("0.1") and "step 0.1" in tree.notes[0]
    finer = read_builder(builder_file([0.0, 0.5, 1.0], datatype="Decimal"), step=Decimal("0.01"))
    assert (finer.values, finer.notes) == (100, ())


def test_the_names_of_intervals_are_those_that_arx_gives() -> None:
    names = [naming("Constant", value=string("young")), naming("Bounds"), naming("Set"), HALF_OPEN]
    tree = read_builder(builder_file([0, 18, 40, 65, 120], names=names))
    assert tree.labels[0] == ("young", "[18, 40]", "{40, 65}", "[65, 120[")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "AC ED 00 05"),
        (b"PK\x03\x04", "no stream of Java objects"),
        (MAGIC, "0 objects instead of one builder"),
        (MAGIC + string("x"), "no builder; only interval builders are read: export the hierarchy as CSV"),
        (builder_file([0, 1], kind="OrderBased"), "a builder by an ordering"),
        (builder_file([0, 1], kind="RedactionBased"), "a builder by masking"),
        (builder_file([0, 1], kind="PriorityBased"), "a builder by priorities"),
        (builder_file([0, 1], kind="Date"), "a builder by dates"),
        (builder_file([0, 1], datatype="Date"), "a builder for dates"),
        (builder_file([0, 1], datatype=java(f"{ARX}DataType$ARXInteger", string=string("#"))), "another type"),
        (builder_file([]), "no intervals"),
        (builder_file([5, 5]), "ends where it begins"),
        (builder_file([0, 10], [[]  , [2]], upper=(30, 30, 30)), "a level of the builder has no groups"),
        (builder_file([0, 10], [[-1]], upper=(30, 30, 30)), "a group must have 1 to"),
        (builder_file([0, 5, 15], [[3]], upper=(60, 60, 60)), "cuts one of the level below"),
        (builder_file([0, 10, 20, 30, 40], [[1, 1, 1], [2, 1]]), "do not add up"),
        (builder_file([0, 10], upper=(-5, -5, -5)), "not in order"),
        (builder_file([0, 1], upper=(2**40, 2**40, 2**40)), "1,099,511,627,776 intervals are too many"),
        (builder_file([0, 2**60]), "double precision cannot tell"),
        (builder_file([0.0, 1e300], upper=(1.7e308,) * 3, datatype="Decimal"), "too many"),
        (builder_file([0.0, 1.0], upper=(1e-320,) * 3, datatype="Decimal"), "builder"),
        (builder_file([0, 10, 20], names=[naming("Constant", value=string("x"))] * 2), "the same label"),
        (builder_file([0, 10], names=[naming("CommonPrefix")]), "named by something else"),
        (builder_file([0.5, 1.5]), "a bound is no number"),
        (builder_file([0, 10], groups=[[2]], upper=(40,) * 3, intervals=java_map({})), "no intervals"),
    ],
)  # fmt: skip
def test_a_builder_that_cannot_be_used_is_refused_in_one_line(data: bytes, message: str) -> None:
    with pytest.raises(HierarchyError, match=message) as caught:
        read_builder(data, name="age.ahs")
    assert str(caught.value).startswith("age.ahs: ") and "\n" not in str(caught.value)


def test_a_builder_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(HierarchyError, match=r"none\.ahs: No such file"):
        read_builder(tmp_path / "none.ahs")


# ARX's way of finding the labels of one value, level by level, against which the listed nodes are checked.


def half_open(low: str, high: str) -> str:
    return f"[{low}, {high}["


def interval_of(parts: list[tuple[int, int]], value: int) -> tuple[int, int]:
    width = parts[-1][1] - parts[0][0]
    offset = (value - parts[0][0]) // width * width
    return next((low + offset, high + offset) for low, high in parts if low <= value - offset < high)


def label_by_arx(parts: list[tuple[int, int]], lower: Ends, upper: Ends, value: int) -> str:
    if value < lower.snap:
        return f"<{lower.snap}"
    if value >= upper.snap:
        return f">={upper.snap}"
    low_end = interval_of(parts, int(lower.repeat))[1]
    high_start = interval_of(parts, int(upper.repeat) - 1)[0]
    low, high = interval_of(parts, value)
    if low_end > high_start:
        return half_open(str(lower.snap), str(upper.snap))
    if low < low_end:
        return half_open(str(lower.snap), str(low_end))
    if high > high_start:
        return half_open(str(high_start), str(upper.snap))
    return half_open(str(low), str(high))


@st.composite
def interval_builders(draw: st.DrawFn) -> IntervalBuilder:
    start = draw(st.integers(-9, 9))
    cuts = list(accumulate(draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)), initial=start))
    low = draw(st.integers(-20, 20))
    lower, upper = [
        Ends(repeat, repeat + sign * snap, repeat + sign * (snap + coded))
        for repeat, sign in ((low, -1), (low + draw(st.integers(1, 40)), 1))
        for snap, coded in [draw(st.tuples(st.integers(0, 3), st.integers(0, 3)))]
    ]
    sizes = st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=2), max_size=3)
    groups = tuple(tuple((size, half_open) for size in level) for level in draw(sizes))
    return IntervalBuilder(False, tuple(Part(a, b, half_open) for a, b in pairwise(cuts)), groups, lower, upper)


@given(interval_builders())
@settings(max_examples=300, deadline=None)
@example(IntervalBuilder(False, (Part(0, 10, half_open),), (((2, half_open),),), Ends(17, 17, 17), Ends(94, 94, 94)))
def test_every_value_has_the_leaf_that_arx_looks_up_for_it(builder: IntervalBuilder) -> None:
    leaves = replace(builder, groups=()).hierarchy()
    parts = [(int(part.low), int(part.high)) for part in builder.parts]
    for value in range(int(builder.lower.limit), int(builder.upper.limit)):
        assert labels_of(leaves, str(value))[0] == label_by_arx(parts, builder.lower, builder.upper, value)


@given(interval_builders())
@settings(max_examples=300, deadline=None)
def test_every_level_above_merges_nodes_of_the_level_below(builder: IntervalBuilder) -> None:
    try:
        tree = builder.hierarchy()
    except HierarchyError as error:
        assert re.search("cuts one of|do not add up", str(error))
        assume(False)
    assert tree.height <= len(builder.groups) + 2
    assert all(tree.nodes(layer) >= tree.nodes(layer + 1) for layer in range(1, tree.height))
    assert (int(tree.low), int(tree.high)) == (builder.lower.limit, builder.upper.limit)
