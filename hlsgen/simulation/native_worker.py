"""A program that sends frames through a compiled core, in a process that may crash or be ended. It needs only Python.

python native_worker.py LIBRARY RESET_ACTIVE_LOW PATIENCE IN_BYTES,IN_FRAME ... / OUT_BEATS,OUT_BYTES ...

There is a pair for each port. It reads sent0.bin, sent1.bin ..., writes taken0.bin ..., and prints the number of
output beats.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable
from pathlib import Path


class InputWords(ctypes.Structure):
    """Words of an input port, in the layout of native.cpp."""

    _fields_ = [
        ("words", ctypes.c_void_p),
        ("count", ctypes.c_uint64),
        ("frame", ctypes.c_uint64),
        ("moved", ctypes.c_uint64),
        ("bytes", ctypes.c_int),
    ]


class OutputWords(ctypes.Structure):
    """Words of an output port, in the layout of native.cpp."""

    _fields_ = [
        ("words", ctypes.c_void_p),
        ("count", ctypes.c_uint64),
        ("moved", ctypes.c_uint64),
        ("bytes", ctypes.c_int),
    ]


def _pairs(texts: Iterable[str]) -> list[tuple[int, int]]:
    return [(int(a), int(b)) for a, b in (text.split(",") for text in texts)]


def main() -> None:
    """Runs the program with the arguments of the process."""
    library, active_low, patience, *ports = sys.argv[1:]
    inputs, outputs = _pairs(ports[: ports.index("/")]), _pairs(ports[ports.index("/") + 1 :])
    core = ctypes.CDLL(library)
    core.core_open.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(core.core_open(int(active_low), 0))
    input_data = [bytearray(Path(f"sent{n}.bin").read_bytes()) for n in range(len(inputs))]
    output_data = [bytearray(beats * size) for beats, size in outputs]
    into, out = (InputWords * len(inputs))(), (OutputWords * len(outputs))()
    for port, data, (size, frame) in zip(into, input_data, inputs, strict=True):
        port.words = ctypes.addressof((ctypes.c_uint8 * len(data)).from_buffer(data))
        port.count, port.frame, port.moved, port.bytes = len(data) // size, frame, 0, size
    for port, data, (beats, size) in zip(out, output_data, outputs, strict=True):
        port.words = ctypes.addressof((ctypes.c_uint8 * len(data)).from_buffer(data))
        port.count, port.moved, port.bytes = beats, 0, size
    core.core_run(handle, into, len(into), out, len(out), ctypes.c_uint64(int(patience)))
    for n, data in enumerate(output_data):
        Path(f"taken{n}.bin").write_bytes(data)
    print(sum(port.moved for port in out))


if __name__ == "__main__":
    main()
