"""Whether a network fits a device: the estimate in the device's kinds, and what of a device a network may take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hlsgen.dataflow.resources import Budget, Cost
from hlsgen.devices import Device
from hlsgen.diagnostics import Diagnostic

#: What is said of a network that is too large.
_HINT = "Choose a larger device or budget, a lower rate, or --weights and --prefer otherwise."
#: Part of a device that the search for the fastest network fills: fuller ones are hard to route, and estimates are rough.
SHARE = 0.8

#: Layers that HG070 names.
NAMED = 3


@dataclass(frozen=True)
class Needs:
    """What a network takes. `cost`: all of it. `by_layer`: of each layer, or unit of none. `weight_bits`: of all weights."""

    cost: Cost
    by_layer: Mapping[str, Cost] = field(default_factory=dict)
    weight_bits: int = 0


def in_kinds(cost: Cost, device: Device) -> dict[str, int]:
    """A cost, in the kinds of the family that this one is counted as, in those of the device."""
    family = device.family
    blocks = -(-cost.bram * family.counted_bits // family.bram_bits)
    return {
        "lut": round((cost.lut + family.lut_per_ff * cost.ff) * family.lut_per_counted),
        "dsp": cost.dsp,
        "bram": blocks,
    }


def budget_of(device: Device, share: float) -> Budget:
    """That share of a device, in the kinds of a cost."""
    all_ = Budget(*(int(count * share) for count in (device.lut, device.dsp, device.bram, device.ff)))
    return _in_cost(all_, device)


def allowed(asked: Budget, device: Device | None, share: float) -> Budget:
    """What a network may take: what is asked for, in a device's kinds if one is named, and that share of it."""
    if device is None:
        return asked
    mine, all_ = _in_cost(asked, device), budget_of(device, share)
    parts = zip(mine.limits, all_.limits, strict=True)
    lut, dsp, bram, ff = (min(number for number in pair if number is not None) for pair in parts)
    return Budget(lut, dsp, bram, ff, device.family.lut_per_ff)


def too_large(
    needs: Needs, asked: Budget, device: Device | None, *, searched_for: bool, smallest: str
) -> list[Diagnostic]:
    """HG070 if the network is more than was asked for, or than a device has; of one that was searched for, than SHARE of it.

    A warning HG090 if one that was not searched for is more than SHARE of its device. `smallest`: what the network is.
    """
    counts, names = _counts(needs.cost, device), _names(device)
    limits = {"lut": asked.lut, "dsp": asked.dsp, "bram": asked.bram}
    over = [kind for kind in limits if (most := limits[kind]) is not None and counts[kind] > most]
    found = []
    if over:
        takes = ", ".join(f"{counts[kind]} {names[kind]}" for kind in limits)
        text = f"{smallest} takes about {takes}; it may have {', '.join(f'{limits[k]} {names[k]}' for k in over)}."
        text += _largest(needs, device, over[0])
        found.append(Diagnostic("HG070", "--max-lut, --max-dsp, --max-bram", text, _HINT))
    if device is not None:
        there = {"lut": device.lut, "dsp": device.dsp, "bram": device.bram, "ff": device.ff}
        share = SHARE if searched_for else 1.0
        takes = ", ".join(f"{counts[kind]} {names[kind]}" for kind in names)
        over = [kind for kind in names if counts[kind] > there[kind] * share]
        full = [f"{there[k]} {names[k]}" for k in names if counts[k] > there[k] * SHARE]
        most_of = f"{100 * SHARE:.0f} % of " if searched_for else ""
        if over:
            has = ", ".join(f"{there[kind]} {names[kind]}" for kind in over)
            text = f"{smallest} takes about {takes}; {device.name} has {most_of}{has}."
            text += _weights(needs, device) or _largest(needs, device, over[0])
            found.append(Diagnostic("HG070", "--device", text, _HINT))
        elif full:
            text = f"the network takes about {takes}, of {', '.join(full)}: such a full device is hard to route."
            found.append(Diagnostic("HG090", "--device", text, "hlsgen synth shows whether it can be.", "warning"))
    return found


def _weights(needs: Needs, device: Device) -> str:
    """A sentence, if the weights alone are more than the block memories of the device hold; else nothing."""
    blocks = device.bram * device.family.bram_bits
    if needs.weight_bits <= blocks:
        return ""
    tables = device.lut << device.family.lut_inputs
    sizes = f"{_mbit(blocks)} in {device.family.bram} and at most {_mbit(tables)} in {device.family.lut}"
    return f" The weights alone are {_mbit(needs.weight_bits)}; the device has {sizes}."


def _mbit(bits: int) -> str:
    return f"{bits / 1e6:{'.1f' if bits >= 1e6 else '.2g'}} Mbit"


def _largest(needs: Needs, device: Device | None, kind: str) -> str:
    """A sentence that names the layers which take the most of a kind."""
    taken = {layer: _counts(cost, device)[kind] for layer, cost in needs.by_layer.items()}
    largest = sorted((layer for layer in taken if taken[layer]), key=lambda layer: -taken[layer])[:NAMED]
    if len(taken) < 2 or not largest:
        return ""
    return f" Of the {_names(device)[kind]}, {', '.join(f'{layer} takes {taken[layer]}' for layer in largest)}."


def _counts(cost: Cost, device: Device | None) -> dict[str, int]:
    """A cost by kind, in the kinds of the device."""
    kinds = {"lut": round(cost.lut), "dsp": cost.dsp, "bram": cost.bram} if device is None else in_kinds(cost, device)
    return {**kinds, "ff": round(cost.ff)}


def _names(device: Device | None) -> dict[str, str]:
    """Names of LUT, DSP blocks, block memories and registers."""
    if device is None:
        return {"lut": "LUT", "dsp": "DSP", "bram": "BRAM18", "ff": "registers"}
    family = device.family
    return {"lut": family.lut, "dsp": family.dsp, "bram": family.bram, "ff": "registers"}


def _in_cost(budget: Budget, device: Device) -> Budget:
    """A budget in a device's kinds, in those of a cost."""
    family = device.family
    lut = None if budget.lut is None else int(budget.lut / family.lut_per_counted)
    bram = None if budget.bram is None else budget.bram * family.bram_bits // family.counted_bits
    return Budget(lut, budget.dsp, bram, budget.ff, family.lut_per_ff)
