"""Builds the layers of a Graph; float operations are collected until a quantizer ends them.

Each tensor is a `PendingValue`: the value of the Graph that holds its codes, their encoding, and the operations still
to be applied. At a quantizer, all pending operations become one `Map`, or a `BinaryMap` if they combine two tensors.
The layer evaluates the model's own operations in order, so values stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hlsgen import ir
from hlsgen.diagnostics import Collector, HlsgenError, fail
from hlsgen.ir import ops
from hlsgen.ir.evaluate import code_type, decoding
from hlsgen.ir.op_facts import chain_direction, decoded_interval
from hlsgen.ir.window import Reduction
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.passes.exact_add_chain import (
    Term,
    exact_sum,
    has_common_unit,
    is_exact_in_float32,
    on_one_grid,
    term,
    unit_of,
)
from hlsgen.passes.float_binaries import float_binary
from hlsgen.passes.hoist_views import relabel
from hlsgen.passes.integer_pairs import exact_integers, is_byte_sum, larger_integer
from hlsgen.passes.pending_value import Branches, PendingValue, bounded, decoding_between, dequantized_codes
from hlsgen.passes.quantization import (
    code_interval,
    grid,
    grid_of_pair,
    narrowed,
    range_after,
    range_of_pair,
    type_after,
)
from hlsgen.passes.rank_codes import Unranked, ranks, values_of_chain, values_of_pair

#: Above this number of bits, the codes of an input are not tried exhaustively.
_WIDE = 20
#: Most bits of codes whose functions surely have a list of steps.
_LISTED_BITS = 12
#: Operations that give a function of a wide input few monotone pieces. Others are applied to quantized codes only.
STRAIGHT = (ops.Mul, ops.Add, ops.Fma, ops.Div, ops.Max, ops.Min, ops.Cast, ops.Dequantize, ops.Compare, ops.Constant)


class GraphBuilder:
    """The values of a graph under construction, and the layer that produces each of them.

    `values[0]` is the input. `layers[i]` produces value i, in the order of the values. A value from `assume` has no
    layer; a problem was found then, and no graph will be built.
    """

    def __init__(self, problems: Collector, input_value: ir.Value, distinguishes_zeros: bool = True) -> None:
        """`distinguishes_zeros`: True if an operation of the model may give other results for -0.0 than for 0.0."""
        self.problems = problems
        self.distinguishes_zeros = distinguishes_zeros
        self.values: list[ir.Value] = [input_value]
        self.first_computed = 1  # earlier values are inputs
        self.layers: dict[int, ir.Layer] = {}
        #: For each value that is an exact sum of tensors: True if these are on one grid.
        self._sums: dict[int, bool] = {}

    def add(self, layer: ir.Layer) -> PendingValue:
        """Add a layer; return its result."""
        if not isinstance(layer, ir.View):
            layer = replace(layer, name=self._unique_name(layer.name))
        number = len(self.values)
        self.layers[number] = layer
        self.values.append(layer.result)
        only_selects = isinstance(layer, ir.View | ir.Rearrange) or (
            isinstance(layer, ir.Pooling) and layer.kind is Reduction.MAX
        )
        if only_selects and layer.inputs[0] in self._sums:  # elements of a sum are sums, too
            self._sums[number] = self._sums[layer.inputs[0]]
        return PendingValue(number, layer.result)

    def assume(self, value: ir.Value) -> PendingValue:
        """A value without a layer, in place of the result of an invalid step, so that further problems can be found."""
        self.values.append(value)
        return PendingValue(len(self.values) - 1, value)

    def _unique_name(self, name: str) -> str:
        """The name, with a number if another layer has it.

        A node may become several layers, and operations that several layers apply to one tensor are done for each.
        """
        used = {layer.name for layer in self.layers.values() if not isinstance(layer, ir.View)}
        numbers = (f"{name} ({n})" for n in range(2, len(used) + 3))
        return name if name not in used else next(candidate for candidate in numbers if candidate not in used)

    def relabelled(
        self, name: str, tensor: PendingValue, op: ir.Reshape | ir.Transpose, shape: ir.Shape
    ) -> PendingValue:
        """The tensor reshaped or transposed; the view comes before its pending operations."""
        old_shape = tensor.value.shape
        if isinstance(op, ir.Reshape) and old_shape == shape:
            return tensor
        named_ops = tuple((n, relabel(p, op, old_shape, shape)) for n, p in tensor.named_ops)
        value = replace(tensor.value, shape=shape, encoding=relabel(tensor.value.encoding, op, old_shape, shape))
        if tensor.branches is not None:
            branch_a, branch_b = (
                self.relabelled(name, branch, op, shape) for branch in (tensor.branches.left, tensor.branches.right)
            )
            return replace(
                tensor,
                value=value,
                named_ops=named_ops,
                branches=replace(tensor.branches, left=branch_a, right=branch_b),
            )
        source = tensor.value
        return replace(self.add(ir.View(name, op, source, value, (tensor.index,))), named_ops=named_ops)

    def flush(self, tensor: PendingValue) -> PendingValue:
        """Add a layer for the tensor's operations up to the last quantizer.

        Nonlinear functions after the first quantizer of a wide input, and all operations after a `Pair`, get their own
        layer: a function of few codes. Rescalings to many codes do, too: each has a formula, two together have none.
        """
        quantizers = [i for i, op in enumerate(tensor.ops) if isinstance(op, ops.QUANTIZERS)]
        if quantizers and tensor.branches is not None:
            tensor = self.on_grid(tensor)
            quantizers = [i for i, op in enumerate(tensor.ops) if isinstance(op, ops.QUANTIZERS)]
        if quantizers and tensor.branches is not None:
            return self.flush(self._merge_up_to(tensor, tensor.branches, quantizers[0]))
        has_nonlinear = (
            any(not isinstance(op, (*STRAIGHT, *ops.QUANTIZERS)) for op in tensor.ops[quantizers[0] :])
            if quantizers
            else False
        )
        starts_with_pair = bool(quantizers) and isinstance(tensor.ops[quantizers[0]], ops.Pair)
        if len(quantizers) > 1 and (starts_with_pair or (has_nonlinear and tensor.value.type.bits > _WIDE)):
            tensor = self._map_up_to(tensor, quantizers[0])
            quantizers = [i for i, op in enumerate(tensor.ops) if isinstance(op, ops.QUANTIZERS)]
        while len(quantizers) > 1 and all(_is_wide_rescaling(tensor.ops[i]) for i in quantizers[:2]):
            tensor = self._map_up_to(tensor, quantizers[0])
            quantizers = [i for i, op in enumerate(tensor.ops) if isinstance(op, ops.QUANTIZERS)]
        if quantizers:
            tensor = self._map_up_to(tensor, quantizers[-1])
        if tensor.branches is not None or not tensor.named_ops:
            return tensor
        if (affine := dequantized_codes(tensor.value, tensor.ops[0])) is not None:
            tensor = replace(tensor, value=replace(tensor.value, encoding=affine), named_ops=tensor.named_ops[1:])
        return tensor

    def _map_up_to(self, tensor: PendingValue, end: int) -> PendingValue:
        """Add a Map for the operations up to the quantizer at `end`, with the bounds that follow it."""
        quantizer, bounds = bounded(tensor.ops[end], tensor.ops[end + 1 :])
        assert isinstance(quantizer, ops.QUANTIZERS)
        mapped = self.add_map(tensor.named_ops[end][0], tensor, tensor.ops[:end], quantizer)
        return replace(mapped, named_ops=tensor.named_ops[end + 1 + bounds :])

    def add_map(
        self, name: str, tensor: PendingValue, operations: Sequence[ops.Elementwise], quantizer: ops.Quantizer
    ) -> PendingValue:
        """Add a Map of these operations and quantizer on the tensor's codes."""
        quantizer = narrowed(quantizer, lambda: range_after(tensor.value, operations))
        result = ir.Value(tensor.value.shape, code_interval(tensor.value, operations, quantizer), decoding(quantizer))
        return self.add(ir.Map(name, tuple(operations), quantizer, tensor.value, result, (tensor.index,)))

    def _merge_up_to(self, tensor: PendingValue, branches: Branches, end: int) -> PendingValue:
        """Add a BinaryMap for the operations up to the quantizer at `end`, with the bounds that follow it."""
        quantizer, bounds = bounded(tensor.ops[end], tensor.ops[end + 1 :])
        assert isinstance(quantizer, ops.QUANTIZERS)
        merged = self._add_binary_map(tensor.named_ops[end][0], tensor, branches, tensor.ops[:end], quantizer)
        return replace(merged, named_ops=tensor.named_ops[end + 1 + bounds :])

    def _add_binary_map(
        self,
        name: str,
        tensor: PendingValue,
        pair: Branches,
        operations: Sequence[ops.Elementwise],
        quantizer: ops.Quantizer,
    ) -> PendingValue:
        operand_a, operand_b = pair.left, pair.right
        quantizer = narrowed(
            quantizer,
            lambda: range_of_pair(
                pair.kind, (operand_a.value, operand_a.ops), (operand_b.value, operand_b.ops), operations
            ),
        )
        result = ir.Value(tensor.value.shape, code_type(quantizer), decoding(quantizer))
        branches = tuple(operand_a.ops), tuple(operand_b.ops)
        sources, inputs = (operand_a.value, operand_b.value), (operand_a.index, operand_b.index)
        return self.add(ir.BinaryMap(name, pair.kind, branches, tuple(operations), quantizer, sources, result, inputs))

    def to_codes(self, name: str, tensor: PendingValue, integers: bool = False) -> PendingValue:
        """The tensor as codes without pending operations, as the layer `name` needs it.

        Relu, Clip, and arithmetic that gives exact multiples of one scale for every code become an
        integer function; anything else is an error. Codes represent float32 or integers. A tensor of another
        float type keeps a pending Cast to that type.
        """
        tensor = self.flush(tensor)
        tensor = self.on_grid(tensor, not tensor.named_ops)
        if tensor.branches is not None:
            return self._pair_to_codes(name, tensor, tensor.branches)
        if not tensor.named_ops:
            return tensor
        quantizer = grid(tensor.value, tensor.ops)
        if quantizer is None:
            for node, op in tensor.named_ops:
                operation = op.kind if isinstance(op, ops.Activation) else type(op).__name__
                text = f"float operation {operation} is between a quantizer and {name}."
                hint = "Its result is not a multiple of one scale: quantize it again before the layer."
                self.problems.error("HG030", node, text, hint)
            self.problems.finish()
            raise AssertionError
        codes = self.fold_into_producer(tensor.named_ops[-1][0], tensor, tensor.ops, quantizer)
        return _with_dtype(codes, tensor.named_ops[-1][0], type_after(tensor.value, tensor.ops))

    def fold_into_producer(
        self, name: str, tensor: PendingValue, operations: Sequence[ops.Elementwise], quantizer: ops.Quantizer
    ) -> PendingValue:
        """Add a Map on the tensor's codes, merged into the Map that produces them if it has no other user."""
        producer = self.layers.get(tensor.index)
        if isinstance(producer, ir.Map) and tensor.index == len(self.values) - 1 and not tensor.shared:
            between = decoding_between(producer.result, tensor.value)
            if between is not None:
                del self.layers[tensor.index]
                self.values.pop()
                source = PendingValue(producer.inputs[0], producer.source)
                return self.add_map(name, source, [*producer.ops, producer.quantizer, *between, *operations], quantizer)
        return self.add_map(name, tensor, operations, quantizer)

    def attempt(self, make: Callable[[], PendingValue]) -> PendingValue | HlsgenError:
        """The result of `make`, or its error; on an error, layers, values and problems are restored."""
        values, layers, sums, problem_count = (
            list(self.values),
            dict(self.layers),
            dict(self._sums),
            len(self.problems.items),
        )
        try:
            return make()
        except HlsgenError as error:
            self.values, self.layers, self._sums = values, layers, sums
            del self.problems.items[problem_count:]
            return error

    def to_ranks(
        self,
        name: str,
        tensors: Sequence[PendingValue],
        refusal: HlsgenError,
        border: float | None = None,
        by_channel: bool = True,
    ) -> tuple[list[PendingValue], int]:
        """Flushed tensors as ranks of their values, and the rank of a border's value.

        All tensors share one lookup table of values for each channel, or for all channels. The operation from ranks
        back to values is still pending. Raises HG030 if the values have no ranks. Raises `refusal`, the reason why
        the tensors are no codes for the layer `name`, if they are not made of codes at all.
        """
        tensors = [self.on_grid(tensor, True) for tensor in tensors]
        try:
            parts = [self._values_of(tensor) for tensor in tensors]
            if not by_channel:
                parts = [part.reshape(1, -1) for part in parts]
            rank_ops = ranks(parts, len(tensors[0].value.shape), border, self.distinguishes_zeros)
        except Unranked as reason:
            if not str(reason):
                raise refusal from None
            raise fail(
                "HG030",
                name,
                f"its input is not quantized again after float operations, and {reason}.",
                "Quantize it again before the layer.",
            ) from None
        ranked = []
        for tensor in tensors:
            if tensor.branches is not None:
                codes = self._add_binary_map(f"{name} (input)", tensor, tensor.branches, tensor.ops, rank_ops.to)
            else:
                codes = self._map_to_ranks(f"{name} (input)", tensor, rank_ops.to)
            ranked.append(codes.then(name, rank_ops.back))
        return ranked, rank_ops.border

    def _values_of(self, tensor: PendingValue) -> Array:
        """All values of a tensor, (channels or 1, values). Raises Unranked."""
        pair = tensor.branches
        if pair is None:
            return values_of_chain(tensor.value, tensor.ops)
        if pair.left.branches or pair.right.branches:
            raise Unranked
        operand_a, operand_b = ((side.value, side.ops) for side in (pair.left, pair.right))
        return values_of_pair(pair.kind, operand_a, operand_b, tensor.ops)

    def _map_to_ranks(self, name: str, tensor: PendingValue, quantizer: ops.Quantizer) -> PendingValue:
        """Add a Map to ranks, merged into the Map before it.

        It stays separate for functions of wide inputs that may turn or wrap.
        """
        producer = self.layers.get(tensor.index)
        if isinstance(producer, ir.Map) and producer.source.type.bits > _WIDE:
            values = decoded_interval(tensor.value.encoding, tensor.value.type)
            if not chain_direction(tensor.ops, values).monotone.all():
                return self.add_map(name, tensor, tensor.ops, quantizer)
        return self.fold_into_producer(name, tensor, tensor.ops, quantizer)

    def _pair_to_codes(self, name: str, tensor: PendingValue, branches: Branches) -> PendingValue:
        """Two tensors combined, as codes: exact integers, an exact sum, or a BinaryMap onto a grid."""
        if (
            not tensor.named_ops
            and not is_byte_sum(branches)
            and (exact := exact_integers(branches, self.add)) is not None
        ):
            return self.to_codes(name, exact)
        terms = self._sum_on_grid(tensor)
        unit = float(unit_of(terms)) if terms else None
        operand_a, operand_b = ((side.value, side.ops) for side in (branches.left, branches.right))
        quantizer = grid_of_pair(branches.kind, operand_a, operand_b, tensor.ops, unit)
        if quantizer is None and terms is not None:
            return self.to_codes(name, self.on_grid(tensor, True))
        if quantizer is None:
            exact = exact_integers(branches, self.add) or larger_integer(
                branches, self.add, lambda difference: self.to_codes(branches.name, difference)
            )
            if exact is not None:
                return self.to_codes(name, replace(exact, named_ops=tensor.named_ops))
        if quantizer is None:
            raise fail(
                "HG030",
                branches.name,
                f"the {branches.kind.value} of two tensors enters {name} without a quantizer.",
                "Its result is not a multiple of one scale: quantize it before the layer.",
            )
        codes = self._add_binary_map(branches.name, tensor, branches, tensor.ops, quantizer)
        return _with_dtype(codes, branches.name, type_after(branches.left.value, [*branches.left.ops, *tensor.ops]))

    def combine(self, name: str, op: ir.Binary, operand_a: PendingValue, operand_b: PendingValue) -> PendingValue:
        """The binary operation on both tensors, pending if possible.

        Its operands must be codes with pending operations, without quantizers.
        """
        operand_a, operand_b = (
            operand if operand.named_ops else self.on_grid(operand, True)
            for operand in map(self.flush, (operand_a, operand_b))
        )
        combined = PendingValue(-1, operand_a.value, (), Branches(name, op.kind, operand_a, operand_b))
        if any(operand.branches or operand.index in self._sums for operand in (operand_a, operand_b)):
            exact_sum_value = self._sum_of_sums(name, combined)
            if exact_sum_value is not None:
                return exact_sum_value
        operand_a, operand_b = (
            self._operand(name, operand) if operand.branches else operand for operand in (operand_a, operand_b)
        )
        return PendingValue(-1, operand_a.value, (), Branches(name, op.kind, operand_a, operand_b))

    def _operand(self, name: str, tensor: PendingValue) -> PendingValue:
        """Two combined tensors as codes, as ranks, or as float32, as operand of a further operation."""
        codes = self.attempt(lambda: self.to_codes(name, tensor))
        if isinstance(codes, PendingValue):
            return codes
        refusal = self.attempt(lambda: self.to_ranks(name, [tensor], codes)[0][0])
        if isinstance(refusal, PendingValue):
            return refusal
        return replace(self.add(float_binary(tensor, self.distinguishes_zeros, refusal)), named_ops=tensor.named_ops)

    def on_grid(self, tensor: PendingValue, inner: bool = False) -> PendingValue:
        """The sum of two tensors of codes on one grid as an exact sum of integers; any other tensor unchanged.

        If a quantizer follows, the result is the pending sum of the integers with its encoding; else it is a layer's.
        A sum that float32 computes without rounding stays unchanged, unless it is the `inner` sum of another.
        """
        branches, terms = tensor.branches, self._sum_on_grid(tensor)
        if branches is None or terms is None or (not inner and is_exact_in_float32(terms)):
            return tensor
        layers: list[ir.BinaryMap] = []

        def keep(layer: ir.BinaryMap) -> tuple[int, ir.Value]:
            layers.append(layer)
            return -1, layer.result

        exact = exact_sum(branches.name, terms, tensor.value.shape, keep)
        if exact is None:
            raise fail(
                "HG033",
                branches.name,
                f"the exact {branches.kind.value} of its tensors is too wide.",
                "Quantize them to fewer bits, or with scales that are nearer to each other.",
            )
        (layer,), meaning = layers, exact[1].encoding
        if any(isinstance(op, ops.QUANTIZERS) for op in tensor.ops) and isinstance(meaning, ir.Affine):
            operand_a, operand_b = (
                PendingValue(index, source, tuple((branches.name, op) for op in operations))
                for index, source, operations in zip(layer.inputs, layer.sources, layer.branches, strict=True)
            )
            dequantize = ops.Dequantize(meaning.scale, meaning.zero_point.astype(np.int64))
            integer_branches = Branches(branches.name, layer.kind, operand_a, operand_b)
            return replace(
                tensor, branches=integer_branches, named_ops=((branches.name, dequantize), *tensor.named_ops)
            )
        integer_sum = self.add(layer)
        self._sums[integer_sum.index] = True
        return PendingValue(integer_sum.index, replace(integer_sum.value, encoding=meaning), tensor.named_ops)

    def bounded_sum(self, tensor: PendingValue) -> PendingValue:
        """A sum on a grid, bounded by 0, as codes of that grid, so that the next sum can be exact as well.

        Any other tensor is unchanged.
        """
        value, zero_point = tensor.value, getattr(tensor.value.encoding, "zero_point", None)
        bounds = [op for op in tensor.ops if isinstance(op, ops.Max | ops.Min) and not op.value.any()]
        if not bounds or len(bounds) < len(tensor.ops) or not self._sums.get(tensor.index, False):
            return tensor
        if (
            not isinstance(value.encoding, ir.Affine)
            or zero_point is None
            or (zero_point != np.round(zero_point)).any()
        ):
            return tensor
        codes = self.attempt(lambda: self.to_codes(tensor.named_ops[-1][0], tensor))
        return codes if isinstance(codes, PendingValue) else tensor

    def _sum_on_grid(self, tensor: PendingValue) -> list[Term] | None:
        """Both operands of a sum, if these are codes on one grid; else None."""
        branches = tensor.branches
        if branches is None or branches.kind not in (ops.BinaryKind.ADD, ops.BinaryKind.SUB):
            return None
        if branches.left.branches or branches.right.branches:
            return None
        terms = self._terms(replace(tensor, named_ops=()))
        return terms if terms and all(t.plain for t in terms) and on_one_grid(terms) else None

    def _sum_of_sums(self, name: str, tensor: PendingValue) -> PendingValue | None:
        """A sum of a sum as one exact integer.

        Returns None if it is no such sum, without a common unit, or if float32 computes it without rounding. If all
        sums within are on a grid, their terms must be on one as well.
        """
        branches, terms = tensor.branches, self._terms(tensor)
        assert branches is not None
        grids = all(
            not operand.branches and self._sums.get(operand.index, True) for operand in (branches.left, branches.right)
        )
        if terms is None or (grids and (not on_one_grid(terms) or is_exact_in_float32(terms))):
            return None
        if not has_common_unit(terms):
            return None
        exact = exact_sum(name, terms, tensor.value.shape, self._add_sum_layer)
        if exact is None:
            text = "the sum of tensors whose scales have a common unit has more than 24 bits in this unit."
            raise fail("HG030", name, text, "Quantize one of the sums in it.")
        self._sums[exact[0]] = grids
        return PendingValue(*exact)

    def _add_sum_layer(self, layer: ir.BinaryMap) -> tuple[int, ir.Value]:
        result = self.add(layer)
        return result.index, result.value

    def _terms(self, tensor: PendingValue) -> list[Term] | None:
        """The operands of all sums from which a tensor is computed."""
        if tensor.branches is None:
            single = term(tensor.index, tensor.value, tensor.ops)
            return None if single is None else [single]
        branches = tensor.branches
        parts = [self._terms(side) for side in (branches.left, branches.right)]
        if (
            branches.kind not in (ops.BinaryKind.ADD, ops.BinaryKind.SUB)
            or tensor.named_ops
            or parts[0] is None
            or parts[1] is None
        ):
            return None
        return [*parts[0], *(t.negative() if branches.kind is ops.BinaryKind.SUB else t for t in parts[1])]

    def pack_bytes(self, name: str, operand_a: PendingValue, operand_b: PendingValue, shape: ir.Shape) -> PendingValue:
        """Two tensors of 8-bit integers, packed into one."""
        operand_a, operand_b = (self._as_bytes(name, self.flush(operand)) for operand in (operand_a, operand_b))
        result = ir.Value(shape, IntType(0, 65535), ir.IntegerEncoding("uint16", np.zeros((1,) * len(shape), np.int64)))
        return self.add(
            ir.PackBytes(name, (operand_a.value, operand_b.value), result, (operand_a.index, operand_b.index))
        )

    def _as_bytes(self, name: str, tensor: PendingValue) -> PendingValue:
        """The tensor as codes of 8 bits, also if fewer would suffice."""
        encoding = tensor.value.encoding
        if tensor.named_ops or tensor.branches or not isinstance(encoding, ir.IntegerEncoding) or encoding.offset.any():
            raise fail("HG032", name, "an operand is not a tensor of 8-bit integers.", "Quantize it.")
        type_ = IntType(0, 255) if encoding.dtype == "uint8" else IntType(-128, 127)
        if tensor.value.type == type_:
            return tensor
        unit_scale = np.ones((1,) * len(tensor.value.shape), np.float32)
        widen = ops.QuantizeLinear(unit_scale, np.zeros_like(unit_scale, np.int64), type_, encoding.dtype)
        return self.fold_into_producer(f"{name} (input)", tensor, [ops.Cast("float32")], widen)


def _is_wide_rescaling(op: ops.Elementwise) -> bool:
    """True for an integer rescaling to more codes than a list of steps surely has."""
    return isinstance(op, ops.Requantize) and op.type.bits > _LISTED_BITS


def _with_dtype(tensor: PendingValue, name: str, dtype: np.dtype[Any]) -> PendingValue:
    """Append a Cast to float16, float64 or bool if `dtype` is one of these."""
    return tensor.then(name, ops.Cast(dtype.name)) if dtype.kind in "fb" and dtype != np.float32 else tensor
