"""The dialect of a CSV file: encoding, separator and quote, told from its beginning."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from unblur.errors import TableError

SEPARATORS = (";", ",", "\t", "|")
_SAMPLE = 1 << 20
csv.field_size_limit(1 << 30)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How to read a CSV file: `header` holds the names of its columns."""

    encoding: str
    separator: str
    quote: str
    header: tuple[str, ...]
    skipped_lines: int = 0
    """How many lines stand before the header: blank ones, or `sep=;` as Excel writes it."""
    even_lines: bool = True
    """Whether all lines of the beginning end alike."""


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


def detect_dialect(path: Path, *, encoding: str, columns: Iterable[str] = ()) -> Dialect:
    """Tell separator and quote from the first lines; `columns` are names that the header should have."""
    sample = _first_lines(path, encoding)
    text = sample.lstrip("\r\n")
    if not text.strip():
        raise TableError(f"{path}: the file is empty; a header line and rows are needed")
    if "\r" in text and "\n" not in text:
        raise TableError(f"{path}: lines end with CR alone; save the file with LF or CRLF")
    separators: Iterable[str] = SEPARATORS
    if told := re.match(r"sep=(.)\r?\n", text):
        separators, text = told[1], text[told.end() :]
    skipped = len(sample[: len(sample) - len(text)].splitlines())
    even = "\r\n" not in text or not re.search(r"(?<!\r)\n", text)
    quotes = "'\"" if _in_apostrophes(text.splitlines()[0]) else '"'
    wanted = set(columns)
    candidates = [
        (_fit(rows, wanted), Dialect(encoding, separator, quote, tuple(rows[0]), skipped, even))
        for quote in quotes
        for separator in separators
        if (rows := _parse(text, separator, quote))
    ]
    if not candidates:
        raise TableError(f"{path}: not a CSV file (no separator of ; , tab | gives rows)")
    best = max(fit for fit, _ in candidates)
    return next(dialect for fit, dialect in candidates if fit == best)


def _in_apostrophes(header: str) -> bool:
    """Whether a header line is quoted with apostrophes; a cell such as 't Hooft says nothing about quotes."""
    return len(header) > 2 and header.startswith("'") and header.rstrip().endswith("'")


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


def _fit(rows: list[list[str]], wanted: set[str]) -> tuple[int, bool, float, int]:
    """Rank a way of reading: it finds the wanted columns, and splits most rows like the header."""
    header, *body = rows
    alike = sum(len(row) == len(header) for row in body) / len(body) if body else 1.0
    return len(wanted.intersection(header)), len(header) > 1 and alike > 0.5, alike, len(header)


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
