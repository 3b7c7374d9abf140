from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from math import inf, log10
from pathlib import Path
from statistics import fmean

import pytest

import unblur
from unblur.datasets.loading import load
from unblur.paper import joint_page, running
from unblur.paper.evaluation import JOINT, PAGE
from unblur.paper.joint_tables import factors, releases
from unblur.paper.jointly import Extra, attack_jointly, joint_trials
from unblur.paper.protocol import Protocol, Sample, Trial
from unblur.paper.results import Results
from unblur.paper.running import Logbook, run_all, run_jointly

USUAL = Protocol(samples=2)
SMALL = Protocol(samples=1, sizes={"hcup": 30, "clinic": 20})
COUNTED = Protocol(samples=2, ks=(3,), sizes={"hcup": 120, "clinic": 60})
"""Releases that are all counted at once."""


def extra(trial: Trial, factor: float, interval: tuple[float, float] | None = None, *, bound: bool = False) -> Extra:
    """A release of 10^50 tables class by class, with a given factor."""
    ends = (50 - log10(interval[1]), 50 - log10(interval[0])) if interval else None
    left_out = ("ties",) if bound else ()
    error = 0.05 if interval else None
    return Extra(trial, 9, 60.0, 50.0, 50 - log10(factor), ends, error, None, left_out, sound=True, seconds=1, took=0.5)


