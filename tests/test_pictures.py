from __future__ import annotations

import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from unblur.hierarchy import from_rows, halves
from unblur.lattice import Lattice
from unblur.paper.worked_example import Example, pictures
from unblur.pictures.lattices import Fate, StateLattice, StateNode, draw_lattice, looks
from unblur.pictures.segments import DARKEST, Frame, Point, SegmentGrid, Side, draw_segments
from unblur.pictures.style import (
    ACCENTS,
    BLUE,
    CELL,
    COLOURS,
    FAINT,
    INK,
    PAPER,
    Chart,
    Picture,
    printable,
    shortened,
    to_png,
    to_svg,
)
from unblur.pictures.trees import Bar, NestedBars, bars_of, draw_bars

ROOT = Path(__file__).parents[1]
SVG = "{http://www.w3.org/2000/svg}"
NAUGHTY = [
    "a < b & c > d",
    "say \"hi\" and 'ho'",
    "日本語のラベル",
    "نص طويل",
    "</text><script>alert(1)</script>",
    'id="x" url(#x)',
    "\\u0041 \\n ${datum} {{x}}",
    "line\nbreak \x00\x0b\ud800 end",
    "x" * 60,
]


@pytest.fixture(scope="module")
def worked() -> dict[str, Picture]:
    return pictures()


def svg_of(chart: Chart, name: str = "picture") -> str:
    return to_svg(chart, name=name, title="A title", alternative="What it shows")


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def texts(svg: str) -> set[str]:
    return {"".join(each.itertext()) for each in parsed(svg).iter(f"{SVG}text")}


def some_grid(labels: tuple[str, ...] = ("[0, 10[", "[10, 20[", "[20, 90["), **more: object) -> SegmentGrid:
    return SegmentGrid(Side("weight", labels), Side("age", labels), **more)  # type: ignore[arg-type]


def attributes(svg: str) -> Iterator[tuple[str, str]]:
    for element in parsed(svg).iter():
        yield from element.attrib.items()


# The look


def test_a_picture_has_a_title_and_an_alternative_for_those_who_do_not_see_it() -> None:
    root = parsed(
        to_svg(draw_segments(some_grid()), name="one", title='A <b> & "c"', alternative="Three & three cells")
    )
    assert root.get("role") == "img"
    by_id = {each.get("id"): each.text for each in root.iter() if each.get("id")}
    assert by_id[root.get("aria-labelledby")] == 'A <b> & "c"'
    assert by_id[root.get("aria-describedby")] == "Three & three cells"
    assert [each.tag for each in root][:2] == [f"{SVG}title", f"{SVG}desc"]


def test_marks_say_nothing_of_their_own_to_screen_readers() -> None:
    labelled = [name for name, _ in attributes(svg_of(draw_segments(some_grid()))) if name == "aria-label"]
    assert labelled == []


def test_a_picture_shrinks_with_its_page() -> None:
    svg = svg_of(draw_segments(some_grid()))
    width, height = (float(parsed(svg).get(side) or 0) for side in ("width", "height"))
    assert parsed(svg).get("viewBox") == f"0 0 {width:g} {height:g}"
    assert ".unblur-picture{max-width:100%;height:auto}" in svg


def test_a_picture_refers_to_nothing_outside_and_runs_nothing(worked: dict[str, Picture]) -> None:
    for svg in [svg_of(draw_segments(some_grid(tuple(NAUGHTY)))), *(each.svg() for each in worked.values())]:
        assert set(re.findall(r"https?://[^\"'\s<)]*", svg)) == {"http://www.w3.org/2000/svg"}
        assert {each.tag.removeprefix(SVG) for each in parsed(svg).iter()} <= {
            *("svg", "title", "desc", "style", "g", "path", "rect", "line", "text", "defs", "clipPath", "tspan")
        }
        assert not [name for name, _ in attributes(svg) if name.startswith("on") or name.endswith("href")]
        assert "@import" not in svg


