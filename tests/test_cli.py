from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from unblur.cli import main

Write = Callable[[str, str | bytes], Path]
Run = Callable[..., subprocess.CompletedProcess[str]]

CONFIG = """
k = 2
[[quasi_identifiers]]
name = "age"
interval = { low = 0, high = 80, layers = 3 }
[[quasi_identifiers]]
name = "weight"
interval = { low = 30, high = 110, step = 0.5, layers = 3 }
"""
TABLE = "id;age;weight\n007;5;31.5\n008;6;32\n009;65;99\n010;66;98\n011;30;50\n"


@pytest.fixture
def unblur(tmp_path: Path) -> Run:
    """Run the command in the test's own folder."""

    def run(*arguments: str | Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "unblur", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, input=stdin)

    return run


@pytest.fixture
def clinic(write: Write) -> Path:
    write("c.toml", CONFIG)
    return write("t.csv", TABLE)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_anonymize_writes_release_config_and_trace(unblur: Run, clinic: Path, tmp_path: Path) -> None:
    done = unblur("anonymize", "t.csv", "--config", "c.toml", "--out", "r.csv", "--trace", "trace.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "5 rows, k = 2: 2 classes of 2, 1 suppressed (20.0%)",
        "release: r.csv",
        "config:  r.toml",
        "trace:   trace.json",
    ]
    assert (tmp_path / "r.csv").read_text() == (
        "id;age;weight\n007;[0, 20[;[30.0, 50.0[\n008;[0, 20[;[30.0, 50.0[\n"
        "009;[60, 80[;[90.0, 110.0[\n010;[60, 80[;[90.0, 110.0[\n011;*;*\n"
    )
    assert json.loads((tmp_path / "trace.json").read_text())["suppressed"] == 1
    assert names(tmp_path) == {"t.csv", "c.toml", "r.csv", "r.toml", "trace.json"}


def test_the_table_may_come_from_standard_input(unblur: Run, clinic: Path, tmp_path: Path) -> None:
    done = unblur("anonymize", "-", "-c", "c.toml", "-o", "r.csv", stdin=TABLE)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "r.csv").exists()


