"""Second reading of layers that multiply, with their weights, biases, scales and windows; and of maximum pools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hlsgen.certify.second_reading.probes import run_steps
from hlsgen.certify.second_reading.protobuf import Numbers, kind_of
from hlsgen.certify.second_reading.quantizers import quantizer
from hlsgen.certify.second_reading.steps import Differences, ImportedSteps, aligned, differ
from hlsgen.certify.second_reading.windows import compare_window, geometry, spatial_sizes
from hlsgen.ir import Conv, ConvInteger, MatMul, MatMulInteger, Pool, Reduction, Step
from hlsgen.ir.ops import Add, Mul, QuantizeLinear
from hlsgen.numerics.fixed import Array

_INTEGER = (MatMulInteger, ConvInteger)


def _matrix(imported: ImportedSteps, n: int, i: int) -> Numbers | None:
    """The weights at input i as (rows, columns), or as (outputs, height, width, channels of a group)."""
    file, node = imported.file, imported.file.nodes[n]
    const = file.constant(n, i)
    if const is None:
        return None
    if "Conv" in node.op_type:
        if const.array.ndim not in (3, 4):
            return None
        const = const.change(lambda x: np.moveaxis(x, 1, -1))
        return const.change(lambda x: x[:, None]) if const.array.ndim == 3 else const
    while const.array.ndim > 2 and const.array.shape[0] == 1:
        const = const.change(lambda x: x[0])
    if const.array.ndim != 2:
        return None
    return const if file.attributes[n].get("transB", 0) else const.change(np.transpose)


def _window(imported: ImportedSteps, n: int, op: Any, kernel: list[int]) -> list[str] | None:
    """Differences of kernel, strides, dilations and pads of an image or a signal (height 1), or None if not known."""
    attributes = imported.file.attributes[n]
    if attributes.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID", "") or attributes.get("ceil_mode", 0):
        if imported.file.nodes[n].domain not in ("", "ai.onnx") or len(imported.input_shapes(n)) != 1:
            return None
        sizes = spatial_sizes(imported, n)
    else:
        sizes = [0] * len(kernel)  # explicit pads: the geometry does not depend on the sizes
    place = geometry(attributes, sizes, kernel)
    if place is None or list(attributes.get("kernel_shape", kernel)) != kernel:
        return None
    return compare_window(op.window, kernel, place)


def _compare_geometry(imported: ImportedSteps, n: int, op: Any) -> list[str] | None:
    """Differences of window and groups of a convolution; empty for a matrix."""
    if isinstance(op, MatMul | MatMulInteger):
        return []
    weight = imported.file.nodes[n].input[3 if imported.file.nodes[n].op_type == "QLinearConv" else 1]
    differences = _window(imported, n, op, list(imported.file.constants[weight].array.shape[2:]))
    return (
        None
        if differences is None
        else [*differences, *differ("groups", op.groups, imported.file.attributes[n].get("group", 1))]
    )


# --------------------------------------------------------------------------- float layers


def _layer(imported: ImportedSteps, n: int) -> Differences:
    """MatMul, Gemm, Conv with real weights, or between DequantizeLinear and QuantizeLinear."""
    file, node = imported.file, imported.file.nodes[n]
    weight, steps = _matrix(imported, n, 1), imported.steps(n, MatMul, Conv, *_INTEGER)
    if len(steps) != 1 or node.domain not in ("", "ai.onnx"):
        return None
    op = steps[0].op
    if isinstance(op, MatMul) and node.op_type == "MatMul" and file.constant(n, 0) is not None:
        return _left_layer(imported, n, op)
    if weight is None:
        return None
    differences_of_geometry = _compare_geometry(imported, n, op)
    if isinstance(op, _INTEGER):
        return (
            None
            if differences_of_geometry is None
            else _qdq_layer(imported, n, steps[0], weight, differences_of_geometry)
        )
    assert isinstance(op, MatMul | Conv)
    if differences_of_geometry is None:
        return None
    scale = op.scale.astype(np.float64).reshape(-1, *[1] * (op.weight.ndim - 1))
    differences = [*differences_of_geometry, *differ("weight", op.weight * scale, weight.real)]
    attributes = file.attributes[n]
    alpha, beta = (np.float32(attributes.get(key, 1.0)) for key in ("alpha", "beta"))
    factors, terms = imported.steps(n, Mul), imported.steps(n, Add)
    bias = file.constant(n, 2)
    if len(factors) != (alpha != 1) or len(terms) != file.has_input(n, 2) or (file.has_input(n, 2) and bias is None):
        return None
    for step in factors:
        differences += differ("alpha", step.op.value, alpha)  # type: ignore[union-attr]
    for step in terms:
        assert bias is not None
        rank = len(step.shape)
        file_bias = bias.array.reshape(-1, *[1] * (rank - 2)) if isinstance(op, Conv) else beta * bias.array
        differences += differ("bias", step.op.value, aligned(file_bias, rank))  # type: ignore[union-attr]
    return differences


def _left_layer(imported: ImportedSteps, n: int, op: MatMul) -> Differences:
    """A constant times data, compared on whole numbers.

    All sums are exact, because each row of weights has one scale.
    """
    weight, shapes = imported.file.constant(n, 0), imported.input_shapes(n)
    if weight is None or len(shapes) != 1:
        return None
    x = np.random.default_rng(0).integers(-99, 100, shapes[0]).astype(np.float64)
    results = run_steps(imported, n, [x], {id(op): op.weight * op.scale.astype(np.float64)[:, None]})
    return None if not results else [*differ("product", results[-1], np.matmul(weight.real, x))]


def _qdq_layer(imported: ImportedSteps, n: int, step: Step, weight: Numbers, differences: list[str]) -> Differences:
    """A layer of a QDQ group: codes, an int32 bias, one factor fl(fl(sa * sb) / sy). Covers the group's other nodes."""
    file = imported.file
    dequantizer_node = file.upstream_node(n)
    following = file.downstream_nodes(n, ("Add", "Relu"))
    if (
        dequantizer_node < 0
        or file.nodes[dequantizer_node].op_type != "DequantizeLinear"
        or not following
        or weight.codes is None
    ):
        return None
    quantizer_node = following[-1]
    scales = [file.constant(dequantizer_node, 1), file.constant(quantizer_node, 1)]
    zeros = [file.constant(dequantizer_node, 2), file.constant(quantizer_node, 2)]
    if (
        file.nodes[quantizer_node].op_type != "QuantizeLinear"
        or None in scales
        or None in zeros
        or weight.scale is None
        or weight.zero is None
    ):
        return None
    sa, sy = (part.array.astype(np.float32).ravel() for part in scales if part is not None)
    za, zy = (part.array for part in zeros if part is not None)
    if sa.size != 1 or sy.size != 1:
        return None
    row_scales = weight.scale.reshape(len(weight.scale), -1)
    differences = [*differences, *differ("weight", step.op.weight, weight.codes - weight.zero)]  # type: ignore[union-attr]
    differences += differ("zero point of the data", step.op.zero_point, za.astype(np.int64).ravel())  # type: ignore[union-attr]
    product = sa * row_scales[:, 0].astype(np.float32)
    if (row_scales != row_scales[:, :1]).any():
        differences += ["the file's scales of the weights differ within a row."]
    adds = [m for m in following if file.nodes[m].op_type == "Add"]
    biases = [
        file.constant(n, 2),
        *(file.constant(m, i) for m in adds for i in (0, 1) if file.nodes[m].input[i] in file.constants),
    ]
    known_biases = [bias for bias in biases if bias is not None]
    if not _compare_bias_and_factor(
        imported, n, differences, [b.codes.ravel() for b in known_biases if b.codes is not None], product / sy
    ):
        return None
    for bias in known_biases:
        if bias.scale is not None:
            differences += differ("scale of the bias", product, bias.scale.ravel())
    final = imported.only(quantizer_node, QuantizeLinear)
    if final is None:
        return None
    assert isinstance(final.op, QuantizeLinear)
    differences += quantizer(imported, final.op, len(final.shape), np.ones(1, np.float32), zy, 1, kind_of(zy))
    imported.covered |= {dequantizer_node, quantizer_node, *following[:-1]} - {
        m for m in following if file.nodes[m].op_type in ("Reshape", "Transpose")
    }
    return differences


