"""The generator of random graphs: a sketch that computes every node as it adds it, and phrases of a few nodes.

A phrase is a pattern that a pass or the frontend's fusion searches for, or a near miss. A node whose values would be
NaN, too many, or no longer exact raises `Unfit` and is omitted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import fuzz_oracle
import numpy as np
import onnx
from fuzz_oracle import CHANNELS_LAST, DOMAIN, MICROSOFT, OPSET
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[Any]
Random = np.random.Generator
FRAMES = 96
MODES = ["ROUND", "half_even", "CEIL", "FLOOR", "UP", "DOWN", "HALF_UP", "HALF_DOWN"]
FLOAT_KINDS = ("float16", "float32", "float64")
INTEGER_KINDS = ("int8", "uint8", "int16", "uint16", "int32", "uint32")


#: Attributes that are left out at times, so that their defaults count.
OPTIONAL = frozenset(
    """alpha beta gamma epsilon mode keepdims ceil_mode count_include_pad signed narrow rounding_mode lambd bias strides
    dilations pads group output_padding out_scale out_bias axis""".split()
)


class Unfit(Exception):
    """Raised for a node whose result could not be compared exactly."""


class Sketch:
    """A graph in the making, with the values of all its tensors: (frames, *shape[1:]) or, of constants, their own."""

    def __init__(self, rng: Random, x: Array, dialect: str, powers: bool, port: str | None = None) -> None:
        self.rng, self.x, self.dialect, self.powers, self.port = rng, x, dialect, powers, port
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Array] = {}
        self.values: dict[str, Array] = {"x": x}
        self.version = int(rng.integers(1, 3))
        self.outputs = 0

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def pick(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def whole(self, low: int, high: int) -> int:
        """Random integer from low to high, both included."""
        return int(self.rng.integers(low, high + 1))

    def kind(self, t: str) -> str:
        return str(self.values[t].dtype)

    def shape(self, t: str) -> tuple[int, ...]:
        return (1, *self.values[t].shape[1:])

    def const(self, value: Any, dtype: Any = np.float32) -> str:
        name = f"c{len(self.constants)}"
        with np.errstate(all="ignore"):
            self.constants[name] = np.asarray(value).astype(dtype)
        return name

    def add(self, op: str, *inputs: str, outputs: int = 1, domain: str = "", **attributes: Any) -> str:
        """A node; the name of its first output (`name_1` and so on are the others)."""
        if self.chance(0.4) and op not in ("Concat", "Split"):
            attributes = {k: v for k, v in attributes.items() if k not in OPTIONAL or self.chance(0.5)}
        first = f"t{self.outputs}"
        names = [first, *(f"{first}_{n}" for n in range(1, outputs))]
        node = helper.make_node(op, list(inputs), names, f"n{self.outputs}_{op}", domain=domain, **attributes)
        arrays = [(self.constants.get(i, self.values.get(i)) if i else None) for i in inputs]
        try:
            results = fuzz_oracle.run_node(node, arrays, self.version)
        except Exception as error:
            raise Unfit(str(error)) from error
        for value in results:
            if value.ndim < 2 or value.size > 400 * FRAMES or not value.size or len(value) != len(self.x):
                raise Unfit
            if value.dtype.kind == "f" and np.isnan(value).any():
                raise Unfit
        self.values.update(zip(names, results, strict=True))
        self.nodes.append(node)
        self.outputs += 1
        return first

    def fixed(self, op: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """A node of constants alone."""
        name = f"t{self.outputs}"
        node = helper.make_node(op, list(inputs), [name], f"n{self.outputs}_{op}", domain=domain, **attributes)
        arrays = [self.constants[i] for i in inputs]
        self.constants[name] = fuzz_oracle.run_node(node, arrays, self.version)[0]
        self.nodes.append(node)
        self.outputs += 1
        return name

    def model(self) -> onnx.ModelProto:
        """The model of the nodes on which the last one depends."""
        last = self.nodes[-1].output[0] if self.nodes else "x"
        return assembled(self.nodes, self.constants, self.values, "x", last, self.version)


def assembled(
    nodes: Sequence[onnx.NodeProto],
    constants: dict[str, Array],
    values: dict[str, Array],
    first: str,
    last: str,
    version: int,
) -> onnx.ModelProto:
    """The model from tensor `first` to `last`, with only the nodes that `last` needs."""
    needed, kept_nodes = {last}, []
    for node in reversed(nodes):
        if needed & set(node.output) and first not in node.output:
            kept_nodes.insert(0, node)
            needed |= set(node.input)
    produced = {o for n in kept_nodes for o in n.output}
    shapes = [[1, *values[name].shape[1:]] for name in (first, last)]
    kinds = [helper.np_dtype_to_tensor_dtype(values[name].dtype) for name in (first, last)]
    source, result = (
        helper.make_tensor_value_info(n, k, s) for n, k, s in zip((first, last), kinds, shapes, strict=True)
    )
    stored = [numpy_helper.from_array(v, k) for k, v in constants.items() if k in needed and k not in produced]
    graph = helper.make_graph(kept_nodes, "fuzz", [source], [result], stored)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(DOMAIN, version)]
    opsets += [helper.make_opsetid(d, 1) for d in sorted({n.domain for n in kept_nodes} & {CHANNELS_LAST, MICROSOFT})]
    model = helper.make_model(graph, opset_imports=opsets)
    model.ir_version = 8
    return model


# --------------------------------------------------------------------------- constants that fit the data


def size_of(s: Sketch, t: str) -> float:
    """The size that the values mostly have."""
    v = np.abs(s.values[t].astype(np.float64))
    v = v[np.isfinite(v) & (v > 0)]
    return float(np.clip(np.quantile(v, 0.7), 2.0**-20, 2.0**30)) if v.size else 1.0


def place(s: Sketch, t: str, scalar: bool = False) -> tuple[int, ...]:
    """Shape of a constant for a tensor: scalar or one axis; unless `scalar`, also two or all axes, or lower rank."""
    shape = s.shape(t)
    how = s.rng.random() * (0.84 if scalar else 1)
    if how < 0.45:
        return s.pick((), (1,), (1,) * len(shape))
    axes = {s.whole(1, len(shape) - 1)} if how < 0.85 else set(range(1, len(shape))) - {s.whole(1, len(shape) - 1)}
    axes = axes if how < 0.95 else set(range(len(shape)))
    full = tuple(n if i in axes else 1 for i, n in enumerate(shape))
    while s.chance(0.5) and len(full) > 1 and full[0] == 1:
        full = full[1:]
    return full


def reals(s: Sketch, t: str, shape: tuple[int, ...], size: float | None = None) -> Array:
    """Numbers of about the size of the data, of both signs, some round, in the tensor's float type."""
    size = size_of(s, t) if size is None else size
    v = s.rng.normal(size=shape) * size * s.pick(0.3, 1.0, 1.0)
    if s.chance(0.4):
        v = np.round(v * 4) / 4
    return np.asarray(v).astype(s.kind(t))


