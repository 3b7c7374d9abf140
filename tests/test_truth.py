from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unblur
from tests.plausible import attack_on, truth_of
from tests.strategies import Record, random_case
from tests.test_anonymizing import CONFIG, as_table, people
from unblur.config import Config, QuasiIdentifier
from unblur.errors import ConfigError, TableError, UnblurWarning
from unblur.grid import Grid
from unblur.hierarchy import from_rows, halves
from unblur.lattice import Lattice
from unblur.reading import read_release
from unblur.sources import open_table
from unblur.tables import Table
from unblur.truth import Cell, Truth, read_truth
from unblur.workspace import Workspace

Write = Callable[[str, str | bytes], Path]
Open = Callable[[Any], Table]


@pytest.fixture
def opened() -> Iterator[Open]:
    """Open tables, each in a workspace of its own."""
    with ExitStack() as stack:
        yield lambda source: open_table(source, stack.enter_context(Workspace()))


def obvious_truth(release: unblur.Release, records: list[Record]) -> Truth:
    attack = attack_on(release)
    suppressed = attack.outliers()
    return Truth(
        classes=tuple(truth_of(attack, target, records) for target in attack.targets()),
        outliers=truth_of(attack, suppressed, records) if suppressed else {},
        totals=obvious_totals(release.config.lattice, records),
        without_cell=0,
    )


def obvious_totals(lattice: Lattice, records: list[Record]) -> dict[Cell, int]:
    grid = Grid(lattice)
    return Counter(
        tuple(
            int(grid.positions(i)[tree.climb(np.array([rank]), 0, lattice.finest[i])[0]])
            for i, (tree, rank) in enumerate(zip(lattice.hierarchies, record, strict=True))
        )
        for record in records
    )


@pytest.mark.parametrize("seed", range(30))
def test_by_position_every_class_has_the_records_that_the_anonymizer_put_there(seed: int, opened: Open) -> None:
    lattice, records, k = random_case(seed)
    config, _, table = as_table(lattice, records)
    published = unblur.anonymize(table, Config(k, config.quasi_identifiers)).to_arrow()
    release = read_release(published, Config(k, config.quasi_identifiers))
    truth = read_truth(table, release, opened(published))
    assert truth == obvious_truth(release, records)
    assert [sum(cells.values()) for cells in truth.classes] == [each.size for each in release.classes]
    assert sum(truth.outliers.values()) == release.outliers


@pytest.mark.parametrize("seed", range(15))
def test_by_id_the_order_of_rows_and_columns_and_the_format_do_not_matter(
    seed: int, opened: Open, tmp_path: Path
) -> None:
    ending = ("csv", "tsv", "parquet")[seed % 3]
    lattice, records, k = random_case(seed)
    config, rows, table = as_table(lattice, records)
    shuffled = np.random.default_rng(seed).permutation(rows)
    numbered = table.append_column("person", pa.array(shuffled))
    unblur.anonymize(numbered, Config(k, config.quasi_identifiers)).save(tmp_path / f"r.{ending}")
    release = read_release(tmp_path / f"r.{ending}", Config(k, config.quasi_identifiers))
    raw = numbered.append_column("other", pa.array(["x"] * rows)).to_pandas().sort_values("person")
    raw[["other", *reversed(numbered.column_names)]].to_csv(tmp_path / "t.csv", index=False, sep="|")
    truth = read_truth(tmp_path / "t.csv", release, opened(tmp_path / f"r.{ending}"), id_column="person")
    assert truth == obvious_truth(release, records)


def test_a_release_just_made_serves_as_well_as_one_read_back(opened: Open) -> None:
    made = unblur.anonymize(people(), CONFIG, recoding="global", suppression_limit=0.3)
    truth = read_truth(people(), made, opened(made.to_arrow()))
    read = read_release(made.to_arrow(), made.config)
    again = read_truth(people(), read, opened(made.to_arrow()))
    assert dict(zip(map(made.labels, made.classes), truth.classes, strict=True)) == dict(
        zip(map(read.labels, read.classes), again.classes, strict=True)
    )
    assert (truth.outliers, truth.totals) == (again.outliers, again.totals)
    assert made.outliers > 0


