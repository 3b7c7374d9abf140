from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from unblur.config import Config, load_config
from unblur.errors import ConfigError
from unblur.hierarchy import IntervalHierarchy

Write = Callable[[str, str | bytes], Path]

AGE = """
[[quasi_identifiers]]
name = "age"
interval = { low = 0, high = 80, layers = 3 }
"""


def test_a_config_is_read(write: Write) -> None:
    write("sex.csv", "male;*\nfemale;*\n")
    config = Config.read(
        write(
            "c.toml",
            """
            k = 5
            mechanism = { name = "arx", records_per_iteration = 0.01 }
            records = "distinct"
            [[quasi_identifiers]]
            name = "weight"
            interval = { low = 30, high = 190, step = 0.5, layers = 4 }
            [[quasi_identifiers]]
            name = "age"
            interval = { cuts = [0, 18, 40, 65, 120], fanouts = [2, 2], step = 1 }
            [[quasi_identifiers]]
            name = "sex"
            hierarchy = "sex.csv"
            """,
        )
    )
    weight, age, sex = config.quasi_identifiers
    assert isinstance(weight.hierarchy, IntervalHierarchy)
    assert weight.hierarchy.step == Decimal("0.5")
    assert age.hierarchy.label(3, 0) == "[0, 120["
    assert [each.finest_layer for each in config.quasi_identifiers] == [1, 1, 0]
    assert sex.hierarchy.values == 2
    assert config.mechanism is not None
    assert config.mechanism.settings == {"records_per_iteration": Decimal("0.01")}


def test_finest_layer_at_the_top_sets_all_and_inside_sets_one() -> None:
    interval = {"low": 0, "high": 8, "layers": 2}
    config = load_config(
        {
            "k": 2,
            "finest_layer": 0,
            "quasi_identifiers": [
                {"name": "a", "interval": interval},
                {"name": "b", "interval": interval, "finest_layer": 1},
            ],
        }
    )
    assert [each.finest_layer for each in config.quasi_identifiers] == [0, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("k = 3", "at least one"),
        (AGE, "k must be a whole number of 2 or more, but it is missing"),
        ("k = 1" + AGE, "k must be a whole number of 2 or more, not 1"),
        ("k = true" + AGE, "k must be"),
        ("k = 2.5" + AGE, "not 2.5"),
        ("k = 3\nkk = 4" + AGE, "unknown key 'kk'; did you mean 'k'"),
        ("k = 3\nrecords = 'some'" + AGE, 'records must be "any" or "distinct"'),
        ("k = 3\nmechanism = 'magic'" + AGE, "mechanism must be one of paper, arx"),
        ("k = 3\nmechanism = { name = 'greedy', iterations = 3 }" + AGE, "mechanism greedy has an unknown key"),
        ("k = 3\nfinest_layer = 2" + AGE, "finest_layer must be 0"),
        ("k = 3" + AGE + AGE, "'age' is listed twice"),
        ("k = 3\n[[quasi_identifiers]]\nname = ''", "needs a name"),
        ("k = 3\n[[quasi_identifiers]]\nname = 'a'", "either interval or hierarchy"),
        ("k = 3\n[[quasi_identifiers]]\nname = 'a'\ninterval = 5", "interval must be a table"),
        ("k = 3\n[[quasi_identifiers]]\nname = 'a'\ninterval = { low = 0, high = 8 }", "needs layers"),
        (
            "k = 3\n[[quasi_identifiers]]\nname = 'a'\ninterval = { low = 'x', high = 8, layers = 2 }",
            "low must be a num",
        ),
        (
            "k = 3\n[[quasi_identifiers]]\nname = 'a'\ninterval = { low = nan, high = 8, layers = 2 }",
            "low must be a num",
        ),
        ("k = 3\n[[quasi_identifiers]]\nname = 'a'\ninterval = { low = 0, high = 9, layers = 2 }", "multiple of 2"),
        ("k = 3\n[[quasi_identifiers]]\nname = 'a'\ninterval = { cuts = [0, 5], layers = 2 }", "unknown key 'layers'"),
        ("k = 3\n[[quasi_identifiers]]\nname = 'a'\nhierarchy = 'none.csv'", "No such file"),
        ("k = 3" + AGE + "lengths = true", "'age' has an unknown key 'lengths'"),
        ("k = ", "not a TOML file"),
    ],
)
def test_a_wrong_config_is_refused_in_one_line_that_names_the_file(write: Write, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        Config.read(write("c.toml", text))
    assert "c.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_config_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml: No such file"):
        Config.read(tmp_path / "none.toml")


def test_a_config_written_back_is_the_same_config_elsewhere(write: Write, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    write("in/sex.csv", "male;*\nfemale;*\n")
    path = write(
        "in/c.toml", "k = 3\nmechanism = 'paper'" + AGE + "[[quasi_identifiers]]\nname = 's'\nhierarchy = 'sex.csv'\n"
    )
    config = Config.read(path)
    again = Config.read(write("out/release.toml", config.to_toml(tmp_path / "out")))
    assert again.quasi_identifiers[1].source["hierarchy"] == "../in/sex.csv"
    assert [each.hierarchy for each in again.quasi_identifiers] == [each.hierarchy for each in config.quasi_identifiers]
    assert (again.k, again.mechanism, again.records) == (config.k, config.mechanism, config.records)


def test_numbers_of_a_dictionary_are_taken_as_written() -> None:
    config = load_config(
        {"k": 2, "quasi_identifiers": [{"name": "a", "interval": {"low": 0.1, "high": 0.5, "step": 0.1, "layers": 3}}]}
    )
    assert config.quasi_identifiers[0].hierarchy.values == 4
