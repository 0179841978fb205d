"""How the beats of a frame lie in the bytes that a processor sends or receives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlsgen.dataflow.units import Stream
from hlsgen.numerics.fixed import Array


@dataclass(frozen=True)
class BusLayout:
    """Bytes of one beat of the core, of one word of the bus, and of a whole frame.

    A beat is padded with zeros to `slot_bytes`; the beats of a frame follow each other, and zeros fill its last word.
    """

    slot_bytes: int
    word_bytes: int
    frame_bytes: int


def bus_layout(stream: Stream) -> BusLayout:
    """Of a port that carries a stream."""
    slot = word = stream.port_bits // 8
    return BusLayout(slot, word, -(-stream.beats * slot // word) * word)


def to_bus(words: Array, stream: Stream) -> Array:
    """uint8 (frames * beats, bytes of a beat), as the stream codec packs -> uint8 (frames, bytes of a frame)."""
    layout = bus_layout(stream)
    frames = len(words) // stream.beats
    found: Array = np.zeros((frames, layout.frame_bytes), np.uint8)
    slots: Array = np.zeros((frames, stream.beats, layout.slot_bytes), np.uint8)
    slots[:, :, : words.shape[1]] = words.reshape(frames, stream.beats, -1)
    found[:, : stream.beats * layout.slot_bytes] = slots.reshape(frames, -1)
    return found


def from_bus(data: Array, stream: Stream) -> Array:
    """The inverse of `to_bus`."""
    layout = bus_layout(stream)
    slots = data[:, : stream.beats * layout.slot_bytes].reshape(-1, layout.slot_bytes)
    return np.ascontiguousarray(slots[:, : stream.port_bits // 8])