WARD = QuasiIdentifier("ward", from_rows([["a", "x", "*"], ["SECRET", "y", "*"], ["b", "x", "*"]]), 0)
"""On the axis the wards stand in the order a, b, SECRET: those of one parent together."""
DOSE = QuasiIdentifier("dose", halves(Decimal(0), Decimal(4), step=Decimal("0.5"), layers=2), 0)
AGE = QuasiIdentifier("age", halves(Decimal(0), Decimal(80), layers=3), 1)
HOSPITAL = Config(2, (WARD, DOSE, AGE))

RAW = """
    person;ward;dose;age
    p1-SECRET;a;0.5;31.4151
    p2-SECRET;a;0.7;31.4152
    p3-SECRET;b;3;31.4153
    p4-SECRET;a;3;31.4154
    p5-SECRET;SECRET;0.7000001;61.4155
    p6-SECRET;a;0.7999;31.4156
"""
PUBLISHED = """
    person;ward;dose;age
    p1-SECRET;a;0.5;[20, 40[
    p2-SECRET;a;0.50;20-39
    p3-SECRET;x;[2.0, 4.0[;[0, 40)
    p4-SECRET;x;[2.0, 4.0[;[0, 40[
    p5-SECRET;*;[0.0, 4.0[;*
    p6-SECRET;*;*;*
"""


def message(caught: pytest.ExceptionInfo[Exception]) -> str:
    """What an error says, but for the folders of files; in one line, and without a value of the tables."""
    text = re.sub(r"[^\s(]*/", "", str(caught.value))
    assert "\n" not in text
    assert not [value for value in ("SECRET", ".415", "0.7", "p1", "p2", "p3", "p4", "p5", "p6") if value in text]
    return text


def test_a_small_table_counted_by_hand(write: Write, opened: Open) -> None:
    published = write("r.csv", PUBLISHED)
    release = read_release(published, HOSPITAL)
    truth = read_truth(write("t.csv", RAW), release, opened(published))
    assert [release.labels(each) for each in release.classes] == [
        ("a", "0.5", "[20, 40["),
        ("x", "[2.0, 4.0[", "[0, 40["),
    ]
    assert truth.classes == ({(0, 1, 1): 2}, {(1, 6, 1): 1, (0, 6, 1): 1})
    assert truth.outliers == {(2, 1, 3): 1, (0, 1, 1): 1}
    assert truth.totals == {(0, 1, 1): 3, (1, 6, 1): 1, (0, 6, 1): 1, (2, 1, 3): 1}
    assert truth.without_cell == 0


def test_cells_are_counted_even_where_their_numbers_fill_more_than_a_machine_word(opened: Open) -> None:
    wide = halves(Decimal(0), Decimal(2**18), layers=1)
    config = Config(2, tuple(QuasiIdentifier(f"q{i}", wide, 0) for i in range(4)))
    records = [*product((0, 2**17), repeat=4), (2**18 - 1,) * 4]  # 72 bits, and the highest tell half of them apart
    raw = pd.DataFrame(records, columns=[f"q{i}" for i in range(4)])
    published = raw.assign(q2="*", q3="*").astype(str)
    truth = read_truth(raw, read_release(published, config), opened(published))
    assert [sorted(cells.values()) for cells in truth.classes] == [[1] * 4] * 4 + [[1]]
    assert set(truth.totals) == set(records)


def test_a_label_on_two_layers_is_the_same_class_on_whichever_it_was_made(opened: Open) -> None:
    interval = {"cuts": [0, 10, 20, 30], "fanouts": [2]}
    raw = pa.table({"x": [5, 15, 25, 26]})
    made = unblur.anonymize(
        raw, {"k": 2, "quasi_identifiers": [{"name": "x", "interval": interval}]}, recoding="global"
    )
    assert [each.state for each in made.classes] == [(2,), (2,)]
    truth = read_truth(raw, made, opened(made.to_arrow()))
    assert truth.classes == ({(0,): 1, (1,): 1}, {(2,): 2})


