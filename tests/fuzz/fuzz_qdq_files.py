"""Random QDQ files, whole, in a default session of onnxruntime, against the integers of a build.

    python tests/fuzz/fuzz_qdq_files.py --seconds 600 --seed 1 --keep findings

Files are complete, and no option changes the fusions of onnxruntime. The files vary everything that affects fusions:
signs, zero points, constants, DequantizeLinear with several users, and quantized tensors at graph ends. They also
contain consecutive pairs of quantizers, with and without data movement in between, and use all opsets from 13.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import hlsgen
from hlsgen.diagnostics import HlsgenError

Array = NDArray[Any]
KINDS = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8}
OPSETS = range(13, 27)
FRAMES = 24


@dataclass
class QdqFile:
    """A graph under construction. `shapes`: of all tensors. `quantized`: names (scale, zero point) by code tensor."""

    rng: np.random.Generator
    kind: str
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    quantized: dict[str, tuple[str, str]] = field(default_factory=dict)
    reals: dict[str, str] = field(default_factory=dict)

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def pick(self, choices: Sequence[Any]) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def constant(self, value: Any, kind: str = "float32") -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, kind), name))
        self.shapes[name] = np.shape(value)
        return name

    def node(self, op: str, *inputs: str, shape: tuple[int, ...] | None = None, **attributes: Any) -> str:
        """Adds a node. Returns its output, of the first input's shape if no other is named."""
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        self.shapes[name] = self.shapes[inputs[0]] if shape is None else shape
        return name

    def codes(self, real: str, like: str | None = None) -> str:
        """The quantized tensor, with its own scale and zero point or the parameters of the tensor `like`."""
        if like is None:
            low, high = (-100, 100) if self.kind == "int8" else (40, 215)
            zero = 0 if self.chance(0.3) and self.kind == "int8" else int(self.rng.integers(low, high))
            scale = self.rng.choice([0.5, 1.0, 2.0]) / 32 if self.chance(0.3) else self.rng.uniform(0.01, 0.06)
            names = self.constant(scale), self.constant(zero, self.kind)
        else:
            names = self.quantized[like]
        name = self.node("QuantizeLinear", real, *names)
        self.quantized[name] = names
        return name

    def real(self, codes: str) -> str:
        """The dequantized codes, from a new node or from an earlier user's node."""
        if codes not in self.reals or self.chance(0.6):
            self.reals[codes] = self.node("DequantizeLinear", codes, *self.quantized[codes])
        return self.reals[codes]

    def weights(self, shape: tuple[int, ...], fan_in: int, axis: int) -> str:
        kind = self.pick([*KINDS]) if self.kind == "uint8" else "int8"
        rows = shape[axis]
        per_channel = self.chance(0.3)
        scale = self.rng.uniform(0.5, 1.5, rows if per_channel else ()) / (60 * np.sqrt(fan_in))
        zero = np.zeros(np.shape(scale)) if kind == "int8" else np.full(np.shape(scale), 128)
        low, high = (-127, 128) if kind == "int8" else (0, 256)
        values = self.constant(self.rng.integers(low, high, shape), kind)
        return self.node("DequantizeLinear", values, self.constant(scale), self.constant(zero, kind), axis=axis)

    def bias(self, codes: str, weight: str, rows: int) -> str:
        """int32 codes with the product of the scales of data and weights."""
        stored = {c.name: numpy_helper.to_array(c) for c in self.constants}
        maker = next(n for n in self.nodes if n.output[0] == weight)
        scale = np.float32(stored[self.quantized[codes][0]]) * np.broadcast_to(stored[maker.input[1]], rows)
        zero = self.constant(np.zeros(rows), "int32")
        values = self.constant(self.rng.integers(-3000, 3000, rows), "int32")
        return self.node("DequantizeLinear", values, self.constant(scale), zero, axis=0)


# --------------------------------------------------------------------------- steps: codes to codes


def layer(f: QdqFile, t: str) -> str:
    shape, rows = f.shapes[t], int(f.rng.integers(1, 5))
    if len(shape) == 4:
        weight = f.weights((rows, shape[1], 1, 1), shape[1], 0)
        extra = [f.bias(t, weight, rows)] if f.chance(0.6) else []
        return f.codes(after(f, f.node("Conv", f.real(t), weight, *extra, shape=(1, rows, *shape[2:]))))
    weight = f.weights((shape[-1], rows), shape[-1], 1)
    if len(shape) == 2 and f.chance(0.6):
        extra = [f.bias(t, weight, rows)] if f.chance(0.7) else []
        return f.codes(after(f, f.node("Gemm", f.real(t), weight, *extra, shape=(1, rows))))
    return f.codes(after(f, f.node("MatMul", f.real(t), weight, shape=(*shape[:-1], rows))))


def after(f: QdqFile, real: str) -> str:
    """Sometimes a rectifier between an operator and its quantizer."""
    if f.chance(0.25):
        return f.node("Relu", real)
    if f.chance(0.08):
        return f.node("Clip", real, f.constant(0.0), f.constant(1.5))
    return real


