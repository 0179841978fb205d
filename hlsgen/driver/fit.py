"""Whether a network fits a device: the estimate in the device's kinds, and what of a device a network may take."""

from __future__ import annotations

from hlsgen.dataflow.resources import Budget, Cost
from hlsgen.devices import Device

#: Bits of a block memory of the estimate.
_BLOCK_BITS = 18 * 1024
#: Part of a device that the search for the fastest network fills: fuller ones are hard to route, and estimates are rough.
SHARE = 0.8


def in_kinds(cost: Cost, device: Device) -> dict[str, int]:
    """A cost, which counts what Xilinx 7 series have, in the tables, block memories and multipliers of a device."""
    family = device.family
    blocks = -(-cost.bram * _BLOCK_BITS // family.bram_bits)
    return {"lut": round(cost.lut * family.lut_per_lut6), "dsp": cost.dsp, "bram": blocks}


def budget_of(device: Device, share: float = SHARE) -> Budget:
    """What of a device a network may take, in the kinds of a cost."""
    family = device.family
    blocks = int(device.bram * share) * family.bram_bits // _BLOCK_BITS
    return Budget(int(device.lut * share / family.lut_per_lut6), int(device.dsp * share), blocks)
