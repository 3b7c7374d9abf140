"""The worked example: nine records, k = 3, recoded and attacked by our own code, and drawn.

The paper tells how its run goes but not which records it has; `example.csv` holds records that make it go so. Two of
them share an age, for without that the tie in the second step would stay open. In such a run the classes cannot
overlap: a class of state (1, 2) within the later one of state (3, 2), with two outliers, would take a tie in the first
step, too, or just eight records. So overlaps are shown on nine other records, `overlap.csv`.
"""

from __future__ import annotations

import csv
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from importlib.resources import files
from itertools import product

import altair as alt

from unblur.anonymizing import AnonymizedRelease, anonymize
from unblur.attacking import Attack, inference_of
from unblur.cells import assign_cells
from unblur.config import Mechanism
from unblur.explaining import explain
from unblur.explanations import Explanation, Split
from unblur.hierarchy import IntervalHierarchy
from unblur.histogram import Histogram
from unblur.lattice import Lattice, State
from unblur.pictures.lattices import Fate, StateLattice, StateNode, draw_lattice
from unblur.pictures.segments import Cell, Frame, Point, SegmentGrid, Side, draw_segments
from unblur.pictures.style import BLUE, INK, Picture, accent, below, beside
from unblur.pictures.trees import bars_of, draw_bars
from unblur.recoding import Iteration
from unblur.remaining import Remaining

Record = tuple[int, ...]


@dataclass(frozen=True)
class Example:
    """A small table, the release that our anonymizer makes of it, and the attack on that release."""

    records: tuple[Record, ...]
    release: AnonymizedRelease
    histogram: Histogram

    @classmethod
    @contextmanager
    def of(cls, table: str) -> Iterator[Example]:
        """Anonymize a table of this package."""
        folder = files("unblur.paper")
        with (folder / table).open() as lines:
            records = tuple(tuple(map(int, row.values())) for row in csv.DictReader(lines, delimiter=";"))
        with anonymize(str(folder / table), str(folder / "example.toml")) as release:
            yield cls(records, release, assign_cells(release.table, release.config).histogram())

    @property
    def lattice(self) -> Lattice:
        return self.release.config.lattice

    @cached_property
    def trees(self) -> list[IntervalHierarchy]:
        trees = [each.hierarchy for each in self.release.config.quasi_identifiers]
        return [tree for tree in trees if isinstance(tree, IntervalHierarchy)]

    @cached_property
    def attack(self) -> Attack:
        """What anyone can infer: it sees the release alone."""
        bare = self.release.bare()
        return Attack(bare, inference_of(bare.config.mechanism or Mechanism("paper"), bare))

    def explain(self, number: int | None) -> Explanation:
        """Explain a class by its index, or the outliers (None)."""
        return explain(self.attack, number, records=self.release.config.records)

    @cached_property
    def sides(self) -> tuple[Side, Side]:
        across, up = (Side(each.name, each.hierarchy.labels[0]) for each in self.release.config.quasi_identifiers)
        return across, up

    def cell(self, record: Record) -> Cell:
        """The cell of a record."""
        x, y = (bisect_right(tree.bounds, Decimal(v)) - 1 for tree, v in zip(self.trees, record, strict=True))
        return x, y

    def point(self, record: Record, colour: str = INK) -> Point:
        """Where a record stands in the grid: inside its cell as its values lie in the leaves."""
        x, y = (
            rank + float((value + Decimal("0.5") - tree.bounds[rank]) / (tree.bounds[rank + 1] - tree.bounds[rank]))
            for tree, value, rank in zip(self.trees, record, self.cell(record), strict=True)
        )
        return Point(x, y, colour)

    @cached_property
    def class_of(self) -> dict[Record, int | None]:
        """The index of every record's class, as the anonymizer decided; None for outliers."""
        across, up = (column.tolist() for column in self.histogram.nodes)
        chosen = self.release.recoding.class_of_cell.tolist()
        known = dict(zip(zip(across, up, strict=True), chosen, strict=True))
        return {record: None if known[self.cell(record)] < 0 else known[self.cell(record)] for record in self.records}

    def frame(self, number: int, *, shaded: bool = False) -> Frame:
        """The frame of a class."""
        columns, rows = self.attack.boxes[number]
        return Frame(_class_name(number), columns, rows, accent(number), shaded=shaded)

    def steps(self) -> Iterator[tuple[Iteration, set[State]]]:
        """Go through the run again; tell for each step which states would make a class."""
        remaining = Remaining(self.histogram, self.lattice, self.release.config.k)
        for step in self.release.recoding.iterations:
            yield step, {state for state in self.lattice.states() if remaining.any_group(state)}
            remaining.release(step.state)


def pictures() -> dict[str, Picture]:
    """Draw all figures, by name."""
    with Example.of("example.csv") as nine, Example.of("overlap.csv") as other:
        drawn = [
            _hierarchies(nine),
            _segments(nine),
            _lattice(nine),
            _steps(nine),
            _overlap(other),
            _outliers(nine),
            _halves(nine),
        ]
    return {picture.name: picture for picture in drawn}