def test_suppressed_records_are_outliers_even_if_two_layers_are_called_by_a_star(opened: Open) -> None:
    sex = QuasiIdentifier("sex", from_rows([["male", "*", "*"], ["female", "*", "*"]]), 0)
    raw = pa.table({"sex": ["male", "male", "female"], "age": [1, 2, 61]})
    made = unblur.anonymize(raw, Config(2, (sex, AGE)))
    truth = read_truth(raw, made, opened(made.to_arrow()))
    assert (truth.classes, truth.outliers) == (({(0, 0): 2},), {(1, 3): 1})


@pytest.mark.parametrize(
    ("published", "raw"),
    [
        (pa.array([17, 18, 2**40]), pa.array([18.0, 2.0**40, 17.0])),
        (pa.array(["17.0", "18.", "1099511627776"]), pa.array([18, 2**40, 17])),
        (pa.array([17.5, 18.0, 1e15]), pa.array(["18", "1000000000000000", "17.5"])),
        (pa.array([" a", "B ", "007"]), pa.array(["B", "007", "a"])),
        (pa.array([Decimal("17.00"), Decimal("18.00"), Decimal("5.25")]), pa.array([" 18", "5.25", "17"])),
    ],
)
def test_ids_are_compared_as_text_and_whole_numbers_in_any_type(
    published: pa.Array, raw: pa.Array, opened: Open
) -> None:
    config = Config(2, (AGE,))
    rows = pa.table({"person": published, "age": ["[0, 20[", "[0, 20[", "*"]})
    truth = read_truth(
        pa.table({"person": raw, "age": [5, 61, 6]}), read_release(rows, config), opened(rows), id_column="person"
    )
    assert (truth.classes, truth.outliers) == (({(0,): 2},), {(3,): 1})


@pytest.mark.parametrize(("one", "other"), [("7", "007"), ("a", "A"), ("1.50", "1.5"), ("1.0.0", "1.0")])
def test_other_texts_are_other_ids(one: str, other: str, opened: Open) -> None:
    rows = pa.table({"person": ["b", one], "age": ["*", "*"]})
    raw = pa.table({"person": ["b", other], "age": [1, 2]})
    with pytest.raises(TableError, match=r"^the table: column 'person': row 2: an id that the table does not have"):
        read_truth(raw, read_release(rows, Config(2, (AGE,))), opened(rows), id_column="person")


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_number_that_is_none_is_no_id(missing: float | None, opened: Open) -> None:
    rows = pa.table({"person": pa.array([1.0, missing]), "age": ["*", "*"]})
    raw = pa.table({"person": pa.array([1, 2]), "age": [1, 2]})
    with pytest.raises(TableError, match=r"^the table: column 'person': row 2: an id is missing \(1 such row\)$"):
        read_truth(raw, read_release(rows, Config(2, (AGE,))), opened(rows), id_column="person")


def table(text: str, **changed: str) -> str:
    """A table in which some lines are others: `p2="..."` is the new line of the second person, or none."""
    lines = [changed.get(line.strip()[:2], line.strip()) for line in text.splitlines()]
    return "".join(f"{line}\n" for line in lines if line)


