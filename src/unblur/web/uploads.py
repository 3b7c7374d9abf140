"""Forms and files from the browser, written as they arrive into a private folder.

What the client calls a file is shown to people and used for nothing else: files get names of our own.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO
from urllib.parse import parse_qsl

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from unblur.errors import UnblurError

MOST_PARTS = 5_000
MOST_TEXT = 1 << 20
"""How many bytes the fields of a form may have in all, files not counted."""
LONGEST_NAME = 120


class UploadError(UnblurError):
    """A form or a file that is not accepted."""

    def __init__(self, message: str, *, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Upload:
    """A file that a user has chosen."""

    name: str
    """What the user calls it: for people to read, never a path."""
    path: Path
    size: int


@dataclass
class Form:
    """What a form was filled in with."""

    fields: dict[str, str] = field(default_factory=dict)
    """Of several values of one name, all, with commas between them."""
    files: dict[str, Upload] = field(default_factory=dict)

    def add(self, name: str, value: str) -> None:
        """Note the value of a field."""
        self.fields[name] = f"{self.fields[name]},{value}" if name in self.fields else value

    def discard(self) -> None:
        """Remove the files."""
        for each in self.files.values():
            each.path.unlink(missing_ok=True)


async def receive(kind: str, stream: AsyncIterator[bytes], folder: Path, *, limit: int) -> Form:
    """Read a form of the content type `kind`; its files go into `folder` and may have `limit` bytes in all."""
    media, options = parse_options_header(kind)
    if media == b"application/x-www-form-urlencoded":
        return await _receive_text(stream)
    if media != b"multipart/form-data" or not options.get(b"boundary"):
        raise UploadError("this is not a form of this page", status=415)
    parts = _Parts(folder, limit)
    try:
        parser = MultipartParser(
            options[b"boundary"],
            {
                "on_part_begin": parts.begin,
                "on_header_field": parts.header_name,
                "on_header_value": parts.header_value,
                "on_header_end": parts.header_end,
                "on_headers_finished": parts.open,
                "on_part_data": parts.write,
                "on_part_end": parts.close,
                "on_end": parts.end,
            },
        )
        async for piece in stream:
            # After an excess the rest is read and thrown away: a browser that still sends would not see our answer.
            parser.write(piece)
        parts.check()
    except BaseException as error:
        parts.discard()
        if isinstance(error, FormParserError):
            raise UploadError("the form could not be read; send it again") from None
        if isinstance(error, OSError):
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            reason = "no space is left for temporary files" if full else "the file could not be stored"
            raise UploadError(reason, status=507) from None
        raise
    return parts.form


async def _receive_text(stream: AsyncIterator[bytes]) -> Form:
    text = b""
    async for piece in stream:
        text += piece
        if len(text) > MOST_TEXT:
            raise UploadError("the form is too long", status=413)
    form = Form()
    try:
        pairs = parse_qsl(text.decode(), keep_blank_values=True, max_num_fields=MOST_PARTS)
    except ValueError:
        raise UploadError("the form could not be read; send it again") from None
    for name, value in pairs:
        form.add(name, value)
    return form


class _Parts:
    """The parts of a form, as the parser finds them."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.form = Form()
        self._folder, self._limit = folder, limit
        self._parts = self._text = self._bytes = 0
        self._complete = False
        self._headers: dict[str, str] = {}
        self._header = [b"", b""]
        self._name, self._value = "", b""
        self._file: BinaryIO | None = None

    def begin(self) -> None:
        self._headers, self._header = {}, [b"", b""]
        self._name, self._value = "", b""
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise UploadError("the form has too many fields", status=413)

    def header_name(self, data: bytes, start: int, end: int) -> None:
        self._header[0] += data[start:end]

    def header_value(self, data: bytes, start: int, end: int) -> None:
        self._header[1] += data[start:end]

    def header_end(self) -> None:
        self._headers[self._header[0].decode("latin-1").lower()] = self._header[1].decode("utf-8", "replace")
        self._header = [b"", b""]

    def open(self) -> None:
        _, options = parse_options_header(self._headers.get("content-disposition", ""))
        self._name = options.get(b"name", b"").decode("utf-8", "replace")
        client = options.get(b"filename", b"").decode("utf-8", "replace")
        if not client:
            return
        path = self._folder / f"upload-{secrets.token_hex(8)}"
        self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        self.form.files[self._name] = Upload(shown_name(client), path, 0)

    def write(self, data: bytes, start: int, end: int) -> None:
        if self._file is None:
            self._text += end - start
            if self._text > MOST_TEXT:
                raise UploadError("the form is too long", status=413)
            self._value += data[start:end]
            return
        self._bytes += end - start
        if self._bytes <= self._limit:
            self._file.write(data[start:end])

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            stored = self.form.files[self._name]
            self.form.files[self._name] = Upload(stored.name, stored.path, stored.path.stat().st_size)
        elif "filename=" not in self._headers.get("content-disposition", ""):
            self.form.add(self._name, self._value.decode("utf-8", "replace"))

    def end(self) -> None:
        self._complete = True

    def check(self) -> None:
        """Refuse what is too large, or was cut off."""
        if self._bytes > self._limit:
            raise UploadError(too_large(self._limit), status=413)
        if not self._complete:
            raise UploadError("the upload was cut off; send it again")

    def discard(self) -> None:
        if self._file is not None:
            self._file.close()
        self.form.discard()


def too_large(limit: int) -> str:
    """Say that files are too large, and what to do."""
    return (
        f"the files are larger than {readable_size(limit)}, the limit of this page; start it with a higher one "
        "(unblur serve --limit), or use the command line (unblur audit), which has none"
    )


def readable_size(size: int) -> str:
    """Write a number of bytes for people.

    >>> readable_size(500), readable_size(92_082), readable_size(3 << 29)
    ('500 bytes', '92 kB', '1.6 GB')
    """
    if size < 1_000:
        return f"{size} bytes"
    for unit, worth in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= worth:
            amount = size / worth
            return f"{amount:.1f} {unit}" if amount < 10 and unit != "kB" else f"{amount:,.0f} {unit}"
    raise AssertionError


def shown_name(client: str) -> str:
    """Take of a client's file name what can be shown: its last part, in one line, not too long.

    >>> shown_name("../../etc/passwd"), shown_name("C:\\\\Users\\\\me\\\\a.csv"), shown_name("a" * 200)[-5:]
    ('passwd', 'a.csv', 'aaaa…')
    """
    last = client.replace("\\", "/").rsplit("/", 1)[-1]
    printed = "".join(letter if letter.isprintable() else "?" for letter in last) or "file"
    return printed if len(printed) <= LONGEST_NAME else f"{printed[: LONGEST_NAME - 1]}…"


def names_of(uploads: Mapping[str, Upload]) -> dict[str, str]:
    """What users call the files behind paths."""
    return {str(each.path): each.name for each in uploads.values()}
