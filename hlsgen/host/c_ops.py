"""Operations of head and tail as C statements that round as the model does: once per operation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from typing_extensions import assert_never

from hlsgen.host.c_values import Constants, Value, computing_type, literal
from hlsgen.host.order_keys import OrderKeys
from hlsgen.ir import Accumulator, Affine, Encoding, Fixed, FloatKey, IntegerEncoding, Shape, ThresholdCount, ops
from hlsgen.ir.evaluate import UNCLAMPED, decoding
from hlsgen.numerics.fixed import Array

_RELATIONS = {
    ops.Relation.GREATER: ">",
    ops.Relation.LESS: "<",
    ops.Relation.NOT_LESS: ">=",
    ops.Relation.NOT_GREATER: "<=",
    ops.Relation.EQUAL: "==",
}
_JOINS = {
    ops.BinaryKind.ADD: "add",
    ops.BinaryKind.SUB: "sub",
    ops.BinaryKind.MUL: "mul",
    ops.BinaryKind.DIV: "div",
    ops.BinaryKind.MAX: "max",
    ops.BinaryKind.MIN: "min",
}
#: Bounds for integers made from floats: sums with other constants then stay within int64_t.
_WITHIN_62_BITS = "-((int64_t)1 << 62), (int64_t)1 << 62"


@dataclass
class Body:
    """The statements of a C function that computes one element of a tensor."""

    constants: Constants
    lines: list[str] = field(default_factory=list)
    values: int = 0

    def new(self, text: str, dtype: str) -> Value:
        """Declares a variable with the value of an expression."""
        self.values += 1
        name = f"v{self.values}"
        self.lines.append(f"const {computing_type(dtype)} {name} = {text};")
        return Value(name, dtype)

    def call(self, name: str, dtype: str, *values: Value) -> Value:
        """Calls the helper function of this name for this dtype. Sums, differences and products of integers wrap."""
        family = Value("", dtype).family
        text = f"hg_{name}_{family}({', '.join(self.to(v, dtype).text for v in values)})"
        return self.new(_wrapped(text, dtype) if name in ("add", "sub", "mul") else text, dtype)

    def to(self, value: Value, dtype: str) -> Value:
        """Converts a value as numpy does: integers wrap. Floats are not converted to integers."""
        if value.dtype == dtype:
            return value
        if dtype in ("float32", "float64"):
            return Value(f"({computing_type(dtype)}){value.text}", dtype)
        if dtype == "bool":
            return Value(f"(int64_t)({value.text} != 0)", dtype)
        return Value(_wrapped(value.text, dtype), dtype)

    # ------------------------------------------------------------------ operations

    def apply(self, op: ops.Elementwise, x: Value, shape: Shape, at: str) -> Value:
        """Element `at` of a tensor of this shape after an operation; `x`: that element before it."""

        def constant(values: Array) -> Value:
            return self.constants.entry(values, str(values.dtype), shape, at)

        match op:
            case ops.Mul(value) | ops.Add(value) | ops.Div(value) | ops.Max(value) | ops.Min(value):
                c = constant(value)
                return self.call(type(op).__name__.lower(), str(np.result_type(x.dtype, c.dtype)), x, c)
            case ops.Fma(factor, value):
                return self.call("fma", "float32", x, constant(factor), constant(value))
            case ops.Cast(dtype):
                return self.new(self.to(x, dtype).text, dtype)
            case ops.Dequantize(scale, zero_point):
                difference = self.call("sub", "int64", Value(x.text, "int64"), constant(zero_point))
                c = constant(scale)
                dtype = str(np.result_type(np.float32, c.dtype))
                return self.call("mul", dtype, self.to(difference, "float32"), c)
            case ops.Activation():
                return self._activation(op, x)
            case ops.Slope(value):
                product = self.call("mul", x.dtype, x, constant(value))
                return self.new(f"{x.text} >= 0 ? {x.text} : {product.text}", x.dtype)
            case ops.Compare(kind, value):
                a, b = self._promoted(x, constant(value))
                return self.new(f"{a.text} {_RELATIONS[kind]} {b.text}", "bool")
            case ops.Constant(value):
                return constant(value)
            case ops.Lookup(values):
                name, place, row = self.constants.column(values, str(values.dtype), shape, at)
                index = f"hg_place_{x.family}({x.text}, {len(values)})"
                index = index if row == 1 else f"{index} * {row} + {place}"
                return self.new(f"{name}[{index}]", str(values.dtype))
            case ops.BinaryOf(kind, branches):
                left_operand, right_operand = (self.chain(branch, x, shape, at) for branch in branches)
                return self.join(kind, left_operand, right_operand)
            case ops.Where(branches):
                condition, if_true, if_false = (self.chain(branch, x, shape, at) for branch in branches)
                a, b = self._promoted(if_true, if_false)
                return self.new(f"{condition.text} ? {a.text} : {b.text}", a.dtype)
            case _:
                assert isinstance(op, ops.QUANTIZERS)
                return self.decode(decoding(op), self.quantize(op, x, shape, at), shape, at)

    def join(self, kind: ops.BinaryKind, left_operand: Value, right_operand: Value) -> Value:
        """The result of a binary operation on two values of one dtype."""
        return self.call(_JOINS[kind], left_operand.dtype, left_operand, right_operand)

    def chain(self, operations: tuple[ops.Elementwise, ...], x: Value, shape: Shape, at: str) -> Value:
        """Element `at` after these successive operations."""
        for op in operations:
            x = self.apply(op, x, shape, at)
        return x

    def key(self, code: Value, keys: OrderKeys, shape: Shape) -> Value:
        """The key of code number i of a tensor of this shape."""
        factor, offset = (self.constants.entry(a, "int64", shape, "i").text for a in (keys.factor, keys.offset))
        return self.new(f"{code.text} * {factor} + {offset}", "int64")

    def _promoted(self, a: Value, b: Value) -> tuple[Value, Value]:
        """Both values, converted to the dtype that numpy computes with."""
        dtype = str(np.result_type(a.dtype, b.dtype))
        return self.to(a, dtype), self.to(b, dtype)

    def _activation(self, op: ops.Activation, x: Value) -> Value:
        def number(value: float) -> Value:
            return Value(literal(np.dtype(x.dtype).type(value), x.dtype), x.dtype)

        suffix = "f" if x.dtype == "float32" else ""
        match op.kind:
            case "Abs" if x.family == "int":
                return self.new(_wrapped(f"{x.text} < 0 ? -{x.text} : {x.text}", x.dtype), x.dtype)
            case "Sign" if x.family == "int":
                return self.new(f"({x.text} > 0) - ({x.text} < 0)", x.dtype)
            case "Abs":
                return self.new(f"fabs{suffix}({x.text})", x.dtype)
            case "Sqrt":
                return self.new(f"sqrt{suffix}({x.text})", x.dtype)
            case "LeakyRelu":
                product = self.call("mul", x.dtype, number(op.alpha), x)
                return self.new(f"{x.text} >= 0 ? {x.text} : {product.text}", x.dtype)
            case "HardSigmoid":
                product = self.call("mul", x.dtype, number(op.alpha), x)
                return self._zero_to_one(self.call("add", x.dtype, product, number(op.beta)))
            case "HardSwish":
                inner = self.call("add", x.dtype, self.call("mul", x.dtype, x, number(1 / 6)), number(0.5))
                return self.call("mul", x.dtype, x, self._zero_to_one(inner))
            case _:
                return self.new(f"hg_{op.kind.lower()}_{x.family}({x.text})", x.dtype)

    def _zero_to_one(self, x: Value) -> Value:
        """A value, limited to 0 to 1."""
        zero, unit = (Value(literal(n, x.dtype), x.dtype) for n in (0, 1))
        return self.call("min", x.dtype, self.call("max", x.dtype, x, zero), unit)

    # ------------------------------------------------------------------ quantizers

    def quantize(self, op: ops.Quantizer, x: Value, shape: Shape, at: str) -> Value:
        """The code of a value, as int64."""

        def constant(values: Any) -> Value:
            values = np.asarray(values)
            return self.constants.entry(values, str(values.dtype), shape, at)

        def binary(name: str, a: Value, b: Value) -> Value:
            return self.call(name, str(np.result_type(a.dtype, b.dtype)), a, b)

        match op:
            case ops.IntQuant(scale, zero, type_, mode):
                return self._to_code(
                    binary("add", binary("div", x, constant(scale)), constant(zero)),
                    type_.lo,
                    type_.hi,
                    mode.name,
                    True,
                )
            case ops.Bipolar(_, divisor):
                return self.new(f"{binary('div', x, constant(divisor)).text} >= 0", "int64")
            case ops.SignedBit(scale, zero):
                y = binary("add", binary("div", x, constant(scale)), constant(zero))
                return self.new(f"{y.text} >= 0 ? 1 : -1", "int64")
            case ops.Trunc():
                y = binary("add", binary("div", x, constant(op.scale)), constant(op.zero_point))
                y = binary("div", self.new(f"hg_round_{y.family}({y.text})", y.dtype), constant(op.divisor))
                type_ = op.type or UNCLAMPED
                return self._to_code(y, type_.lo, type_.hi, op.mode.name, op.type is not None)
            case ops.MultiThreshold(thresholds):
                return self._count(x, thresholds, shape, at)
            case ops.QuantizeLinear(scale, zero, type_, _, mode):
                y, z = binary("div", x, constant(scale)), constant(zero)
                # Limited to 2^62, the sum with the zero point fits int64_t.
                rounded = f"hg_{mode.name.lower()}_{y.family}({y.text})"
                total = self.new(f"hg_limit_{y.family}({rounded}, {_WITHIN_62_BITS}) + {z.text}", "int64")
                return self.new(
                    f"hg_clamp_int({total.text}, {literal(type_.lo, 'int64')}, {literal(type_.hi, 'int64')})", "int64"
                )
            case ops.Requantize():
                return self._requantize(op, x, constant)
            case ops.FloatQuant():
                y = binary("div", x, constant(op.scale))
                largest = literal(np.dtype(y.dtype).type(op.largest), y.dtype)
                mode_ = f"hg_{op.mode.name.lower()}_{y.family}"
                numbers = f"{op.mantissa}, {op.minimum_exponent}, {largest}, {int(op.signed)}"
                return self.new(f"hg_minifloat_{y.family}({y.text}, {numbers}, {mode_})", "int64")
            case _:
                raise AssertionError(f"{op}: left to the user")

    def _to_code(self, y: Value, lo: int, hi: int, mode: str, clamped: bool) -> Value:
        """`y` rounded to an integer from lo to hi. clamped: `y` is also limited before it is rounded."""
        low, high = (literal(np.dtype(y.dtype).type(n), y.dtype) for n in (lo, hi))
        if clamped:
            y = self.new(f"hg_clamp_{y.family}({y.text}, {low}, {high})", y.dtype)
        rounded = f"hg_{mode.lower()}_{y.family}({y.text})"
        return self.new(f"hg_limit_{y.family}({rounded}, {literal(lo, 'int64')}, {literal(hi, 'int64')})", "int64")

    def _count(self, x: Value, thresholds: Array, shape: Shape, at: str) -> Value:
        """The number of thresholds that `x` reaches."""
        dtype = str(np.result_type(x.dtype, thresholds.dtype))
        name, place, row = self.constants.column(thresholds, str(thresholds.dtype), shape, at)
        self.values += 1
        count, n = f"v{self.values}", f"n{self.values}"
        entry = self.to(
            Value(f"{name}[{n}]" if row == 1 else f"{name}[{n} * {row} + {place}]", str(thresholds.dtype)), dtype
        )
        self.lines += [
            f"int64_t {count} = 0;",
            f"for (size_t {n} = 0; {n} < {len(thresholds)}; {n}++)",
            f"    {count} += {self.to(x, dtype).text} >= {entry.text};",
        ]
        return Value(count, "int64")

    def _requantize(self, op: ops.Requantize, x: Value, constant: Callable[[Any], Value]) -> Value:
        """The code of a Requantize; `constant` gives the element's constant of an array."""
        multiplier, add, shift, zero = (constant(a).text for a in (op.multiplier, op.add, op.shift, op.zero_point))
        fraction_product = "0"
        integer_part = x.text
        if x.family != "int":
            low = self.new(f"hg_floor_{x.family}({x.text})", x.dtype)
            remainder = self.to(self.call("sub", x.dtype, x, low), "float64")
            product = self.call("mul", "float64", remainder, self.to(Value(multiplier, "int64"), "float64"))
            fraction_product = self.new(f"hg_limit_f64(hg_floor_f64({product.text}), {_WITHIN_62_BITS})", "int64").text
            integer_part = self.new(f"hg_limit_{x.family}({low.text}, {_WITHIN_62_BITS})", "int64").text
        product_text = f"hg_mul_int({integer_part}, {multiplier})"
        bits = f"(int){shift}"
        match op.convention:
            case ops.Convention.DOUBLE:
                shifted = f"hg_double_rounding(hg_add_int({integer_part}, {add}), {multiplier}, {bits})"
            case ops.Convention.FLOAT64:
                shifted = f"hg_float64_rounding(hg_add_int({integer_part}, {add}), {multiplier}, {bits})"
            case ops.Convention.FLOOR:
                total = f"hg_add_int(hg_add_int({product_text}, {fraction_product}), {add})"
                shifted = f"hg_shift_right({total}, {bits})"
            case ops.Convention.SINGLE:
                half = f"({shift} > 0 ? (int64_t)1 << ({shift} - 1) : 0)"
                total = f"hg_add_int(hg_add_int({product_text}, {add}), {half})"
                shifted = f"hg_shift_right({total}, {bits})"
            case _:
                assert_never(op.convention)
        lo, hi = literal(op.type.lo, "int64"), literal(op.type.hi, "int64")
        return self.new(f"hg_clamp_int({shifted} + {zero}, {lo}, {hi})", "int64")

    # ------------------------------------------------------------------ codes

    def decode(self, encoding: Encoding, code: Value, shape: Shape, at: str) -> Value:
        """The value of a code."""

        def constant(values: Any) -> Value:
            values = np.asarray(values)
            return self.constants.entry(values, str(values.dtype), shape, at)

        def binary(name: str, a: Value, b: Value) -> Value:
            return self.call(name, str(np.result_type(a.dtype, b.dtype)), a, b)

        match encoding:
            case Affine(scale, zero):
                difference = binary("sub", self.to(code, "float32"), constant(zero))
                product = binary("mul", difference, constant(scale))
                return self.new(self.to(product, "float32").text, "float32")
            case ThresholdCount(scale, bias):
                product = self.call("mul", "float32", code, constant(np.float32(scale)))
                return self.call("add", "float32", product, constant(np.float32(bias)))
            case Accumulator(factor, offset, scale):
                scaled_code = f"{code.text} * {factor}" if factor != 1 else code.text
                total = self.new(f"{scaled_code} + {constant(offset).text}", "int64")
                return self.new(
                    f"hg_product_f32({total.text}, {constant(np.asarray(scale, np.float64)).text})", "float32"
                )
            case Fixed(fraction):
                return self.new(f"(float)ldexp((double){code.text}, {-fraction})", "float32")
            case FloatKey():
                return self.new(f"hg_f32_of_key({code.text})", "float32")
            case IntegerEncoding(dtype, offset):
                total = self.call("add", "int64", code, constant(offset))
                return self.new(self.to(total, dtype).text, dtype)
            case _:
                assert_never(encoding)


def _wrapped(text: str, dtype: str) -> str:
    """An int64_t expression, wrapped to the range of an integer dtype."""
    if dtype in ("int64", "bool", "float32", "float64"):
        return text
    kind = "unsigned" if dtype.startswith("u") else "signed"
    return f"hg_{kind}((uint64_t)({text}), {np.dtype(dtype).itemsize * 8})"