def factors(s: Sketch, t: str, shape: tuple[int, ...], negative: float = 0.3) -> Array:
    v = 2.0 ** s.rng.integers(-2, 3, shape) if s.chance(0.5) else np.exp(s.rng.uniform(-1, 1, shape))
    sign = s.rng.choice([1, -1], shape, p=[1 - negative, negative]) if s.chance(0.7) else s.pick(1, 1, -1)
    return np.asarray(v * sign).astype(s.kind(t))


def integers(s: Sketch, t: str, shape: tuple[int, ...]) -> Array:
    """Constants of an integer tensor: near its values, anything of its type, or the ends of that."""
    info = np.iinfo(s.kind(t))
    how = s.rng.random()
    if how < 0.6:
        size = min(size_of(s, t), float(info.max))
        v = np.round(s.rng.normal(size=shape) * size)
        v = np.abs(v) if info.min == 0 else v
    elif how < 0.9:
        v = s.rng.integers(info.min, int(info.max) + 1, shape).astype(np.float64)
    else:
        v = np.broadcast_to(np.float64(s.pick(info.min, info.max, 0, 1)), shape)
    return np.asarray(np.clip(v, info.min, info.max).astype(np.int64).astype(s.kind(t)))


# --------------------------------------------------------------------------- elementwise


