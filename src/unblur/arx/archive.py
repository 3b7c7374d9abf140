"""Zip files from others: what may be unpacked, and how much of it.

A project of ARX is a zip file that somebody may have sent. Before anything is unpacked, every entry is checked: its
name stays inside the archive, there is one of each name, it is not encrypted, it is compressed as ARX does it, and it
is not a bomb. What an entry says of its size is not believed: the limits hold for what comes out of it, too.
"""

from __future__ import annotations

import codecs
import stat
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any
from xml.etree import ElementTree

from unblur.arx.serialized import StreamError, read_stream
from unblur.errors import TableError

MOST_ENTRIES = 10_000
MOST_BYTES = 2 << 30
"""The largest entry, unpacked."""
HIGHEST_RATIO = 200
"""How many times its packed size an entry may have; ARX's own have up to about 20."""
HARMLESS_BYTES = 50 << 20
"""Up to this size, any ratio is accepted."""
MOST_XML_BYTES = 16 << 20
DEEPEST_XML = 32

_PIECE = 1 << 20
_DAMAGES = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError)


class Archive:
    """An open zip file whose entries have been checked; errors name the file and the entry."""

    def __init__(self, path: Path, file: zipfile.ZipFile) -> None:
        self.path, self._file = path, file
        self._entries = {entry.filename: entry for entry in file.infolist()}
        self._check_names()
        for entry in self._entries.values():
            self._check(entry)

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def read(self, name: str) -> bytes:
        """Unpack an entry."""
        return b"".join(self.pieces(name))

    def pieces(self, name: str) -> Iterator[bytes]:
        """Unpack an entry piece by piece."""
        if name not in self._entries:
            raise self.error(name, "there is no such entry; a project saved by ARX has it")
        entry, size = self._entries[name], 0
        try:
            with self._file.open(entry) as file:
                while piece := file.read(_PIECE):
                    size += len(piece)
                    self._check_size(name, size, entry.compress_size)
                    yield piece
        except _DAMAGES:
            raise self.error(name, "the entry is damaged; get the file again") from None
        if size != entry.file_size:
            raise self.error(name, "the entry is shorter than it says; get the file again")

    def xml(self, name: str) -> ElementTree.Element:
        """Unpack and parse an entry of XML; declarations of entities are refused."""
        data = b""
        for piece in self.pieces(name):
            data += piece
            if len(data) > MOST_XML_BYTES:
                raise self.error(name, f"larger than {MOST_XML_BYTES >> 20} MB; ARX writes a few kB")
        try:
            text = decode(data)
            if "<!DOCTYPE" in text or "<!ENTITY" in text:
                raise self.error(name, "it declares a document type or entities, which ARX does not do; refused")
            return ElementTree.fromstring(text, ElementTree.XMLParser(target=_ShallowTree()))
        except (ElementTree.ParseError, ValueError):
            raise self.error(name, "not XML as ARX writes it") from None

    def objects(self, name: str) -> list[Any]:
        """Unpack an entry and read the Java objects in it."""
        data = self.read(name)
        with self.blaming(name):
            return read_stream(data)

    @contextmanager
    def blaming(self, name: str) -> Iterator[None]:
        """Say of which entry an object is not as it should be."""
        try:
            yield
        except StreamError as error:
            raise self.error(name, f"not as ARX 3.9 writes it: {error}") from None

    def error(self, name: str, problem: str) -> TableError:
        """Make an error that names the file and the entry."""
        return TableError(f"{self.path}: {printable(name)}: {problem}")

    def _check_names(self) -> None:
        names = Counter(entry.filename for entry in self._file.infolist())
        if len(names) > MOST_ENTRIES:
            raise TableError(f"{self.path}: {len(names):,} entries are too many; {MOST_ENTRIES:,} are accepted")
        for name, times in names.items():
            if times > 1:
                raise self.error(name, f"{times} entries of this name; one is accepted")
            parts = PurePosixPath(name.replace("\\", "/")).parts
            if not parts or ".." in parts or parts[0] == "/" or ":" in parts[0] or "\0" in name:
                raise self.error(name, "the name of the entry leads out of the archive; refused")

    def _check(self, entry: zipfile.ZipInfo) -> None:
        if entry.flag_bits & 0x41:
            raise self.error(entry.filename, "the entry is encrypted; save the project without encryption")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise self.error(entry.filename, "compressed in another way than ARX does it (deflate)")
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise self.error(entry.filename, "the entry is a link; refused")
        self._check_size(entry.filename, entry.file_size, entry.compress_size)

    def _check_size(self, name: str, size: int, packed: int) -> None:
        if size > MOST_BYTES:
            raise self.error(name, f"larger than {MOST_BYTES >> 30} GB unpacked; refused")
        if size > HARMLESS_BYTES and size > HIGHEST_RATIO * packed:
            raise self.error(name, f"unpacks to more than {HIGHEST_RATIO} times its size, as a zip bomb does; refused")


class _ShallowTree(ElementTree.TreeBuilder):
    """Builds the tree of an XML text, unless elements are nested too deeply."""

    depth = 0

    def start(self, tag: str, attrs: dict[str, str], /) -> ElementTree.Element:
        self.depth += 1
        if self.depth > DEEPEST_XML:
            raise ValueError("nested too deeply")
        return super().start(tag, attrs)

    def end(self, tag: str, /) -> ElementTree.Element:
        self.depth -= 1
        return super().end(tag)


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Open a zip file and check its entries."""
    try:
        file = zipfile.ZipFile(path)
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise TableError(f"{path}: {error.strerror or error}") from None
    except (*_DAMAGES, IndexError, UnicodeError):
        raise TableError(f"{path}: not a project of ARX (.deid), which is a zip file, or it is cut off") from None
    with file:
        yield Archive(path, file)


def decode(data: bytes) -> str:
    """Decode text as ARX writes it, in UTF-8 or (older ones on Windows) in Windows-1252, or as an editor left it."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252")


def printable(name: str) -> str:
    """Show a name from a file that may be hostile, in one line."""
    return name if name.isprintable() and len(name) <= 200 else ascii(name[:200])
