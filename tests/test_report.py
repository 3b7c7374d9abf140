from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import unblur
from tests.plausible import attack_on, release_of
from tests.strategies import random_case
from unblur.attacking import inference_of
from unblur.audits import Audit
from unblur.cli.audit import describe
from unblur.config import Config, Mechanism, QuasiIdentifier
from unblur.counting.numbers import Count
from unblur.explaining import explain
from unblur.gates import Gate
from unblur.hierarchy import from_rows, halves
from unblur.joint.solving import joint
from unblur.leaks import Leak
from unblur.release import EquivalenceClass, Release
from unblur.replay import Replay
from unblur.report.cards import Dealer
from unblur.report.charts import _joined, _middles, against_size, bits_lost
from unblur.report.classes import AT_ONCE, PAGE
from unblur.report.contents import gather
from unblur.report.phrases import FEWEST
from unblur.report.rendering import html, markdown, notebook
from unblur.report.spreading import Plane, Spreader
from unblur.report.verdicts import judge
from unblur.together import Together

TREE = halves(Decimal(0), Decimal(80), layers=4)
NASTY = '</script><script>alert("x")</script> & <b>bold</b> | `code` * _'
SVG = "http://www.w3.org/2000/svg"
VOID = {"meta", "input", "br", "link", "img", "hr"}


def release(*classes: tuple[tuple[int, ...], tuple[int, ...], int], outliers: int = 0, **more: Any) -> Release:
    """A release of two attributes, k = 3, as the published algorithm makes it."""
    attributes = more.pop("attributes", tuple(QuasiIdentifier(name, TREE, 1) for name in ("glucose", "age")))
    mechanism = more.pop("mechanism", Mechanism("paper"))
    return Release(
        Config(3, attributes, mechanism, **more), tuple(EquivalenceClass(*each) for each in classes), outliers
    )


ONE = ((3, 2), (0, 1), 4)
BASIC = tuple(((1, 1), (n, n), 4) for n in range(8))
NARROWED = (((1, 1), (0, 0), 4), ((1, 1), (1, 0), 4), ((1, 1), (0, 1), 4), ((2, 2), (0, 0), 4))
"""Three of the four cells of the last class are taken: all its records are in the fourth, which cannot be."""
CERTAIN = (((1, 1), (0, 0), 4), ((3, 1), (0, 0), 4))


def clinic(rows: int, *, k: int = 4, seed: int = 3) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A table of people with three attributes, and a config."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "weight": np.clip(np.round(rng.normal(80, 25, rows) * 2) / 2, 30, 189.5),
            "age": rng.integers(0, 96, rows),
            "height": np.clip(rng.normal(170, 12, rows).astype(int), 120, 215),
        }
    )
    intervals = {"weight": (30, 190, 4), "age": (0, 96, 4), "height": (120, 216, 3)}
    attributes = [
        {"name": name, "interval": {"low": low, "high": high, "step": 0.5 if name == "weight" else 1, "layers": layers}}
        for name, (low, high, layers) in intervals.items()
    ]
    return table, {"k": k, "mechanism": "paper", "quasi_identifiers": attributes}


@pytest.fixture(scope="module")
def full() -> Audit:
    """An audit with everything in it: raw table, replay, ablation."""
    table, config = clinic(160)
    with unblur.anonymize(table, config) as made:
        return unblur.audit(made, truth=table, replay=True, ablation=True)


