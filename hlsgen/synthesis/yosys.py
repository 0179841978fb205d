"""Yosys scripts: the passes that make a device's netlist from a core. No other module has them."""

from __future__ import annotations

from collections.abc import Sequence

from hlsgen.devices import Device

#: Name of the netlist that the passes write.
NETLIST = "netlist.json"
#: Options that allow and forbid DSP blocks, by synthesis pass. Other passes use them unless -nodsp is given.
_DSP_OPTIONS = {"synth_ice40": ("-dsp", ""), "synth_gatemate": ("", "-nomult")}


def passes(device: Device, files: Sequence[str], top: str, *, dsp: bool) -> list[str]:
    """The lines of a script that reads `files` and writes NETLIST, both in the folder that Yosys runs in.

    top: the module to synthesize. dsp: DSP blocks may be used; if False the netlist has none, for any family.
    """
    family = device.family
    with_dsp, without_dsp = _DSP_OPTIONS.get(family.synthesis.split()[0], ("", "-nodsp"))
    options = " ".join(filter(None, (family.synthesis, device.synthesis, with_dsp if dsp else without_dsp)))
    write_command = f"write_json {NETLIST}"
    if family.place:  # here the pass itself writes the netlist
        options, write_command = f"{options} -json {NETLIST}", ""
    lines = [f"read_verilog -defer {name}" for name in files]
    # Yosys does not prove abc9's cells again: that would take as long as all the other passes.
    lines += ["scratchpad -set abc9.verify 0", f"{options} -top {top}", write_command]
    return [line for line in lines if line]
