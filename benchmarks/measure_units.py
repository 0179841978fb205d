"""Synthesizes the networks of estimate_cases.py unit by unit, and keeps what each unit takes in data/unit_sizes.json.

    python benchmarks/measure_units.py [--family ecp5] [NAME ...]   # those that are not there yet, or these

Foldings and realizations of a network are kept too, so that later builds have the same units, whatever they are estimated
to cost by then.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

import onnx
from estimate_cases import CASES
from synthesis.yosys import MAPPINGS, synthesize

import hlsgen
from hlsgen.driver.compile import Build
from hlsgen.ir import Map
from hlsgen.rescale import KINDS
from hlsgen.synthesis.netlist import size

DATA = Path(__file__).with_name("data") / "unit_sizes.json"
#: Seconds for all units of a network.
LIMIT = 900


def load() -> dict[str, Any]:
    """builds: case -> folding and realizations; every family: case -> unit -> [LUT, FF, BRAM, DSP]."""
    return json.loads(DATA.read_text()) if DATA.exists() else {"builds": {}}


def save(data: dict[str, Any]) -> None:
    lines = []
    for part, cases in data.items():
        rows = [f"  {json.dumps(name)}: {json.dumps(cases[name])}" for name in CASES if name in cases]
        lines.append(f" {json.dumps(part)}: {{\n" + ",\n".join(rows) + "\n }")
    DATA.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def build_of(name: str, data: dict[str, Any], folder: Path) -> Build | None:
    """The build of a case in `folder`/core; None if its model is not there."""
    case = CASES[name]
    model = case.model()
    if isinstance(model, onnx.ModelProto):
        onnx.save(model, folder / "model.onnx")
        model = folder / "model.onnx"
    if not model.exists():
        return None
    options = {**case.options, **data["builds"].get(name, {}), "top": "top"}
    if "folding" in options:
        options.pop("target_cycles", None)
    return hlsgen.build(model, folder / "core", hlsgen.Options(**options))


def pinned(build: Build) -> dict[str, Any]:
    """Options that make the same units again."""
    maps = {layer.name for layer in build.network.graph.layers if isinstance(layer, Map)}
    chosen = {name: choice.name for name, choice in build.network.choices.items()}
    realize = {name: kind for name, kind in chosen.items() if name in maps and kind in KINDS}
    folding = build.network.folding["layers"]
    return {"realize": realize, **({"folding": folding, "target_cycles": None} if folding else {})}


def measure(name: str, family: str, data: dict[str, Any]) -> str:
    """Adds a network to the data."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        build = build_of(name, data, folder)
        if build is None:
            return "no such model"
        files = sorted((folder / "core" / "rtl").glob("*.v"))
        dsp = build.options.prefer == "dsp"
        netlist = synthesize(files, folder, family=family, dsp=dsp, units=True, seconds=LIMIT)
        kinds = {n: c["type"] for n, c in netlist.modules["top"]["cells"].items() if c["type"] in netlist.modules}
        sizes = {kind: size(netlist.modules, kind, family) for kind in {*kinds.values()}}
        data["builds"].setdefault(name, pinned(build))
        data.setdefault(family, {})[name] = {
            unit: [s.lut, s.ff, s.bram, s.dsp] for unit, s in ((unit, sizes[kind]) for unit, kind in kinds.items())
        }
    return f"{sum(row[0] for row in data[family][name].values())} LUT, {time.perf_counter() - start:.0f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--family", choices=MAPPINGS, default="xc7")
    arguments = parser.parse_args()
    data = load()
    for name in arguments.names or [name for name in CASES if name not in data.get(arguments.family, {})]:
        try:
            text = measure(name, arguments.family, data)
        except (RuntimeError, TimeoutExpired, hlsgen.HlsgenError) as error:
            text = str(error)[:300]
        save(data)
        print(f"{name}: {text}", flush=True)


if __name__ == "__main__":
    main()
