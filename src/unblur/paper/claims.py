"""What the paper's evaluation claims, in our words: each is to be checked against data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """A statement that data can bear out or not."""

    id: str
    claim: str
    where: tuple[str, ...]
    """Sections, tables and figures of the paper."""


CLAIMS = (
    Claim(
        "basic-share-falls",
        "the larger k, the smaller the share of classes that are a single cell",
        ("Section 5.1", "Figure 5"),
    ),
    Claim(
        "basic-most-at-small-k",
        "at small k, most classes are a single cell",
        ("Section 5.1", "Figure 5"),
    ),
    Claim(
        "basic-share-falls-faster-in-clinic",
        "that share falls faster in the smaller data set (clinic) than in the larger one (HCUP)",
        ("Section 5.1", "Figure 5"),
    ),
    Claim(
        "clinic-halves-at-8",
        "in the clinic data, single-cell and compound classes are about as many at k = 8",
        ("Section 5.1", "Figure 5"),
    ),
    Claim(
        "class-ratio-grows-with-k",
        "for classes, the ratio grows with k, whatever the number of attributes",
        ("Section 5.2", "Table 2"),
    ),
    Claim(
        "outlier-ratio-grows-with-k",
        "for outliers, the ratio grows with k, whatever the number of attributes",
        ("Section 5.2", "Table 3"),
    ),
    Claim(
        "class-ratio-grows-with-attributes",
        "for classes, the ratio grows with the number of attributes",
        ("Section 5.2", "Table 2"),
    ),
    Claim(
        "outlier-ratio-not-with-attributes",
        "for outliers, the ratio does not always grow with the number of attributes",
        ("Section 5.2", "Table 3"),
    ),
    Claim(
        "segments-grow-with-k",
        "the larger k, the more cells a class spans, and the more of them overlap with other classes",
        ("Section 5.2", "Section 5.2, run time"),
    ),
    Claim(
        "covered-share-falls-with-attributes",
        "with more attributes, classes cover a smaller share of the grid, so overlaps tell less about outliers",
        ("Section 5.2",),
    ),
    Claim(
        "few-outliers-no-halves",
        "outliers are often fewer than k, and then the rule of halves says nothing about them",
        ("Section 5.2", "Appendix, outliers"),
    ),
    Claim(
        "combinations-grow-with-k",
        "the number of assignments of records to cells that remain grows with k",
        ("Section 5.2", "Table 5"),
    ),
    Claim(
        "combinations-grow-with-attributes",
        "the number of assignments of records to cells that remain grows with the number of attributes",
        ("Section 5.2", "Table 5"),
    ),
    Claim(
        "combinations-far-below-label",
        "the assignments that remain are far fewer than the values that the label of the class allows",
        ("Section 5.2", "Table 5"),
    ),
    Claim(
        "class-time-grows-with-k",
        "for classes, run time grows with k",
        ("Section 5.2, run time", "Table 6"),
    ),
    Claim(
        "class-time-grows-with-attributes",
        "for classes, run time grows with the number of attributes",
        ("Section 5.2, run time", "Table 6"),
    ),
    Claim(
        "outlier-time-not-with-k",
        "for outliers, run time does not steadily grow with k",
        ("Appendix, run time", "Table 7"),
    ),
    Claim(
        "outlier-time-grows-with-attributes",
        "for outliers, run time grows with the number of attributes",
        ("Appendix, run time", "Table 7"),
    ),
    Claim(
        "one-valid-assignment",
        "of the assignments that remain for a class, just one fits the table",
        ("Section 6",),
    ),
    Claim(
        "singled-out-20-to-90",
        "in about 20% to 90% of the classes, depending on the setting, some record is alone in its cell",
        ("Section 6", "Table 4"),
    ),
    Claim(
        "several-singled-out",
        "one class may single out several records",
        ("Section 6", "Table 4"),
    ),
    Claim(
        "lone-record-is-singled-out",
        "whenever the fitting assignment puts one record in a cell, that record is the only one of the table there",
        ("Section 6", "Table 4"),
    ),
)

CLAIM: Mapping[str, Claim] = {each.id: each for each in CLAIMS}
