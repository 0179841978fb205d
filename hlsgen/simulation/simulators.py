"""The names of all simulators, and of the backends that `run` takes."""

from __future__ import annotations

from hlsgen.driver.compile import Build

#: Those of Verilog.
VERILOG = ("verilator", "icarus")
#: C simulation, by the headers whose integers it takes, and their dialect.
CPP = {"ap_types": "ap", "ac_types": "ac"}
SIMULATORS = (*VERILOG, *CPP)
#: What `run` takes, and the simulator behind it.
BACKENDS = {
    "reference": "", "verilator": "verilator", "icarus": "icarus", "cpp": "ac_types", "cpp-ap": "ap_types",
}  # fmt: skip


def simulators_of(build: Build) -> list[str]:
    """Those that can simulate something of a build; of one without Verilog and C++ those of Verilog, which say so."""
    found = [*(VERILOG if "verilog" in build.designs else ()), *(CPP if "hls" in build.designs else ())]
    return found or list(VERILOG)
