"""Quantizes float models, and freezes dynamically quantized ones, with onnxruntime and a sample of inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import onnx

from hlsgen.diagnostics import fail
from hlsgen.frontend.load import read_model
from hlsgen.installation import install_command
from hlsgen.numerics.fixed import Array
from hlsgen.quantization.comparison import OutputComparison, compare_outputs, run_model
from hlsgen.quantization.frozen import freeze, is_dynamic
from hlsgen.quantization.samples import feeds_of
from hlsgen.quantization.static import QuantizeOptions, quantize_static

__all__ = ["QuantizeOptions", "Quantized", "quantize_model"]


@dataclass(frozen=True)
class Quantized:
    """A statically quantized model.

    frozen: number of dynamic quantizers that got constant scales, or None for a float model. frames: runs of the model
    on the sample. outputs: comparison of each output with the given model.
    """

    model: onnx.ModelProto
    frozen: int | None
    frames: int
    outputs: list[OutputComparison]


def quantize_model(path: Path, sample: Array | Mapping[str, Array], options: QuantizeOptions) -> Quantized:
    """Quantizes the float model in `path`, or freezes its dynamic scales, by a sample of its inputs.

    sample: see `samples.feeds_of`. `options` apply to float models; for others they must be the defaults. Raises
    HG001 to HG004 for a file that cannot be read. Raises HG010 if it cannot be quantized, HG040 if it is quantized
    already, HG052 without onnxruntime. Raises HG054 for a sample that does not fit the model's inputs. Raises HG010
    and HG012 for a model that cannot be run on it.
    """
    if find_spec("onnxruntime") is None:
        raise fail("HG052", "quantize", "onnxruntime is not installed.", f"{install_command('oracle')}.")
    model = read_model(path)
    dynamic = is_dynamic(model)
    if not dynamic and any(node.op_type in _QUANTIZERS for node in model.graph.node):
        hint = "Build it as it is: hlsgen check says whether that is possible."
        raise fail("HG040", str(path), "the model is quantized already.", hint)
    feeds = feeds_of(model, sample)
    frozen = None
    if dynamic and options != QuantizeOptions():
        text = "options of quantization, and the model is quantized: only its dynamic scales are frozen."
        raise fail("HG040", str(path), text, "Leave them out, or quantize the float model.")
    if dynamic:
        quantized, frozen = freeze(model, feeds)
    else:
        quantized = quantize_static(model, feeds, options)
    outputs = compare_outputs(run_model(model, feeds), run_model(quantized, feeds))
    return Quantized(quantized, frozen, len(feeds), outputs)


#: Operators of models that are quantized statically.
_QUANTIZERS = (
    *("QuantizeLinear", "Quant", "IntQuant", "BipolarQuant", "FloatQuant"),
    *("QLinearConv", "QLinearMatMul", "QGemm", "QLinearAdd", "MatMulInteger", "ConvInteger"),
)
