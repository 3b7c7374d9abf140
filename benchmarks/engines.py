"""The exact engine against CP-SAT on the paper's literal program: the same classes, the same answers, in one run.

The classes come from tables of the paper's shape (500 to 800 bell-shaped records, attributes with three layers of
halves). For each magnitude two classes are taken, both generalized and overlapped by earlier ones: one of just k
records, the usual case, and one of more, which takes the exact engine longer. Start-up is not counted, nor is what both
engines need or what only CP-SAT needs before it can start: stating the problem, writing the program.

CP-SAT's solutions are all remembered, to count each once: about half a gigabyte for a million of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import log, prod
from pathlib import Path
from time import perf_counter
from timeit import Timer
from typing import get_args

from benchmarks.ledger import is_faster
from benchmarks.reporting import count_text, table, time_text, verdict
from benchmarks.states import Case
from tests.plausible import all_targets, attack_on, release_of
from unblur.attacking import Attack, Target
from unblur.counting.cpsat import Enumeration, enumerate_program
from unblur.counting.light import forget
from unblur.counting.placements import Placements
from unblur.counting.problem import Records
from unblur.program import build_program
from unblur.release import Release

RECORDS = (500, 600, 700, 800)
ATTRIBUTES = (3, 4)
LAYERS = 3
KS = range(4, 9)
BARS = {1_000: None, 10_000: 1_000, 100_000: None, 1_000_000: 100_000}
"""For so many combinations: how many times as fast the exact engine is to be."""
SMALL = 10_000
"""Up to so many combinations an enumeration is repeated; more are not for the smoke test."""
REPEATS = 3
AUDITED = (Case(800, 4, LAYERS), 7)
MOST_SECONDS = 1.0
"""The bar: all counts of an audit together."""


@dataclass(frozen=True)
class Candidate:
    """A class, or the outliers, of a release."""

    attack: Attack
    number: int | None
    """The index of the class; None for the outliers."""

    def state(self) -> Target:
        """State the problem anew."""
        target = self.attack.outliers() if self.number is None else self.attack.target(self.number)
        assert target is not None
        return target

    @cached_property
    def target(self) -> Target:
        return self.state()

    @cached_property
    def combinations(self) -> int:
        return self.placements("any").combinations

    @property
    def exceeds(self) -> bool:
        """Whether it has more than k records."""
        return self.target.subject.size > self.attack.release.config.k

    @property
    def fit(self) -> bool:
        """Whether it is generalized, overlapped by earlier classes, and possible."""
        return self.target.problem.constrained and bool(self.target.takers) and self.combinations > 0

    def placements(self, records: Records) -> Placements:
        """Start afresh: nothing that was counted before is remembered."""
        return Placements(self.attack.grid, replace(self.target.problem), records)

    def count(self) -> tuple[int, int]:
        """Count what an assessment shows."""
        forget()
        fresh = self.placements("any")
        return fresh.solutions, fresh.combinations


@dataclass(frozen=True)
class Result:
    """One class by both engines."""

    candidate: Candidate
    bar: int | None
    stating: float
    exact: float
    cpsat: float

    @property
    def ratio(self) -> float:
        return self.cpsat / self.exact


@dataclass(frozen=True)
class Audit:
    """What the counts of a whole release took, step by step, in seconds."""

    release: Release
    stating: float
    counts: float
    blocks: float
    singling: float

    @property
    def total(self) -> float:
        return self.stating + self.counts + self.blocks + self.singling


def run(folder: Path, *, quick: bool) -> str:
    """Measure, and describe the results."""
    bars = {magnitude: bar for magnitude, bar in BARS.items() if magnitude <= SMALL or not quick}
    audits = [best_audit(release_for(*AUDITED))]
    if not quick:
        audits.append(slowest_audit())
    candidates = [each for each in all_candidates() if each.fit]
    warm_up(candidates)
    results = [
        compare(nearest(candidates, magnitude, exceeds=exceeds), bar, repeats=REPEATS if magnitude <= SMALL else 1)
        for magnitude, bar in bars.items()
        for exceeds in (False, True)
    ]
    return f"{render_results(results)}\n\n{render_audits(audits)}"


def release_for(case: Case, k: int) -> Release:
    """Anonymize a table of a shape."""
    return release_of(case.lattice, [tuple(record) for record in case.draw().tolist()], k)


def all_candidates() -> Iterator[Candidate]:
    """List the classes and outliers of all tables."""
    for attributes in ATTRIBUTES:
        for release in releases(attributes):
            attack = attack_on(release)
            yield from (Candidate(attack, number) for number in range(len(release.classes)))
            if release.outliers:
                yield Candidate(attack, None)


def releases(attributes: int) -> Iterator[Release]:
    """Anonymize all tables of so many attributes."""
    return (release_for(Case(records, attributes, LAYERS), k) for records in RECORDS for k in KS)


def nearest(candidates: Sequence[Candidate], combinations: int, *, exceeds: bool) -> Candidate:
    """Choose the class of about so many combinations."""
    return min(
        (each for each in candidates if each.exceeds == exceeds),
        key=lambda each: abs(log(each.combinations / combinations)),
    )


def warm_up(candidates: Sequence[Candidate]) -> None:
    """Let the first solver be created before anything is timed."""
    enumerate_all(min(candidates, key=lambda each: each.combinations))


def compare(candidate: Candidate, bar: int | None, *, repeats: int) -> Result:
    """Time both engines on a class, the best of some repetitions each, and see that they agree."""
    found = [enumerate_all(candidate) for _ in range(repeats)]
    check(candidate, found[0])
    cpsat = min(each.seconds for each in found)
    return Result(candidate, bar, best(Timer(candidate.state)), best(Timer(candidate.count)), cpsat)


def enumerate_all(candidate: Candidate) -> Enumeration:
    """Enumerate the paper's literal program."""
    return enumerate_program(build_program(candidate.attack, candidate.target, sparse="all"))


