"""Whether a network fits a device: the estimate in the device's kinds, and what of a device a network may take."""

from __future__ import annotations

from dataclasses import astuple

from hlsgen.dataflow.resources import Budget, Cost
from hlsgen.devices import Device
from hlsgen.diagnostics import Diagnostic

#: What is said of a network that is too large.
_HINT = "Choose a larger device or budget, a lower rate, or --weights and --prefer otherwise."
#: Part of a device that the search for the fastest network fills: fuller ones are hard to route, and estimates are rough.
SHARE = 0.8


def in_kinds(cost: Cost, device: Device) -> dict[str, int]:
    """A cost, in the kinds of the family that this one is counted as, in those of the device."""
    family = device.family
    blocks = -(-cost.bram * family.counted_bits // family.bram_bits)
    return {"lut": round(cost.lut * family.lut_per_counted), "dsp": cost.dsp, "bram": blocks}


def budget_of(device: Device, share: float) -> Budget:
    """That share of a device, in the kinds of a cost."""
    all_ = Budget(*(int(count * share) for count in (device.lut, device.dsp, device.bram, device.ff)))
    return _in_cost(all_, device)


def allowed(asked: Budget, device: Device | None, share: float) -> Budget:
    """What a network may take: what is asked for, in a device's kinds if one is named, and that share of it."""
    if device is None:
        return asked
    mine, all_ = _in_cost(asked, device), budget_of(device, share)
    parts = zip(astuple(mine), astuple(all_), strict=True)
    return Budget(*(min(number for number in pair if number is not None) for pair in parts))


def too_large(
    cost: Cost, asked: Budget, device: Device | None, *, searched_for: bool, smallest: str
) -> list[Diagnostic]:
    """HG070 if the network is more than was asked for, or than a device has; of one that was searched for, than SHARE of it.

    A warning HG090 if one that was not searched for is more than SHARE of its device. `smallest`: what the network is.
    """
    counts = {"lut": round(cost.lut), "dsp": cost.dsp, "bram": cost.bram} if device is None else in_kinds(cost, device)
    names = _names(device)
    takes = ", ".join(f"{counts[kind]} {names[kind]}" for kind in names)
    limits = {"lut": asked.lut, "dsp": asked.dsp, "bram": asked.bram}
    over = [f"{limits[k]} {names[k]}" for k in names if limits[k] is not None and counts[k] > (limits[k] or 0)]
    found = []
    if over:
        text = f"{smallest} takes about {takes}; it may have {', '.join(over)}."
        found.append(Diagnostic("HG070", "--max-lut, --max-dsp, --max-bram", text, _HINT))
    if device is not None:
        counts, names = {**counts, "ff": round(cost.ff)}, {**names, "ff": "registers"}
        there = {"lut": device.lut, "dsp": device.dsp, "bram": device.bram, "ff": device.ff}
        share = SHARE if searched_for else 1.0
        takes = ", ".join(f"{counts[kind]} {names[kind]}" for kind in names)
        over = [f"{there[k]} {names[k]}" for k in names if counts[k] > there[k] * share]
        full = [f"{there[k]} {names[k]}" for k in names if counts[k] > there[k] * SHARE]
        most = f"{100 * SHARE:.0f} % of " if searched_for else ""
        if over:
            text = f"{smallest} takes about {takes}; {device.name} has {most}{', '.join(over)}."
            found.append(Diagnostic("HG070", "--device", text, _HINT))
        elif full:
            text = f"the network takes about {takes}, of {', '.join(full)}: such a full device is hard to route."
            found.append(Diagnostic("HG090", "--device", text, "hlsgen synth shows whether it can be.", "warning"))
    return found


def _names(device: Device | None) -> dict[str, str]:
    """What tables, multiplier blocks and block memories are called."""
    if device is None:
        return {"lut": "LUT", "dsp": "DSP", "bram": "BRAM18"}
    return {"lut": device.family.lut, "dsp": device.family.dsp, "bram": device.family.bram}


def _in_cost(budget: Budget, device: Device) -> Budget:
    """A budget in a device's kinds, in those of a cost."""
    family = device.family
    lut = None if budget.lut is None else int(budget.lut / family.lut_per_counted)
    bram = None if budget.bram is None else budget.bram * family.bram_bits // family.counted_bits
    return Budget(lut, budget.dsp, bram, budget.ff)