def _compare_bias_and_factor(
    imported: ImportedSteps, n: int, differences: list[str], biases: list[Array], factor: Array
) -> bool:
    """Add differences of the addition after integer sums, and of the factor.

    Returns whether the steps have this form.
    """
    terms, factors = imported.steps(n, Add), imported.steps(n, Mul)
    if len(terms) != len(biases) or len(factors) != 1:
        return False
    for step, bias in zip(terms, biases, strict=True):
        differences += differ("bias", step.op.value, bias)  # type: ignore[union-attr]
    differences += differ("factor", factors[0].op.value, factor)  # type: ignore[union-attr]
    return True


# --------------------------------------------------------------------------- integer layers


def _constant_inputs(imported: ImportedSteps, n: int, inputs: tuple[int, ...]) -> list[Array | None] | None:
    """Constant inputs, with None for each that is left out; None for the entire list if one is not constant."""
    parts = [imported.file.constant(n, i) for i in inputs]
    if any(part is None and imported.file.has_input(n, i) for part, i in zip(parts, inputs, strict=True)):
        return None
    return [None if part is None else part.array for part in parts]


def _integer_sums(
    imported: ImportedSteps, n: int, weights: int, zeros: tuple[int, int]
) -> tuple[Step, list[str]] | None:
    """The integer layer of a node and its differences: weights minus zero point, data's zero point, window."""
    steps, weight, parts = (
        imported.steps(n, *_INTEGER),
        _matrix(imported, n, weights),
        _constant_inputs(imported, n, zeros),
    )
    if len(steps) != 1 or weight is None or parts is None or imported.file.attributes[n].get("channels_last"):
        return None
    differences = _compare_geometry(imported, n, steps[0].op)
    if differences is None:
        return None
    data, point = (np.zeros(1, np.int64) if part is None else part.astype(np.int64).ravel() for part in parts)
    codes = weight.array.astype(np.int64)
    op = steps[0].op
    assert isinstance(op, _INTEGER)
    differences += [] if op.dtype == "int32" else ["the sums are of int64."]
    differences += differ("weight", op.weight, codes - point.reshape(-1, *[1] * (codes.ndim - 1)))
    return steps[0], [*differences, *differ("zero point of the data", op.zero_point, data[0])]


