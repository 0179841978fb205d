"""Synthesizes the networks of estimate_cases.py unit by unit, and keeps what each unit takes in data/unit_sizes.json.

    python benchmarks/measure_units.py [--family ecp5] [NAME ...]   # those that are not there yet, or these

Foldings and realizations of a network are kept too, so that later builds have the same units, whatever they are
estimated to cost by then.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import onnx
from estimate_cases import CASES
from synthesis.yosys import MAPPINGS, synthesize

import hlsgen
from hlsgen.driver.compile import Build
from hlsgen.driver.schedule import plan
from hlsgen.ir import Map
from hlsgen.rescale import KINDS
from hlsgen.synthesis.netlist import size

DATA = Path(__file__).with_name("data") / "unit_sizes.json"
#: Seconds for the networks of a process.
LIMIT = 900
#: Products share multiplier blocks as those of a family allow. Not all networks with these are within an iCE40.
DEVICES = {"ecp5": "ecp5-85k", "gowin": "gowin-gw2a-18", "ice40": "ice40-up5k"}


def load() -> dict[str, Any]:
    """builds: case -> folding and realizations; every family: case -> unit -> [LUT, FF, BRAM, DSP]."""
    return json.loads(DATA.read_text()) if DATA.exists() else {"builds": {}}


def save(data: dict[str, Any]) -> None:
    lines = []
    for part, cases in data.items():
        rows = [f"  {json.dumps(name)}: {json.dumps(cases[name])}" for name in CASES if name in cases]
        lines.append(f" {json.dumps(part)}: {{\n" + ",\n".join(rows) + "\n }")
    DATA.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def build_of(name: str, data: dict[str, Any], top: str = "top", family: str = "xc7") -> Build | None:
    """The build of a case; None if its model is not there."""
    case = CASES[name]
    model = case.model()
    options = {**case.options, **data["builds"].get(name, {}), "top": top}
    if options.get("prefer") == "dsp":
        options |= {"device": DEVICES.get(family)}
    with tempfile.TemporaryDirectory() as folder:
        if isinstance(model, onnx.ModelProto):
            onnx.save(model, Path(folder, "model.onnx"))
            model = Path(folder, "model.onnx")
        # Units of dead channels are measured like others.
        with patch("hlsgen.driver.compile.plan_smallest", plan):
            return hlsgen.check(model, hlsgen.Options(**options)) if model.exists() else None


def pinned(build: Build) -> dict[str, Any]:
    """Options that make the same units again."""
    maps = {layer.name for layer in build.network.graph.layers if isinstance(layer, Map)}
    chosen = {name: choice.name for name, choice in build.network.choices.items()}
    realize = {name: kind for name, kind in chosen.items() if name in maps and kind in KINDS}
    folding = build.network.folding["layers"]
    return {"realize": realize, **({"folding": folding, "target_cycles": None} if folding else {})}


def measure(names: Sequence[str], family: str, data: dict[str, Any]) -> None:
    """Adds networks to the data. Yosys takes seconds to start: it gets several at a time, all with the same options."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        builds: dict[str, tuple[str, Build]] = {}
        for n, name in enumerate(names):
            build = build_of(name, data, f"net{n}_", family)
            if build is not None and name not in data["builds"]:
                data["builds"][name] = pinned(build)
                build = build_of(name, data, f"net{n}_", family)
            if build is not None:
                builds[f"net{n}_"] = name, build
                for path, content in build.files.items():
                    if path.startswith("rtl/"):
                        (folder / path[4:]).write_bytes(content)
        (folder / "top.v").write_text(_around(folder / f"{top}.v" for top in builds))
        dsp = any(build.options.prefer == "dsp" for _, build in builds.values())
        netlist = synthesize(sorted(folder.glob("*.v")), folder, family=family, dsp=dsp, units=2, seconds=LIMIT)
        sizes: dict[str, list[int]] = {}
        for top, (name, _) in builds.items():
            found = {}
            for unit, cell in netlist.modules[top]["cells"].items():
                kind = cell["type"]
                if kind in netlist.modules:
                    if kind not in sizes:
                        taken = size(netlist.modules, kind, family)
                        sizes[kind] = [taken.lut, taken.ff, taken.bram, taken.dsp]
                    found[unit] = sizes[kind]
            data.setdefault(family, {})[name] = found


def _around(files: Iterable[Path]) -> str:
    """A top level that holds the cores, with all their ports."""
    ports, cells = [], []
    for path in files:
        core = path.stem
        own = re.findall(r"^    (input|output) +wire +(\[[^]]*\] +)?(\w+)", path.read_text(), re.MULTILINE)
        ports += [f"{way} wire {bits}{core}{name}" for way, bits, name in own]
        cells.append(f"    {core} {core}core ({', '.join(f'.{name}({core}{name})' for _, _, name in own)});")
    return "\n".join([f"module top ({', '.join(ports)});", *cells, "endmodule", ""])


def _tools_seconds() -> float:
    """Seconds of a core that programs which have ended took."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--family", choices=MAPPINGS, default="xc7")
    parser.add_argument("--together", type=int, default=8, help="networks that Yosys gets at once")
    arguments = parser.parse_args()
    data = load()
    names = arguments.names or [name for name in CASES if name not in data.get(arguments.family, {})]
    for dsp in (False, True):
        same = [name for name in names if (CASES[name].options.get("prefer") == "dsp") == dsp]
        for at in range(0, len(same), arguments.together):
            start, some = time.perf_counter(), same[at : at + arguments.together]
            before = _tools_seconds()
            try:
                measure(some, arguments.family, data)
                text = "measured"
            except (RuntimeError, hlsgen.HlsgenError) as error:
                text = str(error)[-300:]
            save(data)
            took = f"{time.perf_counter() - start:.0f} s, {_tools_seconds() - before:.0f} s of a core in Yosys"
            print(f"{', '.join(some)}: {text}, {took}", flush=True)


if __name__ == "__main__":
    main()
