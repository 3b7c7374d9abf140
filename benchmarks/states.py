"""The recoding alone, against the paper's Algorithms 1 and 2 word for word."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np

from benchmarks.ledger import is_faster
from benchmarks.measuring import at_most, seconds
from benchmarks.reporting import count_text, table, time_text, verdict
from tests.literal import LiteralRecoder
from tests.strategies import histogram_of
from unblur.hierarchy import Ranks, halves
from unblur.lattice import Lattice
from unblur.recoding import local_recoding

K = 5
SEED = 1
ARX_SECONDS = 55
"""ARX, JDK 17, 2 cores, same shape of data (10,000 rows, 6 attributes x 4 layers): measured elsewhere."""


@dataclass(frozen=True)
class Case:
    """Bell-shaped records over attributes of one height."""

    records: int
    attributes: int
    layers: int
    alike: bool = False
    """Whether the attributes have one and the same domain, so that states tie in every permutation."""

    @property
    def name(self) -> str:
        return f"{self.attributes} x {self.layers}" + (", equal domains" if self.alike else "")

    @property
    def lattice(self) -> Lattice:
        leaves = 2 ** (self.layers - 1)
        sizes = [leaves * (1000 + (0 if self.alike else 37 * i)) for i in range(self.attributes)]
        return Lattice(
            [halves(Decimal(0), Decimal(size), layers=self.layers) for size in sizes], (1,) * self.attributes
        )

    def draw(self) -> Ranks:
        """Draw the raw values: a row per record, a column per attribute."""
        shares = np.random.default_rng(SEED).normal(0.5, 0.15, (self.records, self.attributes))
        sizes = np.array([tree.values for tree in self.lattice.hierarchies])
        values: Ranks = np.clip((shares * sizes).astype(np.int64), 0, sizes - 1)
        return values


def time_recoding(case: Case, *, repeats: int = 3) -> float:
    """Time the recoding of a histogram that is already there."""
    lattice = case.lattice
    histogram = histogram_of(lattice, [tuple(record) for record in case.draw().tolist()])
    return seconds(lambda: local_recoding(histogram, lattice, k=K), repeats=repeats)


def time_literal(case: Case) -> float:
    """Time the paper's algorithms on the same records, once."""
    lattice = case.lattice
    records = [tuple(record) for record in case.draw().tolist()]
    return seconds(lambda: LiteralRecoder(lattice, K).recode(records), repeats=1)


def run(folder: Path, *, quick: bool) -> str:
    """Measure, and describe the results."""
    small = Case(100, 2, 3) if quick else Case(300, 3, 3)
    bars = (
        {Case(1000, 4, 3): 1.0}
        if quick
        else {
            Case(10_000, 6, 4): 1.0,
            Case(10_000, 6, 4, alike=True): 1.0,
            Case(100_000, 8, 4): 60.0,
            Case(100_000, 8, 4, alike=True): 60.0,
        }
    )
    return f"{_against_literal(small)}\n\n{_against_bars(bars)}"


def _against_literal(case: Case) -> str:
    ours, literal = time_recoding(case), time_literal(case)
    is_faster(f"recode {case.records:,} records, {case.lattice.size:,} states", "Algorithms 1 and 2", literal / ours)
    header = ["attributes x layers", "records", "states", "one pass", "Algorithms 1 and 2", "times as fast"]
    row = [*_shape(case), time_text(ours), time_text(literal), f"{literal / ours:,.0f}"]
    return table(header, [row])


def _against_bars(bars: dict[Case, float]) -> str:
    header = ["attributes x layers", "records", "states", "one pass", "bar", ""]
    return table(header, [[*_shape(case), *_judged(case, bar)] for case, bar in bars.items()])


def _judged(case: Case, bar: float) -> list[str]:
    """Time a case, but give up at a minute or at the bar, whichever is later."""
    try:
        with at_most(max(60, bar)):
            took = time_recoding(case, repeats=3 if bar <= 1 else 1)
    except TimeoutError:
        return ["not finished", f"{bar:.0f} s", "MISSED"]
    return [time_text(took), f"{bar:.0f} s", verdict(took, bar)]


def _shape(case: Case) -> list[str]:
    return [case.name, count_text(case.records), count_text(case.lattice.size)]
