"""C++ for HLS: seconds to build (and as a multiple of the Verilog's) and to compile, frames a second of the processor
in C simulation.

`make bench`. Ratios are what to look at; models that do not ship with the project are skipped where they are absent.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

import hlsgen
from hlsgen.driver.build_directory import write_build
from hlsgen.simulation.cpp_library import CPP, CppCore
from hlsgen.testbench.stimuli import stimuli

ROOT = Path(__file__).resolve().parent.parent
#: Model and frames by simulator: as many as take seconds.
CASES = {
    ROOT / "examples" / "digits" / "digits_mlp.onnx": {"ap_types": 20_000, "ac_types": 100_000},
    ROOT / "examples" / "digits_cnn" / "digits_cnn.onnx": {"ap_types": 500, "ac_types": 10_000},
    ROOT.parent / "shared" / "models" / "brevitas" / "cnv_2w2a.onnx": {"ac_types": 100},
}


def built(model: Path, target: str) -> tuple[hlsgen.Build, float]:
    start = time.perf_counter()
    build = hlsgen.check(model, hlsgen.Options(target=target))
    return build, time.perf_counter() - start


def processor_seconds() -> float:
    """Of the processes that have ended: of the simulation alone, without the packing of its words here."""
    spent = os.times()
    return spent.children_user + spent.children_system


def main() -> None:
    """Prints the table."""
    table = Table("model", "build s", "of Verilog", "integers", "compile s", "frames a CPU second", title="C++ for HLS")
    for model, counts in CASES.items():
        if not model.exists():
            table.add_row(model.stem, "absent")
            continue
        (_, verilog), (build, seconds) = built(model, "verilog"), built(model, "hls")
        for simulator, count in counts.items():
            assert simulator in CPP
            with tempfile.TemporaryDirectory() as folder:
                core, work = Path(folder) / "core", Path(folder) / "work"
                write_build(build, core)
                work.mkdir()
                start = time.perf_counter()
                program = CppCore(build.cpp, build.network, core, work, simulator)
                compiled = time.perf_counter()
                codes = stimuli(build.network, count, 1)
                begun = processor_seconds()
                program.run(codes)
                speed = len(codes) / (processor_seconds() - begun)
            ratio, compiling = seconds / verilog, compiled - start
            table.add_row(model.stem, f"{seconds:.1f}", f"{ratio:.2f}", simulator, f"{compiling:.1f}", f"{speed:,.0f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
