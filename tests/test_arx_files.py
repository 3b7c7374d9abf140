"""ARX's builder files and projects: real ones read exactly, hostile ones refused in one line."""

from __future__ import annotations

import csv
import json
import math
import random
import re
import struct
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.strategies import examples
from unblur.anonymizing import anonymize
from unblur.arx import archive, serialized
from unblur.arx.builders import Ends, IntervalBuilder, Part, interval_builder, read_builder
from unblur.arx.project import Project, read_project
from unblur.arx.serialized import MAGIC, JavaClass, JavaEnum, JavaObject, StreamError, read_stream
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
    own: Mapping[str, Any] | None = None,
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
    ranges = []
    for ends in (lower, upper):
        repeat, snap, label = (None if bound is None else boxed(bound) for bound in ends)
        ranges.append(java(f"{builder}IntervalBased$Range", repeatBound=repeat, snapBound=snap, labelBound=label))
    fields = {
        "datatype": java(f"{ARX}DataType$ARX{datatype}", format=None, string=None),
        "groups": java_map(levels),
        "intervals": java_list(*intervals),
        "lowerRange": ranges[0],
        "upperRange": ranges[1],
    }
    return MAGIC + java(builder + kind, **{**fields, **(own or {})})


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
        (builder_file([0, 1], own={"datatype": java(f"{ARX}DataType$ARXInteger", string=string("#"))}), "own format"),
        (builder_file([]), "no intervals"),
        (builder_file([5, 5]), "ends where it begins"),
        (builder_file([0, 10], [[], [2]], upper=(30, 30, 30)), "a level of the builder has no groups"),
        (builder_file([0, 10], [[1]] * 65, upper=(30, 30, 30)), "65 levels are too many"),
        (builder_file([1e308, 1.5e308], [[9]], upper=(1.7e308,) * 3, datatype="Decimal"), "too far apart|rounding"),
        (builder_file([0, 10], [[-1]], upper=(30, 30, 30)), "a group must have 1 to"),
        (builder_file([0, 5, 15], [[3]], upper=(60, 60, 60)), "cuts one of the level below"),
        (builder_file([0, 10, 20, 30, 40], [[1, 1, 1], [2, 1]]), "do not add up"),
        (builder_file([0, 10], upper=(-5, -5, -5)), "not in order"),
        (builder_file([0, 1], upper=(2**40, 2**40, 2**40)), "1,099,511,627,776 intervals are too many"),
        (builder_file([0, 2**60]), "double precision cannot tell"),
        (builder_file([0.0, 1e300], upper=(1.7e308,) * 3, datatype="Decimal"), "too many"),
        (builder_file([0, 10, 20], names=[naming("Constant", value=string("x"))] * 2), "the same label"),
        (builder_file([0, 10], names=[naming("CommonPrefix")]), "named by something else"),
        (builder_file([0.5, 1.5]), "a bound is no number"),
        (builder_file([0, 10], own={"intervals": java_map({})}), "no intervals"),
        (builder_file([0, 10], own={"intervals": string("x")}), "the builder is damaged: an object is no list"),
        (builder_file([0, 10], own={"lowerRange": None}), "the builder is damaged: there is no range"),
    ],
)
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


