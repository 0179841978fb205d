"""Simulates a network beat by beat in the compiled kernel: the same times as `BeatNetwork`."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence

import numpy as np

from hlsgen.cycle_model.beat_times import BeatTimes, Windows
from hlsgen.cycle_model.kernel import KernelUnit, Kind
from hlsgen.cycle_model.timing_models import TimingModel
from hlsgen.cycle_model.wiring import Wiring, offers
from hlsgen.dataflow.units import Node
from hlsgen.numerics.fixed import Array

#: Tables of the longest description of a unit.
TABLES = 3


class KernelWire:
    """A stream whose times the kernel holds. The arrays are views, which the next moves of beats invalidate."""

    def __init__(self, name: str, frozen: bool) -> None:
        self.name, self.frozen = name, frozen
        self.producer = self.consumer = self.number = -1
        self.kernel: ctypes.CDLL | None = None
        self.network = 0

    @property
    def due(self) -> Array:
        return self._times(0)

    @property
    def consumed(self) -> Array:
        return self._times(1)

    def _times(self, consumed: int) -> Array:
        assert self.kernel is not None
        at = ctypes.c_void_p()
        count = self.kernel.hg_times(self.network, self.number, consumed, ctypes.byref(at))
        return _view(at, count)


def _view(at: ctypes.c_void_p, count: int) -> Array:
    """The memory of the kernel from an address on, as int64 (count,), without a copy."""
    if not count:
        return np.empty(0, np.int64)
    return np.frombuffer(memoryview((ctypes.c_int64 * count).from_address(at.value or 0)), np.int64)


class KernelNetwork(BeatTimes[KernelWire]):
    """The wires between the units, and the units in the kernel, as an `Engine` of `wiring`."""

    def __init__(self, nodes: Sequence[Node], model: TimingModel, ready: Sequence[bool], kernel: ctypes.CDLL) -> None:
        """`kernel`: the functions of `kernel.compiled`. Raises MemoryError."""
        super().__init__(nodes, Wiring(nodes, KernelWire))
        wires, ins, outs = self.wiring.wires.values(), self.wiring.ins, self.wiring.outs
        self.kernel, self.network = kernel, kernel.hg_new(len(ins), len(wires))
        if not self.network:
            raise MemoryError
        weakref.finalize(self, kernel.hg_free, self.network)
        for number, wire in enumerate(wires):
            wire.kernel, wire.network, wire.number = kernel, self.network, number
        self.units = [model.unit(node) for node in nodes]
        units = [*self.units, *(KernelUnit(Kind.IDLE) for _ in self.wiring.inputs)]
        units += [KernelUnit(Kind.SINK, tables=(ready,)) for _ in self.wiring.sinks]
        #: Keeps the descriptions that the kernel points to.
        self._words = [_words(*parts) for parts in zip(units, ins, outs, strict=True)]
        for unit, words in enumerate(self._words):
            if not kernel.hg_unit(self.network, unit, words.ctypes.data):
                raise MemoryError

    def feed(self, frames: int, interval: int | None, rows: bool = False) -> bool:
        for (wire, _), stream in zip(self.wiring.inputs, self.wiring.enters, strict=True):
            runs = offers(stream, interval, rows)
            for frame in range(self.frames, self.frames + frames):
                for first, step, count in runs:
                    self.kernel.hg_offer(self.network, wire.number, frame * (interval or 0) + first, step, count)
        self.frames += frames
        if not self.kernel.hg_settle(self.network):
            raise MemoryError
        return True

    def alike(self, frames: int, last: int, period: int, cycles: int) -> bool:
        return bool(self.kernel.hg_alike(self.network, frames, last, period, cycles))

    def moved(self) -> int:
        return int(self.kernel.hg_moved(self.network))

    def windows(self, unit: int) -> Windows | None:
        kind, numbers, tables = self.units[unit]
        if kind is not Kind.WINDOWS or not numbers[-1]:
            return None
        at = ctypes.c_void_p()
        count = self.kernel.hg_starts(self.network, unit, ctypes.byref(at))
        return Windows(_view(at, count), tables[1], numbers[0], numbers[2])


def _words(unit: KernelUnit, ins: Sequence[KernelWire], outs: Sequence[KernelWire]) -> Array:
    """The description of a unit for `hg_unit`, int64."""
    kind, numbers, tables = unit
    frozen = any(wire.frozen for wire in outs)
    head = [kind, len(ins), *(wire.number for wire in ins), len(outs), *(wire.number for wire in outs)]
    parts: list[Sequence[int] | Array] = [[*head, frozen, len(numbers), *numbers]]
    for table in (*tables, *[()] * (TABLES - len(tables))):
        parts += [[len(table)], table]
    return np.concatenate([np.asarray(part, np.int64) for part in parts])
