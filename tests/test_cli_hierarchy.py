from __future__ import annotations

import signal
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from unblur.cli import main

TABLE = """age,weight,admitted,zip,sex
18,60.5,2023-11-30,80331,f
35,70.0,2024-02-29,81931,m
62,81.5,2024-03-17,81929,f
97,99.0,2024-12-31,80331,m
"""

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Iterator[Run]:
    """Call the command line in this process, in a folder with a small table; return exit status, output and errors."""
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clinic.csv").write_text(TABLE)

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["unblur", "hierarchy", *arguments])
        with pytest.raises(SystemExit) as exit_:
            main()
        captured = capsys.readouterr()
        assert isinstance(exit_.value.code, int)
        return exit_.value.code, captured.out, captured.err

    yield call
    signal.signal(signal.SIGTERM, before)


def test_the_command_runs_and_help_loads_no_engine(tmp_path: Path) -> None:
    code = "import sys, unblur.cli; print([m for m in ('ibis', 'duckdb', 'numpy', 'rich.tree') if m in sys.modules])"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert modules.stdout == "[]\n"
    (tmp_path / "clinic.csv").write_text(TABLE)
    command = [sys.executable, "-m", "unblur", "hierarchy", "build", "-", "--column", "age", "--equal", "4"]
    done = subprocess.run([*command, "--low", "0", "--high", "100"], input=TABLE, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        '[[quasi_identifiers]]\nname = "age"\ninterval = { low = 0, high = 100, step = 1, layers = 3 }\n'
    )


def test_built_lines_are_a_config_that_covers_the_table(run: Run, tmp_path: Path) -> None:
    config = "k = 2\n"
    for arguments in (
        ["--column", "age", "--quantile", "2"],
        ["--column", "weight", "--equal", "8", "--step", "0.5"],
        ["--column", "admitted", "--dates", "month,year", "--out", "days.csv"],
        ["--column", "zip", "--mask", "--out", "zip.csv"],
    ):
        status, out, _ = run("build", "clinic.csv", *arguments)
        assert status == 0
        config += "\n" + out
    (tmp_path / "unblur.toml").write_text(config)
    status, out, err = run("check", "unblur.toml", "--table", "clinic.csv")
    assert (status, err) == (0, "")
    assert out.endswith("clinic.csv: all values of age, weight, admitted, zip are covered (4 rows)\n")


def test_an_interval_hierarchy_can_be_a_file(run: Run, tmp_path: Path) -> None:
    status, out, err = run("build", "clinic.csv", "--column", "weight", "--equal", "4", "--out", "weight.csv")
    assert status == 0 and "may reveal it" in err
    (entry,) = tomllib.loads(out)["quasi_identifiers"]
    assert entry == {"name": "weight", "hierarchy": "weight.csv", "step": 0.1, "finest_layer": 1}
    assert (tmp_path / "weight.csv").read_text().splitlines()[0] == "60.0;[60.0, 70.0[;[60.0, 80.0[;[60.0, 100.0["


def test_lines_can_go_to_a_toml_file_and_be_checked_alone(run: Run, tmp_path: Path) -> None:
    arguments = ("build", "clinic.csv", "--column", "age", "--equal", "4", "--out", "age.toml")
    assert run(*arguments)[:2] == (0, "hierarchy: age.toml\n")
    assert tomllib.loads((tmp_path / "age.toml").read_text())["quasi_identifiers"][0]["name"] == "age"
    assert run("check", "age.toml")[0] == 0
    status, _, err = run(*arguments)
    assert status == 2 and "is there already" in err


