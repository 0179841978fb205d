"""The head and the tail as functions in C that compute one element of a tensor each."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from hlsgen.host.c_ops import Body
from hlsgen.host.c_values import STORED, Constants, Value, code_dtype, held, literal, permuted
from hlsgen.host.plan import Done, Head, Joined, Tail, Tensor
from hlsgen.host.text import plain
from hlsgen.ir import ArgMax, Encoding, Fixed, FloatKey, Reshape, Shape, Transpose
from hlsgen.ir.ops import FLOATS, QUANTIZERS
from hlsgen.numerics.fixed import IntType


@dataclass(frozen=True)
class Function:
    """A static function: its result's C type, its name, its statements. The last one of a part gives what the part gives."""

    result: str
    name: str
    source: str
    lines: tuple[str, ...]


class _Part:
    """Functions that follow each other: a new one behind each step that needs many elements for one."""

    def __init__(self, prefix: str, source: str, constants: Constants, first: str, dtype: str) -> None:
        self.prefix, self.source, self.constants = prefix, source, constants
        self.functions: list[Function] = []
        self._read, self._dtype = first, dtype

    def run(self, tensor: Tensor, steps: Sequence[Done], encoding: Encoding | None) -> tuple[Body, Value]:
        """All steps, decoded in front of them; the body of the last function and the value that it holds so far."""
        start = 0
        for n, done in enumerate(steps):
            if isinstance(done.step.op, ArgMax):
                body, value = self._stretch(tensor, steps[start:n], encoding)
                self.close(body, value)
                self._arg_max(done)
                tensor, start, encoding = done.given, n + 1, None
        return self._stretch(tensor, steps[start:], encoding)

    def _stretch(self, tensor: Tensor, steps: Sequence[Done], encoding: Encoding | None) -> tuple[Body, Value]:
        """Steps that need one element for one. Elements are numbered from the last tensor to the first."""
        body = Body(self.constants)
        places, at = ["i"], "i"
        for n in reversed(range(len(steps))):
            op = steps[n].step.op
            if isinstance(op, Transpose):
                at = f"i{n}"
                body.lines.append(f"const size_t {at} = {permuted(steps[n].taken.shape, op.perm, places[0])};")
            places.insert(0, at)
        value = body.new(self._read.replace("@", places[0]), self._dtype)
        if encoding is not None:
            value = body.decode(encoding, value, tensor.shape, places[0])
        for n, done in enumerate(steps):
            op = done.step.op
            if isinstance(op, Reshape | Transpose):
                continue
            assert isinstance(op, (*FLOATS, *QUANTIZERS)), op
            body.lines.append(f"/* {plain(done.step.name)}: {type(op).__name__} */")
            value = body.apply(op, value, done.taken.shape, places[n])  # type: ignore[arg-type]
        return body, value

    def close(self, body: Body, value: Value, more: str = "") -> None:
        """Ends a function with a value, which the next one reads; `more`: another parameter of it."""
        name = f"{self.prefix}_{len(self.functions)}"
        lines = _used([*body.lines, f"return {value.text};"])
        self.functions.append(Function(held(value.dtype), name, self.source + more, lines))
        self._read, self._dtype = f"{name}(source, @)", value.dtype

    def join(self, joined: Joined, sides: Sequence[str]) -> None:
        """Ends a function with what joins two values of one dtype, which the next one reads; `sides`: what gives them."""
        body = Body(self.constants)
        values = [body.new(side.replace("@", "i"), self._dtype) for side in sides]
        body.lines.append(f"/* {plain(joined.name)}: {joined.kind.value} */")
        self.close(body, body.join(joined.kind, *values))

    def _arg_max(self, done: Done) -> None:
        length, type_ = done.taken.shape[-1], held(self._dtype)
        whole = type_ == "int64_t"
        larger = "next > top" if whole else "top == top && !(next <= top)"
        lines = [
            f"{type_} top = {self._read.replace('@', f'i * {length}')};", "int64_t best = 0;",
            f"/* The first of equal ones{'' if whole else '; NaN is the largest'}. */",
            f"for (size_t n = 1; n < {length}; n++) {{",
            f"    const {type_} next = {self._read.replace('@', f'i * {length} + n')};",
            f"    if ({larger}) {{", "        top = next;", "        best = (int64_t)n;", "    }", "}", "return best;",
        ]  # fmt: skip
        name = f"{self.prefix}_{len(self.functions)}"
        self.functions.append(Function("int64_t", name, self.source, tuple(lines)))
        self._read, self._dtype = f"{name}(source, @)", "int64"


