"""Splits a model into host head, integer layers and host tail.

Elementwise float work between two integer tensors becomes one `Map`, whatever it consists of:
it is a function of one integer per channel. Reshapes and transposes move in front of it. A linear
layer becomes exact integer sums, see docs/numeric-contract.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlsgen.errors import Collector, HlsgenError, fail, stuck
from hlsgen.fixed import Array, IntType, Rounding
from hlsgen.ir import (
    Accumulator,
    Add,
    Affine,
    ArgMax,
    Bipolar,
    CountScale,
    Decode,
    Div,
    Elementwise,
    Fixed,
    FloatBits,
    Graph,
    HostOp,
    IntQuant,
    Layer,
    Linear,
    Map,
    MatMul,
    Max,
    Min,
    Model,
    Mul,
    MultiThreshold,
    Quantizer,
    Relabel,
    Reshape,
    SignedBit,
    Step,
    Transpose,
    Trunc,
    Value,
    Winner,
)
from hlsgen.passes.relabel import relabel
from hlsgen.semantics import KEY_POS_INF, apply, code_type, constants, decode, decoding, quantize

QUANTIZERS = (IntQuant, Bipolar, SignedBit, Trunc, MultiThreshold)
FLOAT = (Mul, Add, Div, Max, Min)
#: Most codes for which a function is checked by trying them all.
EXHAUSTIVE = 1 << 20
MAX_ACCUMULATOR_BITS = 48


@dataclass(frozen=True)
class InputMode:
    """What the hardware's input port carries: "codes", "fixed" or "float32"."""

    kind: str
    type: IntType | None = None
    fraction: int = 0


def lower(model: Model, mode: InputMode | None, problems: Collector) -> Graph:
    """The integer graph. `mode` None chooses: declared type, else float32 for a graph that has no
    linear layer, else codes. Raises HlsgenError."""
    steps = model.steps
    hardware = [i for i, s in enumerate(steps) if isinstance(s.op, (*QUANTIZERS, MatMul))]
    if not hardware:
        raise fail(
            "HG036", model.name, "the model has no quantizer and no linear layer.",
            "There is nothing to build: is this a float model? Quantize it first (Brevitas, QKeras + QONNX).",
        )  # fmt: skip
    first, last = hardware[0], hardware[-1]
    for step in [s for s in steps[first : last + 1] if isinstance(s.op, (HostOp, ArgMax))]:
        problems.items.append(stuck(step.name, step.op.op_type if isinstance(step.op, HostOp) else "ArgMax"))
    mode = mode or _default_mode(model, steps[first].op, problems)
    builder = _Builder(model, mode, first, problems)
    builder.check_layers(steps[first : last + 1])
    problems.finish()
    return builder.build(last)


def _default_mode(model: Model, first: object, problems: Collector) -> InputMode:
    linear = any(isinstance(s.op, MatMul) for s in model.steps)
    if model.input_type:
        return InputMode("fixed", *model.input_type)
    if isinstance(first, MatMul):
        problems.warn(
            "HG090", model.input_name, "the input has no quantizer and no declared type; taken as 8-bit integers.",
            "Say what it is with --input fixed:W,I or ufixed:W,I.",
        )  # fmt: skip
        return InputMode("fixed", IntType(-128, 127), 0)
    return InputMode("codes" if linear else "float32")


