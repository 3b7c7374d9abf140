"""The settings of a local recoding in ARX, and what they require of an iteration, in ARX's floating-point numbers."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unblur.config import Mechanism
from unblur.errors import ConfigError

Floats = NDArray[np.float64]
MANY = 2_000_000
"""Up to so many records, the requirement is computed for each number that may be left."""


@dataclass(frozen=True)
class ArxSettings:
    """The settings of a local recoding in ARX; its GUI calls `1 / records_per_iteration` the number of iterations.

    >>> ArxSettings(k=5).first_limit, ArxSettings(k=5, records_per_iteration=0.25).first_limit
    (0.99, 0.75)
    """

    k: int
    records_per_iteration: float = 0.01
    """The share of all records that every iteration has to release."""
    suppression_limit: float | None = None
    """The share of all records that the first run may suppress; by default what `records_per_iteration` leaves."""
    gs_factor: float = 0.0
    """What suppression weighs against generalization: nothing at 0 (the GUI's choice), as much at 0.5."""

    def __post_init__(self) -> None:
        if not 0 < self.records_per_iteration <= 1:
            raise ConfigError(f"records_per_iteration must be above 0 and at most 1, not {self.records_per_iteration}")
        if not 0 <= self.first_limit <= 1:
            raise ConfigError(f"suppression_limit must be a share from 0 to 1, not {self.suppression_limit}")
        if not 0 <= self.gs_factor <= 1:
            raise ConfigError(f"gs_factor must be a number from 0 to 1, not {self.gs_factor}")

    @classmethod
    def of(cls, mechanism: Mechanism, k: int) -> ArxSettings:
        """Read the settings of a mechanism: a share of records per iteration, or the GUI's number of iterations."""
        given: Any = mechanism.settings
        if ("records_per_iteration" in given) == ("iterations" in given):
            raise ConfigError("mechanism arx needs records_per_iteration or iterations (the GUI's default is 100)")
        if "iterations" in given and int(given["iterations"]) < 1:
            raise ConfigError("mechanism arx: iterations must be a whole number of 1 or more")
        share = 1 / int(given["iterations"]) if "iterations" in given else float(given["records_per_iteration"])
        limit = float(given["suppression_limit"]) if "suppression_limit" in given else None
        return cls(k, share, limit, float(given.get("gs_factor", 0)))

    @property
    def first_limit(self) -> float:
        """The suppression limit of the first run."""
        return 1.0 - self.records_per_iteration if self.suppression_limit is None else self.suppression_limit

    def later_limit(self, records: int, left: int) -> float:
        """The suppression limit of an iteration on the records left of all."""
        return 1.0 - min(1.0, self.records_per_iteration * records / left)

    def first_required(self, records: int) -> int:
        """How many records the first run must release."""
        return records - floor(self.first_limit * records)

    def required(self, records: int, left: Floats) -> Floats:
        """How many records an iteration must release, for each number of records that may be left."""
        limits = 1.0 - np.minimum(1.0, self.records_per_iteration * records / left)
        return left - np.floor(limits * left)

    def most_required(self, records: int, least: int, most: int) -> int:
        """The most that an iteration may have had to release, when between `least` and `most` records were left."""
        if most > MANY:
            return ceil(self.records_per_iteration * records) + 1
        return int(self.required(records, np.arange(max(1, least), max(1, most) + 1.0)).max(initial=0))

    def least_required(self, records: int) -> int:
        """The fewest that an iteration must release while more are left."""
        share = floor(self.records_per_iteration * records)
        if records > MANY:
            return share
        return int(self.required(records, np.arange(share + 1.0, records + 1.0)).min(initial=records))
