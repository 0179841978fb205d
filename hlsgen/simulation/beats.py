"""Integer codes to the words of a stream and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hlsgen.fixed import Array
from hlsgen.ir import Decode, FloatBits
from hlsgen.schedule import Stream


def to_wire(codes: Array, decode: Decode) -> Array:
    """What the input port carries: the codes, but for float32 the bits themselves."""
    if not isinstance(decode, FloatBits):
        return codes
    bits = np.where(codes >= 0x80000000, codes - 0x80000000, 0xFFFFFFFF - codes)
    return np.where(codes < 0x007FFFFF, 0x7FC00000, bits)


def pack(codes: Array, order: Array, stream: Stream) -> list[int]:
    """(frames, *shape) int64 -> one integer a beat; lanes behind the last element are 0."""
    frames = len(codes)
    flat = codes.reshape(frames, -1)[:, order]
    padded = np.zeros((frames, stream.beats * stream.lanes), np.int64)
    padded[:, : flat.shape[1]] = flat
    rows = padded.reshape(frames * stream.beats, stream.lanes)
    bits = stream.type.bits
    planes = (rows[:, :, None] >> np.arange(bits)) & 1
    data = np.packbits(planes.reshape(len(rows), -1).astype(np.uint8), axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in data]


def unpack(words: list[int], order: Array, stream: Stream, shape: tuple[int, ...]) -> Array:
    """Inverse of `pack`: (frames, *shape) int64."""
    bits, size = stream.type.bits, -(-stream.bits // 8)
    data = np.frombuffer(b"".join(w.to_bytes(size, "little") for w in words), np.uint8).reshape(len(words), size)
    planes = np.unpackbits(data, axis=1, bitorder="little")[:, : stream.bits]
    planes = planes.reshape(len(words), stream.lanes, bits).astype(np.int64)
    values = (planes << np.arange(bits)).sum(axis=2)
    if stream.type.signed:
        values -= (values >> (bits - 1)) << bits
    flat = values.reshape(-1, stream.beats * stream.lanes)[:, : len(order)]
    result: Array = np.empty_like(flat)
    result[:, order] = flat
    return result.reshape(-1, *shape)


def write_words(path: Path, words: list[int]) -> None:
    """One hexadecimal word a line."""
    path.write_text(words_text(words))


def words_text(words: list[int]) -> str:
    return "".join(f"{word:x}\n" for word in words)


def read_words(path: Path) -> list[int]:
    return [int(line, 16) for line in path.read_text().split()]