def merged_by_arx(parts: list[tuple[int, int]], sizes: list[int]) -> list[tuple[int, int]]:
    """The intervals of the next level, taken one by one; an IndexError where ARX stops with one, too."""
    merged, place = [], 0
    endless = sum(sizes) >= len(parts)
    while place < len(parts):
        for size in sizes:
            taken: list[tuple[int, int]] = []
            while len(taken) < size and (endless or place < len(parts) or not taken):
                shift = (parts[-1][1] - parts[0][0]) * (place // len(parts)) if endless else 0
                low, high = parts[place % len(parts) if endless else place]
                taken.append((low + shift, high + shift))
                place += 1
            merged.append((taken[0][0], taken[-1][1]))
    return merged


def levels_by_arx(builder: IntervalBuilder) -> list[list[str]]:
    """The labels of every value of the domain, level by level."""
    parts, found = [(int(part.low), int(part.high)) for part in builder.parts], []
    values = range(int(builder.lower.limit), int(builder.upper.limit))
    for groups in (*builder.groups, ()):
        found.append([label_by_arx(parts, builder.lower, builder.upper, value) for value in values])
        if len(set(found[-1])) == 1:
            return found
        parts = merged_by_arx(parts, [size for size, _ in groups]) if groups else []
    return [*found, ["*"] * len(values)]


@given(interval_builders())
@settings(max_examples=examples(300), deadline=None)
@example(IntervalBuilder(False, (Part(0, 10, half_open),), (((2, half_open),),), Ends(17, 17, 17), Ends(94, 94, 94)))
def test_every_value_has_the_labels_that_arx_looks_up_for_it(builder: IntervalBuilder) -> None:
    try:
        tree = builder.hierarchy()
    except HierarchyError as error:
        if "do not add up" in str(error):
            with pytest.raises(IndexError):
                levels_by_arx(builder)
        else:
            assert "ARX made no tree of it" in str(error) and not is_tree(levels_by_arx(builder))
        return
    levels = levels_by_arx(builder)
    for place in range(len(levels[0])):
        assert labels_of(tree, str(int(tree.low) + place)) == [level[place] for level in levels]


def is_tree(levels: list[list[str]]) -> bool:
    return all(len(set(zip(lower, upper, strict=True))) == len(set(lower)) for lower, upper in pairwise(levels))


# Java object streams.


@pytest.mark.parametrize("text", ["", "plain", "zero \0 within", "äöü € 漢", "beyond 16 bits: 😀"])
def test_texts_survive_the_stream(text: str) -> None:
    units = text.encode("utf-16-be", "surrogatepass")
    chars = [chr(a << 8 | b) for a, b in zip(units[::2], units[1::2], strict=True)]
    written = b"".join(b"\xc0\x80" if c == "\0" else c.encode("utf-8", "surrogatepass") for c in chars)
    assert read_stream(MAGIC + b"\x74" + struct.pack(">H", len(written)) + written) == [text]
    assert read_stream(MAGIC + b"\x7c" + struct.pack(">q", len(written)) + written) == [text]


def test_a_reference_leads_to_the_same_object() -> None:
    first, second = read_stream(MAGIC + java("A", n=7) + b"\x71\0\x7e\0\x01")
    assert first is second and first["n"] == 7 and first["m"] is None


def test_an_object_may_hold_itself() -> None:
    (loop,) = read_stream(MAGIC + java("A", me=b"\x71\0\x7e\0\x02"))
    assert loop["me"] is loop and repr(loop) == "JavaObject(class_name='A')"


NESTED = b"\x75" + class_of("[Ljava.lang.Object;") + struct.pack(">i", 1)
INNER = b"\x75\x71\0\x7e\0\0" + struct.pack(">i", 1)
HUGE = struct.pack(">i", 2**31 - 1)


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (b"\x1f\x8b", "begin with AC ED"),
        (MAGIC + b"\x73", "ends in the middle"),
        (MAGIC + b"\x74\0\x05abc", "longer than what is left"),
        (MAGIC + b"\x7c" + struct.pack(">q", 2**62), "longer than what is left"),
        (MAGIC + b"\x7c" + struct.pack(">q", -1), "longer than what is left"),
        (MAGIC + b"\x7a" + HUGE, "longer than what is left|GB of memory"),
        (MAGIC + b"\x75" + class_of("[I") + HUGE, "longer than what is left"),
        (MAGIC + b"\x75" + class_of("[B") + struct.pack(">i", -5), "longer than what is left"),
        (MAGIC + b"\x75" + class_of("[LA;") + HUGE + b"\x70" * 9, "longer than what is left"),
        (MAGIC + b"\x75" + class_of("A") + struct.pack(">i", 0), "longer than what is left"),
        (MAGIC + NESTED + INNER * 100_000 + b"\x70", "100 objects stand inside each other"),
        (MAGIC + b"\x73" + class_of("A")[:-1] * 100_000 + b"\x70", "100 objects stand inside each other"),
        (MAGIC + b"\x73" + class_of("A", parent=b"\x71\0\x7e\0\0"), "leads to no class"),
        (MAGIC + b"\x73" + class_of("A")[:-1] * 50 + b"\x70", "more than 32 superclasses"),
        (MAGIC + b"\x73\x71\0\x7e\0\0", "leads nowhere"),
        (MAGIC + string("x") + b"\x73\x71\0\x7e\0\0", "leads to no class"),
        (MAGIC + b"\x73\x70", "has no class"),
        (MAGIC + b"\x73" + class_of("A", flags=4), "a format of its own"),
        (MAGIC + b"\x73" + class_of("A", struct.pack(">H", 1) + b"Q" + utf("x")), "a field has no type"),
        (MAGIC + b"\x7e" + class_of("E") + b"\x70", "has no name"),
        (MAGIC + b"\x7d", "no object begins with 7D"),
        (MAGIC + b"\x7b", "no object begins with 7B"),
        (MAGIC + b"\x74\0\x03\xed\xa0\x80", "no Unicode"),
        (MAGIC + b"\x74\0\x01\xff", "no Unicode"),
    ],
)
def test_a_hostile_stream_is_refused_at_once(stream: bytes, message: str) -> None:
    with bounded(seconds=2, megabytes=20), pytest.raises(StreamError, match=message) as caught:
        read_stream(stream)
    assert "\n" not in str(caught.value)