def _integer_layer(imported: ImportedSteps, n: int) -> Differences:
    """MatMulInteger, ConvInteger: data, weights, their zero points."""
    sums = _integer_sums(imported, n, 1, (2, 3))
    return None if sums is None else sums[1]


def _qlinear_layer(imported: ImportedSteps, n: int) -> Differences:
    """Data, weights and result with scales and zero points; each operator has its own order of inputs."""
    kind, file = imported.file.nodes[n].op_type, imported.file
    # Inputs: weights; zero points of data, weights; scales of data, weights; bias; scale, zero point of the result.
    weights, zeros, scales, bias, result = {
        "QLinearMatMul": (3, (2, 5), (1, 4), -1, (6, 7)),
        "QLinearConv": (3, (2, 5), (1, 4), 8, (6, 7)),
        "QGemm": (3, (2, 5), (1, 4), 6, (7, 8)),
        "MatMulIntegerToFloat": (1, (4, 5), (2, 3), 6, (-1, -1)),
    }[kind]
    sums = _integer_sums(imported, n, weights, zeros)
    scale_values, result_parameters = (
        _constant_inputs(imported, n, scales),
        _constant_inputs(imported, n, result) if result[0] >= 0 else [None, None],
    )
    bias_values = _constant_inputs(imported, n, (bias,)) if bias >= 0 else [None]
    if (
        sums is None
        or scale_values is None
        or result_parameters is None
        or bias_values is None
        or scale_values[0] is None
        or scale_values[1] is None
    ):
        return None
    differences, alpha = sums[1], np.float32(file.attributes[n].get("alpha", 1.0))
    factor = alpha * scale_values[0].astype(np.float32).ravel() * scale_values[1].astype(np.float32).ravel()
    if result_parameters[0] is not None:
        factor = factor / result_parameters[0].astype(np.float32).ravel()
    if not _compare_bias_and_factor(
        imported, n, differences, [] if bias_values[0] is None else [bias_values[0].ravel()], factor
    ):
        return None
    finals = imported.steps(n, QuantizeLinear)
    if len(finals) != (result_parameters[0] is not None) or (finals and result_parameters[1] is None):
        return None
    for final in finals:
        assert isinstance(final.op, QuantizeLinear)
        assert result_parameters[1] is not None
        differences += quantizer(
            imported,
            final.op,
            len(final.shape),
            np.ones(1, np.float32),
            result_parameters[1],
            1,
            kind_of(result_parameters[1]),
        )
    return differences


def _max_pool(imported: ImportedSteps, n: int) -> Differences:
    pools, attributes = imported.steps(n, Pool), imported.file.attributes[n]
    if len(pools) != 1 or "kernel_shape" not in attributes or imported.file.nodes[n].domain not in ("", "ai.onnx"):
        return None
    op = pools[0].op
    assert isinstance(op, Pool)
    differences = _window(imported, n, op, attributes["kernel_shape"])
    return differences if differences is None or op.kind is Reduction.MAX else [*differences, "a sum was imported."]


#: Operator -> its second reading.
LAYERS: dict[str, Callable[[ImportedSteps, int], Differences]] = {
    "MatMul": _layer,
    "Gemm": _layer,
    "Conv": _layer,
    "MatMulInteger": _integer_layer,
    "ConvInteger": _integer_layer,
    "QLinearMatMul": _qlinear_layer,
    "QLinearConv": _qlinear_layer,
    "QGemm": _qlinear_layer,
    "MatMulIntegerToFloat": _qlinear_layer,
    "MaxPool": _max_pool,
}
