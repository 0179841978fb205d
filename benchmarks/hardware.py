"""Size and clock of workloads beside the figures of other tools: `make bench-hardware`.

    python benchmarks/hardware.py [NAME ...] [--route] [--seconds N]

Builds each workload, synthesizes it with Yosys for Xilinx 7 series without multiplier blocks, and with --route places
and routes it with nextpnr for ECP5, speed grade 6. Results go to data/hardware.json and into docs/benchmarks.md.
Workloads whose model is not there are skipped, and so is what takes longer than so many seconds in one tool; what was
measured before stays. Without --route the clock of a design that has changed is not known any more.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "docs" / "images")]

from draw import BLUE, ORANGE, Svg  # noqa: E402
from integer_models import chain  # noqa: E402
from models import Net  # noqa: E402
from onnx_graph import QONNX  # noqa: E402
from synthesis.place_ecp5 import routed_mhz  # noqa: E402
from synthesis.timing import longest_path  # noqa: E402
from synthesis.yosys import synthesize  # noqa: E402

import hlsgen  # noqa: E402
from hlsgen.driver.summary import estimate  # noqa: E402

DATA = Path(__file__).with_name("data") / "hardware.json"
PAGE, PICTURE = ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "images" / "benchmarks.svg"
MODELS = ROOT.parent / "shared" / "models"
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"


@dataclass(frozen=True)
class Workload:
    """A model, its folding, and what the best other tool takes for it: LUT and where that figure comes from; `reads`:
    what the input port carries, if the model does not say it."""

    model: Callable[[], onnx.ModelProto | Path]
    cycles: int | None
    peer: int | None = None
    source: str = ""
    reads: str | None = None


def matrix(
    rng: np.random.Generator, columns: int, rows: int, bits: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Weights as trained ones are spread: normal, 0.28 of the largest code."""
    top = 2 ** (bits - 1) - 1
    return np.clip(np.round(rng.normal(0, 0.28 * top, (columns, rows))), -top, top).astype(np.float32)


def layers(sizes: tuple[int, ...], w_bits: int, x_bits: int, seed: int) -> onnx.ModelProto:
    """Layers with Relu and a power of two between them, behind codes of int8."""
    rng, net = np.random.default_rng(seed), Net((1, sizes[0]))
    net.quant(1.0, 0.0, 8.0, signed=1, narrow=0)
    for n, (columns, rows) in enumerate(itertools.pairwise(sizes)):
        weight = matrix(rng, columns, rows, w_bits)
        net.linear(rows, columns, weight, f"fc{n}", scale=1.0, bits=float(w_bits))
        if n < len(sizes) - 2:
            spread = 2.0 ** np.ceil(np.log2(np.abs(weight).sum(axis=0).max() / 4))
            net.then("Relu").quant(spread, 0.0, float(x_bits), signed=0, narrow=0)
    return net.model()


def quantizer() -> onnx.ModelProto:
    """16 channels to int4, each with a scale and a zero point of its own."""
    rng, net = np.random.default_rng(6), Net((1, 16))
    scale, zero = (2.0 ** rng.uniform(-1, 3, 16)).astype(np.float32), rng.integers(-3, 4, 16).astype(np.float32)
    return net.then("IntQuant", scale, zero, 4.0, domain=QONNX, signed=1, narrow=0, rounding_mode="ROUND").model()


def requantizer() -> onnx.ModelProto:
    """16 channels of sums to int8, each times a number of 15 bits and a power of two: an exact product, half to even."""
    rng = np.random.default_rng(5)
    factor, shift = rng.integers(2**14, 2**15, 16), rng.integers(37, 41, 16)
    to_int8 = ("Clip", np.float64(-128), np.float64(127)), ("Cast", {"to": onnx.TensorProto.INT8})
    exact = ("Cast", {"to": onnx.TensorProto.DOUBLE}), ("Mul", factor * 2.0**-shift), ("Round",)
    return chain(*exact, *to_int8, source=np.int32, shape=(1, 16))


