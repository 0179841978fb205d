"""Names of all simulators, and of the backends of `run`."""

from __future__ import annotations

from hlsgen.driver.compile import Build

#: Simulators of Verilog.
VERILOG = ("verilator", "icarus")
#: C simulation with the integer types of these headers -> their dialect.
CPP = {"ap_types": "ap", "ac_types": "ac"}
SIMULATORS = (*VERILOG, *CPP)
#: Backends of `run` -> the simulator that they use.
BACKENDS = {
    "reference": "",
    "verilator": "verilator",
    "icarus": "icarus",
    "cpp": "ac_types",
    "cpp-ap": "ap_types",
}


def simulators_of(build: Build) -> list[str]:
    """Simulators for the targets of a build. A build without targets gets the Verilog simulators, which report
    HG040."""
    simulators = [*(VERILOG if "verilog" in build.designs else ()), *(CPP if "hls" in build.designs else ())]
    return simulators or list(VERILOG)
