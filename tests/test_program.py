from __future__ import annotations

import io
import re
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from tests.plausible import Known, all_targets, attack_on, release_of, truth_of
from tests.strategies import examples, random_case
from unblur import program as program_module
from unblur.attacking import Attack
from unblur.config import Config, QuasiIdentifier
from unblur.errors import OutputError, UnblurError
from unblur.hierarchy import Hierarchy, from_cuts, from_rows, halves
from unblur.mechanisms import PaperInference
from unblur.program import Program, Row, build_program
from unblur.release import EquivalenceClass, Release


def release(trees: list[Hierarchy], classes: list[EquivalenceClass], k: int, outliers: int = 0) -> Release:
    attributes = tuple(QuasiIdentifier(name, tree, 1) for name, tree in zip("ab", trees, strict=False))
    return Release(Config(k, attributes), tuple(classes), outliers)


def tiny(outliers: int = 0) -> Attack:
    """Four ages times two weights; a class of three in the youngest and lightest cell, then three in the lower half."""
    trees: list[Hierarchy] = [halves(Decimal(0), Decimal(40), layers=3), halves(Decimal(0), Decimal(20), layers=2)]
    classes = [EquivalenceClass((1, 1), (0, 0), 3), EquivalenceClass((2, 2), (0, 0), 3)]
    return attack_on(release(trees, classes, 3, outliers))


def written(program: Program) -> list[tuple[str, tuple[str, ...], str, int]]:
    """The rows as (kind, labels, sum of cells with its sign, right-hand side)."""
    found: list[tuple[str, tuple[str, ...], str, int]] = []
    for matrix, right, rows, sign in (
        (program.A_eq, program.b_eq, program.rows_eq, "="),
        (program.A_lb, program.b_lb, program.rows_lb, ">="),
        (program.A_ub, program.b_ub, program.rows_ub, "<="),
    ):
        dense = matrix.toarray()
        for coefficients, value, row in zip(dense, right, rows, strict=True):
            cells = "".join(str(column) for column in np.flatnonzero(coefficients))
            found.append((row.kind, row.labels, f"{cells} {sign}", int(value)))
    return found


def every_program(seeds: range, *, most_cells: int = 400) -> list[tuple[Program, list[int]]]:
    """Programs of random releases, each with the true number of records in every cell."""
    found = []
    for seed in seeds:
        lattice, records, k = random_case(seed)
        attack = attack_on(release_of(lattice, records, k))
        for target in all_targets(attack):
            if np.prod([b - a for a, b in target.box]) <= most_cells:
                program = build_program(attack, target)
                z = [0] * program.columns
                for cell, n in truth_of(attack, target, records).items():
                    z[program.column(cell)] = n
                found.append((program, z))
    return found


def test_the_rows_of_a_small_class_are_those_that_one_writes_by_hand() -> None:
    attack = tiny()
    program = build_program(attack, attack.target(1))
    young, old, ages = "[0, 10[", "[10, 20[", "[0, 20["
    light, heavy, weights = "[0, 10[", "[10, 20[", "[0, 20["
    # Cells: 0 young and light, 1 young and heavy, 2 old and light, 3 old and heavy.
    assert [program.labels(column) for column in range(4)] == [
        (young, light),
        (young, heavy),
        (old, light),
        (old, heavy),
    ]
    assert program.volumes == (100, 100, 100, 100)
    assert written(program) == [
        ("overlap", (young, light), "0 =", 0),
        ("sum", (ages, weights), "0123 =", 3),
        ("half", (young, weights), "01 >=", 1),
        ("half", (old, weights), "23 >=", 1),
        ("half", (ages, light), "02 >=", 1),
        ("half", (ages, heavy), "13 >=", 1),
        ("sparse", (ages, light), "02 <=", 2),
        ("sparse", (ages, heavy), "13 <=", 2),
        ("sparse", (young, weights), "01 <=", 2),
        ("sparse", (young, heavy), "1 <=", 2),  # (young, light) is a class: it has no sparse row
        ("sparse", (old, weights), "23 <=", 2),
        ("sparse", (old, light), "2 <=", 2),
        ("sparse", (old, heavy), "3 <=", 2),
    ]
    assert program.rows_eq[0] == Row(
        "overlap", "class 1 came before and took every record of the cells it shares", (young, light)
    )
    assert program.A_ub.format == "csr"


