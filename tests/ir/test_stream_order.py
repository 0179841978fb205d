"""Orders of streams, and which of them are held."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.parser import parse_model
from paths import ROOT

import hlsgen
from hlsgen.dataflow.units import Reorder
from hlsgen.ir import stream_order


def test_equal_orders_are_held_once() -> None:
    build = hlsgen.check(ROOT / "examples" / "digits_cnn" / "digits_cnn.onnx")
    orders = stream_order.lay_out(build.graph).orders
    assert len({id(order) for order in orders}) == len({order.tobytes() for order in orders}) < len(orders) / 2


@pytest.mark.parametrize("portion", [1, 5, 1 << 16])
def test_vectors_in_portions(portion: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors with one order of columns have a layout; after an exchange of any two elements there is none."""
    monkeypatch.setattr(stream_order, "_CHUNK", portion)
    order = (np.array([3, 0, 2, 1])[:, None] * 3 + np.array([1, 0, 2])).ravel()
    layout = stream_order.vector_layout(order, (4, 3))
    assert layout is not None
    assert (layout[0].tolist(), layout[1].tolist()) == ([3, 0, 2, 1], [1, 0, 2])
    for i in range(len(order)):
        for j in range(i):
            exchanged = order.copy()
            exchanged[[i, j]] = order[[j, i]]
            assert stream_order.vector_layout(exchanged, (4, 3)) is None


def convolution_over_time(dilation: int, sliced: bool) -> onnx.ModelProto:
    """A convolution (channels, time) over old columns and new ones; `sliced`: without the first of both."""
    past = 2 * dilation + sliced
    cut = "c = Slice(j, first, end, axis)" if sliced else "c = Identity(j)"
    model = parse_model(
        f'<ir_version: 9, opset_import: ["" : 19]> '
        f"net (float[1, 6, 2] x, float[1, 6, {past}] r) => (float[1, 6, 2] y, float[1, 6, {past}] r_out) "
        "<float s = {0.25}, uint8 z = {9}, float t = {0.01}, int64[1] first = {1}, int64[1] end = {99}, "
        "int64[1] new = {2}, int64[1] axis = {2}> {"
        "xq = QuantizeLinear(x, s, z) xd = DequantizeLinear(xq, s, z) "
        "rq = QuantizeLinear(r, s, z) rd = DequantizeLinear(rq, s, z) "
        f"j = Concat<axis = 2>(rd, xd) r_out = Slice(j, new, end, axis) {cut} w = DequantizeLinear(codes, t) "
        f"a = Conv<kernel_shape = [3], dilations = [{dilation}]>(c, w) "
        "q = QuantizeLinear(a, s, z) y = DequantizeLinear(q, s, z) }"
    )
    codes = np.random.default_rng(2).integers(-127, 128, (6, 6, 3)).astype(np.int8)
    model.graph.initializer.append(numpy_helper.from_array(codes, "codes"))
    return model


@pytest.mark.parametrize("sliced", [False, True])
@pytest.mark.parametrize("dilation", [1, 4])
def test_inputs_of_a_convolution_over_time_have_its_order(dilation: int, sliced: bool, tmp_path: Path) -> None:
    """Old and new columns come with all channels of a column together, so that nothing is reordered."""
    path = tmp_path / "net.onnx"
    onnx.save(convolution_over_time(dilation, sliced), path)
    build = hlsgen.check(path, hlsgen.Options(state=["r=r_out"], target_cycles=2))
    assert not any(isinstance(node.unit, Reorder) for node in build.network.nodes)
    assert build.timing.interval < 6 * (2 * dilation + sliced + 2) / 2