def test_the_written_config_makes_the_same_release_again(unblur: Run, clinic: Path, tmp_path: Path) -> None:
    assert unblur("anonymize", "t.csv", "-c", "c.toml", "-o", "r.csv").returncode == 0
    assert unblur("anonymize", "t.csv", "-c", "r.toml", "-o", "again.csv").returncode == 0
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "r.csv").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "table", "config", "message"),
    [
        (["none.csv"], TABLE, CONFIG, "none.csv: no such file; CSV, TSV, Parquet and Excel files are read"),
        (["t.csv"], "", CONFIG, "t.csv: the file is empty; a header line and rows are needed"),
        (["t.csv"], "id;age;weight\n", CONFIG, "t.csv: there are no rows, only a header"),
        (["t.csv"], "id;age\n1;2\n", CONFIG, "t.csv: there is no column 'weight'; it has: id, age"),
        (["t.csv"], "age;weight;age\n1;2;3\n", CONFIG, "t.csv: the column 'age' is there twice"),
        (["t.csv"], TABLE, CONFIG + CONFIG[7:], "c.toml: the quasi-identifier 'age' is listed twice"),
        (["t.csv"], TABLE, CONFIG.replace("k = 2", "k = 1"), "c.toml: k must be a whole number of 2 or more, not 1"),
        (["t.csv"], TABLE.replace("5;31", "SECRET;31"), CONFIG, "t.csv: column 'age': row 1: text where a number is"),
        (["t.csv"], TABLE.replace("5;31", ";31"), CONFIG, "t.csv: column 'age': row 1: a value is missing"),
        (["t.csv"], TABLE.replace("5;31", "85;31"), CONFIG, "t.csv: column 'age': row 1: a value outside [0, 80)"),
        (["t.csv"], TABLE, CONFIG.replace("layers = 3", "layers = 13") * 1, "c.toml: quasi-identifier 'age'"),
        (["t.csv", "-o", "t.csv"], TABLE, CONFIG, "t.csv: this is an input; choose another path for the output"),
        (["t.csv", "-o", "c.csv"], TABLE, CONFIG, "c.toml: the release's own config goes here, but this is an input"),
        (["t.csv", "-o", "none/r.csv"], TABLE, CONFIG, "none/r.csv: the folder none does not exist"),
        (["t.csv", "--trace", "r.csv"], TABLE, CONFIG, "r.csv: the trace would overwrite another output"),
        (["t.csv", "--encoding", "nonsense"], TABLE, CONFIG, "t.csv: there is no encoding 'nonsense'"),
        (["t.csv", "--suppression-limit", "5"], TABLE, CONFIG, "suppression limit must be a share from 0 to 1, not 5"),
        (
            ["t.csv", "--suppression-limit", "nan"],
            TABLE,
            CONFIG,
            "suppression limit must be a share from 0 to 1, not",
        ),
        (["t.csv", "--suppression-limit", "0.1"], TABLE, CONFIG, "a suppression limit is for global recoding"),
        (["t.csv"], TABLE.replace("id", "__unblur_label_0"), CONFIG, "t.csv: the column '__unblur_label_0' has a name"),
        (["t.csv"], TABLE.replace("id", "File_Row_Number"), CONFIG, "t.csv: the column 'file_row_number' has a name"),
        (["t.csv"], TABLE.replace("id", '"a\nb"'), CONFIG, "t.csv: column 1 has a line break in its name"),
        (["t.csv"], TABLE.replace("\n", "\r"), CONFIG, "t.csv: lines end with CR alone"),
        (
            ["t.csv"],
            TABLE,
            CONFIG.replace("high = 80", "high = 1e30"),
            "c.toml: quasi-identifier 'age': a step",
        ),
        (["t.csv"], TABLE, "mechanism = ['paper']\n" + CONFIG, "c.toml: mechanism must be one of paper"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    unblur: Run, write: Write, tmp_path: Path, arguments: list[str], table: str, config: str, message: str
) -> None:
    write("t.csv", table)
    write("c.toml", config)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    if "-o" not in arguments:
        arguments = [*arguments, "-o", "r.csv"]
    done = unblur("anonymize", *arguments, "-c", "c.toml")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"unblur: {message}")
    assert done.stderr.count("\n") == 1
    assert "SECRET" not in done.stderr
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_missing_values_can_be_suppressed(unblur: Run, write: Write, tmp_path: Path) -> None:
    write("t.csv", TABLE + "012;;50\n")
    write("c.toml", CONFIG)
    done = unblur("anonymize", "t.csv", "-c", "c.toml", "-o", "r.csv", "--missing", "suppress")
    assert done.returncode == 0
    assert done.stderr == "unblur: warning: t.csv: column 'age': row 6: a value is missing (1 such row)\n"
    assert (tmp_path / "r.csv").read_text().splitlines()[-1] == "012;*;*"
    assert "missing = 1" in (tmp_path / "r.toml").read_text()


def test_k_above_the_number_of_rows_is_a_warning(unblur: Run, write: Write, tmp_path: Path) -> None:
    write("t.csv", TABLE)
    write("c.toml", CONFIG.replace("k = 2", "k = 9"))
    done = unblur("anonymize", "t.csv", "-c", "c.toml", "-o", "r.csv")
    assert done.returncode == 0
    assert "everything is suppressed" in done.stderr
    assert (tmp_path / "r.csv").read_text().count("*;*") == 5


