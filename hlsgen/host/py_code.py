"""Host preprocessing (the head) and postprocessing (the tail) as numpy statements that replace `x` step by step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from typing_extensions import assert_never

from hlsgen import ir
from hlsgen.host.order_keys import OrderKeys
from hlsgen.host.plan import Head, HostStep, Tail
from hlsgen.host.source import CodeFunction, Entries, Shift, Thresholds
from hlsgen.host.text import op_name, plain
from hlsgen.interpreter.host_tflite import HostSoftmax, host_softmax
from hlsgen.ir import ops
from hlsgen.ir.evaluate import UNCLAMPED, decoding
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.numerics.tflite.softmax_of_int16 import Int16Softmax

_RELATIONS = {
    ops.Relation.GREATER: ">",
    ops.Relation.LESS: "<",
    ops.Relation.NOT_LESS: ">=",
    ops.Relation.NOT_GREATER: "<=",
    ops.Relation.EQUAL: "==",
}
_JOINS = {
    ops.BinaryKind.ADD: "{} + {}",
    ops.BinaryKind.SUB: "{} - {}",
    ops.BinaryKind.MUL: "{} * {}",
    ops.BinaryKind.DIV: "{} / {}",
    ops.BinaryKind.MAX: "np.maximum({}, {})",
    ops.BinaryKind.MIN: "np.minimum({}, {})",
}
_ACTIVATIONS = {
    "Abs": "np.abs(x)",
    "Sqrt": "np.sqrt(x)",
    "Ceil": "np.ceil(x)",
    "Floor": "np.floor(x)",
    "Round": "np.round(x)",
    "Sign": "np.sign(x)",
}
_PER_LINE = 8


def number(value: float) -> str:
    """An exact Python literal of a number."""
    if isinstance(value, float) and not math.isfinite(value):
        return "np.nan" if math.isnan(value) else "np.inf" if value > 0 else "-np.inf"
    return repr(value)


@dataclass
class Arrays:
    """Constants of the generated module, each declared once."""

    lines: list[str] = field(default_factory=list)
    names: dict[tuple[str, tuple[int, ...], bytes], str] = field(default_factory=dict)

    def __call__(self, values: Any, table: bool = False) -> str:
        """The name of an array with these values and this dtype; declares it if there is none yet.

        It has at least one axis. A single number has exactly one, except if `table` is set.
        """
        array: Array = np.atleast_1d(np.asarray(values))
        if array.size == 1 and not table:
            array = array.reshape(1)
        key = str(array.dtype), array.shape, array.tobytes()
        if key not in self.names:
            name = self.names[key] = f"_C{len(self.names)}"
            texts = [number(v) for v in array.ravel().tolist()]
            rows = [", ".join(texts[n : n + _PER_LINE]) for n in range(0, len(texts), _PER_LINE)]
            inner = rows[0] if len(rows) == 1 else "\n    " + ",\n    ".join(rows) + "\n"
            shape = "" if array.ndim == 1 else f".reshape({', '.join(map(str, array.shape))})"
            self.lines.append(f'{name} = np.array([{inner}], "{array.dtype}"){shape}')
        return self.names[key]


def head_lines(head: Head, arrays: Arrays, encoding: ir.Encoding, type_: IntType) -> list[str]:
    """Statements from the model's input in `x` to its codes in `x`."""
    if head.source is not None:
        moves = [step for step in head.steps if isinstance(step.step.op, ir.Reshape | ir.Transpose)]
        lines = ["x = x.astype(np.int64)", *_steps(moves, arrays)]
        return [*lines, f"x = {_code_of_integer(head.source.function, arrays)}"]
    lines = _steps(head.steps, arrays)
    if head.encode is not None:
        lines += [f"# input quantizer: {type(head.encode).__name__}", f"x = {_quantized(head.encode, 'x', arrays)}"]
        if head.bounds is not None:
            lines.append(f"x = np.clip(x, {', '.join(map(arrays, head.bounds))})  # NaN")
        return lines
    match encoding:
        case ir.FloatKey():
            lines += [
                "x = np.ascontiguousarray(x, np.float32)",
                "x = np.where(np.isnan(x), np.uint32(0x7FC00000), x.view(np.uint32)).astype(np.int64)",
            ]
        case ir.Fixed(fraction):
            lines += [
                f"x = np.ldexp(x.astype(np.float64), {fraction})",
                "near = np.rint(x) if round_input else x",
                f"_check_input((near == np.round(near)) & (near >= {type_.lo}) & (near <= {type_.hi}))",
                "x = near.astype(np.int64)",
            ]
        case _ if not head.pairs:
            lines += ["x = x.astype(np.int64)", f"_check_input((x >= {type_.lo}) & (x <= {type_.hi}))"]
    return lines


