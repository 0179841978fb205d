"""Packs integer codes into the words of a stream, and unpacks them."""

from __future__ import annotations

import numpy as np

from hlsgen.dataflow.bus import BusLayout
from hlsgen.dataflow.units import Stream
from hlsgen.ir import Encoding, FloatKey
from hlsgen.numerics.fixed import Array


def to_wire(codes: Array, decode: Encoding) -> Array:
    """Values on a stream: the codes, or for float32 keys the float32 bits."""
    if not isinstance(decode, FloatKey):
        return codes
    bits = np.where(codes >= 0x80000000, codes - 0x80000000, 0xFFFFFFFF - codes)
    return np.where(codes < 0x007FFFFF, 0x7FC00000, bits)


def from_wire(words: Array, decode: Encoding) -> Array:
    """Inverse of `to_wire`, for numbers other than NaN."""
    if not isinstance(decode, FloatKey):
        return words
    return np.where(words >= 0x80000000, 0xFFFFFFFF - words, words + 0x80000000)


def pack(codes: Array, order: Array, stream: Stream) -> Array:
    """(frames, *shape) int64 -> uint8 (frames * beats, bytes), little-endian words of the stream.

    Lanes after the last element of a group are 0.
    """
    frames = len(codes)
    flat = codes.reshape(frames, -1)[:, order].reshape(-1, stream.group)
    padded: Array = np.zeros((len(flat), stream.group_beats * stream.lanes), np.int64)
    padded[:, : stream.group] = flat
    rows = padded.reshape(frames * stream.beats, stream.lanes)
    bits = stream.type.bits
    if bits in (8, 16, 32):
        return np.ascontiguousarray(rows.astype(f"<i{bits // 8}")).view(np.uint8)
    planes = ((rows[:, :, None] >> np.arange(bits)) & 1).astype(np.uint8)
    return np.packbits(planes.reshape(len(rows), -1), axis=1, bitorder="little")


def unpack(data: Array, order: Array, stream: Stream, shape: tuple[int, ...]) -> Array:
    """Inverse of `pack`: (frames, *shape) int64."""
    bits = stream.type.bits
    planes = np.unpackbits(data, axis=1, bitorder="little")[:, : stream.bits]
    values = (planes.reshape(len(data), stream.lanes, bits).astype(np.int64) << np.arange(bits)).sum(axis=2)
    if stream.type.signed:
        values -= (values >> (bits - 1)) << bits
    flat = values.reshape(-1, stream.group_beats * stream.lanes)[:, : stream.group].reshape(-1, len(order))
    result: Array = np.empty_like(flat)
    result[:, order] = flat
    return result.reshape(-1, *shape)


def to_bus(data: Array, bus: BusLayout) -> Array:
    """uint8 (frames * beats, bytes) of `pack` -> the words of the bus, uint8 (frames * words, word_bytes)."""
    slots = np.zeros((len(data), bus.slot_bytes), np.uint8)
    slots[:, : data.shape[1]] = data
    frames = slots.reshape(-1, bus.beats * bus.slot_bytes)
    words: Array = np.zeros((len(frames), bus.frame_bytes), np.uint8)
    words[:, : frames.shape[1]] = frames
    return words.reshape(-1, bus.word_bytes)


def from_bus(words: Array, bus: BusLayout) -> Array:
    """Inverse of `to_bus`. Padding is dropped."""
    frames = words.reshape(-1, bus.frame_bytes)[:, : bus.beats * bus.slot_bytes]
    slots = frames.reshape(-1, bus.slot_bytes)
    return np.ascontiguousarray(slots[:, : -(-bus.beat_bits // 8)])


def to_text(data: Array) -> str:
    """Text with one hexadecimal word per line."""
    digits = np.frombuffer(data[:, ::-1].tobytes().hex().encode(), np.uint8).reshape(len(data), 2 * data.shape[1])
    return np.concatenate([digits, np.full((len(data), 1), ord("\n"), np.uint8)], axis=1).tobytes().decode()


def from_text(text: str, bits: int) -> Array:
    """Words of a text written by `to_text`, uint8 (words, bytes). `bits`: bits of a word."""
    size = -(-bits // 8)
    mask = (1 << bits) - 1
    words = [(int(line, 16) & mask).to_bytes(size, "little") for line in text.split()]
    return np.frombuffer(b"".join(words), np.uint8).reshape(len(words), size)
