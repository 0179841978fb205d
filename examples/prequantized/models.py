"""Writes pre-quantized networks in standard ONNX: the six constructions of the paper in README.md.

python models.py F1 -o f1.onnx                                  # one fully connected layer, 16 x 8
python models.py F1 F2 F4 --sizes 64 32 32 10 -o mlp.onnx       # three layers in sequence
python models.py F2 --scales 0.25 --dtype uint8 --relu-last     # a scale, uint8 input, Relu after the Mul
python models.py --all folder                                   # every construction, several sizes and scales
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CODES = {"int8": (np.int8, TensorProto.INT8), "uint8": (np.uint8, TensorProto.UINT8)}
FIGURES = {
    "F1": "fully connected, rescaled by an integer and a shift (two Mul)",
    "F2": "fully connected, Relu, rescaled by one Mul",
    "F3": "convolution of one point, one Mul",
    "F4": "fully connected, tanh in float32",
    "F5": "fully connected, tanh in float16",
    "F6": "fully connected, sigmoid in float16, uint8 result",
}


class Graph:
    """A straight graph that grows at its end. The last tensor goes into the next node."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.last = "x"

    def const(self, value: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def then(self, op: str, *constants: Any, name: str | None = None, **attributes: Any) -> Graph:
        """`op` on the last tensor and constants."""
        inputs = [self.last, *(self.const(c) for c in constants)]
        self.last = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [self.last], name=name, **attributes))
        return self

    def model(self, source: Any, sink: Any, opset: int = 13) -> onnx.ModelProto:
        """The model with input x and the last tensor as its output; `source` and `sink` are (element type, shape)."""
        x = helper.make_tensor_value_info("x", *source)
        y = helper.make_tensor_value_info(self.last, *sink)
        graph = helper.make_graph(self.nodes, "integer", [x], [y], self.constants)
        ir = 8 if opset < 19 else 10 if opset < 23 else 13
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)
        onnx.checker.check_model(model, full_check=True)
        return model


def multiplier_and_shift(scale: float) -> tuple[np.float32, np.float32]:
    """quant_scale and quant_shift of a float32: an odd integer <= 2^24, and a power of two; the product is exact."""
    numerator, divisor = float(np.float32(scale)).as_integer_ratio()
    denominator = float(divisor)
    while numerator % 2 == 0:
        numerator, denominator = numerator // 2, denominator / 2
    return np.float32(numerator), np.float32(1 / denominator)


def prequantized(
    figures: str | Sequence[str],
    sizes: Sequence[int] = (16, 8),
    *,
    scales: Sequence[float] | None = None,
    dtype: str = "int8",
    output: str = "int8",
    two_muls: bool | None = None,
    relu_first: bool = True,
    bias: bool = True,
    bias_bits: int = 13,
    rows: int | str = 1,
    seed: int = 0,
    opset: int = 13,
) -> onnx.ModelProto:
    """One layer per figure of the paper, `sizes[k]` inputs and `sizes[k + 1]` outputs; random int8 weights.

    `scales[k]` is the accumulator's rescale (default: accumulators of +-3 sigma fill int8). `dtype` is the type of x;
    `output` the type of F1, F2 and F3 (F4 and F5 give int8, F6 uint8). `two_muls` None follows the figure. F3 is alone
    or only with other F3: x is (rows, C, 1, 1). Otherwise x is (rows, C). onnx.reference needs opset 19 for F4..F6.
    """
    figures = [figures] if isinstance(figures, str) else list(figures)
    rng = np.random.default_rng(seed)
    conv = figures[0] == "F3"
    if any((f == "F3") != conv for f in figures):
        raise ValueError(f"figures {figures}: F3 can be combined with F3 only")
    if len(sizes) != len(figures) + 1 or (scales is not None and len(scales) != len(figures)):
        raise ValueError(f"{len(figures)} layers need {len(figures) + 1} sizes and {len(figures)} scales")
    graph, kind = Graph(), dtype
    tail = [1, 1] if conv else []
    for k, (figure, ins, outs) in enumerate(zip(figures, sizes, sizes[1:], strict=False)):
        weight = rng.integers(-128, 128, (outs, ins, 1, 1) if conv else (ins, outs)).astype(np.int8)
        graph.then("ConvInteger" if conv else "MatMulInteger", weight, name=f"layer{k}")
        if bias:
            limit = 1 << (bias_bits - 1)
            values = rng.integers(-limit, limit, (1, outs, *tail) if conv else outs).astype(np.int32)
            graph.then("Add", values, name=f"bias{k}")
        graph.then("Cast", to=TensorProto.FLOAT, name=f"float{k}")
        spread = 74 * (74 if kind == "int8" else 148) * np.sqrt(ins)
        scale = np.float32(scales[k] if scales is not None else 127 / (3 * spread))
        relu = figure == "F2"
        if relu and relu_first:
            graph.then("Relu", name=f"relu{k}")
        if two_muls if two_muls is not None else figure in ("F1", "F4", "F5"):
            multiplier, shift = multiplier_and_shift(float(scale))
            graph.then("Mul", multiplier, name=f"scale{k}").then("Mul", shift, name=f"shift{k}")
        else:
            graph.then("Mul", scale, name=f"scale{k}")
        if relu and not relu_first:
            graph.then("Relu", name=f"relu{k}")
        kind = _quantize(graph, figure, output, k)
    source, sink = (CODES[dtype][1], [rows, sizes[0], *tail]), (CODES[kind][1], [rows, sizes[-1], *tail])
    return graph.model(source, sink, opset)