def test_codes_come_with_a_warning(run: Run) -> None:
    status, out, err = run("build", "clinic.csv", "--column", "zip", "--mask", "--out", "zip.csv")
    assert status == 0 and 'hierarchy = "zip.csv"' in out
    assert "lists the codes that occur in the table; it should not be published" in err


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "give exactly one of --equal, --quantile, --dates, --mask; none given"),
        (["--equal", "2", "--mask"], "--equal and --mask given"),
        (["--equal", "1"], "at least 2 leaves"),
        (["--equal", "0"], "at least 2 leaves"),
        (["--equal", "2", "--fanout", "1"], "--fanout must be"),
        (["--equal", "2", "--fanout", "2,x"], "--fanout must be"),
        (["--equal", "4", "--fanout", "2,2,2"], "3 fan-outs are too many"),
        (["--equal", "2", "--step", "fine"], "--step must be a number"),
        (["--equal", "2", "--step", "-1"], "step must be above 0"),
        (["--equal", "3", "--low", "0", "--high", "100"], "high - low must be a multiple of 3"),
        (["--equal", "2", "--pad", "0"], "--pad does not go with --equal"),
        (["--mask", "--step", "1", "--out", "x.csv"], "--step does not go with --mask"),
        (["--mask", "--low", "1", "--out", "x.csv"], "--low does not go with --mask"),
        (["--mask", "--pad", "00", "--out", "x.csv"], "--pad takes one character"),
        (["--mask"], "--mask lists values, which needs a file of its own: add --out FILE.csv"),
        (["--dates", "year", "--out", "x.toml"], "add --out FILE.csv"),
        (["--dates", "week", "--out", "x.csv"], "unknown period 'week'"),
        (["--dates", "year", "--low", "20x", "--out", "x.csv"], "must be a year"),
        (["--dates", "year", "--out", "x.csv"], "row 1: a text that is no date of the form YYYY-MM-DD (4 such rows)"),
        (["--equal", "2", "--out", "clinic.csv"], "this is an input"),
        (["--equal", "2", "--out", "none/x.csv"], "does not exist"),
        (["--equal", "2", "--out", "x.xlsx"], ".toml (lines of a config) or .csv"),
        (["--equal", "2", "--column", "agee"], "did you mean 'age'?"),
        (["--equal", "2", "--column", "sex"], "row 1: no number"),
    ],
)
def test_misuse_of_build_is_one_line_and_writes_nothing(
    run: Run, tmp_path: Path, arguments: list[str], message: str
) -> None:
    status, out, err = run("build", "clinic.csv", "--column", "age", *arguments)
    assert (status, out) == (2, "") and message in err
    assert err.startswith("unblur: ") and err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["clinic.csv"]


def test_a_tree_is_drawn_with_its_root_on_top(run: Run, tmp_path: Path) -> None:
    (tmp_path / "sex.csv").write_text("f;person;*\nm;person;*\n")
    status, out, _ = run("check", "sex.csv", "--column", "sex", "--table", "clinic.csv")
    assert status == 0
    assert out.splitlines() == [
        "sex: 2 values, 1 leaf, 2 layers; finest layer 0 (raw values)",
        "*",
        "└── person",
        "    ├── f",
        "    └── m",
        "",
        "clinic.csv: all values of sex are covered (4 rows)",
    ]


def test_wide_trees_are_cut_short_unless_all_is_asked_for(run: Run, tmp_path: Path) -> None:
    (tmp_path / "wide.csv").write_text("".join(f"value {n};*\n" for n in range(100)))
    short, whole = run("check", "wide.csv")[1], run("check", "wide.csv", "--all")[1]
    assert "└── … 80 more" in short and "value 99" not in short
    assert "value 99" in whole and "more" not in whole


def test_labels_are_not_taken_for_markup(run: Run, tmp_path: Path) -> None:
    (tmp_path / "odd.csv").write_text("a;[bold]x[/bold];*\nb;:smile:;*\n")
    out = run("check", "odd.csv")[1]
    assert "[bold]x[/bold]" in out and ":smile:" in out


@pytest.mark.parametrize(
    "rows, message",
    [
        ("5;[0, 10[;*\n25;[20, 33[;*\n", "a gap, no interval covers [10, 20)"),
        ("5;[0, 10[;*\n9;[8, 20[;*\n", "[0, 10) and [8, 20) overlap"),
        ("1;a;x;*\n2;a;y;*\n", "two parents"),
        ("1;a;*\n2;b\n", "2 columns"),
        ("1;a;*\n1;b;*\n", "the same value"),
        ("1;a\n2;b\n", "the root"),
        ("", "the file is empty"),
    ],
)
def test_a_file_that_is_no_tree_is_refused_in_one_line(run: Run, tmp_path: Path, rows: str, message: str) -> None:
    (tmp_path / "bad.csv").write_text(rows)
    status, out, err = run("check", "bad.csv")
    assert (status, out) == (2, "") and message in err
    assert err.startswith("unblur: bad.csv: ") and err.count("\n") == 1


