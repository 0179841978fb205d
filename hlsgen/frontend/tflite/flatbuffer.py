"""Reading of flatbuffers from strangers: every offset is checked, and visits are counted.

A flatbuffer is a graph of tables. A file can refer to one table a million times, so a budget bounds the work, not the
size of the file.
"""

from __future__ import annotations

import struct

import numpy as np

from hlsgen.numerics.fixed import Array

#: Visits of one file: one for each table, each list and each sixteen elements of a list.
MAX_VISITS = 250_000
#: Longest text in bytes. Names of fused layers are those of their parts, one after the other.
MAX_TEXT = 1 << 16


class Malformed(ValueError):
    """The bytes are not a flatbuffer. The message is a sentence."""


class Flatbuffer:
    """The bytes of a file, and the visits that remain."""

    def __init__(self, data: bytes) -> None:
        self.data, self.visits = data, MAX_VISITS

    def spend(self, visits: int) -> None:
        """Count visits. Raises Malformed beyond the budget."""
        self.visits -= visits
        if self.visits < 0:
            raise Malformed(f"the file refers to more than {MAX_VISITS} tables and elements.")

    def root(self) -> Table:
        """The table that the first four bytes refer to."""
        if len(self.data) < 8:
            raise Malformed(f"the file has {len(self.data)} bytes.")
        return Table(self, self.follow(0))

    def follow(self, place: int) -> int:
        """The place that the offset at `place` refers to; four bytes there are inside the file."""
        offset: int = struct.unpack_from("<I", self.data, place)[0]
        if offset == 0 or place + offset + 4 > len(self.data):
            raise Malformed(f"the offset {offset} at byte {place} leads outside the file.")
        return place + offset


class Table:
    """One table. Fields are named by their number in the schema; an absent field has its default."""

    __slots__ = ("_file", "_place", "_slots", "_vtable")

    def __init__(self, file: Flatbuffer, place: int) -> None:
        file.spend(1)
        data = file.data
        vtable = place - int(struct.unpack_from("<i", data, place)[0])
        if vtable < 0 or vtable + 4 > len(data):
            raise Malformed(f"the list of fields of the table at byte {place} is outside the file.")
        size, extent = struct.unpack_from("<HH", data, vtable)
        if size < 4 or size % 2 or vtable + size > len(data) or extent < 4 or place + extent > len(data):
            raise Malformed(f"the table at byte {place} has {size} bytes of field offsets and {extent} of fields.")
        self._file, self._place, self._vtable, self._slots = file, place, vtable, (size - 4) // 2

    def _field(self, number: int, width: int) -> int | None:
        """The place of a field of `width` bytes, or None where the table does not have it."""
        if number >= self._slots:
            return None
        offset: int = struct.unpack_from("<H", self._file.data, self._vtable + 4 + 2 * number)[0]
        if offset == 0:
            return None
        if self._place + offset + width > len(self._file.data):
            raise Malformed(f"field {number} of the table at byte {self._place} is outside the file.")
        return self._place + offset

    def vector(self, number: int, width: int) -> tuple[int, int] | None:
        """(place, elements) of a vector of elements of `width` bytes."""
        field = self._field(number, 4)
        if field is None:
            return None
        place = self._file.follow(field)
        elements: int = struct.unpack_from("<I", self._file.data, place)[0]
        if elements * width > len(self._file.data) - place - 4:
            raise Malformed(f"the vector at byte {place} has {elements} elements, more than the file holds.")
        return place + 4, elements

    def spend(self, visits: int) -> None:
        """Count visits of the file, as `Flatbuffer.spend`."""
        self._file.spend(visits)

    def has(self, number: int) -> bool:
        """True if the table has the field."""
        return self._field(number, 0) is not None

    def integer(self, number: int, kind: str, default: int = 0) -> int:
        """A number of a `struct` kind: b B h H i I q Q."""
        field = self._field(number, struct.calcsize(kind))
        return default if field is None else int(struct.unpack_from("<" + kind, self._file.data, field)[0])

    def real(self, number: int, default: float = 0.0) -> float:
        """A float32."""
        field = self._field(number, 4)
        return default if field is None else float(struct.unpack_from("<f", self._file.data, field)[0])

    def table(self, number: int) -> Table | None:
        """The table that a field refers to."""
        field = self._field(number, 4)
        return None if field is None else Table(self._file, self._file.follow(field))

    def tables(self, number: int) -> list[Table]:
        """The tables of a vector, empty where the field is absent."""
        vector = self.vector(number, 4)
        if vector is None:
            return []
        place, elements = vector
        self.spend(elements)
        return [Table(self._file, self._file.follow(place + 4 * n)) for n in range(elements)]

    def view(self, number: int, dtype: type[np.generic]) -> Array | None:
        """The elements of a vector, shape (n,), not copied, little-endian."""
        kind = np.dtype(dtype).newbyteorder("<")
        vector = self.vector(number, kind.itemsize)
        if vector is None:
            return None
        return np.frombuffer(self._file.data, kind, vector[1], vector[0])

    def integers(self, number: int) -> tuple[int, ...]:
        """The int32 elements of a vector, empty where the field is absent."""
        view = self.view(number, np.int32)
        if view is None:
            return ()
        self.spend(1 + len(view) // 16)
        return tuple(int(element) for element in view)

    def text(self, number: int) -> str:
        """A text, empty where the field is absent. Bytes that are not UTF-8 become escapes."""
        vector = self.vector(number, 1)
        if vector is None:
            return ""
        place, length = vector
        if length > MAX_TEXT:
            raise Malformed(f"the text at byte {place} has {length} bytes; at most {MAX_TEXT} are read.")
        self.spend(1 + length // 16)
        return self._file.data[place : place + length].decode("utf-8", "backslashreplace")
