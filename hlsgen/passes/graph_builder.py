"""Builds the layers of a Graph; float operations wait until a quantizer ends them.

Of every tensor is known: which value of the Graph holds its codes, what the codes mean, and which operations on them
are still to be done (`PendingValue`). When a quantizer comes, all that waits becomes one `Map`, or a `BinaryMap` where
two tensors are joined. The layer evaluates the model's own operations in order, so values stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hlsgen.diagnostics import Collector, HlsgenError, fail
from hlsgen.ir import (
    Affine,
    Binary,
    BinaryMap,
    IntegerEncoding,
    Layer,
    Map,
    PackBytes,
    Pooling,
    Rearrange,
    Reshape,
    Shape,
    Transpose,
    Value,
    View,
)
from hlsgen.ir.evaluate import code_type, decoding
from hlsgen.ir.op_facts import chain_direction, decoded_interval
from hlsgen.ir.ops import (
    QUANTIZERS,
    Activation,
    Add,
    BinaryKind,
    Cast,
    Compare,
    Constant,
    Dequantize,
    Div,
    Elementwise,
    Fma,
    Max,
    Min,
    Mul,
    Pair,
    QuantizeLinear,
    Quantizer,
)
from hlsgen.ir.window import Reduction
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.passes.exact_add_chain import Term, exact_sum, is_exact_in_float32, on_one_grid, term, unit_of
from hlsgen.passes.float_joints import joint_of
from hlsgen.passes.hoist_views import relabel
from hlsgen.passes.pending_value import Branches, PendingValue, bounded, decoding_between, dequantized_codes
from hlsgen.passes.quantization import (
    code_interval,
    grid,
    grid_of_pair,
    narrowed,
    range_behind,
    range_of_pair,
    type_behind,
)
from hlsgen.passes.rank_codes import Unranked, ranks, values_of_chain, values_of_pair
from hlsgen.passes.whole_numbers import exact_whole, larger, steps_are_few

#: Inputs of more bits are not tried one by one.
_WIDE = 20
#: Operations of which a function of many inputs has few pieces. Of any other one it stays a function of few codes.
STRAIGHT = (Mul, Add, Fma, Div, Max, Min, Cast, Dequantize, Compare, Constant)


class GraphBuilder:
    """The values of a graph in the making, and the layer that makes each of them.

    `values[0]` is the input. `layers[i]` makes value i, in the order of the values. A value that is only assumed has no
    layer; a problem was found then, and no graph will be built.
    """

    def __init__(self, problems: Collector, given: Value, distinguishes_zeros: bool = True) -> None:
        """`distinguishes_zeros`: whether an operation of the model may give other results for -0.0 than for 0.0."""
        self.problems = problems
        self.distinguishes_zeros = distinguishes_zeros
        self.values: list[Value] = [given]
        self.first_computed = 1  # values in front are inputs
        self.layers: dict[int, Layer] = {}
        #: Values that are exact sums of tensors: whether these are on one grid.
        self._sums: dict[int, bool] = {}

    def add(self, layer: Layer) -> PendingValue:
        if not isinstance(layer, View):
            layer = replace(layer, name=self._own_name(layer.name))
        number = len(self.values)
        self.layers[number] = layer
        self.values.append(layer.result)
        picks = isinstance(layer, View | Rearrange) or (isinstance(layer, Pooling) and layer.kind is Reduction.MAX)
        if picks and layer.inputs[0] in self._sums:  # elements of a sum are sums
            self._sums[number] = self._sums[layer.inputs[0]]
        return PendingValue(number, layer.result)

    def assume(self, value: Value) -> PendingValue:
        """A value that no layer makes: what stands for the result of a wrong step while more problems are looked for."""
        self.values.append(value)
        return PendingValue(len(self.values) - 1, value)

    def _own_name(self, name: str) -> str:
        """The name, with a number if another layer has it: a node may become several layers, and what several
        layers do to one tensor is done for each."""
        taken = {layer.name for layer in self.layers.values() if not isinstance(layer, View)}
        numbers = (f"{name} ({n})" for n in range(2, len(taken) + 3))
        return name if name not in taken else next(new for new in numbers if new not in taken)

    def relabelled(self, name: str, tensor: PendingValue, op: Reshape | Transpose, shape: Shape) -> PendingValue:
        """The tensor reshaped or transposed, in front of what is still to be done."""
        before = tensor.value.shape
        if isinstance(op, Reshape) and before == shape:
            return tensor
        named_ops = tuple((n, relabel(p, op, before, shape)) for n, p in tensor.named_ops)
        value = replace(tensor.value, shape=shape, encoding=relabel(tensor.value.encoding, op, before, shape))
        if tensor.branches is not None:
            left, right = (self.relabelled(name, h, op, shape) for h in (tensor.branches.left, tensor.branches.right))
            return replace(
                tensor, value=value, named_ops=named_ops, branches=replace(tensor.branches, left=left, right=right)
            )
        source = tensor.value
        return replace(self.add(View(name, op, source, value, (tensor.index,))), named_ops=named_ops)

    def flushed(self, tensor: PendingValue) -> PendingValue:
        """The tensor with a layer for its operations up to the last quantizer.

        What activations do behind the first quantizer of a wide input, or anything behind a `Pair`, stays a
        function of few codes.
        """
        ends = [i for i, op in enumerate(tensor.ops) if isinstance(op, QUANTIZERS)]
        if ends and tensor.branches is not None:
            tensor = self.on_grid(tensor)
            ends = [i for i, op in enumerate(tensor.ops) if isinstance(op, QUANTIZERS)]
        if ends and tensor.branches is not None:
            return self.flushed(self._merged(tensor, tensor.branches, ends[0]))
        curved = any(not isinstance(op, (*STRAIGHT, *QUANTIZERS)) for op in tensor.ops[ends[0] :]) if ends else False
        pair = bool(ends) and isinstance(tensor.ops[ends[0]], Pair)
        if len(ends) > 1 and (pair or (curved and tensor.value.type.bits > _WIDE)):
            tensor = self._closed(tensor, ends[0])
            ends = [i for i, op in enumerate(tensor.ops) if isinstance(op, QUANTIZERS)]
        if ends:
            tensor = self._closed(tensor, ends[-1])
        if tensor.named_ops and (meaning := dequantized_codes(tensor.value, tensor.ops[0])) is not None:
            tensor = replace(tensor, value=replace(tensor.value, encoding=meaning), named_ops=tensor.named_ops[1:])
        return tensor

    def _closed(self, tensor: PendingValue, end: int) -> PendingValue:
        """With a Map for the operations up to the quantizer at `end`, and the bounds that follow it."""
        quantizer, bounds = bounded(tensor.ops[end], tensor.ops[end + 1 :])
        assert isinstance(quantizer, QUANTIZERS)
        made = self.mapped(tensor.named_ops[end][0], tensor, tensor.ops[:end], quantizer)
        return replace(made, named_ops=tensor.named_ops[end + 1 + bounds :])

    def mapped(self, name: str, tensor: PendingValue, ops: Sequence[Elementwise], quantizer: Quantizer) -> PendingValue:
        quantizer = narrowed(quantizer, lambda: range_behind(tensor.value, ops))
        result = Value(tensor.value.shape, code_interval(tensor.value, ops, quantizer), decoding(quantizer))
        return self.add(Map(name, tuple(ops), quantizer, tensor.value, result, (tensor.index,)))

    def _merged(self, tensor: PendingValue, both: Branches, end: int) -> PendingValue:
        quantizer, bounds = bounded(tensor.ops[end], tensor.ops[end + 1 :])
        assert isinstance(quantizer, QUANTIZERS)
        made = self._merge(tensor.named_ops[end][0], tensor, both, tensor.ops[:end], quantizer)
        return replace(made, named_ops=tensor.named_ops[end + 1 + bounds :])

    def _merge(
        self, name: str, tensor: PendingValue, both: Branches, ops: Sequence[Elementwise], quantizer: Quantizer
    ) -> PendingValue:  # fmt: skip
        left, right = both.left, both.right
        quantizer = narrowed(
            quantizer, lambda: range_of_pair(both.kind, (left.value, left.ops), (right.value, right.ops), ops)
        )
        result = Value(tensor.value.shape, code_type(quantizer), decoding(quantizer))
        branches = tuple(left.ops), tuple(right.ops)
        sources, inputs = (left.value, right.value), (left.index, right.index)
        return self.add(BinaryMap(name, both.kind, branches, tuple(ops), quantizer, sources, result, inputs))

    def to_codes(self, name: str, tensor: PendingValue, integers: bool = False) -> PendingValue:
        """The tensor as codes alone, for a layer of that name.

        Relu, Clip, and arithmetic that gives exact multiples of one scale for every code become an
        integer function; anything else is an error. Codes mean float32 or integers: where the tensor is of another
        float type, a Cast to that is still to be done.
        """
        tensor = self.flushed(tensor)
        tensor = self.on_grid(tensor, not tensor.named_ops)
        if tensor.branches is not None:
            return self._pair_to_codes(name, tensor, tensor.branches)
        if not tensor.named_ops:
            return tensor
        quantizer = grid(tensor.value, tensor.ops)
        if quantizer is None:
            for node, op in tensor.named_ops:
                called = op.kind if isinstance(op, Activation) else type(op).__name__
                text = f"float operation {called} stands between a quantizer and {name}."
                hint = "Its result is no multiple of one scale: quantize it again before the layer."
                self.problems.error("HG030", node, text, hint)
            self.problems.finish()
            raise AssertionError
        made = self.fold_into_producer(tensor.named_ops[-1][0], tensor, tensor.ops, quantizer)
        return _typed(made, tensor.named_ops[-1][0], type_behind(tensor.value, tensor.ops))

    def fold_into_producer(
        self, name: str, tensor: PendingValue, ops: Sequence[Elementwise], quantizer: Quantizer
    ) -> PendingValue:
        """A Map behind the codes, inside the Map that makes them if nothing else uses that."""
        last = self.layers.get(tensor.index)
        if isinstance(last, Map) and tensor.index == len(self.values) - 1 and not tensor.shared:
            between = decoding_between(last.result, tensor.value)
            if between is not None:
                del self.layers[tensor.index]
                self.values.pop()
                before = PendingValue(last.inputs[0], last.source)
                return self.mapped(name, before, [*last.ops, last.quantizer, *between, *ops], quantizer)
        return self.mapped(name, tensor, ops, quantizer)

    def attempt(self, make: Callable[[], PendingValue]) -> PendingValue | HlsgenError:
        """What `make` gives, or why it gives nothing: then layers, values and problems are what they were before."""
        values, layers, sums, found = list(self.values), dict(self.layers), dict(self._sums), len(self.problems.items)
        try:
            return make()
        except HlsgenError as error:
            self.values, self.layers, self._sums = values, layers, sums
            del self.problems.items[found:]
            return error

    def to_ranks(
        self, name: str, tensors: Sequence[PendingValue], refusal: HlsgenError, border: float | None = None,
        by_channel: bool = True,
    ) -> tuple[list[PendingValue], int]:  # fmt: skip
        """Flushed tensors as ranks of their values, and the rank of a border's value.

        They share one table of values for each channel, or for all of them. What gives values of ranks is still to be
        done. Raises HG030 where values have no ranks; `refusal`, why the
        tensors are no codes for the layer of that name, where they are not made of codes at all.
        """
        tensors = [self.on_grid(tensor, True) for tensor in tensors]
        try:
            parts = [self._values_behind(tensor) for tensor in tensors]
            if not by_channel:
                parts = [part.reshape(1, -1) for part in parts]
            found = ranks(parts, len(tensors[0].value.shape), border, self.distinguishes_zeros)
        except Unranked as reason:
            if not str(reason):
                raise refusal from None
            raise fail(
                "HG030", name, f"its input is not quantized again behind float operations, and {reason}.",
                "Quantize it again before the layer.",
            ) from None  # fmt: skip
        made = []
        for tensor in tensors:
            if tensor.branches is not None:
                codes = self._merge(f"{name} (input)", tensor, tensor.branches, tensor.ops, found.to)
            else:
                codes = self._ranked(f"{name} (input)", tensor, found.to)
            made.append(codes.then(name, found.back))
        return made, found.border

    def _values_behind(self, tensor: PendingValue) -> Array:
        both = tensor.branches
        if both is None:
            return values_of_chain(tensor.value, tensor.ops)
        if both.left.branches or both.right.branches:
            raise Unranked
        left, right = ((side.value, side.ops) for side in (both.left, both.right))
        return values_of_pair(both.kind, left, right, tensor.ops)

    def _ranked(self, name: str, tensor: PendingValue, quantizer: Quantizer) -> PendingValue:
        """With a Map to ranks: inside the Map in front, but for functions of wide inputs that may turn or wrap."""
        last = self.layers.get(tensor.index)
        if isinstance(last, Map) and last.source.type.bits > _WIDE:
            values = decoded_interval(tensor.value.encoding, tensor.value.type)
            if not chain_direction(tensor.ops, values).monotone.all():
                return self.mapped(name, tensor, tensor.ops, quantizer)
        return self.fold_into_producer(name, tensor, tensor.ops, quantizer)

    def _pair_to_codes(self, name: str, tensor: PendingValue, both: Branches) -> PendingValue:
        if not tensor.named_ops and not steps_are_few(both) and (whole := exact_whole(both, self.add)) is not None:
            return self.to_codes(name, whole)
        terms = self._pair(tensor)
        unit = float(unit_of(terms)) if terms else None
        left, right = ((side.value, side.ops) for side in (both.left, both.right))
        quantizer = grid_of_pair(both.kind, left, right, tensor.ops, unit)
        if quantizer is None and terms is not None:
            return self.to_codes(name, self.on_grid(tensor, True))
        if quantizer is None:
            found = exact_whole(both, self.add) or larger(both, self.add, lambda rest: self.to_codes(both.name, rest))
            if found is not None:
                return self.to_codes(name, replace(found, named_ops=tensor.named_ops))
        if quantizer is None:
            raise fail(
                "HG030", both.name, f"the {both.kind.value} of two tensors goes into {name} without a quantizer.",
                "Its result is no multiple of one scale: quantize it before the layer.",
            )  # fmt: skip
        made = self._merge(both.name, tensor, both, tensor.ops, quantizer)
        return _typed(made, both.name, type_behind(both.left.value, [*both.left.ops, *tensor.ops]))

    def joined(self, name: str, op: Binary, left: PendingValue, right: PendingValue) -> PendingValue:
        """Both tensors joined; what they are made of must be codes and operations without quantizers."""
        left, right = (h if h.named_ops else self.on_grid(h, True) for h in map(self.flushed, (left, right)))
        both = PendingValue(-1, left.value, (), Branches(name, op.kind, left, right))
        if any(h.branches or h.index in self._sums for h in (left, right)):
            total = self._summed(name, both)
            if total is not None:
                return total
        left, right = (self._operand(name, op.kind, h) if h.branches else h for h in (left, right))
        return PendingValue(-1, left.value, (), Branches(name, op.kind, left, right))

    def _operand(self, name: str, kind: BinaryKind, tensor: PendingValue) -> PendingValue:
        """Two tensors joined, as codes, as ranks, or as float32, with what follows; not of a sum of sums, which is exact or refused."""
        usual = self.attempt(lambda: self.to_codes(name, tensor))
        if isinstance(usual, PendingValue):
            return usual
        sums = (BinaryKind.ADD, BinaryKind.SUB)
        both = tensor.branches
        sum_of_sums = both is not None and kind in sums and both.kind in sums and not tensor.named_ops
        if sum_of_sums and self._terms(tensor) is not None:
            raise usual
        refusal = usual if sum_of_sums else self.attempt(lambda: self.to_ranks(name, [tensor], usual)[0][0])
        if isinstance(refusal, PendingValue):
            return refusal
        return replace(self.add(joint_of(tensor, self.distinguishes_zeros, refusal)), named_ops=tensor.named_ops)

    def on_grid(self, tensor: PendingValue, inner: bool = False) -> PendingValue:
        """The sum of two tensors of codes on one grid as an exact sum of integers; any other tensor as it is.

        If a quantizer follows, the result is the joint of the integers and what they mean; else it is a layer's.
        Where float32 rounds nothing, the sum stays as it is, but for the `inner` sum of another.
        """
        both, terms = tensor.branches, self._pair(tensor)
        if both is None or terms is None or (not inner and is_exact_in_float32(terms)):
            return tensor
        layers: list[BinaryMap] = []

        def keep(layer: BinaryMap) -> tuple[int, Value]:
            layers.append(layer)
            return -1, layer.result

        total = exact_sum(both.name, terms, tensor.value.shape, keep)
        if total is None:
            raise fail(
                "HG033", both.name, f"the exact {both.kind.value} of its tensors is too wide.",
                "Quantize them to fewer bits, or with scales that are nearer to each other.",
            )  # fmt: skip
        (layer,), meaning = layers, total[1].encoding
        if any(isinstance(op, QUANTIZERS) for op in tensor.ops) and isinstance(meaning, Affine):
            left, right = (
                PendingValue(index, source, tuple((both.name, op) for op in ops))
                for index, source, ops in zip(layer.inputs, layer.sources, layer.branches, strict=True)
            )
            real = Dequantize(meaning.scale, meaning.zero_point.astype(np.int64))
            joint = Branches(both.name, layer.kind, left, right)
            return replace(tensor, branches=joint, named_ops=((both.name, real), *tensor.named_ops))
        made = self.add(layer)
        self._sums[made.index] = True
        return PendingValue(made.index, replace(made.value, encoding=meaning), tensor.named_ops)

    def bounded_sum(self, tensor: PendingValue) -> PendingValue:
        """A sum on a grid, bounded by 0, as codes of that grid, so that the next sum can be exact as well.

        Any other tensor as it is.
        """
        value, zero = tensor.value, getattr(tensor.value.encoding, "zero_point", None)
        bounds = [op for op in tensor.ops if isinstance(op, Max | Min) and not op.value.any()]
        if not bounds or len(bounds) < len(tensor.ops) or not self._sums.get(tensor.index, False):
            return tensor
        if not isinstance(value.encoding, Affine) or zero is None or (zero != np.round(zero)).any():
            return tensor
        made = self.attempt(lambda: self.to_codes(tensor.named_ops[-1][0], tensor))
        return made if isinstance(made, PendingValue) else tensor

    def _pair(self, tensor: PendingValue) -> list[Term] | None:
        """Both operands of a sum, if these are codes on one grid."""
        both = tensor.branches
        if both is None or both.kind not in (BinaryKind.ADD, BinaryKind.SUB):
            return None
        if both.left.branches or both.right.branches:
            return None
        terms = self._terms(replace(tensor, named_ops=()))
        return terms if terms and all(t.plain for t in terms) and on_one_grid(terms) else None

    def _summed(self, name: str, tensor: PendingValue) -> PendingValue | None:
        """A sum of a sum as one exact integer; None if it is no such sum, or none that float32 rounds.

        If all sums within are on a grid, then so must be their terms.
        """
        both, terms = tensor.branches, self._terms(tensor)
        assert both is not None
        grids = all(not h.branches and self._sums.get(h.index, True) for h in (both.left, both.right))
        if terms is None or (grids and (not on_one_grid(terms) or is_exact_in_float32(terms))):
            return None
        total = exact_sum(name, terms, tensor.value.shape, self._added)
        if total is None:
            return None
        self._sums[total[0]] = grids
        return PendingValue(*total)

    def _added(self, layer: BinaryMap) -> tuple[int, Value]:
        made = self.add(layer)
        return made.index, made.value

    def _terms(self, tensor: PendingValue) -> list[Term] | None:
        """The operands of all sums that a tensor is made of."""
        if tensor.branches is None:
            one = term(tensor.index, tensor.value, tensor.ops)
            return None if one is None else [one]
        both = tensor.branches
        parts = [self._terms(side) for side in (both.left, both.right)]
        if (
            both.kind not in (BinaryKind.ADD, BinaryKind.SUB)
            or tensor.named_ops
            or parts[0] is None
            or parts[1] is None
        ):
            return None
        return [*parts[0], *(t.negative() if both.kind is BinaryKind.SUB else t for t in parts[1])]

    def packed(self, name: str, left: PendingValue, right: PendingValue, shape: Shape) -> PendingValue:
        """Two tensors of 8-bit integers, as one."""
        left, right = (self._bytes(name, self.flushed(h)) for h in (left, right))
        result = Value(shape, IntType(0, 65535), IntegerEncoding("uint16", np.zeros((1,) * len(shape), np.int64)))
        return self.add(PackBytes(name, (left.value, right.value), result, (left.index, right.index)))

    def _bytes(self, name: str, tensor: PendingValue) -> PendingValue:
        """The tensor as codes of 8 bits, also where fewer would do."""
        whole = tensor.value.encoding
        if tensor.named_ops or tensor.branches or not isinstance(whole, IntegerEncoding) or whole.offset.any():
            raise fail("HG032", name, "an operand is no tensor of 8-bit integers.", "Quantize it.")
        type_ = IntType(0, 255) if whole.dtype == "uint8" else IntType(-128, 127)
        if tensor.value.type == type_:
            return tensor
        one = np.ones((1,) * len(tensor.value.shape), np.float32)
        wide = QuantizeLinear(one, np.zeros_like(one, np.int64), type_, whole.dtype)
        return self.fold_into_producer(f"{name} (input)", tensor, [Cast("float32")], wide)


def _typed(tensor: PendingValue, name: str, dtype: np.dtype[Any]) -> PendingValue:
    """With a Cast to float16, float64 or bool behind it, if it is of that type."""
    return tensor.then(name, Cast(dtype.name)) if dtype.kind in "fb" and dtype != np.float32 else tensor
