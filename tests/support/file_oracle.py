"""Holds a Model against its file, one node at a time, by executors that are not ours.

Every node of the file is run by itself, by qonnx's own functions, onnxruntime or onnx.reference, on the tensors that
the interpreter of the Model has for its inputs; the result must be the tensor that it has for the output. So a
rounding that differs stays where it is, and each step is held on its own.

It shares nothing with `hlsgen.simulation.file_oracle`, which `verify` uses, on purpose: that compares behind
quantizers and may explain a difference, this holds every node, also float ones, and explains nothing.

What a linear node computes is exact by contract. Its node runs on the integers (values divided by their scale), where
floats are exact too; the sum times the scales is rounded once, as a Fraction.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument, InvalidGraph, NotImplemented
from qonnx.custom_op.registry import getCustomOp

from hlsgen.interpreter.model import interpret
from hlsgen.ir import Model

Array = NDArray[Any]
QUANTIZERS = frozenset(["Quant", "IntQuant", "BipolarQuant", "Trunc", "DequantizeLinear", "FloatQuant"])
LINEAR = frozenset(["MatMul", "Gemm", "Conv", "ConvTranspose"])
POOLS = frozenset(["AveragePool", "GlobalAveragePool", "ReduceMean", "ReduceSum"])
#: What the executors cannot do with one node alone.
UNABLE = frozenset(["Im2Col"])
#: The real function, rounded once.
ROUNDED_ONCE = frozenset("Exp Log Tanh Sigmoid Erf Gelu Mish Celu Elu Selu Softplus Softsign Reciprocal Pow".split())
QONNX = ("qonnx.custom_op.general", "finn.custom_op.general", "onnx.brevitas", "finn", "qonnx.custom_op.channels_last")


@dataclass
class Report:
    """Nodes that were held, by operator; those that could not be, with the reason; those that differ."""

    held: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    differing: list[str] = field(default_factory=list)


@dataclass
class Known:
    """A tensor: values (frames, *shape); `grid`: values = fl(whole * scale), scale of the tensor's rank or ().

    `is_sum`: of an Add or Sub of computed tensors. `many_scales`: of a quantizer with a float scale for each channel.
    """

    value: Array
    grid: tuple[Array, Array] | None = None
    is_sum: bool = False
    many_scales: bool = False


def stimuli(model: Model, frames: int = 3, seed: int = 0) -> Array:
    """Inputs (frames, *input_shape) of the model's dtype: whole multiples of 1/64 or integers, extremes among them."""
    rng, dtype = np.random.default_rng(seed), np.dtype(model.input_dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        x = rng.integers(limits.min, limits.max, (frames, *model.input_shape), dtype, endpoint=True)
        x[0].flat[:2] = limits.min, limits.max
        return x
    return np.asarray(np.round(rng.standard_normal((frames, *model.input_shape)) * 96) / 64).astype(dtype)


def hold(proto: onnx.ModelProto, model: Model, x: Array) -> Report:
    """Every node of the file against the steps of the Model that have its name. Two-input models are not held."""
    return _Walk(proto, model, x).run()


class _Walk:
    def __init__(self, proto: onnx.ModelProto, model: Model, x: Array) -> None:
        self.proto, self.model, self.report = proto, model, Report()
        self.opsets = {o.domain: o.version for o in proto.opset_import}
        values = interpret(model, x)
        self.tensors: dict[str, Known | None] = {model.input_name: Known(x, _grid(x))}
        self.constants = {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer}
        self.grids: dict[str, tuple[Array, Array]] = {}
        self.fused = _fused(proto)
        self.results = {s.name: v.value for s, v in zip(model.steps, values[1:], strict=True)}
        self.output = values[-1].value

    def run(self) -> Report:
        for node in self.proto.graph.node:
            if all(name in self.constants for name in node.input if name):
                self._constant(node)
            elif not any(name in self.tensors for name in node.input):
                continue  # not on the way from the input
            else:
                self._held(node)
        end = self.tensors.get(self.model.output_name)
        if end is not None and not _same(end.value.reshape(self.output.shape), self.output):
            self.report.differing.append("the output is not that of the last node")
        return self.report

    def _constant(self, node: onnx.NodeProto) -> None:
        arrays = [self.constants[name] for name in node.input if name]
        outputs = self._by_oracle(node, arrays)
        self.constants.update(zip(node.output, outputs, strict=False))
        self._note_grid(node, outputs[0], arrays)

    def _note_grid(self, node: onnx.NodeProto, result: Array, arrays: list[Array]) -> None:
        """Integers and scale of a constant behind a quantizer, through transposes and reshapes of it."""
        known = self.grids.get(node.input[0]) if node.input else None
        if node.op_type in QUANTIZERS - {"FloatQuant"}:
            scale = np.asarray(arrays[1], np.float64)
            if node.op_type == "DequantizeLinear" and scale.ndim == 1 and scale.size > 1:
                axis = next((a.i for a in node.attribute if a.name == "axis"), 1) % result.ndim
                scale = scale.reshape([-1 if i == axis else 1 for i in range(result.ndim)])
            self.grids[node.output[0]] = np.round(result.astype(np.float64) / scale), scale
        elif node.op_type == "Transpose" and known:
            perm = next((list(a.ints) for a in node.attribute if a.name == "perm"), None)
            scale = known[1].transpose(perm) if known[1].ndim == result.ndim else known[1]
            self.grids[node.output[0]] = known[0].transpose(perm), scale

    def _held(self, node: onnx.NodeProto) -> None:
        name, kind = node.name or f"{node.op_type} -> {node.output[0]}", node.op_type
        data = [self.tensors.get(i) for i in node.input if i in self.tensors]
        own = next((self.results[n] for n in (f"{name} (rescaled)", name) if n in self.results), None)
        used = [o for o in node.output if o]
        for output in used:
            self.tensors[output] = None
        if (
            any(d is None for d in data)
            or len(used) > 1
            or name in self.fused
            or any(i and i not in self.tensors and i not in self.constants for i in node.input)
        ):
            self.report.left[kind] += 1
            if own is not None and len(used) == 1:
                self.tensors[used[0]] = Known(own, _grid(own))
            return
        frames = len(next(d for d in data if d is not None).value)
        wanted, step, is_sum = self._wanted(node, frames)
        if wanted is None:
            self.report.left[kind] += 1
            if own is not None:
                self.tensors[used[0]] = Known(own, _grid(own))
            return
        first = data[0]
        assert first is not None
        if own is None and kind in (
            "Identity",
            "Dropout",
            "Reshape",
            "Flatten",
            "Squeeze",
            "Unsqueeze",
            "Cast",
            "Slice",
        ):
            own = first.value.reshape(wanted[0].shape)  # the import leaves out what changes nothing
        if own is None or own.shape != wanted[0].shape:
            self.report.left[f"{kind} (fused)"] += 1
            return
        if any(_same(w, own) for w in wanted):
            self.report.held[kind] += 1
        else:
            wrong = wanted[0] != own
            at = tuple(np.argwhere(wrong)[0])
            self.report.differing.append(
                f"{name} ({kind}): {wrong.sum()} of {wrong.size}; {at}: file {wanted[0][at]!r}, model {own[at]!r}"
            )
        scale = self.constants.get(node.input[1], np.ones(1)) if kind in QUANTIZERS else np.ones(1)
        many = (scale.size > 1 and not _is_power(scale)) or (
            kind not in QUANTIZERS | {"MultiThreshold"} and any(d.many_scales for d in data if d)
        )
        hints = [*([] if step is None else [step]), *(d.grid[1] for d in data if d and d.grid)]
        found = None if many else _grid(own, hints)
        if kind == "MultiThreshold" and step is not None:  # its bias, a multiple of the step, is added in float32
            found = _rounded_multiples(own, step) or found
        if kind in ("Reshape", "Flatten") and first.grid is not None and first.grid[1].size == 1:
            found = first.grid[0].reshape(own.shape), first.grid[1]
        self.tensors[used[0]] = Known(own, found, is_sum, many)

    def _wanted(self, node: onnx.NodeProto, frames: int) -> tuple[list[Array] | None, Any, bool]:
        """What the node may give; the scale of its codes; whether it is a sum of computed tensors."""
        arrays = [self._frames(i, frames) for i in node.input if i]
        if node.op_type in LINEAR and arrays[0][0].dtype.kind == "f":
            return self._linear(node, frames), None, False
        if node.op_type in UNABLE:
            return None, None, False
        direct = np.stack([self._by_oracle(node, list(parts))[0] for parts in zip(*arrays, strict=True)])
        if node.op_type in QUANTIZERS and self.constants.get(node.input[1], np.zeros(2)).size == 1:
            scale = np.asarray(self.constants[node.input[4 if node.op_type == "Trunc" and len(node.input) > 5 else 1]])
            return [direct], scale.reshape(()), False
        if node.op_type == "MultiThreshold":
            out_scale = next((a.f for a in node.attribute if a.name == "out_scale"), 1.0)
            return [direct], np.float32(out_scale).reshape(()), False
        given = [self.tensors[i] for i in node.input if i in self.tensors]
        if node.op_type in ("Add", "Sub") and len(given) == 2 and direct.dtype == np.float32:
            left, right = given
            assert left is not None
            assert right is not None
            if left.grid and right.grid and (left.is_sum or right.is_sum or _is_fine(left.grid[1], right.grid[1])):
                whole, scale = _sum(left.grid, right.grid, 1 if node.op_type == "Add" else -1)
                return [direct, _once(whole, scale)], scale, True
            return [direct], None, True
        if node.op_type in POOLS:
            first = given[0]
            assert first is not None
            if first.grid is None or not _is_power(first.grid[1]):
                return None, None, False
        return [direct], None, False

    def _frames(self, name: str, frames: int) -> list[Array]:
        known = self.tensors.get(name)
        return [self.constants[name]] * frames if known is None else list(known.value)

    def _linear(self, node: onnx.NodeProto, frames: int) -> list[Array] | None:
        """The exact sum, rounded once, and what the node adds to it."""
        data, weight = self.tensors.get(node.input[0]), self.grids.get(node.input[1])
        if weight is None and node.input[1] in self.constants:
            weight = _multiples(self.constants[node.input[1]], None)
        if data is None or data.grid is None or weight is None:
            return None
        (x, sx), (w, sw) = data.grid, weight
        if sx.size > 1 or np.abs(x).max(initial=0) * np.abs(w).sum() >= 1 << 53:
            return None
        bare = onnx.NodeProto()
        bare.CopyFrom(node)
        del bare.input[2:]
        kept = [a for a in node.attribute if a.name not in ("alpha", "beta")]
        del bare.attribute[:]
        bare.attribute.extend(kept)
        if node.domain in QONNX:
            exact = [_by_qonnx(bare, [f.astype(np.float32), w.astype(np.float32)], self.opsets) for f in x]
        elif node.op_type.startswith("Conv"):  # onnx.reference pads some of them wrongly; float32 is exact below 2^24
            if np.abs(x).max(initial=0) * np.abs(w).sum() >= 1 << 24:
                return None
            try:
                exact = [_by_runtime(bare, [f.astype(np.float32), w.astype(np.float32)], self.opsets)[0] for f in x]
            except InvalidArgument:  # an output_padding of the stride and more
                return None
        else:
            exact = [_by_reference(bare, [frame, w], self.opsets)[0] for frame in x]
        total = np.stack(exact).astype(np.float64)
        scale = sx * (sw if sw.size == 1 else self._of_outputs(node, sw, total.ndim - 1))
        real = _once(total, np.asarray(scale))
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type == "Gemm" and attributes.get("alpha", 1.0) != 1:
            real = real * np.float32(attributes["alpha"])
        if len(node.input) > 2 and node.input[2]:
            bias = self.constants[node.input[2]]
            if node.op_type == "Gemm":
                bias = bias * np.float32(attributes.get("beta", 1.0))
            real = real + (self._of_outputs(node, bias, real.ndim - 1) if node.op_type.startswith("Conv") else bias)
        return [real]

    def _of_outputs(self, node: onnx.NodeProto, values: Array, rank: int) -> Array:
        """One value for each output, along the axis of these."""
        first = node.op_type.startswith("Conv") and node.domain not in QONNX
        groups = next((a.i for a in node.attribute if a.name == "group"), 1)
        if node.op_type == "ConvTranspose" and values.ndim > 1:
            values = np.tile(values.reshape(-1), groups)  # each group has the same outputs
        return values.reshape(-1, *(1,) * (rank - 2)) if first else values.reshape(-1)

    def _by_oracle(self, node: onnx.NodeProto, arrays: list[Array]) -> list[Array]:
        """The node alone, in the executor that has the operator and the meaning of the contract."""
        if node.domain in QONNX or node.op_type in ("Quant", "IntQuant"):
            return [_by_qonnx(node, arrays, self.opsets)]
        if node.op_type in ROUNDED_ONCE and arrays[0].dtype.kind == "f":
            wide = [a.astype(np.float64) for a in arrays]
            return [r.astype(arrays[0].dtype) for r in _by_reference(node, wide, self.opsets)]
        if node.op_type in ("Constant", "Softmax") or any(
            a.dtype in (np.float16,) or a.dtype.itemsize > 8 for a in arrays
        ):
            return _by_reference(node, arrays, self.opsets)
        try:
            return _by_runtime(node, arrays, self.opsets)
        except (InvalidGraph, NotImplemented):  # types that onnxruntime has no kernel for
            return _by_reference(node, arrays, self.opsets)


def _fused(proto: onnx.ModelProto) -> set[str]:
    """Nodes between two quantized tensors that onnxruntime computes at once, with a rounding of its own."""
    makers = {o: n for n in proto.graph.node for o in n.output}
    users: dict[str, list[onnx.NodeProto]] = {}
    for node in proto.graph.node:
        for name in node.input:
            users.setdefault(name, []).append(node)
    found = set()
    for node in proto.graph.node:
        before, after = makers.get(node.input[0]) if node.input else None, users.get(node.output[0], [])
        around = [n.op_type for n in (before, *after[:1]) if n is not None]
        fuses = node.op_type in ("AveragePool", "GlobalAveragePool", "Softmax")
        if fuses and before is not None and around == ["DequantizeLinear", "QuantizeLinear"]:
            found |= {before.name, node.name, after[0].name}
    return found


# --------------------------------------------------------------------------- executors


def _by_qonnx(node: onnx.NodeProto, arrays: list[Array], opsets: dict[str, int]) -> Array:
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.domain = node.domain if node.domain in QONNX else QONNX[0]
    if node.op_type in ("Quant", "IntQuant"):  # the defaults of the document, which the code does not have
        given = {a.name for a in node.attribute}
        defaults = {"signed": 1, "narrow": 0, "rounding_mode": "ROUND"}
        copy.attribute.extend(helper.make_attribute(k, v) for k, v in defaults.items() if k not in given)
    names = [i for i in node.input if i]
    context = {node.output[0]: arrays[0], **dict(zip(names, arrays, strict=True))}  # some ask for the output's rank
    version = opsets.get("" if "channels_last" in node.domain else node.domain, 1)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        function = getCustomOp(copy, onnx_opset_version=version)
        function.execute_node(context, helper.make_graph([copy], "g", [], []))
    return np.asarray(context[node.output[0]])


@lru_cache(maxsize=2000)
def _session(text: bytes) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    onnxruntime.set_default_logger_severity(4)
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(text, options, providers=["CPUExecutionProvider"])


def _single(
    node: onnx.NodeProto, arrays: list[Array], opsets: dict[str, int]
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    names = list(dict.fromkeys(i for i in node.input if i))
    feeds = dict(zip([i for i in node.input if i], arrays, strict=True))
    ins = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(feeds[n].dtype), feeds[n].shape) for n in names
    ]
    outs = [helper.make_empty_tensor_value_info(o) for o in node.output if o]
    graph = helper.make_graph([node], "g", ins, outs)
    versions = [helper.make_opsetid(d, v) for d, v in ({"": 13} | opsets | {"com.microsoft": 1}).items()]
    return helper.make_model(graph, opset_imports=versions, ir_version=10), feeds


