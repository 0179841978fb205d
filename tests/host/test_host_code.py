"""Host code in C and Python compared with the interpreter: all operations and quantizers, all types, many streams."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from host_code import Core, Given, bytes_of, bytes_out, core_of, module_of, run_in_c, self_tests
from small_models import const

from hlsgen import ir
from hlsgen.host.plan import plan_head, plan_tail
from hlsgen.interpreter.graph import decode_output, encode_input
from hlsgen.interpreter.host_tflite import HostSoftmax, int16_host_op
from hlsgen.ir import ops
from hlsgen.ir.evaluate import KEY_POS_INF, code_type, decoding
from hlsgen.numerics.fixed import IntType, Rounding, int_type
from hlsgen.numerics.tflite.multipliers import CODE_TYPES, Runtime
from hlsgen.numerics.tflite.softmax import exponentials_in_floats, exponentials_in_integers
from hlsgen.numerics.tflite.softmax_of_int16 import Int16Softmax

#: All tests use one program of all cases, which takes a C compiler ten seconds.
pytestmark = pytest.mark.sweep

Array = Any
FRAMES = 40
C = 6
SHAPE = (1, 2, C)
CHANNELS = np.array([0.5, 0.1, 3.0, 0.25, 1 / 3, 7.7])
F32, F64 = np.float32, np.float64
TIE_CODES = 12345677, 0xABCDEF1235


def each(values: Any, dtype: Any = F32) -> Array:
    return const(values, 3, dtype)


def graph_of(
    head: list[tuple[ir.Op, tuple[int, ...]]] = (),
    encode: Any = None,
    input_: ir.Value | None = None,
    output: ir.Value | None = None,
    tail: list[tuple[ir.Op, tuple[int, ...]]] = (),
    dtype: str = "float32",
    out: str = "float32",
    shape: tuple[int, ...] = SHAPE,
    second: str | None = None,
    index: bool = False,
) -> ir.Graph:
    """A graph without nodes between its ports: only host code is generated for it."""
    steps = [tuple(ir.Step(f"s{n}", op, s, (n,)) for n, (op, s) in enumerate(part, 1)) for part in (head, tail)]
    model = ir.Model("m", "x", shape, dtype, False, None, (*steps[0], *steps[1]), "y", out, second)
    if input_ is None:
        input_ = ir.Value(steps[0][-1].shape if steps[0] else shape, code_type(encode), decoding(encode))
    output = output or ir.Value(SHAPE, IntType(-100, 100), ir.Affine(each(CHANNELS), each(0.0)))
    return ir.Graph(model, steps[0], encode, input_, (), output, steps[1], index)


def tail_of(*operations: ir.Op | tuple[ir.Op, tuple[int, ...]], out: str = "float32", **graph_options: Any) -> ir.Graph:
    shape, steps = SHAPE, []
    for op in operations:
        op, shape = op if isinstance(op, tuple) else (op, shape)
        steps.append((op, shape))
    return graph_of(encode=quant(), tail=steps, out=out, **graph_options)


def quant(
    mode: Rounding = Rounding.ROUND,
    bits: int = 4,
    signed: bool = True,
    narrow: bool = False,
    zero: Any = 0.0,
    scale: Any = CHANNELS,
    dtype: Any = F32,
) -> ops.IntQuant:
    return ops.IntQuant(each(scale, dtype), each(zero), int_type(bits, signed, narrow), mode)


def affine(shape: tuple[int, ...], lo: int = -128, hi: int = 127) -> ir.Value:
    return ir.Value(shape, IntType(lo, hi), ir.Affine(const(0.25, len(shape)), const(0.0, len(shape))))


def integers(dtype: str, lo: int, hi: int) -> ir.Value:
    return ir.Value(SHAPE, IntType(lo, hi), ir.IntegerEncoding(dtype, np.zeros((1, 1, 1), np.int64)))


def elementwise() -> Iterator[tuple[str, ops.Elementwise]]:
    """Operations on float32, with a constant for each channel."""
    c = each(CHANNELS)
    yield from [
        ("mul", ops.Mul(c)),
        ("add", ops.Add(c)),
        ("div", ops.Div(c)),
        ("max", ops.Max(c)),
        ("min", ops.Min(each(-CHANNELS))),
        ("fma", ops.Fma(c, each(CHANNELS[::-1]))),
        ("double", ops.Cast("float64")),
        ("slope", ops.Slope(c)),
        ("constant", ops.Constant(each(CHANNELS))),
        ("lookup", ops.Lookup(np.arange(5 * C, dtype=F32).reshape(5, 1, 1, C) * F32(0.3))),
        ("table", ops.Lookup(np.array([3.5, -1, 0.1], F32).reshape(3, 1, 1, 1))),
        ("both", ops.BinaryOf(ops.BinaryKind.MUL, ((), (ops.Activation("HardSigmoid", 0.2, 0.5),)))),
        ("quotient", ops.BinaryOf(ops.BinaryKind.DIV, ((ops.Mul(c),), (ops.Activation("Abs"), ops.Add(each(0.3)))))),
        ("difference", ops.BinaryOf(ops.BinaryKind.SUB, ((ops.Mul(c),), (ops.Activation("Abs"),)))),
        (
            "where",
            ops.Where(((ops.Compare(ops.Relation.GREATER, c),), (ops.Mul(c),), (ops.Constant(each(-CHANNELS)),))),
        ),
    ]
    for kind in ("Abs", "Sqrt", "HardSwish", "Ceil", "Floor", "Round", "Sign"):
        yield kind.lower(), ops.Activation(kind)
    yield "leaky", ops.Activation("LeakyRelu", 0.1)
    for relation in ops.Relation:
        pair = ((ops.Compare(relation, each(np.round(CHANNELS)))), (), (ops.Constant(each(0.0)),))
        yield f"is_{relation.value.replace(' ', '_')}", ops.Where(((pair[0],), pair[1], pair[2]))


def cases() -> Iterator[tuple[str, Core]]:
    for mode in Rounding:
        for bits, signed, narrow in [
            (4, True, False),
            (3, False, False),
            (5, True, True),
            (8, False, True),
            (1, False, False),
        ]:
            name = f"q_{mode.name.lower()}_{bits}{'s' if signed else 'u'}{'n' if narrow else ''}"
            zero = np.array([0, 1, -2, 0.5, 3, 0]) if bits == 4 else 0.0
            yield name, core_of(graph_of(encode=quant(mode, bits, signed, narrow, zero)), lanes=3)
        mini = ops.FloatQuant(each(CHANNELS), 2, -3, 24.0, mode is not Rounding.CEIL, mode)
        yield f"mini_{mode.name.lower()}", core_of(graph_of(encode=mini), lanes=5, group=6)
        trunc = ops.Trunc(
            each(0.1), each(2.0), each(4.0), each(0.5), each(0.4), None if mode == 3 else IntType(-8, 7), mode
        )
        yield f"trunc_{mode.name.lower()}", core_of(graph_of(encode=trunc))
    yield "wide", core_of(graph_of(encode=quant(bits=32, scale=1e-6)), lanes=2)
    yield "q_double", core_of(graph_of(encode=quant(dtype=F64)), lanes=4, group=6)
    yield "of_double", core_of(graph_of(encode=quant(), dtype="float64"), lanes=2)
    yield "of_ints", core_of(graph_of(encode=quant(), dtype="int32"), lanes=12)
    yield "bipolar", core_of(graph_of(encode=ops.Bipolar(each(CHANNELS), each(1.0))), lanes=7)
    yield "bit", core_of(graph_of(encode=ops.SignedBit(each(CHANNELS), each(-0.25))))
    for (dtype, result), in_floats in product((("int8",) * 2, ("uint8",) * 2, ("int8", "int16")), (False, True)):
        exponentials_of = exponentials_in_floats if in_floats else exponentials_in_integers
        type_ = CODE_TYPES[result]
        name = f"{dtype}_{result}_{'floats' if in_floats else 'integers'}"
        for scale in (0.01, 0.3):
            softmax = HostSoftmax(dtype, exponentials_of(scale, 0.75), result).host_op(SHAPE)
            to_float = ops.Dequantize(each(2.0**-type_.bits), np.int64(type_.lo).reshape(1, 1, 1))
            graph = tail_of(softmax, to_float, output=integers(dtype, CODE_TYPES[dtype].lo, CODE_TYPES[dtype].hi))
            yield f"t_softmax_{name}_{scale}".replace(".", "_"), core_of(graph)
        row = (1, 1, 512)  # equal codes are ties
        codes = ir.Value(row, CODE_TYPES[dtype], ir.IntegerEncoding(dtype, np.zeros((1, 1, 1), np.int64)))
        steps = [(HostSoftmax(dtype, exponentials_of(0.125, 1.0), result).host_op(row), row)]
        graph = graph_of(encode=quant(), tail=steps, output=codes, out=result)
        yield f"t_softmax_long_{name}", core_of(graph)
    for runtime, scale, row in product((Runtime.TFLM, Runtime.LITERT), (1e-4, 0.01), (SHAPE, (1, 1, 300))):
        softmax = int16_host_op(Int16Softmax.of(runtime, scale, 0.75), row)
        codes = ir.Value(row, CODE_TYPES["int16"], ir.IntegerEncoding("int16", np.zeros((1, 1, 1), np.int64)))
        graph = graph_of(encode=quant(), tail=[(softmax, row)], output=codes, out="int16")
        yield (
            f"t_softmax_int16_{runtime.name.lower()}_{scale}_{row[2]}".replace(".", "_").replace("-", "_"),
            core_of(graph),
        )
    steps = np.sort(np.random.default_rng(1).normal(0, 3, (15, 1, 1, C)), axis=0).astype(F32)
    yield "thresholds", core_of(graph_of(encode=ops.MultiThreshold(steps, 1.0, 0.0)), lanes=2)
    yield "one_row", core_of(graph_of(encode=ops.MultiThreshold(steps[:, :, :, :1], 0.3, -0.1)), lanes=2)
    for dtype, lo, hi in [
        ("int8", -128, 127),
        ("uint8", 0, 255),
        ("int16", -(1 << 15), (1 << 15) - 1),
        ("int32", -(1 << 31), (1 << 31) - 1),
    ]:
        zero = np.int64((lo + hi) // 3).reshape(1, 1, 1)
        op = ops.QuantizeLinear(each(CHANNELS if dtype != "int32" else CHANNELS * 1e-8), zero, IntType(lo, hi), dtype)
        yield f"ql_{dtype}", core_of(graph_of(encode=op), lanes=3, axes=(0, 2, 1))
    down = ops.QuantizeLinear(each(1.0), np.zeros((1, 1, 1), np.int64), IntType(-128, 127), "int8", Rounding.DOWN)
    yield "to_int", core_of(graph_of(encode=down))
    for convention in ops.Convention:
        shift = (
            np.array([7, 3, 20, 33, 40, 31]) if convention == ops.Convention.DOUBLE else np.array([0, 3, 5, 9, 12, 20])
        )
        multiplier = np.array([77, -5, 1000, 1 << 20, 3, 255])
        add = np.array([0, 3, -7, 2, 1, 0])
        op = ops.Requantize(
            convention, *(each(a, np.int64) for a in (multiplier, add, shift, add)), IntType(-50, 77), "int8"
        )
        yield f"requant_{convention.value}", core_of(graph_of(encode=op, dtype="int16"), lanes=2)
        yield f"requant_{convention.value}_f", core_of(graph_of(encode=op), lanes=2)
    moved = [
        (ops.Mul(each(CHANNELS)), SHAPE),
        (ir.Transpose((2, 0, 1)), (C, 1, 2)),
        (ops.Add(const([1, -2], 3)), (C, 1, 2)),
        (ir.Reshape(), (3, 4)),
    ]
    yield (
        "moves",
        core_of(
            graph_of(moved, ops.IntQuant(const([0.5, 1, 2, 0.3], 2), const(0.0, 2), int_type(6, True), Rounding.ROUND)),
            lanes=3,
            group=4,
            axes=(1, 0),
        ),
    )
    full = [(ops.Add((np.arange(12) / 7).astype(F32).reshape(SHAPE)), SHAPE)]
    yield "every_element", core_of(graph_of(full, quant()), lanes=12)
    largest = [(ops.Mul(each(CHANNELS)), SHAPE), (ir.ArgMax(True), (1, 2, 1)), (ops.Cast("float32"), (1, 2, 1))]
    yield "arg_max_first", core_of(graph_of(largest, input_=ir.Value((1, 2, 1), IntType(0, 7), ir.Fixed(0))), lanes=2)
    pixels = [(ops.Cast("float32"), SHAPE), (ops.Add(each(-127.5)), SHAPE), (ops.Div(each(CHANNELS * 50)), SHAPE)]
    yield "pixels", core_of(graph_of(pixels, quant(), dtype="uint8"), lanes=3)
    decoded = [(ops.Dequantize(each(CHANNELS), np.int64(3).reshape(1, 1, 1)), SHAPE)]
    yield "codes_in", core_of(graph_of(decoded, quant(), dtype="int8"), lanes=3)
    # Products of 25 bits, halfway between two float32, plus or minus a little: only one rounding gives these sums.
    factors = np.array([4097, 4099, 4133, 5001, 5555, 4096 * 2.0**-12 * (1 - 2.0**-18)]) / 4096
    little = np.array([1e-20, -1e-20, 1e-20, -1e-20, 1e-20, 1 + 2.0**-23])
    fine = quant(bits=32, scale=2.0**-23)
    yield "fma_ties", core_of(graph_of([(ops.Fma(each(factors), each(little)), SHAPE)], fine))
    # Ports without a quantizer.
    yield "port_float32", core_of(graph_of(input_=ir.Value(SHAPE, IntType(0, KEY_POS_INF), ir.FloatKey())), lanes=3)
    yield "port_fixed", core_of(graph_of(input_=ir.Value(SHAPE, IntType(-64, 63), ir.Fixed(3))), lanes=5, group=6)
    yield (
        "port_ufixed",
        core_of(graph_of(input_=ir.Value(SHAPE, IntType(0, 255), ir.Fixed(9)), dtype="float64"), lanes=3),
    )
    yield "port_int8", core_of(graph_of(input_=integers("int8", -100, 100), dtype="int8"), lanes=3)
    yield "port_int32", core_of(graph_of(input_=integers("int32", -(1 << 31), (1 << 31) - 1), dtype="int32"))
    pairs = ir.Value(SHAPE, IntType(0, 65535), ir.IntegerEncoding("uint16", np.zeros((1, 1, 1), np.int64)))
    yield "pairs_i", core_of(graph_of(input_=pairs, dtype="int8", second="b"), lanes=2)
    yield "pairs_u", core_of(graph_of(input_=pairs, dtype="uint8", second="b"), lanes=2)
    # Bus words with several beats, an incomplete last word, and beats of several words.
    yield "bus_of_slots", core_of(graph_of(encode=quant(bits=5)), lanes=5, width=64)
    yield "bus_of_bytes", core_of(graph_of(encode=quant(bits=8)), lanes=1, width=32)
    yield "bus_of_parts", core_of(graph_of(encode=quant(bits=7)), lanes=12, width=32)
    yield (
        "bus_of_floats",
        core_of(graph_of(input_=ir.Value(SHAPE, IntType(0, KEY_POS_INF), ir.FloatKey())), lanes=3, width=64),
    )
    # Tails.
    for name, op in elementwise():
        yield f"t_{name}", core_of(tail_of(op, out="float64" if name == "double" else "float32"), lanes=2)
    yield (
        "t_double_ops",
        core_of(
            tail_of(
                ops.Cast("float64"),
                ops.Mul(each(CHANNELS, F64)),
                ops.Add(each(CHANNELS, F64)),
                ops.Activation("Floor"),
                ops.Div(each(3.1, F64)),
                out="float64",
            )
        ),
    )
    yield "t_relation", core_of(tail_of(ops.Compare(ops.Relation.NOT_LESS, each(CHANNELS)), out="bool"))
    yield "t_quant", core_of(tail_of(quant(), quant(bits=3, signed=False), ops.Mul(each(3.3))))
    yield (
        "t_transpose",
        core_of(
            tail_of(
                (ir.Transpose((0, 2, 1)), (1, C, 2)),
                (ops.Add(const([0.5, 2], 3)), (1, C, 2)),
                (ir.Transpose((2, 1, 0)), (2, C, 1)),
            ),
            axes=(0, 2, 1),
        ),
    )
    yield "t_arg_max", core_of(tail_of(ops.Mul(each(-CHANNELS)), (ir.ArgMax(False), (1, 2)), out="int64"))
    yield (
        "t_arg_max_of_ints",
        core_of(
            tail_of(
                (ir.ArgMax(True), (1, 2, 1)),
                out="int64",
                output=ir.Value(SHAPE, IntType(0, 3), ir.IntegerEncoding("int64", each(CHANNELS, np.int64))),
            )
        ),
    )
    yield (
        "t_then_more",
        core_of(tail_of((ir.ArgMax(False), (1, 2)), ops.Cast("float32"), ops.Mul(const(0.3, 2)), out="float32")),
    )
    yield (
        "t_index",
        core_of(
            tail_of(
                out="int64",
                index=True,
                output=ir.Value((1, 2), IntType(0, 9), ir.IntegerEncoding("int64", np.zeros((1, 1), np.int64))),
            )
        ),
    )
    for n, (dtype, hi) in enumerate([("int8", 127), ("uint8", 255), ("int16", 32767), ("int32", (1 << 31) - 1)]):
        value = ir.Value(
            SHAPE,
            IntType(-hi - 1 if dtype[0] == "i" else 0, hi),
            ir.IntegerEncoding(dtype, each([0, 1, -1, 100, 7, 3], np.int64)),
        )
        operations = (
            [ops.Add(each(100, dtype)), ops.Mul(each(3, dtype)), ops.Activation("Abs"), ops.Activation("Sign")]
            if dtype[0] == "i"
            else [ops.Add(each(200, dtype)), ops.Max(each(9, dtype))]
        )
        yield f"t_{dtype}", core_of(tail_of(*operations[: 3 + n % 2], out=dtype, output=value), lanes=3)
    for factor, lo, hi in [(1, -3000, 3000), (2, -(1 << 20), 1 << 20), (1, -(1 << 40), 1 << 40), (1, 0, 1 << 22)]:
        meaning: ir.Encoding = ir.Accumulator(
            factor, each([0, 5, -3, 0, 1, 2], np.int64), each(CHANNELS.astype(F32).astype(F64) * F64(F32(0.3)))
        )
        yield (
            f"t_sum_{factor}_{hi}",
            core_of(
                tail_of(ops.Add(each(CHANNELS)), output=ir.Value(SHAPE, IntType(lo, hi), meaning)), lanes=5, group=6
            ),
        )
    for code in TIE_CODES:
        ties = ir.Accumulator(1, each(0, np.int64), each(tie_scales(code), F64))
        yield f"t_sum_ties_{code}", core_of(tail_of(output=ir.Value(SHAPE, IntType(-code, code), ties)))
    tiny = ir.Accumulator(1, each(0, np.int64), each(1e-41, F64))
    yield "t_subnormal", core_of(tail_of(output=ir.Value(SHAPE, IntType(-5000, 5000), tiny)))
    yield "t_count", core_of(tail_of(output=ir.Value(SHAPE, IntType(0, 15), ir.ThresholdCount(0.3, -1.7))))
    yield "t_fixed", core_of(tail_of(output=ir.Value(SHAPE, IntType(-(1 << 31), (1 << 31) - 1), ir.Fixed(9))))
    yield (
        "t_key",
        core_of(tail_of(ops.Mul(each(CHANNELS)), output=ir.Value(SHAPE, IntType(0, KEY_POS_INF), ir.FloatKey()))),
    )


def tie_scales(code: int) -> Array:
    """Scales of 48 bits for which code * scale is close to the middle of two float32, above or below.

    float64 rounds the product to the middle itself.
    """
    scales: list[float] = []
    middle = (1 << 25) - 1
    while len(scales) < C:
        middle -= 2  # 25 bits, the last one 1
        halfway = middle << (code.bit_length() + 22)
        scale = (halfway + code // 2) // code
        remainder = scale * code - halfway
        # Rounding the middle to even goes the other way than the remainder.
        if scale >> 48 == 0 and 0 < abs(remainder) < halfway >> 55 and (middle >> 1 & 1) == (remainder < 0):
            scales.append(float(scale) * 2.0**-70)
    return np.array(scales)


ALL = dict(cases())
SPECIAL = [
    0.0,
    -0.0,
    np.nan,
    np.inf,
    -np.inf,
    1e-45,
    -1e-45,
    3.4e38,
    -3.4e38,
    0.49999997,
    -0.49999997,
    0.5,
    -0.5,
    1.5,
    2.5,
    8388609.0,
]


def numbers_for(name: str, core: Core) -> list[Array]:
    """Frames for the head: ties and both sides of them, special values.

    If the port has no quantizer, some frames are exact codes and some are not.
    """
    head, rng = plan_head(core.graph), np.random.default_rng(zlib.crc32(name.encode()))
    dtype, shape = np.dtype(head.start.dtype), (FRAMES, *head.start.shape)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return [
            rng.integers(info.min, info.max, shape, np.int64, endpoint=True).astype(dtype)
            for _ in range(1 + head.pairs)
        ]
    if isinstance(core.graph.input.encoding, ir.Fixed) and core.graph.encode is None and not head.steps:
        step = 2.0 ** -(core.graph.input.encoding.fraction + 1)
        x = rng.integers(2 * core.graph.input.type.lo - 9, 2 * core.graph.input.type.hi + 9, shape) * step
        x[: FRAMES // 2] = (
            np.clip(np.floor(x[: FRAMES // 2] / step / 2), core.graph.input.type.lo, core.graph.input.type.hi)
            * step
            * 2
        )
        return [x.astype(dtype)]
    if isinstance(core.graph.input.encoding, ir.FloatKey):
        x = rng.integers(0, 1 << 32, shape, np.uint32).view(F32)
        x[0].flat[:] = SPECIAL[:12]
        return [x]
    if name == "fma_ties":
        x = (4097 + 2 * rng.integers(0, 800, shape)) / 4096
        x[..., 5] = (1 + 2.0**-18) / 4096  # a product of 2^-24 - 2^-60, and 1 + 2^-23 added to it
        return [x.astype(F32)]
    scale = np.resize(CHANNELS, shape)
    ties = np.round(rng.normal(0, 9, shape) * 2) / 2 * scale
    x = np.where(rng.random(shape) < 0.5, ties, rng.normal(0, 5, shape)).astype(dtype)
    beside_tie = rng.random(shape) < 0.3
    x = np.where(beside_tie, np.nextafter(x, dtype.type(np.inf) * rng.choice([-1, 1], shape).astype(dtype)), x)
    x = np.where(rng.random(shape) < 0.1, rng.choice(np.array(SPECIAL, dtype), shape), x)
    if isinstance(core.graph.encode, ops.Requantize):
        x = np.clip(np.nan_to_num(x), -(2.0**30), 2.0**30)  # beyond, numpy's integers depend on the processor
    return [x.astype(dtype)]


def codes_for(name: str, core: Core) -> Array:
    value, rng = core.graph.output, np.random.default_rng(zlib.crc32(name.encode()) + 1)
    codes = rng.integers(value.type.lo, value.type.hi + 1, (FRAMES, *value.shape))
    if "sum_ties" in name:
        codes = rng.choice([value.type.lo, value.type.hi], codes.shape)
    codes[0], codes[1] = value.type.lo, value.type.hi
    return codes


@dataclass
class Ran:
    folder: Path
    frames: dict[str, tuple[list[Array], Array]]
    results: dict[str, Given]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("host")
    frames = {name: (numbers_for(name, core), codes_for(name, core)) for name, core in ALL.items()}
    return Ran(folder, frames, run_in_c(ALL, frames, folder))


def assert_same(actual: Array, expected: Array) -> None:
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected)


def expected_codes(core: Core, numbers: list[Array], rounded: bool = False) -> Array:
    """Codes of the interpreter. For a float32 port, float32 bits, which host code uses instead of keys."""
    graph = core.graph
    x = (
        numbers[0]
        if len(numbers) == 1
        else (numbers[0].astype(np.int64) & 255) | ((numbers[1].astype(np.int64) & 255) << 8)
    )
    codes = encode_input(graph, x, rounded)
    if isinstance(graph.input.encoding, ir.FloatKey):
        bits = numbers[0].view(np.uint32).astype(np.int64)
        return np.where(np.isnan(numbers[0]), 0x7FC00000, bits)
    return codes


def holds(core: Core, numbers: list[Array]) -> Array:
    """A mask of the frames that the codes of the input represent exactly."""
    graph, kind = core.graph, core.graph.input.encoding
    if graph.encode is not None or isinstance(kind, ir.FloatKey) or len(numbers) == 2 or graph.head:
        return np.ones(FRAMES, bool)
    scaled = numbers[0] * 2.0 ** getattr(kind, "fraction", 0)
    fits = (scaled == np.round(scaled)) & (scaled >= graph.input.type.lo) & (scaled <= graph.input.type.hi)
    return fits.reshape(FRAMES, -1).all(axis=1)


@pytest.mark.sweep
@pytest.mark.parametrize("name", ALL)
def test_c_and_python_equal_the_interpreter(name: str, ran: Ran) -> None:
    core, c_results, (numbers, codes) = ALL[name], ran.results[name], ran.frames[name]
    host = module_of(ran.folder, name)
    fit = holds(core, numbers)
    assert fit.any()
    codes_in = expected_codes(core, [x[fit] for x in numbers])
    keyed = encode_input(core.graph, numbers[0]) if isinstance(core.graph.input.encoding, ir.FloatKey) else codes_in
    assert_same(c_results.codes[fit], codes_in)
    assert_same(c_results.data[fit], bytes_of(core, keyed))
    assert ((c_results.wrong.ravel() == 0) == fit).all()
    assert_same(host.head(*(x[fit] for x in numbers)), codes_in)
    assert host.pack(codes_in) == c_results.data[fit].tobytes()
    if not fit.all():
        with pytest.raises(ValueError, match="no codes of the input"):
            host.head(numbers[0])
    assert_same(c_results.read, codes)
    output_bytes = bytes_out(core, codes).tobytes()
    assert_same(host.unpack(output_bytes), codes)
    expected_numbers = decode_output(core.graph, codes)
    assert_same(c_results.numbers, expected_numbers)
    assert_same(host.tail(codes), expected_numbers)
    assert_same(host.decode(output_bytes), expected_numbers)
    assert not plan_head(core.graph).user_steps
    assert not plan_tail(core.graph).user_steps


def test_inputs_can_be_rounded_to_codes(ran: Ran) -> None:
    """C makes the nearest code and counts the numbers that were no code; Python rounds if `round_input` is set."""
    core, c_results, (numbers, _) = ALL["port_fixed"], ran.results["port_fixed"], ran.frames["port_fixed"]
    scaled = numbers[0] * 8.0
    inside = ((np.rint(scaled) >= -64) & (np.rint(scaled) <= 63)).reshape(FRAMES, -1).all(axis=1)
    assert inside.any()
    nearest_codes = expected_codes(core, [numbers[0][inside]], rounded=True)
    assert_same(c_results.codes[inside], nearest_codes)
    assert_same(module_of(ran.folder, "port_fixed").head(numbers[0][inside], round_input=True), nearest_codes)
    assert (c_results.codes >= -64).all()
    assert (c_results.codes <= 63).all()
    wrong = (scaled != np.round(scaled)) | (scaled < -64) | (scaled > 63)
    assert_same(c_results.wrong.ravel(), wrong.reshape(FRAMES, -1).sum(axis=1).astype(np.uint64))


@pytest.mark.parametrize(
    "name", ["q_half_up_4s", "moves", "port_float32", "pairs_i", "t_arg_max", "t_softmax_uint8_uint8_floats_0_3"]
)
def test_self_tests_pass(name: str, ran: Ran) -> None:
    c, python = self_tests(ran.folder, name)
    assert c == python == f"{name}: 3 frames, 0 differences\n"


def test_a_changed_byte_fails_the_self_test(ran: Ran) -> None:
    name = "q_half_up_4s"
    host = module_of(ran.folder, name)
    data = bytearray((ran.folder / "host" / f"{name}_vectors.bin").read_bytes())
    places = range(0, len(data), 97)
    for place in places:
        changed = bytearray(data)
        changed[place] ^= 0x40
        (ran.folder / "changed.bin").write_bytes(changed)
        head = place % (len(data) // 3) < 12 * 4
        assert head or host.self_test(ran.folder / "changed.bin"), place
    assert host.self_test() == 0