def refusal(write: Write, opened: Open, raw: str, published: str, id_column: str | None) -> str:
    """What is said when a raw table is handed over with a release that is read without fault."""
    path = write("r.csv", published)
    with pytest.raises(TableError) as caught:
        read_truth(write("t.csv", raw), read_release(path, HOSPITAL), opened(path), id_column=id_column)
    return message(caught)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (
            {"p2": "", "p3": ""},
            "t.csv: 4 rows, but the release (r.csv) has 6; rows are matched by position; "
            "a column that both have can be named with --id",
        ),
        (
            {"p3": "p3-SECRET;SECRET;3;31.4153", "p4": "p4-SECRET;a;1.5;31.4154"},
            "r.csv: row 3: the published label of column 'ward' does not cover the raw value (2 such rows); "
            "the table is another one, or its rows are in another order",
        ),
        (
            {"p4": "p4-SECRET;a;1.9999;41.4154"},
            "r.csv: row 4: the published label of column 'dose' does not cover the raw value (1 such row); "
            "the table is another one, or its rows are in another order",
        ),
        (
            {"p2": "p2-SECRET;a;1;31.4152"},
            "r.csv: row 2: the published label of column 'dose' does not cover the raw value (1 such row); "
            "the table is another one, or its rows are in another order",
        ),
        (
            {"p5": "p5-SECRET;SECRETS;1;1"},
            "t.csv: column 'ward': row 5: a value that the hierarchy does not list; case and blanks count (1 such row)",
        ),
        ({"p6": "p6-SECRET;a;;1"}, "t.csv: column 'dose': row 6: a value is missing (1 such row)"),
        ({"p6": "p6-SECRET;a;1;80"}, "t.csv: column 'age': row 6: a value outside [0, 80) (1 such row)"),
    ],
)
def test_by_position_a_table_that_is_not_the_one_behind_the_release_is_refused(
    write: Write, opened: Open, raw: dict[str, str], expected: str
) -> None:
    assert refusal(write, opened, table(RAW, **raw), PUBLISHED, None) == expected


@pytest.mark.parametrize(
    ("raw", "published", "expected"),
    [
        ({"p3": ";b;3;1", "p5": " ;b;3;1"}, {}, "t.csv: column 'person': row 3: an id is missing (2 such rows)"),
        ({}, {"p6": ";*;*;*"}, "r.csv: column 'person': row 6: an id is missing (1 such row)"),
        (
            {"p3": "p1-SECRET;b;3;1", "p5": "p1-SECRET;b;3;1"},
            {},
            "t.csv: column 'person': row 3: an id that another row has too (2 such rows)",
        ),
        ({}, {"p6": "p4-SECRET;*;*;*"}, "r.csv: column 'person': row 6: an id that another row has too (1 such row)"),
        (
            {"p3": "q3-SECRET;b;3;1"},
            {},
            "r.csv: column 'person': row 3: an id that t.csv does not have (1 such row)",
        ),
        ({"p2": ""}, {}, "r.csv: column 'person': row 2: an id that t.csv does not have (1 such row)"),
        (
            {"p6": "p6-SECRET;a;1;1\nq7-SECRET;a;1;1\nq8-SECRET;a;1;1"},
            {},
            "t.csv: column 'person': row 7: an id that r.csv does not have (2 such rows)",
        ),
        (
            {"p3": "p4-SECRET;b;3;1", "p4": "p3-SECRET;SECRET;3;41"},
            {},
            "r.csv: row 3: the published label of column 'ward' does not cover the raw value (1 such row); "
            "the table is another one, or its ids are of other records",
        ),
    ],
)
def test_by_id_a_table_that_is_not_the_one_behind_the_release_is_refused(
    write: Write, opened: Open, raw: dict[str, str], published: dict[str, str], expected: str
) -> None:
    assert refusal(write, opened, table(RAW, **raw), table(PUBLISHED, **published), "person") == expected


def test_the_first_wrong_row_is_counted_in_the_release_not_in_the_raw_table(write: Write, opened: Open) -> None:
    lines = table(RAW, p3="p3-SECRET;b;1;31.4153").splitlines()
    reversed_rows = "\n".join([lines[0], *reversed(lines[1:])])
    assert refusal(write, opened, reversed_rows, PUBLISHED, "person").startswith("r.csv: row 3: the published label")


def test_an_id_that_is_not_there_is_refused_with_what_is(write: Write, opened: Open) -> None:
    hint = "there is no column 'person'; did you mean 'persons'?"
    raw, published = (text.replace("person;", "persons;") for text in (RAW, PUBLISHED))
    assert refusal(write, opened, raw, PUBLISHED, "person") == f"t.csv: {hint}"
    assert refusal(write, opened, RAW, published, "person") == f"r.csv: {hint}"


def test_a_quasi_identifier_is_no_id(write: Write, opened: Open) -> None:
    published = write("r.csv", PUBLISHED)
    with pytest.raises(ConfigError, match=r"^'ward' is a quasi-identifier: its published values are labels"):
        read_truth(write("t.csv", RAW), read_release(published, HOSPITAL), opened(published), id_column="ward")