def joint(f: QdqFile, t: str) -> str:
    """Two tensors of codes, a tensor twice, or a tensor and a constant that is quantized or not."""
    op = f.pick(["Add", "Mul"])
    same_shape = [name for name in f.quantized if f.shapes[name] == f.shapes[t]]
    draw = f.rng.random()
    if draw < 0.6:
        inputs = [f.real(t), f.real(f.pick(same_shape))]
    else:
        shape = f.pick([(), f.shapes[t][-1:], f.shapes[t]])
        if draw < 0.85:
            low, high = (-128, 128) if f.kind == "int8" else (0, 256)
            values = f.constant(f.rng.integers(low, high, shape), f.kind)
            scale, zero = f.constant(f.rng.uniform(0.01, 0.04)), f.constant(f.rng.integers(low, high), f.kind)
            inputs = [f.real(t), f.node("DequantizeLinear", values, scale, zero)]
        else:
            inputs = [f.real(t), f.constant(f.rng.integers(-32, 32, shape) / 16)]
    if f.chance(0.5):
        inputs.reverse()
    return f.codes(after(f, f.node(op, *inputs, shape=f.shapes[t])))


def function(f: QdqFile, t: str) -> str:
    kind = f.pick(["Relu", "LeakyRelu", "Clip", "Softmax", "Sigmoid"])
    if kind == "Clip":
        return f.codes(f.node("Clip", f.real(t), f.constant(-1.0), f.constant(2.0)))
    attributes = {"LeakyRelu": {"alpha": 0.25}, "Softmax": {"axis": -1}}.get(kind, {})
    return f.codes(f.node(kind, f.real(t), **attributes))


def move(f: QdqFile, t: str) -> str:
    """Data moved between quantizers of the same numbers, mostly, or of others."""
    shape = f.shapes[t]
    kind = f.pick(["Transpose", "Reshape", "MaxPool", "Concat", "Slice"])
    like = t if f.chance(0.7) else None
    if kind == "Transpose" and len(shape) > 2:
        order = [0, *(f.rng.permutation(len(shape) - 1) + 1).tolist()]
        return f.codes(f.node("Transpose", f.real(t), shape=tuple(shape[k] for k in order), perm=order), like)
    if kind == "MaxPool" and len(shape) == 4 and min(shape[2:]) > 1:
        new_shape = (*shape[:2], shape[2] - 1, shape[3] - 1)
        return f.codes(f.node("MaxPool", f.real(t), shape=new_shape, kernel_shape=[2, 2]), like)
    if kind == "Concat":
        same_shape = [name for name in f.quantized if f.shapes[name] == shape]
        inputs = [f.real(t), f.real(f.pick(same_shape))]
        return f.codes(f.node("Concat", *inputs, shape=(1, 2 * shape[1], *shape[2:]), axis=1), like)
    if kind == "Slice" and shape[1] > 1:
        bounds = [f.constant([value], "int64") for value in (0, 1, 1)]
        return f.codes(f.node("Slice", f.real(t), *bounds, shape=(1, 1, *shape[2:])), like)
    new_shape = (1, int(np.prod(shape)))
    return f.codes(f.node("Reshape", f.real(t), f.constant(new_shape, "int64"), shape=new_shape), like)


def pool(f: QdqFile, t: str) -> str:
    shape = f.shapes[t]
    if len(shape) != 4 or min(shape[2:]) < 2:
        return move(f, t)
    if f.chance(0.5):
        return f.codes(f.node("GlobalAveragePool", f.real(t), shape=(1, shape[1], 1, 1)))
    new_shape = (1, shape[1], shape[2] - 1, shape[3] - 1)
    return f.codes(f.node("AveragePool", f.real(t), shape=new_shape, kernel_shape=[2, 2]))


def requantized(f: QdqFile, t: str) -> str:
    """A second pair of quantizers after the first, with an operator between them or none."""
    real = f.real(t)
    if f.chance(0.4):
        real = f.node("Identity", real)
    return f.codes(real, t if f.chance(0.4) else None)


STEPS = (layer, layer, joint, joint, joint, function, function, move, move, pool, requantized)


