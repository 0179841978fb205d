"""Rules of a Graph.

1. The inputs of a layer are earlier values, read as `verify.encoding` allows. Every value but the last is used. The
   output is the last value. Layers other than views have unique names.
2. The shape of a result follows from the layer and its sources.
3. The type of a result holds every code that the layer can produce, and no more where that is derivable. It is
   so for the codes of a quantizer, the sums that the weights reach (`lo`, `hi`) and the parts of a Concatenation.
4. The codes with which a padded layer fills the border lie in the source's type. They represent 0 for sums of real
   numbers, and are the lowest for a maximum.
5. The encoding of a quantizer's codes is the quantizer's; layers that move codes keep their encoding.
6. Operations of a Map work in the dtype of its decoded codes; both operands of a BinaryMap have one dtype.
7. Steps of head and tail follow each other in shape and dtype; the head ends at the input, the tail at the output
   of the model.
"""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
from typing_extensions import assert_never

from hlsgen.ir.encoding import Accumulator, Affine, FloatKey
from hlsgen.ir.evaluate import KEY_POS_INF, float_to_key
from hlsgen.ir.graph import (
    FLOAT_BINARY_KINDS,
    MASK_KEPT,
    MASK_REMOVED,
    MASK_UNIFORM,
    ArgMaxLayer,
    BinaryMap,
    Concatenation,
    Convolution,
    Delay,
    FloatBinary,
    Graph,
    IntegerRows,
    Layer,
    Linear,
    Map,
    MatrixProduct,
    NormRows,
    PackBytes,
    Pooling,
    Rearrange,
    SoftmaxRows,
    StreamedInput,
    StreamedOutputs,
    Value,
    View,
    sources_of,
)
from hlsgen.ir.model import NormKind, Pad, Repeat, Shape, Slice, Transpose
from hlsgen.ir.programs import Program, Take
from hlsgen.ir.row_functions import MAX_FIXED_POINT_ROW, FixedPointShare, IntegerNorm, Share, result_type
from hlsgen.ir.verify.elementwise import verify_chain
from hlsgen.ir.verify.encoding import meaning, same_encoding, verify_moved, verify_reading, verify_value
from hlsgen.ir.verify.host import verify_host
from hlsgen.ir.verify.ports import verify_input, verify_outputs
from hlsgen.ir.verify.quantized import dtype_of, verify_quantized, verify_type
from hlsgen.ir.verify.violations import Place, Violation
from hlsgen.ir.verify.window import concatenated, rearranged, verify_pool, verify_shape, viewed, windowed
from hlsgen.ir.window import Reduction
from hlsgen.numerics.fixed import IntType
from hlsgen.numerics.normalization import MAX_ELEMENT_BITS, bounds


def verify_graph(graph: Graph) -> list[Violation]:
    """Every violation of the rules of this module; rules of `graph.model` are checked by `verify_model`."""
    place = Place(f"graph {graph.model.name!r}")
    verify_value(place.at("input"), graph.input)
    values = [graph.input]
    for number, layer in enumerate(graph.layers, 1):
        at = place.at(f"layer {number} {layer.name!r} ({type(layer).__name__})")
        _verify_sources(at, layer, values)
        verify_value(at, layer.result)
        if at.violations:
            return place.violations  # later checks depend on this layer
        _verify_layer(at, layer)
        values.append(layer.result)
    _verify_use(place, graph, values)
    if not place.violations:
        verify_host(place, graph)
    return place.violations


def _verify_sources(place: Place, layer: Layer, values: list[Value]) -> None:
    sources = sources_of(layer)
    legal = len(layer.inputs) == len(sources) > 0 and all(0 <= i < len(values) for i in layer.inputs)
    if place.require(legal, "inputs", layer.inputs, f"{len(sources)} values before {len(values)}"):
        for source, number in zip(sources, layer.inputs, strict=True):
            if source.encoding is not values[number].encoding:
                verify_value(place, source)
            verify_reading(place, "source", source, values[number])


