from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import pytest

import unblur
from unblur.datasets.catalogue import CONFIGURATIONS, data_set
from unblur.datasets.loading import load
from unblur.errors import ConfigError, OutputError, TableError
from unblur.paper import verdicts
from unblur.paper.claims import CLAIMS
from unblur.paper.evaluation import PAGE, TIMES, write
from unblur.paper.origins import DEFAULTS, Source
from unblur.paper.protocol import Attacked, Outcome, Protocol, Trial, attack
from unblur.paper.results import Results, averaged, distance, ratio
from unblur.paper.running import Logbook, run_all
from unblur.paper.sheets import Column, Sheet, show
from unblur.paper.tables import all_tables, seconds
from unblur.paper.timing import Timings, measure

SMALL = Protocol(samples=2, ks=(3, 6))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return run_all(SMALL, Logbook(tmp_path_factory.mktemp("runs")))


@pytest.fixture(scope="module")
def folder(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluation")
    assert write(results, folder) == folder / PAGE
    return folder


def contents(folder: Path, *, timed: bool = False) -> dict[str, bytes]:
    """All files but those of measured times."""
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    apart = ("run-times", "runs/times")
    return {name: content for name, content in found.items() if timed or not name.startswith(apart)}


@pytest.mark.parametrize(
    "trial", [Trial(0, 3, 1), Trial(2, 7, 2), Trial(3, 5, 1), Trial(4, 8, 1)], ids=lambda t: t.name
)
def test_a_trial_finds_what_anonymize_and_audit_find(trial: Trial) -> None:
    table = load(f"{trial.described.data_set}-like").take(SMALL.chosen(trial))
    found = attack(trial, SMALL.sample(trial))
    with unblur.anonymize(table, SMALL.config(trial)) as release:
        audit = unblur.audit(release, truth=table)
    assert audit.settings.records == "distinct"
    rows = [(each.size, each.lr, each.cra, each.combinations, each.basic, each.singles) for each in found.classes]
    assert rows == [
        (
            row["size"],
            row["lr_solutions"],
            row["cra_solutions"],
            row["combinations"],
            row["basic"],
            row["singled_out"],
        )
        for row in audit.classes.to_rows()
    ]
    assert found.sound
    assert (found.outliers.cra if found.outliers else None) == (
        audit.outliers.refinement.plausible.text if audit.outliers and audit.outliers.refinement else None
    )


def test_the_solver_agrees_wherever_it_comes_to_its_end() -> None:
    timings = measure(SMALL.sample(Trial(1, 3, 1)), seconds=10)
    finished = [each for each in timings.classes if each.finished]
    assert len(finished) > 20
    assert all(each.agrees and each.solver is not None for each in finished)


def test_samples_depend_on_the_seed_the_configuration_and_their_number_but_not_on_k() -> None:
    chosen = [SMALL.chosen(Trial(0, k, n)).tolist() for k, n in ((3, 1), (6, 1), (3, 2))]
    assert chosen[0] == chosen[1] != chosen[2]
    assert replace(SMALL, seed=2).chosen(Trial(0, 3, 1)).tolist() != chosen[0]
    assert len(set(chosen[0])) == SMALL.sizes["hcup"]


def test_the_grid_is_the_paper_s() -> None:
    protocol = Protocol()
    assert len(protocol.trials) == 5 * 6 * 12
    assert {(trial.described.data_set, len(trial.described.attributes)) for trial in protocol.trials} == {
        ("hcup", 2),
        ("hcup", 3),
        ("hcup", 4),
        ("clinic", 2),
        ("clinic", 3),
    }
    assert dict(protocol.sizes) == {"hcup": 800, "clinic": 400}


def test_a_run_that_was_cut_off_goes_on_and_ends_with_the_same_bytes(tmp_path: Path) -> None:
    protocol = replace(SMALL, samples=1)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    write(run_all(protocol, Logbook(whole / "runs"), jobs=2), whole)

    def stop(done: int, of: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all(protocol, Logbook(parts / "runs"), progress=stop)
    assert len(list((parts / "runs" / "trials").iterdir())) == 4
    times = {path: path.read_bytes() for path in (parts / "runs" / "times").iterdir()}
    write(run_all(protocol, Logbook(parts / "runs")), parts)
    assert contents(parts) == contents(whole)
    assert all(path.read_bytes() == content for path, content in times.items()), "what was done is not done again"


def test_results_of_another_protocol_are_not_mixed_in(tmp_path: Path) -> None:
    Logbook(tmp_path).open(SMALL)
    Logbook(tmp_path).open(SMALL)
    with pytest.raises(ConfigError, match=r"another run \(it differs in ks, seed\); choose another folder"):
        Logbook(tmp_path).open(replace(SMALL, seed=9, ks=(3,)))


def test_a_file_that_is_not_ours_is_named(tmp_path: Path) -> None:
    (tmp_path / "protocol.json").write_text("{")
    with pytest.raises(OutputError, match=r"protocol\.json: not a file of ours"):
        Logbook(tmp_path).open(SMALL)


def test_what_is_written_down_comes_back(results: Results) -> None:
    for outcome, timings in zip(results.outcomes.values(), results.timings.values(), strict=True):
        assert Outcome.from_dict(json.loads(json.dumps(outcome.to_dict()))) == outcome
        assert Timings.from_dict(json.loads(json.dumps(timings.to_dict()))) == timings


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text())))


