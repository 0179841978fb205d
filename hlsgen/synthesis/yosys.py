"""The command lines of Yosys: passes that make a netlist of a core for a device. The only place that has them."""

from __future__ import annotations

from collections.abc import Sequence

from hlsgen.devices import Device

#: Name of the netlist that the passes write.
NETLIST = "netlist.json"
#: What Yosys takes multiplier blocks with, and what keeps it from that, by its pass.
_BLOCKS = {"synth_ice40": ("-dsp", "")}


def passes(device: Device, files: Sequence[str], top: str, *, dsp: bool) -> list[str]:
    """The lines of a script that reads `files` and writes NETLIST, both in the folder that Yosys runs in.

    top: the module to synthesize. dsp: multiplier blocks may be taken; else the netlist has none, whatever the family.
    """
    family = device.family
    taken, refused = _BLOCKS.get(family.synthesis.split()[0], ("", "-nodsp"))
    options = " ".join(filter(None, (family.synthesis, device.synthesis, taken if dsp else refused)))
    writes = f"write_json {NETLIST}"
    if family.place:  # nextpnr's netlists are written by the pass itself
        options, writes = f"{options} -json {NETLIST}", ""
    lines = [f"read_verilog -defer {name}" for name in files]
    # Cells of abc9 are not proven again: that takes as long as everything else.
    lines += ["scratchpad -set abc9.verify 0", f"{options} -top {top}", writes]
    return [line for line in lines if line]
