"""Input modes: the numbers that the hardware's input port carries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hlsgen.diagnostics import Collector
from hlsgen.ir import Conv, ConvInteger, MatMul, MatMulInteger, Model, ModelInput, RowStep, Step, TensorProduct
from hlsgen.numerics.fixed import IntType


@dataclass(frozen=True)
class InputMode:
    """The numbers that the hardware's input port carries: "codes", "fixed" or "float32"."""

    kind: str
    type: IntType | None = None
    fraction: int = 0


def numeric_inputs(modes: Mapping[str, InputMode]) -> dict[str, bool]:
    """For each input that enters the hardware as numbers: True if as integers. The name "" covers all others."""
    return {n: mode.kind == "fixed" and not mode.fraction for n, mode in modes.items() if mode.kind != "codes"}


#: Assumed for an input of unknown type (`ask_for_type`), so that further problems can be found.
STAND_IN = InputMode("fixed", IntType(-128, 127), 0)


def default_mode(model: Model, source: ModelInput, first: object, is_linear: bool) -> InputMode | None:
    """The mode of an input whose first hardware step is `first`, or None if the file does not determine it.

    `is_linear`: a layer multiplies the input directly.
    """
    if source.type:
        return InputMode("fixed", *source.type)
    if is_linear:
        return None
    if first is None:
        return InputMode("float32")
    layers = MatMul | MatMulInteger | Conv | ConvInteger | TensorProduct | RowStep
    has_linear = bool(model.inputs) or any(isinstance(s.op, layers) for s in model.steps)
    after_host = source.dtype == "float64" != model.input_dtype
    return InputMode("codes" if has_linear or after_host else "float32")


def ask_for_type(source: ModelInput, layer: Step, problems: Collector) -> None:
    """Report that nothing specifies which numbers the input holds (HG061)."""
    problems.error(
        "HG061",
        source.name,
        f"{layer.name} multiplies the input directly, and no quantizer, integer type or annotation of the file "
        "specifies which numbers it holds.",
        "Specify it: --input fixed:W,I (as ap_fixed<W,I>), ufixed:8,0 for images of multiples of 1/256, UINT8 for "
        "pixels of 0 to 255; or give a sample of inputs, --calibrate X.npy, for the smallest type that holds it. "
        "Or export the model with a quantizer at its input.",
    )
