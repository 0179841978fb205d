"""Random networks of attention blocks, the same for the same seed, as QONNX, as QDQ, and as onnxruntime's QLinear
operators.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from onnx_graph import QONNX, OnnxGraph

Array = NDArray[Any]
OPSET = 23
DIALECTS = ("qonnx", "qdq", "qlinear")


class Net(OnnxGraph):
    """A graph of which one frame is computed while it is made, so that scales fit.

    `bits` of quantizers; 8 in QDQ, where `signed` is the type of activations, int8 or uint8.
    """

    def __init__(self, rng: np.random.Generator, dialect: str, shape: tuple[int, ...]) -> None:
        super().__init__(np.float32, labels=True)
        self.rng, self.dialect, self.shape = rng, dialect, shape
        self.bits = int(rng.integers(2, 9)) if dialect == "qonnx" else 8
        self.signed = dialect == "qonnx" or bool(rng.random() < 0.5)
        self.scales: dict[str, Array] = {}  # of what a quantizer or DequantizeLinear gives
        self.values: dict[str, Array] = {"x": rng.standard_normal(shape).astype(np.float32)}

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def pick(self, *values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def op(self, op: str, *inputs: Any, count: int = 1, **attributes: Any) -> Any:
        """The name of the result of a node of ONNX, or the names of several."""
        names = [self.const(i) for i in inputs]
        first = len(self.nodes)
        outputs = [f"t{first}"] if count == 1 else [f"t{first}_{n}" for n in range(count)]
        self.add(op, names, outputs, **attributes)
        self._compute(self.nodes[-1])
        if op in ("Reshape", "Transpose", "Gather", "Slice") and names[0] in self.scales:
            self.scales[outputs[0]] = self.scales[names[0]]
        return outputs[0] if count == 1 else outputs

    def of(self, name: str) -> Array:
        for tensor in self.constants:
            if tensor.name == name:
                return np.asarray(onnx.numpy_helper.to_array(tensor))
        return self.values[name]

    def _compute(self, node: onnx.NodeProto) -> None:
        given = {i: self.of(i) for i in node.input if i}
        ends = [
            helper.make_tensor_value_info(i, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
            for i, v in given.items()
        ]
        results = [helper.make_empty_tensor_value_info(o) for o in node.output]
        graph = helper.make_graph([node], "node", ends, results)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
        self.values.update(zip(node.output, ReferenceEvaluator(model).run(None, given), strict=True))

    # ----------------------------------------------------------------------- quantizers

    def scale(self, values: Array, largest: float) -> np.float32:
        """One with which most values fit; half of them powers of two."""
        scale = float(np.abs(values).max() or 1) / largest * self.rng.uniform(0.6, 1.2)
        return np.float32(2.0 ** np.round(np.log2(scale)) if self.chance(0.3) else scale)

    def quantized(self, t: str, bits: int | None = None, unsigned: bool = False, share: bool = False) -> str:
        """Codes of a tensor, as numbers; `share`: of 0 to 1, whatever the values are."""
        x, bits = self.values[t], bits or self.bits
        if self.dialect == "qonnx":
            lo, hi = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
            scale = self.scale(x, max(hi, 1))
            zero = np.float32(0)
            q = self.add(
                "Quant",
                [t, scale, zero, np.float32(bits)],
                domain=QONNX,
                signed=int(not unsigned),
                narrow=0,
                rounding_mode="ROUND",
            )
        else:
            lo, hi = (-128, 127) if self.signed else (0, 255)
            span = (0.0, 1.0) if share else (float(min(x.min(), 0)), float(max(x.max(), 0)))
            scale = np.float32(((span[1] - span[0]) or 1) / 255 * (1 if share else self.rng.uniform(0.8, 1.1)))
            zero = np.float32(np.clip(np.round(lo - span[0] / scale), lo, hi)) if self.chance(0.8) else np.float32(0)
            if not self.chance(0.8):
                scale = np.float32(2.0 ** np.round(np.log2(scale)))
            kind = np.int8 if self.signed else np.uint8
            names = [self.const(scale), self.const(np.asarray(zero, kind))]
            codes = self.add("QuantizeLinear", [t, *names])
            q = self.add("DequantizeLinear", [codes, *names])
        self.scales[q] = np.asarray(scale, np.float32)
        whole = np.clip(np.round(x / scale + zero), lo, hi) - zero
        self.values[q] = (whole * scale).astype(np.float32)
        return q

    def weights(self, rows: int, columns: int) -> str:
        """A matrix (rows, columns) of codes, with a scale for all or for each column."""
        bits = self.bits if self.dialect == "qonnx" else 8
        top = max(1, 2 ** (bits - 1) - 1)
        codes = self.rng.integers(-top, top + 1, (rows, columns))
        each = self.chance(0.4)
        scale = (self.rng.uniform(0.5, 1.5, (1, columns) if each else ()) / top / np.sqrt(rows)).astype(np.float32)
        if self.dialect == "qonnx":
            raw = self.const((codes * scale).astype(np.float32))
            w = self.add(
                "Quant",
                [raw, self.const(scale), np.float32(0), np.float32(bits)],
                domain=QONNX,
                signed=1,
                narrow=0,
                rounding_mode="ROUND",
            )
        else:
            axis = {"axis": 1} if each else {}
            zero = np.zeros(scale.size if each else (), np.int8)
            w = self.add("DequantizeLinear", [codes.astype(np.int8), scale.ravel() if each else scale, zero], **axis)
        self.scales[w] = np.asarray(scale.ravel() if each else scale, np.float32)
        self.values[w] = (codes * scale).astype(np.float32)
        return w

    # ----------------------------------------------------------------------- parts of a block

    def linear(self, t: str, outputs: int) -> str:
        """A layer with or without a bias; `t` has its features last."""
        w = self.weights(self.values[t].shape[-1], outputs)
        y = self.op("MatMul", t, w)
        if self.chance(0.6):
            bias: Any = self.rng.normal(0, 0.2, outputs).astype(np.float32)
            if self.dialect != "qonnx":  # int32, as onnxruntime writes it: its optimizer rounds others to that grid
                bias = self.integers(bias, np.asarray(self.scales[t] * self.scales[w], np.float32))
            y = self.op("Add", *((bias, y) if self.chance(0.5) else (y, bias)))
        return y

    def integers(self, x: Array, scale: Array) -> str:
        """int32 codes of a constant."""
        codes = np.round(x / scale).astype(np.int32)
        zero = np.zeros(scale.shape, np.int32)
        name = self.add("DequantizeLinear", [codes, scale, zero], **({"axis": 0} if scale.shape else {}))
        self.values[name] = (codes * scale).astype(np.float32)
        return name

    def norm(self, t: str) -> str:
        """One of the normalizations of rows, as one node or as exporters take it apart."""
        width = self.values[t].shape[-1]
        gamma, beta = (
            self.rng.uniform(0.5, 1.5, width).astype(np.float32),
            self.rng.normal(0, 0.3, width).astype(np.float32),
        )
        epsilon, axes = np.float32(self.pick(1e-5, 1e-6, 1e-3)), np.array([-1])
        match self.pick("layer", "layer", "rms", "layer parts", "rms parts"):
            case "layer":
                both = (gamma, beta) if self.chance(0.8) else (gamma,)
                return self.op("LayerNormalization", t, *both, axis=-1, epsilon=float(epsilon))
            case "rms":
                return self.op("RMSNormalization", t, gamma, axis=-1, epsilon=float(epsilon))
            case "layer parts":
                centred = self.op("Sub", t, self.op("ReduceMean", t, axes))
                variance = self.op("ReduceMean", self.op("Pow", centred, np.float32(2)), axes)
                root = self.op("Sqrt", self.op("Add", variance, epsilon))
                return self.op("Add", self.op("Mul", self.op("Div", centred, root), gamma), beta)
            case _:
                mean = self.op("ReduceMean", self.op("Pow", t, np.float32(2)), axes)
                root = self.op("Sqrt", self.op("Add", mean, epsilon))
                if self.chance(0.5):
                    return self.op("Mul", self.op("Div", t, root), gamma)
                return self.op("Mul", self.op("Mul", t, self.op("Div", np.float32(1), root)), gamma)

    def heads(self, t: str, heads: int) -> tuple[str, str, str]:
        """Queries, keys, values of (1, T, D), each (1, heads, T, D / heads); the packed forms of timm and others,
        too.
        """
        _, tokens, width = self.values[t].shape
        size = width // heads
        how = self.pick("three", "three", "gather", "split", "slice", "chunks")
        if how == "three":
            parts = [self.linear(t, width) for _ in range(3)]
            early = self.chance(0.4)
            parts = [self.quantized(p) for p in parts] if early else parts
            split = [self.op("Reshape", p, np.array([1, tokens, heads, size])) for p in parts]
            turned = [self.op("Transpose", p, perm=[0, 2, 1, 3]) for p in split]
            return tuple(turned if early else [self.quantized(p) for p in turned])  # type: ignore[return-value]
        packed = self.linear(t, 3 * width)
        packed = self.quantized(packed) if self.chance(0.6) else packed
        if how in ("split", "slice"):
            if how == "split":
                parts = self.op("Split", packed, np.array([width] * 3), count=3, axis=2)
            else:
                cuts = [(n * width, (n + 1) * width) for n in range(3)]
                parts = [self.op("Slice", packed, np.array([a]), np.array([b]), np.array([2])) for a, b in cuts]
            split = [self.op("Reshape", p, np.array([1, tokens, heads, size])) for p in parts]
            parts = [self.op("Transpose", p, perm=[0, 2, 1, 3]) for p in split]
        else:
            five = self.op("Reshape", packed, np.array([1, tokens, 3, heads, size]))
            five = self.op("Transpose", five, perm=[2, 0, 3, 1, 4])
            if how == "gather":
                parts = [self.op("Gather", five, np.array(n), axis=0) for n in range(3)]
            else:
                parts = [
                    self.op("Squeeze", p, np.array([0]))
                    for p in self.op("Split", five, np.ones(3, np.int64), count=3, axis=0)
                ]
        return tuple(self.quantized(p) for p in parts)  # type: ignore[return-value]

    def attention(self, t: str, heads: int) -> str:
        """Softmax(q k' / root) v, and a layer behind it."""
        _, tokens, width = self.values[t].shape
        q, k, v = self.heads(t, heads)
        size = width // heads
        factor, place = np.float32(size**-0.5), self.pick("scores", "scores", "divide", "query", "none")
        place = place if size > 1 else "none"
        if place == "query":
            q = self.quantized(self.op("Mul", q, factor))
        scores = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2]))
        if self.dialect != "qonnx":
            scores = self.quantized(scores)
        if place == "scores":
            scores = self.op("Mul", scores, factor)
        if place == "divide":
            scores = self.op("Div", scores, np.float32(size**0.5))
        if self.dialect == "qonnx" or (place in ("scores", "divide") and self.chance(0.7)):
            scores = self.quantized(scores, bits=max(self.bits, 3))
        weights = self.op("Softmax", scores, axis=self.pick(-1, 3))
        weights = self.quantized(weights, unsigned=self.chance(0.7), share=True)
        y = self.quantized(self.op("MatMul", weights, v))
        y = self.op("Reshape", self.op("Transpose", y, perm=[0, 2, 1, 3]), np.array([1, tokens, width]))
        return self.linear(y, width)

    def mlp(self, t: str) -> str:
        width = self.values[t].shape[-1]
        y = self.linear(t, int(self.rng.integers(1, 3)) * width)
        kind = self.pick("Relu", "Gelu", "erf", "none")
        if self.dialect != "qonnx" and kind != "none":  # onnxruntime makes one of two quantizers in a row
            y = self.quantized(y)
        match kind:
            case "Relu":
                y = self.op("Relu", y)
            case "Gelu":
                y = self.op("Gelu", y, approximate=self.pick("none", "tanh"))
            case "erf":
                inner = self.op("Add", self.op("Erf", self.op("Div", y, np.float32(2**0.5))), np.float32(1))
                y = self.op("Mul", self.op("Mul", y, inner), np.float32(0.5))
        return self.linear(self.quantized(y), width)

    def residual(self, t: str, y: str) -> str:
        """t + y, each quantized, and their sum."""
        y = self.quantized(y)
        return self.quantized(self.op("Add", *((t, y) if self.chance(0.5) else (y, t))))

    def block(self, t: str, heads: int) -> str:
        """Attention and perceptron with residuals, normalized before or behind."""
        before = self.chance(0.6)
        for part in (lambda u: self.attention(u, heads), self.mlp):
            inner = self.quantized(self.norm(t)) if before else t
            t = self.residual(t, part(inner))
            t = t if before else self.quantized(self.norm(t))
            if self.chance(0.25):
                break
        return t

    def model(self, result: str) -> onnx.ModelProto:
        ends = [
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, list(self.values[name].shape))]
            for name in ("x", result)
        ]
        return self.proto("attention", *ends, [("", OPSET), (QONNX, 1)], ir_version=10)


