"""Operators that Brevitas exports for image networks, each in a network as small as possible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models import DOMAIN, Net, save
from numpy.typing import NDArray
from oracles import Qonnx

import hlsgen
from hlsgen.interpreter import graph as reference

Array = NDArray[Any]


OWN: Any = {"domain": DOMAIN, "signed": 1, "narrow": 0, "rounding_mode": "ROUND"}


def quant(net: Net, scale: Any = 0.5, bits: float = 4.0) -> Net:
    return net.then("IntQuant", scale, 0.0, bits, **OWN)


def conv(net: Net, weight: Array, scale: Any = 0.25, bits: float = 4.0, **attributes: Any) -> Net:
    """Conv of the last tensor with quantized weights."""
    data = net.last
    net.node("IntQuant", weight.astype(np.float32), np.asarray(scale, np.float32), 0.0, bits, **OWN)
    return net.node("Conv", data, net.last, **attributes)


def results(net: Net, x: Array, tmp_path: Path) -> Array:
    """The integer network's result for each sample."""
    graph = hlsgen.check(save(net.model(), tmp_path / "model.onnx"), hlsgen.Options(target_cycles=5000)).graph
    codes = reference.encode_input(graph, reference.frames_of(graph, x))
    return reference.decode_output(graph, reference.run_layers(graph, codes)[-1]).reshape(len(x), -1)


def samples(rng: np.random.Generator, shape: tuple[int, ...], count: int = 12) -> Array:
    return rng.normal(0, 2, (count, *shape)).astype(np.float32)


@pytest.mark.parametrize("channels, groups, outputs", [(4, 4, 4), (4, 4, 8), (4, 2, 6)])
def test_an_activation_scale_for_each_channel(channels: int, groups: int, outputs: int, tmp_path: Path) -> None:
    """As in MobileNet: depthwise layers undo any scale of their channel; groups of several need whole ratios."""
    rng = np.random.default_rng(groups + outputs)
    scale = rng.uniform(0.1, 0.4, groups).astype(np.float32).repeat(channels // groups)
    scale[::2] *= 2 if groups < channels else 1
    net = quant(Net((1, channels, 5, 4)), scale.reshape(1, -1, 1, 1))
    weight = rng.uniform(-1, 1, (outputs, channels // groups, 3, 3))
    quant(conv(net, weight, rng.uniform(0.1, 0.3, (outputs, 1, 1, 1)), group=groups, pads=[1] * 4), 0.3)
    x = samples(rng, (channels, 5, 4), 40)
    assert np.array_equal(results(net, x, tmp_path), Qonnx(net.model())(x))


def test_scales_within_a_group_need_whole_ratios(tmp_path: Path) -> None:
    net = quant(Net((1, 2, 4, 4)), np.float32([1e-4, 0.9]).reshape(1, 2, 1, 1))
    quant(conv(net, np.ones((1, 2, 2, 2))))
    with pytest.raises(hlsgen.HlsgenError, match="HG034"):
        hlsgen.check(save(net.model(), tmp_path / "model.onnx"))


def test_outputs_that_are_constant(tmp_path: Path) -> None:
    """A quantizer that returns its scale, zero point and bit width too (return_quant_tensor of the last layer)."""
    rng = np.random.default_rng(1)
    net = quant(Net((1, 2, 4, 4)))
    quant(conv(net, rng.uniform(-1, 1, (3, 2, 2, 2))))
    net.node("Identity", np.float32(0.5), outputs=["scale"])
    net.outputs = ["scale", net.nodes[-2].output[0], net.const(4.0)]
    build = hlsgen.check(save(net.model(), tmp_path / "model.onnx"))
    assert any("HG090" in note and "scale, c" in note for note in build.graph.notes)
    x = samples(rng, (2, 4, 4))
    outputs = results(net, x, tmp_path)
    net.outputs = net.outputs[1:2]
    assert np.array_equal(outputs, Qonnx(net.model())(x))


@pytest.mark.parametrize("op, sizes", [("Expand", [1, 1, 4, 4]), ("Expand", [4, 4]), ("Tile", [1, 1, 4, 4])])
def test_the_mean_of_an_image_for_every_pixel(op: str, sizes: list[int], tmp_path: Path) -> None:
    """As in ASPP: a global pool, a layer of one point, joined with the image again."""
    rng = np.random.default_rng(2)
    net = quant(Net((1, 2, 4, 4)))
    image = net.last
    quant(conv(quant(net.then("GlobalAveragePool"), 0.125, 6.0), rng.uniform(-1, 1, (3, 2, 1, 1))))
    net.then(op, np.int64(sizes)).node("Concat", net.last, image, axis=1)
    quant(conv(net, rng.uniform(-1, 1, (2, 5, 3, 3))), 1.0)
    x = samples(rng, (2, 4, 4))
    assert np.array_equal(results(net, x, tmp_path), Qonnx(net.model())(x))


@pytest.mark.parametrize("op, sizes", [("Expand", [1, 2, 2, 8, 8]), ("Tile", [1, 2, 1, 1])])
def test_other_repetitions_are_the_hosts(op: str, sizes: list[int], tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    net = quant(Net((1, 2, 1, 1)))
    quant(conv(net, rng.uniform(-1, 1, (2, 2, 1, 1)))).then(op, np.int64(sizes))
    x = samples(rng, (2, 1, 1))
    assert np.array_equal(results(net, x, tmp_path), Qonnx(net.model())(x))


@pytest.mark.parametrize("mode, pads", [("SAME_UPPER", [1, 3, 2, 3]), ("SAME_LOWER", [2, 3, 1, 3])])
def test_dilated_layers_that_keep_the_size(mode: str, pads: list[int], tmp_path: Path) -> None:
    """padding="same" of PyTorch. onnxruntime rejects auto_pad with dilations, but accepts the same padding as pads."""
    rng = np.random.default_rng(4)
    weight, x = rng.uniform(-1, 1, (3, 2, 2, 3)), samples(rng, (2, 6, 7))
    attributes: Any = {"auto_pad": mode}, {"pads": pads}
    nets = [quant(conv(quant(Net((1, 2, 6, 7))), weight, dilations=[3, 3], **padding)) for padding in attributes]
    outputs = [results(net, x, tmp_path) for net in nets]
    assert np.array_equal(outputs[0], outputs[1])
    assert np.array_equal(outputs[1], Qonnx(nets[1].model())(x))


def test_a_pad_of_nothing_in_any_mode(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    net = quant(Net((1, 2, 4, 4))).then("Pad", np.zeros(8, np.int64), mode="edge")
    quant(conv(net, rng.uniform(-1, 1, (3, 2, 2, 2))))
    x = samples(rng, (2, 4, 4))
    assert np.array_equal(results(net, x, tmp_path), Qonnx(net.model())(x))