def test_values_that_are_not_covered_are_named_by_row_only(run: Run, tmp_path: Path) -> None:
    (tmp_path / "sex.csv").write_text("x;*\n")
    (tmp_path / "u.toml").write_text(
        'k = 2\n[[quasi_identifiers]]\nname = "sex"\nhierarchy = "sex.csv"\n'
        '[[quasi_identifiers]]\nname = "age"\ninterval = { low = 20, high = 60, layers = 2 }\n'
    )
    status, _, err = run("check", "u.toml", "--table", "clinic.csv")
    assert status == 2
    assert err.splitlines() == [
        "unblur: clinic.csv: column 'sex': row 1: a value that the hierarchy does not list; case and blanks count "
        "(4 such rows)",
        "unblur: clinic.csv: column 'age': row 1: a value outside [20, 60) (3 such rows)",
    ]
    assert run("check", "u.toml", "--column", "age")[1].startswith("age: 40 values, 2 leaves, 2 layers, step 1;")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["none.toml"], "No such file"),
        (["none.csv"], "No such file"),
        (["u.toml", "--column", "weight"], "there is no quasi-identifier 'weight'; it has: age"),
        (["u.toml", "--step", "1"], "--step does not go with a config"),
        (["clinic.csv", "--table", "clinic.csv"], "--table needs --column NAME"),
        (["broken.toml"], "not a TOML file"),
        (["snippet.toml"], "snippet.toml: quasi-identifier 'age': low must be below high"),
    ],
)
def test_misuse_of_check_is_one_line(run: Run, tmp_path: Path, arguments: list[str], message: str) -> None:
    age = '[[quasi_identifiers]]\nname = "age"\ninterval = { low = 0, high = %d, layers = 2 }\n'
    (tmp_path / "u.toml").write_text("k = 2\n" + age % 80)
    (tmp_path / "snippet.toml").write_text(age % 0)
    (tmp_path / "broken.toml").write_text("k = \n")
    status, out, err = run("check", *arguments)
    assert (status, out) == (2, "") and message in err and err.count("\n") == 1


def test_a_hierarchy_is_guessed_from_a_release(run: Run, tmp_path: Path) -> None:
    (tmp_path / "release.csv").write_text('age,zip\n"[0, 20[",81*\n"[20, 40[",8**\n"[40, 80[",*\n*,*\n')
    status, out, err = run("infer", "release.csv", "--column", "age")
    assert status == 0 and "interval = { cuts = [0, 20, 40, 60, 80], fanouts = [2], step = 1 }" in out
    assert "is a guess" in err and "--low and --high" in err and "--step" in err and "cannot be seen" in err
    status, out, _ = run("infer", "release.csv", "--column", "zip", "--out", "zip.csv")
    assert status == 0 and out.splitlines()[2:] == ['hierarchy = "zip.csv"', "finest_layer = 1"]
    status, out, _ = run("check", "zip.csv")
    assert out.startswith("zip.csv: 1,000 values, 100 leaves, 3 layers")


@pytest.mark.parametrize(
    "rows, arguments, message",
    [
        ('a\n"[0, 10["\n"[5, 15["\n', [], "[0, 10[ and [5, 15[ overlap"),
        ("a\nf\nm\n", [], "row 1: a label that is neither an interval"),
        ("a\n819**\n", [], "needs a file of its own: add --out FILE.csv"),
        ("a\n<18\n18-64\n>=65\n", ["--out", "x.toml"], "needs a file of its own: add --out FILE.csv"),
        ("a\n*\n", [], "nothing to guess from"),
        ("a\n1\n2\n", [], "only raw numbers"),
        ("b\n1\n", [], "there is no column 'a'"),
        ('a\n"[0, 10["\n', ["--out", "release.csv"], "this is an input"),
        ('a\n"[0, 10["\n', ["--low", "x"], "--low must be a number"),
    ],
)
def test_what_cannot_be_guessed_is_one_line(
    run: Run, tmp_path: Path, rows: str, arguments: list[str], message: str
) -> None:
    (tmp_path / "release.csv").write_text(rows)
    status, out, err = run("infer", "release.csv", "--column", "a", *arguments)
    assert (status, out) == (2, "") and message in err and err.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"clinic.csv", "release.csv"}