class _Builder:
    """Walks the hardware steps. `value` is the last tensor of codes, `pending` what follows it."""

    def __init__(self, model: Model, mode: InputMode, first: int, problems: Collector) -> None:
        self.model, self.mode, self.first, self.problems = model, mode, first, problems
        self.layers: list[Layer] = []
        self.pending: list[tuple[str, Elementwise]] = []

    def check_layers(self, steps: tuple[Step, ...]) -> None:
        """Problems that can be seen before anything is built, all of them."""
        if self.mode.kind == "codes" and isinstance(steps[0].op, MatMul):
            self.problems.error(
                "HG032", steps[0].name, "the layer's input is not quantized.",
                "Put a quantizer in front, or say --input fixed:W,I.",
            )  # fmt: skip
        if self.mode.kind == "float32" and isinstance(steps[0].op, MatMul):
            self.problems.error(
                "HG042", steps[0].name, "float32 input goes straight into a linear layer.",
                "Use --input fixed:W,I, or put a quantizer in front of the layer.",
            )  # fmt: skip

    def build(self, last: int) -> Graph:
        model, steps = self.model, self.model.steps
        start, encode = self._start()
        core_end = last + 1
        for step in steps[start:core_end]:
            try:
                self._step(step)
            except HlsgenError as error:
                self._assume(step, error)
        self.problems.finish()
        rest = steps[core_end:]
        winner = next((i for i, s in enumerate(rest) if isinstance(s.op, ArgMax)), None)
        is_index = False
        leftover = self._flush()
        if winner is not None and self._winner(rest[: winner + 1], leftover):
            rest, leftover, is_index = rest[winner + 1 :], [], True
        tail = [Step(name, op, self.value.shape) for name, op in leftover] + list(rest)
        return Graph(
            model, tuple(steps[: self.head_end]), encode, self.source, tuple(self.layers), self.value, tuple(tail),
            is_index, tuple(str(w) for w in self.problems.warnings),
        )  # fmt: skip

    def _start(self) -> tuple[int, Quantizer | None]:
        """Sets the input value; gives the first step that hardware does and the host's quantizer."""
        steps, first = self.model.steps, self.first
        if self.mode.kind == "codes":
            op = steps[first].op
            assert isinstance(op, QUANTIZERS)
            self.source = self.value = Value(steps[first].shape, code_type(op), decoding(op))
            self.head_end = first
            return first + 1, op
        host = [i for i, s in enumerate(steps[:first]) if isinstance(s.op, (HostOp, ArgMax))]
        self.head_end = host[-1] + 1 if host else 0
        shape = steps[self.head_end - 1].shape if self.head_end else self.model.input_shape
        meaning: Decode
        if self.mode.kind == "fixed":
            assert self.mode.type is not None
            type_, meaning = self.mode.type, Fixed(self.mode.fraction)
        else:
            type_, meaning = IntType(0, KEY_POS_INF), FloatBits()
        self.source = self.value = Value(shape, type_, meaning)
        return self.head_end, None

    def _assume(self, step: Step, error: HlsgenError) -> None:
        """Goes on behind a wrong layer as if it gave 8-bit codes, to find what else is wrong."""
        with self.problems.catching():
            raise error
        self.pending = []
        self.value = Value(step.shape, IntType(-128, 127), Affine(np.float32(1), np.float32(0)))

    def _step(self, step: Step) -> None:
        op = step.op
        if isinstance(op, (Reshape, Transpose)):
            self._relabel(step.name, op, step.shape)
        elif isinstance(op, MatMul):
            rest = self._flush()
            if rest:
                self._absorb(step.name, rest)
            self._linear(step.name, op, step.shape)
        else:
            assert isinstance(op, (*QUANTIZERS, *FLOAT))
            self.pending.append((step.name, op))

    def _relabel(self, name: str, op: Reshape | Transpose, shape: tuple[int, ...]) -> None:
        before = self.value
        if isinstance(op, Reshape) and before.shape == shape:
            return
        after = Value(shape, before.type, relabel(before.decode, op, before.shape, shape))
        self.pending = [(n, relabel(p, op, before.shape, shape)) for n, p in self.pending]
        self.layers.append(Relabel(name, op, before, after))
        self.value = after

    def _flush(self) -> list[tuple[str, Elementwise]]:
        """Turns pending work up to its last quantizer into a Map; gives what follows that."""
        ends = [i for i, (_, op) in enumerate(self.pending) if isinstance(op, QUANTIZERS)]
        rest = self.pending
        if ends:
            end = ends[-1]
            name, quantizer = self.pending[end]
            assert isinstance(quantizer, QUANTIZERS)
            self._map(name, [op for _, op in self.pending[:end]], quantizer)
            rest = self.pending[end + 1 :]
        self.pending = []
        return rest

    def _map(self, name: str, ops: list[Elementwise], quantizer: Quantizer) -> None:
        result = Value(self.value.shape, code_type(quantizer), decoding(quantizer))
        self.layers.append(Map(name, tuple(ops), quantizer, self.value, result))
        self.value = result

    def _absorb(self, name: str, rest: list[tuple[str, Elementwise]]) -> None:
        """Float work between a quantizer and a linear layer, if it keeps the codes on a grid.

        Relu, Clip, and arithmetic that gives exact multiples of one scale for every code become an
        integer function; anything else is an error.
        """
        ops = [op for _, op in rest]
        quantizer = _grid(self.value, ops)
        if quantizer is None:
            for node, op in rest:
                self.problems.error(
                    "HG030", node, f"float operation {type(op).__name__} stands between a quantizer and {name}.",
                    "Its result is no multiple of one scale: quantize it again before the layer.",
                )  # fmt: skip
            self.problems.finish()
            return
        last = self.layers[-1] if self.layers else None
        if isinstance(last, Map):
            self.layers.pop()
            self.value = last.source
            ops = [*last.ops, last.quantizer, *ops]
        self._map(rest[-1][0], ops, quantizer)

    def _linear(self, name: str, op: MatMul, shape: tuple[int, ...]) -> None:
        scale, zero = _column_meaning(name, self.value)
        shift = _zero_shift(name, zero)
        ratio = scale / scale.min()
        if (ratio != np.round(ratio)).any() or ratio.max() > 1 << 16:
            raise fail("HG034", name, "the input's scale differs along the summed axis.", "Use one scale per tensor.")
        source, columns = self.value.type, op.weight.shape[1]
        reach = max(abs(source.lo), abs(source.hi), float(np.abs(zero).max())) * 2.0**shift
        wide = float(np.abs(op.weight).max()) * float(ratio.max()) * reach * columns
        if wide >= 2.0 ** (MAX_ACCUMULATOR_BITS + 8):
            raise _too_wide(name, int(np.log2(wide)) + 2)
        weight = op.weight * ratio.astype(np.int64)
        offset = -(weight @ np.round(zero * 2.0**shift).astype(np.int64))
        real = float(scale.min()) * 2.0**-shift * op.scale.astype(np.float64)
        binary = source == IntType(0, 1) and bool((zero == 0.5).all()) and bool((np.abs(weight) == 1).all())
        if binary:
            meaning = Accumulator(2, np.full(len(weight), -columns), real)
            weight = (weight > 0).astype(np.int64)
            lo, hi = np.zeros(len(weight), np.int64), np.full(len(weight), columns)
        else:
            ends = weight * source.lo, weight * source.hi
            lo, hi = np.minimum(*ends).sum(axis=1), np.maximum(*ends).sum(axis=1)
            meaning = Accumulator(1 << shift, offset, real)
        bound = max(abs(int(x)) for x in (lo.min(), hi.max())) * meaning.factor + int(np.abs(meaning.offset).max())
        if bound >= 1 << MAX_ACCUMULATOR_BITS:
            raise _too_wide(name, bound.bit_length() + 1)
        result = Value(shape, IntType(int(lo.min()), int(hi.max())), meaning)
        self.layers.append(Linear(name, weight, binary, self.value, result, lo, hi))
        self.value = result

    def _winner(self, steps: tuple[Step, ...], leftover: list[tuple[str, Elementwise]]) -> bool:
        """Adds an ArgMax in hardware if comparing codes is proven to compare the real values."""
        between = [s.op for s in steps[:-1]]
        if not all(isinstance(op, FLOAT) for op in between):
            return False
        ops: list[Elementwise] = [op for _, op in leftover] + [op for op in between if isinstance(op, FLOAT)]
        if not _order_kept(self.value, ops):
            return False
        name, shape = steps[-1].name, steps[-1].shape
        count = self.value.shape[-1]
        meaning = Affine(np.float32(1), np.float32(0))
        result = Value(shape, IntType(0, count - 1), meaning)
        self.layers.append(Winner(name, self.value, result))
        self.value = result
        return True