def image_layers() -> onnx.ModelProto:
    """8 x 8 pixels of 8 bits, two convolutions of 3 x 3 with 8 and 16 channels, and 10 sums of int8 weights."""
    rng, net = np.random.default_rng(3), Net((1, 1, 8, 8))
    net.quant(1.0, 0.0, 8.0, signed=0, narrow=0)
    for n, (channels, outputs) in enumerate(((1, 8), (8, 16))):
        weight = matrix(rng, outputs, channels * 9, 8).reshape(outputs, channels, 3, 3)
        data = net.last
        net.node("IntQuant", weight, 1.0, 0.0, 8.0, name=f"conv{n}_weights", domain=QONNX)
        net.node("Conv", data, net.last, name=f"conv{n}")
        net.then("Relu").quant(2.0 ** np.ceil(np.log2(np.abs(weight).sum())), 0.0, 8.0, signed=0, narrow=0)
    net.node("Flatten", net.last)
    return net.linear(10, 256, matrix(rng, 256, 10, 8), "fc", scale=1.0, bits=8.0).model()


WORKLOADS: dict[str, Workload] = {
    "quantizer 16 to 4 bits x 16": Workload(quantizer, 1, 962, "FINN", "fixed:16,8"),
    "requantize 32 to 8 bits x 16": Workload(requantizer, 1, 3340, "da4ml, wrong bits"),
    "dense 64 x 64 w4, a frame a cycle": Workload(lambda: layers((64, 64), 4, 8, 4), 1, 22300, "da4ml, keep"),
    "jets 16-64-32-32-5 w6a8, a frame a cycle": Workload(
        lambda: layers((16, 64, 32, 32, 5), 6, 8, 1), 1, 49300, "da4ml"
    ),
    "digits w4a4 @64": Workload(lambda: ROOT / "examples/digits/digits_mlp.onnx", 64),
    "digits w4a4 @5": Workload(lambda: ROOT / "examples/digits/digits_mlp.onnx", 5),
    "CNN int8, 8 x 8 pixels @4608": Workload(image_layers, 4608, 20000, "NNgen, 6649 cycles"),
    "CNN int8, 8 x 8 pixels @80": Workload(image_layers, 80),
    "digits CNN w4a4 @576": Workload(lambda: ROOT / "examples/digits_cnn/digits_cnn.onnx", 576),
    "TFC w1a1 @64": Workload(lambda: MODELS / "public/zoo_tfc_1w1a.onnx", 64),
    "TFC w2a2 @256": Workload(lambda: MODELS / "public/zoo_tfc_2w2a.onnx", 256),
    "DS-CNN w4a4 @500": Workload(lambda: MODELS / "brevitas/dscnn_w4a4_po2.onnx", 500),
    "KWS w3a3 @392": Workload(lambda: MODELS / "public/mlperf_kws_w3a3.onnx", 392),
    "CNV w1a1 @32768": Workload(lambda: MODELS / "brevitas/cnv_1w1a.onnx", 32768),
}
#: Those that nextpnr routes in some minutes.
SMALL = [
    "quantizer 16 to 4 bits x 16",
    "CNN int8, 8 x 8 pixels @4608",
    "digits w4a4 @64",
    "digits CNN w4a4 @576",
    "TFC w1a1 @64",
]