def test_the_children_form_has_the_sparse_rows_of_the_halves_only() -> None:
    attack = tiny()
    program = build_program(attack, attack.target(1), sparse="children")
    sparse = [row for row in written(program) if row[0] == "sparse"]
    assert [cells for _, _, cells, _ in sparse] == ["01 <=", "23 <=", "02 <=", "13 <="]


def test_with_the_whole_grid_as_columns_the_cells_outside_are_fixed_to_zero() -> None:
    attack = tiny()
    program = build_program(attack, attack.target(1), columns="grid")
    assert program.columns == 8 and program.box == ((0, 4), (0, 2))
    outside = [row for row in written(program) if row[0] == "outside"]
    assert [(cells, value) for _, _, cells, value in outside] == [("4 =", 0), ("5 =", 0), ("6 =", 0), ("7 =", 0)]
    assert outside[0][1] == ("[20, 30[", "[0, 10[")
    inside = build_program(attack, attack.target(1))
    assert [row for row in written(program) if row[0] != "outside"] == written(inside)


def test_outliers_have_halves_only_if_there_are_k_of_them() -> None:
    few, many = tiny(outliers=2), tiny(outliers=3)
    kinds = [[row.kind for row in build_program(a, t).rows_lb] for a in (few, many) if (t := a.outliers())]
    assert kinds == [[], ["half"] * 4]


def test_a_published_segment_inside_the_outliers_is_active_and_has_no_sparse_row() -> None:
    attack = tiny(outliers=3)
    target = attack.outliers()
    assert target is not None
    program = build_program(attack, target)
    published = {attack.release.labels(each) for each in attack.release.classes}
    assert {row.labels for row in program.rows_eq if row.kind == "overlap"} == published
    assert not published & {row.labels for row in program.rows_ub}
    assert len(program.rows_ub) == (7 * 3 - 1) - 2  # 7 nodes times 3, without the whole, without the two classes


def test_a_node_with_three_children_has_no_half_rows() -> None:
    trees: list[Hierarchy] = [from_cuts([Decimal(c) for c in (0, 10, 20, 30)], fanouts=[3])]
    attack = attack_on(release(trees, [EquivalenceClass((2,), (0,), 5)], 3))
    program = build_program(attack, attack.target(0))
    assert program.rows_lb == () and program.A_lb.shape == (0, 3)
    assert [row[2:] for row in written(program)] == [("012 =", 5), ("0 <=", 2), ("1 <=", 2), ("2 <=", 2)]


def test_without_a_bound_there_are_neither_sparse_nor_half_rows() -> None:
    attack = Attack(tiny().release, Known(None))
    program = build_program(attack, attack.target(1))
    assert [row[0] for row in written(program)] == ["overlap", "sum"]


def test_a_larger_bound_is_what_the_sparse_rows_state() -> None:
    attack = Attack(tiny().release, Known(4))
    program = build_program(attack, attack.target(1))
    assert set(program.b_ub.tolist()) == {3}
    assert program.rows_lb == (), "three records can all lie in one half if only four make a class"


def test_without_a_certain_order_there_are_no_overlap_rows() -> None:
    tree = halves(Decimal(0), Decimal(20), layers=2)
    tied = [EquivalenceClass((1, 2), (0, 0), 3), EquivalenceClass((2, 1), (0, 0), 3)]
    given = release([tree, tree], tied, 3)
    sound, paper = attack_on(given), attack_on(given, "paper")
    assert [row.kind for row in build_program(sound, sound.target(1)).rows_eq] == ["sum"]
    assert [row.kind for row in build_program(paper, paper.target(1)).rows_eq] == ["overlap", "sum"]


def test_categories_are_columns_in_the_order_of_their_tree() -> None:
    wards = from_rows([["w1", "inner", "*"], ["w2", "surgery", "*"], ["w3", "inner", "*"], ["w4", "surgery", "*"]])
    attributes = (QuasiIdentifier("ward", wards, 0),)
    given = Release(Config(2, attributes), (EquivalenceClass((1,), (1,), 2),), 1)
    attack = Attack(given, PaperInference(given.config.lattice, 2))
    program = build_program(attack, attack.target(0))
    assert [program.labels(column) for column in range(2)] == [("w2",), ("w4",)]
    assert [row.labels for row in program.rows_lb] == [("w2",), ("w4",)]
    target = attack.outliers()
    assert target is not None
    everything = build_program(attack, target)
    assert [everything.labels(column)[0] for column in range(4)] == ["w1", "w3", "w2", "w4"]


