"""The output of a project (`data/output.dat`): one code per record and quasi-identifier, and the labels behind them.

The sign bit of the first code of a row says that the record is suppressed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unblur.arx.archive import Archive
from unblur.arx.serialized import StreamError, elements, object_of, text_of, whole
from unblur.labels import ROOT_LABEL

ENTRY = "data/output.dat"
_CODE = np.int32(0x7FFFFFFF)


@dataclass(frozen=True, eq=False)
class Output:
    """The output rows, in the order of the original table: what they show of each quasi-identifier."""

    labels: tuple[tuple[str, ...], ...] = field(repr=False)
    """`labels[j][code]`, for quasi-identifier j."""
    codes: NDArray[np.int32] = field(repr=False)
    """One row per record, one column per quasi-identifier."""
    suppressed: NDArray[np.bool_] = field(repr=False)

    def __len__(self) -> int:
        return len(self.codes)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        stars = (ROOT_LABEL,) * len(self.labels)
        for codes, suppressed in zip(self.codes.tolist(), self.suppressed.tolist(), strict=True):
            yield stars if suppressed else tuple(map(tuple.__getitem__, self.labels, codes))


def read_output(archive: Archive, names: Sequence[str]) -> Output:
    """Read the output of the quasi-identifiers named."""
    if ENTRY not in archive:
        raise archive.error(ENTRY, "the project has no output; anonymize in ARX, then save the project again")
    objects = archive.objects(ENTRY)
    with archive.blaming(ENTRY):
        return _output(objects[0] if objects else None, names)


def _output(found: Any, names: Sequence[str]) -> Output:
    data = object_of(found, "output")
    header = [text_of(name, "a column name") for name in elements(data["header"])]
    if sorted(header) != sorted(names):
        raise StreamError(f"it has {len(header)} columns that are not the {len(names)} quasi-identifiers")
    columns = [header.index(name) for name in names]
    codes = _codes(object_of(data["data"], "matrix"), len(header))
    mapping = elements(object_of(data["dictionary"], "dictionary")["mapping"])
    if len(mapping) != len(header):
        raise StreamError("the dictionary has another number of columns")
    labels = tuple(_labels(mapping[column]) for column in columns)
    plain = (codes & _CODE)[:, columns]
    if any(plain[:, j].max(initial=-1) >= len(known) for j, known in enumerate(labels)):
        raise StreamError("a code has no label")
    return Output(labels, plain, codes[:, 0] < 0)


def _codes(matrix: Any, width: int) -> NDArray[np.int32]:
    rows, columns, array = whole(matrix["rows"], "a size"), whole(matrix["columns"], "a size"), matrix["array"]
    if not isinstance(array, np.ndarray) or array.dtype.kind != "i" or array.itemsize != 4:
        raise StreamError("the matrix is no array of numbers")
    if columns != width or not width or rows < 0 or rows * columns != len(array):
        raise StreamError("the matrix has another size than it says")
    return array.astype(np.int32).reshape(rows, columns)


def _labels(column: Any) -> tuple[str, ...]:
    return tuple(text_of(label, "a label") for label in elements(column))
