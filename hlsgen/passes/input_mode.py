"""What the hardware's input port carries."""

from __future__ import annotations

from dataclasses import dataclass

from hlsgen.diagnostics import Collector
from hlsgen.ir import Conv, ConvInteger, MatMul, MatMulInteger, Model
from hlsgen.numerics.fixed import IntType


@dataclass(frozen=True)
class InputMode:
    """What the hardware's input port carries: "codes", "fixed" or "float32"."""

    kind: str
    type: IntType | None = None
    fraction: int = 0


def default_mode(model: Model, first: object, is_linear: bool, problems: Collector) -> InputMode:
    """The mode of a model whose first step of hardware is `first`."""
    if model.input_type:
        return InputMode("fixed", *model.input_type)
    if is_linear:
        problems.warn(
            "HG090", model.input_name, "the input has no quantizer and no declared type; taken as integers of -256 to 255, "
            "which int8 and uint8 fit.",
            "Say what it is with --input fixed:W,I or ufixed:W,I.",
        )  # fmt: skip
        return InputMode("fixed", IntType(-256, 255), 0)
    if first is None:
        return InputMode("float32")
    linear = any(isinstance(s.op, MatMul | MatMulInteger | Conv | ConvInteger) for s in model.steps)
    return InputMode("codes" if linear else "float32")
