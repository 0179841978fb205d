"""A program: sends frames through a compiled core, in a process that may crash, or be ended. It needs only Python.

python native_worker.py LIBRARY RESET_ACTIVE_LOW IN_BYTES IN_FRAME OUT_BEATS OUT_BYTES PATIENCE reads sent.bin, writes
taken.bin, and prints the number of output beats that came.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path


def main() -> None:
    library, (active_low, in_bytes, in_frame, out_beats, out_bytes, patience) = sys.argv[1], map(int, sys.argv[2:])
    core = ctypes.CDLL(library)
    core.core_open.restype = ctypes.c_void_p
    core.core_run.restype = ctypes.c_uint64
    handle = ctypes.c_void_p(core.core_open(active_low))
    sent = bytearray(Path("sent.bin").read_bytes())
    taken = bytearray(out_beats * out_bytes)
    got = core.core_run(
        handle, (ctypes.c_uint8 * len(sent)).from_buffer(sent), ctypes.c_uint64(len(sent) // in_bytes), in_bytes,
        ctypes.c_uint64(in_frame), (ctypes.c_uint8 * len(taken)).from_buffer(taken), ctypes.c_uint64(out_beats),
        out_bytes, ctypes.c_uint64(patience),
    )  # fmt: skip
    Path("taken.bin").write_bytes(taken)
    print(got)


if __name__ == "__main__":
    main()