def _hierarchies(example: Example) -> Picture:
    names = [side.name for side in example.sides]
    layers = example.trees[0].height
    charts = [draw_bars(bars_of(name, tree)) for name, tree in zip(names, example.trees, strict=True)]
    leaves = [tree.nodes(1) for tree in example.trees]
    return Picture(
        "worked-1-hierarchies",
        "The hierarchies of the example",
        f"Each value can be published as one of {leaves[0]} narrow intervals (layer 1), as a wider one, or not at all: "
        f"layer {layers} is the whole domain.",
        f"Nested bars for {names[0]} and for {names[1]}: {leaves[0]} leaves at the bottom, joined in pairs layer by "
        "layer up to one root.",
        below(*charts),
    )


def _segments(example: Example) -> Picture:
    state = example.release.recoding.iterations[0].state
    spans = [
        [example.attack.grid.box(state, tuple(rank if i == j else 0 for j in range(2)))[i] for rank in range(nodes)]
        for i, nodes in enumerate(tree.nodes(layer) for tree, layer in zip(example.trees, state, strict=True))
    ]
    frames = tuple(Frame("", columns, rows, BLUE) for columns, rows in product(*spans))
    names = _cell_names(example)
    grid = SegmentGrid(*example.sides, frames=frames, names=names)
    return Picture(
        "worked-1-segments",
        "The segment grid of the example",
        f"One leaf of each attribute makes a cell: {len(names)} of them, B1 to B{len(names)}. A state joins cells to "
        f"segments; the frames are the {len(frames)} segments of the state {state}.",
        f"A grid of {len(names)} cells, {example.sides[0].name} to the right and {example.sides[1].name} upwards, with "
        f"{len(frames)} blue frames around the segments of the state {state}.",
        draw_segments(grid),
    )


def _lattice(example: Example) -> Picture:
    nodes = tuple(StateNode(state, note=_loss(example, state)) for state in example.lattice.states())
    bottom, top = example.lattice.finest, example.lattice.top
    return Picture(
        "worked-1-lattice",
        "The lattice of states of the example",
        f"A state says on which layer each attribute is published: {bottom} is the finest, {top} hides everything. "
        "Under each stands its information loss; an edge goes one layer up in one attribute.",
        f"A diamond of {len(nodes)} states from {bottom} at the bottom to {top} at the top, each with its loss.",
        draw_lattice(StateLattice(nodes, legend=False)),
    )


def _steps(example: Example) -> Picture:
    rows, told, first = [], [], 0
    for number, (step, usable) in enumerate(example.steps(), 1):
        classes = range(first, first + len(step.classes))
        rows.append(beside(_tried(example, step, usable, number), _carved(example, classes, number)))
        told.append(_decision(example, step, classes, number))
        first += len(step.classes)
    left = example.release.outliers
    return Picture(
        "worked-2-steps",
        "The run, step by step",
        f"{' '.join(told)} The {left} records left at the end are too few: they are suppressed, with a star for every "
        "value.",
        "For every step, on the left the lattice with the states that would make a class, and the one chosen; on the "
        f"right the grid with the records still there and the frame of the new class. {' '.join(told)}",
        below(*rows),
    )


def _tried(example: Example, step: Iteration, usable: set[State], number: int) -> alt.LayerChart:
    def fate(state: State) -> Fate:
        if state == example.lattice.top:
            return "not reached"
        return "released" if state == step.state else "usable" if state in usable else "unusable"

    nodes = tuple(
        StateNode(state, fate(state), _loss(example, state), number if state == step.state else None)
        for state in example.lattice.states()
    )
    colour = accent(example.release.classes.index(step.classes[0]))
    return draw_lattice(StateLattice(nodes, f"Step {number}: which states would do", colour))


def _carved(example: Example, classes: range, number: int) -> alt.LayerChart:
    """The records that are there before a step, and the classes that it makes."""
    here = [(record, group) for record, group in example.class_of.items() if group is None or group >= classes.start]
    points = tuple(
        example.point(record, accent(group) if group is not None and group in classes else INK)
        for record, group in here
    )
    frames = tuple(example.frame(each, shaded=True) for each in classes)
    title = f"Step {number}: the records left, and the class"
    return draw_segments(SegmentGrid(*example.sides, title=title, frames=frames, points=points))


def _decision(example: Example, step: Iteration, classes: range, number: int) -> str:
    sizes = " and ".join(f"{_class_name(n)} of {example.release.classes[n].size} records" for n in classes)
    words = f"Step {number} takes the state {step.state}, with a loss of {_loss(example, step.state)}, for {sizes}."
    for rival in step.rivals:
        c3 = [f"{float(step.c3[each]):.3f}" for each in (step.state, rival)]
        words += f" The state {rival} loses as much; the third criterion decides ({c3[0]} against {c3[1]})."
    return words


