"""`unblur sample`: tables on disk that, anonymized again, give the published release."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import unblur
from tests.test_arx_golden import GOLDEN, config_of
from unblur.attacks import attack
from unblur.cli import app
from unblur.cli.sample import describe
from unblur.config import Mechanism
from unblur.errors import ConfigError, OutputError
from unblur.sampling import Rows, Samples, draw_samples, gives_again

CONFIG = """
k = 3
mechanism = "paper"

[[quasi_identifiers]]
name = "age"
interval = { low = 0, high = 16, step = 1, layers = 3 }

[[quasi_identifiers]]
name = "weight"
interval = { low = 0, high = 16, step = 1, layers = 3 }
"""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments])


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A release of records that lie close to each other, from attributes that tie."""
    (tmp_path / "config.toml").write_text(CONFIG)
    rows = [f"{7 * n % 16};{5 * n * n % 16}" for n in range(26)]
    (tmp_path / "table.csv").write_text("age;weight\n" + "\n".join(rows) + "\n")
    path = tmp_path / "release.csv"
    assert run("anonymize", tmp_path / "table.csv", "--config", tmp_path / "config.toml", "--out", path).exit_code == 0
    return path


def published(path: Path) -> Counter[str]:
    return Counter(path.read_text().splitlines()[1:])


def test_every_table_gives_the_release_again(release: Path, tmp_path: Path) -> None:
    config, out = release.with_suffix(".toml"), tmp_path / "plausible"
    result = run("sample", release, "--config", config, "-n", 6, "--out", out)
    assert result.exit_code == 0, result.output
    assert "6 tables that, anonymized again, give this very release" in result.stdout
    tables = sorted(out.iterdir())
    assert [path.name for path in tables] == [f"plausible-{n}.csv" for n in range(1, 7)]
    assert {path.stat().st_mode & 0o777 for path in tables} == {0o600}
    assert len({tuple(sorted(path.read_text().splitlines())) for path in tables}) > 3
    for path in tables:
        again = tmp_path / "again.csv"
        assert run("anonymize", path, "--config", tmp_path / "config.toml", "--out", again).exit_code == 0
        assert published(again) == published(release)


def test_the_same_seed_draws_the_same_tables(release: Path, tmp_path: Path) -> None:
    def tables(seed: int, name: str) -> list[str]:
        folder = tmp_path / name
        run("sample", release, "--config", release.with_suffix(".toml"), "-n", 2, "--seed", seed, "--out", folder)
        return [path.read_text() for path in sorted(folder.iterdir())]

    assert tables(1, "a") == tables(1, "b") != tables(2, "c")


def test_tables_of_an_arx_run_give_what_arx_gives(tmp_path: Path) -> None:
    case = "g02_matched"
    release = unblur.read_release(GOLDEN / case / "output.csv", config_of(case))
    assert release.config.mechanism
    samples = draw_samples(attack(release, scope="joint"), release.config.mechanism, 3)
    assert samples.checked and len(samples.tables) == 3
    rows = samples.tables[0]
    assert gives_again(release, rows, release.config.mechanism)
    assert not gives_again(release, [rows[0]] * len(rows), release.config.mechanism)


def test_a_mechanism_that_cannot_be_run_says_so(release: Path, tmp_path: Path) -> None:
    config = release.with_suffix(".toml")
    result = run("sample", release, "--config", config, "--mechanism", "greedy", "-n", 1, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "1 table that fits this release as far as it is known" in result.stdout
    assert "note: not every one need give this very release" in result.stdout


@pytest.mark.parametrize(
    ("number", "checked", "said"),
    [
        (1, True, "1 table that, anonymized again, gives this very release, as likely as any other"),
        (2, True, "2 tables that, anonymized again, give this very release, each as likely as any other"),
        (1, False, "1 table that fits this release as far as it is known, as likely as any other"),
        (2, False, "2 tables that fit this release as far as it is known, each as likely as any other"),
    ],
)
def test_one_table_is_spoken_of_as_one(number: int, checked: bool, said: str) -> None:
    table: Rows = [("1",)]
    assert describe(Samples((table,) * number, number, checked)) == said


def test_tables_of_two_runs_are_not_mixed(release: Path, tmp_path: Path) -> None:
    out, arguments = tmp_path / "out", ("sample", release, "--config", release.with_suffix(".toml"), "--out")
    out.mkdir()
    (out / "notes.csv").write_text("mine")
    assert run(*arguments, out, "-n", 3).exit_code == 0, "other files do no harm"
    before = {path.name: path.read_text() for path in out.iterdir()}
    for number in (2, 10):
        result = run(*arguments, out, "-n", number)
        assert isinstance(result.exception, OutputError)
        assert str(result.exception).startswith(
            f"{out}: it has tables of an earlier run (plausible-*.csv); name another"
        )
        assert {path.name: path.read_text() for path in out.iterdir()} == before


@pytest.mark.parametrize("number", [0, 10**6])
def test_how_many_can_be_drawn(release: Path, number: int) -> None:
    opened = unblur.read_release(release, release.with_suffix(".toml"))
    with pytest.raises(ConfigError, match=f"from 1 to 100,000 tables can be drawn, not {number:,}"):
        draw_samples(attack(opened, scope="joint"), Mechanism("paper"), number)


def test_a_release_that_no_table_gives(release: Path, tmp_path: Path) -> None:
    """Two classes of k at halves of a label that would have been one at the finer layer."""
    lines = release.read_text().splitlines()
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("\n".join([lines[0], *["[0, 8[;[0, 8["] * 9]) + "\n")
    config = tmp_path / "wrong.toml"
    config.write_text(CONFIG)
    result = run("sample", wrong, "--config", config, "-n", 1, "--out", tmp_path / "out")
    assert result.exit_code == 3 and "No table could have produced this release" in result.stdout
