"""Runs Yosys for Xilinx 7 series in a process of its own and reads the netlist that it writes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: The process: a script of passes; "KEEP n" keeps the modules that the top level instantiates, n levels deep, as they
#: are.
_RUNNER = r"""
import json, sys
from pyosys import libyosys as ys
design, passes, before = ys.Design(), json.loads(sys.argv[1]), sys.argv[2]
for each in passes:
    if not each.startswith("KEEP"):
        ys.run_pass(each, design)
        continue
    ys.run_pass("write_json " + before, design)
    modules, level = json.load(open(before))["modules"], {"top"}
    for _ in range(int(each.split()[1])):
        level = {cell["type"] for name in level for cell in modules[name]["cells"].values()} & set(modules)
        for kind in sorted(level):
            ys.run_pass("setattr -mod -set keep_hierarchy 1 " + ("" if kind.startswith("$") else "\\") + kind, design)
"""
_LUTS = {f"LUT{n}" for n in range(1, 7)}
_SHIFTS = {"SRL16", "SRL16E", "SRLC16", "SRLC16E", "SRLC32E"}
#: Tables that a memory made of tables takes.
_MEMORIES = {
    "RAM32X1S": 1,
    "RAM64X1S": 1,
    "RAM32X1D": 2,
    "RAM64X1D": 2,
    "RAM128X1S": 2,
    "RAM128X1D": 4,
    "RAM256X1S": 4,
    "RAM32M": 4,
    "RAM64M": 4,
    "RAM32X2S": 2,
}
_REGISTERS = {"FDRE", "FDSE", "FDCE", "FDPE", "LDCE", "LDPE"}
_BLOCKS = {"RAMB18E1": 1, "RAMB36E1": 2}


@dataclass(frozen=True)
class Size:
    """What a netlist takes.

    `lut`: sites of tables: tables, memories and shift registers made of them, and those that lead into a carry chain.
    """

    lut: int = 0
    ff: int = 0
    dsp: int = 0
    bram18: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.lut + other.lut, self.ff + other.ff, self.dsp + other.dsp, self.bram18 + other.bram18)


@dataclass(frozen=True)
class Netlist:
    """The modules of a mapped design, as Yosys writes them, and all of it in one module."""

    modules: dict[str, Any]
    flat: dict[str, Any]

    def size(self, module: str = "top") -> Size:
        """Size of a module with all that is in it."""
        cells = self.modules[module]["cells"]
        total = _own_size(cells)
        for cell in cells.values():
            if cell["type"] in self.modules:
                total += self.size(cell["type"])
        return total

    def instances(self) -> dict[str, Size]:
        """Size of every instance of the top level."""
        sizes: dict[str, Size] = {}
        found = {}
        for name, cell in self.modules["top"]["cells"].items():
            kind = cell["type"]
            if kind in self.modules:
                sizes[kind] = sizes[kind] if kind in sizes else self.size(kind)
                found[name] = sizes[kind]
        return found


#: What maps a design, by family of devices.
MAPPINGS = {
    "xc7": "synth_xilinx -family xc7 -flatten -noiopad -noclkbuf",
    "ecp5": "synth_ecp5",
    "ice40": "synth_ice40",
    "gowin": "synth_gowin",
}


def synthesize(
    files: list[Path],
    work: Path,
    *,
    family: str = "xc7",
    dsp: bool = False,
    units: int = 0,
    seconds: float = 1800,
) -> Netlist:
    """The mapped netlist of a core with top module `top`; memory files lie beside `files`.

    units: the instances of the top level, and so many levels deep, are mapped by themselves, equal ones once, which is
    faster and shows the size of each. Raises RuntimeError.
    """
    folder = files[0].parent
    out, flat = (work / "netlist.json").resolve(), (work / "flat.json").resolve()
    passes = [f"read_verilog -defer {path.name}" for path in files]
    passes += [
        "hierarchy -top top",
        "setattr -mod -unset keep_hierarchy *",
        *(["proc", f"KEEP {units}"] if units else []),
    ]
    blocks = (" -dsp" if dsp else "") if family == "ice40" else "" if dsp else " -nodsp"
    passes += ["scratchpad -set abc9.verify 0", f"{MAPPINGS[family]}{blocks} -top top", f"write_json {out}"]
    if units:
        passes += ["setattr -mod -unset keep_hierarchy *", "flatten", "opt_clean", f"write_json {flat}"]
    run_passes(passes, folder, work, seconds)
    modules = {n: m for n, m in json.loads(out.read_text())["modules"].items() if "blackbox" not in m["attributes"]}
    return Netlist(modules, json.loads(flat.read_text())["modules"]["top"] if units else modules["top"])


def run_passes(passes: list[str], folder: Path, work: Path, seconds: float) -> None:
    """Runs Yosys in `folder`, with files of its own in `work`. Raises RuntimeError."""
    run([sys.executable, "-c", _RUNNER, json.dumps(passes), str((work / "before.json").resolve())], folder, seconds)


def run(command: list[str], folder: Path, seconds: float) -> str:
    """What a program prints. Raises RuntimeError if it fails or takes longer; what it has started ends with it, and
    with this process, if that is told to stop.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        printed, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"a tool took longer than {seconds:.0f} s") from None
    finally:
        if process.poll() is None:
            # A session of its own: only what this process has started is in the group.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.returncode:
        raise RuntimeError(f"a tool failed: {printed[-1500:]}")
    return printed


def _own_size(cells: dict[str, Any]) -> Size:
    kinds = [cell["type"] for cell in cells.values()]
    tables = sum(kind in _LUTS or kind in _SHIFTS for kind in kinds) + sum(_MEMORIES.get(kind, 0) for kind in kinds)
    return Size(
        lut=tables + _ways_into_carry_chains(cells),
        ff=sum(kind in _REGISTERS for kind in kinds),
        dsp=sum(kind == "DSP48E1" for kind in kinds),
        bram18=sum(_BLOCKS.get(kind, 0) for kind in kinds),
    )


def _ways_into_carry_chains(cells: dict[str, Any]) -> int:
    """Inputs S of carry chains that no table of their own drives: placement spends a table on each."""
    driven = {}
    for name, cell in cells.items():
        if cell["type"] in _LUTS:
            driven[cell["connections"]["O"][0]] = name
    used, ways = set(), 0
    for cell in cells.values():
        if cell["type"] == "CARRY4":
            for bit in cell["connections"]["S"]:
                if isinstance(bit, int):
                    table = driven.get(bit)
                    ways += table is None or table in used
                    used.add(table)
    return ways