@pytest.mark.parametrize(
    "rows",
    [
        table(PUBLISHED, p6="p6-SECRET;a;0.5;[20, 40["),
        table(PUBLISHED, p6="p6-SECRET;b;0.5;[20, 40["),
        table(PUBLISHED, p1="p1-SECRET;*;*;*", p2="p2-SECRET;*;*;*"),
        table(PUBLISHED, p6=""),
    ],
)
def test_rows_of_another_release_are_refused(write: Write, opened: Open, rows: str) -> None:
    release = read_release(write("r.csv", PUBLISHED), HOSPITAL)
    with pytest.raises(TableError) as caught:
        read_truth(write("t.csv", RAW), release, opened(write("other.csv", rows)))
    what = "its rows do not make up the classes given; the release is another one"
    assert message(caught) == f"other.csv: {what}"


@pytest.mark.parametrize("label", ["SECRETS", ""])
def test_a_label_that_is_none_is_refused(write: Write, opened: Open, label: str) -> None:
    release = read_release(write("r.csv", PUBLISHED), HOSPITAL)
    other = write("other.csv", table(PUBLISHED, p2=f"p2-SECRET;{label};0.5;*", p4=f"p4-SECRET;{label};0.5;*"))
    with pytest.raises(TableError) as caught:
        read_truth(write("t.csv", RAW), release, opened(other))
    assert message(caught) == "other.csv: column 'ward': row 2: a label that its hierarchy does not have (2 such rows)"


def with_gaps() -> pd.DataFrame:
    table = people().astype({"age": "object", "weight": "object"})
    table.loc[[3, 50], "age"] = None
    table.loc[[50, 120], "weight"] = 500.0
    return table