def test_the_same_chart_gives_the_same_bytes_each_time() -> None:
    grid = some_grid(hatched=frozenset({(0, 1)}), points=(Point(0.5, 0.5),), frames=(Frame("A", (0, 1), (0, 2)),))
    assert svg_of(draw_segments(grid)) == svg_of(draw_segments(grid))
    assert to_png(draw_segments(grid)) == to_png(draw_segments(grid))


def test_a_clipped_chart_has_ids_of_its_own_that_are_the_same_each_time() -> None:
    chart = draw_segments(some_grid())
    chart.layer[0].mark.clip = True
    one, again, other = svg_of(chart, "one"), svg_of(chart, "one"), svg_of(chart, "other")
    assert one == again
    used = [set(re.findall(r'id="([^"]+)"', svg)) for svg in (one, other)]
    assert any(each.endswith("-1") for each in used[0])
    assert not used[0] & used[1]
    for svg, ids in zip((one, other), used, strict=True):
        assert {target for _, value in attributes(svg) for target in re.findall(r"url\(#([^)]+)\)", value)} <= ids


def test_pictures_on_one_page_share_no_id(worked: dict[str, Picture]) -> None:
    found = [each for picture in worked.values() for each in re.findall(r' id="([^"]+)"', picture.svg())]
    assert len(found) == len(set(found)) >= 2 * len(worked)


@pytest.mark.parametrize("name", ["", "A", "1a", "a b", 'a"', "a/b"])
def test_a_name_that_cannot_be_an_id_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="lower-case letters"):
        to_svg(draw_segments(some_grid()), name=name, title="", alternative="")


def test_every_colour_in_use_has_a_dark_form(worked: dict[str, Picture]) -> None:
    known = {light for light, _ in COLOURS.values()}
    for picture in worked.values():
        svg = picture.svg()
        used = {value for name, value in attributes(svg) if name in ("fill", "stroke")} - {"none", "transparent"}
        assert used <= known
        for light, dark in COLOURS.values():
            assert f'[fill="{light}"]' in svg and dark in svg


