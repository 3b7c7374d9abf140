"""`unblur data make`: synthetic tables of any size."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from pathlib import Path

from unblur.cli.progress import progress_bar
from unblur.datasets.writing import write_data_set
from unblur.errors import ConfigError
from unblur.words import count

MOST_ROWS = 10**11


def run(name: str, *, out: Path, rows: str | None, seed: int) -> None:
    """Make the table and say where it is."""
    number = None if rows is None else parse_rows(rows)
    with progress_bar("making records", time_left=True) as show:
        made, config = write_data_set(
            name, out, rows=number, seed=seed, progress=lambda done, of: show(completed=done, total=of)
        )
    print(f"{count(made, 'row')} of synthetic data: nobody in them ever lived")
    print(f"table:  {out}")
    print(f"config: {config}")


def parse_rows(text: str) -> int:
    """Read a number of rows.

    >>> parse_rows("1e8"), parse_rows("1_000")
    (100000000, 1000)
    """
    try:
        number = Decimal(text)
        if number == number.to_integral_value() and 1 <= number <= MOST_ROWS:
            return int(number)
    except InvalidOperation:
        pass
    raise ConfigError(f"--rows {text}: a whole number from 1 to {MOST_ROWS:.0e} is meant, as in 500 or 1e8")
