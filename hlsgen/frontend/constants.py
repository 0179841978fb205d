"""Nodes whose inputs are all constant: evaluated once, with onnx's own reference implementation.

Each function returns the results of such a node; results of quantizers have codes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.constant_folding import Const, check_finite, check_growth, evaluate, quantized
from hlsgen.frontend.dialect_integer import dequantized, quantizer_of
from hlsgen.frontend.element_quantizers import constant_codes
from hlsgen.frontend.node_context import Imported, NodeContext
from hlsgen.frontend.onnx_graph import with_outputs
from hlsgen.frontend.quantized_constants import grid_of, on_grid, scaled, unchanged
from hlsgen.ir.evaluate import quantize
from hlsgen.ir.ops import QUANTIZERS
from hlsgen.numerics.fixed import Array


def refused(node: NodeContext) -> list[Const]:
    """For operators without an evaluation. Raises HG010."""
    raise fail(
        "HG010",
        node.name,
        f"operator {node.op_type} on constants is not supported.",
        "Simplify the model with its exporter's constant folding.",
    )


def evaluated(node: NodeContext) -> list[Const]:
    """The node's results by onnx's reference implementation. Raises HG004 or HG013."""
    arrays = _arrays(node)
    check_growth(node.proto, arrays)
    return [Const(array) for array in _results(node, arrays)]


def _results(node: NodeContext, arrays: list[Array]) -> list[Array]:
    """The outputs that are used. For Split all outputs are computed, as they determine its sizes."""
    if node.op_type != "Split":
        return evaluate(node.proto, arrays, node.opset)
    names = [name or f"unused {i}" for i, name in enumerate(node.outputs)]
    results = evaluate(with_outputs(node.proto, names), arrays, node.opset)
    return [result for result, name in zip(results, node.outputs, strict=True) if name]


#: Operators between DequantizeLinear and a layer that onnxruntime applies to the codes, so that it fuses the layer.
_MOVES_CODES = frozenset(("Identity", "Transpose"))


def rearranged(node: NodeContext) -> list[Const]:
    """An operator that only moves elements, applied to codes, scales and zero points as well.

    Raises HG004 or HG013.
    """
    first = node.constant(0)
    results = evaluated(node)
    if first is None or first.codes is None:
        return results
    shape, parameters = first.array.shape, _arrays(node)[1:]
    kind = first.kind if node.op_type in _MOVES_CODES else ""
    codes, scales, zeros = (
        _results(node, [np.broadcast_to(part, shape).copy(), *parameters])
        for part in (first.codes, first.scale, first.zero_point)
        if part is not None
    )
    return [
        replace(result, codes=code, scale=scale, zero_point=zero, kind=kind)
        if code.shape == result.array.shape
        else result
        for result, code, scale, zero in zip(results, codes, scales, zeros, strict=True)
    ]


def filled(node: NodeContext) -> list[Const]:
    """An operator that moves the elements of its float inputs and may insert zeros: Concat, Pad, Where.

    The result has codes if each input has. Raises HG004 or HG013.
    """
    results = evaluated(node)
    inputs = [const for const in node.constants if const is not None]
    if all(const.codes is None for const in inputs):
        return results
    grids = [grid_of(const) if const.array.dtype.kind == "f" else (const.array, const.array) for const in inputs]
    parts = [grid for grid in grids if grid is not None]
    if len(parts) < len(inputs):
        return results
    codes, scales = (_results(node, [part[i] for part in parts]) for i in (0, 1))
    return [on_grid(r.array, code, scale) for r, code, scale in zip(results, codes, scales, strict=True)]


def multiplied(node: NodeContext) -> list[Const]:
    """Mul: codes times a constant are codes with another scale. Raises HG004 or HG013."""
    return [scaled(evaluated(node)[0].array, _operands(node), division=False)]


def divided(node: NodeContext) -> list[Const]:
    """Div: codes divided by a constant are codes with another scale. Raises HG004 or HG013."""
    return [scaled(evaluated(node)[0].array, _operands(node), division=True)]


def negated(node: NodeContext) -> list[Const]:
    """Neg: the codes change sign. Raises HG013."""
    (result,), (const,) = evaluated(node), _operands(node)
    grid = None if const.codes is None else grid_of(const)
    return [result] if grid is None else [on_grid(result.array, -grid[0], grid[1])]


def limited(node: NodeContext) -> list[Const]:
    """An operator such as Clip or Cast: the result has the codes of the first input if its values are the same."""
    results, first = evaluated(node), node.constant(0)
    return results if first is None else [unchanged(results[0].array, first)]


def _operands(node: NodeContext) -> list[Const]:
    return [const for const in node.constants if const is not None]


def quantize_linear(node: NodeContext) -> list[Const]:
    """The codes of a constant, in the type of the codes."""
    data = node.constant(0)
    if data is None:
        return refused(node)
    op = quantizer_of(node.name, data.array.shape, node.constants, node.attrs, signed=True)
    check_finite(node.name, data.array)
    return [Const(quantize(op, data.array).astype(op.dtype))]


def dequantize_linear(node: NodeContext) -> list[Const]:
    """The real numbers of constant codes, with the codes."""
    data = node.constant(0)
    return refused(node) if data is None else [dequantized(node.name, data, node.constants, node.attrs)]


def _arrays(node: NodeContext) -> list[Array]:
    return [c.array for c in node.constants if c is not None]


def quantized_by(convert: Callable[[NodeContext], Imported]) -> Callable[[NodeContext], list[Const]]:
    """The evaluation of a QONNX quantizer that `convert` imports: the constant after it, with its codes."""

    def evaluate_quantizer(node: NodeContext) -> list[Const]:
        """Raises HG014, HG026 and the codes that `convert` raises."""
        data = node.constant(0)
        if data is None:
            raise fail("HG014", node.name, "the data input is missing.", "It is the first input.")
        if data.array.dtype.kind not in "fiub" or not data.array.size:
            text = f"a constant of type {data.array.dtype} and shape {list(data.array.shape)} cannot be quantized."
            raise fail("HG026", node.name, text, "Store it as float32.")
        signs = _signs_of_scale(node)
        if signs is None:
            return [_quantized(node, convert, data)]
        positive = replace(node, inputs=(node.inputs[0], _absolute(node.constant(1)), *node.inputs[2:]))
        signed_data = data if node.op_type == "BipolarQuant" else Const(data.array * signs)
        result = _quantized(positive, convert, signed_data)
        return [
            replace(
                result,
                array=result.array * signs,
                codes=None if result.codes is None else result.codes * signs.astype(np.int64),
                zero_point=None if result.zero_point is None else result.zero_point * signs,
            )
        ]

    return evaluate_quantizer


def _quantized(node: NodeContext, convert: Callable[[NodeContext], Imported], data: Const) -> Const:
    by_element = constant_codes(node, data)
    if by_element is not None:
        return by_element
    op, _ = convert(node.with_data(data.array.shape)).outputs[0][0]
    assert isinstance(op, QUANTIZERS)
    return quantized(node.name, op, data)


#: Quantizers with their scale at input 1, for which x / -s is -x / s.
_SIGNED_SCALES = frozenset(("BipolarQuant", "FloatQuant", "IntQuant", "Quant"))


def _signs_of_scale(node: NodeContext) -> Array | None:
    """The signs of a quantizer's scale, 1 or -1, in the shape of the data, or None if no scale is negative."""
    data, scale = node.constant(0), node.constant(1)
    if node.op_type not in _SIGNED_SCALES or data is None or scale is None:
        return None
    if scale.array.dtype.kind != "f" or not (scale.array < 0).any():
        return None
    signs = np.where(scale.array < 0, -1, 1).astype(np.float32)
    try:
        return np.broadcast_to(signs, data.array.shape)
    except ValueError:  # the importing function reports the shape
        return None


def _absolute(scale: Const | None) -> Const | None:
    return None if scale is None else Const(np.abs(scale.array))