def _too_wide(name: str, bits: int) -> HlsgenError:
    return fail(
        "HG033", name, f"the accumulator needs {bits} bits.",
        f"At most {MAX_ACCUMULATOR_BITS} are supported: use narrower weights or activations.",
    )  # fmt: skip


def _column_meaning(name: str, value: Value) -> tuple[Array, Array]:
    """(scale, zero point) of every column as float64, real = scale * (code - zero point) exactly."""
    columns = value.shape[-1]
    match value.decode:
        case Affine(scale, zero):
            parts = []
            if (np.asarray(scale, np.float32) != scale).any():
                raise fail("HG022", name, "the input's scale is no float32 value.", "Store it as float32.")
            for part, what in ((scale, "scale"), (zero, "zero point")):
                array = np.asarray(part, np.float64)
                if array.size > 1 and array.shape[-1] != array.size:
                    raise fail("HG034", name, f"the input's {what} differs between rows.", "Use one per tensor.")
                parts.append(np.broadcast_to(array.reshape(-1), (columns,)))
            scales, zeros = parts
        case Fixed(fraction):
            scales, zeros = np.full(columns, 2.0**-fraction), np.zeros(columns)
        case CountScale(scale_, bias):
            unit, start = float(np.float32(scale_)), float(np.float32(bias))
            zero_ = -start / unit
            if zero_ * unit != -start or unit < 0:
                raise fail("HG034", name, f"the input is {scale_} * count + {bias}, no multiple of one scale.")
            scales, zeros = np.full(columns, unit), np.full(columns, zero_)
        case Accumulator():
            exact = value.decode.scale
            two = float(np.frexp(exact.ravel()[0])[0]) == 0.5 and bool((exact == exact.ravel()[0]).all())
            wide = max(abs(value.type.lo), abs(value.type.hi)) * value.decode.factor
            if not two or wide + int(np.abs(value.decode.offset).max()) > 1 << 24:
                raise fail(
                    "HG032", name, "the layer's input is a sum that no quantizer made.",
                    "Put a quantizer between two linear layers.",
                )  # fmt: skip
            scales = np.full(columns, float(exact.ravel()[0]) * value.decode.factor)
            zeros = np.broadcast_to(-value.decode.offset / value.decode.factor, (columns,))
        case _:
            raise fail("HG032", name, "the layer's input is not quantized.", "Put a quantizer in front of it.")
    if value.type.bits > 25 and not isinstance(value.decode, Accumulator):
        raise fail(
            "HG033", name, f"the layer's input has {value.type.bits} bits.",
            "At most 24 keep their value in float32: use a narrower quantizer.",
        )  # fmt: skip
    return scales, zeros


