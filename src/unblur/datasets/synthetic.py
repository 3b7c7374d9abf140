"""Synthetic hospitals and patients: nobody in these tables ever lived, and no hospital in them ever stood.

What is taken from real tables is a handful of rounded figures (shares, medians, spreads), so that records crowd the
cells about as real ones do. Rows come in batches of fixed length, each with a random generator of its own that is
seeded by the number of the batch: however many rows are asked for, the first n are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from unblur.datasets.catalogue import data_set
from unblur.errors import ConfigError
from unblur.hierarchy import Ranks

if TYPE_CHECKING:
    import pyarrow as pa

Floats = NDArray[np.float64]

SEED = 1
"""The first; nothing was looked for among seeds.

Under nine seeds in ten, the share of single-cell classes among patients (three attributes) is 71% to 80% at k = 3 and
43% to 54% at k = 8, and its fall among hospitals (two attributes) -3 to 12 points.
"""
BATCH = 2**18
"""About how many rows a batch has."""


def make(name: str, rows: int | None = None, *, seed: int = SEED) -> Iterator[pa.Table]:
    """Make the rows of a synthetic data set, in tables of at most `BATCH` rows."""
    import pyarrow as pa

    if name not in MAKERS:
        raise ConfigError(f"there is no synthetic data set {name!r}; known are: {', '.join(MAKERS)}")
    total = data_set(name).rows if rows is None else rows
    if total < 1:
        raise ConfigError(f"rows must be a whole number of 1 or more, not {total}")
    maker = MAKERS[name](seed)
    for number, start in enumerate(range(0, total, maker.batch)):
        # The whole batch is drawn even if few rows are wanted: that is what keeps the first rows the same.
        drawn = maker.draw(np.random.default_rng([seed, 1, number]))
        yield pa.table(dict(drawn)).slice(0, total - start)


class Maker(Protocol):
    """How the rows of one data set are drawn."""

    batch: int

    def draw(self, rng: np.random.Generator) -> Mapping[str, NDArray[np.generic]]:
        """Draw the columns of one batch."""
        ...


STATES = 54
NUMBERS = 4500
"""About how many hospital numbers there are: a number comes again only after all of them."""
KINDS = np.array([(0.38, -0.72), (0.10, -1.55), (0.08, -2.05), (0.44, -1.38)])
"""Share and mean logarithm of the cost-to-charge ratio: small rural hospitals, then three kinds of larger ones."""
RURAL = 0
FIRST_RURAL = 1300
"""US hospital numbers of small rural hospitals start here within each state, those of others at 1."""


class Hospitals:
    """An invented country: a register of hospital numbers, each with a state, a kind and a wage region.

    Numbers begin with the state's, so they cluster. The group of a hospital is its state and kind: GAPICC is one figure
    per group, and APICC scatters around it. WI_X is one figure per wage region.
    """

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng([seed, 0])
        size = rng.lognormal(0, 0.65, STATES)
        state = np.repeat(np.arange(STATES), np.maximum(4, np.rint(NUMBERS * size / size.sum())).astype(np.int64))
        kind = _kinds(rng, state)
        level = rng.normal(0, 0.19, STATES)
        means = (level[:, None] + KINDS[:, 1]).ravel()
        groups = _kept(lambda at: np.exp(means[at] + rng.normal(0, 0.16, len(at))), len(means), 0.085, 0.95)
        self._numbers = _numbers(state, kind == RURAL)
        self._group = _rounded(groups, 4).reshape(STATES, -1)[state, kind]
        self._wage = _rounded(_wages(rng, state, kind, level), 4)
        self.batch = BATCH // len(state) * len(state)

    def draw(self, rng: np.random.Generator) -> Mapping[str, NDArray[np.generic]]:
        chosen = _shuffled(rng, len(self._numbers), self.batch)
        group = self._group[chosen]
        # Student's t: some hospitals lie far from their group.
        ratio = _kept(lambda at: group[at] * np.exp(0.27 * rng.standard_t(4, len(at))), self.batch, 0.055, 1.5)
        return {
            "hosp_id": self._numbers[chosen],
            "APICC": _rounded(ratio, 4),
            "GAPICC": group,
            "WI_X": self._wage[chosen],
        }


def _kinds(rng: np.random.Generator, state: Ranks) -> Ranks:
    """Draw the kind of each hospital; how rural a state is differs."""
    rural = np.clip(rng.normal(KINDS[RURAL, 0], 0.18, STATES), 0.03, 0.85)
    others = KINDS[1:, 0] / KINDS[1:, 0].sum()
    larger = rng.choice(np.arange(1, len(KINDS)), len(state), p=others)
    return np.where(rng.random(len(state)) < rural[state], RURAL, larger)


def _numbers(state: Ranks, rural: NDArray[np.bool_]) -> Ranks:
    """Number the hospitals of each state from 1, small rural ones from 1300."""
    numbers = np.empty(len(state), dtype=np.int64)
    for first, chosen in ((1, ~rural), (FIRST_RURAL, rural)):
        among = state[chosen]  # in rising order, so a place less that of the state's first is a serial number
        serial = np.arange(len(among)) - np.searchsorted(among, among)
        numbers[chosen] = (among + 1) * 10_000 + first + serial
    return numbers


def _wages(rng: np.random.Generator, state: Ranks, kind: Ranks, level: Floats) -> Floats:
    """Draw the wage index of each hospital's region: the first of a state is its countryside, and the cheapest."""
    per_state = 8
    local = rng.exponential(0.06, (STATES, per_state)) + rng.normal(0, 0.04, (STATES, per_state))
    local[:, 0] = 0
    of_state = -0.18 + rng.exponential(0.1, STATES) + rng.normal(0, 0.05, STATES) + 0.3 * level
    index = np.clip(np.exp(of_state[:, None] + local), 0.55, 1.95)
    countryside = (kind == RURAL) & (rng.random(len(state)) < 0.7)
    region = np.where(countryside, 0, rng.integers(0, per_state, len(state)))
    return np.asarray(index[state, region])