@contextmanager
def bounded(*, seconds: float, megabytes: float) -> Iterator[None]:
    """Fail if something takes more time or memory; tracing memory makes it slow."""
    start = time.monotonic()
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < megabytes * 2**20
    assert time.monotonic() - start < seconds


def test_many_small_objects_are_charged_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serialized, "MOST_MEMORY", 1 << 20)
    many = struct.pack(">i", 50_000) + java("A") + b"\x73\x71\0\x7e\0\x02" * 49_999
    with bounded(seconds=5, megabytes=2), pytest.raises(StreamError, match="GB of memory"):
        read_stream(MAGIC + b"\x75" + class_of("[LA;") + many)


# Projects.


@pytest.mark.parametrize("case", PROJECTS)
def test_the_output_and_the_table_are_those_of_arx(case: str, tmp_path: Path) -> None:
    project = read_project(GOLDEN / case / "project.deid")
    project.write_release(tmp_path / "release.csv")
    project.write_table(tmp_path / "table.csv")
    assert (tmp_path / "release.csv").read_bytes() == (GOLDEN / case / "output.csv").read_bytes()
    assert (tmp_path / "table.csv").read_bytes() == (GOLDEN / case / "input.csv").read_bytes()
    facts = json.loads((GOLDEN / case / "classes.json").read_text())
    assert np.flatnonzero(project.output.suppressed).tolist() == facts["suppressed_rows"]


@pytest.mark.parametrize("case", PROJECTS)
def test_the_iterations_are_those_of_arx_to_the_last_bit(case: str) -> None:
    run = read_project(GOLDEN / case / "project.deid").run
    facts = json.loads((GOLDEN / case / "classes.json").read_text())
    assert [[list(step.state), step.score, step.records] for step in run.steps] == [
        [each["state"], each["loss"], each["records"]] for each in facts["iterations"]
    ]


@pytest.mark.parametrize("case", PROJECTS)
def test_the_settings_are_those_of_the_run(case: str) -> None:
    project = read_project(GOLDEN / case / "project.deid")
    facts = json.loads((GOLDEN / case / "config.json").read_text())
    run, told = project.run, facts["settings"]
    assert (project.version, project.separator, run.k) == (facts["arx_version"], ";", facts["k"])
    assert (run.transformation, run.iterations, run.other_models) == ("local", 100, ())
    assert (run.gs_factor, run.suppression_limit) == (told["gs_factor"], told["initial_suppression_limit"])
    assert set(run.weights) == {1.0} and run.metric.startswith("Loss (0.0")
    assert project.mechanism == Mechanism("arx", {"iterations": 100}) and project.notes == ()
    for each, attribute in zip(project.quasi_identifiers, facts["attributes"], strict=True):
        assert (each.name, each.hierarchy.height, each.by_length) == (attribute["name"], attribute["height"], True)
        assert [int(each.hierarchy.low), int(each.hierarchy.high)] == attribute["domain"]  # type: ignore[attr-defined]
        assert each.lowest_level == each.finest_layer == told["minimum_generalization_level"]


@pytest.mark.parametrize("case", PROJECTS)
def test_the_config_of_a_project_reads_its_release_also_when_written_down(case: str, tmp_path: Path) -> None:
    project = read_project(GOLDEN / case / "project.deid")
    release = read_release(GOLDEN / case / "output.csv", project.config())
    assert (release.rows, release.outliers) == (len(project.output), 0)
    assert sum(each.size for each in release.classes) == sum(step.records for step in project.run.steps)
    same_when_written(project, tmp_path)


@pytest.mark.parametrize("case", PROJECTS)
def test_the_output_can_be_made_again_from_what_a_project_tells(case: str, tmp_path: Path) -> None:
    project = read_project(GOLDEN / case / "project.deid")
    project.write_table(tmp_path / "table.csv")
    release = anonymize(tmp_path / "table.csv", project.config())
    assert [tuple(row.values()) for row in release.to_arrow().to_pylist()] == list(project.output)