def _verify_use(place: Place, graph: Graph, values: list[Value]) -> None:
    used = {i for layer in graph.layers for i in layer.inputs}
    used |= {layer.delayed for layer in graph.layers if isinstance(layer, Delay)}
    for layer in graph.layers:
        if isinstance(layer, Delay) and place.require(layer.delayed < len(values), "delayed", layer.delayed, "a value"):
            verify_reading(place, f"state {layer.name}", layer.result, values[layer.delayed])
    for number in range(len(values) - 1):
        place.require(number in used, f"value {number}", "not used", "the input of a later layer")
    verify_reading(place, "output", graph.output, values[-1])
    names = [layer.name for layer in graph.layers if not isinstance(layer, View)]
    duplicates = {name for name in names if names.count(name) > 1}
    place.require(not duplicates, "names of layers", sorted(duplicates), "a name for each")


def _verify_layer(place: Place, layer: Layer) -> None:
    result = layer.result
    match layer:
        case Map(_, ops, quantizer, source):
            verify_shape(place, result.shape, source.shape)
            dtype = verify_chain(place, ops, source.shape, dtype_of(source.encoding))
            verify_quantized(place, quantizer, dtype, result)
        case BinaryMap():
            _verify_binary(place, layer)
        case FloatBinary():
            _verify_float_binary(place, layer)
        case Linear():
            shape = layer.source.shape
            verify_shape(place, result.shape, (*shape[:-1], result.shape[-1]))
            _verify_sums(place, layer, (result.shape[-1], shape[-1]), shape[-1])
        case MatrixProduct():
            _verify_product(place, layer)
        case Convolution():
            _verify_convolution(place, layer)
        case Pooling():
            _verify_pooling(place, layer)
        case Rearrange():
            _verify_rearranged(place, layer)
        case Concatenation():
            _verify_concatenation(place, layer)
        case PackBytes():
            _verify_packed(place, layer)
        case StreamedInput():
            verify_input(place, layer)
        case StreamedOutputs():
            verify_outputs(place, layer)
        case View(_, op, source):
            verify_shape(place, result.shape, viewed(place, op, source.shape, result.shape))
            verify_type(place, result.type, source.type)
            if not place.violations:
                perm = op.perm if isinstance(op, Transpose) else tuple(range(len(source.shape)))
                verify_moved(place, source, result, lambda x: x.transpose(perm).reshape(result.shape))
        case ArgMaxLayer(_, source):
            shape = source.shape
            dropped = result.shape if result.shape == (*shape[:-1], 1) else shape[:-1]
            verify_shape(place, result.shape, dropped)
            verify_type(place, result.type, IntType(0, shape[-1] - 1))
            identity = Affine(np.asarray(1, np.float32), np.asarray(0, np.float32))
            is_index = same_encoding(result.encoding, identity)
            place.require(is_index, "result.encoding", result.encoding, "the index itself")
        case SoftmaxRows():
            _verify_softmax(place, layer)
        case NormRows():
            _verify_normalization(place, layer)
        case Delay():
            _verify_delay(place, layer)
        case IntegerRows(_, Program() as program, source):
            elements = {operation.element for operation in program.operations if isinstance(operation, Take)}
            inside = elements <= {*range(source.shape[-1])}
            place.require(inside, "source", source.shape, "the elements that the program takes")
            verify_shape(place, result.shape, (*source.shape[:-1], len(program.outputs)))
            verify_type(place, result.type, result_type(program, source.type))
        case IntegerRows(_, function, source):
            verify_shape(place, result.shape, source.shape)
            place.require(source.type.bits <= 16, "source", source.type, "at most 16 bits")
            verify_type(place, result.type, result_type(function, source.type))
            if isinstance(function, Share):
                inside = source.type.lo >= 0 and source.type.hi < len(function.weights)
                place.require(inside, "source", source.type, f"an index of the {len(function.weights)} weights")
            if isinstance(function, FixedPointShare):
                _verify_fixed_point_share(place, function, source)
            if isinstance(function, IntegerNorm):
                shapes = {function.weight.shape, function.bias.shape}
                place.require(shapes == {source.shape[-1:]}, "weight, bias", shapes, "one for each element of a row")
        case _:
            assert_never(layer)


def _verify_fixed_point_share(place: Place, share: FixedPointShare, source: Value) -> None:
    count, first, smallest = len(share.exponentials), int(share.exponentials[0]), int(share.exponentials.min())
    inside = source.type.lo >= 0 and source.type.hi < count
    place.require(inside, "source", source.type, f"an index of the {count} exponentials")
    place.require(source.shape[-1] <= MAX_FIXED_POINT_ROW, "row", source.shape[-1], f"at most {MAX_FIXED_POINT_ROW}")
    place.require(first == (1 << 31) - 1, "exponentials[0]", first, "2^31 - 1")
    place.require(smallest >= 0, "exponentials", smallest, "none below 0")