def _code_of_integer(function: CodeFunction, arrays: Arrays) -> str:
    """An expression for the codes of the integers `x`."""
    match function:
        case Shift(up, down, add, even, offset, type_):
            terms = [f"(x << {up})" if up else "x", f"{add}" if add else "", f"(x >> {down} & 1)" if even else ""]
            total = " + ".join(term for term in terms if term)
            total = f"({total} >> {down})" if down else total
            return f"np.clip({total} + {offset}, {type_.lo}, {type_.hi})"
        case Entries(first, table):
            return f"_lookup({arrays(table, table=True)}, x - {first})"
        case Thresholds(thresholds, base, sign):
            if thresholds[0].size == 1:
                count = f'np.searchsorted({arrays(thresholds.ravel())}, x, "right")'
            else:
                count = f"_count(x, {arrays(thresholds, table=True)})"
            return f"{base} {'+' if sign > 0 else '-'} {count}"
        case _:
            assert_never(function)


def tail_lines(tail: Tail, arrays: Arrays) -> list[str]:
    """Statements from codes in `x` to the model's output in `x`."""
    encoding = tail.encoding_of_numbers
    lines = [] if encoding is None else [f"x = {_decoded(encoding, 'x', arrays)}"]
    if tail.joined is not None:
        left_tail, right_tail = tail.joined.sides
        left_size = math.prod(left_tail.decoded.shape)
        left_codes = f"x[:, :{left_size}].reshape(-1, *{left_tail.decoded.shape})"
        right_codes = f"x[:, {left_size}:].reshape(-1, *{right_tail.decoded.shape})"
        lines = [
            f"x, other = {left_codes}, {right_codes}",
            *tail_lines(left_tail, arrays),
            "x, other = other, x",
            *tail_lines(right_tail, arrays),
            f"# {plain(tail.joined.name)}: {tail.joined.kind.value}",
            f"x = {_JOINS[tail.joined.kind].format('other', 'x')}",
        ]
    return [*lines, *_steps(tail.computed_steps, arrays, tail.keys), f'x = x.astype("{tail.end.dtype}")']


def _steps(steps: Sequence[HostStep], arrays: Arrays, keys: OrderKeys | None = None) -> list[str]:
    """Statements of the steps of a head or tail; the first ArgMax compares `keys`."""
    lines = []
    for host_step in steps:
        op = host_step.step.op
        lines.append(f"# {plain(host_step.step.name)}: {op_name(op)}")
        match op:
            case ir.Reshape():
                lines.append(f"x = x.reshape(len(x), {', '.join(map(str, host_step.output.shape))})")
            case ir.Transpose(perm):
                lines.append(f"x = x.transpose(0, {', '.join(str(axis + 1) for axis in perm)})")
            case ir.ArgMax():
                if keys is not None:
                    lines.insert(-1, f"x = x * {arrays(keys.factor)} + {arrays(keys.offset)}")
                    keys = None
                shape = ", ".join(map(str, host_step.output.shape))
                lines.append(f"x = np.argmax(x, axis=-1).reshape(len(x){f', {shape}' if shape else ''})")
            case ir.HostOp():
                softmax = host_softmax(op)
                assert softmax is not None, op.op_type
                lines += _softmax(softmax, arrays)
            case _:
                lines.append(f"x = {_applied(op, 'x', arrays)}")  # type: ignore[arg-type]
    return lines


def _softmax(softmax: HostSoftmax | Int16Softmax, arrays: Arrays) -> list[str]:
    """Statements of TFLite's SOFTMAX along the last axis."""
    exponentials = arrays(softmax.exponentials, table=True)
    if isinstance(softmax, Int16Softmax):
        tables = f"{exponentials}, {arrays(softmax.reciprocals, table=True)}"
        multiplier = softmax.multiplier
        return [
            f"x = _softmax_of_int16(x.astype(np.int64), {tables}, {multiplier.value}, {multiplier.exponent})",
            'x = x.astype("int16")',
        ]
    function, low = "_softmax_in_floats" if softmax.in_floats else "_softmax_in_integers", softmax.type.lo
    return [
        f"x = {function}(x.astype(np.int64), {exponentials}, {low}, {softmax.type.bits})",
        f'x = x.astype("{softmax.result}")',
    ]


def _chain(operations: tuple[ops.Elementwise, ...], x: str, arrays: Arrays) -> str:
    """An expression for these successive operations."""
    for op in operations:
        x = _applied(op, x, arrays)
    return x


