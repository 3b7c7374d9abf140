"""Other Python anonymizers on the same table, each in an environment of its own that is made when it is needed.

ANJANA recodes globally (one level per attribute for all rows), so it stands against our global recoding with the same
share of rows that may be suppressed. anonypy partitions the rows (Mondrian), a local recoding without hierarchies, so
it stands against our local recoding. Everyone reads the same CSV file and writes one; imports are not counted, nor is
what prepares ANJANA's hierarchies.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import unblur
from benchmarks.ledger import is_faster
from benchmarks.measuring import seconds
from benchmarks.patients import CONFIG, make_table
from benchmarks.reporting import count_text, table, time_text

SUPPRESSED = 0.2
"""The share of rows that a global recoding may suppress."""
PATIENCE = 300.0
"""Seconds for each run of another tool."""

ANJANA = """
import json, sys, time
import numpy as np, pandas as pd
from anjana.anonymity import k_anonymity
source, target, k, share, spans = *sys.argv[1:3], int(sys.argv[3]), float(sys.argv[4]), json.loads(sys.argv[5])
start = time.perf_counter()
rows = pd.read_csv(source)
levels, prepared = {}, time.perf_counter()
for name, (low, high) in spans.items():
    values = rows[name].to_numpy()
    levels[name] = {0: values}
    for level, parts in enumerate((8, 4, 2, 1), 1):
        width = (high - low) / parts
        starts = low + np.floor((values - low) / width) * width
        levels[name][level] = np.array([f"[{a}, {a + width}[" for a in starts])
prepared = time.perf_counter() - prepared
k_anonymity(rows, ["id"], list(spans), k, 100 * share, levels).to_csv(target, index=False)
print(time.perf_counter() - start - prepared)
"""

ANONYPY = """
import json, sys, time
import pandas as pd
from anonypy import Preserver
source, target, k, spans = *sys.argv[1:3], int(sys.argv[3]), json.loads(sys.argv[5])
start = time.perf_counter()
rows = pd.read_csv(source)
made = Preserver(rows[[*spans, "note"]], list(spans), "note").anonymize_k_anonymity(k=k)
pd.DataFrame(made).to_csv(target, index=False)
print(time.perf_counter() - start)
"""


@dataclass(frozen=True, slots=True)
class Other:
    """Another tool, and what of ours does the same kind of job."""

    name: str
    packages: tuple[str, ...]
    script: str
    recoding: str
    sizes: tuple[int, ...]


OTHERS = (
    Other("ANJANA 1.2.3", ("anjana==1.2.3",), ANJANA, "global", (1_000, 10_000, 100_000)),
    Other("anonypy 0.2.1", ("anonypy==0.2.1", "pandas==2.3.3"), ANONYPY, "local", (1_000, 5_000)),
)


def run(folder: Path, *, quick: bool) -> str:
    """Measure, and describe the results."""
    rows: list[list[str]] = []
    for other in OTHERS:
        python = _environment(folder, other)
        for size in other.sizes[: 1 if quick else None]:
            source = make_table(folder, size, "csv")
            theirs = _time(python, other, source, folder) if python else "not installed: no registry answers"
            ours = seconds(partial(_ours, source, folder, other.recoding), repeats=3)
            if isinstance(theirs, float):
                is_faster(f"anonymize ({other.recoding} recoding), {size:,} rows, csv", other.name, theirs / ours)
            rows.append(
                [
                    f"{other.name}, {other.recoding} recoding",
                    count_text(size),
                    time_text(theirs) if isinstance(theirs, float) else theirs,
                    time_text(ours),
                    f"{theirs / ours:,.1f}" if isinstance(theirs, float) else "",
                ]
            )
    return table(["tool", "rows", "its time", "unblur", "times as fast"], rows)


def _ours(source: Path, folder: Path, recoding: str) -> None:
    limit = SUPPRESSED if recoding == "global" else 0
    with unblur.anonymize(source, CONFIG, recoding=recoding, suppression_limit=limit) as release:  # type: ignore[arg-type]
        release.save(folder / "ours.csv")


def _environment(folder: Path, other: Other) -> Path | None:
    """Make an environment with a tool, unless the folder has it; None if it cannot be installed."""
    home = folder / f"environment-{other.packages[0].partition('=')[0]}"
    python = home / "bin" / "python"
    if not python.exists():
        venv.create(home, with_pip=True)
    command = [str(python), "-m", "pip", "-q", "--disable-pip-version-check", "install", *other.packages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return python if done.returncode == 0 else None


def _time(python: Path, other: Other, source: Path, folder: Path) -> float | str:
    command: Sequence[str] = (
        str(python),
        "-c",
        other.script,
        str(source),
        str(folder / "theirs.csv"),
        str(CONFIG["k"]),
        str(SUPPRESSED),
        json.dumps(
            {each["name"]: (each["interval"]["low"], each["interval"]["high"]) for each in CONFIG["quasi_identifiers"]}
        ),
    )
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return f"over {PATIENCE:.0f} s"
    except subprocess.CalledProcessError as error:
        print(error.stderr, file=sys.stderr)
        return "failed"
    return float(done.stdout.split()[-1])
