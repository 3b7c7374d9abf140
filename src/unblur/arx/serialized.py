"""A strict reader of Java object streams, for the files in which ARX keeps objects: `.ahs` and the `.dat` of projects.

It follows the grammar of the Java Object Serialization Stream Protocol, version 5, and only describes what it finds:
no class is looked up by name and nothing is run, so a hostile file can at most be refused. What it may cost is bounded
before it is spent: nesting, superclasses, and a budget of memory to which every object is charged; an array or a text
is never longer than the bytes that are left.

Why not javaobj-py3 0.6.1, which reads the same files: its readers v1 and v2 take truncated texts and blocks for whole
ones, end deep nesting and a class that is its own superclass with a RecursionError, unpack gzip on their own (a file of
190 kB keeps it busy for minutes) and have no limit on memory; its reader v3 has limits, but needs Python 3.12.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]
"""An array of primitive values."""

MAGIC = b"\xac\xed\x00\x05"
"""How a stream begins: the mark, and version 5 of the protocol."""
DEEPEST = 100
"""How many objects may stand inside each other; ARX's own files need about a dozen."""
MOST_SUPERCLASSES = 32
MOST_MEMORY = 4 << 30
"""How many bytes the objects of one stream may take, by a generous estimate."""

_NULL, _REFERENCE, _CLASS_DESCRIPTION, _OBJECT, _STRING, _ARRAY, _CLASS = range(0x70, 0x77)
_BLOCK, _END_OF_BLOCK, _RESET, _LONG_BLOCK, _EXCEPTION, _LONG_STRING, _PROXY, _ENUM = range(0x77, 0x7F)
_FIRST_HANDLE = 0x7E0000
_WRITE_METHOD, _SERIALIZABLE, _EXTERNALIZABLE, _BLOCK_DATA = 1, 2, 4, 8
_PRIMITIVES = {
    code: np.dtype(form)
    for code, form in {
        "B": ">i1",
        "C": ">u2",
        "D": ">f8",
        "F": ">f4",
        "I": ">i4",
        "J": ">i8",
        "S": ">i2",
        "Z": ">u1",
    }.items()
}
_FORMATS = {
    code: struct.Struct(f">{letter}")
    for code, letter in {"B": "b", "C": "H", "D": "d", "F": "f", "I": "i", "J": "q", "S": "h", "Z": "?"}.items()
}


class StreamError(ValueError):
    """Bytes that are no stream of Java objects, or one beyond the limits; the message names the byte, never content."""


@dataclass(eq=False, slots=True)
class JavaObject:
    """An object as it was written: its class by name, and its fields."""

    class_name: str
    fields: dict[str, Any] = field(default_factory=dict, repr=False)
    """By name; of two private fields of one name, that of the subclass."""
    extra: list[Any] = field(default_factory=list, repr=False)
    """What the class wrote beside its fields; pieces of raw data are `bytes`."""

    def __getitem__(self, name: str) -> Any:
        """Return a field; None if there is none of that name, as in an object of an older version."""
        return self.fields.get(name)


@dataclass(frozen=True, slots=True)
class JavaEnum:
    """A constant of an enumeration."""

    class_name: str
    constant: str


@dataclass(eq=False, slots=True)
class JavaClass:
    """The description of a class: its own fields, and its superclass."""

    name: str
    flags: int = 0
    fields: list[tuple[str, str]] = field(default_factory=list)
    """Type code and name."""
    lineage: tuple[JavaClass, ...] | None = None
    """The class and its superclasses, from the root; None while it is being read."""


def read_stream(data: bytes) -> list[Any]:
    """Read all objects that stand one after the other in a stream."""
    reader = _Reader(data)
    try:
        return reader.contents()
    except (IndexError, struct.error):
        raise StreamError("it ends in the middle of an object") from None
    except RecursionError:
        raise StreamError(f"objects are nested too deeply, {reader.place}") from None


def object_of(value: Any, what: str) -> JavaObject:
    """Take a value for an object, or say what is missing."""
    if not isinstance(value, JavaObject):
        raise StreamError(f"there is no {what}")
    return value


def whole(value: Any, what: str) -> int:
    """Take a value, boxed or not, for a whole number."""
    number = unboxed(value)
    if not isinstance(number, int) or isinstance(number, bool):
        raise StreamError(f"{what} is no whole number")
    return number


def text_of(value: Any, what: str) -> str:
    """Take a value for a text."""
    if not isinstance(value, str):
        raise StreamError(f"{what} is no text")
    return value


