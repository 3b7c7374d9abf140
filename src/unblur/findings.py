"""Findings as rows: one form feeds JSON, data frames and whatever shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, overload

from unblur.counting.numbers import Count
from unblur.risk import Finding

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


@dataclass(frozen=True, repr=False)
class Findings(Sequence[Finding]):
    """The findings of all classes, in the order of the attack."""

    all: tuple[Finding, ...]

    @overload
    def __getitem__(self, index: int) -> Finding: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Finding, ...]: ...
    def __getitem__(self, index: int | slice) -> Finding | tuple[Finding, ...]:
        return self.all[index]

    def __len__(self) -> int:
        return len(self.all)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.all)

    def __repr__(self) -> str:
        return f"<findings of {len(self.all):,} classes>"

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a dictionary per class, as in the JSON of an audit."""
        return [to_row(each) for each in self.all]

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table; counts are texts, since no column type holds them."""
        import pyarrow as pa

        return pa.Table.from_pylist(self.to_rows(), schema=_schema())

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas data frame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """Return a polars data frame."""
        import polars as pl

        return pl.DataFrame(self.to_arrow())


def to_row(finding: Finding) -> dict[str, Any]:
    """Describe a finding by plain numbers and texts."""
    left, truth = finding.refinement, finding.truth
    return {
        "id": finding.number,
        "labels": list(finding.labels),
        "state": list(finding.subject.state),
        "size": finding.subject.size,
        "basic": finding.basic,
        "cells": _plain(finding.cells),
        "free_cells": _plain(left.free_cells) if left else None,
        "taken_by": list(finding.taken_by),
        "counted": left.counted if left else "not_done",
        "lr_solutions": finding.published.text,
        "cra_solutions": left.plausible.text if left else None,
        "combinations": left.combinations.text if left else None,
        "lr_log10": _log10(finding.published),
        "cra_log10": _log10(left.plausible) if left else None,
        "combinations_log10": _log10(left.combinations) if left else None,
        "ratio": finite(finding.ratio),
        "bits": finding.bits,
        "certain_records": None if left is None else 0 if finding.basic else left.certain_records,
        "singling_out_probability": float(left.singling_out) if left and left.singling_out is not None else None,
        "truth_feasible": truth.feasible if truth else None,
        "singled_out": truth.singles if truth else None,
        "singled_out_in_table": truth.singles_in_table if truth else None,
    }


def finite(number: float | None) -> float | None:
    """Return a number, or None for an infinite one: JSON has no other way to say it."""
    return None if number is None or number == inf else number


def _plain(number: int | None) -> int | None:
    """Return a whole number that every reader of JSON keeps exactly, or None."""
    return None if number is None or number > 2**53 else number


def _log10(count: Count) -> float | None:
    return count.log10 if count else None


def _schema() -> pa.Schema:
    import pyarrow as pa

    whole, real, text, truth = pa.int64(), pa.float64(), pa.string(), pa.bool_()
    return pa.schema(
        {
            "id": whole,
            "labels": pa.list_(text),
            "state": pa.list_(whole),
            "size": whole,
            "basic": truth,
            "cells": whole,
            "free_cells": whole,
            "taken_by": pa.list_(whole),
            "counted": text,
            "lr_solutions": text,
            "cra_solutions": text,
            "combinations": text,
            "lr_log10": real,
            "cra_log10": real,
            "combinations_log10": real,
            "ratio": real,
            "bits": real,
            "certain_records": whole,
            "singling_out_probability": real,
            "truth_feasible": truth,
            "singled_out": whole,
            "singled_out_in_table": whole,
        }
    )