def elementwise(s: Sketch, t: str) -> str:
    kind = s.kind(t)
    if kind == "bool":
        return s.add("Cast", t, to=s.pick(TensorProto.FLOAT, TensorProto.INT8, TensorProto.UINT8))
    return _float(s, t) if kind in FLOAT_KINDS else _integer(s, t)


def _two(s: Sketch, op: str, t: str, value: Array, swap: float = 0.3) -> str:
    c = s.const(value, s.kind(t))
    return s.add(op, c, t) if s.chance(swap) else s.add(op, t, c)


def _bounds(s: Sketch, t: str, number: Callable[[tuple[int, ...]], Array]) -> str:
    low, high = np.sort([number(()), number(())])
    if s.chance(0.05):
        low, high = high, low
    names = [s.const(low, s.kind(t)), s.const(high, s.kind(t))]
    how = s.whole(0, 3)
    return s.add("Clip", t, *(names if how > 1 else [names[0]] if how else ["", names[1]]))


def _compared(s: Sketch, t: str, c: str) -> str:
    """A boolean tensor."""
    op = s.pick("Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal")
    branch = s.add(op, t, c) if s.chance(0.6) else s.add(op, c, t)
    return s.add("Not", branch) if s.chance(0.2) else branch


def _chosen(s: Sketch, t: str, number: Callable[[tuple[int, ...]], Array]) -> str:
    condition = _compared(s, t, s.const(number(place(s, t)), s.kind(t)))
    if s.chance(0.2):
        second = _compared(s, t, s.const(number(()), s.kind(t)))
        condition = s.add(s.pick("And", "Or"), condition, second)
    alternatives = [
        t if s.chance(0.6) else s.const(number(place(s, t) if s.chance(0.4) else ()), s.kind(t)) for _ in range(2)
    ]
    return s.add("Where", condition, *alternatives)


