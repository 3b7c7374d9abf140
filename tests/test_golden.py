"""Real outputs of ARX, row for row, in cases in which its settings make it the algorithm of the paper."""

from __future__ import annotations

import csv
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from unblur.anonymizing import anonymize
from unblur.config import Config

GOLDEN = Path(__file__).parent / "golden"
CASES = [
    *(f"g{n:02}_matched" for n in (1, 2, 4, 6, 8, 19, 20)),
    *("g27_materialised", "g31_duplicates", "g34_duplicates", "g37_duplicates"),
    *("g41_fanout", "g43_fanout", "g44_decimal", "g45_decimal_short"),
]


def interval_entry(attribute: dict[str, Any]) -> dict[str, Any]:
    low, high = (Decimal(bound) for bound in attribute["domain"])
    width, leaves = Decimal(attribute["leaf_width"]), attribute["leaf_count"]
    step = 1 if attribute["datatype"] == "Integer" else Decimal("0.001")
    cuts = [low + width * i for i in range(leaves)] + [high]
    return {"interval": {"cuts": cuts, "fanouts": attribute["group_sizes"], "step": step}}


def file_entry(attribute: dict[str, Any]) -> dict[str, Any]:
    return {"hierarchy": attribute["hierarchy_file"], "lengths": True}


@pytest.mark.parametrize("describe", [interval_entry, file_entry])
@pytest.mark.parametrize("case", CASES)
def test_the_release_is_that_of_arx(case: str, describe: Any) -> None:
    folder = GOLDEN / case
    facts = json.loads((folder / "config.json").read_text(), parse_float=Decimal)
    entries = {
        "k": facts["k"],
        "finest_layer": facts["settings"]["minimum_generalization_level"],
        "quasi_identifiers": [{"name": each["name"], **describe(each)} for each in facts["attributes"]],
    }
    config = Config.from_dict(entries, folder=folder)
    release = anonymize(folder / "input.csv", config)
    with (folder / "output.csv").open(newline="") as file:
        expected = list(csv.reader(file, delimiter=";"))[1:]
    roots = [each.hierarchy.labels[-1][0] for each in config.quasi_identifiers]

    def outliers_as_stars(rows: list[list[str]]) -> list[list[str]]:
        return [["*"] * len(roots) if row == roots else row for row in rows]

    published = [list(row.values()) for row in release.to_arrow().to_pylist()]
    assert outliers_as_stars(published) == outliers_as_stars(expected)