def test_colours_change_on_screens_only_and_inside_at_rules() -> None:
    sheet = next(parsed(svg_of(draw_segments(some_grid()))).iter(f"{SVG}style")).text or ""
    outside = re.sub(r"@media screen[^{]*\{(?:[^{}]|\{[^{}]*\})*\}", "", sheet)
    assert outside == ".unblur-picture{max-width:100%;height:auto}"
    assert "prefers-color-scheme:dark" in sheet


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def blend(over: str, under: str, opacity: float) -> str:
    pairs = [(int(over[i : i + 2], 16), int(under[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(a * opacity + b * (1 - opacity)):02x}" for a, b in pairs)


@pytest.mark.parametrize("form", [0, 1])
def test_text_and_lines_stand_out_on_light_and_on_dark_paper(form: int) -> None:
    now = {light: forms[form] for forms in COLOURS.values() for light in forms[:1]}
    for ground in (PAPER, CELL):
        assert contrast(now[INK], now[ground]) > 7
        assert contrast(now[FAINT], now[ground]) > 4.5
    assert contrast(now[INK], blend(now[BLUE], now[CELL], DARKEST)) > 4.5
    assert all(contrast(now[each], now[PAPER]) > 3 for each in ACCENTS)


def test_a_png_is_drawn_twice_as_large() -> None:
    chart = draw_segments(some_grid())
    width, height = struct.unpack(">II", to_png(chart)[16:24])
    root = parsed(svg_of(chart))
    assert (width, height) == tuple(2 * float(root.get(side) or 0) for side in ("width", "height"))


def test_help_does_not_load_altair() -> None:
    code = "import sys, unblur.cli; print([m for m in ('altair', 'vl_convert') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_a_number_is_never_cut_short() -> None:
    label = "[1250.75, 1375.25["
    for width in range(200):
        kept = shortened(label, width).removesuffix("…")
        assert kept in {"", "[1250.75", "[1250.75,", "[1250.75, ", "[1250.75, 1375.25", label}


# Segments


@pytest.mark.parametrize("label", NAUGHTY)
def test_any_label_is_shown_as_it_is(label: str) -> None:
    grid = some_grid((label,), title=label, frames=(Frame(label, (0, 1), (0, 1)),), names={(0, 0): label})
    shown = texts(svg_of(draw_segments(grid)))
    assert printable(label) in shown
    if len(label) < 30:
        assert len(shown - {printable(label), "weight", "age"}) <= 2  # the name in the frame and in the cell, cut


def test_hatched_cells_have_lines_across_them_and_a_key() -> None:
    def lines(svg: str) -> list[str]:
        paths = (each for each in parsed(svg).iter(f"{SVG}path") if each.get("stroke") == FAINT)
        return [each.get("d") or "" for each in paths if (each.get("d") or "").count("M") > 2]

    plain = svg_of(draw_segments(some_grid()))
    hatched = svg_of(draw_segments(some_grid(hatched=frozenset({(0, 1), (2, 2)}), hatched_name="taken")))
    assert lines(plain) == []
    assert len(lines(hatched)) == 2 + 1
    assert "taken" in texts(hatched) - texts(plain)


def test_frames_stand_around_their_cells() -> None:
    grid = some_grid(frames=(Frame("mine", (1, 3), (0, 1), BLUE),))
    (frame,) = (e for e in parsed(svg_of(draw_segments(grid))).iter(f"{SVG}path") if e.get("stroke") == BLUE)
    found = re.fullmatch(r"M([\d.]+),([\d.]+)h([\d.]+)v([\d.]+)h-[\d.]+Z", frame.get("d") or "")
    assert found
    left, top, width, height = map(float, found.groups())
    assert grid.cell <= left < 1.2 * grid.cell and 2 * grid.cell <= top < 2.2 * grid.cell
    assert 1.8 * grid.cell < width < 2 * grid.cell and 0.8 * grid.cell < height < grid.cell


def test_frames_that_overlap_have_their_edges_apart() -> None:
    frames = (Frame("a", (0, 2), (0, 2)), Frame("b", (0, 2), (0, 2)), Frame("c", (2, 3), (2, 3)))
    svg = svg_of(draw_segments(some_grid(frames=frames)))
    paths = [e.get("d") or "" for e in parsed(svg).iter(f"{SVG}path") if e.get("stroke") == INK]
    starts = [re.match(r"M([\d.]+)", path) for path in paths]
    one, other, apart = (float(each[1]) for each in starts if each)
    assert other - one >= 4
    assert apart % some_grid().cell == one  # overlaps nobody: as close to its cells as the first


def test_names_of_frames_do_not_cover_each_other() -> None:
    frames = tuple(Frame(f"EQ{n}", (0, 3), (0, 3)) for n in range(4))
    root = parsed(svg_of(draw_segments(some_grid(frames=frames))))
    places = {e.text: e.get("transform") for e in root.iter(f"{SVG}text") if (e.text or "").startswith("EQ")}
    assert len(set(places.values())) == 4


@pytest.mark.parametrize("shape", [(1, 1), (40, 40), (1, 40), (40, 2)])
def test_grids_of_any_shape_show_all_their_labels(shape: tuple[int, int]) -> None:
    columns, rows = (tuple(f"{name}{n}" for n in range(count)) for name, count in zip("xy", shape, strict=True))
    values = {(x, y): float(x * y) for x in range(shape[0]) for y in range(shape[1])}
    svg = svg_of(draw_segments(SegmentGrid(Side("a", columns), Side("b", rows), values=values, values_name="n")))
    assert set(columns) | set(rows) <= texts(svg)
    sizes = {float(value.removesuffix("px")) for name, value in attributes(svg) if name == "font-size"}
    assert min(sizes) >= 11


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"frames": (Frame("A", (0, 4), (0, 1)),)}, "'A' reaches from 0 to 4, outside 0 to 3"),
        ({"frames": (Frame("A", (1, 1), (0, 1)),)}, "'A' reaches from 1 to 1"),
        ({"hatched": frozenset({(3, 0)})}, r"the cell \(3, 0\) is outside"),
        ({"values": {(0, -1): 1.0}}, r"the cell \(0, -1\) is outside"),
        ({"labels": ()}, "not 0 x 0"),
        ({"labels": tuple(map(str, range(65)))}, "not 65 x 65"),
    ],
)
def test_a_grid_that_cannot_be_drawn_is_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        some_grid(**wrong)  # type: ignore[arg-type]


