"""Run benchmarks, print their results in Markdown, and write them to a file with all ratios in one table."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import audits, clusters, engines, growth, joint, others, rows, states, wide
from benchmarks.ledger import summary
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
    parser.add_argument("--out", type=Path, default=Path("bench-output.md"), metavar="FILE", help="where to write them")
    choices = parser.parse_args()
    names = choices.names or list(BENCHMARKS)
    if unknown := [name for name in names if name not in BENCHMARKS]:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are: {', '.join(BENCHMARKS)}")
    sections = [machine()]
    print(sections[0], flush=True)
    with tempfile.TemporaryDirectory(prefix="unblur-bench-") as temporary:
        folder = choices.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for section in run_all(names, folder, quick=choices.quick, long=choices.long):
            print(f"\n{section}", flush=True)
            sections.append(section)
            choices.out.write_text("\n\n".join([*sections, f"## All ratios\n\n{summary()}"]) + "\n")
    print(f"\n## All ratios\n\n{summary()}\n\n{choices.out}")


def run_all(names: list[str], folder: Path, *, quick: bool, long: bool = False) -> Iterator[str]:
    """Make a section for each benchmark."""
    for name in names:
        options = {"quick": quick} | ({"long": True} if long and name == "rows" else {})
        yield f"## {name}\n\n{BENCHMARKS[name](folder, **options)}"


if __name__ == "__main__":
    main()