def test_the_truth_satisfies_every_row() -> None:
    programs = every_program(range(examples(200)))
    assert len(programs) > 500
    kinds = {row.kind for program, _ in programs for row in (*program.rows_eq, *program.rows_lb, *program.rows_ub)}
    assert kinds == {"overlap", "sum", "half", "sparse"}, "the cases must include rows of every kind"
    for program, z in programs:
        assert (program.A_ub @ z <= program.b_ub).all()
        assert (program.A_lb @ z >= program.b_lb).all()
        assert (program.A_eq @ z == program.b_eq).all()
        assert program.broken(z) == []


def test_broken_rows_are_named() -> None:
    attack = tiny()
    program = build_program(attack, attack.target(1))
    assert [row.kind for row in program.broken([1, 1, 1, 0])] == ["overlap"]
    assert {row.kind for row in program.broken([0, 3, 0, 0])} == {"half", "sparse"}


def test_a_program_that_is_too_large_is_refused_before_it_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    trees = [halves(Decimal(0), Decimal(160), layers=5)] * 6
    attributes = tuple(QuasiIdentifier(f"q{i}", tree, 1) for i, tree in enumerate(trees))
    attack = attack_on(Release(Config(3, attributes), (EquivalenceClass((2,) * 6, (0,) * 6, 3),), 7))
    target = attack.outliers()
    assert target is not None
    with pytest.raises(UnblurError, match=r"would have 262,\d{3},\d{3},\d{3} non-zeros; .* the exact engine"):
        build_program(attack, target)
    assert build_program(attack, attack.target(0)).columns == 64, "a small class of a huge grid is no trouble"
    monkeypatch.setattr(program_module, "MOST_ENTRIES", 1000)
    with pytest.raises(UnblurError, match='sparse="children" over the cells of the segment it has 832'):
        build_program(attack, attack.target(0))
    assert build_program(attack, attack.target(0), sparse="children").A_ub.nnz == 6 * 64


def test_the_size_that_is_checked_counts_every_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    attack = tiny()
    for sparse, columns in (("all", "segment"), ("children", "segment"), ("all", "grid")):
        program = build_program(attack, attack.target(1), sparse=sparse, columns=columns)  # type: ignore[arg-type]
        entries = program.A_eq.nnz + program.A_lb.nnz + program.A_ub.nnz
        omitted = 1 if sparse == "all" else 0  # the row of the published cell
        monkeypatch.setattr(program_module, "MOST_ENTRIES", entries + omitted - 1)
        with pytest.raises(UnblurError, match=f"would have {entries + omitted} non-zeros"):
            build_program(attack, attack.target(1), sparse=sparse, columns=columns)  # type: ignore[arg-type]
        monkeypatch.undo()


@dataclass(frozen=True)
class Elsewhere:
    """What another solver made of an LP file."""

    rows: dict[str, tuple[float, dict[str, float], float]]
    """By name: least, coefficients, most."""
    whole: set[str]
    solution: dict[str, float] | None