def _float(s: Sketch, t: str) -> str:
    shape = place(s, t)
    name = str(s.rng.choice(list(_FLOAT_OPS), p=np.asarray(list(_FLOAT_OPS.values())) / sum(_FLOAT_OPS.values())))

    def near_values(form: tuple[int, ...]) -> Array:
        return reals(s, t, form)

    match name:
        case "Add" | "Sub":
            return _two(s, name, t, near_values(shape))
        case "Max" | "Min":
            if s.chance(0.15):
                return s.add(name, t, s.const(near_values(shape), s.kind(t)), s.const(near_values(()), s.kind(t)))
            return _two(s, name, t, near_values(shape), 0.02)
        case "Mul":
            return _two(s, name, t, factors(s, t, shape))
        case "Div":
            return s.add(name, t, s.const(factors(s, t, shape), s.kind(t)))
        case "One":
            return s.add("Div", s.const(1.0, s.kind(t)), t)
        case "Clip":
            return _bounds(s, t, near_values)
        case "Where":
            return _chosen(s, t, near_values)
        case "Mask":
            branch = _compared(s, t, s.const(near_values(shape), s.kind(t)))
            mask = s.add("Cast", branch, to=helper.np_dtype_to_tensor_dtype(np.dtype(s.kind(t))))
            return s.add("Mul", t, mask) if s.chance(0.7) else mask
        case "BatchNormalization":
            if s.kind(t) != "float32":
                raise Unfit
            c, size = s.shape(t)[1], size_of(s, t)
            rows = [factors(s, t, (c,)), reals(s, t, (c,)), reals(s, t, (c,)), s.rng.uniform(0.2, 3, c) * size]
            return s.add(name, t, *(s.const(r) for r in rows), epsilon=float(s.pick(1e-5, 0.01)))
        case "Cast":
            kinds = [*FLOAT_KINDS * 2, *INTEGER_KINDS[:5]]
            to = s.pick(*[k for k in kinds if k != s.kind(t)])
            return s.add(name, t, to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))
        case "PRelu":
            return s.add(name, t, s.const(factors(s, t, shape), s.kind(t)))
        case "Pow":
            return s.add(name, t, s.const(s.pick(2.0, 3.0, 2.0, 0.5), s.kind(t)))
        case "ThresholdedRelu":
            return s.add(name, t, alpha=float(np.float16(near_values(()))))
        case "Shrink":
            return s.add(
                name, t, lambd=abs(float(np.float16(near_values(())))), bias=float(np.float16(near_values(())))
            )
        case "LeakyRelu":
            return s.add(name, t, alpha=float(s.pick(0.125, 0.3, 0.01, -0.5, -0.3, -1.0, 2.0, 0.0)))
        case "HardSigmoid":
            beta = float(s.pick(0.5, 0.25, -0.5, 1.5))
            return s.add(name, t, alpha=float(s.pick(0.2, 0.3, -0.3, -0.125, 2.0, 0.0)), beta=beta)
        case "Elu":
            return s.add(name, t, alpha=float(s.pick(1.0, 0.5, -0.75, -2.0, 0.0)))
        case "Celu":
            return s.add(name, t, alpha=float(s.pick(1.0, 0.5, 2.0)))
        case "Selu":
            return s.add(name, t, alpha=float(s.pick(1.67, 0.5, -1.0)), gamma=float(s.pick(1.05, 0.5, -1.0, -0.3)))
        case "Tanh" | "Sigmoid" | "Exp" | "Softplus" | "Erf" | "Softsign":
            if len(np.unique(s.values[t])) > 4000:
                raise Unfit
            return s.add(name, t)
        case _:
            return s.add(name, t)


#: Float operations and how often they come.
_FLOAT_OPS = {
    "Add": 6,
    "Sub": 3,
    "Mul": 5,
    "Div": 3,
    "Max": 3,
    "Min": 3,
    "Clip": 3,
    "Relu": 4,
    "Neg": 3,
    "Abs": 2,
    "Where": 3,
    "Mask": 1,
    "BatchNormalization": 3,
    "Cast": 4,
    "PRelu": 2,
    "Pow": 1,
    "ThresholdedRelu": 1,
    "Shrink": 1,
    "LeakyRelu": 3,
    "HardSigmoid": 3,
    "HardSwish": 1,
    "Elu": 2,
    "Celu": 1,
    "Selu": 2,
    "Softsign": 1,
    "Tanh": 1,
    "Sigmoid": 1,
    "Exp": 1,
    "Softplus": 1,
    "Erf": 0.5,
    "Reciprocal": 1,
    "One": 0.5,
    "Sqrt": 0.5,
    "Ceil": 1,
    "Floor": 1,
    "Round": 1,
    "Sign": 1,
    "Identity": 0.5,
}