FILES = 17_600
"""How many patient numbers there are, from 1; one comes again only after all of them."""


class Patients:
    """Invented adults: weight is skewed, systolic pressure has long tails, and neither tells much about the other."""

    def __init__(self, seed: int) -> None:
        self.batch = BATCH // FILES * FILES

    def draw(self, rng: np.random.Generator) -> Mapping[str, NDArray[np.generic]]:
        weight = _kept(lambda at: rng.lognormal(4.44, 0.26, len(at)), self.batch, 40, 159.9)
        pressure = _kept(lambda at: 130.5 + 16.5 * rng.standard_t(4, len(at)), self.batch, 80, 199)
        return {
            "patient_ID": 1 + _shuffled(rng, FILES, self.batch),
            "Wt": _rounded(weight, 1),
            "BP_Systolic": np.rint(pressure).astype(np.int64),
        }


def _shuffled(rng: np.random.Generator, size: int, rows: int) -> Ranks:
    """Go through 0 to size - 1 again and again, each time in a new order."""
    return rng.permuted(np.tile(np.arange(size), (rows // size, 1)), axis=1).ravel()


def _kept(draw: Callable[[Ranks], Floats], size: int, low: float, high: float) -> Floats:
    """Draw numbers, and draw those again that fall outside the bounds."""
    values = draw(np.arange(size))
    while len(outside := np.flatnonzero((values < low) | (values > high))):
        values[outside] = draw(outside)
    return values


def _rounded(values: Floats, places: int) -> Floats:
    """Round so that each number is the one nearest to its decimal notation."""
    return np.asarray(np.rint(values * 10**places) / 10**places)


MAKERS: Mapping[str, Callable[[int], Maker]] = {"hcup-like": Hospitals, "clinic-like": Patients}
