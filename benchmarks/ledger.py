"""Every ratio of a run, in one table at its end: what was compared with what, and whether the bar was met."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.reporting import table


@dataclass(frozen=True, slots=True)
class Ratio:
    """What was measured, as a ratio to an alternative in the same run."""

    what: str
    against: str
    times: float
    faster: bool
    """Whether it says how many times as fast this is; if not, how many times as long it takes."""
    bar: float | None

    @property
    def met(self) -> bool | None:
        if self.bar is None:
            return None
        return self.times >= self.bar if self.faster else self.times <= self.bar


_ratios: list[Ratio] = []


def takes(what: str, against: str, times: float, at_most: float | None = None) -> None:
    """Note that something takes so many times as long, or as much, as an alternative."""
    _ratios.append(Ratio(what, against, times, faster=False, bar=at_most))


def is_faster(what: str, against: str, times: float, at_least: float | None = None) -> None:
    """Note that something is so many times as fast as an alternative."""
    _ratios.append(Ratio(what, against, times, faster=True, bar=at_least))


def summary() -> str:
    """Lay out all ratios that were noted."""
    if not _ratios:
        return "None: nothing was compared."
    verdicts = {None: "", True: "met", False: "MISSED"}
    rows = [
        [
            each.what,
            each.against,
            f"{each.times:,.1f} times as fast" if each.faster else f"{each.times:.2f} times as much",
            "" if each.bar is None else f"at {'least' if each.faster else 'most'} {each.bar:,g}",
            verdicts[each.met],
        ]
        for each in _ratios
    ]
    return table(["unblur", "against, in the same run", "ratio", "bar", ""], rows)