def _verify_delay(place: Place, layer: Delay) -> None:
    source, result = layer.source, layer.result
    verify_shape(place, source.shape, (1, *result.shape[1:]))
    verify_type(place, result.type, source.type)
    place.require(result.shape[0] > 1, "steps", result.shape[0], "at least 2")
    place.require(layer.delayed > layer.inputs[0], "delayed", layer.delayed, "a later value")


def _verify_normalization(place: Place, layer: NormRows) -> None:
    source, result = layer.source, layer.result
    verify_shape(place, result.shape, source.shape)
    place.require(layer.factor > 0, "factor", layer.factor, "above 0")
    place.require(layer.addend > 0, "addend", layer.addend, "above 0")
    if place.violations:
        return
    element_ends = sorted(code * layer.factor + layer.offset for code in (source.type.lo, source.type.hi))
    largest = bounds(layer.kind is NormKind.LAYER, source.shape[-1], element_ends[0], element_ends[1], layer.addend)
    legal = largest.element.bit_length() <= MAX_ELEMENT_BITS
    place.require(legal, "source", f"codes times {source.shape[-1]}: {largest.element}", f"{MAX_ELEMENT_BITS} bits")
    key_ends = float_to_key(np.array([-largest.result, largest.result], np.float32))
    verify_type(place, result.type, IntType(int(key_ends[0]), int(key_ends[1])))
    place.require(isinstance(result.encoding, FloatKey), "result.encoding", result.encoding, "keys of float32")


def _verify_binary(place: Place, layer: BinaryMap) -> None:
    shape = layer.result.shape
    dtypes = []
    for source, ops in zip(layer.sources, layer.branches, strict=True):
        place.require(source.shape == shape, "source.shape", source.shape, shape)
        dtypes.append(verify_chain(place, ops, source.shape, dtype_of(source.encoding)))
    left_dtype, right_dtype = dtypes
    place.require(
        None in dtypes or left_dtype == right_dtype,
        "dtypes of the operands",
        f"{left_dtype}, {right_dtype}",
        "one dtype",
    )
    verify_quantized(place, layer.quantizer, verify_chain(place, layer.ops, shape, left_dtype), layer.result)


def _verify_float_binary(place: Place, layer: FloatBinary) -> None:
    """Check that both operands are float32 and that the hardware implements the operation."""
    for source, ops in zip(layer.sources, layer.branches, strict=True):
        place.require(source.shape == layer.result.shape, "source.shape", source.shape, layer.result.shape)
        dtype = verify_chain(place, ops, source.shape, dtype_of(source.encoding))
        place.require(dtype in (None, "float32"), "dtype of an operand", dtype, "float32")
    place.require(layer.kind in FLOAT_BINARY_KINDS, "kind", layer.kind, "Add, Sub or Mul")
    verify_type(place, layer.result.type, IntType(0, KEY_POS_INF))
    place.require(isinstance(layer.result.encoding, FloatKey), "result.encoding", layer.result.encoding, "FloatKey")


def _verify_sums(place: Place, layer: Linear | Convolution, weight_shape: Shape, terms: int) -> None:
    """Check the weights, and the interval of every row of `terms` products."""
    weight, source, result = layer.weight, layer.source, layer.result
    legal = weight.shape == weight_shape and weight.dtype == np.int64
    if not place.require(legal, "weight", f"{weight.dtype} {weight.shape}", f"int64 {weight_shape}"):
        return
    rows = weight.reshape(len(weight), -1)
    if layer.binary:
        bits = source.type == IntType(0, 1) and bool(((rows == 0) | (rows == 1)).all())
        place.require(bits, "binary", "set", "codes and weights of 0 and 1")
        lo, hi = np.zeros(len(rows), np.int64), np.full(len(rows), terms)
    else:
        ends = rows * source.type.lo, rows * source.type.hi
        lo, hi = np.minimum(*ends).sum(axis=1), np.maximum(*ends).sum(axis=1)
    place.require(np.array_equal(layer.lo, lo), "lo", layer.lo, lo)
    place.require(np.array_equal(layer.hi, hi), "hi", layer.hi, hi)
    verify_type(place, result.type, IntType(int(lo.min()), int(hi.max())))
    legal = isinstance(result.encoding, Accumulator) or dtype_of(result.encoding) in ("int32", "int64")
    place.require(legal, "result.encoding", result.encoding, "an Accumulator, int32 or int64")


