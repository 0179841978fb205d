"""Second reading of Softmax between layers, and of onnxruntime's for 8-bit integers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from hlsgen.certify.second_reading.protobuf import Numbers, kind_of
from hlsgen.certify.second_reading.quantizers import quantizer
from hlsgen.certify.second_reading.steps import Found, Told, differ
from hlsgen.ir import QLinearSoftmax, Softmax, Step
from hlsgen.ir.ops import QuantizeLinear

#: From this opset on Softmax is over one axis.
_ONE_AXIS = 13


def _softmax(found: Found, n: int) -> Told:
    """Over one axis; or between DequantizeLinear and QuantizeLinear, which it stands for as well."""
    file = found.file
    if file.nodes[n].domain not in ("", "ai.onnx"):
        return None
    step = found.only(n, Softmax, QLinearSoftmax)
    if step is None or file.opset < _ONE_AXIS:
        return None
    axis = file.attributes[n].get("axis", -1) % len(step.shape)
    if isinstance(step.op, Softmax):
        return list(differ("axis", step.op.axis, axis))
    first, behind = file.before(n), file.after(n)
    if first < 0 or not behind:
        return None
    last = behind[-1]
    if (file.nodes[first].op_type, file.nodes[last].op_type) != ("DequantizeLinear", "QuantizeLinear"):
        return None
    final = found.only(last, QuantizeLinear)
    parts = file.constant(first, 1), file.constant(last, 1), file.constant(last, 2)
    told = None if final is None else _literal(found, step, final, axis, parts)
    if told is not None:
        found.covered |= {first, last}
    return told


def _qlinear(found: Found, n: int) -> Told:
    file = found.file
    own = found.steps(n)
    if len(own) != 2 or not isinstance(own[0].op, QLinearSoftmax) or not isinstance(own[1].op, QuantizeLinear):
        return None
    if file.attributes[n].get("opset", _ONE_AXIS) < _ONE_AXIS:
        return None
    axis = file.attributes[n].get("axis", -1) % len(own[0].shape)
    return _literal(found, own[0], own[1], axis, (file.constant(n, 1), file.constant(n, 3), file.constant(n, 4)))


def _literal(
    found: Found, step: Step, final: Step, axis: int, parts: tuple[Numbers | None, Numbers | None, Numbers | None]
) -> Told:
    """The table of powers, the factor, the quantizer. `parts`: scale of the scores; scale and zero point of the result."""
    scale, result, zero = parts
    if scale is None or result is None or zero is None or scale.array.size != 1 or result.array.size != 1:
        return None
    assert isinstance(step.op, QLinearSoftmax)
    assert isinstance(final.op, QuantizeLinear)
    sx, largest = float(scale.array.ravel()[0]), np.finfo(np.float32).max
    room = max(0.0, float(np.float32(math.log(largest / np.float32(step.shape[axis])))) - 5) / sx
    powers = [np.float32(math.exp((room - d) * sx)) for d in range(256)]
    told = [*differ("axis", step.op.axis, axis), *differ("power", step.op.powers, np.array(powers, np.float32))]
    told += differ("factor", step.op.factor, np.floor(np.float32(1) / result.array.ravel()[0].astype(np.float32)))
    point = zero.array
    return told + quantizer(found, final.op, len(final.shape), np.ones(1, np.float32), point, 1, kind_of(point))


#: Operator -> its second reading.
SOFTMAX: dict[str, Callable[[Found, int], Told]] = {"Softmax": _softmax, "QLinearSoftmax": _qlinear}