# Trees and lattices


def test_bars_nest_as_the_nodes_do() -> None:
    tree = from_rows([["a", "x", "p", "*"], ["b", "y", "q", "*"], ["c", "z", "p", "*"]])
    bars = bars_of("letters", tree, lowest=0)
    spans = {bar.label: (bar.first, bar.end) for bar in bars.bars}
    assert spans["*"] == (0, 3)
    assert spans["p"] == (0, 2) and spans["q"] == (2, 3)
    assert spans["z"] == spans["c"] == (1, 2)
    assert {"a", "b", "c", "p", "q", "*", "layer 3 (root)", "layer 0"} <= texts(svg_of(draw_bars(bars)))


def test_layers_of_too_many_nodes_are_left_out_and_it_is_said() -> None:
    bars = bars_of("weight", halves(Decimal(0), Decimal(1280), layers=8))
    assert bars.layers == [8, 7, 6, 5, 4, 3, 2]
    assert "not drawn: layer 1: 128 nodes" in texts(svg_of(draw_bars(bars)))


def test_a_label_too_long_for_its_bar_is_cut() -> None:
    bars = NestedBars("t", (Bar(2, "root", 0, 4), *(Bar(1, "y" * 60, n, n + 1) for n in range(4))))
    (cut,) = (text for text in texts(svg_of(draw_bars(bars))) if text.startswith("yyy"))
    assert cut.endswith("…") and len(cut) < 30


def lattice_of(*layers: int) -> Lattice:
    return Lattice([halves(Decimal(0), Decimal(1280), layers=n) for n in layers], (1,) * len(layers))


def test_edges_join_states_one_layer_apart() -> None:
    nodes = tuple(StateNode(state) for state in lattice_of(3, 3).states())
    svg = svg_of(draw_lattice(StateLattice(nodes)))
    assert len(list(parsed(svg).iter(f"{SVG}line"))) == 12
    assert {f"({a}, {b})" for a in (1, 2, 3) for b in (1, 2, 3)} <= texts(svg)


def test_what_happened_to_a_state_shows_without_colours() -> None:
    outlines = [(look.width, look.dash, look.fill == PAPER) for look in looks(BLUE).values()]
    assert len(set(outlines)) == len(outlines)


def test_steps_and_what_happened_are_told() -> None:
    fates: tuple[Fate, ...] = ("unusable", "usable", "released", "not reached")
    nodes = (StateNode((n,), fate, f"0.{n}", 7 if fate == "released" else None) for n, fate in enumerate(fates))
    shown = texts(svg_of(draw_lattice(StateLattice(tuple(nodes)))))
    assert {look.words for look in looks(BLUE).values()} | {"step 7", "0.0", "(2)"} <= shown


def test_a_wide_lattice_is_drawn_with_dots_and_a_huge_one_refused() -> None:
    states = tuple(StateNode(state) for state in lattice_of(4, 4, 4, 4).states())
    svg = svg_of(draw_lattice(StateLattice(states)))
    assert float(parsed(svg).get("width") or 0) < 1000
    assert "(1, 1, 1, 1)" not in texts(svg)
    with pytest.raises(ValueError, match="not of 625"):
        StateLattice(tuple(StateNode(state) for state in lattice_of(5, 5, 5, 5).states()))


# The worked example


