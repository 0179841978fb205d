"""Reads images of 28x28 pixels: PNG files with 8 bits of gray, white on black."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

SIZE = 28  # pixels


def read_png(path: Path) -> Array:
    """The pixels, uint8 (28, 28). Ends the program for other files."""
    data = path.read_bytes()
    chunks: dict[bytes, bytes] = {}
    position = 8
    while position + 8 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, position)
        chunks[kind] = chunks.get(kind, b"") + data[position + 8 : position + 8 + length]
        position += 12 + length
    if chunks.get(b"IHDR") != struct.pack(">IIBBBBB", SIZE, SIZE, 8, 0, 0, 0, 0):
        raise SystemExit(f"{path}: needs a PNG file of {SIZE}x{SIZE} pixels with 8 bits of gray, not interlaced")
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(SIZE, SIZE + 1)
    pixels = np.zeros((SIZE + 1, SIZE + 1), np.int64)  # with a row above and a column before
    for y in range(SIZE):
        for x in range(SIZE):
            left, up, corner = pixels[y + 1, x], pixels[y, x + 1], pixels[y, x]
            predicted = (0, left, up, (left + up) // 2, _paeth(left, up, corner))[rows[y, 0]]
            pixels[y + 1, x + 1] = (int(rows[y, x + 1]) + predicted) % 256
    return pixels[1:, 1:].astype(np.uint8)


def _paeth(left: int, up: int, corner: int) -> int:
    """Of three pixels, the one that is nearest to left + up - corner."""
    return min((left, up, corner), key=lambda pixel: abs(left + up - corner - pixel))
