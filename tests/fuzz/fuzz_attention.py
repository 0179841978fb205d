"""Random networks of attention blocks, compared with qonnx and onnxruntime. Unexplained differences are findings.

python tests/fuzz/fuzz_attention.py --seconds 600 --seed 1 --keep findings
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import numpy as np
import onnx
import ort
from attention_nets import network
from numpy.typing import NDArray
from oracles import Qonnx

import hlsgen
from hlsgen.diagnostics import Collector, HlsgenError
from hlsgen.frontend import import_model
from hlsgen.interpreter import graph as reference
from hlsgen.interpreter.equivalence import compare
from hlsgen.passes import lower
from hlsgen.simulation.file_oracle import compare_file

Array = NDArray[Any]
#: Frames that executors get.
FRAMES = 3


@dataclass(frozen=True)
class Outcome:
    """`kind`: equal, explained, refused, or a finding: differs, crash, uncertified."""

    kind: str
    text: str = ""

    @property
    def is_finding(self) -> bool:
        return self.kind in ("differs", "crash", "uncertified")


def judged(model: onnx.ModelProto, seed: int, build: bool = False, simulate: bool = False) -> Outcome:
    """Outcome of a network. `build`: also build and certify it. `simulate`: also verify it in Verilator."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "attention.onnx"
        onnx.save(model, path)
        try:
            outcome = _compared_with_executor(path, model, seed)
            if (build or simulate) and not outcome.is_finding:
                outcome = _built(path, outcome, simulate)
        except HlsgenError as error:
            codes = sorted({d.code for d in error.diagnostics if d.severity == "error"})
            return Outcome("crash" if "HG099" in codes else "refused", str(error))
        except Exception:
            return Outcome("crash", traceback.format_exc())
    return outcome


def _compared_with_executor(path: Path, model: onnx.ModelProto, seed: int) -> Outcome:
    """Frontend, passes and reference against a runtime, on numbers that no code of ours has chosen."""
    problems, runtime = Collector(), _runtime(model)
    graph_model = import_model(path, problems, runtime=runtime)
    problems.finish()
    assert graph_model is not None
    graph = lower(graph_model, None, problems)
    problems.finish()
    x = np.random.default_rng(seed).standard_normal((FRAMES, *graph_model.input_shape[1:])).astype(np.float32)
    outputs = reference.evaluate(graph, x)
    want = _executed(model, runtime, x)
    if outputs.shape != want.shape:
        return Outcome("differs", f"shape {outputs.shape}, wanted {want.shape}")
    if np.abs(outputs - want).max() <= 1e-5 * np.abs(want).max():  # floats behind the last layer
        return Outcome("equal")
    codes = reference.encode_input(graph, reference.frames_of(graph, x))
    steps, file = compare(graph_model, graph, codes), compare_file(path, graph_model, graph, codes)
    if not steps.ok or file.unexplained or not file.explained:
        return Outcome("differs", f"{steps.difference} {file}"[:2000])
    return Outcome("explained", f"{int((outputs != want).sum())} of {want.size}: {file.explained}")


def _runtime(model: onnx.ModelProto) -> str:
    """The runtime that can judge a network.

    The optimizer of onnxruntime's default session turns some int8 groups into invalid quantizers. On ARM it does
    not. MatMulNBits quantizes floats itself, which no build does: the nodes before it run one by one.
    """
    if any(node.op_type == "Quant" for node in model.graph.node):
        return "qonnx"
    runtime = "onnxruntime"
    try:
        optimized = ort.optimized_graph(model)
    except ort.Fail as error:
        if "TypeInferenceError" not in str(error):
            raise
        runtime, optimized = "onnxruntime-arm", ort.optimized_graph(model, arm=True)
    return "onnx" if any(node.op_type == "MatMulNBits" for node in optimized.graph.node) else runtime


def _executed(model: onnx.ModelProto, runtime: str, x: Array) -> Array:
    """The output of frames in that runtime."""
    if runtime == "qonnx":
        run = Qonnx(model).one
    else:
        session = ort.session(model, ort.OFF if runtime == "onnx" else ort.DEFAULT, arm=runtime == "onnxruntime-arm")
        run = lambda frame: session.run(None, {"x": frame})[0]  # noqa: E731
    return np.concatenate([np.asarray(run(x[n : n + 1])) for n in range(len(x))])


def _built(path: Path, outcome: Outcome, simulate: bool) -> Outcome:
    directory = path.parent / "build"
    hlsgen.build(path, directory)
    certificate = hlsgen.certify(directory)
    if not certificate.ok:
        return Outcome("uncertified", "\n".join(map(str, certificate.problems)))
    if simulate:
        verdict = hlsgen.verify(directory, ["verilator"], 4)
        if not verdict.ok:
            return Outcome("differs", f"in simulation: {verdict}"[:2000])
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description="Random networks of attention against qonnx and onnxruntime.")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first network; the next ones follow")
    parser.add_argument("--largest", type=int, default=16, help="tokens, at most")
    parser.add_argument("--keep", type=Path, default=Path("findings"), help="folder for models that differ")
    parser.add_argument("--build", type=float, default=0.1, help="share of networks that are built and certified")
    parser.add_argument("--simulate", type=float, default=0.01, help="share of networks that are simulated as well")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    seed, start = args.seed, time.monotonic()
    while time.monotonic() - start < args.seconds:
        draw = np.random.default_rng([seed, 1]).random()
        model = network(seed, args.largest)
        outcome = judged(model, seed, draw < args.build, draw < args.simulate)
        counts[outcome.kind] += 1
        if outcome.kind != "equal":
            print(f"seed {seed}: {outcome.kind}: {outcome.text.strip()}", flush=True)
        if outcome.is_finding:
            args.keep.mkdir(parents=True, exist_ok=True)
            onnx.save(model, args.keep / f"attention_{seed}.onnx")
        seed += 1
    print(f"seeds {args.seed} to {seed - 1}: " + ", ".join(f"{n} {kind}" for kind, n in counts.most_common()))
    return int(any(counts[kind] for kind in ("differs", "crash", "uncertified")))


if __name__ == "__main__":
    sys.exit(main())
