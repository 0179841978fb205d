"""U-Nets with Resize of channels-last data, between QONNX's channels-last layers or between Transposes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_graph import QONNX, OnnxGraph
from oracles import Qonnx

from hlsgen.diagnostics import Collector
from hlsgen.frontend import import_model
from hlsgen.interpreter import graph as reference
from hlsgen.ir import Rearrange
from hlsgen.passes import InputMode, lower

Array = Any
LAST = "qonnx.custom_op.channels_last"
QUANT: dict[str, Any] = {"narrow": 0, "rounding_mode": "ROUND"}


class UNet(OnnxGraph):
    """A U-Net from 2 channels to 1, in a form.

    layers  all channels last
    around  a Transpose before and after each layer and pool
    resize  channels first, a Transpose before and after each Resize
    """

    def __init__(self, form: str, seed: int = 0) -> None:
        super().__init__(labels=True)
        self.form, self.rng = form, np.random.default_rng(seed)
        self.infos: list[onnx.ValueInfoProto] = []

    def transposed(self, to_channels_first: bool) -> None:
        self.then("Transpose", perm=[0, 3, 1, 2] if to_channels_first else [0, 2, 3, 1])

    def layer(self, op: str, size: int, channels: int, *weight: str, **attrs: Any) -> None:
        """An operator on an image, in the form's order of axes."""
        if self.form == "layers":
            self.infos.append(helper.make_tensor_value_info(self.last, TensorProto.FLOAT, [1, size, size, channels]))
            attrs = {"pads": [0] * 4, "strides": [1, 1], **attrs}
            self.then(op, *weight, domain=LAST, **attrs)
            return
        if self.form == "around":
            self.transposed(True)
        self.then(op, *weight, **attrs)
        if self.form == "around":
            self.transposed(False)

    def conv(self, size: int, inputs: int, outputs: int, kernel: int) -> None:
        shape = (outputs, kernel, kernel, inputs) if self.form == "layers" else (outputs, inputs, kernel, kernel)
        codes = self.rng.integers(-1, 2, shape).astype(np.float32)
        weight = self.add("IntQuant", [codes, 1.0, 0.0, 2.0], domain=QONNX, **QUANT, signed=1)
        self.infos.append(helper.make_tensor_value_info(weight, TensorProto.FLOAT, shape))
        attrs = {"group": 1, "dilations": [1, 1]} if self.form == "layers" else {}
        self.layer("Conv", size, inputs, weight, kernel_shape=[kernel] * 2, pads=[kernel // 2] * 4, **attrs)
        self.quant(float(2.0 ** round(np.log2(kernel * kernel * inputs) / 2)))

    def quant(self, scale: float) -> None:
        self.then("IntQuant", scale, 0.0, 4.0, domain=QONNX, **QUANT, signed=0)

    def up(self) -> None:
        attrs = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        if self.form == "resize":
            self.transposed(False)
        self.then("Resize", "", np.array([1, 2, 2, 1], np.float32), **attrs)
        if self.form == "resize":
            self.transposed(True)

    def model(self, size: int, depth: int, base: int = 2) -> onnx.ModelProto:
        self.quant(0.5)
        channels, side = 2, size
        skips = []
        for level in range(depth):
            self.conv(side, channels, base << level, 3)
            channels = base << level
            skips.append((self.last, channels))
            self.layer("MaxPool", side, channels, kernel_shape=[2, 2], strides=[2, 2])
            side //= 2
        self.conv(side, channels, base << depth, 3)
        channels = base << depth
        for skip, skip_channels in reversed(skips):
            self.up()
            side *= 2
            self.then("Concat", skip, axis=1 if self.form == "resize" else -1)
            self.conv(side, channels + skip_channels, skip_channels, 3)
            channels = skip_channels
        self.conv(side, channels, 1, 1)
        shapes = [[1, c, size, size] if self.form == "resize" else [1, size, size, c] for c in (2, 1)]
        ins, outs = (
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in zip(("x", self.last), shapes, strict=True)
        )
        proto = self.proto("unet", [ins], [outs], [("", 13), (QONNX, 1), (LAST, 1)])
        proto.graph.value_info.extend(self.infos)
        return proto


@pytest.mark.cases(4)
@pytest.mark.parametrize("size, depth", [(8, 1), (16, 2), (32, 3)])
@pytest.mark.parametrize("form", ["layers", "around", "resize"])
def test_unet(form: str, size: int, depth: int, tmp_path: Path) -> None:
    proto = UNet(form).model(size, depth)
    onnx.save(proto, tmp_path / "m.onnx")
    problems = Collector()
    model = import_model(tmp_path / "m.onnx", problems)
    problems.finish()
    assert model is not None
    graph = lower(model, InputMode("codes"), Collector())
    assert sum(isinstance(layer, Rearrange) for layer in graph.layers) == depth
    x = np.random.default_rng(1).integers(0, 16, (2, *model.input_shape)).astype(np.float32) / 2
    codes = reference.encode_input(graph, x)
    outputs = np.asarray(reference.decode_output(graph, reference.run_layers(graph, codes)[-1]))
    expected = Qonnx(proto)(x[:, 0])
    assert len(np.unique(expected)) > 2
    assert np.array_equal(outputs.reshape(expected.shape), expected)