def test_the_run_of_nine_records_goes_as_the_paper_tells() -> None:
    with Example.of("example.csv") as nine:
        first, second = nine.release.recoding.iterations
        assert len(nine.records) == 9 and nine.release.config.k == 3
        assert (first.state, second.state) == ((1, 2), (3, 2))
        assert len(first.classes) == len(second.classes) == 1
        assert first.rivals == ()
        assert second.rivals == ((2, 3),) and not second.open_tie
        assert nine.release.outliers == 2


def test_the_states_marked_as_usable_hold_the_chosen_one_and_none_cheaper() -> None:
    for table in ("example.csv", "overlap.csv"):
        with Example.of(table) as example:
            for step, usable in example.steps():
                assert step.state in usable
                assert min(map(example.lattice.key, usable)) == example.lattice.key(step.state)


def test_records_stand_in_their_cells_and_in_the_frames_of_their_classes() -> None:
    for table in ("example.csv", "overlap.csv"):
        with Example.of(table) as example:
            for record, number in example.class_of.items():
                point = example.point(record)
                assert (int(point.x), int(point.y)) == example.cell(record)
                if number is not None:
                    frame = example.frame(number)
                    assert frame.columns[0] < point.x < frame.columns[1] and frame.rows[0] < point.y < frame.rows[1]
            found = [
                sum(group == n for group in example.class_of.values()) for n in range(len(example.release.classes))
            ]
            assert found == [each.size for each in example.release.classes]


def test_no_record_of_a_class_is_in_a_cell_that_is_drawn_as_taken() -> None:
    for table in ("example.csv", "overlap.csv"):
        with Example.of(table) as example:
            for record, number in example.class_of.items():
                labels = {
                    side.name: side.labels[n] for side, n in zip(example.sides, example.cell(record), strict=True)
                }
                cells = example.explain(number).cells or ()
                assert [entry.free for entry in cells if entry.labels == labels] == [1]


def test_overlaps_are_of_both_kinds() -> None:
    with Example.of("overlap.csv") as example:
        told = example.explain(len(example.release.classes) - 1)
        boxes = [example.attack.grid.count_cells(example.attack.boxes[taker.id - 1]) for taker in told.takers]
        assert [taker.cells == box for taker, box in zip(told.takers, boxes, strict=True)] == [True, False]


def test_the_pictures_in_the_documents_are_those_that_the_code_draws(worked: dict[str, Picture]) -> None:
    folder = ROOT / "docs" / "pictures"
    assert {path.stem for path in folder.glob("worked-*.svg")} == set(worked)
    for name, picture in worked.items():
        assert (folder / f"{name}.svg").read_text(encoding="utf-8") == picture.svg(), "run tools/draw-worked-example"


def test_the_page_shows_every_picture_in_order_with_its_words(worked: dict[str, Picture]) -> None:
    page = " ".join((ROOT / "docs" / "worked-example.md").read_text().replace("\n> ", "\n").split())
    places = [page.find(f"![{each.alternative}](pictures/{name}.svg)") for name, each in worked.items()]
    assert -1 not in places and all(a < b for a, b in pairwise(places))
    assert [name for name, each in worked.items() if each.caption not in page] == []


def test_the_tables_of_the_page_say_what_the_program_says() -> None:
    page = (ROOT / "docs" / "worked-example.md").read_text()
    for table, words in (("example.csv", "nine records"), ("overlap.csv", "other nine")):
        with Example.of(table) as example:
            for number in [*range(len(example.release.classes)), *([None] if example.release.outliers else [])]:
                told = example.explain(number)
                name = "the outliers" if number is None else f"EQ{number + 1}"
                counts = f"{told.published.exact:,} | {told.plausible.exact:,} | {told.bits:.2f}"
                assert f"| {words}: {name} | {counts} |" in page
    with Example.of("example.csv") as nine:
        for record, number in nine.class_of.items():
            stars = ("*",) * len(record)
            labels = stars if number is None else nine.release.labels(nine.release.classes[number])
            name = "outlier" if number is None else f"EQ{number + 1}"
            assert f"| {' | '.join((*map(str, record), *labels, name))} |" in page
