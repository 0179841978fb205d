"""The networks whose size and clock are measured: models, their foldings, and what is routed."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from mixed_widths import MIXED, MIXED_WRAPS
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from places import MODELS, ROOT

sys.path.insert(0, str(ROOT / "tests" / "support"))

from integer_models import chain
from models import Net
from onnx_graph import QONNX

Model = onnx.ModelProto | Path
Weights = NDArray[np.float32]


#: The device of workloads that ask for a clock: with it deeper pipelines begin above 150 MHz.
ASKED_ON = "xc7k325t"


@dataclass(frozen=True)
class Workload:
    """A model and how it is built.

    model: Raises FileNotFoundError if it is not there. cycles: from frame to frame. reads: what the input port carries,
    if the model does not say it. dsp: with multiplier blocks. routed: nextpnr routes it, too. pieces: what is
    synthesized in place of the whole, which is too large, and how often the whole has it. clock_mhz: what is asked for,
    of `ASKED_ON`; None: nothing. ports, merges: as `--ports` and `--merge-layers`.
    """

    model: Callable[[], Model]
    cycles: int
    reads: str | None = None
    dsp: bool = False
    routed: bool = False
    pieces: tuple[tuple[int, Callable[[], Model]], ...] = ()
    clock_mhz: float | None = None
    ports: str = "packed"
    merges: bool = False


def matrix(rng: np.random.Generator, columns: int, rows: int, bits: int) -> Weights:
    """Weights as trained ones are spread: normal, 0.28 of the largest code."""
    top = 2 ** (bits - 1) - 1
    return np.clip(np.round(rng.normal(0, 0.28 * top, (columns, rows))), -top, top).astype(np.float32)


@dataclass(frozen=True)
class Layers:
    """Layers with Relu and a power of two between them, behind codes of int8."""

    sizes: tuple[int, ...]
    w_bits: int
    x_bits: int
    seed: int

    def weights(self) -> list[Weights]:
        rng = np.random.default_rng(self.seed)
        return [matrix(rng, columns, rows, self.w_bits) for columns, rows in itertools.pairwise(self.sizes)]

    def shifts(self) -> list[int]:
        """Bits that the quantizers behind all but the last layer drop."""
        return [int(np.ceil(np.log2(np.abs(weight).sum(axis=0).max() / 4))) for weight in self.weights()[:-1]]

    def model(self) -> onnx.ModelProto:
        net = Net((1, self.sizes[0])).quant(1.0, 0.0, 8.0, signed=1, narrow=0)
        for n, weight in enumerate(self.weights()):
            net.linear(weight.shape[1], weight.shape[0], weight, f"fc{n}", scale=1.0, bits=float(self.w_bits))
            if n < len(self.sizes) - 2:
                net.then("Relu").quant(2.0 ** self.shifts()[n], 0.0, float(self.x_bits), signed=0, narrow=0)
        return net.model()


DENSE, JETS = Layers((64, 64), 4, 8, 4), Layers((16, 64, 32, 32, 5), 6, 8, 1)


def quantizer() -> onnx.ModelProto:
    """16 channels to int4, each with a scale and a zero point of its own."""
    rng, net = np.random.default_rng(6), Net((1, 16))
    scale, zero = (2.0 ** rng.uniform(-1, 3, 16)).astype(np.float32), rng.integers(-3, 4, 16).astype(np.float32)
    return net.then("IntQuant", scale, zero, 4.0, domain=QONNX, signed=1, narrow=0, rounding_mode="ROUND").model()


def requantizer() -> onnx.ModelProto:
    """16 channels of sums to int8, each times a number of 15 bits and a power of two: an exact product, half to
    even.
    """
    rng = np.random.default_rng(5)
    factor, shift = rng.integers(2**14, 2**15, 16), rng.integers(37, 41, 16)
    to_int8 = ("Clip", np.float64(-128), np.float64(127)), ("Cast", {"to": onnx.TensorProto.INT8})
    exact = ("Cast", {"to": onnx.TensorProto.DOUBLE}), ("Mul", factor * 2.0**-shift), ("Round",)
    return chain(*exact, *to_int8, source=np.int32, shape=(1, 16))


def image_weights() -> list[Weights]:
    """Of two convolutions of 3 x 3 with 8 and 16 channels, and 10 sums: int8; of convolutions (outputs, channels, 3,
    3).
    """
    rng = np.random.default_rng(3)
    convolutions = [
        matrix(rng, outputs, channels * 9, 8).reshape(outputs, channels, 3, 3)
        for channels, outputs in ((1, 8), (8, 16))
    ]
    return [*convolutions, matrix(rng, 256, 10, 8)]


def image_shift(weight: Weights) -> int:
    """Bits that the quantizer behind a convolution drops."""
    return int(np.ceil(np.log2(np.abs(weight).sum())))


def image_layers() -> onnx.ModelProto:
    """8 x 8 pixels of 8 bits through the layers of `image_weights`."""
    net = Net((1, 1, 8, 8)).quant(1.0, 0.0, 8.0, signed=0, narrow=0)
    *convolutions, last = image_weights()
    for n, weight in enumerate(convolutions):
        data = net.last
        net.node("IntQuant", weight, 1.0, 0.0, 8.0, name=f"conv{n}_weights", domain=QONNX)
        net.node("Conv", data, net.last, name=f"conv{n}")
        net.then("Relu").quant(2.0 ** image_shift(weight), 0.0, 8.0, signed=0, narrow=0)
    net.node("Flatten", net.last)
    return net.linear(10, 256, last, "fc", scale=1.0, bits=8.0).model()


def shared(name: str) -> Path:
    """A model of others. Raises FileNotFoundError."""
    path = MODELS / f"{name}.onnx"
    if not path.exists():
        raise FileNotFoundError(f"{path.name} is not there")
    return path


def cut(
    name: str, start: str, shape: tuple[int, ...], end: str, rows: tuple[int, int] | None = None
) -> onnx.ModelProto:
    """The nodes of a model of others from one tensor to another; `rows` (n, few): `few` of n output channels."""
    model = onnx.load(shared(name))
    makers = {output: node for node in model.graph.node for output in node.output}
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    wanted, nodes = [end], []
    while wanted:
        tensor = wanted.pop()
        if tensor not in (start, *constants) and (node := makers[tensor]) not in nodes:
            nodes.append(node)
            wanted += [name for name in node.input if name]
    used = {name for node in nodes for name in node.input} & set(constants)
    kept = [_few(constants[name], rows) for name in sorted(used)]
    ports = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, own) for name, own in ((start, shape), (end, None))
    ]
    in_order = [node for node in model.graph.node if node in nodes]
    graph = helper.make_graph(in_order, "cut", ports[:1], ports[1:], kept)
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)


def _few(tensor: onnx.TensorProto, rows: tuple[int, int] | None) -> onnx.TensorProto:
    if rows is None or not tensor.dims or tensor.dims[0] != rows[0]:
        return tensor
    return numpy_helper.from_array(numpy_helper.to_array(tensor)[: rows[1]], tensor.name)


def keyword_layer() -> onnx.ModelProto:
    """256 x 256 with weights and codes of 3 bits: the second layer of the network, or one like it."""
    try:
        return cut("public/mlperf_kws_w3a3", "36", (1, 256), "52")
    except FileNotFoundError:
        rng, net = np.random.default_rng(7), Net((1, 256)).quant(1.0, 0.0, 3.0, signed=0, narrow=0)
        net.linear(256, 256, matrix(rng, 256, 256, 3), "fc", scale=1.0, bits=3.0).then("Relu")
        return net.quant(rng.uniform(4, 12, (1, 256)).astype(np.float32), 0.0, 3.0, signed=0, narrow=0).model()


def picture_layer() -> onnx.ModelProto:
    """64 to 64 channels of 30 x 30 pixels, all of one bit: the second convolution of the network, or one like it."""
    try:
        return cut("brevitas/cnv_1w1a", "getitem", (1, 64, 30, 30), "_symbolic_4")
    except FileNotFoundError:
        rng, net = np.random.default_rng(8), Net((1, 64, 30, 30)).then("BipolarQuant", 1.0, domain=QONNX)
        data, weight = net.last, rng.choice([-1.0, 1.0], (64, 64, 3, 3)).astype(np.float32)
        net.node("BipolarQuant", weight, 1.0, name="conv_weights", domain=QONNX)
        net.node("Conv", data, net.last, name="conv")
        offset = rng.integers(-40, 40, (1, 64, 1, 1)).astype(np.float32) + 0.5
        return net.then("Add", offset).then("BipolarQuant", 1.0, domain=QONNX).model()


def _example(name: str) -> Callable[[], Model]:
    return lambda: ROOT / "examples" / name


def _shared(name: str) -> Callable[[], Model]:
    return lambda: shared(name)


TFC = "public/zoo_tfc_1w1a"
#: 16 of the 64 rows of the first layer, and the other layers.
TFC_PIECES = (
    (4, lambda: cut(TFC, "35", (1, 784), "45", (64, 16))),
    (1, lambda: cut(TFC, "43", (1, 64), "53")),
    (1, lambda: cut(TFC, "51", (1, 64), "61")),
    (1, lambda: cut(TFC, "59", (1, 64), "66")),
)
DIGITS = _example("digits/digits_mlp.onnx")

WORKLOADS: dict[str, Workload] = {
    "quantizer 16 to 4 bits x 16": Workload(quantizer, 1, "fixed:16,8", routed=True),
    "requantize 32 to 8 bits x 16": Workload(requantizer, 1, routed=True),
    "dense 64 x 64 w4, a frame a cycle": Workload(DENSE.model, 1),
    "jets 16-64-32-32-5 w6a8, a frame a cycle": Workload(JETS.model, 1),
    "jets 16-64-32-32-5 w6a8, 222 MHz asked": Workload(JETS.model, 1, clock_mhz=222.0),
    "mixed widths 16-64-32-32-5, saturating": Workload(MIXED.model, 1, "codes", ports="plain", merges=True),
    "mixed widths 16-64-32-32-5, wrapping": Workload(MIXED_WRAPS.alir, 1, ports="plain"),
    "TFC w1a1, a frame a cycle": Workload(_shared(TFC), 1, pieces=TFC_PIECES),
    "digits w4a4 @64": Workload(DIGITS, 64, routed=True),
    "digits w4a4 @5": Workload(DIGITS, 5),
    "digits w4a4 @5, 222 MHz asked": Workload(DIGITS, 5, clock_mhz=222.0),
    "digits w4a4 @5, DSP": Workload(DIGITS, 5, dsp=True),
    "CNN int8, 8 x 8 pixels @4608": Workload(image_layers, 4608, routed=True),
    "CNN int8, 8 x 8 pixels @4608, DSP": Workload(image_layers, 4608, dsp=True),
    "CNN int8, 8 x 8 pixels @80": Workload(image_layers, 80),
    "CNN int8, 8 x 8 pixels @80, 222 MHz asked": Workload(image_layers, 80, clock_mhz=222.0),
    "CNN int8, 8 x 8 pixels @80, DSP": Workload(image_layers, 80, dsp=True),
    "digits CNN w4a4 @576": Workload(_example("digits_cnn/digits_cnn.onnx"), 576, routed=True),
    "TFC w1a1 @64": Workload(_shared(TFC), 64, routed=True),
    "TFC w2a2 @256": Workload(_shared("public/zoo_tfc_2w2a"), 256),
    "DS-CNN w4a4 @500": Workload(_shared("brevitas/dscnn_w4a4_po2"), 500),
    "KWS w3a3 @392": Workload(_shared("public/mlperf_kws_w3a3"), 392),
    "KWS layer 256 x 256 w3a3 @392": Workload(keyword_layer, 392, routed=True),
    "CNV w1a1 @32768": Workload(_shared("brevitas/cnv_1w1a"), 32768),
    "CNV layer 64 x 64 x 3 x 3 w1a1 @32768": Workload(picture_layer, 32768, routed=True),
}