def _integer(s: Sketch, t: str) -> str:
    shape = place(s, t)
    op = s.pick("Add", "Add", "Sub", "Mul", "Max", "Min", "Clip", "Relu", "Neg", "Abs", "Sign", "Cast", "Cast", "Where")

    def near_values(form: tuple[int, ...]) -> Array:
        return integers(s, t, form)

    match op:
        case "Add" | "Sub" | "Max" | "Min":
            return _two(s, op, t, near_values(shape), 0.02 if op in ("Max", "Min") else 0.3)
        case "Mul":
            value = near_values(shape) if s.chance(0.3) else s.rng.integers(0 if s.kind(t)[0] == "u" else -3, 4, shape)
            return _two(s, op, t, np.asarray(value))
        case "Clip":
            return _bounds(s, t, near_values)
        case "Cast":
            to = s.pick(*[k for k in (*INTEGER_KINDS, *FLOAT_KINDS, "float32", "float32") if k != s.kind(t)])
            return s.add(op, t, to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))
        case "Where":
            return _chosen(s, t, near_values)
        case "Neg" | "Relu" if s.kind(t)[0] == "u":
            raise Unfit
        case _:
            return s.add(op, t)


# --------------------------------------------------------------------------- quantizers


def as_float32(s: Sketch, t: str) -> str:
    return t if s.kind(t) == "float32" else s.add("Cast", t, to=TensorProto.FLOAT)


def scale_for(s: Sketch, t: str, levels: float, shape: tuple[int, ...] = ()) -> Array:
    """Scale with which the data spreads over about `levels` codes."""
    unit = size_of(s, t) / max(levels, 1) * np.exp(s.rng.uniform(-1, 1, shape))
    return np.asarray(2.0 ** np.clip(np.round(np.log2(unit)), -8, 8) if s.powers else unit)


def quantized(s: Sketch, t: str, bits: int | None = None, plain: bool = False) -> str:
    """A quantizer of the dialect; `plain`: one scale for the tensor, so that layers can follow."""
    if s.kind(t) == "bool":
        t = s.add("Cast", t, to=TensorProto.FLOAT)
    if s.dialect == "integer" and s.chance(0.8):
        return _quantize_linear(s, t, plain)
    if s.dialect == "qdq" and s.chance(0.92):
        return dequantized(s, _quantize_linear(s, as_float32(s, t), plain), plain)
    t = as_float32(s, t)
    how = s.rng.random()
    bits = s.whole(1, 6) if bits is None else bits
    shape = () if plain or s.chance(0.75) else place(s, t, True)
    mode = s.pick(*MODES)
    zeros: Array = np.zeros(())
    if s.chance(0.35) and (not plain or bits > 1):
        zeros = s.rng.integers(-3, 4, () if plain or s.chance(0.7) else place(s, t, True)) / (
            s.pick(1, 1, 1, 2, 4) if not plain else 1
        )
    signed = int((s.values[t] < 0).any() if s.chance(0.8) else s.chance(0.5))
    if how < 0.72:
        scale = scale_for(s, t, 2.0 ** (bits - signed) * 0.7, shape)
        narrow = int(s.chance(0.25) and bits > 1)
        names = [s.const(scale), s.const(zeros), s.const(float(bits))]
        return s.add(
            s.pick("IntQuant", "Quant"), t, *names, domain=DOMAIN, signed=signed, narrow=narrow, rounding_mode=mode
        )
    if how < 0.8:
        return s.add("BipolarQuant", t, s.const(scale_for(s, t, 1, shape)), domain=DOMAIN)
    if how < 0.9:
        scale = scale_for(s, t, 16, shape)
        if s.version == 1:
            names = [s.const(scale), s.const(zeros), s.const(8.0), s.const(float(8 - s.whole(0, 3)))]
            return s.add("Trunc", t, *names, domain=DOMAIN, rounding_mode=mode)
        out = scale * 2.0 ** s.whole(0, 3)
        names = [s.const(v) for v in (scale, zeros, 8.0, out, float(s.whole(2, 6)))]
        return s.add("Trunc", t, *names, domain=DOMAIN, rounding_mode=mode, signed=signed, narrow=int(s.chance(0.2)))
    layouts = {2: ["NC"], 3: ["NCW", "NWC"], 4: ["NCHW", "NHWC"]}.get(len(s.shape(t)))
    if layouts is None:
        raise Unfit
    layout = s.pick(*layouts)
    channels = s.shape(t)[layout.index("C")] if s.chance(0.7) else 1
    table = np.sort(s.rng.normal(size=(channels, s.whole(1, 9))) * size_of(s, t), axis=1)
    scale_, bias = (1.0, 0.0) if s.chance(0.4) else (float(s.pick(0.5, 0.25, -0.5)), float(s.pick(-1.0, 0.5)))
    names = [s.const(table)]
    attributes = {"out_dtype": "INT8", "data_layout": layout, "out_scale": scale_, "out_bias": bias}
    return s.add("MultiThreshold", t, *names, domain=DOMAIN, **attributes)


