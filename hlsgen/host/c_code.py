"""Host preprocessing (the head) and postprocessing (the tail) as C functions that each compute one element of a
tensor."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from typing_extensions import assert_never

from hlsgen.host.c_ops import Body
from hlsgen.host.c_values import STORED, Constants, Value, code_dtype, computing_type, literal, permuted
from hlsgen.host.order_keys import OrderKeys
from hlsgen.host.plan import Head, HostStep, Joined, Tail, Tensor
from hlsgen.host.source import CodeFunction, Entries, Shift, Thresholds
from hlsgen.host.text import plain
from hlsgen.interpreter.host_tflite import HostSoftmax, host_softmax
from hlsgen.ir import ArgMax, Encoding, Fixed, FloatKey, HostOp, Reshape, Shape, Transpose
from hlsgen.ir.ops import FLOATS, QUANTIZERS
from hlsgen.numerics.fixed import IntType
from hlsgen.numerics.tflite.softmax_of_int16 import Int16Softmax


@dataclass(frozen=True)
class Function:
    """A static C function.

    result: C type of the result. source: its parameters before the element's number. The last function of a part
    returns
    the elements of the part's result.
    """

    result: str
    name: str
    source: str
    lines: tuple[str, ...]


class _Part:
    """The functions of one head or tail. A new function begins after each step that reads many elements for one."""

    def __init__(
        self,
        prefix: str,
        source: str,
        constants: Constants,
        read_expression: str,
        dtype: str,
        keys: OrderKeys | None = None,
    ) -> None:
        self.prefix, self.source, self.constants, self.keys = prefix, source, constants, keys
        self.functions: list[Function] = []
        self._read_expression, self._dtype = read_expression, dtype

    def run(self, tensor: Tensor, steps: Sequence[HostStep], encoding: Encoding | None) -> tuple[Body, Value]:
        """Emits all steps, after decoding the codes. Returns the open body of the last function, and its value so
        far."""
        start = 0
        for n, host_step in enumerate(steps):
            op = host_step.step.op
            if isinstance(op, ArgMax | HostOp):
                body, value = self._elementwise(tensor, steps[start:n], encoding)
                if isinstance(op, ArgMax) and self.keys:
                    value = body.key(value, self.keys, host_step.input.shape)
                    self.keys = None
                self.close(body, value)
                if isinstance(op, ArgMax):
                    self._arg_max(host_step)
                else:
                    self._softmax(op, host_step)
                tensor, start, encoding = host_step.output, n + 1, None
        return self._elementwise(tensor, steps[start:], encoding)

    def _elementwise(self, tensor: Tensor, steps: Sequence[HostStep], encoding: Encoding | None) -> tuple[Body, Value]:
        """Emits steps that read one element for one. Element numbers are computed from the last tensor to the first."""
        body = Body(self.constants)
        places, at = ["i"], "i"
        for n in reversed(range(len(steps))):
            op = steps[n].step.op
            if isinstance(op, Transpose):
                at = f"i{n}"
                body.lines.append(f"const size_t {at} = {permuted(steps[n].input.shape, op.perm, places[0])};")
            places.insert(0, at)
        value = body.new(self._at(places[0]), self._dtype)
        if encoding is not None:
            value = body.decode(encoding, value, tensor.shape, places[0])
        for n, host_step in enumerate(steps):
            op = host_step.step.op
            if isinstance(op, Reshape | Transpose):
                continue
            assert isinstance(op, (*FLOATS, *QUANTIZERS)), op
            body.lines.append(f"/* {plain(host_step.step.name)}: {type(op).__name__} */")
            value = body.apply(op, value, host_step.input.shape, places[n])  # type: ignore[arg-type]
        return body, value

    def close(self, body: Body, value: Value, extra_parameter: str = "") -> None:
        """Ends the function with a value that the next function reads."""
        name = f"{self.prefix}_{len(self.functions)}"
        lines = _without_unused([*body.lines, f"return {value.text};"])
        self.functions.append(Function(computing_type(value.dtype), name, self.source + extra_parameter, lines))
        self._read_expression, self._dtype = f"{name}(source, @)", value.dtype

    def join(self, joined: Joined, sides: Sequence[str]) -> None:
        """Emits a function that joins two values of one dtype; `sides`: expressions of the values, "@" the element."""
        body = Body(self.constants)
        values = [body.new(side.replace("@", "i"), self._dtype) for side in sides]
        body.lines.append(f"/* {plain(joined.name)}: {joined.kind.value} */")
        self.close(body, body.join(joined.kind, *values))

    def _arg_max(self, host_step: HostStep) -> None:
        """Emits a function that returns the index of the largest of a row's elements."""
        length, type_ = host_step.input.shape[-1], computing_type(self._dtype)
        is_integer = type_ == "int64_t"
        larger = "next > top" if is_integer else "top == top && !(next <= top)"
        lines = [
            f"{type_} top = {self._at(f'i * {length}')};",
            "int64_t best = 0;",
            f"/* The first of equal elements{'' if is_integer else '; NaN is the largest'}. */",
            f"for (size_t n = 1; n < {length}; n++) {{",
            f"    const {type_} next = {self._at(f'i * {length} + n')};",
            f"    if ({larger}) {{",
            "        top = next;",
            "        best = (int64_t)n;",
            "    }",
            "}",
            "return best;",
        ]
        self._add(lines, "int64")

    def _softmax(self, op: HostOp, host_step: HostStep) -> None:
        """Emits a function that returns a code of TFLite's SOFTMAX, from its whole row."""
        softmax, length = host_softmax(op), host_step.input.shape[-1]
        assert softmax is not None, op.op_type
        places = self._at("row + n"), self._at("i")
        if isinstance(softmax, Int16Softmax):
            type_, total, share = self._int16_share(softmax, *places)
        else:
            type_, total, share = self._share(softmax, *places)
        lines = [
            f"const size_t row = i / {length} * {length};",
            f"int64_t top = {self._at('row')};",
            f"{type_} total = 0;",
            f"/* {plain(host_step.step.name)}: {op.op_type} */",
            f"for (size_t n = 1; n < {length}; n++)",
            f"    top = hg_max_int(top, {self._at('row + n')});",
            f"for (size_t n = 0; n < {length}; n++)",
            f"    total = {total};",
            f"return {share};",
        ]
        self._add(lines, "int16" if isinstance(softmax, Int16Softmax) else softmax.result)

    def _share(self, softmax: HostSoftmax, term: str, element: str) -> tuple[str, str, str]:
        """The C type of a row's sum, the sum with the code `term`, and the share of the code `element`."""
        table = self.constants.array(softmax.exponentials, "float32" if softmax.in_floats else "int32")
        addend, power = f"{table}[top - {term}]", f"{table}[top - {element}]"
        arguments = f"{power}, total, {softmax.type.lo}"
        if not softmax.in_floats:
            total = f"total + hg_divide_by_power({addend}, 12)"
            return "int64_t", total, f"hg_share_in_integers({arguments}, {softmax.type.bits})"
        total = f"hg_add_f32(total, {addend})"
        if softmax.result == "uint8":
            return "float", total, f"hg_share_in_uint8_floats({arguments})"
        return "float", total, f"hg_share_in_floats({arguments}, {softmax.type.bits})"

    def _int16_share(self, softmax: Int16Softmax, term: str, element: str) -> tuple[str, str, str]:
        """As `_share`, of int16 codes."""
        table, reciprocals = (self.constants.array(x, "int16") for x in (softmax.exponentials, softmax.reciprocals))
        multiplier = f"{literal(softmax.multiplier.value, 'int64')}, {softmax.multiplier.exponent}"
        addend, power = (f"hg_exponential_of_int16({table}, {code} - top, {multiplier})" for code in (term, element))
        return "int64_t", f"total + {addend}", f"hg_share_of_int16({power}, total, {reciprocals})"

    def _at(self, element: str) -> str:
        """An expression of this element of the tensor before the open function."""
        return self._read_expression.replace("@", element)

    def _add(self, lines: Sequence[str], dtype: str) -> None:
        """Adds a function that computes integers of `dtype`, which the next function reads."""
        name = f"{self.prefix}_{len(self.functions)}"
        self.functions.append(Function("int64_t", name, self.source, tuple(lines)))
        self._read_expression, self._dtype = f"{name}(source, @)", dtype