def same_when_written(project: Project, folder: Path) -> Config:
    project.write_hierarchies(folder)
    (folder / "config.toml").write_text(project.config(folder).to_toml(folder))
    config = Config.read(folder / "config.toml")
    assert config.k == project.run.k and config.mechanism == project.mechanism
    for written, each in zip(config.quasi_identifiers, project.quasi_identifiers, strict=True):
        assert (written.name, written.finest_layer) == (each.name, each.finest_layer)
        assert (written.hierarchy.labels, written.hierarchy.parents) == (each.hierarchy.labels, each.hierarchy.parents)
    return config


@pytest.fixture
def rebuild(tmp_path: Path) -> Rebuild:
    """Make a project with some entries changed, left out (None) or added."""

    def rebuilt(changes: Mapping[str, Change | bytes | None], *, case: str = PROJECTS[1]) -> Path:
        target = tmp_path / "project.deid"
        with zipfile.ZipFile(GOLDEN / case / "project.deid") as source:
            entries = {name: source.read(name) for name in source.namelist()}
        for name, change in changes.items():
            if change is None:
                del entries[name]
            else:
                entries[name] = change(entries[name]) if callable(change) else change
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
            for name, data in entries.items():
                file.writestr(name, data)
        return target

    return rebuilt


def swap(old: str, new: str) -> Change:
    """Replace a text wherever it stands, in XML or CSV."""

    def change(data: bytes) -> bytes:
        assert old.encode() in data
        return data.replace(old.encode(), new.encode())

    return change


def swap_text(old: str, new: str) -> Change:
    """Replace a text of a Java stream."""
    return lambda data: swap_bytes(data, utf(old), utf(new))


def swap_bytes(data: bytes, old: bytes, new: bytes) -> bytes:
    assert old in data
    return data.replace(old, new)


DEFINITION, SETTINGS, MODEL, OUTPUT = "output/definition.xml", "output/config.xml", "project.dat", "data/output.dat"


def test_a_suppressed_row_is_all_stars(rebuild: Rebuild) -> None:
    with zipfile.ZipFile(GOLDEN / PROJECTS[1] / "project.deid") as file:
        codes = read_stream(file.read(OUTPUT))[0]["data"]["array"]
    marked = codes.copy()
    marked[2 * 4] = codes[2 * 4] | -0x80000000  # the first of two columns, row 4
    path = rebuild({OUTPUT: lambda data: swap_bytes(data, codes.tobytes(), marked.tobytes())})
    project = read_project(path)
    rows, plain = list(project.output), list(read_project(GOLDEN / PROJECTS[1] / "project.deid").output)
    assert project.notes == ("the output is not what the iterations made; another one may have been applied",)
    assert rows[4] == ("*", "*") and rows[:4] + rows[5:] == plain[:4] + plain[5:]


def test_without_a_builder_the_hierarchy_is_that_of_the_rows(rebuild: Rebuild, tmp_path: Path) -> None:
    share = f"{ARX}metric.v2.DomainShare"
    project = read_project(rebuild({MODEL: swap_text(f"{share}Interval", f"{share}Materialized")}))
    assert [each.by_length for each in project.quasi_identifiers] == [False, False]
    assert project.mechanism.name == "arx"
    config = same_when_written(project, tmp_path)
    assert [each.source["hierarchy"] for each in config.quasi_identifiers] == ["hierarchy_q1.csv", "hierarchy_q2.csv"]
    assert (tmp_path / "hierarchy_q1.csv").read_bytes() == (GOLDEN / PROJECTS[1] / "hierarchy_q1.csv").read_bytes()


def test_a_builder_that_does_not_give_the_rows_is_not_believed(rebuild: Rebuild, tmp_path: Path) -> None:
    project = read_project(rebuild({"output/hierarchies/q2.csv": swap("[60, 310[", "[60, 310]")}))
    assert project.mechanism == Mechanism("iterative")
    assert any("'q2': its builder does not give the hierarchy" in note for note in project.notes)
    assert "[60, 310]" in project.quasi_identifiers[1].hierarchy.labels[0]
    same_when_written(project, tmp_path)


def test_levels_below_the_minimum_are_left_out(rebuild: Rebuild, tmp_path: Path) -> None:
    raised = swap("<min>All</min>", "<min>2</min>")
    for model in ({}, {MODEL: swap_text(f"{ARX}metric.v2.DomainShareInterval", "x.Materialized")}):
        project = read_project(rebuild({DEFINITION: raised, **model}))
        first = project.quasi_identifiers[0]
        assert (first.lowest_level, first.finest_layer, first.hierarchy.height) == (2, 1, 3)
        assert first.hierarchy.labels[0] == ("[40, 440[", "[440, 840[", "[840, 1240[", "[1240, 1640[")
        same_when_written(project, tmp_path)


