"""Second reading of Softmax between layers, and of onnxruntime's Softmax for 8-bit integers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from hlsgen.certify.second_reading.protobuf import Numbers, kind_of
from hlsgen.certify.second_reading.quantizers import quantizer
from hlsgen.certify.second_reading.steps import Differences, ImportedSteps, differ
from hlsgen.ir import QLinearSoftmax, Softmax, Step
from hlsgen.ir.ops import QuantizeLinear

#: From this opset on, Softmax is over one axis.
_ONE_AXIS = 13


def _softmax(imported: ImportedSteps, n: int) -> Differences:
    """Over one axis; or between DequantizeLinear and QuantizeLinear, whose nodes it covers as well."""
    file = imported.file
    if file.nodes[n].domain not in ("", "ai.onnx"):
        return None
    step = imported.only(n, Softmax, QLinearSoftmax)
    if step is None or file.opset < _ONE_AXIS:
        return None
    axis = file.attributes[n].get("axis", -1) % len(step.shape)
    if isinstance(step.op, Softmax):
        return list(differ("axis", step.op.axis, axis))
    dequantizer_node, following = file.upstream_node(n), file.downstream_nodes(n)
    if dequantizer_node < 0 or not following:
        return None
    quantizer_node = following[-1]
    if (file.nodes[dequantizer_node].op_type, file.nodes[quantizer_node].op_type) != (
        "DequantizeLinear",
        "QuantizeLinear",
    ):
        return None
    final = imported.only(quantizer_node, QuantizeLinear)
    parameters = file.constant(dequantizer_node, 1), file.constant(quantizer_node, 1), file.constant(quantizer_node, 2)
    differences = None if final is None else _literal(imported, step, final, axis, parameters)
    if differences is not None:
        imported.covered |= {dequantizer_node, quantizer_node}
    return differences


def _qlinear(imported: ImportedSteps, n: int) -> Differences:
    file = imported.file
    steps = imported.steps(n)
    if len(steps) != 2 or not isinstance(steps[0].op, QLinearSoftmax) or not isinstance(steps[1].op, QuantizeLinear):
        return None
    if file.attributes[n].get("opset", _ONE_AXIS) < _ONE_AXIS:
        return None
    axis = file.attributes[n].get("axis", -1) % len(steps[0].shape)
    return _literal(imported, steps[0], steps[1], axis, (file.constant(n, 1), file.constant(n, 3), file.constant(n, 4)))


def _literal(
    imported: ImportedSteps,
    step: Step,
    final: Step,
    axis: int,
    parameters: tuple[Numbers | None, Numbers | None, Numbers | None],
) -> Differences:
    """Compare the table of powers, the factor and the quantizer.

    `parameters`: scale of the scores; scale and zero point of the result.
    """
    scale, result, zero = parameters
    if scale is None or result is None or zero is None or scale.array.size != 1 or result.array.size != 1:
        return None
    assert isinstance(step.op, QLinearSoftmax)
    assert isinstance(final.op, QuantizeLinear)
    sx, largest = float(scale.array.ravel()[0]), np.finfo(np.float32).max
    room = max(0.0, float(np.float32(math.log(largest / np.float32(step.shape[axis])))) - 5) / sx
    powers = [np.float32(math.exp((room - d) * sx)) for d in range(256)]
    differences = [*differ("axis", step.op.axis, axis), *differ("power", step.op.powers, np.array(powers, np.float32))]
    differences += differ(
        "factor", step.op.factor, np.floor(np.float32(1) / result.array.ravel()[0].astype(np.float32))
    )
    zero_point = zero.array
    return differences + quantizer(
        imported, final.op, len(final.shape), np.ones(1, np.float32), zero_point, 1, kind_of(zero_point)
    )


#: Operator -> its second reading.
SOFTMAX: dict[str, Callable[[ImportedSteps, int], Differences]] = {"Softmax": _softmax, "QLinearSoftmax": _qlinear}
