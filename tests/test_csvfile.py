from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from unblur.csvfile import detect_dialect, detect_encoding
from unblur.errors import TableError

Write = Callable[[str, str | bytes], Path]


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        ("a;b\nä;ö\n".encode(), "utf-8"),
        ("a;b\nä;ö\n".encode("utf-8-sig"), "utf-8-sig"),
        ("a;b\nä;ö\n".encode("utf-16"), "utf-16"),
        ("a;b\nä;ö\n".encode("cp1252"), "cp1252"),
        (("a;b\n" + "x;y\n" * 400_000 + "ä;ö\n").encode("cp1252"), "cp1252"),
    ],
)
def test_the_encoding_is_told_from_the_bytes(write: Write, content: bytes, encoding: str) -> None:
    assert detect_encoding(write("t.csv", content)) == encoding


@pytest.mark.parametrize(
    ("text", "separator", "header"),
    [
        ("a,b\n1,2\n", ",", ("a", "b")),
        ("a;b\n1;2\n", ";", ("a", "b")),
        ("a\tb\n1\t2\n", "\t", ("a", "b")),
        ("a|b\n1|2\n", "|", ("a", "b")),
        ("only\n1\n", ";", ("only",)),
        ("a;b\n[1, 5[;[2, 6[\n*;*\n", ";", ("a", "b")),
        ('a,b\n"[1, 5[","[2, 6["\n', ",", ("a", "b")),
        ("name;note\nx;1,5\ny;2,5\n", ";", ("name", "note")),
        ('"a";"b;c"\n1;2\n', ";", ("a", "b;c")),
        ("'a';'b;c'\n'1';'2'\n", ";", ("a", "b;c")),
    ],
)
def test_separator_quote_and_header_are_told_from_the_first_lines(
    write: Write, text: str, separator: str, header: tuple[str, ...]
) -> None:
    dialect = detect_dialect(write("t.csv", text), encoding="utf-8")
    assert (dialect.separator, dialect.header) == (separator, header)


def test_the_names_in_the_config_decide_where_the_file_could_be_read_in_two_ways(write: Write) -> None:
    path = write("t.csv", "a,b;c\n1,2;3\n")
    assert detect_dialect(path, encoding="utf-8", columns=["c"]).separator == ";"
    assert detect_dialect(path, encoding="utf-8", columns=["a"]).separator == ","


@pytest.mark.parametrize(("content", "message"), [(b"\n \n", "empty"), (b"a;b\n\0\1\2", "not a text file")])
def test_what_is_no_csv_is_refused(write: Write, content: bytes, message: str) -> None:
    with pytest.raises(TableError, match=message):
        detect_dialect(write("t.csv", content), encoding="utf-8")