def with_extras(*extras: Extra) -> Results:
    return Results(USUAL, {}, {}, {each.trial: each for each in extras})


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder that the command has written, and what it said."""
    folder = tmp_path_factory.mktemp("joint")
    sizes = [f"--sample-size={name}={size}" for name, size in SMALL.sizes.items()]
    options = ["--quick", "--joint", "--budget", "0.5s", "--jobs", "2", "--samples", "1", "--out", "out", *sizes]
    done = subprocess.run(
        [sys.executable, "-m", "unblur", "paper", *options], cwd=folder, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "out", done.stdout


@pytest.fixture(scope="module")
def folder(command: tuple[Path, str]) -> Path:
    return command[0]


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    """All is done, nothing is run; what the classes say together is there without being asked for."""
    return run_all(SMALL, Logbook(folder / "runs"))


def test_the_command_says_what_it_did_and_ends_with_the_path_of_the_page(command: tuple[Path, str]) -> None:
    together, *pages = command[1].splitlines()[-3:]
    assert together.startswith("All classes together: 25 releases, ")
    assert together.endswith("; the true table is always among those that remain.")
    assert pages == ["out/joint.html", "out/evaluation.html"]


@pytest.mark.parametrize(
    "trial", [Trial(0, 7, 1), Trial(2, 4, 2), Trial(4, 3, 1), Trial(4, 7, 1)], ids=lambda trial: trial.name
)
def test_a_trial_finds_what_a_joint_audit_finds(trial: Trial) -> None:
    table = load(f"{trial.described.data_set}-like").take(USUAL.chosen(trial))
    found = attack_jointly(trial, USUAL.sample(trial), seconds=2)
    with unblur.anonymize(table, USUAL.config(trial)) as release:
        audit = unblur.audit(release, truth=table, attack="joint", budget=2).to_dict()["joint"]
    assert (found.published, found.alone) == (audit["log10_lr"], audit["log10_class"])
    assert (bool(found.left_out), found.sound) == (audit["upper_bound"], audit["truth_feasible"]) == (False, True)
    if found.exact and audit["exact"]:
        assert (found.together, found.solutions) == (audit["log10_joint"], audit["solutions"])
    else:
        ours, theirs = (
            each or (exact, exact)
            for each, exact in ((found.interval, found.together), (audit["interval"], audit["log10_joint"]))
        )
        assert max(ours[0], theirs[0]) <= min(ours[1], theirs[1]) + 1e-9


def test_the_first_samples_are_attacked_for_every_k_of_the_paper_s_tables() -> None:
    trials = joint_trials(Protocol(), 2)
    assert {(trial.k, trial.sample) for trial in trials} == {(k, n) for k in range(3, 8) for n in (1, 2)}
    assert len(trials) == 5 * 5 * 2


def test_a_run_that_was_cut_off_goes_on_and_ends_with_the_same_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, logbook = Results(COUNTED, {}, {}), Logbook(tmp_path / "parts")
    whole = run_jointly(start, Logbook(tmp_path / "whole"), samples=2, seconds=60, jobs=2)

    def stop(done: int, of: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_jointly(start, logbook, samples=2, seconds=60, progress=stop)
    written = {path: path.read_bytes() for path in (tmp_path / "parts" / "joint").iterdir()}
    assert len(written) == 3
    resumed = run_jointly(replace(start, extras=logbook.extras(COUNTED)), logbook, samples=2, seconds=60)
    assert all(path.read_bytes() == content for path, content in written.items()), "what was done is not done again"
    assert len(resumed.extras) == 10
    assert all(each.exact and each.sound for each in resumed.extras.values())
    assert factors(resumed).to_csv() == factors(whole).to_csv()
    monkeypatch.setattr(running, "attack_jointly", None)
    assert run_jointly(resumed, logbook, samples=2, seconds=99).extras == resumed.extras, "counts stay"


def test_with_more_time_an_estimate_is_tried_again(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {trial: extra(trial, 2.0, (1.9, 2.1)) for trial in joint_trials(SMALL, 1)}
    logbook = Logbook(tmp_path)

    def again(trial: Trial, sample: Sample, *, seconds: float) -> Extra:
        return replace(extra(trial, 3.0, (2.9, 3.1)), seconds=seconds)

    for each in known.values():
        logbook.write_extra(each)
    monkeypatch.setattr(running, "attack_jointly", again)
    same = run_jointly(replace(results, extras=known), logbook, samples=1, seconds=1)
    assert same.extras == known
    more = run_jointly(same, logbook, samples=1, seconds=2)
    assert {each.seconds for each in more.extras.values()} == {2}


def test_what_is_written_down_comes_back(results: Results) -> None:
    nothing = replace(extra(Trial(0, 3, 1), 2, (1, 2)), together=-inf, interval=(-inf, 49.5))
    for each in (*results.extras.values(), extra(Trial(0, 3, 1), 5, (4, 6), bound=True), nothing):
        text = json.dumps(each.to_dict(), allow_nan=False)
        assert Extra.from_dict(json.loads(text)) == each


def test_the_table_has_the_geometric_mean_and_says_what_is_an_estimate_and_what_a_bound() -> None:
    sheet = factors(
        with_extras(
            extra(Trial(0, 3, 1), 4),
            extra(Trial(0, 3, 2), 9),
            extra(Trial(2, 3, 1), 100, (50, 200)),
            extra(Trial(2, 3, 2), 400, bound=True),
            extra(Trial(4, 7, 1), 10, (9, 11)),
            extra(Trial(4, 7, 2), 1),
        )
    )
    assert [column.name for column in sheet.columns] == [
        "data",
        "attributes",
        "k",
        "exact",
        "estimated",
        "factor_mean",
        "factor_low",
        "factor_high",
        "factor_largest",
        "at_least",
    ]
    dash = "–"
    assert [row[3:] for row in sheet.shown] == [
        ["2", "0", "6.00", dash, dash, "9.00", "0"],
        ["1", "1", "≥ 200.0 (estimate)", "141.4", "282.9", "≥ 400.0", "1"],
        ["1", "1", "3.16 (estimate)", "3.00", "3.32", "10.00 (estimate, 9.00 to 11.00)", "0"],
    ]
    assert "not a count" in sheet.notes[0]
    assert "(ties)" in sheet.notes[1]


def test_an_estimate_of_which_no_draw_fitted_is_a_bound() -> None:
    nothing = replace(extra(Trial(0, 3, 1), 2, (1, 2)), together=-inf, interval=(-inf, 48.0))
    assert (nothing.how, nothing.factor, nothing.factors) == ("at least, estimate", 2.0, (2.0, inf))
    row = factors(with_extras(nothing)).shown[0]
    assert row[5:9] == ["≥ 100.0 (estimate)", "100.0", "–", "≥ 100.0 (estimate, 100.0 or more)"]
    assert releases(with_extras(nothing)).shown[0][8] == "– (estimate)"
    found = with_extras(nothing)
    assert "at least 100.0 (an estimate, 100.0 or more)" in joint_page.page(
        found, joint_page.sections(found), others=[]
    )


def test_every_mean_can_be_traced_to_rows_of_releases(folder: Path) -> None:
    def rows(name: str) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO((folder / "joint" / f"{name}.csv").read_text())))

    table, every = rows("extra-factor"), rows("extra-factor-releases")
    assert len(table) == len(every) == 25
    for row in table:
        if row["estimated"] != "0":
            continue
        mine = [each for each in every if all(each[name] == row[name] for name in ("data", "attributes", "k"))]
        logs = [float(each["log10_class"]) - float(each["log10_joint"]) for each in mine]
        assert log10(float(row["factor_mean"])) == pytest.approx(fmean(logs), abs=1e-9)
        assert log10(float(row["factor_largest"])) == pytest.approx(max(logs), abs=1e-9)
    assert max(float(row["factor_largest"]) for row in table) > 1.1, "else nothing is tested"


def test_the_page_says_that_this_is_not_in_the_paper_and_its_links_lead_somewhere(folder: Path) -> None:
    text = (folder / JOINT).read_text()
    assert "not in the paper" in text[text.index("<h1>") : text.index("</h1>")]
    assert "25 releases attacked; " in text
    assert "; the true table is always among those that remain." in text
    links = re.findall(r'href="([^"#]+)"', text)
    assert {"evaluation.html", "joint/extra-factor.csv", "joint/extra-factor.png"} <= set(links)
    assert all((folder / link).exists() for link in links)
    assert f'href="{JOINT}"' in (folder / PAGE).read_text()


def test_an_estimate_is_called_one_wherever_it_is_shown(results: Results) -> None:
    first = next(iter(results.extras))
    guessed = extra(first, 4321.4, (3999.5, 4500.5), bound=True)
    others = {trial: extra(trial, 2) for trial in results.extras}
    found = replace(results, extras=others | {first: guessed})
    text = joint_page.page(found, joint_page.sections(found), others=[])
    assert "at least 4,321 (an estimate, 3,999 to 4,501)" in text
    assert len(re.findall(r"4,321", text)) == len(re.findall(r"4,321 \((?:an )?estimate\b", text)) == 4
    assert "24 counted exactly, 1 estimated" in text


def test_without_joint_attacks_there_is_nothing_to_show(results: Results) -> None:
    assert joint_page.sections(replace(results, extras={})) == []