def _used(lines: list[str]) -> tuple[str, ...]:
    """Without variables that nothing behind them reads, as in front of a constant."""
    kept: list[str] = []
    text = ""
    for line in reversed(lines):
        made = re.match(r"const \w+ (\w+) = ", line)
        if not made or re.search(rf"\b{made[1]}\b", text):
            kept.append(line)
            text += line + "\n"
    unread = [f"(void){name};" for name in ("source", "i") if not re.search(rf"\b{name}\b", text)]
    return (*unread, *reversed(kept))


def head_functions(
    head: Head, prefix: str, constants: Constants, encoding: Encoding, type_: IntType, shape: Shape
) -> list[Function]:
    """From the model's input to codes; those of an input without quantizer count values that are no codes."""
    source = f"const {STORED[head.start.dtype]} *source"
    if head.pairs:
        source = f"const {STORED[head.start.dtype]} *source, const {STORED[head.start.dtype]} *second"
    first = "source[@]" if held(head.start.dtype) != "int64_t" else "(int64_t)source[@]"
    if head.pairs:
        first = "((int64_t)source[@] & 255) | (((int64_t)second[@] & 255) << 8)"
    part = _Part(prefix, source, constants, first, "int64" if head.pairs else head.start.dtype)
    body, value = part.run(head.start, head.steps, None)
    more = ""
    if head.encode is not None:
        body.lines.append(f"/* input quantizer: {type(head.encode).__name__} */")
        value = body.quantize(head.encode, value, shape, "i")
    elif isinstance(encoding, FloatKey):
        value = body.new(f"(int64_t)hg_bits_of_f32({body.to(value, 'float32').text})", "int64")
    elif not head.pairs:
        value, more = _held_by_port(body, value, encoding, type_), ", size_t *wrong"
    part.close(body, value, more)
    return part.functions


def _held_by_port(body: Body, value: Value, encoding: Encoding, type_: IntType) -> Value:
    """The nearest code of a fixed-point input; values that are not exactly one are counted."""
    lo, hi = (literal(n, "int64") for n in (type_.lo, type_.hi))
    if isinstance(encoding, Fixed) and value.family != "int":
        scaled = body.new(f"ldexp((double){value.text}, {encoding.fraction})", "float64")
        code = body.new(f"hg_limit_f64(hg_round_f64({scaled.text}), {lo}, {hi})", "int64")
        body.lines.append(f"*wrong += !({scaled.text} == (double){code.text});")
        return code
    shift = encoding.fraction if isinstance(encoding, Fixed) else 0
    whole = body.new(f"hg_mul_int({value.text}, (int64_t)1 << {shift})", "int64") if shift else value
    code = body.new(f"hg_clamp_int({whole.text}, {lo}, {hi})", "int64")
    body.lines.append(f"*wrong += {whole.text} != {code.text};")
    return code


def tail_functions(
    tail: Tail, prefix: str, constants: Constants, type_: IntType, first: str = "source[@]"
) -> list[Function]:  # fmt: skip
    """From codes to the model's output; `first`: what reads a code."""
    source = f"const {STORED[code_dtype(type_)]} *source"
    if tail.joined is None:
        part = _Part(prefix, source, constants, f"(int64_t){first}", "int64")
        body, value = part.run(tail.decoded, tail.steps, tail.encoding)
    else:
        left, right = tail.joined.sides
        behind = f"source[{math.prod(left.decoded.shape)} + @]"
        both = [
            tail_functions(left, f"{prefix}_left", constants, type_),
            tail_functions(right, f"{prefix}_right", constants, type_, behind),
        ]
        sides = [f"{functions[-1].name}(source, @)" for functions in both]
        part = _Part(prefix, source, constants, "", tail.decoded.dtype)
        part.functions += [function for functions in both for function in functions]
        part.join(tail.joined, sides)
        body, value = part.run(tail.decoded, tail.steps, None)
    part.close(body, body.to(value, tail.end.dtype))
    return part.functions