def test_one_is_a_minimum_that_leaves_out_raw_values(rebuild: Rebuild) -> None:
    project = read_project(rebuild({DEFINITION: swap("<min>All</min>", "<min>1</min>")}))
    assert [each.finest_layer for each in project.config().quasi_identifiers] == [1, 1]
    assert project.notes == ()


@pytest.mark.parametrize(
    ("changes", "mechanism", "note"),
    [
        (
            {SETTINGS: swap("</criterion>", "</criterion><criterion>distinct-2-diversity</criterion>")},
            "unknown",
            "distinct-2-diversity",
        ),
        ({SETTINGS: swap("<type>QUASI_IDENTIFYING_ATTRIBUTE</type>", "")}, "unknown", "not to be suppressed"),
        ({MODEL: swap_text("LOCAL", "GLOBAL")}, "iterative", "global"),
        ({MODEL: swap_text("GEOMETRIC_MEAN", "SUM")}, "iterative", "geometric mean"),
        ({MODEL: swap_text(f"{ARX}metric.v2.MetricMDNMLoss", "x")}, "iterative", "another metric"),
        ({MODEL: lambda data: swap_bytes(data, struct.pack(">i", 495), bytes(4))}, "iterative", "100 iterations"),
        ({MODEL: lambda data: swap_bytes(data, struct.pack(">i", 481), bytes(4))}, "iterative", "iterations made"),
        ({DEFINITION: swap("<max>All</max>", "<max>2</max>")}, "arx", "ended at level 2"),
    ],
)
def test_less_is_assumed_of_other_settings(
    changes: Mapping[str, Change], mechanism: str, note: str, rebuild: Rebuild
) -> None:
    project = read_project(rebuild(changes))
    assert project.mechanism.name == mechanism
    assert any(note in each for each in project.notes)
    assert project.config().mechanism == project.mechanism


def test_a_hierarchy_may_be_in_another_encoding_or_have_a_mark(rebuild: Rebuild) -> None:
    for encoding in ("utf-8-sig", "utf-16", "cp1252"):
        entry = "output/hierarchies/q1.csv"
        share = {MODEL: swap_text(f"{ARX}metric.v2.DomainShareInterval", "x.Materialized")}
        words = swap("[40, 240[", "größer") if encoding == "cp1252" else lambda data: data
        path = rebuild({entry: lambda data, e=encoding, w=words: w(data).decode().encode(e), **share})
        labels = read_project(path).quasi_identifiers[0].hierarchy.labels[0]
        assert ("größer" if encoding == "cp1252" else "[40, 240[") in labels


def test_names_and_separators_may_be_unusual(rebuild: Rebuild, tmp_path: Path) -> None:
    name = "Größe / m"
    path = rebuild(
        {
            DEFINITION: swap("q1", "Gr&#246;&#223;e / m"),
            MODEL: swap_text("q1", name),
            OUTPUT: swap_text("q1", name),
            "project.xml": swap("<separator>;", "<separator>#"),
            "output/hierarchies/q1.csv": None,
            f"output/hierarchies/{name}.csv": (GOLDEN / PROJECTS[1] / "hierarchy_q1.csv")
            .read_bytes()
            .replace(b";", b"#"),
            "output/hierarchies/q2.csv": swap(";", "#"),
        }
    )
    project = read_project(path)
    assert [each.name for each in project.quasi_identifiers] == [name, "q2"] and project.notes == ()
    project.write_release(tmp_path / "release.csv")
    assert (tmp_path / "release.csv").read_text().startswith(f"{name}#q2\n[")