def network(seed: int, largest: int = 12) -> onnx.ModelProto:
    """A network of one or two blocks; `largest`: tokens, at most, and features by about three times that."""
    rng = np.random.default_rng(seed)
    dialect = DIALECTS[int(rng.integers(3))]
    heads = int(rng.choice([1, 1, 2, 2, 3, 4, 8]))
    width = heads * int(rng.integers(1, max(2, 3 * largest // heads)))
    width = max(width, 4) if heads == 1 else width
    tokens = int(rng.integers(2, largest + 1))
    net = Net(rng, dialect, (1, tokens, width))
    t = "x"
    if net.chance(0.3):
        t = net.op("Add", t, rng.normal(0, 0.5, (1, tokens, width)).astype(np.float32))
    of_floats = net.chance(0.2) and dialect != "qonnx"
    t = t if of_floats else net.quantized(t)
    if net.chance(0.3) and not of_floats:
        t = net.op("Concat", rng.normal(0, 0.5, (1, 1, width)).astype(np.float32), t, axis=1)
        t = net.quantized(t)
        if net.chance(0.5):
            t = net.quantized(net.op("Add", t, rng.normal(0, 0.5, net.values[t].shape).astype(np.float32)))
    if of_floats:  # the normalization of the input is the host's, and a quantizer goes around it
        inner, around = net.quantized(net.norm(t)), net.quantized(t)
        t = net.residual(around, net.attention(inner, heads))
    else:
        t = net.block(t, heads)
    if net.chance(0.2):
        t = net.block(t, heads)
    match net.pick("all", "all", "mean", "first", "slice", "norm"):
        case "mean":
            t = net.quantized(net.op("ReduceMean", t, np.array([1]), keepdims=0))
        case "first":
            t = net.op("Gather", t, np.array(0), axis=1)
        case "slice":
            t = net.op("Slice", t, np.array([0]), np.array([1]), np.array([1]))
        case "norm":
            t = net.quantized(net.norm(t))
    if net.chance(0.5):
        t = net.linear(t, int(rng.integers(2, 6)))
        if net.chance(0.6) or dialect == "qlinear":
            t = net.quantized(t)
    model = net.model(t)
    if dialect == "qlinear":
        import ort

        model = ort.optimized_graph(model, ort.EXTENDED, arm=True)
    return model
