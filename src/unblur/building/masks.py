"""Hierarchies of codes by masking: 81931, 8193*, 819**, 81***, 8****, and the root `*`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import product
from math import prod
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Literal

from unblur.building.drafts import Draft, draft
from unblur.building.profiling import MOST_DISTINCT, Codes, Column, profile_codes
from unblur.errors import HierarchyError, TableError
from unblur.hierarchy import CategoryHierarchy, from_rows
from unblur.labels import ROOT_LABEL

Side = Literal["left", "right"]


def build_mask(column: Column, *, mask_from: Side = "right", pad: str | None = None) -> Draft:
    """Make a hierarchy of the codes of a column; `pad` fills shorter codes on the left, as in labels only."""
    found = profile_codes(column)
    length = _common_length(found, pad)
    rows = [[code, *masks(code.rjust(length, pad or " "), 1, mask_from)] for code in found.codes]
    notes = ["the file lists the codes that occur in the table; it should not be published with the release"]
    return draft(column, from_rows(rows), finest_layer=0, notes=notes)


def masks(code: str, finest: int, mask_from: Side) -> list[str]:
    """List the labels above a code, beginning with the one that masks `finest` characters.

    >>> masks("81931", 1, "right")
    ['8193*', '819**', '81***', '8****', '*']
    """
    return [mask(code, hidden, mask_from) for hidden in range(finest, len(code))] + [ROOT_LABEL]


def mask(code: str, hidden: int, mask_from: Side) -> str:
    """Mask some characters of a code, from one side."""
    stars = ROOT_LABEL * hidden
    return code[: len(code) - hidden] + stars if mask_from == "right" else stars + code[hidden:]


def infer_masks(where: str, labels: Iterable[str]) -> tuple[CategoryHierarchy, int, list[str]]:
    """Guess the hierarchy behind labels such as 819**: the tree, its finest published layer, and what is assumed."""
    seen = sorted({label for label in labels if label.strip(ROOT_LABEL)})
    length = _one_length(where, seen)
    mask_from = _side(where, seen)
    finest = min(label.count(ROOT_LABEL) for label in seen)
    alphabets = _alphabets(seen, length)
    count = prod(map(len, alphabets))
    if count > MOST_DISTINCT:
        raise HierarchyError(
            f"{where}: {length} characters make {count:,} possible codes, too many to list; "
            "write a hierarchy file of the codes that exist"
        )
    rows = [[code, *masks(code, max(finest, 1), mask_from)] for code in map("".join, product(*alphabets))]
    notes = [
        f"all {count:,} codes of the characters that may stand in each place are listed, whether they exist or not"
    ]
    return from_rows(rows), min(finest, 1), notes


def is_mask(label: str) -> bool:
    """Tell whether a label is a code with some characters masked on one side."""
    visible = label.strip(ROOT_LABEL)
    one_side = not (label.startswith(ROOT_LABEL) and label.endswith(ROOT_LABEL))
    return bool(visible) and ROOT_LABEL in label and ROOT_LABEL not in visible and one_side


def _common_length(found: Codes, pad: str | None) -> int:
    lengths = Counter(map(len, found.codes))
    if len(lengths) > 1 and pad is None:
        counts = ", ".join(f"{count:,} of {length} characters" for length, count in sorted(lengths.items()))
        hint = "; --pad 0 puts back leading zeros" if all(code.isdigit() for code in found.codes) else ""
        raise TableError(f"{found.column.where}: codes of different length cannot be masked alike ({counts}){hint}")
    return max(lengths)


def _one_length(where: str, labels: Sequence[str]) -> int:
    lengths = Counter(map(len, labels))
    if len(lengths) > 1:
        counts = ", ".join(f"{count:,} of {length} characters" for length, count in sorted(lengths.items()))
        raise HierarchyError(f"{where}: masks of different length ({counts}); all labels must be equally long")
    return max(lengths)


def _side(where: str, labels: Sequence[str]) -> Side:
    left, right = (
        next((label for label in labels if is_mask(label) and ends(label, ROOT_LABEL)), None)
        for ends in (str.startswith, str.endswith)
    )
    if left and right:
        raise HierarchyError(f"{where}: {left} is masked from the left, but {right} from the right")
    return "left" if left else "right"


def _alphabets(labels: Sequence[str], length: int) -> list[str]:
    """Guess which characters may stand in each place: all digits or letters if one is seen there.

    A place that is masked in every label may hold whatever the others may.
    """
    seen = [_widen({label[place] for label in labels} - {ROOT_LABEL}) for place in range(length)]
    anything = "".join(sorted(set("".join(seen))))
    return [alphabet or anything for alphabet in seen]


def _widen(characters: set[str]) -> str:
    for kind in (digits, ascii_uppercase, ascii_lowercase):
        if characters & set(kind):
            characters = characters | set(kind)
    return "".join(sorted(characters))
