"""Benchmarks: `make bench`. Cycles, build and simulation speed, exactness against qonnx, synthesized size.

Figures depend on the machine; the ratios are what to look at. Models that do not ship with the
project are skipped where they are absent.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from oracles import Qonnx  # noqa: E402
from random_graphs import Graph  # noqa: E402

import hlsgen  # noqa: E402
from hlsgen.interpreter import graph as reference  # noqa: E402
from hlsgen.simulation.verilator_library import NativeCore  # noqa: E402
from hlsgen.testbench.stimuli import stimuli  # noqa: E402

MODELS = ROOT.parent / "shared" / "models"
#: model, cycles a frame of FINN's shipped folding, spread of the inputs
NETWORKS = [
    ("public/zoo_tfc_1w1a", 64, 1.0),
    ("public/zoo_tfc_1w2a", 64, 1.0),
    ("public/zoo_tfc_2w2a", 64, 1.0),
    ("public/mlperf_kws_w3a3", 392, 15.0),
    ("brevitas/jsc_mlp_w6a6_po2", None, 0.5),
    ("brevitas/jsc_mlp_w4a4", None, 0.5),
    ("digits", None, 0.5),
    ("digits_float", None, 0.5),
]
OWN = {"digits": "digits_mlp.onnx", "digits_float": "digits_mlp_float_scales.onnx"}
SAMPLES = 1000
console = Console(width=150)


def model_path(name: str) -> Path:
    return ROOT / "examples" / "digits" / OWN[name] if name in OWN else MODELS / f"{name}.onnx"


def networks() -> None:
    """Build time, cycles, native simulation speed and exactness of whole networks."""
    titles = [
        "model",
        "build s",
        "latency",
        "interval",
        "FINN",
        "native frames/s",
        "outputs differing",
        "codes differing",
        "argmax",
    ]
    table = Table(*titles, title=f"networks, {SAMPLES} random inputs against the qonnx executor")
    for name, finn, spread in NETWORKS:
        path = model_path(name)
        if not path.exists():
            table.add_row(name, "not there")
            continue
        with tempfile.TemporaryDirectory() as temporary:
            start = time.perf_counter()
            build = hlsgen.build(path, Path(temporary) / "out")
            seconds = time.perf_counter() - start
            rng = np.random.default_rng(0)
            shape = (SAMPLES, *build.graph.model.input_shape[1:])
            x = (rng.random(shape) if "tfc" in name or name in OWN else rng.normal(0, spread, shape)).astype(np.float32)
            with NativeCore(build, Path(temporary) / "out", Path(temporary) / "native") as core:
                codes = reference.encode_input(build.graph, reference.frames_of(build.graph, x))
                start = time.perf_counter()
                result = core.run(codes)
                rate = SAMPLES / (time.perf_counter() - start)
            y = reference.decode_output(build.graph, result).reshape(SAMPLES, -1)
        expected = Qonnx(onnx.load(path))(x)
        step = np.abs(np.asarray(getattr(build.graph.output.encoding, "scale", 1.0), np.float64)).min()
        flipped = int((np.abs(y.astype(np.float64) - expected) > step / 2).sum()) if not build.graph.tail else None
        table.add_row(
            name,
            f"{seconds:.2f}",
            str(build.timing.latency),
            str(build.timing.interval),
            str(finn or ""),
            f"{rate:.0f}",
            f"{(y != expected).sum()} of {y.size}",
            "" if flipped is None else str(flipped),
            str((y.argmax(1) != expected.argmax(1)).sum()),
        )
    console.print(table)


def quantizer_speed() -> None:
    """Elements a second of a 16 -> 8 bit quantizer, compiled, 32 lanes."""
    g = Graph((1, 32))
    g.quant(0.0117, 3.0, 8.0, signed=1, narrow=0, rounding_mode="ROUND")
    with tempfile.TemporaryDirectory() as temporary:
        onnx.save(g.model(), f"{temporary}/model.onnx")
        build = hlsgen.build(
            f"{temporary}/model.onnx", f"{temporary}/out", hlsgen.Options(input="fixed:16,8", lanes=32)
        )
        with NativeCore(build, Path(temporary) / "out", Path(temporary) / "native", "-O3") as core:
            codes = stimuli(build.network, 1 << 15, 1)
            start = time.perf_counter()
            core.run(codes)
            seconds = time.perf_counter() - start
    console.print(f"quantizer 16 -> 8 bits, pipelined, through ctypes: {codes.size / seconds / 1e6:.1f} M elements/s")


SYNTH = """
import json, sys
from pyosys import libyosys as ys
design = ys.Design()
for line in sys.argv[2:]:
    ys.run_pass(f"read_verilog -defer {line}", design)
