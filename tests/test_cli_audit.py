from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from io import StringIO
from pathlib import Path

import duckdb
import jsonschema
import pytest
from rich.console import Console

from tests.test_auditing import SCHEMA
from unblur.cli.audit import run
from unblur.cli.progress import progress_bar

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled clinic with its release, made once."""
    folder = tmp_path_factory.mktemp("clinic")
    for name in ("clinic.csv", "clinic.toml", "hierarchy_sex.csv"):
        (folder / name).write_bytes((files("unblur.demo") / name).read_bytes())
    command = [sys.executable, "-m", "unblur", "anonymize", "clinic.csv", "-c", "clinic.toml", "-o", "release.csv"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def unblur(clinic: Path) -> Run:
    def run(*arguments: str | Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "unblur", *arguments]
        return subprocess.run(command, cwd=clinic, capture_output=True, text=True, input=stdin)

    return run


def test_an_audit_says_what_is_left_and_writes_json(unblur: Run, clinic: Path) -> None:
    done = unblur("audit", "release.csv", "--config", "release.toml", "--json", "a.json", "--truth", "clinic.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert "500 rows, k = 5: 55 classes, 18 of more than one cell; 3 suppressed (0.6%)" in done.stdout
    assert "class 51: 6 records in weight [30.0, 110.0[" in done.stdout
    assert "the true placement is among the plausible ones in every class" in done.stdout
    assert done.stdout.splitlines()[-1] == "result: a.json"
    found = json.loads((clinic / "a.json").read_text())
    jsonschema.validate(found, SCHEMA)
    assert found["singling_out"] == {"classes": 18, "failed": 5, "one": 2, "many": 11}


def test_json_on_standard_output_stands_alone(unblur: Run) -> None:
    done = unblur("audit", "release.csv", "-c", "release.toml", "--json", "-")
    jsonschema.validate(json.loads(done.stdout), SCHEMA)
    assert done.stderr == ""


def test_a_release_comes_from_standard_input_or_a_database(unblur: Run, clinic: Path) -> None:
    expected = json.loads(unblur("audit", "release.csv", "-c", "release.toml", "--json", "-").stdout)["classes"]
    piped = unblur("audit", "-", "-c", "release.toml", "--json", "-", stdin=(clinic / "release.csv").read_text())
    assert json.loads(piped.stdout)["classes"] == expected
    with duckdb.connect(str(clinic / "d.duckdb")) as connection:
        connection.execute(f"CREATE TABLE r AS FROM read_csv('{clinic / 'release.csv'}', all_varchar = true)")
    stored = unblur("audit", "duckdb://d.duckdb#r", "-c", "release.toml", "--json", "-")
    assert json.loads(stored.stdout)["classes"] == expected
    matched = unblur("audit", "duckdb://d.duckdb#r", "-c", "release.toml", "--truth", "clinic.csv")
    assert matched.returncode == 2
    assert "--id" in matched.stderr


@pytest.mark.parametrize(
    ("gates", "status"),
    [
        (["max_ratio > 1000"], 0),
        (["max_ratio > 100"], 1),
        (["max_ratio > 1000", "suppressed > 0"], 1),
        (["classes_below_k > 0"], 0),
        (["max_bits>7.2"], 1),
        (["certain_records >= 14"], 1),
    ],
)
def test_the_exit_status_carries_the_verdict_of_the_gates(unblur: Run, gates: list[str], status: int) -> None:
    done = unblur("audit", "release.csv", "-c", "release.toml", *(f"--fail-on={gate}" for gate in gates))
    assert done.returncode == status
    assert (done.stderr == "") == (status == 0)


def test_a_wrong_k_is_a_misfit_that_is_written_and_told(unblur: Run, clinic: Path) -> None:
    for k, problem in (
        (9, "fewer than k = 9"),
        (3, "was not made by this mechanism with this k and these hierarchies"),
    ):
        (clinic / "wrong.toml").write_text((clinic / "release.toml").read_text().replace("k = 5", f"k = {k}"))
        done = unblur(
            "audit", "release.csv", "-c", "wrong.toml", "--json", f"misfit-{k}.json", "--fail-on=suppressed>0"
        )
        assert done.returncode == 3
        assert problem in done.stderr
        found = json.loads((clinic / f"misfit-{k}.json").read_text())
        jsonschema.validate(found, SCHEMA)
        assert not found["fit"]["ok"]
        assert found["fit"]["problems"]


def bad(unblur: Run, clinic: Path, *arguments: str) -> str:
    """Run what must fail with one line, exit status 2 and nothing written."""
    before = {path: path.stat().st_mtime_ns for path in clinic.iterdir()}
    done = unblur(*arguments)
    assert done.returncode == 2, done.stderr
    assert {path: path.stat().st_mtime_ns for path in clinic.iterdir()} == before
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    return done.stderr.removeprefix("unblur: ").rstrip()


def test_bad_input_is_told_in_one_line_and_nothing_is_written(unblur: Run, clinic: Path) -> None:
    release = (clinic / "release.csv").read_text()
    header, *rows = release.splitlines()
    (clinic / "renamed.csv").write_text(release.replace("systolic", "pressure", 1))
    (clinic / "strange.csv").write_text("\n".join([header, rows[0], rows[1].replace("[", "(", 1), *rows[2:]]) + "\n")
    (clinic / "empty.csv").write_text(header + "\n")
    raw = (clinic / "clinic.csv").read_text().splitlines()
    (clinic / "short.csv").write_text("\n".join(raw[:-1]) + "\n")
    (clinic / "turned.csv").write_text("\n".join([raw[0], *raw[:0:-1]]) + "\n")
    common = ("-c", "release.toml", "--json", "never.json")
    assert "there is no column 'systolic'" in bad(unblur, clinic, "audit", "renamed.csv", *common)
    strange = bad(unblur, clinic, "audit", "strange.csv", *common)
    assert "row 2: a label that its hierarchy does not have (1 such row)" in strange
    assert "there are no rows" in bad(unblur, clinic, "audit", "empty.csv", *common)
    assert "clinic.csv" in bad(unblur, clinic, "audit", "clinic.csv", *common), "a raw table has no labels"
    assert "499 rows" in bad(unblur, clinic, "audit", "release.csv", *common, "--truth", "short.csv")
    assert "does not cover the raw value" in bad(
        unblur, clinic, "audit", "release.csv", *common, "--truth", "turned.csv"
    )
    assert "no such file" in bad(unblur, clinic, "audit", "release.csv", *common, "--truth", "nowhere.csv")
    assert "a gate is FIELD OP NUMBER" in bad(unblur, clinic, "audit", "release.csv", *common, "--fail-on", "ratio")
    assert "give it with --truth" in bad(unblur, clinic, "audit", "release.csv", *common, "--fail-on", "singled_out>0")
    assert "a time is a number" in bad(unblur, clinic, "audit", "release.csv", *common, "--budget", "soon")
    assert "this is an input" in bad(
        unblur, clinic, "audit", "release.csv", "-c", "release.toml", "--json", "release.csv"
    )
    assert "from 1 to 55" in bad(unblur, clinic, "explain", "release.csv", "-c", "release.toml", "--class", "56")


def test_a_config_without_a_mechanism_is_told_what_stating_one_would_add(unblur: Run, clinic: Path) -> None:
    (clinic / "silent.toml").write_text((clinic / "release.toml").read_text().replace('mechanism = "paper"', ""))
    done = unblur("audit", "release.csv", "-c", "silent.toml")
    assert (done.returncode, done.stderr) == (0, "")
    assert "assumed: mechanism iterative" in done.stdout
    assert "the published algorithm (paper):" in done.stdout
    assert "(arx, iterations = 100):" in done.stdout


def test_explain_puts_a_class_into_words(unblur: Run) -> None:
    done = unblur("explain", "release.csv", "--config", "release.toml", "--class", "51")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Class 51: 6 records, published as weight [30.0, 110.0[")
    assert "1 in 148 (7.2 bits less" in done.stdout
    assert "class 16 covers 1 cell: 15 records" in done.stdout
    assert "Evidence for review, not a certificate." in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100
    outliers = unblur("explain", "release.csv", "--config", "release.toml", "--class", "outliers")
    assert outliers.stdout.startswith("The outliers: 3 records, suppressed")


def test_explain_of_a_class_that_does_not_fit_has_the_exit_status_of_a_misfit(unblur: Run, clinic: Path) -> None:
    (clinic / "k2.toml").write_text((clinic / "release.toml").read_text().replace("k = 5", "k = 2"))
    done = unblur("explain", "release.csv", "-c", "k2.toml", "--class", "54")
    assert done.returncode == 3
    assert "What is left: nothing" in done.stdout


def test_two_processes_and_a_budget_give_the_same_result(unblur: Run) -> None:
    alone = unblur("audit", "release.csv", "-c", "release.toml", "--json", "-", "--ablation")
    shared = unblur(
        "audit", "release.csv", "-c", "release.toml", "--json", "-", "--ablation", "--jobs=2", "--budget=5m"
    )
    assert shared.stderr == ""
    assert shared.stdout == alone.stdout


def test_a_budget_that_is_used_up_is_told_and_a_gate_does_not_pass(unblur: Run) -> None:
    done = unblur("audit", "release.csv", "-c", "release.toml", "--budget", "0.000001", "--fail-on=max_ratio > 1e9")
    assert "not analysed, since the budget of 1e-06 s was used up" in done.stdout
    assert done.returncode == 1
    assert "cannot be told" in done.stderr


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_leaves_a_readable_partial_result(clinic: Path, tmp_path: Path, jobs: str) -> None:
    result = tmp_path / "partial.json"
    command = ["audit", "release.csv", "-c", "release.toml", "--engine", "cpsat", "--json", str(result), "--jobs", jobs]
    process = subprocess.Popen(
        [sys.executable, "-m", "unblur", *command],
        cwd=clinic,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    time.sleep(12)
    assert process.poll() is None, "the outliers of the clinic take minutes to enumerate"
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    said, complaints = process.communicate(timeout=60)
    assert process.returncode == 130, complaints
    assert "interrupted" in complaints
    assert "Traceback" not in complaints
    assert "not analysed, since it was interrupted" in said
    found = json.loads(result.read_text())
    jsonschema.validate(found, SCHEMA)
    assert found["summary"]["not_done"] > 0
    assert found["classes"][0]["counted"] == "exact"


def test_a_project_of_arx_is_audited_as_it_is(unblur: Run) -> None:
    project = Path(__file__).parent / "golden" / "g21_gui_default" / "project.deid"
    done = unblur("audit", project)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("project of ARX 3.9.2: k = 3, quasi-identifiers q1, q2, q3; mechanism arx")
    assert "the true placement is among the plausible ones in every class" in done.stdout
    assert "Replay: this is what the mechanism makes of the raw table, row by row." in done.stdout
    refused = unblur("audit", project, "--config", "release.toml")
    assert refused.returncode == 2
    assert "has its own config" in refused.stderr
    missing = unblur("audit", "release.csv")
    assert missing.returncode == 2
    assert "--config is needed" in missing.stderr


def test_the_exit_status_is_told_also_when_nobody_reads_the_rest(clinic: Path) -> None:
    command = f"{sys.executable} -m unblur audit release.csv -c release.toml --fail-on 'max_ratio > 1' --json p.json"
    shell = ["bash", "-c", f"{command} | true; exit ${{PIPESTATUS[0]}}"]
    done = subprocess.run(shell, cwd=clinic, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("unblur: failed: max_ratio > 1")
    assert (clinic / "p.json").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_told_in_one_line(clinic: Path) -> None:
    command = f"{sys.executable} -m unblur audit release.csv -c release.toml --json - > /dev/full"
    done = subprocess.run(["bash", "-c", command], cwd=clinic, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "unblur: standard output: No space left on device\n")


def test_a_screen_of_few_characters_is_no_error(clinic: Path) -> None:
    command = [sys.executable, "-m", "unblur", "audit", "release.csv", "-c", "release.toml", "--json", "Ä.json"]
    ascii_only = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run(command, cwd=clinic, capture_output=True, text=True, env=ascii_only)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "result: \\xc4.json"


def test_the_raw_table_inside_a_project_lets_a_gate_ask_who_is_singled_out(unblur: Run) -> None:
    project = Path(__file__).parent / "golden" / "g21_gui_default" / "project.deid"
    done = unblur("audit", project, "--fail-on", "singled_out > 0")
    assert done.returncode == 1
    assert done.stderr.startswith("unblur: failed: singled_out > 0: it is ")


def test_what_was_assumed_in_reading_is_told(unblur: Run, clinic: Path) -> None:
    lines = (clinic / "release.csv").read_text().splitlines()
    noted = [f"{lines[0]};note", *(f"{line};grün" for line in lines[1:])]
    (clinic / "noted.csv").write_bytes("\n".join(noted).encode("cp1252"))
    done = unblur("audit", "noted.csv", "-c", "release.toml")
    assert done.returncode == 0
    assert done.stderr.startswith("unblur: warning: noted.csv: not UTF-8, read as Windows-1252")


def test_a_report_is_written_beside_the_result_and_judges_by_the_gates(unblur: Run, clinic: Path) -> None:
    options = ["--json", "b.json", "--html", "b.html", "--fail-on", "suppressed > 2"]
    done = unblur("audit", "release.csv", "-c", "release.toml", *options)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-2:] == ["result: b.json", "report: b.html"]
    report = (clinic / "b.html").read_text()
    assert "The limit was set for this audit: a release is above it if suppressed &gt; 2." in report
    assert "[30.0, 110.0[" in report
    unblur("audit", "release.csv", "-c", "release.toml", "--html", "public.html", "--public")
    assert "[30.0, 110.0[" not in (clinic / "public.html").read_text()


def test_only_the_owner_may_read_what_names_classes(unblur: Run, clinic: Path) -> None:
    (clinic / "own.json").write_text("{}")
    (clinic / "own.json").chmod(0o644)
    options = ["-c", "release.toml", "--attack", "joint", "--budget", "1s"]
    unblur("audit", "release.csv", *options, "--json", "own.json", "--html", "own.html", "--draws", "own-draws.json")
    unblur("audit", "release.csv", "-c", "release.toml", "--html", "all.html", "--public")
    (clinic / "plain").touch()
    modes = {name: (clinic / name).stat().st_mode & 0o777 for name in ("own.json", "own.html", "own-draws.json")}
    assert modes == dict.fromkeys(modes, 0o600)
    for name in ("all.html", "release.csv", "release.toml"):
        assert (clinic / name).stat().st_mode == (clinic / "plain").stat().st_mode, name


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--public"], "--public is about the report; say where it goes with --html"),
        (["--html", "report.pdf"], "--html report.pdf: a report is written as .html"),
        (["--html", "same.html", "--json", "same.html"], "two of --json, --html and --draws name the same file"),
        (["--html", "nowhere/report.html"], "nowhere/report.html: the folder nowhere does not exist"),
    ],
)
def test_a_report_that_cannot_be_written_is_told_before_any_work(
    unblur: Run, clinic: Path, options: list[str], problem: str
) -> None:
    before = sorted(clinic.iterdir())
    done = unblur("audit", "release.csv", "-c", "release.toml", *options)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"unblur: {problem}\n")
    assert sorted(clinic.iterdir()) == before


def test_a_class_of_a_project_is_explained(unblur: Run) -> None:
    project = Path(__file__).parent / "golden" / "g21_gui_default" / "project.deid"
    done = unblur("explain", project, "--class", "3")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Class 3:")
    assert unblur("explain", project, "-c", "release.toml", "--class", "3").returncode == 2
    assert "--config is needed" in unblur("explain", "release.csv", "--class", "3").stderr


def test_standard_output_that_was_closed_is_no_gate(clinic: Path) -> None:
    command = f"{sys.executable} -m unblur audit release.csv -c release.toml --json closed.json >&-"
    done = subprocess.run(["bash", "-c", command], cwd=clinic, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert (clinic / "closed.json").exists()


def test_all_classes_together_within_a_budget(unblur: Run, clinic: Path) -> None:
    """Four attributes are estimated; a second run goes on from the draws of the first."""
    options = ["-c", "release.toml", "--attack", "joint", "--budget", "6s", "--draws", "draws.json"]
    done = unblur("audit", "release.csv", *options, "--json", "joint.json", "--truth", "clinic.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert "All classes together:" in done.stdout and "The raw table is among them." in done.stdout
    found = json.loads((clinic / "joint.json").read_text())
    jsonschema.validate(found, SCHEMA)
    joint = found["joint"]
    assert joint["log10_joint"] <= joint["log10_class"] < joint["log10_lr"] and joint["truth_feasible"]
    first = json.loads((clinic / "draws.json").read_text())["estimates"]
    if joint["exact"]:
        assert joint["solutions"] and not first
        return
    assert joint["solutions"] is None and joint["interval"] and ", estimated" in done.stdout
    again = unblur("audit", "release.csv", *options)
    assert again.returncode == 0 and again.stdout.splitlines()[-1] == "draws: draws.json"
    second = json.loads((clinic / "draws.json").read_text())["estimates"]
    assert [each["drawn"] for each in second] > [each["drawn"] for each in first]


def test_the_bar_says_what_is_being_done(
    clinic: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[str] = []

    @contextmanager
    def bar(first: str) -> Iterator[Callable[..., None]]:
        shown.append(first)
        yield lambda **changes: shown.append(changes["description"]) if "description" in changes else None

    monkeypatch.setattr("unblur.cli.audit.progress_bar", bar)
    monkeypatch.chdir(clinic)
    run("release.csv", config=Path("release.toml"), truth="clinic.csv", attack="joint", budget="1s")
    assert "All classes together:" in capsys.readouterr().out
    assert shown == [
        "reading the release",
        "reading the raw table",
        "attacking the classes",
        "looking at the classes together: counting",
        "looking at the classes together: estimating",
        "looking at each class among the others",
        "looking for leaks around the classes",
    ]


def test_a_bar_whose_end_is_not_known_does_not_stand_at_that_of_the_stage_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = StringIO()
    screen = Console(file=drawn, force_terminal=True, width=100)
    monkeypatch.setattr("unblur.cli.progress.Console", lambda stderr: screen)
    with progress_bar("first") as show:
        show(completed=7, total=7)
        show(description="second", completed=0, total=None)
    last = drawn.getvalue().rpartition("second")[2]
    assert "0/?" in last and "7" not in last.partition("0:")[0]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--draws", "d.json"], "--draws is about all classes together; ask for them with --attack joint"),
        (["--attack", "joint", "--draws", "clinic.csv"], "clinic.csv: not a file of draws that unblur wrote; name"),
        (["--attack", "joint", "--draws", "release.toml"], "release.toml: not a file of draws that unblur wrote; name"),
    ],
)
def test_what_is_no_file_of_draws_is_refused(unblur: Run, clinic: Path, options: list[str], problem: str) -> None:
    done = unblur("audit", "release.csv", "-c", "release.toml", *options)
    assert done.returncode == 2 and done.stderr.startswith(f"unblur: {problem}") and done.stdout == ""
