"""Holds the estimates of LUT against synthesis, unit by unit.

    python benchmarks/estimates.py --measure [NAME ...]   # synthesize networks that are not in the data yet, or these
    python benchmarks/estimates.py                        # the ratios, estimate to measurement

Measured sizes are kept in data/unit_sizes.json, so that constants of the model can be fitted in seconds. Networks of
the names in CHECKED are not looked at in the fit.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from models import Net  # noqa: E402
from onnx_graph import QONNX  # noqa: E402
from synthesis.yosys import synthesize  # noqa: E402

import hlsgen  # noqa: E402
from hlsgen.dataflow.units import FloatUnit, Port, RescaleUnit  # noqa: E402
from hlsgen.driver.compile import Build, network_cost  # noqa: E402
from hlsgen.verilog.resource_model import node_cost  # noqa: E402

DATA = Path(__file__).with_name("data") / "unit_sizes.json"
MODELS = ROOT.parent / "shared" / "models"


@dataclass(frozen=True)
class Case:
    """A network and how it is folded."""

    model: Callable[[], onnx.ModelProto | Path]
    cycles: int | None = None


def activation(net: Net, bits: int, *, first: bool = False) -> Net:
    """A quantizer of the input, or Relu and a quantizer; bipolar if it has one bit."""
    if bits == 1:
        return net.then("BipolarQuant", 1.0, domain=QONNX)
    options = {"signed": 1} if first else {"signed": 0}
    return (net if first else net.then("Relu")).quant(0.125 if first else 0.37, 0.0, float(bits), narrow=0, **options)


def weights(net: Net, shape: tuple[int, ...], bits: int, rng: np.random.Generator) -> str:
    if bits == 1:
        return net.add("BipolarQuant", [rng.choice([-1.0, 1.0], shape).astype(np.float32), 1.0], domain=QONNX)
    top = 2 ** (bits - 1) - 1
    grid = np.clip(np.round(rng.normal(0, top / 2.5, shape)), -top, top).astype(np.float32) / 8
    return net.add("IntQuant", [grid, 0.125, 0.0, float(bits)], domain=QONNX, signed=1, narrow=1)


def mlp(x_bits: int, w_bits: int, sizes: tuple[int, ...], seed: int) -> onnx.ModelProto:
    rng, net = np.random.default_rng(seed), Net((1, sizes[0]))
    for n, (columns, rows) in enumerate(itertools.pairwise(sizes)):
        data = activation(net, x_bits, first=n == 0).last
        net.node("MatMul", data, weights(net, (columns, rows), w_bits, rng), name=f"fc{n}")
    return net.model()


def cnn(x_bits: int, w_bits: int, channels: tuple[int, ...], size: int, seed: int) -> onnx.ModelProto:
    """Convolutions of 3 x 3, the second of them depthwise, then a maximum pool and a layer."""
    rng, net = np.random.default_rng(seed), Net((1, channels[0], size, size))
    for n, (before, after) in enumerate(itertools.pairwise(channels)):
        data = activation(net, x_bits, first=n == 0).last
        depthwise = n == 1 and before == after
        weight = weights(net, (after, 1 if depthwise else before, 3, 3), w_bits, rng)
        net.node("Conv", data, weight, name=f"conv{n}", pads=[1, 1, 1, 1], group=before if depthwise else 1)
    activation(net, x_bits).then("MaxPool", kernel_shape=[2, 2], strides=[2, 2]).then("Flatten")
    data = net.last
    net.node("MatMul", data, weights(net, (channels[-1] * (size // 2) ** 2, 5), w_bits, rng), name="fc")
    return net.model()


def _example(name: str) -> Path:
    return ROOT / "examples" / name


CASES: dict[str, Case] = {
    **{
        f"mlp w{w}a{x} @{cycles}": Case(lambda x=x, w=w, sizes=sizes: mlp(x, w, sizes, 7 * w + x), cycles)  # type: ignore[misc]
        for w, x, sizes, cycles in [
            (4, 4, (32, 32, 10), 32), (8, 8, (24, 16, 6), 24), (2, 2, (48, 32, 10), 16), (3, 3, (32, 24, 10), 24),
            (3, 8, (32, 16, 8), 32), (1, 4, (64, 32, 10), 32), (1, 1, (128, 64, 10), 16), (6, 4, (24, 24, 5), 48),
            (4, 4, (16, 8, 4), 1), (2, 3, (64, 48, 10), 128), (8, 8, (64, 32, 10), 512),
        ]
    },
    **{
        f"cnn w{w}a{x} @{cycles}": Case(lambda x=x, w=w, c=c, size=size: cnn(x, w, c, size, 5 * w + x), cycles)  # type: ignore[misc]
        for w, x, c, size, cycles in [
            (4, 4, (3, 8, 8, 16), 12, 2304), (8, 8, (1, 4, 4, 8), 10, 800), (2, 2, (4, 16, 16, 16), 8, 576),
            (3, 3, (4, 8, 8, 8), 8, 128), (1, 1, (8, 16, 16, 32), 8, 1024),
        ]
    },
    "digits @64": Case(lambda: _example("digits/digits_mlp.onnx"), 64),
    "digits_cnn @576": Case(lambda: _example("digits_cnn/digits_cnn.onnx"), 576),
    "digits_cnn @64": Case(lambda: _example("digits_cnn/digits_cnn.onnx"), 64),
    # not looked at in the fit
    "mlp w5a7 @40": Case(lambda: mlp(7, 5, (40, 20, 8), 91), 40),
    "mlp w2a8 @64": Case(lambda: mlp(8, 2, (64, 32, 4), 92), 64),
    "mlp w7a3 @16": Case(lambda: mlp(3, 7, (16, 24, 10), 93), 16),
    "cnn w5a5 @1600": Case(lambda: cnn(5, 5, (2, 6, 6, 12), 14, 94), 1600),
    "cnn w4a2 @256": Case(lambda: cnn(2, 4, (3, 12, 12, 8), 8, 95), 256),
    "tfc 1w1a @64": Case(lambda: MODELS / "public" / "zoo_tfc_1w1a.onnx", 64),
    "tfc 2w2a @256": Case(lambda: MODELS / "public" / "zoo_tfc_2w2a.onnx", 256),
    "jsc w4a4 @16": Case(lambda: MODELS / "brevitas" / "jsc_mlp_w4a4.onnx", 16),
}  # fmt: skip
CHECKED = {"mlp w5a7 @40", "mlp w2a8 @64", "mlp w7a3 @16", "cnn w5a5 @1600", "cnn w4a2 @256", "tfc 1w1a @64",
           "tfc 2w2a @256", "jsc w4a4 @16"}  # fmt: skip

#: LUT sites of each unit of a network.
Sizes = dict[str, dict[str, int]]


def build_of(case: Case, folder: Path) -> Build | None:
    """The build in `folder`/core; None if its model is not there."""
    model = case.model()
    if isinstance(model, onnx.ModelProto):
        onnx.save(model, folder / "model.onnx")
        model = folder / "model.onnx"
    if not model.exists():
        return None
    return hlsgen.build(model, folder / "core", hlsgen.Options(target_cycles=case.cycles, top="top"))


def measured(case: Case) -> dict[str, int] | None:
    """LUT sites of each instance."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if build_of(case, folder) is None:
            return None
        netlist = synthesize(sorted((folder / "core" / "rtl").glob("*.v")), folder, units=True)
        return {unit: size.lut for unit, size in netlist.instances().items()}


