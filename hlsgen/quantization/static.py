"""Quantizes float models with onnxruntime and a sample: QuantizeLinear and DequantizeLinear around operators."""

from __future__ import annotations

import io
import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from hlsgen.diagnostics import HlsgenError, fail
from hlsgen.numerics.fixed import Array
from hlsgen.quantization.comparison import one_line
from hlsgen.quantization.samples import Feed

#: The axis of output channels in the weights of an operator.
_CHANNEL_AXES = {"Conv": 0, "ConvTranspose": 1, "MatMul": -1}


@dataclass(frozen=True)
class QuantizeOptions:
    """How a float model is quantized.

    weight_bits: 2 to 8; weights are signed and symmetric. activation_bits: 8 or 16; activations are unsigned with a
    zero point. per_tensor: one scale for the weights of a layer, else one for each output channel. power_of_two: all
    scales are powers of two, one for each layer, and zero points are 0; rescaling then takes shifts in place of
    multipliers. method: "minmax", "entropy" or "percentile", as onnxruntime's calibration has them.
    """

    weight_bits: int = 8
    activation_bits: int = 8
    per_tensor: bool = False
    power_of_two: bool = False
    method: str = "minmax"

    @property
    def per_channel(self) -> bool:
        """True if each output channel has its own scale."""
        return not (self.per_tensor or self.power_of_two)

    def __post_init__(self) -> None:
        """Raises HG040."""
        if not 2 <= self.weight_bits <= 8:
            raise fail("HG040", "--weight-bits", f"{self.weight_bits}.", "Supported: 2 to 8.")
        if self.activation_bits not in (8, 16):
            raise fail("HG040", "--activation-bits", f"{self.activation_bits}.", "Supported: 8, 16.")
        if self.method not in METHODS:
            raise fail("HG040", "--method", f"{self.method!r}.", f"Supported: {', '.join(METHODS)}.")


#: Methods of calibration, by the names that onnxruntime gives them.
METHODS = {"minmax": "MinMax", "entropy": "Entropy", "percentile": "Percentile"}


def quantize_static(model: onnx.ModelProto, feeds: list[Feed], options: QuantizeOptions) -> onnx.ModelProto:
    """Adds quantizers with scales from `feeds` to the operators of a model. Raises HG010 with onnxruntime's reason."""
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    try:
        with tempfile.TemporaryDirectory() as folder, _silence():
            source, prepared, result = (Path(folder, f"{name}.onnx") for name in ("source", "prepared", "result"))
            onnx.save(model, source)  # onnxruntime moves the data of a model in memory into files
            quant_pre_process(source, prepared, skip_symbolic_shape=True)
            onnx.save(_with_flat_biases(onnx.load(prepared)), prepared)
            is_16_bit = options.activation_bits == 16
            quantization.quantize_static(
                prepared,
                result,
                _Reader(feeds),
                quant_format=quantization.QuantFormat.QDQ,
                per_channel=options.per_channel,
                activation_type=quantization.QuantType.QUInt16 if is_16_bit else quantization.QuantType.QUInt8,
                weight_type=quantization.QuantType.QInt8,
                calibrate_method=getattr(quantization.CalibrationMethod, METHODS[options.method]),
                extra_options=_extra_options(prepared, feeds, options, Path(folder)),
            )
            return onnx.load(result)
    except HlsgenError:
        raise
    except (
        Exception
    ) as error:  # the quantizer raises ValueError, RuntimeError, AttributeError and the runtime's own errors
        raise fail("HG010", model.graph.name, f"onnxruntime cannot quantize it: {one_line(error)}") from None


class _Reader:
    """Feeds for the calibration, as onnxruntime's CalibrationDataReader."""

    def __init__(self, feeds: list[Feed]) -> None:
        self._feeds = iter(feeds)

    def get_next(self) -> Feed | None:
        return next(self._feeds, None)