def test_every_mean_of_table_2_can_be_traced_to_rows_of_classes(folder: Path) -> None:
    ratios: dict[tuple[str, ...], dict[str, list[Fraction]]] = defaultdict(lambda: defaultdict(list))
    for row in rows_of(folder / "classes.csv"):
        if row["basic"] == "False":
            found = Fraction(int(row["lr_solutions"]), int(row["cra_solutions"]))
            ratios[row["data"], row["attributes"], row["k"]][row["sample"]].append(found)
    table = rows_of(folder / "tables" / "table-2.csv")
    assert len(table) == len(CONFIGURATIONS) * len(SMALL.ks)
    for row in table:
        samples = ratios[row["data"], row["attributes"], row["k"]].values()
        means = [sum(sample, Fraction(0)) / len(sample) for sample in samples]
        if means:
            assert float(row["ratio_mean_compound"]) == pytest.approx(float(sum(means, Fraction(0)) / len(means)))


def test_every_table_is_there_as_csv_markdown_and_picture(folder: Path) -> None:
    names = ["table-2", "table-3", "table-4", "table-5", "figure-5", "figure-6"]
    for name in names:
        assert (folder / "tables" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (folder / "tables" / f"{name}.svg").read_text().startswith("<svg")
    for name in ("table-1", "table-2", "table-3", "table-4", "table-5", "figures-5-and-6", "claims"):
        assert (folder / "tables" / f"{name}.csv").exists()
        assert (folder / "tables" / f"{name}.md").read_text().startswith("## ")
    for name in ("table-6", "table-7"):
        assert (folder / "run-times" / f"{name}.csv").exists()
        assert (folder / "run-times" / f"{name}.svg").exists()


class Page(HTMLParser):
    """The ids, links and tags of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        found = dict(attrs)
        self.links += [value for name in ("href", "src") if (value := found.get(name))]
        self.ids += [value for name in ("id",) if (value := found.get(name))]


@pytest.mark.parametrize("name", [PAGE, TIMES])
def test_the_page_stands_alone_and_its_links_lead_somewhere(folder: Path, name: str) -> None:
    text = (folder / name).read_text()
    page = Page(text)
    assert "script" not in page.tags
    assert "http://" not in text.replace("http://www.w3.org/", "")
    assert "https://" not in text
    assert len(page.ids) == len(set(page.ids))
    for link in page.links:
        if link.startswith("#"):
            assert link[1:] in page.ids
        else:
            assert (folder / link).exists(), link


def test_a_reader_sees_at_once_what_is_synthetic(folder: Path) -> None:
    text = (folder / PAGE).read_text()
    start = text[text.index("<h1>") : text.index("<nav")]
    assert start.count('<span class="badge">synthetic</span>') == 2
    assert "nobody in them ever lived" in text


def test_the_page_has_every_claim_with_a_verdict(folder: Path, results: Results) -> None:
    found = verdicts.verdicts(results) + verdicts.time_verdicts(results)
    assert {each.claim.id for each in found} == {claim.id for claim in CLAIMS}
    text = (folder / PAGE).read_text() + (folder / TIMES).read_text()
    for each in found:
        assert each.figure
        assert each.claim.claim.replace("'", "&#39;") in text


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [([1, 2, 3], True), ([3, 2, 1], False), ([1, 5, 2, 6], True), ([2, 2, 2], False), ([None, 1], None), ([], None)],
)
def test_a_series_rises_if_its_ranks_do(numbers: list[float | None], expected: bool | None) -> None:
    assert verdicts.rises(numbers) is expected


def attacked(lr: int, cra: int, *, basic: bool = False) -> Attacked:
    return Attacked(3, basic, 4, 4, str(lr), str(cra), str(cra), 1, 1)


def with_ratios(value: Callable[[Trial], int]) -> Results:
    """Results in which every release has one cell, and one compound class of a given ratio."""
    outcomes = {
        trial: Outcome(trial, 6, (attacked(9, 9, basic=True), attacked(value(trial) * 7, 7)), None, sound=True)
        for trial in SMALL.trials
    }
    return Results(SMALL, outcomes, {trial: Timings((), None) for trial in SMALL.trials})


def test_a_claim_is_judged_by_the_numbers() -> None:
    def answer(value: Callable[[Trial], int], claim: str) -> str:
        return next(each.answer for each in verdicts.verdicts(with_ratios(value)) if each.claim.id == claim)

    assert answer(lambda trial: trial.k, "class-ratio-grows-with-k") == "holds"
    assert answer(lambda trial: 10 - trial.k, "class-ratio-grows-with-k") == "does not hold"
    mixed = answer(lambda trial: trial.k if trial.configuration else 10 - trial.k, "class-ratio-grows-with-k")
    assert mixed == "mixed"
    assert answer(lambda trial: trial.configuration + 1, "class-ratio-grows-with-attributes") == "holds"
    assert answer(lambda trial: trial.k, "outlier-ratio-grows-with-k") == "cannot be told"


def test_means_are_taken_within_samples_first_and_medians_over_all() -> None:
    found = averaged([[Fraction(1), Fraction(3)], [Fraction(10)], []])
    assert (found.mean, found.median) == (Decimal(6), Decimal(3))
    assert averaged([[], []]).mean is None
    huge = averaged([[Fraction(10**5000)]]).mean
    assert huge is not None
    assert huge.adjusted() == 5000


def test_all_classes_and_compound_ones_are_told_apart() -> None:
    (point, *_) = with_ratios(lambda trial: 5).points
    assert point.over_classes(ratio).mean == Decimal(3)
    assert point.over_classes(ratio, compound=True).mean == Decimal(5)
    assert point.basic_share == 0.5
    assert point.singled_out() == (0.0, 1.0, 0.0)
    assert distance([(Decimal(1), 100.0), (Decimal(1), 0.01)]) == pytest.approx(2)


def test_tables_say_over_which_classes_the_paper_s_means_fit(results: Results) -> None:
    classes, _, singled_out, assignments, _ = all_tables(results)
    for sheet in (classes, singled_out, assignments):
        assert any("fit better" in note for note in sheet.notes)


def test_a_sheet_is_written_with_all_digits_for_programs_and_few_for_people() -> None:
    sheet = Sheet(
        "s", "S", "", (Column("a", "A"), Column("b", "B", "number")), (("x", Decimal("1.5E+40")), ("y", None))
    )
    assert sheet.to_csv() == "a,b\nx,1.5E+40\ny,\n"
    assert "| x | 1.5·10⁴⁰ |\n| y | – |" in sheet.to_markdown()
    assert show(9.97e9, "number") == "1.0·10¹⁰"


def own_clinic(path: Path, weight: str = "212.5") -> Path:
    rows = load("clinic-like").to_pylist()
    lines = [f"{row['patient_ID']};{row['Wt']};{row['BP_Systolic']}" for row in rows]
    lines[6] = f"{rows[6]['patient_ID']};{weight};{rows[6]['BP_Systolic']}"
    path.write_text("patient_ID;Wt;BP_Systolic\n" + "\n".join(lines) + "\n")
    return path


def test_a_file_of_the_user_s_widens_the_domain_and_is_not_called_synthetic(tmp_path: Path) -> None:
    original, source = Source.of("clinic", str(own_clinic(tmp_path / "own.csv")))
    assert original == "clinic"
    assert source.described.attribute("Wt").high == 220
    assert not source.synthetic
    protocol = replace(SMALL, sources=dict(DEFAULTS) | {original: source}, ks=(4,), samples=1)
    found = run_all(protocol, Logbook(tmp_path / "runs"))
    assert found.sound
    assert protocol.to_dict()["data"]["clinic"] == source.sha256
    write(found, tmp_path / "out")
    assert "212.5" not in (tmp_path / "out" / PAGE).read_text()


def test_a_bad_file_of_the_user_s_is_told_by_column_and_row_and_not_by_value(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"own\.csv: column 'Wt': row 7: not a number \(1 such rows?\)") as error:
        Source.of("clinic", str(own_clinic(tmp_path / "own.csv", "SECRET")))
    assert "SECRET" not in str(error.value)
    (tmp_path / "other.csv").write_text("a;b\n1;2\n")
    with pytest.raises(TableError, match="lacks the columns hosp_id, APICC, GAPICC, WI_X"):
        Source.of("hcup", str(tmp_path / "other.csv"))


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("nhanes", "x.csv", "the paper's data sets are hcup and clinic"),
        ("hcup", "nothing.csv", "neither a file nor a data set of ours"),
        ("hcup", "nafld", "nafld stands for clinic"),
    ],
)
def test_data_that_do_not_exist_or_do_not_fit_are_refused(name: str, value: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        Source.of(name, value)


def test_too_large_a_sample_is_refused() -> None:
    with pytest.raises(ConfigError, match="clinic-like: 500 rows, too few for samples of 501"):
        _ = replace(SMALL, sizes={"hcup": 800, "clinic": 501}).rows
    assert data_set("clinic-like").rows == 500


def test_the_command_runs_quickly_and_ends_with_the_path_of_the_page(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "unblur", "paper", "--quick", "--out", "out", "--jobs", "2"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0].endswith("attacked; the truth is always among what remains.")
    assert done.stdout.splitlines()[-1] == "out/evaluation.html"
    first = contents(tmp_path / "out", timed=True)
    subprocess.run([*command[:-1], "1"], cwd=tmp_path, check=True, capture_output=True)
    assert contents(tmp_path / "out", timed=True) == first


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            ["--budget", "5m"],
            "--budget goes with --joint (the time for each release) or --engine cpsat (the time in all)",
        ),
        (["--joint", "--engine", "cpsat"], "run one after the other, with the same --out"),
        (["--data", "hcup"], "NAME=VALUE is meant"),
        (["--sample-size", "clinic=many"], "NAME=NUMBER is meant, as in clinic=500"),
        (["--sample-size", "clinic=9999"], "too few for samples of 9,999"),
        (["--data", "clinic=/nowhere.csv"], "neither a file nor a data set of ours"),
    ],
)
def test_misuse_is_one_line(tmp_path: Path, options: list[str], problem: str) -> None:
    command = [sys.executable, "-m", "unblur", "paper", "--quick", "--out", "out", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert problem in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out" / PAGE).exists()


def test_a_run_that_was_cut_short_is_marked(tmp_path: Path) -> None:
    protocol = replace(SMALL, samples=1, ks=(6,))
    sheet = seconds(run_all(protocol, Logbook(tmp_path), solver_budget=1.0), outliers=False)
    cut = [bool(row[7]) for row in sheet.rows]
    assert any(cut)
    assert [row[5].startswith("≥ ") for row in sheet.shown] == cut
    assert "every count equals the exact engine's" in sheet.notes[0]