def check(candidate: Candidate, found: Enumeration) -> None:
    """Insist on the same three numbers."""
    assert found.complete
    assert found.combinations == candidate.combinations
    for records in get_args(Records):
        assert found.solutions(records) == candidate.placements(records).solutions


def best(timer: Timer) -> float:
    """Time an action: as often as fills a moment, the mean; of three such means the least."""
    number, _ = timer.autorange()
    return min(timer.repeat(REPEATS, number)) / number


def slowest_audit() -> Audit:
    """Find the release of four attributes that takes longest."""
    return max((best_audit(release, repeats=1) for release in releases(ATTRIBUTES[-1])), key=lambda each: each.total)


def best_audit(release: Release, *, repeats: int = REPEATS) -> Audit:
    """Audit a release some times, each time afresh, and take the fastest."""
    return min((audit(release) for _ in range(repeats)), key=lambda each: each.total)


def audit(release: Release) -> Audit:
    """Count everything that can be counted class by class."""
    forget()
    begin = perf_counter()
    attack = attack_on(release)
    every = [Placements(attack.grid, target.problem, "any") for target in all_targets(attack)]
    stated = perf_counter()
    for each in every:
        _ = each.solutions, each.combinations
    counted = perf_counter()
    for each in every:
        for block in each.problem.blocks:
            each.block_odds(block)
    weighed = perf_counter()
    for each in every:
        _ = each.singling_out
    return Audit(release, stated - begin, counted - stated, weighed - counted, perf_counter() - weighed)


def render_results(results: Sequence[Result]) -> str:
    """Lay out the comparison of the engines."""
    header = ["combinations", "cells", "size", " k", "stating", "CP-SAT", "exact", "times as fast", "bar", ""]
    return table(header, [_result_row(each) for each in results])


def _result_row(result: Result) -> list[str]:
    what = f"count a class of {result.candidate.combinations:,} combinations"
    is_faster(what, "CP-SAT: enumerate", result.ratio, result.bar)
    target, k = result.candidate.target, result.candidate.attack.release.config.k
    return [
        count_text(result.candidate.combinations),
        count_text(prod(b - a for a, b in target.box)),
        count_text(target.subject.size),
        count_text(k),
        _micro(result.stating),
        time_text(result.cpsat),
        _micro(result.exact),
        f"{result.ratio:,.0f}",
        "" if result.bar is None else count_text(result.bar),
        "" if result.bar is None else verdict(result.bar, result.ratio),
    ]


def render_audits(audits: Sequence[Audit]) -> str:
    """Lay out the steps of the audits."""
    header = ["rows", " k", "classes", "stating", "counts", "block odds", "singling out", "altogether", "bar", ""]
    return table(header, [_audit_row(each) for each in audits])


def _audit_row(audit: Audit) -> list[str]:
    steps = (audit.stating, audit.counts, audit.blocks, audit.singling, audit.total, MOST_SECONDS)
    return [
        count_text(audit.release.rows),
        count_text(audit.release.config.k),
        count_text(len(audit.release.classes)),
        *map(time_text, steps),
        verdict(audit.total, MOST_SECONDS),
    ]


def _micro(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f} µs"
