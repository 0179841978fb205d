"""Proves where every element goes: the element of a tensor that each lane of each beat of a frame carries.

Each element that a layer computes has a number of its own. A layer that only moves elements (reshape, slice,
repetition, border, concatenation) makes no new numbers. A stream is right if the right numbers are in the right places,
however the hardware moved them there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlsgen import ir
from hlsgen.certify.input_codes import input_codes
from hlsgen.certify.netlist_reader import Cell, broken
from hlsgen.numerics.fixed import Array, IntType

#: Number of a lane with unknown value, and of an empty lane that is 0.
ANYTHING, EMPTY = -1, -2
#: The constant code c of a border has the number _CONSTANTS + c.
_CONSTANTS = -(1 << 40)


#: Maximum number of elements a frame, empty lanes included.
_MAX_ELEMENTS = 1 << 27


def check_size(cell: Cell, count: int) -> None:
    """Reject a stream with too many elements a frame, before memory is allocated for it. Raises HG055."""
    if count > _MAX_ELEMENTS:
        raise broken(cell.name, f"it would send {count} elements a frame; the maximum is {_MAX_ELEMENTS}.")


def constant_element(code: int) -> int:
    """The number of an element that is a constant code."""
    return _CONSTANTS + code


@dataclass(frozen=True, eq=False)
class StreamContents:
    """Contents of a stream. `elements`: int64 (beats, lanes) numbers; each has `bits` bits and a code in lo..hi.

    `units`: the units of an unfinished function that the elements have passed. `operands`: both streams of a join.
    """

    elements: Array
    bits: int
    lo: int
    hi: int
    units: tuple[Cell, ...] = ()
    operands: tuple[StreamContents, StreamContents] | None = None

    @property
    def beats(self) -> int:
        return len(self.elements)

    @property
    def lanes(self) -> int:
        return int(self.elements.shape[1])

    @property
    def width(self) -> int:
        return self.lanes * self.bits

    @property
    def filled(self) -> Array:
        """(beats, lanes): True for lanes that hold an element."""
        return np.asarray((self.elements != ANYTHING) & (self.elements != EMPTY))

    def computed(self, numbers: Array, type_: IntType) -> StreamContents:
        """The stream after a unit that computes one new element for each old one."""
        elements = np.full(self.elements.shape, ANYTHING)
        elements[self.filled] = numbers
        return StreamContents(elements, type_.bits, type_.lo, type_.hi)


class Elements:
    """The numbers of all elements of a graph. `numbers[i]`: the numbers of value i, int64 (size,), row-major.

    `low`, `high`: the range of codes of each number, int64.
    """

    def __init__(self, graph: ir.Graph) -> None:
        self.graph = graph
        self.numbers: list[Array] = []
        self.starts: list[tuple[int, int]] = []  # first number of a value, and the value
        self.next = 0
        self._ends: list[tuple[Array, Array]] = []
        for i, value in enumerate([graph.input, *(layer.result for layer in graph.layers)]):
            numbers = self._moved(i - 1) if i else None
            if numbers is None:
                self.starts.append((self.next, i))
                numbers = np.arange(self.next, self.next + value.size)
                self.next += value.size
                self._append_range(value.size, value.type)
            self.numbers.append(numbers)
        for _, offset, value in graph.streamed_inputs:  # numbers of the input are the first ones
            low, high = (end[offset : offset + value.size] for end in self._ends[0])
            low[:], high[:] = value.type.lo, value.type.hi
        self.low, self.high = (np.concatenate(ends) for ends in zip(*self._ends, strict=True))
        ends_of_input = input_codes(graph)
        if ends_of_input is not None:
            self.limit(0, *ends_of_input)

    def _append_range(self, count: int, type_: IntType) -> None:
        self._ends.append((np.full(count, type_.lo), np.full(count, type_.hi)))

    def _moved(self, i: int) -> Array | None:
        """The numbers after a layer that only moves elements, or None after a layer that computes."""
        layer = self.graph.layers[i]
        match layer:
            case ir.View(op=op, source=source):
                x = self.numbers[layer.inputs[0]].reshape(source.shape)
                return np.asarray((x.transpose(op.perm) if isinstance(op, ir.Transpose) else x).ravel())
            case ir.StreamedInput(offset=offset, result=result):
                return self.numbers[0][offset : offset + result.size]
            case ir.StreamedOutputs():
                return np.concatenate([self.numbers[j] for j in layer.inputs])
            case ir.Concatenation(axis=axis, sources=sources):
                parts = zip(layer.inputs, sources, strict=True)
                return np.concatenate([self.numbers[j].reshape(s.shape) for j, s in parts], axis).ravel()
            case ir.Delay():
                # Elements of the feedback get new numbers, because the elements that they equal have none yet.
                new_numbers = np.arange(self.next, self.next + layer.result.size - layer.source.size)
                self.starts.append((self.next, i + 1))
                self.next += new_numbers.size
                self._append_range(new_numbers.size, layer.result.type)
                return np.concatenate([self.numbers[layer.inputs[0]], new_numbers])
            case ir.Rearrange(op=op, source=source):
                x = self.numbers[layer.inputs[0]].reshape(source.shape)
                if isinstance(op, ir.Repeat):
                    return x.repeat(op.rows, -3).repeat(op.columns, -2).ravel()
                if isinstance(op, ir.Pad):
                    top, left_pad, bottom, right_pad = op.pads
                    border = [(0, 0)] * (x.ndim - 3) + [(top, bottom), (left_pad, right_pad), (0, 0)]
                    return np.pad(x, border, constant_values=constant_element(layer.pad)).ravel()
                return np.asarray(x[tuple(slice(*r) for r in op.ranges)].ravel())
            case _:
                return None

    def code_range(self, numbers: Array) -> tuple[Array, Array]:
        """(lowest, highest) code of each element, int64 in the shape of `numbers`."""
        fixed = numbers < ANYTHING
        place = np.where(fixed, 0, numbers)
        codes = numbers - _CONSTANTS
        return np.where(fixed, codes, self.low[place]), np.where(fixed, codes, self.high[place])

    def limit(self, value: int, low: Array, high: Array) -> None:
        """Set the range of codes of the elements of the input or a computed value. The arrays broadcast to it."""
        shape = self.graph.layers[value - 1].result.shape if value else self.graph.input.shape
        numbers = self.numbers[value]
        self.low[numbers] = np.broadcast_to(low, shape).ravel()
        self.high[numbers] = np.broadcast_to(high, shape).ravel()

    def name(self, number: int) -> str:
        """A description of a number, for messages."""
        if number in (ANYTHING, EMPTY):
            return "nothing"
        if number < ANYTHING:
            return f"the constant {number - _CONSTANTS}"
        start, value = max(pair for pair in self.starts if pair[0] <= number)
        tensor = self.graph.layers[value - 1].name if value else "the input"
        return f"element {number - start} of {tensor}"

    def expect(self, place: str, stream: StreamContents, value: int, order: Array) -> None:
        """Check that the stream carries all elements of a value in this order. Raises HG055."""
        if stream.units:
            raise broken(place, f"it reads the output of {stream.units[-1].name}, in the middle of a function.")
        expected, actual = self.numbers[value][order], stream.elements[stream.filled]
        if len(expected) != len(actual):
            raise broken(place, f"it gets {len(actual)} elements a frame, not {len(expected)}.")
        unequal = np.flatnonzero(expected != actual)
        if len(unequal):
            position = int(unequal[0])
            raise broken(
                place,
                f"at stream position {position} it gets {self.name(int(actual[position]))}, it needs "
                f"{self.name(int(expected[position]))}.",
            )


def check_codes(place: str, stream: StreamContents, type_: IntType, bits: int, signed: int | None) -> None:
    """Check that a unit with this input width and sign reads the codes of the stream correctly. Raises HG055."""
    if bits != stream.bits or type_.bits != bits or (signed is not None and signed != int(type_.signed)):
        raise broken(place, f"it reads {bits} bits ({'un' * (not signed)}signed), the codes are {type_}.")
    if stream.lo < type_.lo or stream.hi > type_.hi:
        raise broken(place, f"it gets codes of {stream.lo}..{stream.hi}, not {type_}.")


def vector_order(name: str, order: Array, columns: int) -> tuple[Array, Array]:
    """(row of each vector, column of each of its elements) in a stream of vectors of `columns` elements.

    Raises HG055 if the elements of the vectors arrive in different orders.
    """
    table = order.reshape(-1, columns)
    rows, inner = table // columns, table % columns
    if (rows != rows[:, :1]).any() or (inner != inner[:1]).any():
        raise broken(name, "its vectors do not arrive in one order.")
    return rows[:, 0], inner[0]


def channel_order(name: str, order: Array, channels: int) -> Array:
    """The order of the channels of every pixel. Raises HG055 if the pixels of an image do not arrive row by row."""
    rows, inner = vector_order(name, order, channels)
    if (rows != np.arange(len(rows))).any():
        raise broken(name, "its pixels do not arrive row by row.")
    return inner