@pytest.mark.parametrize("id_column", [None, "code"])
def test_records_suppressed_for_want_of_a_value_are_counted_apart(
    id_column: str | None, opened: Open, tmp_path: Path
) -> None:
    with pytest.warns(UnblurWarning):
        unblur.anonymize(with_gaps(), CONFIG, missing="suppress").save(tmp_path / "r.csv")
    release = read_release(tmp_path / "r.csv", tmp_path / "r.toml")
    truth = read_truth(with_gaps(), release, opened(tmp_path / "r.csv"), id_column=id_column)
    assert truth.without_cell == 3
    assert sum(truth.outliers.values()) == release.outliers - 3
    assert sum(truth.totals.values()) == 197
    complete = with_gaps().drop(index=[3, 50, 120])
    assert truth.totals == Counter(
        (int(age) // 10, int((weight - 30) // 10))
        for age, weight in zip(complete["age"], complete["weight"], strict=True)
    )


def test_a_value_without_cell_is_refused_unless_the_config_speaks_of_such(opened: Open, tmp_path: Path) -> None:
    with pytest.warns(UnblurWarning):
        unblur.anonymize(with_gaps(), CONFIG, missing="suppress").save(tmp_path / "r.csv")
    release = read_release(tmp_path / "r.csv", CONFIG)
    with pytest.raises(TableError, match=r"^the table: column 'age': row 4: a value is missing \(2 such rows\)$"):
        read_truth(with_gaps(), release, opened(tmp_path / "r.csv"))
    for missing in (0, "some"):
        silent = replace(release, config=replace(release.config, made={"missing": missing}))
        with pytest.raises(TableError, match="row 4: a value is missing"):
            read_truth(with_gaps(), silent, opened(tmp_path / "r.csv"))


def test_a_value_without_cell_is_refused_where_the_release_shows_a_class(write: Write, opened: Open) -> None:
    published = write("r.csv", PUBLISHED)
    raw = write("t.csv", table(RAW, p5="p5-SECRET;;1;61", p4="p4-SECRET;a;;31"))
    release = read_release(published, replace(HOSPITAL, made={"missing": 1}))
    with pytest.raises(TableError) as caught:
        read_truth(raw, release, opened(published))
    expected = "r.csv: row 4: the published label of column 'dose' does not cover the raw value (1 such row); the table"
    assert message(caught).startswith(expected)


@pytest.fixture
def database(tmp_path: Path) -> str:
    """A DuckDB file with a table and its release, whose rows are in another order."""
    connection = ibis.duckdb.connect(tmp_path / "x.duckdb")
    raw = pa.Table.from_pandas(people()).append_column("person", pa.array(range(10**15, 10**15 + 200)))
    published = unblur.anonymize(raw, CONFIG).to_arrow()
    connection.create_table("raw", raw)
    connection.create_table("published", published.take(np.random.default_rng(2).permutation(len(published))))
    connection.disconnect()
    return f"duckdb://{tmp_path}/x.duckdb"


def test_a_release_in_a_database_is_matched_by_id(database: str, opened: Open) -> None:
    expected = unblur.anonymize(people(), CONFIG)
    release = read_release(f"{database}#published", CONFIG)
    by_position = read_truth(people(), release, opened(expected.to_arrow()))
    for raw in (people(), f"{database}#raw"):
        assert read_truth(raw, release, opened(f"{database}#published"), id_column="code") == by_position


def test_a_release_on_one_engine_and_its_truth_on_another_are_matched(
    database: str, postgres_address: str, opened: Open
) -> None:
    connection = ibis.connect(postgres_address)
    connection.create_table("people", pa.Table.from_pandas(people()))
    typed = "weight::numeric, age::float8, code::char(8), (1000000000000000 + code::int)::float8 AS person"
    connection.raw_sql(f"CREATE TABLE truth AS SELECT {typed} FROM people ORDER BY weight").close()
    connection.con.commit()
    connection.disconnect()
    release, published = read_release(f"{database}#published", CONFIG), opened(f"{database}#published")
    expected = read_truth(people(), release, published, id_column="code")
    for id_column in ("code", "person"):
        assert read_truth(f"{postgres_address}#truth", release, published, id_column=id_column) == expected


def test_the_rows_of_a_database_are_not_matched_by_position(database: str, opened: Open) -> None:
    release = read_release(f"{database}#published", CONFIG)
    message = "the rows of a database have no order; --id COLUMN matches them by a column"
    with pytest.raises(TableError, match=f"^duckdb://…#published: {message}$"):
        read_truth(people(), release, opened(f"{database}#published"))
    published = unblur.anonymize(people(), CONFIG).to_arrow()
    with pytest.raises(TableError, match=f"^duckdb://…#raw: {message}$"):
        read_truth(f"{database}#raw", release, opened(published))


def test_rows_of_a_database_are_counted_but_not_numbered_in_messages(database: str, opened: Open) -> None:
    release, published = read_release(f"{database}#published", CONFIG), opened(f"{database}#published")
    other = people().assign(weight=30.0)
    with pytest.raises(TableError, match=r"^duckdb://…#published: the published label of column 'weight' does not"):
        read_truth(other, release, published, id_column="code")
    with pytest.raises(TableError, match=r"#published: column 'code': an id that the table does not have \(3 such"):
        read_truth(people()[3:], release, published, id_column="code")


def test_the_encoding_of_the_raw_table_may_be_named(write: Write, opened: Open) -> None:
    config = Config(2, (QuasiIdentifier("sex", from_rows([["männlich", "*"], ["weiblich", "*"]]), 0),))
    published = pa.table({"sex": ["männlich"] * 2 + ["*"]})
    raw = write("t.csv", "sex\nmännlich\nmännlich\nweiblich\n".encode("cp850"))
    truth = read_truth(raw, read_release(published, config), opened(published), encoding="cp850")
    assert truth.classes == ({(0,): 2},)


def test_a_parquet_file_of_several_row_groups_keeps_its_order(tmp_path: Path, opened: Open) -> None:
    raw = people(20_000)
    pq.write_table(pa.Table.from_pandas(raw), tmp_path / "t.parquet", row_group_size=700)
    made = unblur.anonymize(raw, CONFIG)
    truth = read_truth(tmp_path / "t.parquet", made, opened(made.to_arrow()))
    assert sum(truth.totals.values()) == 20_000
