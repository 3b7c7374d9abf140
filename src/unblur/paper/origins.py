"""Where the records of the evaluation come from: data sets of ours, or files of the user's in their place."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from unblur.datasets.catalogue import Attribute, DataSet, Original, data_set
from unblur.datasets.loading import load, read_own
from unblur.errors import ConfigError, TableError
from unblur.hierarchy import Ranks
from unblur.labels import parse_number

if TYPE_CHECKING:
    import pyarrow as pa

SIZES: Mapping[Original, int] = {"hcup": 800, "clinic": 400}
"""Records in a sample. Of the 500 patients the paper draws 400 in one place and 500 in another."""
FARTHEST = Decimal(10**9)
"""Larger numbers in a user's file are slips of the pen."""


@dataclass(frozen=True)
class Source:
    """Where the rows of one of the paper's data sets come from: a data set of ours, or a file of the user's."""

    described: DataSet
    path: Path | None = None
    sha256: str | None = None
    """Of the user's file."""

    @classmethod
    def own(cls, path: Path, described: DataSet) -> Source:
        """Take a file of the user's; the domains become as wide as its values need."""
        table = read_own(path, described)
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        widened = tuple(each.widened(*_extremes(path, table, each.name)) for each in described.attributes)
        return cls(replace(described, attributes=widened, rows=table.num_rows), path, digest)

    @classmethod
    def of(cls, name: str, value: str) -> tuple[Original, Source]:
        """Read NAME=VALUE: hcup or clinic, and a file or the name of a data set of ours."""
        if name not in SIZES:
            raise ConfigError(f"--data {name}={value}: the paper's data sets are {' and '.join(SIZES)}")
        original: Original = "hcup" if name == "hcup" else "clinic"
        try:
            described = data_set(value)
        except ConfigError:
            if not Path(value).exists():
                raise ConfigError(f"--data {name}={value}: neither a file nor a data set of ours") from None
            return original, cls.own(Path(value), DEFAULTS[original].described)
        if described.stands_for != original:
            raise ConfigError(f"--data {name}={value}: {value} stands for {described.stands_for}")
        return original, cls(described)

    @property
    def name(self) -> str:
        """What to call the data on a page."""
        return self.described.name if self.path is None else f"{self.described.stands_for} (your file)"

    @property
    def title(self) -> str:
        """The data in some words."""
        return self.described.title if self.path is None else f"your own file for {self.described.stands_for}"

    @property
    def synthetic(self) -> bool:
        """Whether all records are invented."""
        return self.path is None and self.described.synthetic

    def read(self) -> pa.Table:
        """Read or make the rows."""
        return load(self.described.name) if self.path is None else read_own(self.path, self.described)

    def ranks(self) -> dict[str, Ranks]:
        """Read the rows as ranks: per column, how many steps each value lies above the start of its domain."""
        table = self.read()
        return {each.name: _ranks(table[each.name].to_pylist(), each) for each in self.described.attributes}


def _ranks(values: Sequence[object], attribute: Attribute) -> Ranks:
    numbers = (Decimal(str(value)) for value in values)
    return np.array([int((number - attribute.low) // attribute.step) for number in numbers], dtype=np.int64)


def _extremes(path: Path, table: pa.Table, name: str) -> tuple[Decimal, Decimal]:
    """The least and the largest number of a column, which must all be numbers."""
    numbers = [parse_number(str(value)) if value is not None else None for value in table[name].to_pylist()]
    if None in numbers:
        row, many = numbers.index(None) + 1, numbers.count(None)
        rows = "1 such row" if many == 1 else f"{many:,} such rows"
        raise TableError(f"{path}: column {name!r}: row {row}: not a number ({rows}); remove it")
    known = [number for number in numbers if number is not None]
    if known and max(map(abs, known)) > FARTHEST:
        row = next(n for n, number in enumerate(known, 1) if abs(number) > FARTHEST)
        raise TableError(f"{path}: column {name!r}: row {row}: a number beyond {FARTHEST:.0e}")
    if not known:
        raise TableError(f"{path}: there are no rows, only a header")
    return min(known), max(known)


DEFAULTS: Mapping[Original, Source] = {"hcup": Source(data_set("hcup-like")), "clinic": Source(data_set("clinic-like"))}
