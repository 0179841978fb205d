"""Compiles the kernel `beats.c`, which simulates beat by beat as `beat_network` does, some fifty times as fast.

It is compiled into a temporary folder in each run of the program, and only when simulations take long: a compiler
needs half a second. If there is no C compiler, or it fails, Python computes the same times.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from hlsgen.numerics.fixed import Array

#: Beats from which on compiling takes less time than simulating in Python, and the usual frames of a simulation.
WORTH, FRAMES = 200_000, 4
#: Programs that compile C, and the longest time they may take, in seconds.
_COMPILERS, _SECONDS = ("cc", "gcc", "clang"), 60
_FLAGS = ("-O2", "-shared", "-fPIC")


class Kind(IntEnum):
    """The kinds of units of `beats.c`, in its order."""

    IDLE = 0
    SINK = 1
    PIPELINE = 2
    JOIN = 3
    FIFO = 4
    WIDTH = 5
    FORK = 6
    ROUTE = 7
    KEEP = 8
    WINDOWS = 9
    MATRIX = 10
    SINGLE = 11
    ROWS = 12
    SUMS = 13
    BLOCKS = 14


class KernelUnit(NamedTuple):
    """A unit as the kernel knows it: the meaning of numbers and tables is stated beside each kind in `beats.c`."""

    kind: Kind
    numbers: tuple[int, ...] = ()
    tables: tuple[Sequence[int] | Array, ...] = ()


class Demand:
    """Counts the beats that simulations of this process are about to move."""

    beats = 0


def kernel(beats: int) -> ctypes.CDLL | None:
    """The compiled simulator, or None while Python is fast enough, and always without a C compiler.

    `beats`: beats of a frame in the network to simulate. They count towards the work that makes compiling worthwhile.
    """
    Demand.beats += FRAMES * beats
    return compiled() if Demand.beats >= WORTH else None


@lru_cache(maxsize=1)
def compiled() -> ctypes.CDLL | None:
    """The functions of the kernel, or None: there is no C compiler, or its result cannot be loaded."""
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if compiler is None:
        return None
    source = resources.files("hlsgen.cycle_model").joinpath("beats.c")
    with tempfile.TemporaryDirectory(prefix="hlsgen_") as folder, resources.as_file(source) as file:
        library = Path(folder, "beats.so")
        try:
            subprocess.run(
                [compiler, *_FLAGS, str(file), "-o", str(library)], capture_output=True, check=True, timeout=_SECONDS
            )
            functions = ctypes.CDLL(str(library))
        except (OSError, subprocess.SubprocessError):
            return None
    return _typed(functions)


def _typed(functions: ctypes.CDLL) -> ctypes.CDLL:
    """The functions with the types of their arguments and results."""
    word, pointer = ctypes.c_int64, ctypes.c_void_p
    times = ctypes.POINTER(ctypes.c_void_p)
    for name, result, *arguments in (
        ("new", pointer, word, word),
        ("free", None, pointer),
        ("unit", ctypes.c_int, pointer, word, pointer),
        ("offer", None, pointer, word, word, word, word),
        ("settle", ctypes.c_int, pointer),
        ("times", word, pointer, word, word, times),
        ("moved", word, pointer),
        ("starts", word, pointer, word, times),
        ("alike", ctypes.c_int, pointer, word, word, word, word),
    ):
        function = getattr(functions, f"hg_{name}")
        function.restype, function.argtypes = result, arguments
    return functions