def _overlap(example: Example) -> Picture:
    last = len(example.release.classes) - 1
    told = example.explain(last)
    name, taken = _class_name(last), told.all_cells - told.free_cells
    takers = " and ".join(_class_name(taker.id - 1) for taker in told.takers)
    published = SegmentGrid(
        *example.sides,
        title="The published classes",
        frames=tuple(example.frame(number, shaded=True) for number in range(last + 1)),
    )
    left = _left(example, told, f"What is left of {name}", (example.frame(last),))
    return Picture(
        "worked-3-overlap",
        "What earlier classes take from a later one",
        f"{takers} were made before {name}, and took every record in their cells. So in {taken} of the "
        f"{told.all_cells} cells of {name} nobody of it can be.{_count(told)}",
        f"Left, a grid with the frames of {last + 1} classes; {name} overlaps the others. Right, {name} alone: "
        f"{taken} cells hatched, {told.free_cells} tinted by the chance that someone is in them.",
        beside(draw_segments(published), left),
    )


def _outliers(example: Example) -> Picture:
    told = example.explain(None)
    frames = tuple(example.frame(number) for number in range(len(example.release.classes)))
    return Picture(
        "worked-3-outliers",
        "What the classes take from the outliers",
        f"The {told.size} suppressed records show nothing but stars, and seem to be anywhere. But no class left "
        f"anybody behind in its cells: {told.free_cells} of {told.all_cells} cells remain.{_count(told)}",
        f"A grid with the frames of {len(frames)} classes, their cells hatched; the other {told.free_cells} cells are "
        "tinted by the chance that someone is in them.",
        _left(example, told, "Where the outliers can be", frames),
    )


def _halves(example: Example) -> Picture:
    last = len(example.release.classes) - 1
    told, each = example.explain(last), example.release.classes[last]
    charts = [_split(example, last, attribute, split) for attribute, split in enumerate(told.children)]
    finer = tuple(layer - (i == 0) for i, layer in enumerate(each.state))
    name = _class_name(last)
    return Picture(
        "worked-4-halves",
        "Why each half of a class holds someone",
        f"Suppose nobody of {name} were in one half of its {told.children[0].attribute}. Then all {told.size} would "
        f"share the other half, and the state {finer}, which loses {_loss(example, finer)} instead of "
        f"{_loss(example, each.state)}, would have published them there, before. It did not. So each half, in each "
        f"attribute, holds at least one record and fewer than k = {told.k}.{_count(told)}",
        f"Two grids with the frame of {name}. In each, dashed lines part it into two halves, once by "
        f"{' and once by '.join(split.attribute for split in told.children)}; each half says how many of the "
        f"{told.size} records it may hold.",
        beside(*charts),
    )


def _split(example: Example, number: int, attribute: int, split: Split) -> alt.LayerChart:
    each, box = example.release.classes[number], example.attack.boxes[number]
    spans = example.attack.grid.children(attribute, each.state[attribute], each.segment[attribute])
    frames = [replace(example.frame(number, shaded=True), name="")]
    for span, child in zip(spans, split.children, strict=True):
        columns, rows = (span, box[1]) if attribute == 0 else (box[0], span)
        held = f"{child.least} to {child.most}" if child.least < child.most else f"just {child.least}"
        frames.append(Frame(f"{held} of {each.size}", columns, rows, dashed=True))
    title = f"{_class_name(number)} parted by {split.attribute}"
    return draw_segments(SegmentGrid(*example.sides, title=title, frames=tuple(frames), names=_cell_names(example)))


def _left(example: Example, told: Explanation, title: str, frames: tuple[Frame, ...]) -> alt.LayerChart:
    """The cells of a class: hatched where earlier classes took everybody, tinted by the chance of someone elsewhere."""
    assert told.cells is not None
    across, up = example.sides
    where = {
        (across.labels.index(entry.labels[across.name]), up.labels.index(entry.labels[up.name])): entry
        for entry in told.cells
    }
    grid = SegmentGrid(
        across,
        up,
        title=title,
        frames=frames,
        names=_cell_names(example),
        values={cell: float(1 - entry.odds.nobody) for cell, entry in where.items() if entry.free},
        values_name="chance of someone",
        percent=True,
        hatched=frozenset(cell for cell, entry in where.items() if not entry.free),
        hatched_name="taken by earlier classes",
    )
    return draw_segments(grid)


def _count(told: Explanation) -> str:
    published, plausible = told.published.exact, told.plausible.exact
    assert published is not None and plausible is not None
    return (
        f" Of the {published:,} ways to choose {told.size} different records under its label, {plausible:,} remain."
        if told.id
        else f" Of {published:,} ways to choose {told.size} different records, {plausible:,} remain."
    )


def _cell_names(example: Example) -> dict[Cell, str]:
    """Count the cells from the bottom left, row by row."""
    columns, rows = (len(side.labels) for side in example.sides)
    return {(x, y): f"B{columns * y + x + 1}" for y, x in product(range(rows), range(columns))}


def _class_name(number: int) -> str:
    return f"EQ{number + 1}"


def _loss(example: Example, state: State) -> str:
    return f"{example.lattice.loss(state):.3f}"