def estimated(build: Build) -> Iterator[tuple[str, str, float]]:
    """(kind, instance, LUT) of each unit as the model counts it; a layer's quantizer with its first unit."""
    choices = dict(build.network.choices)
    for node in build.network.nodes:
        cost = node_cost(node, dsp=False, style=0).lut
        kind = type(node.unit).__name__
        if node.layer in choices and isinstance(node.unit, RescaleUnit | FloatUnit):
            choice = choices.pop(node.layer)
            kind = choice.name
            cost += next(t.lut or 0.0 for t in choice.trials if t.name == choice.name)
        if isinstance(node.unit, Port):
            kind = "port_out" if node is build.network.nodes[-1] else "port_in"
        yield kind, kind if isinstance(node.unit, Port) else node.name, cost


def compare(data: Sizes, names: set[str]) -> None:
    """Prints the ratio of estimate to measurement of whole networks and, for these names, of each kind of unit."""
    kinds: dict[str, list[tuple[float, int]]] = defaultdict(list)
    totals: dict[str, float] = {}
    for name, sizes in data.items():
        with tempfile.TemporaryDirectory() as folder:
            build = build_of(CASES[name], Path(folder))
        if build is None:
            continue
        lut = network_cost(build).lut
        totals[name] = lut / sum(sizes.values())
        print(
            f"{name:20} {'unseen' if name in CHECKED else 'fitted':7} {lut:8.0f} {sum(sizes.values()):8} {totals[name]:6.2f}"
        )
        if name in names:
            for kind, instance, cost in estimated(build):
                kinds[kind].append((cost, sizes.get(instance, 0)))
    for kind, pairs in sorted(kinds.items(), key=lambda item: -sum(abs(a - b) for a, b in item[1])):
        off = sum(a - b for a, b in pairs)
        print(f"{kind:18} {len(pairs):3} units {sum(b for _, b in pairs):7} LUT, estimate {off:+8.0f}: "
              + " ".join(f"{a:.0f}/{b}" for a, b in pairs[:12]))  # fmt: skip
    for title, chosen in (("fitted", set(totals) - CHECKED), ("unseen", set(totals) & CHECKED)):
        errors = [abs(totals[name] - 1) for name in chosen]
        if errors:
            print(f"{title}: error {statistics.median(errors):.0%} in the median, {max(errors):.0%} at most")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--measure", action="store_true")
    arguments = parser.parse_args()
    data: Sizes = json.loads(DATA.read_text()) if DATA.exists() else {}
    if arguments.measure:
        for name in arguments.names or [name for name in CASES if name not in data]:
            start = time.perf_counter()
            sizes = measured(CASES[name])
            if sizes is not None:
                data[name] = sizes
                DATA.parent.mkdir(exist_ok=True)
                DATA.write_text(json.dumps({n: data[n] for n in CASES if n in data}, indent=1) + "\n")
                print(f"{name}: {sum(sizes.values())} LUT, {time.perf_counter() - start:.0f} s", flush=True)
    names = set(arguments.names) or set(CASES) - CHECKED
    compare({name: sizes for name, sizes in data.items() if not arguments.names or name in names}, names)


if __name__ == "__main__":
    main()