BILLION = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]><definition>&b;</definition>'


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metadata.xml": None}, "metadata.xml: there is no such entry"),
        ({"project.xml": None}, "project.xml: there is no such entry"),
        ({"project.dat": None}, "project.dat: there is no such entry"),
        ({"data/input.csv": None}, "data/input.csv: there is no such entry"),
        ({SETTINGS: None}, "output/config.xml: there is no such entry"),
        ({DEFINITION: None}, "output/definition.xml: there is no such entry"),
        ({"output/hierarchies/q1.csv": None}, "q1.csv: there is no such entry"),
        ({OUTPUT: None}, "data/output.dat: the project has no output; anonymize in ARX"),
        ({"metadata.xml": swap("3.9.2", "4.0.0")}, "metadata.xml: saved by ARX 4.0.0 .*; projects of ARX 3"),
        ({"metadata.xml": swap("2.0", "3.1")}, "format 3.1"),
        ({"metadata.xml": swap("3.9.2", "newest")}, "does not say which version"),
        ({"project.xml": swap("<separator>;", "<separator>;;")}, "one character"),
        ({SETTINGS: swap("5-anonymity", "1-map")}, r"no k-anonymity among the privacy models \(1-map\)"),
        ({SETTINGS: swap("5-anonymity", "1-anonymity")}, "k must be 2 or more"),
        ({SETTINGS: b"<config>"}, "output/config.xml: not XML as ARX writes it"),
        ({DEFINITION: BILLION.encode()}, "declares a document type or entities"),
        ({DEFINITION: BILLION.encode("utf-16")}, "declares a document type or entities"),
        ({DEFINITION: b"<a>" * 3_000_000}, "not XML as ARX writes it"),
        ({DEFINITION: b"<a>" * 9_000_000}, "larger than 16 MB"),
        ({DEFINITION: b"\x81\x8d"}, "not XML as ARX writes it"),
        ({DEFINITION: swap("QUASI_IDENT", "IDENT")}, "no attribute is a quasi-identifier"),
        ({DEFINITION: swap("<name>q2", "<name>q1")}, "two attributes have the same name"),
        ({DEFINITION: swap("<min>All", "<min>deep")}, "'q1': min and max must be All or a level"),
        ({DEFINITION: swap("<min>All", "<min>9")}, "'q1': the minimum generalization is above the hierarchy"),
        (
            {DEFINITION: swap("<min>", "<microaggregationFunction>x</microaggregationFunction><min>")},
            "micro-aggregated",
        ),
        ({DEFINITION: swap("<ref>hierarchies/q1.csv</ref>", "")}, "'q1' has no hierarchy"),
        ({OUTPUT: swap_text("q1", "q9")}, "2 columns that are not the 2 quasi-identifiers"),
        ({OUTPUT: lambda data: data[:-2000]}, "data/output.dat: not as ARX 3.9 writes it"),
        ({OUTPUT: MAGIC}, "data/output.dat: .* no output"),
        ({MODEL: MAGIC + java("A")}, "project.dat: .* no configuration of the output"),
        ({MODEL: swap_text("LOCAL", "OTHER")}, "neither local nor global"),
        ({"output/hierarchies/q1.csv": b""}, "q1.csv: the hierarchy is empty"),
        ({"output/hierarchies/q1.csv": b"secret;a;*\nsecret;b\n"}, "row 2: another number of columns"),
        ({"output/hierarchies/q1.csv": b"secret;a;*\nsecret;b;*\n"}, "row 2: not a tree"),
        ({"output/hierarchies/q1.csv": b"1e9999999;[0, 1[;*\n"}, "numbers too large"),
        ({"output/hierarchies/q1.csv": b"\x81\x8d"}, "UTF-8 or Windows-1252"),
        ({"../evil.csv": b"x"}, "../evil.csv: the name of the entry leads out of the archive"),
        ({"data/../../evil": b"x"}, "leads out of the archive"),
        ({"/etc/passwd": b"x"}, "leads out of the archive"),
        ({"..\\evil": b"x"}, "leads out of the archive"),
        ({"C:/evil": b"x"}, "leads out of the archive"),
        ({"a\nb/../..": b"x"}, "leads out of the archive"),
    ],
)
def test_a_project_that_cannot_be_used_is_refused_in_one_line(
    changes: Mapping[str, Change | bytes | None], message: str, rebuild: Rebuild
) -> None:
    path = rebuild(changes)
    with pytest.raises(TableError, match=message) as caught:
        read_project(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value) and "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"", "not a project of ARX"), (b"no zip", "not a project of ARX"), (b"PK\x03\x04" * 99, "not a project of ARX")],
)
def test_what_is_no_zip_file_is_no_project(data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "x.deid").write_bytes(data)
    with pytest.raises(TableError, match=message):
        read_project(tmp_path / "x.deid")


def test_a_file_that_is_not_there_or_a_folder_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none.deid", tmp_path):
        with pytest.raises(TableError, match=re.escape(f"{path}: ")):
            read_project(path)


def test_a_project_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    whole = (GOLDEN / PROJECTS[1] / "project.deid").read_bytes()
    for share in (0.1, 0.5, 0.9, 0.999):
        (tmp_path / "x.deid").write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(TableError, match="not a project of ARX"):
            read_project(tmp_path / "x.deid")


