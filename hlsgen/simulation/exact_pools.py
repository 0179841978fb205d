"""onnxruntime's QLinearAveragePool: float32 sums of windows of codes, in an order that ONNX leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import helper

from hlsgen.numerics.fixed import Array
from hlsgen.simulation import exact_nodes
from hlsgen.simulation.exact_values import Grid, Known
from hlsgen.simulation.oracles import run_node

#: The operator, and its float32 counterpart.
OPERATORS = {"QLinearAveragePool": "AveragePool"}
#: Relative error of the quotient by the scale, and of the sum with the zero point.
_QUANTIZED = 2.0**-22


def average_of_codes(
    node: onnx.NodeProto, arrays: Sequence[Array], opsets: Mapping[str, int]
) -> tuple[Array, Array] | None:
    """Codes of the exact averages, each rounded once, and a bound of the distance to codes of sums in another order.

    The bound is 1 next to a tie, else 0. arrays: codes, their scale and zero point, scale and zero point of the result.
    The result is None if the exact sums are not known.
    """
    channels_last = any(a.name == "channels_last" and a.i for a in node.attribute)
    codes, scale, zero, result_scale, result_zero = arrays
    integers = codes.astype(np.float64) - zero.astype(np.float64)
    if channels_last:
        integers = np.moveaxis(integers, -1, 1)
    value = integers.astype(np.float32) * scale
    pool = helper.make_node(OPERATORS[node.op_type], ["x"], ["y"], name=node.name)
    pool.attribute.extend(a for a in node.attribute if a.name != "channels_last")
    averages = exact_nodes.averaged(
        pool, Known(value, (Grid(integers, np.asarray(scale, np.float64)),)), (), "onnxruntime", opsets
    )
    if averages is None:
        return None
    average, taps = averages
    positive = run_node("onnxruntime", pool, [np.abs(value)], opsets)[0]
    reach = exact_nodes.average_reach(positive, taps) / np.float64(result_scale)
    place = average / result_scale + np.float32(result_zero)
    distance = np.abs(place - np.floor(place) - 0.5)
    is_near_tie = distance <= reach + (np.abs(place) + 1) * _QUANTIZED
    limits = np.iinfo(codes.dtype)
    result = np.clip(np.rint(place), limits.min, limits.max).astype(codes.dtype)
    if channels_last:
        result, is_near_tie = np.moveaxis(result, 1, -1), np.moveaxis(is_near_tie, 1, -1)
    return result, is_near_tie.astype(np.float64)
