"""Several inputs and outputs, in one port each way or in a port of its own for each.

The graph takes all codes of the inputs one behind the other, in the narrowest type of all. If they come through one port,
each input is a Slice of the port's codes, and a View of that. Where its own type is narrower, a Map gives it that type: it
changes no code that the host sends. The outputs are flat Views, and one Concatenation. With a port each no hardware is
needed: a StreamedInput for each input, and StreamedOutputs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.ir import (
    Concatenation,
    FloatKey,
    GraphInput,
    GraphOutput,
    IntegerEncoding,
    Model,
    Rearrange,
    Reshape,
    Shape,
    Slice,
    Step,
    StreamedInput,
    StreamedOutputs,
    Value,
    View,
)
from hlsgen.ir.ops import Cast, QuantizeLinear
from hlsgen.numerics.fixed import IntType
from hlsgen.passes.graph_builder import GraphBuilder
from hlsgen.passes.input_port import InputPort
from hlsgen.passes.partition import Entry
from hlsgen.passes.pending_value import PendingValue

#: Bits of a port's elements, at most.
_MOST_BITS = 32
#: A Map gives codes of up to so many bits their own type: float32 has all of these. Wider ones are left as they are.
_NARROWED = 24
#: Types of integers, the narrowest first.
_DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32")


def port_names(tensors: Iterable[str]) -> list[str]:
    """What ends the names of the ports of these tensors: letters, digits and single _, each another one whatever the case."""
    found: list[str] = []
    for tensor in tensors:
        plain = re.sub(r"_+", "_", re.sub(r"\W", "_", tensor, flags=re.ASCII)).strip("_") or "x"
        taken, name, number = {one.lower() for one in found}, plain, 2
        while name.lower() in taken:
            name, number = f"{plain}_{number}", number + 1
        found.append(name)
    return found


def part_name(model: Model, entry: Entry) -> str:
    """The name of the layers that take the codes of an input out of the port."""
    if entry.divided:
        return f"input {model.all_inputs[entry.source].name} of {model.steps[entry.first].name}"
    return model.steps[entry.source].name


def packed_value(model: Model, ports: Sequence[InputPort], entries: Sequence[Entry]) -> Value:
    """What the port of several inputs carries. Raises HG042."""
    sources = [model.all_inputs[entry.source] for entry in entries]
    values = [port.tensor.value for port in ports]
    shape, names = (sum(value.size for value in values),), ", ".join(dict.fromkeys(one.name for one in sources))
    keys = [isinstance(value.encoding, FloatKey) for value in values]
    if all(keys):
        return Value(shape, values[0].type, FloatKey())
    if any(keys):
        wrong = ", ".join(one.name for one, key in zip(sources, keys, strict=True) if key)
        raise fail(
            "HG042", names, f"float32 ({wrong}) and codes go through one port.",
            f"Put a quantizer behind each, or say what they hold: --input {wrong.split(', ')[0]}=fixed:W,I.",
        )  # fmt: skip
    type_ = _together(values)
    if type_.bits > _MOST_BITS:
        types = ", ".join(str(value.type) for value in values)
        raise fail(
            "HG042", names, f"no type of {_MOST_BITS} bits holds {types}.", "Use narrower types: --input NAME=TYPE."
        )
    return Value(shape, type_, _plain(shape))


def taken_apart(
    builder: GraphBuilder, names: Sequence[str], ports: Sequence[InputPort], ends: Sequence[str] | None
) -> list[PendingValue]:  # fmt: skip
    """The tensor of each port, with the layers that take it out of a shared one; `ends`: of the names of own ones."""
    if len(ports) == 1:
        return [ports[0].tensor]
    found, offset = [], 0
    for number, (port, name) in enumerate(zip(ports, names, strict=True)):
        tensor = port.tensor
        if ends is not None:
            taken = builder.add(StreamedInput(name, ends[number], offset, builder.values[0], tensor.value, (0,)))
            found.append(PendingValue(taken.index, tensor.value, tensor.named_ops))
        else:
            found.append(_part(builder, name, tensor, offset))
        offset += tensor.value.size
    return found


def _part(builder: GraphBuilder, name: str, tensor: PendingValue, offset: int) -> PendingValue:
    raw, wanted = builder.values[0], tensor.value
    made = PendingValue(0, raw)
    if wanted.size < raw.size:
        cut = Slice(((offset, offset + wanted.size, 1),))
        made = builder.add(Rearrange(name, cut, 0, raw, replace(raw, shape=(wanted.size,)), (0,)))
    made = builder.relabelled(name, made, Reshape(), wanted.shape)
    if wanted.type != raw.type and wanted.type.bits <= _NARROWED:
        one = np.ones((1,) * len(wanted.shape), np.float32)
        own = QuantizeLinear(one, np.zeros_like(one, np.int64), wanted.type, _dtype(wanted))
        made = builder.mapped(f"{name} (codes)", made, [Cast("float32")], own)
    return PendingValue(made.index, replace(wanted, type=made.value.type), tensor.named_ops)


def host_inputs(model: Model, ports: Sequence[InputPort], entries: Sequence[Entry]) -> tuple[GraphInput, ...]:
    """What the host does of several inputs."""
    found, offset = [], 0
    for port, entry in zip(ports, entries, strict=True):
        value = port.tensor.value
        found.append(GraphInput(tuple(model.steps[i] for i in port.head), port.encode, offset, value, entry.source))
        offset += value.size
    return tuple(found)


def host_output(
    builder: GraphBuilder, name: str, end: PendingValue, tail: tuple[Step, ...], is_index: bool
) -> GraphOutput:  # fmt: skip
    """What the host does of an output, or of a part of one, without its place in the frame. Raises HG042."""
    maker = builder.layers.get(end.index)
    if isinstance(end.value.encoding, FloatKey):
        if maker is not None and not isinstance(maker, StreamedInput | View | Rearrange):
            text = f"the float32 numbers of {maker.name} go to the output: the core gives codes alone."
            raise fail("HG042", name, text, "Put a quantizer behind them.")
        hint = "Say what the input holds: --input NAME=fixed:W,I. Or take this output of the file away: the host has these numbers."
        raise fail("HG042", name, "float32 from an input to an output: the core gives codes alone.", hint)
    return GraphOutput(tail, 0, end.value, is_index)


def put_together(
    builder: GraphBuilder, name: str, outputs: Sequence[GraphOutput], values: Sequence[int]
) -> tuple[Value, tuple[GraphOutput, ...]]:
    """The value that holds all outputs, the codes of each being a value of the graph; and the outputs in their places."""
    views, placed, offset = [], [], 0
    for one, index in zip(outputs, values, strict=True):
        codes = PendingValue(index, replace(one.value, encoding=_plain(one.value.shape)))
        views.append(builder.relabelled(name, codes, Reshape(), (one.value.size,)))
        placed.append(replace(one, offset=offset))
        offset += one.value.size
    sources = tuple(codes.value for codes in views)
    result = flat(sources)
    builder.add(Concatenation(name, 0, sources, result, tuple(codes.index for codes in views)))
    return result, tuple(placed)


def given_apart(
    builder: GraphBuilder, name: str, part_names: Iterable[str], outputs: Sequence[GraphOutput], values: Sequence[int]
) -> tuple[Value, tuple[GraphOutput, ...]]:
    """As `put_together`, if each output has a port of its own."""
    names = tuple(port_names(part_names))
    sources = tuple(one.value for one in outputs)
    result = flat(sources)
    builder.add(StreamedOutputs(name, names, sources, result, tuple(values)))
    offsets = [sum(value.size for value in sources[:n]) for n in range(len(sources))]
    return result, tuple(replace(one, offset=offset) for one, offset in zip(outputs, offsets, strict=True))


def flat(values: Sequence[Value]) -> Value:
    """All of them one behind the other."""
    shape = (sum(value.size for value in values),)
    return Value(shape, _together(values), _plain(shape))


def _together(values: Sequence[Value]) -> IntType:
    return IntType(min(value.type.lo for value in values), max(value.type.hi for value in values))


def _plain(shape: Shape) -> IntegerEncoding:
    """Codes without a meaning of their own."""
    return IntegerEncoding("int64", np.zeros((1,) * len(shape), np.int64))


def _dtype(value: Value) -> str:
    """The integer type that codes have as numbers."""
    if isinstance(value.encoding, IntegerEncoding):
        return value.encoding.dtype
    limits = ((name, np.iinfo(name)) for name in _DTYPES)
    return next(name for name, info in limits if info.min <= value.type.lo and value.type.hi <= info.max)
