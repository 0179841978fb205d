"""Random graphs of wrapping integer arithmetic, compared with onnx's reference evaluator at the ends of their types.

python tests/fuzz/fuzz_integers.py --seconds 600 --seed 1 --keep findings
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import hlsgen
from hlsgen.diagnostics import HlsgenError
from hlsgen.interpreter import graph as reference

Array = NDArray[Any]
KINDS = ("int8", "uint8", "int16", "uint16", "int32", "uint32")
BYTES = ("int8", "uint8")
FRAMES = 40


@dataclass
class Draw:
    """A graph in the making; `at` has the tensors, by type and shape."""

    rng: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    initializers: list[onnx.TensorProto] = field(default_factory=list)
    at: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def pick(self, of: Any) -> Any:
        return of[int(self.rng.integers(len(of)))]

    def constant(self, array: Array) -> str:
        self.initializers.append(numpy_helper.from_array(array, f"c{len(self.initializers)}"))
        return self.initializers[-1].name

    def number(self, kind: str, shape: tuple[int, ...] = ()) -> str:
        """A constant: an end of the type, a small number, or any."""
        return self.constant(numbers(self.rng, kind, shape))

    def node(self, op: str, inputs: list[str], kind: str, shape: tuple[int, ...], **attrs: Any) -> None:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attrs))
        self.at[name] = kind, shape
        self.used.update(inputs)


def numbers(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Array:
    info = np.iinfo(kind)
    lo, hi = int(info.min), int(info.max)
    ends = [lo, hi, lo + 1, hi - 1, lo // 2, hi // 2, hi // 2 + 1, 0, 1, max(lo, -1)]
    small = [int(n) for n in rng.integers(max(lo, -9), 10, 10)]
    wild = [int(n) for n in rng.integers(lo, hi + 1, 10)]
    pool = np.array([ends, small, wild, [*ends, *small, *wild]][int(rng.integers(4))], np.int64)
    return np.asarray(rng.choice(pool, shape)).astype(kind)


def _add_node(d: Draw, x: str) -> None:
    """A function of one tensor of integers."""
    kind, shape = d.at[x]
    signed = kind.startswith("int")
    axes = [int(n) for n in d.rng.permutation(range(1, len(shape)))[: int(d.rng.integers(1, max(2, len(shape))))]]
    op = d.pick(
        ["Add", "Sub", "Mul", "Max", "Min", "Clip", "Cast", "Compare", "Where", "ReduceSum", "ReduceMax", "ReduceMin"]
        + ["Transpose", "Slice", "Pad", "Concat", "Div", "Mod", "Dequantize", "Reshape"]
        + (["Relu", "Abs", "Neg", "Sign"] if signed else ["Abs"])
        + (["BitwiseAnd", "BitwiseXor", "MatMulInteger", "MaxPool"] if kind in BYTES else [])
    )
    own = d.pick([(), shape[-1:]])
    match op:
        case "Add" | "Sub" | "Mul" | "Max" | "Min" | "BitwiseAnd" | "BitwiseXor":
            sides = [x, d.number(kind, own)]
            d.node(op, sides if d.rng.random() < 0.7 else sides[::-1], kind, shape)
        case "Div" | "Mod":
            divisor = np.maximum(numbers(d.rng, kind, own), 1) if op == "Div" else numbers(d.rng, kind, own)
            d.node(op, [x, d.constant(np.asarray(np.where(divisor == 0, 3, divisor), kind))], kind, shape)
        case "Clip":
            low, high = sorted(int(n) for n in numbers(d.rng, kind, (2,)))
            d.node(op, [x, d.constant(np.array(low, kind)), d.constant(np.array(high, kind))], kind, shape)
        case "Cast":
            to = d.pick([*KINDS, "float32"])
            d.node(
                op,
                [x],
                to,
                shape,
                to=getattr(TensorProto, to.upper().replace("32", "32") if to != "float32" else "FLOAT"),
            )
        case "Compare":
            sides = [x, d.number(kind, own)]
            d.node(d.pick(["Less", "Greater", "Equal", "GreaterOrEqual", "LessOrEqual"]), sides, "bool", shape)
        case "Where":
            d.node("Greater", [x, d.number(kind, own)], "bool", shape)
            d.node("Where", [f"t{len(d.nodes) - 1}", x, d.number(kind, own)], kind, shape)
        case "ReduceSum" | "ReduceMax" | "ReduceMin":
            keeps_axis = int(len(axes) == len(shape) - 1 or d.rng.integers(2))  # an axis is left besides that of frames
            result_shape = tuple(1 if n in axes else s for n, s in enumerate(shape) if keeps_axis or n not in axes)
            d.node(op, [x, d.constant(np.array(axes, np.int64))], kind, result_shape, keepdims=keeps_axis)
        case "Transpose":
            perm = [0, *(int(n) for n in d.rng.permutation(range(1, len(shape))))]
            d.node(op, [x], kind, tuple(shape[n] for n in perm), perm=perm)
        case "Reshape":
            d.node(op, [x, d.constant(np.array([1, -1], np.int64))], kind, (1, int(np.prod(shape))))
        case "Slice":
            ends = [d.constant(np.array([n], np.int64)) for n in (0, (shape[-1] + 1) // 2, -1)]
            d.node(op, [x, *ends], kind, (*shape[:-1], (shape[-1] + 1) // 2))
        case "Pad":
            pads = d.constant(np.array([0] * (len(shape) - 1) + [1] + [0] * (len(shape) - 1) + [2], np.int64))
            d.node(op, [x, pads, d.number(kind)], kind, (*shape[:-1], shape[-1] + 3))
        case "Concat":
            d.node(op, [x, d.number(kind, shape)], kind, (*shape[:-1], shape[-1] * 2), axis=-1)
        case "Dequantize":
            if kind in ("int8", "uint8", "int16", "uint16", "int32"):
                d.node("DequantizeLinear", [x, d.constant(np.float32(2.0 ** d.rng.integers(-6, 1)))], "float32", shape)
        case "MatMulInteger":
            d.node(op, [x, d.number(d.pick(BYTES), (shape[-1], 3))], "int32", (*shape[:-1], 3))
        case "MaxPool":
            if len(shape) > 2:
                d.node(op, [x], kind, (*shape[:-1], shape[-1] - 1), kernel_shape=[1] * (len(shape) - 3) + [2])
        case _:
            d.node(op, [x], kind, shape)


def _real(d: Draw, x: str) -> None:
    """A function of a tensor of floats: mostly a quantizer."""
    _, shape = d.at[x]
    op = d.pick(["Quantize", "Quantize", "Quantize", "Mul", "Relu", "Clip"])
    match op:
        case "Quantize":
            kind = d.pick(["int8", "uint8", "int16", "uint16"])
            scale = np.float32(d.pick([8.0, 5.7, 100.0, 2.0**20, 2.0**8]))
            d.node("QuantizeLinear", [x, d.constant(scale), d.constant(np.array(d.pick([0, 3, 7]), kind))], kind, shape)
        case "Mul":
            d.node(op, [x, d.constant(np.float32(d.pick([0.5, -1.0, 0.3])))], "float32", shape)
        case "Clip":
            d.node(op, [x, d.constant(np.float32(-1000)), d.constant(np.float32(99.5))], "float32", shape)
        case _:
            d.node(op, [x], "float32", shape)


def _truth(d: Draw, x: str) -> None:
    """A function of a tensor of booleans."""
    _, shape = d.at[x]
    values = [n for n, (kind, own) in d.at.items() if own == shape and kind in KINDS]
    op = d.pick(["Where", "Where", "Cast", "Not"] if values else ["Cast", "Not"])
    if op == "Where":
        operand = d.pick(values)
        kind = d.at[operand][0]
        alike = [n for n in values if d.at[n][0] == kind]
        d.node(op, [x, operand, d.pick([d.pick(alike), d.number(kind)])], kind, shape)
    elif op == "Cast":
        d.node(op, [x], "int32", shape, to=TensorProto.INT32)
    else:
        d.node(op, [x], "bool", shape)


def _two(d: Draw) -> None:
    """A function of two tensors of a type and a shape."""
    pairs = [(a, b) for a in d.at for b in d.at if a != b and d.at[a] == d.at[b]]
    if not pairs:
        return
    a, b = d.pick(pairs)
    kind, shape = d.at[a]
    relations = ["Less", "Greater", "Equal"]
    op = d.pick(
        [*["Add", "Sub", "Mul"] * 2, "Max", "Min", *relations, "Concat"]
        if kind != "bool"
        else ["And", "Or", "Xor", "Equal"]
    )
    if op == "Concat":
        d.node(op, [a, b], kind, (*shape[:-1], shape[-1] * 2), axis=-1)
    else:
        d.node(op, [a, b], "bool" if op in relations else kind, shape)


def network(seed: int, largest: int = 7) -> onnx.ModelProto:
    """Random graph of integer tensors and nodes. Its outputs are the tensors that no node consumes."""
    d = Draw(np.random.default_rng(seed))
    shape = d.pick([(1, 3), (1, 2, 3), (1, 2, 2, 3), (1, 4)])
    kind = d.pick(KINDS)
    ends = {
        name: (kind if d.rng.random() < 0.8 else d.pick(KINDS), shape) for name in "abc"[: int(d.rng.integers(1, 4))]
    }
    d.at.update(ends)
    for _ in range(int(d.rng.integers(2, largest + 1))):
        free = [n for n in d.at if n not in d.used]
        x = d.pick(free if free and d.rng.random() < 0.7 else list(d.at))
        if d.rng.random() < 0.4:
            _two(d)
        elif d.at[x][0] == "float32":
            _real(d, x)
        elif d.at[x][0] == "bool":
            _truth(d, x)
        else:
            _add_node(d, x)
    outs = [n for n in d.at if n not in d.used and n not in ends] or [n for n in d.at if n not in ends][-1:] or ["a"]
    if outs == ["a"]:
        return network(seed + 1_000_003, largest)

    def info(name: str) -> onnx.ValueInfoProto:
        kind, shape_of_tensor = d.at[name]
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(kind)), shape_of_tensor)

    sources = [n for n in ends if n in d.used]
    if not sources:
        return network(seed + 1_000_003, largest)
    graph = helper.make_graph(d.nodes, "g", [info(n) for n in sources], [info(n) for n in outs], d.initializers)
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 21)])


@dataclass(frozen=True)
class Outcome:
    """`kind`: equal, refused, undefined (numpy has no result), or a finding: differs, crash, uncertified."""

    kind: str
    text: str = ""

    @property
    def is_finding(self) -> bool:
        return self.kind not in ("equal", "refused", "undefined")


def judged(model: onnx.ModelProto, seed: int, simulate: bool = False) -> Outcome:
    """Outcome of a graph, on inputs that are mostly the ends of their types."""
    rng = np.random.default_rng([seed, 7])
    x = {end.name: numbers_of(rng, end) for end in model.graph.input}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.onnx"
        onnx.save(model, path)
        with np.errstate(all="ignore"):
            try:
                run = ReferenceEvaluator(model)
                expected = [
                    np.concatenate(parts)
                    for parts in zip(
                        *(run.run(None, {k: v[n : n + 1] for k, v in x.items()}) for n in range(FRAMES)), strict=True
                    )
                ]
            except Exception as error:
                return Outcome("undefined", repr(error))
        try:
            graph = hlsgen.check(path).graph
            packed = (
                reference.pack_inputs(graph, x) if graph.inputs else reference.frames_of(graph, next(iter(x.values())))
            )
            codes = reference.run_output(graph, reference.encode_input(graph, packed))
            has_several_outputs = len(model.graph.output) > 1
            actual = (
                [*reference.named_outputs(graph, codes).values()]
                if has_several_outputs
                else [reference.decode_output(graph, codes)]
            )
        except HlsgenError as error:
            codes = sorted({d.code for d in error.diagnostics if d.severity == "error"})
            return Outcome("crash" if {"HG098", "HG099"} & set(codes) else "refused", str(error))
        except Exception:
            return Outcome("crash", traceback.format_exc())
        outcome = compared(model, actual, expected)
        return _simulated(path) if simulate and not outcome.is_finding else outcome


def _simulated(path: Path) -> Outcome:
    """Built, certified, and verified in Verilator."""
    try:
        hlsgen.build(path, path.parent / "build")
        proof = hlsgen.certify(path.parent / "build")
        if not proof.ok:
            return Outcome("uncertified", "\n".join(map(str, proof.problems)))
        verdict = hlsgen.verify(path.parent / "build", ["verilator"], 3)
        return Outcome("equal" if verdict.ok else "differs", f"in simulation: {verdict}"[:2000])
    except Exception:
        return Outcome("crash", traceback.format_exc())


def compared(model: onnx.ModelProto, actual: list[Array], expected: list[Array]) -> Outcome:
    for end, result, right in zip(model.graph.output, actual, expected, strict=True):
        if result.dtype != right.dtype or result.shape != right.shape:
            return Outcome("differs", f"{end.name}: {result.dtype} {result.shape}, wanted {right.dtype} {right.shape}")
        wrong = ~((result == right) | ((result != result) & (right != right)))
        if wrong.any():
            return Outcome(
                "differs",
                f"{end.name}: {int(wrong.sum())} of {wrong.size}, {result[wrong][:4]}, wanted {right[wrong][:4]}",
            )
    return Outcome("equal")


def numbers_of(rng: np.random.Generator, end: onnx.ValueInfoProto) -> Array:
    kind = helper.tensor_dtype_to_np_dtype(end.type.tensor_type.elem_type).name
    shape = tuple(k.dim_value for k in end.type.tensor_type.shape.dim)
    return np.concatenate([numbers(rng, kind, shape) for _ in range(FRAMES)])


def main() -> int:
    parser = argparse.ArgumentParser(description="Random graphs of integers against onnx's reference evaluator.")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first graph; the next ones follow")
    parser.add_argument("--largest", type=int, default=7, help="nodes, at most")
    parser.add_argument("--simulate", type=float, default=0.01, help="share of graphs that are certified and simulated")
    parser.add_argument("--keep", type=Path, default=Path("findings"), help="folder for models that differ")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    seed, start = args.seed, time.monotonic()
    while time.monotonic() - start < args.seconds:
        model = network(seed, args.largest)
        outcome = judged(model, seed, np.random.default_rng([seed, 1]).random() < args.simulate)
        counts[outcome.kind] += 1
        if outcome.kind != "equal":
            print(f"seed {seed}: {outcome.kind}: {outcome.text.strip()}", flush=True)
        if outcome.is_finding:
            args.keep.mkdir(parents=True, exist_ok=True)
            onnx.save(model, args.keep / f"integers_{seed}.onnx")
        seed += 1
    print(f"seeds {args.seed} to {seed - 1}: " + ", ".join(f"{n} {kind}" for kind, n in counts.most_common()))
    return int(any(counts[kind] for kind in ("differs", "crash", "uncertified")))


if __name__ == "__main__":
    sys.exit(main())