def _with_flat_biases(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with biases of shape (N) in place of (1, N): onnxruntime quantizes others per channel with an error."""
    biases = {node.input[2] for node in model.graph.node if node.op_type == "Gemm" and len(node.input) > 2}
    users = [name for node in model.graph.node for name in node.input]
    for tensor in model.graph.initializer:
        if tensor.name in biases and users.count(tensor.name) == 1 and len(tensor.dims) == 2 and tensor.dims[0] == 1:
            del tensor.dims[0]
    return model


@contextmanager
def _silence() -> Iterator[None]:
    """Keeps the quantizer's hints, tracebacks and prints off the terminal, and out of the JSON of --json."""
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(level)


def _extra_options(prepared: Path, feeds: list[Feed], options: QuantizeOptions, folder: Path) -> dict[str, Any]:
    overrides = dict[str, list[dict[str, Any]]]()
    model = onnx.load(prepared)
    if options.weight_bits != 8 or options.power_of_two:
        overrides |= _weight_overrides(model, options)
    if options.power_of_two:
        overrides |= _activation_overrides(prepared, feeds, options, folder)
    return {"TensorQuantOverrides": overrides, "WeightSymmetric": True, "ActivationSymmetric": False}


def _weight_overrides(model: onnx.ModelProto, options: QuantizeOptions) -> dict[str, list[dict[str, Any]]]:
    """Scales with which the codes of weights have `weight_bits` bits."""
    from onnxruntime.quantization import QuantType

    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    highest, overrides = 2 ** (options.weight_bits - 1) - 1, dict[str, list[dict[str, Any]]]()
    for name, axis in _weights_of_layers(model):
        if name not in weights:
            continue
        values = numpy_helper.to_array(weights[name]).astype(np.float64)
        axis %= values.ndim
        channels = [values] if not options.per_channel or values.ndim < 2 else list(np.moveaxis(values, axis, 0))
        scales = [_scale(np.abs(channel).max() / highest, options.power_of_two) for channel in channels]
        entries: list[dict[str, Any]] = [
            {"quant_type": QuantType.QInt8, "scale": scale, "zero_point": np.int8(0)} for scale in scales
        ]
        if len(channels) > 1:
            entries[0]["axis"] = axis
        overrides[name] = entries
    return overrides


def _weights_of_layers(model: onnx.ModelProto) -> Iterator[tuple[str, int]]:
    """Second operands of layers, and their axes of output channels."""
    for node in model.graph.node:
        if node.op_type in _CHANNEL_AXES:
            yield node.input[1], _CHANNEL_AXES[node.op_type]
        elif node.op_type == "Gemm":
            transposed = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
            yield node.input[1], 0 if transposed else 1


def _activation_overrides(
    prepared: Path, feeds: list[Feed], options: QuantizeOptions, folder: Path
) -> dict[str, list[dict[str, Any]]]:
    """Power-of-two scales for all computed tensors, with zero point 0; unsigned codes for tensors without negatives."""
    from onnxruntime.quantization import CalibrationMethod, QuantType
    from onnxruntime.quantization.calibrate import create_calibrator

    method = getattr(CalibrationMethod, METHODS[options.method])
    calibrator = create_calibrator(prepared, [], str(folder / "augmented.onnx"), method)
    calibrator.collect_data(_Reader(feeds))
    overrides = dict[str, list[dict[str, Any]]]()
    bits = options.activation_bits
    signed = QuantType.QInt8 if bits == 8 else QuantType.QInt16
    unsigned = QuantType.QUInt8 if bits == 8 else QuantType.QUInt16
    for name, data in calibrator.compute_data().items():
        lowest, highest = (float(np.asarray(end).min()) for end in data.range_value)
        if lowest < 0:
            kind, scale = signed, max(-lowest, highest) / (2 ** (bits - 1) - 1)
        else:
            kind, scale = unsigned, highest / (2**bits - 1)
        zero_point = np.zeros((), f"{'int' if lowest < 0 else 'uint'}{bits}")
        overrides[name] = [{"quant_type": kind, "scale": _scale(scale, True), "zero_point": zero_point}]
    return overrides


def _scale(scale: float, power_of_two: bool) -> Array:
    """A scale as float32, at least `scale`; 1 for a tensor of zeros."""
    if scale <= 0:
        return np.array(1, np.float32)
    return np.array(2.0 ** np.ceil(np.log2(scale)) if power_of_two else scale, np.float32)
