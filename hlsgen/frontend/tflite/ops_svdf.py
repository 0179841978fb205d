"""SVDF: features of the newest frame go into a line buffer over time, whose rows give a weighted sum.

The line buffer is a variable of the file. Its new value is the old one, shifted by one place, with the newest features
at the end.
"""

from __future__ import annotations

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.tflite.operator_node import OperatorNode
from hlsgen.frontend.tflite.ops_state import assign_state, old_state
from hlsgen.frontend.tflite.requantizers import doubly_rounded
from hlsgen.ir import Concat, ConvInteger, MatMulInteger, Reshape, Slice, Transpose
from hlsgen.ir.ops import Add
from hlsgen.ir.window import Window
from hlsgen.numerics.fixed import Array
from hlsgen.numerics.tflite.functions import CodeType
from hlsgen.numerics.tflite.lstm import recurrent_multiplier
from hlsgen.numerics.tflite.multipliers import CODE_TYPES, Runtime

_FEATURE, _TIME, _BIAS, _STATE = 1, 2, 3, 4
#: tflite-micro refuses a bias whose scale differs more from its sums'.
_BIAS_TOLERANCE = 1e-5


def svdf(node: OperatorNode) -> None:
    """SVDF. Its fused activation has no effect in any runtime. Raises HG013 - HG015, HG020, HG022 - HG024, HG026."""
    data, state, result = (node.codes(t) for t in (node.tensor(0), node.tensor(_STATE), node.result()))
    _check_types(node, state, result)
    feature, feature_scale = _weights(node, _FEATURE, "int8")
    time, time_scale = _weights(node, _TIME, state.dtype)
    filters, memory = time.shape
    shape, rank = node.tensor(0).shape, int(node.options["rank"])
    if len(shape) != 2 or feature.shape != (filters, shape[1]) or rank < 1 or filters % rank:
        text = f"data of shape {list(shape)}, weights of {list(feature.shape)} and {list(time.shape)}, rank {rank}."
        raise fail("HG023", node.name, text, "Export the model again.")
    frames, units = shape[0], filters // rank
    if int(np.prod(node.tensor(_STATE).shape)) != frames * filters * memory:
        text = f"a state of shape {list(node.tensor(_STATE).shape)}."
        raise fail("HG023", node.name, text, f"It needs {filters * memory} elements for each frame.")

    multiplier = recurrent_multiplier(node.runtime, data.scale, feature_scale, state.scale)
    rescaled = doubly_rounded([multiplier], 2, 0, CODE_TYPES[state.dtype], state.dtype)
    product = MatMulInteger(feature, np.full(shape[1], data.zero_point, np.int64))
    features = node.chain(node.value(0), [(product, (frames, filters)), (rescaled, (frames, filters))])

    lines = (frames, filters, memory)
    line = node.step(Reshape(), (frames, filters, 1), features)
    if memory > 1:
        old = node.step(Reshape(), lines, old_state(node, _STATE))
        past_shape = (frames, filters, memory - 1)
        past = node.step(Slice(((0, frames, 1), (0, filters, 1), (1, memory, 1))), past_shape, old)
        line = node.step(Concat(2), lines, past, line)
    else:
        old_state(node, _STATE)
    assign_state(node, _STATE, line)

    image = node.step(Reshape(), (frames, units, rank, memory), line)
    image = node.step(Transpose((0, 3, 2, 1)), (frames, memory, rank, units), image)
    kernel = time.reshape(units, rank, memory).transpose(0, 2, 1)[..., None]
    sums = (frames, 1, 1, units)
    layer = ConvInteger(kernel, np.zeros(units, np.int64), Window((memory, rank)), units)
    value = node.step(layer, sums, image)
    bias = _bias(node, units, state.scale * time_scale)
    if bias is not None:
        value = node.step(Add(bias.reshape(1, 1, 1, -1)), sums, value)
    multiplier = recurrent_multiplier(node.runtime, state.scale, time_scale, result.scale)
    last = doubly_rounded([multiplier], 4, result.zero_point, CODE_TYPES[result.dtype], result.dtype)
    value = node.step(last, sums, value)
    node.finish(node.step(Reshape(), (frames, units), value), (frames, units))


def _check_types(node: OperatorNode, state: CodeType, result: CodeType) -> None:
    """Raises HG013, HG024, HG026 for types that the runtime does not take together."""
    if result.dtype != "int8":
        raise node.wrong_type(node.result())
    if state.dtype not in ("int16", "int8"):
        raise node.wrong_type(node.tensor(_STATE))
    if state.dtype == "int8" and node.runtime is not Runtime.TFLM:
        raise node.refused("it reads a state of type int8 as int16", "Use --runtime tflm.")
    if state.zero_point:
        # The kernel adds it to limited codes, which can then wrap.
        text = f"{node.operator.name} with a state of zero point {state.zero_point}."
        raise fail("HG024", node.name, text, "It must be 0.")


def _weights(node: OperatorNode, place: int, dtype: str) -> tuple[Array, float]:
    """int64 weights of two axes and their scale."""
    tensor, values = node.tensor(place), node.constant(place, "a weight").astype(np.int64)
    if tensor.type != dtype:
        raise node.wrong_type(tensor)
    codes = node.codes(tensor)
    if values.ndim != 2 or not values.size:
        text = f"weights of shape {list(values.shape)}."
        raise fail("HG023", node.name, text, "They need two axes, none of them empty.")
    if codes.zero_point:
        raise fail("HG024", node.name, f"weights of zero point {codes.zero_point}.", "It must be 0.")
    return values, codes.scale


def _bias(node: OperatorNode, units: int, scale: float) -> Array | None:
    """The bias, or None; scale: of the sums, to which tflite-micro compares the bias's."""
    if node.optional(_BIAS) is None:
        if node.runtime is Runtime.TFLM:
            raise node.refused("without a bias the runtime ends", "Store a bias of zeros.")
        return None
    values = node.constant(_BIAS, "the bias").reshape(-1)
    if values.dtype != np.int32 or values.size != units:
        text = f"a bias of type {values.dtype} with {values.size} elements."
        raise fail("HG023", node.name, text, f"It needs {units} int32 numbers.")
    quantization = node.tensor(_BIAS).quantization
    bias_scale = float(quantization.scale[0]) if quantization is not None and quantization.scale.size else 0.0
    if node.runtime is Runtime.TFLM and not abs(bias_scale - scale) < _BIAS_TOLERANCE:
        text = f"a bias of scale {bias_scale} for sums of scale {scale}."
        raise fail("HG022", node.name, text, f"The runtime takes a difference below {_BIAS_TOLERANCE}.")
    return values