def _applied(op: ops.Elementwise, x: str, arrays: Arrays) -> str:
    """An expression for an operation on the array that expression `x` gives."""
    match op:
        case ops.Mul(value):
            return f"({x} * {arrays(value)})"
        case ops.Add(value):
            return f"({x} + {arrays(value)})"
        case ops.Fma(factor, value):
            return f"_fma({x}, {arrays(factor)}, {arrays(value)})"
        case ops.Div(value):
            return f"({x} / {arrays(value)})"
        case ops.Max(value):
            return f"np.maximum({x}, {arrays(value)})"
        case ops.Min(value):
            return f"np.minimum({x}, {arrays(value)})"
        case ops.Cast(dtype):
            return f'{x}.astype("{dtype}")'
        case ops.Dequantize(scale, zero):
            return f"(({x}.astype(np.int64) - {arrays(zero)}).astype(np.float32) * {arrays(scale)})"
        case ops.Activation():
            return _activated(op, x)
        case ops.Slope(value):
            return f"(lambda x: np.where(x >= 0, x, x * {arrays(value)}))({x})"
        case ops.Compare(kind, value):
            return f"({x} {_RELATIONS[kind]} {arrays(value)})"
        case ops.Constant(value):
            name = arrays(value)
            return f"np.broadcast_to({name}, np.broadcast_shapes({name}.shape, ({x}).shape))"
        case ops.Lookup(values):
            return f"_lookup({arrays(values, table=True)}, {x})"
        case ops.BinaryOf(kind, branches):
            operands = (_chain(branch, "x", arrays) for branch in branches)
            return f"(lambda x: {_JOINS[kind].format(*operands)})({x})"
        case ops.Where(branches):
            return f"(lambda x: np.where({', '.join(_chain(branch, 'x', arrays) for branch in branches)}))({x})"
        case _:
            assert isinstance(op, ops.QUANTIZERS)
            return _decoded(decoding(op), _quantized(op, x, arrays), arrays)


def _activated(op: ops.Activation, x: str) -> str:
    """An expression for an activation function."""
    a, b = (f"x.dtype.type({number(float(v))})" for v in (op.alpha, op.beta))
    match op.kind:
        case "LeakyRelu":
            text = f"np.where(x >= 0, x, {a} * x)"
        case "HardSigmoid":
            text = f"np.minimum(np.maximum({a} * x + {b}, x.dtype.type(0)), x.dtype.type(1))"
        case "HardSwish":
            inner = f"x * x.dtype.type({number(1 / 6)}) + x.dtype.type(0.5)"
            text = f"x * np.minimum(np.maximum({inner}, x.dtype.type(0)), x.dtype.type(1))"
        case _:
            text = _ACTIVATIONS[op.kind]
    return f"(lambda x: {text})({x})"


def _quantized(op: ops.Quantizer, x: str, arrays: Arrays) -> str:
    """An expression for the codes of a quantizer."""
    match op:
        case ops.IntQuant(scale, zero, type_, mode):
            return f'_to_codes({x} / {arrays(scale)} + {arrays(zero)}, {type_.lo}, {type_.hi}, "{mode.name}")'
        case ops.Bipolar(_, divisor):
            return f"({x} / {arrays(divisor)} >= 0).astype(np.int64)"
        case ops.SignedBit(scale, zero):
            return f"np.where({x} / {arrays(scale)} + {arrays(zero)} >= 0, 1, -1)"
        case ops.Trunc():
            y = f"np.round({x} / {arrays(op.scale)} + {arrays(op.zero_point)}) / {arrays(op.divisor)}"
            if op.type is None:
                return f'_limited(_rounded({y}, "{op.mode.name}"), {UNCLAMPED.lo}, {UNCLAMPED.hi})'
            return f'_to_codes({y}, {op.type.lo}, {op.type.hi}, "{op.mode.name}")'
        case ops.MultiThreshold(thresholds):
            return f"_count({x}, {arrays(thresholds, table=True)})"
        case ops.QuantizeLinear(scale, zero, type_, _, mode):
            rounded = f'_limited(_rounded({x} / {arrays(scale)}, "{mode.name}"), -(1 << 62), 1 << 62)'
            return f"np.clip({rounded} + {arrays(zero)}, {type_.lo}, {type_.hi})"
        case ops.Requantize():
            constants = ", ".join(map(arrays, (op.multiplier, op.add, op.shift)))
            shifted = f'_shifted({x}, {constants}, "{op.convention.value}")'
            return f"np.clip({shifted} + {arrays(op.zero_point)}, {op.type.lo}, {op.type.hi})"
        case ops.FloatQuant():
            numbers = f"{op.mantissa}, {op.minimum_exponent}, {number(float(op.largest))}, {op.signed}"
            return f'_minifloat({x} / {arrays(op.scale)}, {numbers}, "{op.mode.name}")'
        case _:
            raise AssertionError(f"{op}: left to the user")


def _decoded(encoding: ir.Encoding, x: str, arrays: Arrays) -> str:
    """An expression for the values of codes."""
    match encoding:
        case ir.Affine(scale, zero):
            return f"(({x}.astype(np.float32) - {arrays(zero)}) * {arrays(scale)}).astype(np.float32)"
        case ir.ThresholdCount(scale, bias):
            return f"({x}.astype(np.float32) * {arrays(np.float32(scale))} + {arrays(np.float32(bias))})"
        case ir.Accumulator(factor, offset, scale):
            return f"_product({x} * {factor} + {arrays(offset)}, {arrays(np.asarray(scale, np.float64))})"
        case ir.Fixed(fraction):
            return f"np.ldexp({x}.astype(np.float64), {-fraction}).astype(np.float32)"
        case ir.FloatKey():
            return f"_float_of_key({x})"
        case ir.IntegerEncoding(dtype, offset):
            return f'({x} + {arrays(offset)}).astype("{dtype}")'
        case _:
            assert_never(encoding)