def solve_with_highs(path: Path) -> Elsewhere:
    import highspy

    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    assert solver.readModel(str(path)) == highspy.HighsStatus.kOk
    model = solver.getLp()
    assert model.a_matrix_.format_ == highspy.MatrixFormat.kColwise
    rows: dict[str, tuple[float, dict[str, float], float]] = {
        name: (low, {}, high)
        for name, low, high in zip(model.row_names_, model.row_lower_, model.row_upper_, strict=True)
    }
    names = list(model.col_names_)
    starts, indices = np.asarray(model.a_matrix_.start_, int), np.asarray(model.a_matrix_.index_, int)
    for column, name in enumerate(names):
        for place in range(starts[column], starts[column + 1]):
            rows[model.row_names_[indices[place]]][1][name] = model.a_matrix_.value_[place]
    whole = {
        name for name, kind in zip(names, model.integrality_, strict=True) if kind == highspy.HighsVarType.kInteger
    }
    solver.run()
    feasible = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return Elsewhere(rows, whole, dict(zip(names, solver.getSolution().col_value, strict=True)) if feasible else None)


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[ProcessPoolExecutor]:
    """A process without OR-Tools: both bring a HiGHS library of their own, and the two do not mix."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool


def rows_of(program: Program) -> dict[str, tuple[float, dict[str, float], float]]:
    found = {}
    for matrix, right, rows, low, high in (
        (program.A_eq, program.b_eq, program.rows_eq, True, True),
        (program.A_lb, program.b_lb, program.rows_lb, True, False),
        (program.A_ub, program.b_ub, program.rows_ub, False, True),
    ):
        dense = matrix.toarray()
        for number, row in enumerate(rows):
            coefficients = {f"z_{column}": 1.0 for column in np.flatnonzero(dense[number])}
            least, most = right[number] if low else -np.inf, right[number] if high else np.inf
            found[f"{row.kind}_{number}"] = (float(least), coefficients, float(most))
    return found


def test_another_solver_reads_the_lp_file_as_the_same_program(tmp_path: Path, elsewhere: ProcessPoolExecutor) -> None:
    programs = [program for program, _ in every_program(range(examples(25)), most_cells=100)]
    paths = [tmp_path / f"{number}.lp" for number in range(len(programs))]
    for program, path in zip(programs, paths, strict=True):
        program.to_lp(path)
    for program, read in zip(programs, elsewhere.map(solve_with_highs, paths), strict=True):
        assert read.rows == rows_of(program)
        assert read.whole == {f"z_{column}" for column in range(program.columns)}
        assert read.solution is not None, "every class of a true release has a solution"
        assert program.broken([round(read.solution[f"z_{column}"]) for column in range(program.columns)]) == []


def test_another_solver_finds_an_impossible_class_infeasible(tmp_path: Path, elsewhere: ProcessPoolExecutor) -> None:
    attack = attack_on(release([halves(Decimal(0), Decimal(20), layers=2)], [EquivalenceClass((2,), (0,), 5)], 3))
    build_program(attack, attack.target(0)).to_lp(tmp_path / "class.lp")
    assert elsewhere.submit(solve_with_highs, tmp_path / "class.lp").result().solution is None


def test_no_label_can_break_out_of_its_comment(tmp_path: Path, elsewhere: ProcessPoolExecutor) -> None:
    rows = [["a\nEnd", "Köln\r\n z_0 = 9", "*"], ["b", "x" * 700, "*"], ["c", "\\ End", "*"]]
    attributes = (QuasiIdentifier("ward", from_rows(rows), 0),)
    given = Release(Config(2, attributes), (), 2)
    attack = Attack(given, PaperInference(given.config.lattice, 2))
    target = attack.outliers()
    assert target is not None
    program = build_program(attack, target)
    program.to_lp(tmp_path / "class.lp")
    assert elsewhere.submit(solve_with_highs, tmp_path / "class.lp").result().rows == rows_of(program)
    assert max(map(len, (tmp_path / "class.lp").read_text(encoding="ascii").splitlines())) <= 120


def test_the_lp_text_of_a_small_class_is_easy_to_read() -> None:
    attack = tiny()
    text = io.StringIO()
    build_program(attack, attack.target(1), sparse="children").to_lp(text)
    lines = text.getvalue().splitlines()
    assert lines[:3] == [
        "\\ 3 records in 4 cells; every whole solution is a way to place them",
        "\\ z_0: [0, 10[ x [0, 10[",
        "\\ z_1: [0, 10[ x [10, 20[",
    ]
    bare = [line for line in lines if not line.startswith("\\")]
    assert bare[:9] == [
        "Minimize", " any: 0 z_0", "Subject To",
        " overlap_0:", " z_0", " = 0",
        " sum_1:", " z_0 + z_1 + z_2 + z_3", " = 3",
    ]  # fmt: skip
    assert bare[-3:] == ["General", " z_0 z_1 z_2 z_3", "End"]
    assert all(re.match(r"(\\| |Minimize$|Subject To$|General$|End$)", line) for line in lines)


def test_a_folder_that_does_not_exist_is_told_in_one_line(tmp_path: Path) -> None:
    attack = tiny()
    with pytest.raises(OutputError, match="No such file or directory"):
        build_program(attack, attack.target(0)).to_lp(tmp_path / "missing" / "class.lp")