def _without_unused(lines: list[str]) -> tuple[str, ...]:
    """The lines without variables that no later line reads, for example before a constant.

    If neither `source` nor `i` is read, a cast to void keeps compilers from warning.
    """
    used_lines: list[str] = []
    text = ""
    for line in reversed(lines):
        declaration = re.match(r"const \w+ (\w+) = ", line)
        if not declaration or re.search(rf"\b{declaration[1]}\b", text):
            used_lines.append(line)
            text += line + "\n"
    unread = [f"(void){name};" for name in ("source", "i") if not re.search(rf"\b{name}\b", text)]
    return (*unread, *reversed(used_lines))


def head_functions(
    head: Head, prefix: str, constants: Constants, encoding: Encoding, type_: IntType, shape: Shape
) -> list[Function]:
    """C functions from the model's input to codes.

    If the input has no quantizer, they count values that are not exactly a code.
    """
    source = f"const {STORED[head.start.dtype]} *source"
    if head.pairs:
        source = f"const {STORED[head.start.dtype]} *source, const {STORED[head.start.dtype]} *second"
    read_expression = "source[@]" if computing_type(head.start.dtype) != "int64_t" else "(int64_t)source[@]"
    if head.pairs:
        read_expression = "((int64_t)source[@] & 255) | (((int64_t)second[@] & 255) << 8)"
    part = _Part(prefix, source, constants, read_expression, "int64" if head.pairs else head.start.dtype)
    steps = head.steps
    if head.source is not None:
        steps = tuple(step for step in steps if isinstance(step.step.op, Reshape | Transpose))
    body, value = part.run(head.start, steps, None)
    extra_parameter = ""
    if head.source is not None:
        value = _code_of_integer(body, value, head.source.function, code_dtype(type_), shape)
    elif head.encode is not None:
        body.lines.append(f"/* input quantizer: {type(head.encode).__name__} */")
        value = body.quantize(head.encode, value, shape, "i")
        if head.bounds is not None:
            low, high = (body.constants.entry(end, "int64", shape, "i") for end in head.bounds)
            value = body.new(f"hg_clamp_int({value.text}, {low.text}, {high.text})", "int64")
    elif isinstance(encoding, FloatKey):
        value = body.new(f"(int64_t)hg_bits_of_f32({body.to(value, 'float32').text})", "int64")
    elif not head.pairs:
        value, extra_parameter = _nearest_code(body, value, encoding, type_), ", size_t *wrong"
    part.close(body, value, extra_parameter)
    return part.functions