def measure(workload: Workload, route: bool, seconds: float) -> dict[str, float | int] | None:
    """Size, clock and cycles of a workload; None if its model is not there."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = workload.model()
        if isinstance(model, onnx.ModelProto):
            onnx.save(model, folder / "model.onnx")
            model = folder / "model.onnx"
        if not model.exists():
            return None
        options = hlsgen.Options(target_cycles=workload.cycles, input=workload.reads, top="top")
        build = hlsgen.build(model, folder / "core", options)
        files, expected = sorted((folder / "core" / "rtl").glob("*.v")), estimate(build)["lut"]
        print(f"  built; {expected} LUT estimated; now Yosys", flush=True)
        netlist = synthesize(files, folder, units=1, seconds=seconds)
        size, path = netlist.size(), longest_path(netlist.flat)
        found: dict[str, float | int] = {
            "lut": size.lut, "ff": size.ff, "bram18": size.bram18, "ns": path.ns, "levels": path.tables + path.carries,
            "latency": build.timing.latency, "interval": build.timing.interval,
            "estimate": expected,
        }  # fmt: skip
        print(f"  {size.lut} LUT; longest path {path.start} -> {path.end}", flush=True)
        if route:
            print("  now nextpnr", flush=True)
            found["mhz"] = routed_mhz(files, folder, seconds=seconds)
        return found


def table(data: dict[str, dict[str, float]]) -> str:
    lines = [
        "| workload | LUT | FF | BRAM18 | ns | ECP5 MHz | cycles | latency | other tool | ratio |",
        "|" + "---|" * 10,
    ]
    for name, row in data.items():
        work = WORKLOADS[name]
        mhz = f"{row['mhz']:.0f}" if "mhz" in row else ""
        peer = f"{work.source} {work.peer:,}" if work.peer else ""
        ratio = f"{row['lut'] / work.peer:.2f}" if work.peer else ""
        lines.append(
            f"| {name} | {row['lut']:,} | {row['ff']:,} | {row['bram18']} | {row['ns']} | {mhz} "
            f"| {row['interval']} | {row['latency']} | {peer} | {ratio} |"
        )
    return "\n".join(lines)


def picture(data: dict[str, dict[str, float]]) -> None:
    """Draws the LUT of each workload as a bar, on a scale of powers of ten, beside that of the other tool."""
    drawing = Svg(760, 40 + 34 * len(data))
    for n, (name, row) in enumerate(data.items()):
        y = 30 + 34 * n
        drawing.text(290, y + 15, name, "end", 12)
        for value, fill, top, height in ((row["lut"], BLUE, 2, 14), (WORKLOADS[name].peer, ORANGE, 17, 9)):
            if value:
                length = 100 * float(np.log10(value / 100))
                drawing.box(300, y + top, length, height, fill, "none")
                drawing.text(306 + length, y + top + height - 2, f"{value:,}", size=11)
    drawing.text(
        300, 20, "LUT (a step of 100 pixels is a factor of ten): hlsgen, and below it the best other tool", size=11
    )
    drawing.save(PICTURE.name, PICTURE.parent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--route", action="store_true", help="route the small ones for ECP5, too")
    parser.add_argument("--seconds", type=float, default=1800, help="longest that a tool may take")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in WORKLOADS]:
        parser.error(f"no such workload: {', '.join(unknown)}. There are: {'; '.join(WORKLOADS)}")
    data = json.loads(DATA.read_text()) if DATA.exists() else {}
    for name in arguments.names or WORKLOADS:
        start = time.perf_counter()
        print(f"{name}: being built", flush=True)
        try:
            found = measure(WORKLOADS[name], arguments.route and name in SMALL, arguments.seconds)
        except (RuntimeError, subprocess.TimeoutExpired, hlsgen.HlsgenError) as error:
            print(f"{name}: not measured: {str(error)[-500:]}", flush=True)
            continue
        if found is not None:
            data[name] = found
            DATA.parent.mkdir(exist_ok=True)
            DATA.write_text(json.dumps({n: data[n] for n in WORKLOADS if n in data}, indent=1) + "\n")
        print(f"{name}: {found or 'its model is not there'}, {time.perf_counter() - start:.0f} s", flush=True)
    if PAGE.exists() and data:
        text = PAGE.read_text()
        head, tail = text.split(BEGIN)[0], text.split(END)[1]
        PAGE.write_text(f"{head}{BEGIN}\n{table(data)}\n{END}{tail}")
        picture(data)


if __name__ == "__main__":
    main()