MISUSE = {
    "anonymize": "missing argument 'table'; see unblur anonymize --help",
    "nonsense": "no such command 'nonsense'; see unblur --help",
    "anonymize t.csv --recoding x": "invalid value for '--recoding': ",
    "anonymize t.csv -c c -o r.csv --threads 0": "invalid value for '--threads': ",
    "audit r.csv --jobs 0": "invalid value for '--jobs': ",
    "audit r.csv --jobs two": "invalid value for '--jobs': ",
    "audit r.csv --nonsense": "no such option: --nonsense",
    "audit r.csv --budget 0": "--budget '0': a time is a number above 0 with s, m or h, as in 60s",
    "audit r.csv --budget=": "--budget '': a time is a number above 0",
    "audit r.csv --budget": "option '--budget' requires an argument",
    "explain r.csv --class 1 --cells 0": "invalid value for '--cells': ",
    "sample r.csv -c c -o s -n 0": "invalid value for '-n' / '--number': ",
    "sample r.csv -c c -o s --budget=": "--budget '': a time is a number above 0",
    "paper --samples 0": "invalid value for '--samples': ",
    "data make clinic -o t.csv --rows 0": "--rows 0: a whole number from 1 to",
    "data make clinic -o t.csv --seed=-1": "invalid value for '--seed': ",
    "serve --port 0": "invalid value for '--port': ",
    "hierarchy build t.csv": "missing option '--column'; see unblur hierarchy build --help",
}


@pytest.mark.parametrize("line", MISUSE)
def test_misuse_is_told_in_one_line(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["unblur", *line.split()])
    for module, name in ((signal, "signal"), (logging, "disable"), (warnings, "showwarning")):
        monkeypatch.setattr(module, name, lambda *each: None)  # the process of the tests keeps its own
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    assert ended.value.code == 2 and said.out == "" and said.err.count("\n") == 1
    assert said.err.startswith(f"unblur: {MISUSE[line]}")


@pytest.mark.parametrize("arguments", [[], ["hierarchy"]])
def test_a_command_alone_shows_its_help(unblur: Run, arguments: list[str]) -> None:
    done = unblur(*arguments)
    assert done.returncode == 2 and "Commands" in done.stdout and done.stderr == ""


def test_help_and_version_answer(unblur: Run) -> None:
    assert "anonymize" in unblur("--help").stdout
    assert unblur("--version").stdout.startswith("unblur ")


def test_demo_ends_with_the_path_of_its_result(unblur: Run, tmp_path: Path) -> None:
    done = unblur("demo", "--out", "a folder")
    assert done.returncode == 0, done.stderr
    assert Path(tmp_path, done.stdout.splitlines()[-1]).is_file()


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_leaves_no_half_file_and_no_temporary_file(tmp_path: Path, ending: signal.Signals) -> None:
    source = tmp_path / "t.parquet"
    rows = "SELECT (hash(i) % 80) AS age, 30 + (hash(i + 7) % 160) / 2 AS weight, 'note ' || i AS note FROM range"
    duckdb.sql(f"COPY ({rows}(2_500_000) t(i)) TO '{source}'")
    (tmp_path / "c.toml").write_text(CONFIG)
    out, temporary = tmp_path / "out", tmp_path / "temporary"
    out.mkdir()
    temporary.mkdir()
    command: list[str | Path] = [sys.executable, "-m", "unblur", "anonymize", source, "-c", tmp_path / "c.toml"]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    process = subprocess.Popen(
        [*command, "-o", out / "r.csv"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    while not names(out) and process.poll() is None:
        time.sleep(0.002)
    process.send_signal(ending)
    _, message = process.communicate(timeout=60)
    assert process.returncode == 128 + ending, message
    assert names(out) == set()
    assert names(temporary) == set()
    assert "Traceback" not in message


def test_nothing_is_left_in_the_temporary_folder(unblur: Run, clinic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("TMPDIR", folder)
        assert unblur("anonymize", "t.csv", "-c", "c.toml", "-o", "r.csv").returncode == 0
        assert names(Path(folder)) == set()
        assert unblur("anonymize", "t.csv", "-c", "c.toml", "-o", "r.csv", "--order-by", "none").returncode == 2
        assert names(Path(folder)) == set()


def test_a_wrong_tmpdir_is_refused_instead_of_putting_rows_elsewhere(
    unblur: Run, clinic: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", "/no/such/folder")
    done = unblur("anonymize", "t.csv", "-c", "c.toml", "-o", "r.csv")
    assert done.returncode == 2
    assert done.stderr == "unblur: TMPDIR: /no/such/folder is not a folder that can be written to\n"