def _zero_shift(name: str, zero: Array) -> int:
    for shift in range(17):
        if (np.round(zero * 2.0**shift) == zero * 2.0**shift).all():
            return shift
    raise fail("HG024", name, "the input's zero point is not a short binary fraction.", "Use an integer zero point.")


def _uniform(item: Elementwise | Decode) -> bool:
    return all(bool((c == c.ravel()[0]).all()) for c in constants(item).values())


def _all_codes(value: Value) -> Array | None:
    count = value.type.hi - value.type.lo + 1
    if count > EXHAUSTIVE or isinstance(value.decode, FloatBits):
        return None
    codes = np.arange(value.type.lo, value.type.hi + 1)
    return codes.reshape((-1,) + (1,) * len(value.shape))


def _grid(value: Value, ops: list[Elementwise]) -> IntQuant | None:
    """A quantizer that reproduces the values behind `ops` exactly for every code, if there is one."""
    codes = _all_codes(value)
    if codes is None or not all(_uniform(op) for op in ops) or not _uniform(value.decode):
        return None
    real = decode(value.decode, codes)
    for op in ops:
        real = apply(op, real)
    flat = real.astype(np.float64).ravel()
    if not np.isfinite(flat).all():
        return None
    meaning = value.decode
    candidates = [float(np.ravel(meaning.scale)[0])] if isinstance(meaning, (Affine, Accumulator)) else []
    nonzero = flat[flat != 0]
    mantissa, exponent = np.frexp(nonzero)
    if nonzero.size:
        bits = (mantissa * 2.0**53).astype(np.int64)
        low = np.frexp((bits & -bits).astype(np.float64))[1] - 1
        candidates.append(2.0 ** float((exponent - 53 + low).min()))
    rank = len(value.shape)
    for candidate in candidates:
        scale = np.full((1,) * rank, candidate, np.float32)
        if not 0 < scale.ravel()[0] < np.inf:
            continue
        grid = flat / float(scale.ravel()[0])
        lo, hi = float(np.round(grid.min())), float(np.round(grid.max()))
        if max(abs(lo), abs(hi)) > 1 << 24:
            continue
        quantizer = IntQuant(scale, np.zeros_like(scale), IntType(int(lo), int(hi)), Rounding.ROUND)
        if (decode(decoding(quantizer), quantize(quantizer, real)) == real).all():
            return quantizer
    return None


def _order_kept(value: Value, ops: list[Elementwise]) -> bool:
    """Whether the real values behind `ops` rise strictly with the code, alike for all channels."""
    codes = _all_codes(value)
    if codes is None or not all(_uniform(op) for op in ops) or not _uniform(value.decode):
        return False
    real = decode(value.decode, codes)
    for op in ops:
        real = apply(op, real)
    return bool((np.diff(real.reshape(len(codes), -1)[:, 0]) > 0).all())