def _quantize_linear(s: Sketch, t: str, plain: bool = False) -> str:
    """To 8 bits. Zero points are even: onnxruntime's fused operators add them before rounding."""
    if s.kind(t) in ("float64", *INTEGER_KINDS):
        t = s.add("Cast", t, to=TensorProto.FLOAT)
    kind = s.pick("int8", "uint8")
    zero = 2 * s.whole(-20, 20) if kind == "int8" else 2 * s.whole(0, 100)
    zero = s.pick(0, 128 if kind == "uint8" else 0, zero)
    per = {"axis": s.whole(1, len(s.shape(t)) - 1)} if not plain and s.chance(0.15) else {}
    form = (s.shape(t)[per["axis"]],) if per else ()
    scale = scale_for(s, t, s.pick(6, 60, 100), form)
    zeros = np.broadcast_to(zero, form) if s.chance(0.5) else zero + 2 * s.rng.integers(0, 5, form)
    codes = s.add("QuantizeLinear", t, s.const(scale, s.kind(t)), s.const(zeros, kind), **per)
    if s.chance(0.1):
        return _bounds(s, codes, lambda shape: integers(s, codes, shape))
    return codes


def dequantized(s: Sketch, t: str, plain: bool = False) -> str:
    kind = s.kind(t)
    if s.nodes and s.nodes[-1].op_type == "QuantizeLinear" and s.chance(0.9):
        attributes = {a.name: a.i for a in s.nodes[-1].attribute}
        return s.add("DequantizeLinear", t, *s.nodes[-1].input[1:], **attributes)
    zero = s.whole(-20, 20) if kind[0] != "u" else s.whole(0, 40)
    if kind in ("int8", "uint8", "int32"):
        zero = 0 if kind == "int32" else zero
        return s.add(
            "DequantizeLinear",
            t,
            s.const(2.0 ** s.whole(-6, 1) if s.powers else s.rng.uniform(0.01, 1)),
            s.const(zero, kind),
        )
    raise Unfit


def ready(s: Sketch, t: str) -> str:
    """The tensor as multiples of a power of two that sums keep exact, with another quantizer where it has none."""
    exact = s.kind(t) == "float32" and fuzz_oracle.is_exact(s.values[t].astype(np.float64))
    if exact and _quantized_last(s, t):
        return t
    if not s.powers:
        raise Unfit
    quantized_tensor = quantized(s, t, s.whole(2, 5), True)
    return dequantized(s, quantized_tensor) if s.kind(quantized_tensor) in INTEGER_KINDS else quantized_tensor


def _quantized_last(s: Sketch, t: str) -> bool:
    """True if a quantizer produces the tensor, or it is a rearrangement of such a tensor."""
    producer = next((n for n in s.nodes if t in n.output), None)
    if producer is None:
        return False
    if producer.op_type in ("IntQuant", "Quant", "BipolarQuant", "Trunc", "MultiThreshold", "DequantizeLinear"):
        return True
    return producer.op_type in (
        "Reshape",
        "Transpose",
        "Flatten",
        "MaxPool",
        "Slice",
        "Pad",
        "Resize",
        "Squeeze",
        "Unsqueeze",
        "Relu",
        "Clip",
        "Concat",
        "Split",
    ) and all(_quantized_last(s, i) for i in producer.input if i in s.values)
