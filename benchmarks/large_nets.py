"""How the time of `hlsgen check` and its memory grow with pixels and with layers; part of `make bench`.

    python benchmarks/large_nets.py [NAME ...]     # default: all but the largest, see NETWORKS

Networks of the usual shapes with random weights, each in a process of its own. Seconds are those of the processor.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import hlsgen
from hlsgen.cycle_model.fifo_sizing import size
from hlsgen.verilog.unit_table import latency

MICROSOFT = "com.microsoft"


class Writer:
    """QLinear operators one behind the other. A tensor is (name, channels)."""

    def __init__(self, channels: int, height: int, width: int) -> None:
        self.rng = np.random.default_rng(0)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.input = helper.make_tensor_value_info("input", TensorProto.UINT8, [1, channels, height, width])
        self.scale, self.zero = self.constant(np.float32(0.02)), self.constant(np.uint8(0))
        self.weight_zero = self.constant(np.int8(0))

    def constant(self, value: object) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, op: str, *inputs: str, domain: str = "", **attributes: object) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"{op}_{name}", domain=domain, **attributes))
        return name

    @property
    def type(self) -> tuple[str, str]:
        """Scale and zero point that all activations have."""
        return self.scale, self.zero

    def conv(self, x: str, into: int, out: int, kernel: int = 3, stride: int = 1, groups: int = 1) -> str:
        """A convolution that keeps the size, or halves it, with a scale that keeps its results in range."""
        weight = self.rng.integers(-127, 128, (out, into // groups, kernel, kernel)).astype(np.int8)
        products = into // groups * kernel * kernel
        scale = self.constant(np.float32(1 / (74 * products**0.5)))
        bias = self.constant(self.rng.integers(-500, 500, out).astype(np.int32))
        half = kernel // 2
        return self.node(
            "QLinearConv",
            x,
            *self.type,
            self.constant(weight),
            scale,
            self.weight_zero,
            *self.type,
            bias,
            group=groups,
            kernel_shape=[kernel] * 2,
            pads=[half] * 4,
            strides=[stride] * 2,
        )

    def add(self, x: str, y: str) -> str:
        return self.node("QLinearAdd", x, *self.type, y, *self.type, *self.type, domain=MICROSOFT)

    def concat(self, *parts: str) -> str:
        typed = [name for part in parts for name in (part, *self.type)]
        return self.node("QLinearConcat", *self.type, *typed, domain=MICROSOFT, axis=1)

    def max_pool(self, x: str, kernel: int = 3) -> str:
        half = kernel // 2
        return self.node("MaxPool", x, kernel_shape=[kernel] * 2, pads=[half] * 4, strides=[2, 2])

    def classifier(self, x: str, channels: int, classes: int = 1000) -> str:
        x = self.node("QLinearGlobalAveragePool", x, *self.type, *self.type, domain=MICROSOFT)
        return self.conv(x, channels, classes, 1)

    def model(self, x: str) -> onnx.ModelProto:
        output = helper.make_tensor_value_info(x, TensorProto.UINT8, None)
        graph = helper.make_graph(self.nodes, "large", [self.input], [output], self.constants)
        versions = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
        return onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=versions, ir_version=8))


def separable(size: int, blocks: int = 4, channels: int = 8) -> onnx.ModelProto:
    """Depthwise and pointwise convolutions in turn, all on size x size pixels."""
    w = Writer(3, size, size)
    x = w.conv("input", 3, channels)
    for _ in range(blocks):
        x = w.conv(x, channels, channels, groups=channels)
        x = w.conv(x, channels, channels, 1)
    return w.model(x)


def residual(stages: int, channels: int = 6, height: int = 38, width: int = 114) -> onnx.ModelProto:
    """Convolutions, a residual branch around every two of them; all on the same pixels."""
    w = Writer(channels, height, width)
    x = "input"
    for _ in range(stages // 3):
        y = w.conv(x, channels, channels)
        y = w.conv(y, channels, channels)
        x = w.add(x, y)
    return w.model(x)


def mobilenet(size: int = 224) -> onnx.ModelProto:
    """The layers of MobileNet v1."""
    w = Writer(3, size, size)
    x, into = w.conv("input", 3, 32, stride=2), 32
    plan = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]
    for out, stride in plan:
        x = w.conv(x, into, into, stride=stride, groups=into)
        x, into = w.conv(x, into, out, 1), out
    return w.model(w.classifier(x, into))


def resnet(size: int = 224) -> onnx.ModelProto:
    """The layers of ResNet-50."""
    w = Writer(3, size, size)
    x, into = w.max_pool(w.conv("input", 3, 64, 7, 2)), 64
    for inner, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            stride = 2 if block == 0 and inner > 64 else 1
            y = w.conv(x, into, inner, 1)
            y = w.conv(y, inner, inner, 3, stride)
            y = w.conv(y, inner, 4 * inner, 1)
            x = w.conv(x, into, 4 * inner, 1, stride) if block == 0 else x
            x, into = w.add(x, y), 4 * inner
    return w.model(w.classifier(x, into))


def shufflenet(size: int = 224) -> onnx.ModelProto:
    """The layers of ShuffleNet v2 x1.0."""
    w = Writer(3, size, size)
    x, into = w.max_pool(w.conv("input", 3, 24, 3, 2)), 24
    for out, blocks in ((116, 4), (232, 8), (464, 4)):
        half, points = out // 2, 0
        for block in range(blocks):
            if block == 0:
                left = w.conv(x, into, into, stride=2, groups=into)
                left = w.conv(left, into, half, 1)
                right, came = x, into
            else:
                left = w.node("Slice", x, *(w.constant(np.array([v], np.int64)) for v in (0, half, 1)))
                right = w.node("Slice", x, *(w.constant(np.array([v], np.int64)) for v in (half, out, 1)))
                came = half
            right = w.conv(right, came, half, 1)
            right = w.conv(right, half, half, stride=1 if block else 2, groups=half)
            right = w.conv(right, half, half, 1)
            x = w.concat(left, right)
            points = size // {116: 8, 232: 16, 464: 32}[out]
            x = w.node("Reshape", x, w.constant(np.array([1, 2, half, points, points], np.int64)))
            x = w.node("Transpose", x, perm=[0, 2, 1, 3, 4])
            x = w.node("Reshape", x, w.constant(np.array([1, out, points, points], np.int64)))
            into = out
    x = w.conv(x, into, 1024, 1)
    return w.model(w.classifier(x, 1024))


def requantized(channels: int = 96, width: int = 128) -> onnx.ModelProto:
    """A RequantShift of 32-bit integers, with a multiplier of its own for every channel."""
    rng = np.random.default_rng(0)
    x, y = (helper.make_tensor_value_info(name, TensorProto.INT32, [1, channels, 1, width]) for name in "xy")
    factors = rng.integers(200, 9000, (channels, 1, 1)), rng.integers(-99999, 99999, (channels, 1, 1))
    node = helper.make_node("RequantShift", ["x", "mul", "add"], ["y"], div=1 << 24, signed=1, n_levels=256)
    constants = [numpy_helper.from_array(a, name) for a, name in zip(factors, ("mul", "add"), strict=True)]
    graph = helper.make_graph([node], "requantized", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


#: Networks by name, made when they are called.
NETWORKS: dict[str, Callable[[], onnx.ModelProto]] = {
    **{f"separable {size}": lambda size=size: separable(size) for size in (64, 128, 256, 512, 1024)},
    **{f"residual {stages}": lambda stages=stages: residual(stages) for stages in (9, 45, 90, 180)},
    "RequantShift 96": requantized,
    "MobileNet 224": mobilenet,
    "ShuffleNet 224": shufflenet,
    "ResNet-50 224": resnet,
}
#: Those that run if no name is given.
USUAL = [name for name in NETWORKS if "224" not in name]


def measure(name: str) -> None:
    """Prints seconds, megabytes, nodes, beats of a frame, latency and interval of a network."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.onnx"
        onnx.save(NETWORKS[name](), path)
        start = time.process_time()
        build = hlsgen.check(path)
        total = time.process_time() - start
        nodes = list(build.network.nodes)
        start = time.process_time()
        size(nodes, latency)
        spent = time.process_time() - start
    beats = sum(node.result.beats for node in nodes)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"{name:16} {len(nodes):6} nodes {beats / 1e6:8.2f} M beats {total:8.1f} s, "
        f"buffers {spent:6.1f} s, {most:5} MB, latency {build.timing.latency}, interval {build.timing.interval}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NETWORKS))
    names = parser.parse_args().names
    if len(names) == 1:
        measure(names[0])
    for name in (names or USUAL) if len(names) != 1 else []:
        subprocess.run([sys.executable, __file__, name], check=False)


if __name__ == "__main__":
    main()