def _by_runtime(node: onnx.NodeProto, arrays: list[Array], opsets: dict[str, int]) -> list[Array]:
    made, feeds = _single(node, arrays, opsets)
    return [np.asarray(v) for v in _session(made.SerializeToString()).run(None, feeds)]


def _by_reference(node: onnx.NodeProto, arrays: list[Array], opsets: dict[str, int]) -> list[Array]:
    made, feeds = _single(node, arrays, opsets)
    with np.errstate(all="ignore"):
        return [np.asarray(v) for v in ReferenceEvaluator(made).run(None, feeds)]  # type: ignore[union-attr]


# --------------------------------------------------------------------------- exact numbers


def _same(left: Array, right: Array) -> bool:
    return left.shape == right.shape and bool(((left == right) | ((left != left) & (right != right))).all())


def _is_power(scale: Array) -> bool:
    return bool((np.frexp(np.asarray(scale, np.float64))[0] == 0.5).all())


def _multiples(values: Array, scale: Array | None) -> tuple[Array, Array] | None:
    """(whole, scale) with values = fl(whole * scale); without a scale the largest power of two, if short."""
    wide = np.asarray(values, np.float64)
    if not np.isfinite(wide).all():
        return None
    if scale is None:
        unit = next((2.0**-n for n in range(-4, 25) if (wide * 2.0**n == np.round(wide * 2.0**n)).all()), None)
        scale = None if unit is None else np.asarray(unit)
    if scale is None:
        return None
    for finer in (1, 2, 4, 8):
        whole = np.round(wide / np.float64(scale) * finer)
        if (whole.astype(np.float32) * np.float32(np.float64(scale) / finer) == values).all():
            return whole, np.asarray(np.float64(scale) / finer)
    return None


