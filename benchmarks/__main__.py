"""Run benchmarks and print their results in Markdown."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks import audits, clusters, engines, growth, joint, others, rows, states, wide
from benchmarks.reporting import machine

BENCHMARKS: dict[str, Callable[..., str]] = {
    "rows": rows.run,
    "states": states.run,
    "growth": growth.run,
    "engines": engines.run,
    "audits": audits.run,
    "others": others.run,
    "wide": wide.run,
    "clusters": clusters.run,
    "joint": joint.run,
}


def main() -> None:
    """Run the benchmarks named on the command line, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; all if none is given")
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run at all?")
    parser.add_argument("--long", action="store_true", help="rows: a hundred million, too (minutes, 6 GB of disk)")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="keep the tables made here, and use those there are"
    )
    choices = parser.parse_args()
    names = choices.names or list(BENCHMARKS)
    if unknown := [name for name in names if name not in BENCHMARKS]:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are: {', '.join(BENCHMARKS)}")
    print(machine(), flush=True)
    if choices.keep:
        choices.keep.mkdir(parents=True, exist_ok=True)
        run_all(names, choices.keep, quick=choices.quick, long=choices.long)
    else:
        with tempfile.TemporaryDirectory(prefix="unblur-bench-") as folder:
            run_all(names, Path(folder), quick=choices.quick, long=choices.long)


def run_all(names: list[str], folder: Path, *, quick: bool, long: bool = False) -> None:
    """Print a section for each benchmark."""
    for name in names:
        options = {"quick": quick} | ({"long": True} if long and name == "rows" else {})
        print(f"\n## {name}\n\n{BENCHMARKS[name](folder, **options)}", flush=True)


if __name__ == "__main__":
    main()
