"""Multiple inputs and outputs, in one port each way or with a separate port for each.

The graph's input is all codes of the inputs, concatenated, in the narrowest type that holds all. If they share one
port, each input is a Slice of the port's codes, and a View of that. If its own type is narrower, a Map gives it that
type; it changes no code that the host sends. The outputs are flat Views, and one Concatenation. Separate ports
need no hardware: a StreamedInput for each input, and StreamedOutputs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from hlsgen import ir
from hlsgen.diagnostics import fail
from hlsgen.ir.ops import Cast, QuantizeLinear
from hlsgen.numerics.fixed import IntType
from hlsgen.passes.graph_builder import GraphBuilder
from hlsgen.passes.input_port import InputPort
from hlsgen.passes.partition import Entry
from hlsgen.passes.pending_value import PendingValue

#: Largest number of bits of a port's elements.
_MAX_BITS = 32
#: A Map gives codes of up to this many bits their own type, as float32 represents them. Wider codes keep the port's.
_NARROWED = 24
#: Integer types, the narrowest first.
_DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32")


def port_names(tensors: Iterable[str]) -> list[str]:
    """Suffixes for the ports of these tensors: letters, digits and single _, unique even if case is ignored."""
    names: list[str] = []
    for tensor in tensors:
        base = re.sub(r"_+", "_", re.sub(r"\W", "_", tensor, flags=re.ASCII)).strip("_") or "x"
        used, name, number = {used_name.lower() for used_name in names}, base, 2
        while name.lower() in used:
            name, number = f"{base}_{number}", number + 1
        names.append(name)
    return names


def part_name(model: ir.Model, entry: Entry) -> str:
    """The name of the layers that select the codes of an input from the port."""
    if entry.divided:
        return f"input {model.all_inputs[entry.source].name} of {model.steps[entry.first].name}"
    return model.steps[entry.source].name


def packed_value(model: ir.Model, ports: Sequence[InputPort], entries: Sequence[Entry]) -> ir.Value:
    """The value of the port of several inputs. Raises HG042."""
    sources = [model.all_inputs[entry.source] for entry in entries]
    values = [port.tensor.value for port in ports]
    shape, names = (sum(value.size for value in values),), ", ".join(dict.fromkeys(source.name for source in sources))
    keys = [isinstance(value.encoding, ir.FloatKey) for value in values]
    if all(keys):
        return ir.Value(shape, values[0].type, ir.FloatKey())
    if any(keys):
        float_inputs = ", ".join(source.name for source, key in zip(sources, keys, strict=True) if key)
        raise fail(
            "HG042",
            names,
            f"float32 ({float_inputs}) and codes share one port.",
            f"Put a quantizer after each, or specify their type: --input {float_inputs.split(', ')[0]}=fixed:W,I.",
        )
    type_ = _common_type(values)
    if type_.bits > _MAX_BITS:
        types = ", ".join(str(value.type) for value in values)
        raise fail(
            "HG042", names, f"no type of {_MAX_BITS} bits holds {types}.", "Use narrower types: --input NAME=TYPE."
        )
    return ir.Value(shape, type_, _plain_codes(shape))


def split_inputs(
    builder: GraphBuilder, names: Sequence[str], ports: Sequence[InputPort], suffixes: Sequence[str] | None
) -> list[PendingValue]:
    """The tensor of each port, with the layers that select it from a shared port.

    `suffixes`: the suffixes of separate ports, or None for a shared one.
    """
    if len(ports) == 1:
        return [ports[0].tensor]
    tensors, offset = [], 0
    for number, (port, name) in enumerate(zip(ports, names, strict=True)):
        tensor = port.tensor
        if suffixes is not None:
            streamed = builder.add(
                ir.StreamedInput(name, suffixes[number], offset, builder.values[0], tensor.value, (0,))
            )
            tensors.append(PendingValue(streamed.index, tensor.value, tensor.named_ops))
        else:
            tensors.append(_input_part(builder, name, tensor, offset))
        offset += tensor.value.size
    return tensors


def _input_part(builder: GraphBuilder, name: str, tensor: PendingValue, offset: int) -> PendingValue:
    """Add the layers that select an input from the shared port, reshape it, and give it its own type."""
    port_value, value = builder.values[0], tensor.value
    part = PendingValue(0, port_value)
    if value.size < port_value.size:
        elements = ir.Slice(((offset, offset + value.size, 1),))
        part = builder.add(ir.Rearrange(name, elements, 0, port_value, replace(port_value, shape=(value.size,)), (0,)))
    part = builder.relabelled(name, part, ir.Reshape(), value.shape)
    if value.type != port_value.type and value.type.bits <= _NARROWED:
        unit_scale = np.ones((1,) * len(value.shape), np.float32)
        narrow = QuantizeLinear(unit_scale, np.zeros_like(unit_scale, np.int64), value.type, _dtype(value))
        part = builder.add_map(f"{name} (codes)", part, [Cast("float32")], narrow)
    return PendingValue(part.index, replace(value, type=part.value.type), tensor.named_ops)


def host_inputs(model: ir.Model, ports: Sequence[InputPort], entries: Sequence[Entry]) -> tuple[ir.GraphInput, ...]:
    """The host's part of several inputs."""
    inputs, offset = [], 0
    for port, entry in zip(ports, entries, strict=True):
        value = port.tensor.value
        inputs.append(ir.GraphInput(tuple(model.steps[i] for i in port.head), port.encode, offset, value, entry.source))
        offset += value.size
    return tuple(inputs)


