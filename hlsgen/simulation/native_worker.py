"""A program: sends frames through a compiled core, in a process that may crash, or be ended. It needs only Python.

python native_worker.py LIBRARY RESET_ACTIVE_LOW PATIENCE IN_BYTES,IN_FRAME ... / OUT_BEATS,OUT_BYTES ... has a pair for each
port. It reads sent0.bin, sent1.bin ..., writes taken0.bin ..., and prints the number of output beats that came.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable
from pathlib import Path


class Sent(ctypes.Structure):
    """Words of an input port, as native.cpp has them."""

    _fields_ = [
        ("words", ctypes.c_void_p), ("count", ctypes.c_uint64), ("frame", ctypes.c_uint64), ("moved", ctypes.c_uint64),
        ("bytes", ctypes.c_int),
    ]  # fmt: skip


class Taken(ctypes.Structure):
    """Words of an output port."""

    _fields_ = [
        ("words", ctypes.c_void_p), ("count", ctypes.c_uint64), ("moved", ctypes.c_uint64), ("bytes", ctypes.c_int)
    ]  # fmt: skip


def _pairs(texts: Iterable[str]) -> list[tuple[int, int]]:
    return [(int(a), int(b)) for a, b in (text.split(",") for text in texts)]


def main() -> None:
    library, active_low, patience, *rest = sys.argv[1:]
    inputs, outputs = _pairs(rest[: rest.index("/")]), _pairs(rest[rest.index("/") + 1 :])
    core = ctypes.CDLL(library)
    core.core_open.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(core.core_open(int(active_low), 0))
    sent = [bytearray(Path(f"sent{n}.bin").read_bytes()) for n in range(len(inputs))]
    taken = [bytearray(beats * size) for beats, size in outputs]
    into, out = (Sent * len(inputs))(), (Taken * len(outputs))()
    for own, data, (size, frame) in zip(into, sent, inputs, strict=True):
        own.words = ctypes.addressof((ctypes.c_uint8 * len(data)).from_buffer(data))
        own.count, own.frame, own.moved, own.bytes = len(data) // size, frame, 0, size
    for own, data, (beats, size) in zip(out, taken, outputs, strict=True):
        own.words = ctypes.addressof((ctypes.c_uint8 * len(data)).from_buffer(data))
        own.count, own.moved, own.bytes = beats, 0, size
    core.core_run(handle, into, len(into), out, len(out), ctypes.c_uint64(int(patience)))
    for n, data in enumerate(taken):
        Path(f"taken{n}.bin").write_bytes(data)
    print(sum(own.moved for own in out))


if __name__ == "__main__":
    main()