def constant(value: Any) -> str:
    """Name a constant of an enumeration; nothing if it is none."""
    return value.constant if isinstance(value, JavaEnum) else ""


def elements(collection: Any) -> list[Any]:
    """List what an array, a list, a set or a queue of Java holds."""
    if collection is None:
        return []
    if isinstance(collection, np.ndarray):
        return list(collection.tolist())
    if isinstance(collection, list):
        return collection
    if isinstance(collection, JavaObject):
        if collection.class_name == "java.util.Arrays$ArrayList":
            return elements(collection["a"])
        if collection.class_name.startswith("java.util."):
            return [each for each in collection.extra if not isinstance(each, bytes)]
    raise StreamError("an object is no list")


def items(mapping: Any) -> Iterator[tuple[Any, Any]]:
    """Go through the keys and values of a map of Java."""
    flat = elements(mapping)
    if len(flat) % 2:
        raise StreamError("a map has a key without a value")
    return zip(flat[::2], flat[1::2], strict=True)


def unboxed(value: Any) -> Any:
    """Take a number or a truth value out of its box (`java.lang.Long` and its kin)."""
    if isinstance(value, JavaObject) and value.class_name.startswith("java.lang."):
        return value["value"]
    return value


class _Reader:
    """Reads one stream from its beginning to its end."""

    def __init__(self, data: bytes) -> None:
        self.data, self.position, self.depth = data, len(MAGIC), 0
        self.handles: list[Any] = []
        self.budget = MOST_MEMORY

    @property
    def left(self) -> int:
        return len(self.data) - self.position

    @property
    def place(self) -> str:
        return f"at byte {self.position}"

    def contents(self) -> list[Any]:
        if not self.data.startswith(MAGIC):
            raise StreamError("it is no stream of Java objects, which would begin with AC ED 00 05")
        found = []
        while self.position < len(self.data):
            code = self.data[self.position]
            self.position += 1
            if code == _RESET:
                self.handles.clear()
            else:
                found.append(self.content(code))
        return found

    # Parts of the stream, smallest first.

    def take(self, count: int) -> bytes:
        if not 0 <= count <= self.left:
            raise StreamError(f"something is longer than what is left of it, {self.place}")
        start = self.position
        self.position += count
        return self.data[start : self.position]

    def number(self, code: str) -> Any:
        form = _FORMATS[code]
        (value,) = form.unpack_from(self.data, self.position)
        self.position += form.size
        return chr(value) if code == "C" else value

    def byte(self) -> int:
        self.position += 1
        return self.data[self.position - 1]

    def text(self, length: int) -> str:
        raw = self.take(length)
        self.spend(64 + 4 * length)
        if raw.isascii():
            return raw.decode("ascii")
        try:
            # Java's own UTF-8: a zero in two bytes, and a character beyond 16 bits as two surrogates.
            halves = raw.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
            return halves.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeError:
            raise StreamError(f"a text is no Unicode, {self.place}") from None

    def short_text(self) -> str:
        return self.text(struct.unpack(">H", self.take(2))[0])

    def spend(self, amount: int) -> None:
        """Charge an object to the budget, before it is made."""
        self.budget -= amount
        if self.budget < 0:
            raise StreamError(f"its objects would take more than {MOST_MEMORY >> 30} GB of memory, {self.place}")

    def reserve(self) -> int:
        """Take the next handle for an object that is still to be made."""
        self.handles.append(None)
        return len(self.handles) - 1

    def keep(self, value: Any) -> Any:
        """Give a value the next handle, by which the stream may refer to it."""
        self.handles.append(value)
        return value

    # Objects.

    def next(self) -> Any:
        return self.content(self.byte())

    def content(self, code: int) -> Any:
        if code == _NULL:
            return None
        if code == _REFERENCE:
            return self.reference()
        if code == _STRING:
            return self.keep(self.short_text())
        if code == _BLOCK:
            return self.block(self.byte())
        self.depth += 1
        if self.depth > DEEPEST:
            raise StreamError(f"more than {DEEPEST} objects stand inside each other, {self.place}")
        value = self.compound(code)
        self.depth -= 1
        return value

    def compound(self, code: int) -> Any:
        if code == _OBJECT:
            return self.object()
        if code == _ARRAY:
            return self.array()
        if code == _ENUM:
            return self.enum()
        if code == _LONG_STRING:
            return self.keep(self.text(self.number("J")))
        if code == _LONG_BLOCK:
            return self.block(self.number("I"))
        if code == _CLASS:
            return self.keep(self.class_description(self.byte()))
        if code == _CLASS_DESCRIPTION:
            return self.class_description(code)
        raise StreamError(f"no object begins with {code:02X}, {self.place}")

    def reference(self) -> Any:
        handle = self.number("I") - _FIRST_HANDLE
        if not 0 <= handle < len(self.handles):
            raise StreamError(f"a reference leads nowhere, {self.place}")
        return self.handles[handle]

    def block(self, length: int) -> bytes:
        self.spend(64 + max(0, length))
        return self.take(length)

    def class_of(self) -> JavaClass:
        described = self.class_description(self.byte())
        if described is None or described.lineage is None:
            raise StreamError(f"an object has no class, {self.place}")
        return described

    def object(self) -> JavaObject:
        described = self.class_of()
        self.spend(400)
        made: JavaObject = self.keep(JavaObject(described.name))
        assert described.lineage is not None
        for each in described.lineage:
            if each.flags & _SERIALIZABLE:
                self.spend(100 * len(each.fields))
                for code, name in each.fields:
                    made.fields[name] = self.number(code) if code in _FORMATS else self.next()
            if each.flags & _WRITE_METHOD or each.flags & _EXTERNALIZABLE:
                made.extra += self.until_end_of_block()
        return made

    def until_end_of_block(self) -> list[Any]:
        found = []
        while (code := self.byte()) != _END_OF_BLOCK:
            self.spend(16)
            found.append(self.content(code))
        return found

    def array(self) -> Any:
        described = self.class_of()
        place = self.reserve()
        length = self.number("I")
        form = _PRIMITIVES.get(described.name[1:])
        if described.name[:1] != "[" or not 0 <= length * (form.itemsize if form else 1) <= self.left:
            raise StreamError(f"an array is longer than what is left of it, {self.place}")
        if form:
            self.handles[place] = self.numbers(length, form)
        else:
            self.fill(self.new_list(place), length)
        return self.handles[place]

    def numbers(self, length: int, form: np.dtype[Any]) -> Numbers:
        self.spend(200 + length * form.itemsize)
        return np.frombuffer(self.take(length * form.itemsize), form)

    def new_list(self, place: int) -> list[Any]:
        made: list[Any] = []
        self.handles[place] = made
        return made

    def fill(self, made: list[Any], length: int) -> None:
        self.spend(100 + 10 * length)
        for _ in range(length):
            made.append(self.next())

    def enum(self) -> JavaEnum:
        described = self.class_of()
        place = self.reserve()
        constant = self.next()
        if not isinstance(constant, str):
            raise StreamError(f"a constant of an enumeration has no name, {self.place}")
        self.spend(200)
        made = JavaEnum(described.name, constant)
        self.handles[place] = made
        return made

    # Classes.

    def class_description(self, code: int) -> JavaClass | None:
        if code == _NULL:
            return None
        if code == _REFERENCE:
            described = self.reference()
            if not isinstance(described, JavaClass) or described.lineage is None:
                raise StreamError(f"a reference leads to no class, {self.place}")
            return described
        if code != _CLASS_DESCRIPTION:
            raise StreamError(f"no class begins with {code:02X}, {self.place}")
        return self.new_class()

    def new_class(self) -> JavaClass:
        made = JavaClass(self.short_text())
        self.take(8)  # the version of the class
        self.keep(made)
        self.spend(400)
        made.flags = self.byte()
        if made.flags & _EXTERNALIZABLE and not made.flags & _BLOCK_DATA:
            raise StreamError(f"an object has a format of its own, {self.place}")
        made.fields = [self.field() for _ in range(struct.unpack(">H", self.take(2))[0])]
        self.depth += 1
        if self.depth > DEEPEST:
            raise StreamError(f"more than {DEEPEST} objects stand inside each other, {self.place}")
        self.until_end_of_block()
        parent = self.class_description(self.byte())
        self.depth -= 1
        lineage = (*(parent.lineage or () if parent else ()), made)
        if len(lineage) > MOST_SUPERCLASSES:
            raise StreamError(f"a class has more than {MOST_SUPERCLASSES} superclasses, {self.place}")
        made.lineage = lineage
        return made

    def field(self) -> tuple[str, str]:
        code = chr(self.byte())
        name = self.short_text()
        self.spend(100)
        if code not in _FORMATS and (code not in "[L" or not isinstance(self.next(), str)):
            raise StreamError(f"a field has no type, {self.place}")
        return code, name