def _grid(values: Array, scales: list[Array] | None = None) -> tuple[Array, Array] | None:
    """By the first of these scales that fits, else by a power of two."""
    if values.dtype.kind in "iub":
        return values.astype(np.float64), np.asarray(1.0)
    for scale in scales or []:
        if scale.size == 1 and (found := _multiples(values, scale)):
            return found
    found = _multiples(values, None)
    return found if found is not None and np.abs(found[0]).max(initial=0) < 1 << 24 else None


def _rounded_multiples(values: Array, scale: Array) -> tuple[Array, Array] | None:
    """Integers of values that are multiples of the scale but for a rounding of each of two float32 operations."""
    integers = np.round(values.astype(np.float64) / scale)
    reach = 2.0**-23 * (np.abs(values).max(initial=0) + 2 * np.abs(scale * integers).max(initial=0))
    return (integers, scale) if (np.abs(values - integers * scale) <= reach).all() else None


def _is_fine(left: Array, right: Array) -> bool:
    """Whether two scales are small whole multiples of one number: then sums are exact by contract."""
    ratio = Fraction(float(left)) / Fraction(float(right))
    return max(ratio.numerator, ratio.denominator) <= 256


def _sum(left: tuple[Array, Array], right: tuple[Array, Array], sign: int) -> tuple[Array, Array]:
    a, b = (Fraction(float(side[1])) for side in (left, right))
    unit = Fraction(np.gcd(a.numerator * b.denominator, b.numerator * a.denominator), a.denominator * b.denominator)
    return left[0] * float(a / unit) + sign * right[0] * float(b / unit), np.asarray(float(unit))


def _once(whole: Array, scale: Array) -> Array:
    """whole * scale rounded once to float32; scale broadcasts to a frame."""
    every = np.broadcast_to(scale, whole.shape)
    pairs = np.stack([whole.ravel(), every.ravel()], axis=1)
    different, place = np.unique(pairs, axis=0, return_inverse=True)
    real = [_nearest(Fraction(float(w)) * Fraction(float(s))) for w, s in different]
    return np.array(real, np.float32)[place.ravel()].reshape(whole.shape)


def _nearest(number: Fraction) -> np.float32:
    """By the definition: of the float32 numbers around it, the one that is nearest; of two, the even one."""
    guess = np.float32(float(number))
    around = [np.nextafter(guess, np.float32(-np.inf)), guess, np.nextafter(guess, np.float32(np.inf))]
    return min(around, key=lambda f: (abs(Fraction(float(f)) - number), int(f.view(np.int32)) % 2))