def _code_of_integer(body: Body, integer: Value, function: CodeFunction, dtype: str, shape: Shape) -> Value:
    """Element i of the codes of integers."""
    match function:
        case Shift(up, down, add, even, offset, type_):
            terms = [f"{integer.text} * {1 << up}" if up else integer.text, f"{add}" if add else ""]
            terms.append(f"(hg_shift_right({integer.text}, {down}) & 1)" if even else "")
            total = " + ".join(term for term in terms if term)
            total = f"hg_shift_right({total}, {down})" if down else total
            total = f"{total} + {offset}" if offset else total
            return body.new(
                f"hg_clamp_int({total}, {literal(type_.lo, 'int64')}, {literal(type_.hi, 'int64')})", "int64"
            )
        case Entries(first, table):
            name, place, row = body.constants.column(table, dtype, shape, "i")
            index = f"{integer.text} - {first}" if first else integer.text
            return body.new(f"{name}[{index if row == 1 else f'({index}) * {row} + {place}'}]", "int64")
        case Thresholds(thresholds, base, sign):
            name, place, row = body.constants.column(thresholds, "int32", shape, "i")
            count = f"hg_reached({name} + ({place}), {len(thresholds)}, {row}, (int32_t){integer.text})"
            return body.new(f"{base} {'+' if sign > 0 else '-'} {count}", "int64")
        case _:
            assert_never(function)


def _nearest_code(body: Body, value: Value, encoding: Encoding, type_: IntType) -> Value:
    """The nearest code of an integer or fixed-point input. The code counts values that are not exactly a code."""
    lo, hi = (literal(n, "int64") for n in (type_.lo, type_.hi))
    if isinstance(encoding, Fixed) and value.family != "int":
        scaled = body.new(f"ldexp((double){value.text}, {encoding.fraction})", "float64")
        code = body.new(f"hg_limit_f64(hg_round_f64({scaled.text}), {lo}, {hi})", "int64")
        body.lines.append(f"*wrong += !({scaled.text} == (double){code.text});")
        return code
    shift = encoding.fraction if isinstance(encoding, Fixed) else 0
    scaled_integer = body.new(f"hg_mul_int({value.text}, (int64_t)1 << {shift})", "int64") if shift else value
    code = body.new(f"hg_clamp_int({scaled_integer.text}, {lo}, {hi})", "int64")
    body.lines.append(f"*wrong += {scaled_integer.text} != {code.text};")
    return code


def tail_functions(
    tail: Tail, prefix: str, constants: Constants, type_: IntType, read_code: str = "source[@]"
) -> list[Function]:
    """C functions from codes to the model's output; `read_code`: expression that reads code number "@"."""
    source = f"const {STORED[code_dtype(type_)]} *source"
    if tail.joined is None:
        part = _Part(prefix, source, constants, f"(int64_t){read_code}", "int64", tail.keys)
        body, value = part.run(tail.decoded, tail.computed_steps, tail.encoding_of_numbers)
    else:
        left_tail, right_tail = tail.joined.sides
        read_right_code = f"source[{math.prod(left_tail.decoded.shape)} + @]"
        left_functions = tail_functions(left_tail, f"{prefix}_left", constants, type_)
        right_functions = tail_functions(right_tail, f"{prefix}_right", constants, type_, read_right_code)
        sides = [f"{functions[-1].name}(source, @)" for functions in (left_functions, right_functions)]
        part = _Part(prefix, source, constants, "", tail.decoded.dtype)
        part.functions += [*left_functions, *right_functions]
        part.join(tail.joined, sides)
        body, value = part.run(tail.decoded, tail.steps, None)
    part.close(body, body.to(value, tail.end.dtype))
    return part.functions