def host_output(
    builder: GraphBuilder, name: str, codes: PendingValue, tail: tuple[ir.Step, ...], is_index: bool
) -> ir.GraphOutput:
    """The host's part of an output, or of a part of one, without its offset in the frame. Raises HG042."""
    producer = builder.layers.get(codes.index)
    if isinstance(codes.value.encoding, ir.FloatKey):
        if producer is not None and not isinstance(producer, ir.StreamedInput | ir.View | ir.Rearrange):
            text = f"the float32 numbers of {producer.name} go to the output, but the core only outputs codes."
            hint = "Put a quantizer after them, or end the hardware before them: --outputs NAME ... names its tensors."
            raise fail("HG042", name, text, hint)
        hint = "Specify the input's type: --input NAME=fixed:W,I. Or remove this output: the host has these numbers."
        raise fail("HG042", name, "float32 goes from an input to an output, but the core only outputs codes.", hint)
    return ir.GraphOutput(tail, 0, codes.value, is_index)


def merge_outputs(
    builder: GraphBuilder,
    name: str,
    part_names: Iterable[str],
    outputs: Sequence[ir.GraphOutput],
    values: Sequence[int],
) -> tuple[ir.Value, tuple[ir.GraphOutput, ...]]:
    """Concatenate all outputs into one value; return it, and the outputs with their offsets.

    `values`: the graph's values that hold the codes of each output.
    """
    views, placed, offset = [], [], 0
    for output, index in zip(outputs, values, strict=True):
        codes = PendingValue(index, replace(output.value, encoding=_plain_codes(output.value.shape)))
        views.append(builder.relabelled(name, codes, ir.Reshape(), (output.value.size,)))
        placed.append(replace(output, offset=offset))
        offset += output.value.size
    sources = tuple(codes.value for codes in views)
    result = concatenated_value(sources)
    builder.add(ir.Concatenation(name, 0, sources, result, tuple(codes.index for codes in views)))
    return result, tuple(placed)


def separate_outputs(
    builder: GraphBuilder,
    name: str,
    part_names: Iterable[str],
    outputs: Sequence[ir.GraphOutput],
    values: Sequence[int],
) -> tuple[ir.Value, tuple[ir.GraphOutput, ...]]:
    """As `merge_outputs`, if each output has its own port. `part_names` name the ports."""
    names = tuple(port_names(part_names))
    sources = tuple(output.value for output in outputs)
    result = concatenated_value(sources)
    builder.add(ir.StreamedOutputs(name, names, sources, result, tuple(values)))
    offsets = [sum(value.size for value in sources[:n]) for n in range(len(sources))]
    return result, tuple(replace(output, offset=offset) for output, offset in zip(outputs, offsets, strict=True))


def concatenated_value(values: Sequence[ir.Value]) -> ir.Value:
    """All values concatenated, as plain codes."""
    shape = (sum(value.size for value in values),)
    return ir.Value(shape, _common_type(values), _plain_codes(shape))


def _common_type(values: Sequence[ir.Value]) -> IntType:
    return IntType(min(value.type.lo for value in values), max(value.type.hi for value in values))


def _plain_codes(shape: ir.Shape) -> ir.IntegerEncoding:
    """An encoding for codes of several tensors, which have encodings of their own."""
    return ir.IntegerEncoding("int64", np.zeros((1,) * len(shape), np.int64))


def _dtype(value: ir.Value) -> str:
    """The integer dtype of the codes as numbers."""
    if isinstance(value.encoding, ir.IntegerEncoding):
        return value.encoding.dtype
    limits = ((name, np.iinfo(name)) for name in _DTYPES)
    return next(name for name, info in limits if info.min <= value.type.lo and value.type.hi <= info.max)
