"""Synthetic tables of any size, streamed to a file; beside it a config that describes them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unblur.config import Config
from unblur.datasets.catalogue import Original, configurations, data_set
from unblur.datasets.synthetic import SEED, make
from unblur.engines import no_space
from unblur.errors import ConfigError, OutputError
from unblur.output import FORMATS, Outputs, check_rows_target

if TYPE_CHECKING:
    import pyarrow as pa

K = 5
"""In the config that is written along."""
MADE = ("hcup", "clinic")


def write_data_set(
    name: str,
    target: Path,
    *,
    rows: int | None = None,
    seed: int = SEED,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> tuple[int, Path]:
    """Make a synthetic table and write it to a CSV or Parquet file; return its rows and the path of its config."""
    if name.removesuffix("-like") not in MADE:
        raise ConfigError(f"{name}: no synthetic table has this name; made are: {', '.join(MADE)}")
    described = data_set(f"{name.removesuffix('-like')}-like")
    total = described.rows if rows is None else rows
    check_rows_target(target, [])
    config = target.with_suffix(".toml")
    with Outputs() as outputs:
        path, done = outputs.temporary(target), 0
        tables = make(described.name, total, seed=seed)
        first = next(tables)
        try:
            with _writer(path, target.suffix.lower(), first.schema) as writer:
                for table in chain([first], tables):
                    writer.write_table(table)
                    done += table.num_rows
                    progress(done, total)
        except OSError as error:
            reason = "no space left" if no_space(error) else error.strerror or "the file cannot be written"
            raise OutputError(f"{target}: {reason}") from error
        outputs.write_text(config, _config(described.stands_for, described.name, seed).to_toml(config.parent))
    return total, config


def _writer(path: Path, ending: str, schema: pa.Schema) -> AbstractContextManager[Any]:
    if FORMATS[ending] == "parquet":
        from pyarrow.parquet import ParquetWriter

        return ParquetWriter(path, schema)  # type: ignore[no-any-return]
    from pyarrow.csv import CSVWriter, WriteOptions

    options = WriteOptions(delimiter="\t" if ending == ".tsv" else ";", quoting_style="needed", quoting_header="none")
    return CSVWriter(path, schema, write_options=options)  # type: ignore[no-any-return]


def _config(original: Original, name: str, seed: int) -> Config:
    """The widest of the paper's configurations."""
    widest = configurations(original)[-1].config(data_set(name), K)
    return replace(widest, records="any", made={"by": f"unblur {version('unblur')}", "synthetic": name, "seed": seed})
