"""All that a report shows, as plain data: gathered from an audit once, then put into HTML or Markdown.

The public version is made here: what it must not show is empty in it. Pictures, and the library that draws them, are
loaded only when they are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, log2
from typing import TYPE_CHECKING

from unblur.attacking import Attack, inference_of
from unblur.gates import Gate
from unblur.report import subject
from unblur.report.advice import MEANING, SEVERITIES, Advice, Severity, advise
from unblur.report.cards import Card, Dealer
from unblur.report.checks import Check, fit_checks, leak_checks
from unblur.report.classes import Page, pages
from unblur.report.figures import Figure, figures, is_intact
from unblur.report.phrases import count, fold, narrowed, percent, remaining, share
from unblur.report.spreading import Spreader
from unblur.report.telling import Together, tell_together
from unblur.report.verdicts import Verdict, judge, limit_in_bits
from unblur.risk import Spread

if TYPE_CHECKING:
    from unblur.audits import Audit
    from unblur.pictures.style import Picture
    from unblur.report.maps import Atlas, Choice

MOST_DRAWN = 6
"""So many cards have a picture."""
MOST_PROBLEMS = 20
"""So many reasons against the fit are told one by one."""


@dataclass(frozen=True)
class Rule:
    """A rule of the attack, with what it takes away."""

    name: str
    alone: str
    last: str


@dataclass(frozen=True)
class Summary:
    """How far classes are narrowed down, in a row of the table."""

    name: str
    classes: int
    median: str
    mean: str
    largest: str


@dataclass(frozen=True)
class Contents:
    """What a report shows."""

    audit: Audit
    gates: tuple[Gate, ...]
    public: bool

    @cached_property
    def verdict(self) -> Verdict:
        return judge(self.audit, self.gates, public=self.public)

    @property
    def warning(self) -> str:
        """What to bear in mind if figures mean nothing."""
        if self.verdict.reliable:
            return ""
        return "The release does not fit, or nothing is assumed: these figures say nothing about the people in it."

    @property
    def limit(self) -> str:
        """The limit in words, and where it comes from."""
        if not self.gates:
            return (
                "The limit is the default: nobody's cell is certain, and no class is narrowed down more than 100-fold."
            )
        said = " or ".join(map(str, self.gates))
        return f"The limit was set for this audit: a release is above it if {said}."

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        return figures(self.audit, public=self.public, reliable=self.verdict.reliable)

    @cached_property
    def bits_lost(self) -> Picture | None:
        from unblur.report import charts

        return charts.bits_lost(self.audit, limit_in_bits(self.gates), public=self.public)

    @cached_property
    def against_size(self) -> Picture | None:
        from unblur.report import charts

        return charts.against_size(self.audit, public=self.public)

    @cached_property
    def subject(self) -> subject.Subject:
        return subject.describe(self.audit, public=self.public)

    @cached_property
    def hierarchies(self) -> tuple[Picture, ...]:
        """The hierarchies drawn; their labels are for the internal version."""
        from unblur.report.maps import hierarchy

        attributes = self.audit.release.config.quasi_identifiers
        return () if self.public else tuple(hierarchy(n, each) for n, each in enumerate(attributes, 1))

    @cached_property
    def fit(self) -> tuple[Check, ...]:
        return fit_checks(self.audit, public=self.public)

    @cached_property
    def leaks(self) -> tuple[Check, ...]:
        return leak_checks(self.audit, public=self.public)

    @property
    def problems(self) -> tuple[str, ...]:
        """Why the release does not fit; in public, only that there are reasons."""
        if self.public:
            return ()
        found = [f"{each[:1].upper()}{each[1:]}." for each in self.audit.problems]
        more = len(found) - MOST_PROBLEMS
        return (*found[:MOST_PROBLEMS], *([f"And {count(more, 'more reason')}."] if more > 0 else []))

    @cached_property
    def advice(self) -> tuple[tuple[Severity, str, tuple[Advice, ...]], ...]:
        """The findings by severity, with what each severity means."""
        limit = limit_in_bits(self.gates)
        found = advise(self.audit, limit=limit, public=self.public, reliable=self.verdict.reliable)
        grouped = {each: tuple(one for one in found if one.severity == each) for each in SEVERITIES}
        return tuple((severity, MEANING[severity], some) for severity, some in grouped.items() if some)

    @cached_property
    def summaries(self) -> tuple[Summary, ...]:
        summary = self.audit.summary
        if not self.audit.classes:
            return ()
        return (
            _summary("All classes", len(self.audit.classes), summary.over_all),
            _summary("Classes of several cells", summary.compound, summary.over_compound),
        )

    @cached_property
    def pages(self) -> tuple[Page, ...]:
        return () if self.public else pages(self.audit)

    @cached_property
    def _attack(self) -> Attack:
        release = self.audit.release.bare()
        return Attack(release, inference_of(self.audit.mechanism, release, self.audit.settings.order))

    @cached_property
    def _atlas(self) -> Atlas:
        from unblur.report.maps import Atlas

        return Atlas(self._attack, Spreader(self._attack, self.audit.settings.records))

    @cached_property
    def _dealer(self) -> Dealer:
        return Dealer(self.audit, self._attack)

    @cached_property
    def cards(self) -> tuple[Card, ...]:
        return () if self.public else self._dealer.cards()

    @cached_property
    def drawn(self) -> dict[int, Picture]:
        """The pictures of the first cards, by the number of the class."""
        chosen = [each.number for each in self.cards if each.number and each.fits][:MOST_DRAWN]
        return {number: self._atlas.of_class(number, self._attack.target(number - 1)) for number in chosen}

    @cached_property
    def maps(self) -> tuple[Choice, ...]:
        """The grid of every pair of attributes."""
        shown = not self.public and self.verdict.reliable and self.audit.release.classes
        return self._atlas.choices() if shown else ()

    @property
    def more_attributes(self) -> bool:
        """Whether there are too many attributes to draw all pairs."""
        drawn = {each for plane in self._atlas.planes for each in (plane.across, plane.up)}
        return len(drawn - {None}) < len(self.audit.release.config.quasi_identifiers)

    @cached_property
    def singled_out(self) -> Picture | None:
        shown = not self.public and self.verdict.reliable
        return self._atlas.singled_out(self.audit.everything) if shown else None

    @cached_property
    def outliers(self) -> Card | None:
        """The suppressed records explained; None in public, or if there is nothing to say."""
        found = self.audit.outliers
        if self.public or found is None or self.audit.release.config.missing:
            return None
        if not self.verdict.reliable and (found.refinement is None or found.refinement.feasible):
            return None
        card = self._dealer.card(found)
        return replace(card, labels=())

    @property
    def outliers_words(self) -> str:
        """The suppressed records in a sentence or two."""
        release, found = self.audit.release, self.audit.outliers
        if found is None:
            return "No record is suppressed."
        what = f"{count(release.outliers, 'record')}, {share(release.outliers, release.rows)} of all, suppressed."
        if release.config.missing:
            missing = f"{release.config.missing:,} of them for missing or impossible values"
            return f"{what} Nothing is claimed about where they are: {missing}."
        if found.refinement is None:
            return f"{what} The attack did not come to them."
        if not found.refinement.feasible:
            return f"{what} Nothing fits them."
        if not self.verdict.reliable:
            unfit = "does not fit" if self.audit.problems else "is not known to have been made in any way"
            return f"{what} Nothing is said about where they are, for the release {unfit}."
        if not found.bits:
            intact = "Nothing is taken away from them" if is_intact(found) else "It is not known what is taken away"
            return f"{what} {intact}."
        if self.public:
            return f"{what} Everybody in a class is known not to be among them, which narrows them down, too."
        told = f"Everybody in a class is known not to be among them. That leaves {remaining(found)} of the data sets"
        chance = found.refinement.singling_out
        alone = f" The chance that one of them is alone in a cell is {percent(chance)}." if chance is not None else ""
        return f"{what} {told} that they seem to leave open ({narrowed(found)} narrower).{alone}"

    @cached_property
    def together(self) -> Together | None:
        """What all classes say together, if that was asked for and means anything."""
        return tell_together(self.audit, public=self.public) if self.verdict.reliable else None

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """What each rule takes away, if that was asked for."""
        effects = self.audit.ablation.effects if self.audit.ablation else {}
        return tuple(Rule(subject.RULES[name], _bits(each.alone), _bits(each.last)) for name, each in effects.items())

    @cached_property
    def rules_effect(self) -> Picture | None:
        from unblur.report import charts

        return charts.rules_effect(self.audit.ablation) if self.audit.ablation else None

    @property
    def limits(self) -> tuple[str, ...]:
        return subject.limits(self.audit)

    @property
    def truth(self) -> str:
        """Who is singled out, by the raw table."""
        found = None if self.public else self.audit.singling_out
        if found is None:
            return ""
        if not found.classes:
            return "no class has several cells, so there is nothing to count."
        return (
            f"of {count(found.classes, 'class')} of several cells, nobody is alone in a cell in {found.failed:,}, one "
            f"record in {found.one:,}, more than one in {found.many:,}."
        )


def gather(audit: Audit, *, public: bool = False, gates: Sequence[Gate] = ()) -> Contents:
    """Gather what a report shows."""
    return Contents(audit, tuple(gates), public)


def _summary(name: str, classes: int, found: Spread) -> Summary:
    return Summary(name, classes, *(_fold(each) for each in (found.median, found.mean, found.largest)))


def _fold(ratio: float | None) -> str:
    if ratio is None:
        return "–"
    return fold(log2(ratio)) if ratio < inf else "over 10³⁰⁸-fold"


def _bits(bits: float | None) -> str:
    return "–" if bits is None else f"{bits:,.1f}"
