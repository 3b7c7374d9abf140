"""The dialect of a CSV file: encoding, separator and quote, told from its beginning."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from unblur.errors import TableError

SEPARATORS = (";", ",", "\t", "|")
_SAMPLE = 1 << 20


@dataclass(frozen=True, slots=True)
class Dialect:
    """How to read a CSV file: `header` holds the names of its columns."""

    encoding: str
    separator: str
    quote: str
    header: tuple[str, ...]


def detect_encoding(path: Path) -> str:
    """Name the encoding: by its byte order mark, else UTF-8 if the bytes are that, else Windows-1252."""
    with path.open("rb") as file:
        start = file.read(4)
        for mark, name in (
            (codecs.BOM_UTF8, "utf-8-sig"),
            (codecs.BOM_UTF16_LE, "utf-16"),
            (codecs.BOM_UTF16_BE, "utf-16"),
        ):
            if start.startswith(mark):
                return name
        file.seek(0)
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            while chunk := file.read(_SAMPLE):
                decoder.decode(chunk)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "cp1252"
    return "utf-8"


def detect_dialect(path: Path, *, encoding: str, columns: Iterable[str] = (), separator: str | None = None) -> Dialect:
    """Tell separator and quote from the first lines; `columns` are names that the header should have."""
    sample = _first_lines(path, encoding)
    if not sample.strip():
        raise TableError(f"{path}: the file is empty; a header line and rows are needed")
    wanted = set(columns)
    candidates = [
        (_fit(rows, wanted), Dialect(encoding, sep, quote, tuple(rows[0])))
        for quote in ('"', "'")
        for sep in ((separator,) if separator else SEPARATORS)
        if (rows := _parse(sample, sep, quote))
    ]
    if not candidates:
        raise TableError(f"{path}: not a CSV file (no separator of ; , tab | gives rows)")
    best = max(fit for fit, _ in candidates)
    return next(dialect for fit, dialect in candidates if fit == best)


def _first_lines(path: Path, encoding: str) -> str:
    with path.open("rb") as file:
        head = file.read(_SAMPLE)
        complete = not file.read(1)
    text = codecs.getincrementaldecoder(encoding)(errors="replace").decode(head)
    if "\0" in text:
        raise TableError(f"{path}: not a text file; CSV, TSV, Parquet and Excel are read")
    return text if complete or "\n" not in text else text[: text.rindex("\n") + 1]


def _parse(sample: str, separator: str, quote: str) -> list[list[str]]:
    try:
        rows = [row for row in csv.reader(io.StringIO(sample), delimiter=separator, quotechar=quote) if row]
    except csv.Error:
        return []
    return rows


def _fit(rows: list[list[str]], wanted: set[str]) -> tuple[int, bool, float, int, int]:
    """Rank a way of reading: it finds the wanted columns, splits most rows like the header, leaves few stray quotes."""
    header, *body = rows
    alike = sum(len(row) == len(header) for row in body) / len(body) if body else 1.0
    stray = sum(cell[:1] in "\"'" and len(cell) > 1 and cell[:1] == cell[-1:] for row in rows for cell in row)
    splits = len(header) > 1 and alike > 0.5
    return len(wanted.intersection(header)), splits, alike, len(header), -stray


def transcode(source: Path, target: Path, *, encoding: str) -> None:
    """Copy a text file as UTF-8, in pieces."""
    try:
        with (
            source.open("r", encoding=encoding, newline="") as reader,
            target.open("w", encoding="utf-8", newline="") as writer,
        ):
            while piece := reader.read(_SAMPLE):
                writer.write(piece)
    except UnicodeError as error:
        raise TableError(f"{source}: not {encoding} text; name the encoding with --encoding") from error
    except LookupError as error:
        raise TableError(f"{source}: there is no encoding {encoding!r}") from error