def _quantize(graph: Graph, figure: str, output: str, k: int) -> str:
    """Append the quantizer and activation after the rescale; return the type of the layer's result."""
    unit_scale = np.float32(1)
    if figure in ("F1", "F2", "F3"):
        graph.then("QuantizeLinear", unit_scale, np.zeros((), CODES[output][0]), name=f"codes{k}")
        return output
    kind = "uint8" if figure == "F6" else "int8"
    reach = np.float32({"F4": 4, "F5": 4, "F6": 8}[figure] / 127)
    graph.then("QuantizeLinear", unit_scale, np.int8(0), name=f"codes{k}")
    graph.then("DequantizeLinear", reach, np.int8(0), name=f"reach{k}")
    if figure == "F4":
        graph.then("Tanh", name=f"tanh{k}")
    else:
        graph.then("Cast", to=TensorProto.FLOAT16, name=f"half{k}")
        graph.then("Tanh" if figure == "F5" else "Sigmoid", name=f"activation{k}")
        graph.then("Cast", to=TensorProto.FLOAT, name=f"single{k}")
    step = np.float32(1 / 255 if kind == "uint8" else 1 / 127)
    graph.then("QuantizeLinear", step, np.zeros((), CODES[kind][0]), name=f"result{k}")
    return kind


def all_constructions(seed: int = 0) -> Iterator[tuple[str, onnx.ModelProto]]:
    """(name, model): every construction at several sizes and scales, both input types; and networks of them."""
    for figure, sizes, dtype in product(FIGURES, [(16, 8), (64, 10), (200, 32)], CODES):
        spread = 74 * (74 if dtype == "int8" else 148) * np.sqrt(sizes[0])
        scales = {"third": 1 / 3, "power": 2.0 ** np.round(np.log2(42 / spread)), "full": 42 / spread}
        for label, scale in scales.items():
            name = f"{figure}_{sizes[0]}x{sizes[1]}_{dtype}_{label}"
            yield name, prequantized(figure, sizes, scales=[scale], dtype=dtype, seed=seed)
    for figures in (("F1", "F1"), ("F2", "F2", "F1"), ("F3", "F3"), ("F1", "F4"), ("F2", "F5", "F6")):
        sizes = (64, 32, 16, 10)[: len(figures) + 1]
        for dtype in CODES:
            yield f"{'_'.join(figures)}_{dtype}", prequantized(figures, sizes, dtype=dtype, seed=seed)


def main() -> None:
    """Build and save the models that the command line names."""
    listed = "; ".join(f"{key}: {text}" for key, text in FIGURES.items())
    parser = argparse.ArgumentParser(description=f"Write a pre-quantized network. {listed}.")
    parser.add_argument("figures", nargs="*", default=["F1"], metavar="FIGURE", help="one a layer (default F1)")
    parser.add_argument("--sizes", type=int, nargs="+", help="inputs, then the outputs of every layer (default 16 8)")
    parser.add_argument("--scales", type=float, nargs="+", help="the rescale of every layer (default: fill int8)")
    parser.add_argument("--dtype", choices=CODES, default="int8", help="type of the input")
    parser.add_argument("--output-dtype", choices=CODES, default="int8", help="type of the results of F1, F2 and F3")
    parser.add_argument("--one-mul", action="store_true", help="rescale by one Mul everywhere")
    parser.add_argument("--two-muls", action="store_true", help="rescale by an integer and a shift everywhere")
    parser.add_argument("--relu-last", action="store_true", help="F2: Relu behind the Mul")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--opset", type=int, default=13)
    parser.add_argument("-o", "--output", type=Path, default=Path("prequantized.onnx"))
    parser.add_argument("--all", type=Path, metavar="DIR", help="write a set of models there instead")
    args = parser.parse_args()
    if args.all:
        args.all.mkdir(parents=True, exist_ok=True)
        count = 0
        for name, model in all_constructions(args.seed):
            onnx.save(model, args.all / f"{name}.onnx")
            count += 1
        print(f"wrote {count} models to {args.all}")
        return
    wrong = [f for f in args.figures if f not in FIGURES]
    if wrong or (args.one_mul and args.two_muls):
        parser.error(f"no figure {wrong[0]}" if wrong else "--one-mul and --two-muls")
    sizes = args.sizes or [16] + [8] * len(args.figures)
    try:
        model = prequantized(
            args.figures,
            sizes,
            scales=args.scales,
            dtype=args.dtype,
            output=args.output_dtype,
            two_muls=args.two_muls or (False if args.one_mul else None),
            relu_first=not args.relu_last,
            seed=args.seed,
            opset=args.opset,
        )
    except ValueError as error:
        parser.error(str(error))
    onnx.save(model, args.output)
    print(f"wrote {args.output}: {' '.join(args.figures)}, {' x '.join(map(str, sizes))}")


if __name__ == "__main__":
    main()