ys.run_pass(f"synth_xilinx -family xc7 -flatten -noiopad -noclkbuf -nodsp -top {sys.argv[1]}", design)
ys.run_pass("tee -q -o stat.json stat -json -tech xilinx", design)
cells = json.load(open("stat.json"))["design"]["num_cells_by_type"]
lut = sum(n for c, n in cells.items() if c.startswith("LUT"))
print(json.dumps({"LUT": lut, "FF": sum(n for c, n in cells.items() if c.startswith("FD")),
                  "BRAM": sum(n for c, n in cells.items() if c.startswith("RAMB")),
                  "LUTRAM": sum(n for c, n in cells.items() if c.startswith("RAM") and not c.startswith("RAMB"))}))
"""


def requantizer() -> onnx.ModelProto:
    """int32 -> int8 of 16 channels: Cast, Mul, QuantizeLinear."""
    rng = np.random.default_rng(5)
    scale = (rng.integers(2**14, 2**15, 16) * 2.0 ** -rng.integers(37, 41, 16)).astype(np.float32)
    constants = {"s": scale, "one": np.float32(1), "zero": np.int8(0)}
    nodes = [
        helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["f", "s"], ["g"]),
        helper.make_node("QuantizeLinear", ["g", "one", "zero"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "requantizer",
        [helper.make_tensor_value_info("x", TensorProto.INT32, [1, 16])],
        [helper.make_tensor_value_info("y", TensorProto.INT8, [1, 16])],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def size() -> None:
    """Six-input tables of quantizers of 16 channels in every realization, and of the digits network."""
    g = Graph((1, 16))
    rng = np.random.default_rng(0)
    g.quant(rng.uniform(0.5, 2, (1, 16)) * 200, 0.0, 4.0, signed=1, narrow=0, rounding_mode="ROUND")
    table = Table("design", "LUT", "FF", "LUTRAM", "BRAM", title="Yosys synth_xilinx (xc7, no DSP), with ports")
    with tempfile.TemporaryDirectory() as temporary:
        onnx.save(g.model(), f"{temporary}/quant.onnx")
        onnx.save(requantizer(), f"{temporary}/requant.onnx")
        hlsgen.build(model_path("digits"), f"{temporary}/digits", hlsgen.Options(target_cycles=64, top="top"))
        rows = [("digits, 64 cycles", "digits")]
        for label, name, port in (("IntQuant 16 -> 4", "quant", "fixed:16,16"), ("int32 -> int8", "requant", None)):
            for kind in (None, "float-scale", "correct", "compare", "thresholds", "rank"):
                folder = f"{name}-{kind}"
                options = hlsgen.Options(input=port, lanes=16, realize={"": kind} if kind else {}, top="top")
                try:
                    hlsgen.build(f"{temporary}/{name}.onnx", f"{temporary}/{folder}", options)
                except hlsgen.HlsgenError:
                    continue
                rows.append((f"{label}, 16 channels, {kind or 'chosen'}", folder))
        for label, folder in rows:
            files = (Path(temporary) / folder / "files.f").read_text().split()
            sources = [str(Path(temporary) / folder / f) for f in files]
            command = [sys.executable, "-c", SYNTH, "top", *sources]
            done = subprocess.run(command, cwd=Path(temporary) / folder / "rtl", capture_output=True, text=True)
            line = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""
            if done.returncode or not line.startswith("{"):
                table.add_row(label, "failed: " + (done.stderr.strip().splitlines() or ["?"])[-1])
                continue
            cells = json.loads(line)
            table.add_row(label, *(str(cells[k]) for k in ("LUT", "FF", "LUTRAM", "BRAM")))
    console.print(table)


if __name__ == "__main__":
    networks()
    quantizer_speed()
    size()