def _verify_product(place: Place, layer: MatrixProduct) -> None:
    (left_value, right_value), result = layer.sources, layer.result
    compatible = len(left_value.shape) == len(right_value.shape) > 1 and left_value.shape[-1] == right_value.shape[-2]
    compatible = compatible and all(
        b in (1, a) for a, b in zip(left_value.shape[:-2], right_value.shape[:-2], strict=True)
    )
    shapes = f"{left_value.shape} and {right_value.shape}"
    if not place.require(compatible, "shapes", shapes, "(..., m, k) and (..., k, n), with 1 or equal leading axes"):
        return
    verify_shape(place, result.shape, (*left_value.shape[:-1], right_value.shape[-1]))
    place.require(min(layer.factors) > 0, "factors", layer.factors, "above 0")
    verify_type(place, result.type, layer.interval)
    legal = isinstance(result.encoding, Accumulator) or dtype_of(result.encoding) == "int32"
    place.require(legal, "result.encoding", result.encoding, "an Accumulator, or int32")


def _verify_convolution(place: Place, layer: Convolution) -> None:
    shape, weight, groups = layer.source.shape, layer.weight, layer.groups
    verify_shape(place, layer.result.shape, windowed(place, layer.window, shape, len(weight)))
    divides = groups >= 1 and shape[-1] % groups == 0 and len(weight) % groups == 0
    if place.require(divides, "groups", groups, f"a divisor of {shape[-1]} channels and {len(weight)} outputs"):
        weight_shape = (len(weight), *layer.window.kernel, shape[-1] // groups)
        _verify_sums(place, layer, weight_shape, math.prod(weight_shape[1:]))
    if any(layer.window.pads):
        _verify_border(place, layer.source, layer.pad, isinstance(layer.result.encoding, Accumulator))


def _verify_border(place: Place, source: Value, pad: int, zero: bool) -> None:
    """Check the code of a border; with `zero`, it must represent 0."""
    inside = place.require(source.type.lo <= pad <= source.type.hi, "pad", pad, f"within {source.type}")
    if inside and zero:
        border_value = meaning(replace(source, shape=(1, 1, 1, source.shape[-1])), pad)
        place.require(
            not border_value.any(),
            "pad",
            f"{pad}, which represents {border_value.ravel()[:3]}",
            "a code that represents 0",
        )


def _verify_pooling(place: Place, layer: Pooling) -> None:
    source, result, taps = layer.source, layer.result, layer.window.taps
    shape = windowed(place, layer.window, source.shape, source.shape[-1])
    verify_shape(place, result.shape, shape)
    if shape is None:
        return
    verify_pool(place, layer.window, source.shape)
    match layer.kind:
        case Reduction.MAX:
            verify_type(place, result.type, source.type)
            place.require(layer.pad == source.type.lo, "pad", layer.pad, f"{source.type.lo}, the lowest code")
            _verify_same_encoding(place, source, result)
        case Reduction.SUM:
            verify_type(place, result.type, IntType(taps * source.type.lo, taps * source.type.hi))
            of_integers = dtype_of(source.encoding)[:3] in ("int", "uin")
            legal = (
                dtype_of(result.encoding) == dtype_of(source.encoding)
                if of_integers
                else isinstance(result.encoding, Accumulator)
            )
            place.require(
                legal,
                "result.encoding",
                result.encoding,
                "the integers of its source" if of_integers else "an Accumulator",
            )
            if any(layer.window.pads):
                _verify_border(place, source, layer.pad, zero=True)
        case _:
            assert_never(layer.kind)


def _verify_rearranged(place: Place, layer: Rearrange) -> None:
    source, result, op = layer.source, layer.result, layer.op
    shape = rearranged(place, op, source.shape)
    verify_shape(place, result.shape, shape)
    verify_type(place, result.type, source.type)
    if place.violations:
        return
    match op:
        case Slice(ranges):
            verify_moved(place, source, result, lambda x: x[tuple(slice(*r) for r in ranges)])
        case Repeat():
            _verify_same_encoding(place, source, result)
        case Pad():
            _verify_border(place, source, layer.pad, zero=not op.value)
            _verify_same_encoding(place, source, result)
        case _:
            assert_never(op)


def _verify_same_encoding(place: Place, source: Value, result: Value) -> None:
    """Check that the result has the source's encoding, the same for all pixels."""
    unchanged = same_encoding(result.encoding, source.encoding)
    place.require(unchanged, "result.encoding", result.encoding, source.encoding)
    for field in fields(result.encoding):
        constant_shape = np.shape(getattr(result.encoding, field.name))
        place.require(
            math.prod(constant_shape[:-1]) == 1,
            f"result.encoding.{field.name}",
            f"of shape {constant_shape}",
            "the same for all pixels",
        )


def _verify_concatenation(place: Place, layer: Concatenation) -> None:
    axis, sources, result = layer.axis, layer.sources, layer.result
    verify_shape(place, result.shape, concatenated(place, axis, [s.shape for s in sources]))
    lowest, highest = min(s.type.lo for s in sources), max(s.type.hi for s in sources)
    verify_type(place, result.type, IntType(lowest, highest))
    if place.violations:
        return
    start = 0
    for source in sources:
        stop = start + source.shape[axis]
        for code in (source.type.lo, source.type.hi):
            part = meaning(result, code).take(range(start, stop), axis)
            matches = np.array_equal(part, meaning(source, code))
            place.require(
                matches, "result.encoding", f"another value of code {code}", f"the value in elements {start}:{stop}"
            )
        start = stop


def _verify_packed(place: Place, layer: PackBytes) -> None:
    dtypes = {dtype_of(source.encoding) for source in layer.sources}
    legal = len(dtypes) == 1 and dtypes <= {"int8", "uint8"}
    if place.require(legal, "dtypes of the sources", sorted(dtypes), "int8 or uint8, both"):
        info = np.iinfo(dtypes.pop())
        for source in layer.sources:
            place.require(source.type == IntType(int(info.min), int(info.max)), "source.type", source.type, "8 bits")
            verify_shape(place, source.shape, layer.result.shape)
    verify_type(place, layer.result.type, IntType(0, 65535))
    place.require(dtype_of(layer.result.encoding) == "uint16", "result.encoding", layer.result.encoding, "uint16")


def _verify_softmax(place: Place, layer: SoftmaxRows) -> None:
    """Check the lookup tables for the source's code differences, and keys from 0 to the largest quotient."""
    source, result = layer.source, layer.result
    verify_shape(place, result.shape, source.shape)
    count = source.type.hi - source.type.lo + 1
    for name, table in (("powers", layer.powers), ("numerators", layer.numerators)):
        legal = table.dtype == np.float32 and table.shape == layer.powers.shape and 0 < len(table) <= count
        if not place.require(legal, name, f"{table.dtype} {table.shape}", f"float32, at most {count}"):
            return
        falling = bool(np.isfinite(table).all() and (table >= 0).all() and (np.diff(table) <= 0).all())
        place.require(falling and table[0] > 0, name, table, "falling numbers, the first above 0")
    if layer.mask is not None:
        mask = layer.mask
        if place.require(mask.shape == source.shape and mask.dtype == np.uint8, "mask", mask.shape, source.shape):
            rows_with = [(mask == kind).any(axis=-1) for kind in (MASK_KEPT, MASK_UNIFORM)]
            legal = bool((mask <= MASK_REMOVED).all() and (rows_with[0] != rows_with[1]).all() and not layer.in_order)
            place.require(legal, "mask", mask, "rows with either kept or uniform elements")
    matches = layer.in_order or np.array_equal(layer.powers, layer.numerators)
    place.require(matches, "numerators", "differ from powers", "powers, unless in_order")
    keys = float_to_key(np.array([0, layer.numerators[0] / layer.powers[0]], np.float32))
    verify_type(place, result.type, IntType(int(keys[0]), int(keys[1])))
    place.require(isinstance(result.encoding, FloatKey), "result.encoding", result.encoding, "FloatKey")