class Page(HTMLParser):
    """A page taken apart: tags must close in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.headings: list[int] = []
        self.feed(text)
        self.close()
        assert self.open == [], "tags that nobody closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if re.fullmatch(r"h\d", tag):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"{tag} closes something else"

    def handle_data(self, data: str) -> None:
        if not {"style", "text"} & set(self.open):  # the texts of axes are no sentences
            self.text.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    def attribute(self, name: str) -> list[str]:
        return [value for _, attributes in self.tags if (value := attributes.get(name)) is not None]

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).replace("\xa0", " ").split())


def check_page(text: str) -> Page:
    """Everything that is true of every report."""
    page = Page(text)
    assert page.all("script") == []
    assert set(re.findall(r"https?://[^\s\"'<>)]*", text)) <= {SVG}
    assert not re.search(r"url\((?!#)|@import| on\w+=", re.sub(r">[^<]*<", "><", text))
    assert page.headings[0] == 1 and page.headings.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(page.headings, page.headings[1:], strict=False))
    ids = page.attribute("id")
    assert len(ids) == len(set(ids))
    assert {each[1:] for each in page.attribute("href")} <= set(ids)
    assert all(each["aria-labelledby"] in ids and each["aria-describedby"] in ids for each in page.all("svg"))
    assert page.all("svg") == [] or len(page.all("desc")) == len(page.all("svg"))
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(each.get("scope") in ("col", "row") for each in page.all("th"))
    labels = [each["for"] for each in page.all("label")]
    assert sorted(map(str, labels)) == sorted(str(each["id"]) for each in page.all("input"))
    assert "None" not in page.words and "nan" not in page.words.split()
    assert "not a certificate" in page.words
    return page


def cases() -> Iterator[tuple[str, Callable[[], Audit]]]:
    yield "one class", lambda: unblur.audit(release(ONE))
    yield "only outliers", lambda: unblur.audit(release(outliers=2))
    yield "only single cells", lambda: unblur.audit(release(*BASIC))
    yield "single cells and outliers", lambda: unblur.audit(release(*BASIC, outliers=2))
    yield "certain cells", lambda: unblur.audit(release(*CERTAIN))
    yield "misfit", lambda: unblur.audit(release(*NARROWED))
    yield "below k", lambda: unblur.audit(release(ONE, ((1, 1), (7, 7), 2)))
    yield "nothing assumed", lambda: unblur.audit(release(ONE, mechanism=Mechanism("unknown")))
    yield "nothing stated", lambda: unblur.audit(release(ONE, mechanism=None))
    yield "missing values", lambda: unblur.audit(release(ONE, outliers=3, made={"missing": 2}))
    yield "one attribute", lambda: unblur.audit(one_attribute())
    yield "no time", lambda: unfinished()
    yield "an enumeration", lambda: unblur.audit(release(ONE), engine="cpsat")


def one_attribute() -> Release:
    return release(((1,), (0,), 4), ((3,), (0,), 4), attributes=(QuasiIdentifier("age", TREE, 1),))


def unfinished() -> Audit:
    audit = unblur.audit(release(ONE, ((1, 1), (7, 7), 4)))
    undone = replace(audit.classes[1], refinement=None)
    return replace(audit, classes=replace(audit.classes, all=(audit.classes[0], undone)), not_done=1)


@pytest.mark.parametrize(("make"), [make for _, make in cases()], ids=[name for name, _ in cases()])
@pytest.mark.parametrize("public", [False, True])
def test_every_report_is_whole_and_stands_alone(make: Callable[[], Audit], public: bool) -> None:
    audit = make()
    page = check_page(html(audit, public=public))
    assert ("Public version" in page.words) is public
    assert ("Internal version" in page.words) is not public
    assert markdown(audit, public=public).startswith("# What this release gives away")
    assert judge(audit, public=public).sentence.replace("  ", " ") in page.words


def test_a_full_report_has_all_its_parts(full: Audit) -> None:
    page = check_page(html(full))
    named = [str(each.get("id")) for each in page.all("section")]
    sections = "findings checks classes maps explained suppressed rules audited method limits"
    assert named == sections.split()
    titles = page.words
    for part in ("How much the labels lose", "against their size", "Where singled-out records sit", "Glossary"):
        assert part in titles
    assert len(page.all("input")) == 3  # pairs of three attributes
    assert str(full.release.sha256 or "") in titles
    assert "weight and age" in titles and "age and height" in titles
    assert [each.get("class") for each in page.all("details")].count("long") >= 1


def test_the_same_audit_gives_the_same_bytes(full: Audit) -> None:
    for public in (False, True):
        assert markdown(full, public=public) == markdown(full, public=public)
    assert html(full, public=True) == html(full, public=True)
    assert html(unblur.audit(release(*CERTAIN))) == html(unblur.audit(release(*CERTAIN)))


# The two versions


SENTINEL = re.compile(r"SENTINEL|\b7700\d\d\b")


def sentinel_audit(folder: Path) -> Audit:
    """A table of values that cannot be mistaken, with a column that gives rows away."""
    rng = np.random.default_rng(5)
    kinds = [[f"SENTINELVALUE{n}", f"SENTINELLEAF{n // 2}", f"SENTINELTOP{n // 4}", "*"] for n in range(8)]
    (folder / "SENTINELFILE.csv").write_text("\n".join(";".join(row) for row in kinds))
    table = pd.DataFrame(
        {
            "ward": [f"SENTINELVALUE{n}" for n in rng.integers(0, 8, 90)],
            "score": 770_000 + rng.integers(0, 64, 90),
            "code": [f"SENTINELID{n}" for n in range(90)],
        }
    )
    config = folder / "SENTINELCONFIG.toml"
    config.write_text(
        'k = 3\nmechanism = "paper"\n'
        '[[quasi_identifiers]]\nname = "ward"\nhierarchy = "SENTINELFILE.csv"\n'
        '[[quasi_identifiers]]\nname = "score"\ninterval = { low = 770000, high = 770064, layers = 4 }\n'
    )
    with unblur.anonymize(table, config) as made:
        audit = unblur.audit(made, truth=table, ablation=True, replay=True)
        unstated = unblur.audit(made, mechanism=Mechanism("arx", {"iterations": 2}))
    return replace(
        audit,
        misfits=unstated.problems,
        alternatives=unblur.audit(release(ONE, mechanism=None)).alternatives,
        replay=Replay(2, 1, ("SENTINELVALUE1", "[770000, 770008["), ("*", "*")),
    )


@pytest.mark.parametrize("fits", [True, False])
def test_the_public_version_shows_no_label_no_value_and_nothing_of_the_raw_table(tmp_path: Path, fits: bool) -> None:
    audit = sentinel_audit(tmp_path)
    audit = replace(audit, misfits=(), replay=None) if fits else replace(audit, misfits=("SENTINEL [770000, 770008[",))
    internal = (html(audit), markdown(audit))
    assert all(SENTINEL.search(each.replace("\xa0", " ")) for each in internal)
    assert any(each.kind == "identifier_column" for each in audit.leaks)
    for text in (html(audit, public=True), markdown(audit, public=True)):
        assert SENTINEL.findall(text.replace(audit.release.sha256 or "-", "")) == []
        assert "raw table, matched" not in text and "singled out by" not in text
        assert "as the raw table shows" not in text and "Where singled-out" not in text


def test_the_public_version_counts_no_single_class(full: Audit) -> None:
    public = check_page(html(full, public=True))
    assert "Class by class" not in public.words
    internal = check_page(html(full))
    for naming in (
        r"of class \d",
        r"\(class(es)? \d",
        r"Class \d+ \d+ records",
        r"Classes \d[\d, ]*and \d+ came before",
    ):
        assert re.search(naming, internal.words)
        assert not re.search(naming, public.words)
    worst = max(full.classes, key=lambda each: each.bits or 0)
    assert all(label in internal.words for label in worst.labels)


def test_no_dot_of_a_public_picture_stands_for_few_classes(full: Audit) -> None:
    found = [each for each in full.classes if not each.basic]
    rows = _middles(found)
    assert sum(row["classes"] for row in rows) == len(found) > 2 * FEWEST
    assert min(row["classes"] for row in rows) >= FEWEST
    assert against_size(unblur.audit(release(ONE, ((3, 2), (1, 1), 4))), public=True) is None


def test_a_gate_on_the_raw_table_stays_silent_about_numbers_in_public(full: Audit) -> None:
    found = full.summary.singled_out
    assert found
    gate = [Gate.parse("singled_out > 0")]
    assert f"{found} records are singled out" in judge(full, gate).sentence
    told = judge(full, gate, public=True)
    assert told.kind == "above" and "some records are singled out" in told.sentence


# The verdict


def test_the_verdict_says_where_the_release_stands_and_what_is_allowed() -> None:
    assert judge(unblur.audit(release(ONE))).sentence == (
        "This release stays within the limit: nobody's cell is certain (allowed: none) and the class that suffers most "
        "is narrowed down 7.1-fold (allowed: at most 100-fold)."
    )
    certain = judge(unblur.audit(release(*CERTAIN)))
    assert certain.kind == "above"
    assert "2 records can be placed in a single cell with certainty (allowed: none)" in certain.sentence


def test_the_verdict_names_the_suppressed_records_if_they_suffer_most() -> None:
    audit = unblur.audit(release(*BASIC, outliers=2))
    assert "the suppressed records are narrowed down 1.3-fold" in judge(audit).sentence


def test_gates_replace_the_limit() -> None:
    audit = unblur.audit(release(ONE))
    assert judge(audit, [Gate.parse("max_ratio > 7")]).kind == "above"
    assert judge(audit, [Gate.parse("max_ratio > 8")]).kind == "within"
    assert "by 2.8 bits (allowed: less than 2 bits)" in judge(audit, [Gate.parse("max_bits >= 2")]).sentence
    assert "limit: 4-fold" in html(audit, gates=[Gate.parse("max_ratio > 4")])
    assert "max_ratio > 4" in html(audit, gates=[Gate.parse("max_ratio > 4")]).replace("&gt;", ">")
    certain = unblur.audit(release(*CERTAIN))
    assert judge(certain, [Gate.parse("suppressed > 0")]).kind == "within"


def test_what_was_not_found_out_cannot_be_called_within_the_limit(full: Audit) -> None:
    assert "does not fit" in _open(unblur.audit(release(*NARROWED)))
    assert "nothing is assumed" in _open(unblur.audit(release(ONE, mechanism=Mechanism("unknown"))))
    assert "1 part of it was not analysed" in _open(unfinished())
    above = judge(unfinished(), [Gate.parse("max_ratio > 2")])
    assert above.kind == "above" and above.sentence.endswith("; 1 part of it was not analysed.")
    assert "how it was made was not stated" in _open(unblur.audit(release(ONE, mechanism=None)))
    assert "missing values" in _open(unblur.audit(release(ONE, outliers=3, made={"missing": 2})))
    assert "certain cells were not looked for" in _open(unblur.audit(release(ONE), engine="cpsat"))
    assert "made again from the raw table it differs in 2 rows" in _open(replace(full, replay=Replay(2, 1)))
    assert "only a bound" in _open(with_bound("at_most"))
    wanted = [Gate.parse("singled_out > 0")]
    assert "the raw table was not at hand" in judge(unblur.audit(release(ONE)), wanted).sentence


def _open(audit: Audit) -> str:
    found = judge(audit)
    assert found.kind == "open"
    assert "cannot be judged" in found.sentence
    return found.sentence


def with_bound(counted: Any, bits: float = 0.0) -> Audit:
    """An audit of one class whose count is only a bound."""
    audit = unblur.audit(release(ONE))
    left = audit.classes[0].refinement
    assert left is not None
    plausible = Count(audit.classes[0].published.log2 - bits, None)
    found = replace(audit.classes[0], refinement=replace(left, counted=counted, plausible=plausible))
    return replace(audit, classes=replace(audit.classes, all=(found,)))


def test_a_lower_bound_of_the_loss_proves_an_excess_and_an_upper_one_does_not() -> None:
    assert judge(with_bound("at_most", bits=10)).kind == "above"
    assert judge(with_bound("at_least", bits=10)).kind == "open"
    assert "at least 1,024-fold" in Page(html(with_bound("at_most", bits=10))).words
    assert "at most 1,024-fold" in Page(html(with_bound("at_least", bits=10))).words


def test_where_no_class_has_several_cells_nobody_is_counted_of_none() -> None:
    table = pd.DataFrame({"age": [5] * 4 + [75] * 4})
    config = {"k": 4, "quasi_identifiers": [{"name": "age", "interval": {"low": 0, "high": 80, "layers": 3}}]}
    audit = unblur.audit(unblur.anonymize(table, config), truth=table)
    said = "\n".join(describe(audit))
    assert "Singled out: nothing to count, for no class has more than one cell." in said and "0 classes" not in said
    assert "With the raw table: no class has several cells, so there is nothing to count." in html(audit)
    assert "of 0 classes" not in html(audit) + markdown(audit)


def test_a_grave_leak_is_above_every_default_limit() -> None:
    audit = replace(unblur.audit(release(ONE)), leaks=(Leak("identifier_column", "a column tells", "leave it out"),))
    assert judge(audit).kind == "above" and "1 grave leak" in judge(audit).sentence
    relaxed = judge(audit, [Gate.parse("max_ratio > 100")])
    assert relaxed.kind == "within" and "but 1 grave leak is around the classes" in relaxed.sentence
    page = Page(html(audit))
    assert "A column tells." in page.words and "leave it out" in page.words


def test_a_misfit_rules_the_first_screen() -> None:
    page = check_page(html(unblur.audit(release(*NARROWED))))
    first = page.words.split("Findings, and what can be done")[0]
    assert "Cannot be judged" in first
    assert "-fold" not in first.replace("100-fold", "")
    assert "bits lost" not in first
    assert "No placement of the 4 records of class 4 is possible" in page.words
    assert page.all("input") == []  # no maps of what cannot be


def test_what_the_limit_does_not_ask_for_is_said() -> None:
    gate = [Gate.parse("suppressed > 5")]
    told = judge(unblur.audit(release(*CERTAIN)), gate)
    assert told.kind == "within"
    assert (
        "but 2 records can be placed in a single cell with certainty, which the limit does not look at" in told.sentence
    )
    assert "narrowed down" in told.sentence
    unknown = judge(unfinished(), gate).sentence
    assert "the limit does not look at certain cells, and whether there are any was not found out" in unknown
    assert "but" not in judge(unblur.audit(release(*BASIC)), gate).sentence


# Figures


def nothing_done() -> Audit:
    audit = unblur.audit(release(ONE, ((1, 1), (7, 7), 4)))
    undone = tuple(replace(each, refinement=None) for each in audit.classes)
    return replace(audit, classes=replace(audit.classes, all=undone), not_done=2)


def only_single_cells_done() -> Audit:
    audit = unblur.audit(release(ONE, *BASIC[3:]))
    undone = tuple(each if each.basic else replace(each, refinement=None) for each in audit.classes)
    return replace(audit, classes=replace(audit.classes, all=undone), not_done=1)


@pytest.mark.parametrize("make", [nothing_done, only_single_cells_done])
@pytest.mark.parametrize("public", [False, True])
def test_an_unfinished_audit_claims_nothing(make: Callable[[], Audit], public: bool) -> None:
    audit = make()
    for text in (Page(html(audit, public=public)).words, markdown(audit, public=public), Page(notebook(audit)).words):
        for claim in (
            "Nothing is taken away",
            "Nobody can be placed",
            "All classes are single",
            "narrowed down at all",
        ):
            assert claim not in text.replace("**", "")
    assert [each.number for each in gather(audit, public=public).figures[:3]] == ["Unknown"] * 3


def raw_values() -> Audit:
    """Classes of single leaves, some of whose raw values went to an earlier class."""
    attributes = (QuasiIdentifier("age", TREE, 0),)
    return unblur.audit(release(((0,), (0,), 4), ((1,), (0,), 4), attributes=attributes))


def test_a_single_cell_that_loses_raw_values_is_not_said_to_lose_nothing() -> None:
    audit = raw_values()
    assert all(each.basic for each in audit.classes) and audit.summary.max_bits
    words = check_page(html(audit)).words
    assert "all there is to say" not in words and "cannot lose any" not in words
    assert "All classes are single cells; in 1 of them not all raw data sets remain." in words
    picture = bits_lost(audit, None)
    assert picture is not None and "and 1 of a single one" in picture.caption
    assert "not drawn: 1 class of a single cell, from which nothing is taken away" in picture.caption


def test_figures_say_what_was_published_and_what_remains() -> None:
    found = gather(unblur.audit(release(ONE))).figures
    assert found[0].number == "1 in 7.1"
    assert (
        found[0].text
        == "The 4 records of class 1 were published as one of 4.1·10¹¹ possible raw data sets; 5.8·10¹⁰ remain."
    )
    assert [each.number for each in found] == ["1 in 7.1", "Nobody", "1 in 7.1", "Nobody"]
    public = gather(unblur.audit(release(ONE)), public=True).figures
    assert "class 1" not in public[0].text and public[0].number == "1 in 7.1"


def test_ratio_1_everywhere_is_said_in_words() -> None:
    page = check_page(html(unblur.audit(release(*BASIC))))
    assert "Nothing is taken away from what the labels leave open." in page.words
    assert "All classes are single cells" in page.words
    assert "no class is narrowed down at all" in page.words
    assert "No picture" in page.words


@pytest.mark.parametrize(("bits", "words"), [(133.0, "1.1·10⁴⁰"), (5000.0, "1.4·10¹⁵⁰⁵")])
def test_enormous_ratios_are_written_as_powers(bits: float, words: str) -> None:
    audit = with_bound("exact", bits)
    assert (audit.classes[0].ratio == float("inf")) is (bits > 1024)
    page = check_page(html(audit))
    assert f"1 in {words}" in page.words
    assert f"narrowed down {words}-fold" in page.words
    assert words in markdown(audit)


def test_a_notebook_shows_the_first_screen_alone(full: Audit) -> None:
    page = Page(notebook(full))
    assert judge(full).sentence in page.words
    assert all(each.number in page.words for each in gather(full).figures)
    assert [tag for tag, _ in page.tags if tag in ("html", "svg", "style", "script", "h1")] == []
    assert len(notebook(full)) < 4000


# Findings


def test_no_need_to_act_is_not_said_of_certain_cells() -> None:
    found = [each for _, _, some in gather(unblur.audit(release(*CERTAIN))).advice for each in some]
    assert "Certain cells" in [each.title for each in found]
    assert all("no need to act" not in remedy for each in found for remedy in each.remedies)
    harmless = [each for _, _, some in gather(unblur.audit(release(ONE))).advice for each in some]
    assert any("no need to act" in remedy for each in harmless for remedy in each.remedies)


def test_suppressed_records_have_no_figures_if_none_is_reliable() -> None:
    for audit in (
        unblur.audit(release(*NARROWED, outliers=2)),
        unblur.audit(release(*BASIC, outliers=2, mechanism=Mechanism("unknown"))),
    ):
        for public in (False, True):
            words = gather(audit, public=public).outliers_words
            assert "Nothing is said about where they are" in words
            assert not re.search(r"taken away|1 in|fold|chance", words)
        assert gather(audit).outliers is None
        assert "say nothing about the people" in markdown(audit)


def test_a_replay_that_differs_is_found_in_public_without_numbers(full: Audit) -> None:
    audit = replace(full, replay=Replay(37, 1))
    for text in (Page(html(audit, public=True)).words, markdown(audit, public=True)):
        assert "The release cannot be made again" in text and "✕ found" in text
        assert "37" not in text.replace(audit.release.sha256 or "-", "")
    assert "37 rows differ" in Page(html(audit)).words


def test_no_bar_of_a_public_picture_stands_for_few_classes(full: Audit) -> None:
    bars = [{"low": float(n), "high": n + 1.0, "classes": float(m)} for n, m in enumerate((1, 2, 9, 3, 7, 4))]
    joined = _joined(bars)
    assert [row["classes"] for row in joined] == [12, 14] and (joined[0]["low"], joined[-1]["high"]) == (0, 6)
    assert bits_lost(unblur.audit(release(ONE)), None, public=True) is None
    internal, public = bits_lost(full, None), bits_lost(full, None, public=True)
    assert internal is not None and public is not None and full.outliers is not None
    assert "suppressed records lost" in internal.alternative and "suppressed" not in public.alternative


def test_the_exact_loss_of_the_suppressed_records_is_not_public() -> None:
    audit = unblur.audit(release(*BASIC, outliers=2))
    assert "narrower" in gather(audit).outliers_words
    assert not re.search(r"1 in|%.*%|fold", gather(audit, public=True).outliers_words)


# All classes together


def test_what_all_classes_say_together_is_shown() -> None:
    audit = unblur.audit(release_of(*random_case(1)), attack="joint")
    found = audit.together
    assert found is not None and found.bits is not None and found.bits > 1 and found.certain_records == 8
    for public in (False, True):
        page = check_page(html(audit, public=public))
        assert {"id": "together"} in page.all("section")
        for text in (page.words, markdown(audit, public=public)):
            assert "All classes together" in text and "Class by class there remain" in text
            assert "8 records can be placed in a single cell with certainty" in text
            assert "Certain cells, all classes together" in text
            assert "estimate" not in text.split("All classes together")[-1].split("Suppressed records")[0]
            assert ("Among the others" in text) is not public
        assert "when all are looked at together" in gather(audit, public=public).figures[-1].text
    assert "all classes together place 8 records" in judge(audit).sentence
    alone = unblur.audit(release(ONE))
    assert gather(alone).together is None and "All classes together can say more" in Page(html(alone)).words


def test_an_estimate_and_an_upper_bound_are_called_so() -> None:
    made = release_of(*random_case(1))
    audit = unblur.audit(made)
    result = joint(made, inference_of(audit.mechanism, made, "sound"), exact=False, budget=1)
    told = gather(replace(audit, together=Together(result))).together
    assert told is not None and told.estimated and "(an estimate)" in told.rows[-1][0]
    assert any("an estimate, not a count: between" in each for each in told.words)
    loose = unblur.audit(
        release(ONE, ((1, 1), (0, 2), 4), ((2, 1), (1, 0), 3), mechanism=Mechanism("greedy")), attack="joint"
    )
    upper = gather(loose).together
    assert upper is not None and upper.rows[-1][1].startswith("at most ")
    assert any(each.startswith("At most so many") for each in upper.words)


# Classes, cards, maps


def test_long_tables_fold_and_stay_small() -> None:
    table, config = clinic(6000, k=3)
    for each in config["quasi_identifiers"]:
        each["interval"]["layers"] = 5
    with unblur.anonymize(table, config) as made:
        audit = unblur.audit(made)
    assert len(audit.classes) >= 1000
    text = html(audit)
    assert len(text.encode()) < 3_000_000
    page = check_page(text)
    folds = [each.get("class") for each in page.all("details")].count("long")
    assert folds == -(-(len(audit.classes) - AT_ONCE) // PAGE)
    numbers = Counter(re.findall(r'<tr><th scope="row" class="number">(\d+)</th>', text))
    assert set(numbers.values()) == {1} and len(numbers) == len(audit.classes)
    assert len(html(audit, public=True).encode()) < 200_000


def test_labels_cannot_break_the_page_or_the_table() -> None:
    rows = [[f"{NASTY} {n} " + "long " * 40, f"{NASTY} group {n // 4}", "*"] for n in range(8)]
    attributes = (QuasiIdentifier(f"name {NASTY}", from_rows(rows), 0), QuasiIdentifier("age", TREE, 1))
    audit = unblur.audit(release(((0, 1), (0, 0), 4), ((1, 2), (1, 0), 4), outliers=2, attributes=attributes))
    page = check_page(html(audit))
    assert "<b>bold</b>" in page.words
    check_page(html(audit, public=True))
    lines = [line for line in markdown(audit).splitlines() if line.startswith("|")]
    blocks = re.split(r"\n\n+", "\n".join(markdown(audit).splitlines()))
    for block in blocks:
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines() if line.startswith("|")}
        assert len(widths) <= 1
    assert lines and "<b>" not in markdown(audit)
    assert "&lt;b>" in markdown(audit)


def test_a_card_tells_cells_odds_and_reasons() -> None:
    audit = unblur.audit(release(*CERTAIN))
    card = gather(audit).cards[0]
    assert (card.number, card.size, card.fits) == (2, 4, True)
    assert card.labels == (("glucose", "[0, 40["), ("age", "[0, 10["))
    assert card.columns == ("glucose",)
    assert (card.rows[0].labels, card.rows[0].certain) == (("[10,\xa020[",), True)
    assert card.reasons[0].text == (
        "1 of its 4 cells is empty. Class 1 came before and took everybody in the cells that they share with it."
    )
    assert card.reasons[1].details == ("glucose: exactly 2 in each of [0, 20[ and [20, 40[",)
    words = Page(html(audit)).words
    assert "[10, 20[ certain 0%" in words and "1 cell in which nobody can be." in words


def test_cards_that_would_take_too_long_are_left_bare() -> None:
    audit = unblur.audit(release(*CERTAIN))
    attack = attack_on(audit.release)
    full, bare = (Dealer(audit, attack, left).card(audit.classes[1]) for left in (10**9, 0))
    assert full.rows and not bare.rows
    assert "too long" in bare.note and bare.left == full.left
    assert bare.reasons[0].text.startswith("Class 1 came before")


def test_expected_records_agree_with_the_explanation_of_every_class() -> None:
    compound = 0
    for seed in range(12):
        attack = attack_on(release_of(*random_case(seed)))
        spreader = Spreader(attack, "any")
        names = [each.name for each in attack.release.config.quasi_identifiers]
        for number, each in enumerate(attack.release.classes):
            pieces = spreader.pieces(attack.target(number))
            assert sum(expected for _, expected in pieces) == pytest.approx(each.size)
            found = explain(attack, number, records="any")
            if not found.cells or found.by_block or attack.grid.has_points:
                continue
            compound += found.all_cells > 1
            plane = Plane(0, 1 if len(names) > 1 else None)
            wanted: Counter[tuple[str, str]] = Counter()
            for entry in found.cells:
                key = (entry.labels[names[0]], entry.labels[names[1]] if len(names) > 1 else "")
                wanted[key] += float(entry.odds.expected)  # type: ignore[assignment]
            drawn = plane.project(pieces, spreader.scales)
            rows = spreader.scales[1].labels if len(names) > 1 else ("",)
            for x, across in enumerate(spreader.scales[0].labels):
                for y, up in enumerate(rows):
                    assert drawn[x, y] == pytest.approx(wanted[across, up])
    assert compound > 5


def test_what_takes_too_long_is_spread_evenly_and_said() -> None:
    audit = unblur.audit(release(ONE))
    spreader = Spreader(attack_on(audit.release), "any", left=0)
    pieces = spreader.pieces(spreader.attack.target(0))
    assert spreader.evenly == 1
    assert Plane(0, 1).project(pieces, spreader.scales)[:4, 2:4] == pytest.approx(0.5)


def test_the_alternatives_say_what_stating_more_would_add() -> None:
    audit = unblur.audit(release(ONE, mechanism=None))
    words = Page(html(audit)).words
    assert "No mechanism was stated" in words and "the published algorithm" in words
    assert "bits in all" in words
    assert "✕ no" in words or "✓ yes" in words


def test_the_rules_stand_in_a_table_and_a_picture(full: Audit) -> None:
    assert full.ablation is not None
    rules = gather(full).rules
    assert [each.name.split(":")[0] for each in rules] == ["sum", "overlap", "halves", "sparse"]
    assert rules[1].alone == f"{full.ablation.effects['overlap'].alone:,.1f}"
    assert gather(full).rules_effect is not None
    assert gather(unblur.audit(release(ONE))).rules_effect is None