def test_two_entries_of_one_name_are_refused(rebuild: Rebuild) -> None:
    path = rebuild({})
    with zipfile.ZipFile(path, "a") as file, pytest.warns(UserWarning, match="Duplicate"):
        file.writestr("metadata.xml", "<metadata/>")
    with pytest.raises(TableError, match=r"metadata\.xml: 2 entries of this name"):
        read_project(path)


def test_an_encrypted_entry_is_refused(rebuild: Rebuild) -> None:
    path = rebuild({})
    data = bytearray(path.read_bytes())
    place = data.index(b"PK\x01\x02")  # the first entry of the directory
    data[place + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(TableError, match=r"metadata\.xml: the entry is encrypted"):
        read_project(path)


def test_a_link_and_another_compression_are_refused(rebuild: Rebuild) -> None:
    link = zipfile.ZipInfo("data/link")
    link.external_attr = 0o120777 << 16
    for name, method, message in ((link, zipfile.ZIP_STORED, "is a link"), ("x", zipfile.ZIP_LZMA, "another way")):
        path = rebuild({})
        with zipfile.ZipFile(path, "a") as file:
            file.writestr(name, b"x", compress_type=method)
        with pytest.raises(TableError, match=message):
            read_project(path)


def test_a_zip_bomb_is_refused_before_it_is_unpacked(rebuild: Rebuild) -> None:
    path = rebuild({OUTPUT: bytes(archive.HARMLESS_BYTES + 1)})
    with bounded(seconds=10, megabytes=20), pytest.raises(TableError, match=r"output\.dat: .* zip bomb"):
        read_project(path)


def test_a_zip_bomb_that_lies_about_its_size_is_refused(rebuild: Rebuild, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "HARMLESS_BYTES", 10_000)
    monkeypatch.setattr(archive, "MOST_BYTES", 1 << 20)
    honest = read_project(GOLDEN / PROJECTS[1] / "project.deid")
    assert len(honest.output) == 500, "the project itself is within these limits"
    for size, message in ((100_000, "zip bomb|damaged|shorter"), (2 << 20, "larger than|zip bomb|damaged")):
        path = rebuild({OUTPUT: bytes(size)})
        data = bytearray(path.read_bytes())
        place = data.rindex(OUTPUT.encode()) - 46
        data[place + 24 : place + 28] = struct.pack("<I", 9_999)  # the size that the directory tells
        path.write_bytes(data)
        with bounded(seconds=10, megabytes=20), pytest.raises(TableError, match=message):
            read_project(path)


def test_too_many_entries_are_refused(rebuild: Rebuild, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_ENTRIES", 20)
    with pytest.raises(TableError, match="entries are too many"):
        read_project(rebuild({f"extra{i}": b"" for i in range(20)}))


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    project = read_project(GOLDEN / PROJECTS[1] / "project.deid")
    for write in (project.write_table, project.write_release):
        with pytest.raises(OutputError, match="none/x: No such file"):
            write(tmp_path / "none" / "x")


# Damage at random: whatever the bytes are, an error of ours comes out, soon, or a result.


@dataclass
class Damage:
    """Changes bytes of a file at random, the same ones on every run."""

    chance: random.Random

    def __call__(self, data: bytes) -> bytes:
        changed = bytearray(data)
        if self.chance.random() < 0.15:
            return data[: self.chance.randrange(len(data))]
        for _ in range(self.chance.choice([1, 1, 2, 5])):
            place = self.chance.randrange(len(changed))
            self.chance.choice([self.flip, self.replace, self.cut, self.insert, self.enlarge])(changed, place)
        return bytes(changed)

    def flip(self, data: bytearray, place: int) -> None:
        data[place] ^= 1 << self.chance.randrange(8)

    def replace(self, data: bytearray, place: int) -> None:
        data[place] = self.chance.randrange(256)

    def cut(self, data: bytearray, place: int) -> None:
        if len(data) > 10:
            del data[place : place + self.chance.randrange(1, 8)]

    def insert(self, data: bytearray, place: int) -> None:
        data[place:place] = self.chance.randbytes(self.chance.randrange(1, 8))

    def enlarge(self, data: bytearray, place: int) -> None:
        data[place : place + 4] = HUGE


def refused_or_read(read: Callable[[], object]) -> str:
    try:
        read()
    except UnblurError as error:
        assert "\n" not in str(error)
        return "refused"
    return "read"


def entry_of(name: str) -> bytes:
    with zipfile.ZipFile(GOLDEN / PROJECTS[1] / "project.deid") as file:
        return file.read(name)


def test_a_damaged_builder_is_refused_or_read() -> None:
    damage = Damage(random.Random(1))
    files = [path.read_bytes() for path in BUILDERS]
    with bounded(seconds=60, megabytes=20):
        found = {refused_or_read(partial(read_builder, damage(whole))) for whole in files * examples(100)}
    assert found == {"refused", "read"}


ODDITIES: list[Any] = [
    None, True, "x", -1, 2**31 - 1, math.nan, 1e308, b"x", [], [None, 1], np.array([2**31 - 1, -5], ">i4"),
    np.array([math.nan]), JavaEnum("E", "X"), JavaClass("C"), JavaObject("A"), JavaObject("java.util.HashMap", {}, [1]),
    JavaObject("java.lang.Long", {"value": 2**62}), JavaObject("java.lang.Double", {"value": 1e-310}),
]  # fmt: skip


def objects_in(found: Any, seen: dict[int, JavaObject]) -> list[JavaObject]:
    """All objects that can be reached from one, but for the rows of hierarchies."""
    if isinstance(found, JavaObject) and id(found) not in seen:
        seen[id(found)] = found
        for each in [*found.fields.values(), *found.extra]:
            objects_in(each, seen)
    elif isinstance(found, list) and len(found) < 50:
        for each in found:
            objects_in(each, seen)
    return list(seen.values())


def exchange(objects: list[JavaObject], chance: random.Random) -> None:
    """Put something odd into a field, or into a list."""
    odd = chance.choice(ODDITIES)
    found = chance.choice([each for each in objects if each.fields or each.extra])
    if found.extra and chance.random() < 0.3:
        found.extra[chance.randrange(len(found.extra))] = odd
    elif found.fields:
        found.fields[chance.choice(list(found.fields))] = odd


def test_a_builder_with_odd_objects_is_refused_or_read() -> None:
    chance, whole = random.Random(4), BUILDERS[0].read_bytes()
    found = set()
    for _ in range(examples(500)):
        (builder,) = read_stream(whole)
        exchange(objects_in(builder, {}), chance)
        found.add(refused_or_read(lambda builder=builder: interval_builder(builder).hierarchy()))  # type: ignore[misc]
    assert found == {"refused", "read"}


@pytest.mark.parametrize("entry", [MODEL, OUTPUT])
def test_a_project_with_odd_objects_is_refused_or_read(entry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chance, unchanged = random.Random(5), archive.Archive.objects

    def objects(self: archive.Archive, name: str) -> list[Any]:
        found = unchanged(self, name)
        if name == entry:
            exchange(objects_in(found, {})[: 25 if chance.random() < 0.5 else None], chance)
        return found

    def read() -> None:
        project = read_project(GOLDEN / PROJECTS[1] / "project.deid")
        project.config().to_toml(Path())
        list(project.output)

    monkeypatch.setattr(archive.Archive, "objects", objects)
    assert {refused_or_read(read) for _ in range(examples(60))} == {"refused", "read"}


@pytest.mark.parametrize("entry", [MODEL, OUTPUT])
def test_damage_to_a_stream_costs_no_more_than_the_stream(entry: str) -> None:
    damage, whole = Damage(random.Random(3)), entry_of(entry)
    with bounded(seconds=60, megabytes=20):
        for _ in range(examples(50)):
            with suppress(StreamError):
                read_stream(damage(whole))


@pytest.mark.parametrize(
    "entry", [MODEL, OUTPUT, DEFINITION, SETTINGS, "metadata.xml", "project.xml", "output/hierarchies/q1.csv"]
)
def test_a_project_with_a_damaged_entry_is_refused_or_read(entry: str, rebuild: Rebuild) -> None:
    damage = Damage(random.Random(entry))

    def read() -> None:
        project = read_project(rebuild({entry: damage}))
        assert len(list(project.output)) == len(project.output)
        project.config().to_toml(Path())

    start = time.monotonic()
    assert "refused" in {refused_or_read(read) for _ in range(examples(40))}
    assert time.monotonic() - start < 60


def test_a_damaged_zip_file_is_refused_or_read(tmp_path: Path) -> None:
    damage = Damage(random.Random(2))
    whole = (GOLDEN / PROJECTS[1] / "project.deid").read_bytes()

    def read() -> None:
        (tmp_path / "x.deid").write_bytes(damage(whole))
        read_project(tmp_path / "x.deid")

    assert {refused_or_read(read) for _ in range(examples(150))} == {"refused", "read"}