def random_file(seed: int) -> tuple[onnx.ModelProto, Array]:
    """A file and frames of its input (FRAMES, ...), the same for the same seed."""
    rng = np.random.default_rng([seed, 20])
    f = QdqFile(rng, str(rng.choice([*KINDS])))
    shape = (1, int(rng.integers(2, 6))) if f.chance(0.5) else (1, int(rng.integers(1, 4)), 3, 3)
    f.shapes["x"] = shape
    if of_codes := f.chance(0.15):
        f.quantized["x"] = f.constant(rng.uniform(0.01, 0.04)), f.constant(int(rng.integers(50, 120)), f.kind)
        t = "x"
    else:
        t = f.codes("x")
    for _ in range(int(rng.integers(1, 5))):
        t = f.pick(STEPS)(f, t if f.chance(0.8) else f.pick([*f.quantized]))
    used = {name for node in f.nodes for name in node.input}
    open_ends = [name for name in f.quantized if name not in used and name != "x"] or [t]
    outputs = [name if f.chance(0.3) else f.real(name) for name in open_ends]
    if f.chance(0.15):  # a quantized tensor that others use, too
        inner = f.pick([name for name in f.quantized if name != "x"] or [t])
        outputs += [inner] if inner not in outputs else []
    elem = KINDS[f.kind]
    ends = [
        helper.make_tensor_value_info(name, elem if name in f.quantized else TensorProto.FLOAT, f.shapes[name])
        for name in dict.fromkeys(outputs)
    ]
    source = helper.make_tensor_value_info("x", elem if of_codes else TensorProto.FLOAT, shape)
    graph = helper.make_graph(f.nodes, f"qdq{seed}", [source], ends, f.constants)
    opset = helper.make_opsetid("", int(rng.choice(OPSETS)))
    model = helper.make_model(graph, opset_imports=[opset], ir_version=8)
    onnx.checker.check_model(model)
    if of_codes:
        return model, rng.integers(*((-128, 128) if f.kind == "int8" else (0, 256)), (FRAMES, *shape)).astype(f.kind)
    return model, (rng.integers(-64, 64, (FRAMES, *shape)) / 32).astype(np.float32)


# --------------------------------------------------------------------------- judgement


def expected(model: onnx.ModelProto, x: Array) -> dict[str, Array]:
    """All outputs of the whole file in a default session, with the frames in front."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    results = [session.run(None, {"x": frame}) for frame in x]
    return {o.name: np.stack([r[k] for r in results]) for k, o in enumerate(model.graph.output)}


def judged(model: onnx.ModelProto, x: Array, runtime: str = "onnxruntime") -> tuple[str, str]:
    """("equal" | "differs" | "refused" | "crash" | "invalid", details)."""
    try:
        expected_outputs = expected(model, x)
    except Exception as error:  # what onnxruntime cannot run is no test
        return "invalid", str(error)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.onnx"
        onnx.save(model, path)
        try:
            hlsgen.build(path, Path(folder) / "build", hlsgen.Options(runtime=runtime))
            result = hlsgen.run(Path(folder) / "build", x[:, 0], "reference")
        except HlsgenError as error:
            codes = sorted({d.code for d in error.diagnostics if d.severity == "error"})
            return "crash" if "HG099" in codes else "refused", f"{' '.join(codes)}: {error}"
        except Exception:
            return "crash", traceback.format_exc()
    outputs = result if isinstance(result, dict) else {next(iter(expected_outputs)): result}
    texts = []
    for name, values in expected_outputs.items():
        count = int((np.asarray(outputs[name]).reshape(values.shape) != values).sum())
        texts += [f"{name}: {count} of {values.size} differ"] if count else []
    return ("differs", "; ".join(texts)) if texts else ("equal", "")


def shrunk(model: onnx.ModelProto, x: Array, runtime: str) -> onnx.ModelProto:
    """The smallest model with the same outcome and a single quantized output, or the model itself."""
    outcome = judged(model, x, runtime)[0]
    types = {v.name: v.type.tensor_type.elem_type for v in onnx.shape_inference.infer_shapes(model).graph.value_info}
    for end, node in enumerate(model.graph.node):
        if node.output[0] not in types or not node.op_type.endswith("Linear"):
            continue
        small = onnx.ModelProto()
        small.CopyFrom(model)
        del small.graph.output[:], small.graph.node[end + 1 :]
        small.graph.output.append(helper.make_tensor_value_info(node.output[0], types[node.output[0]], None))
        needed = {node.output[0]}
        for earlier_node in reversed(model.graph.node[: end + 1]):
            if earlier_node.output[0] in needed:
                needed.update(earlier_node.input)
            else:
                small.graph.node.remove(earlier_node)
        if judged(small, x, runtime)[0] == outcome:
            return small
    return model


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first file; the next ones follow")
    parser.add_argument("--keep", type=Path, default=Path("findings"), help="folder for files that differ")
    parser.add_argument("--runtime", default="onnxruntime")
    arguments = parser.parse_args()
    counts: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    seed, end = arguments.seed, time.monotonic() + arguments.seconds
    while time.monotonic() < end:
        model, x = random_file(seed)
        outcome, text = judged(model, x, arguments.runtime)
        counts[outcome] += 1
        if outcome == "refused":
            codes[text.split(":")[0]] += 1
        if outcome in ("differs", "crash"):
            arguments.keep.mkdir(parents=True, exist_ok=True)
            small = shrunk(model, x, arguments.runtime)
            onnx.save(small, arguments.keep / f"qdq_{seed}.onnx")
            np.save(arguments.keep / f"qdq_{seed}.npy", x)
            operators = " ".join(n.op_type for n in small.graph.node)
            print(f"seed {seed}: {outcome}: {text.strip().splitlines()[-1]}; shrunk to {operators}", flush=True)
        seed += 1
    print(f"seeds {arguments.seed} to {seed - 1}: {dict(counts)}; refused: {dict(codes)}")
    return int(bool(counts["differs"] or counts["crash"]))


if __name__ == "__main__":
    sys.exit(main())
