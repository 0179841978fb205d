"""Decides if a network fits a device, by its estimate in the resources of the device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hlsgen.dataflow.resources import Budget, Cost
from hlsgen.devices import Device, resource_names
from hlsgen.diagnostics import Diagnostic

#: Hint for a network that is too large.
_HINT = "Choose a larger device or budget, a lower rate, or other values of --weights and --prefer."
#: Share of a device that the search for the fastest network fills: fuller devices are hard to route, and estimates are
#: rough.
SHARE = 0.8

#: Layers that HG070 names.
NAMED = 3


@dataclass(frozen=True)
class Needs:
    """Resources of a network.

    cost: in total. by_layer: of each layer, or of each unit without a layer. weight_bits: bits of all weights.
    """

    cost: Cost
    by_layer: Mapping[str, Cost] = field(default_factory=dict)
    weight_bits: int = 0


def counting_family(device: Device | None) -> str:
    """The family in whose resources a cost is estimated for a device."""
    return "xc7" if device is None else device.family.counted_as


def in_kinds(cost: Cost, device: Device | None) -> dict[str, int]:
    """Converts a cost, counted in resources of `counting_family`, to resources of the device."""
    if device is None:
        return {"lut": round(cost.lut), "ff": round(cost.ff), "bram": cost.bram, "dsp": cost.dsp}
    family = device.family
    blocks = -(-cost.bram * family.counted_bits // family.bram_bits)
    return {
        "lut": round((cost.lut + family.lut_per_ff * cost.ff) * family.lut_per_counted),
        "ff": round(cost.ff),
        "bram": blocks,
        "dsp": cost.dsp,
    }


def budget_of(device: Device, share: float) -> Budget:
    """A share of a device as a budget, in the resources of a cost."""
    resources = Budget(*(int(count * share) for count in (device.lut, device.dsp, device.bram, device.ff)))
    return _in_cost(resources, device)


def allowed(requested_budget: Budget, device: Device | None, share: float) -> Budget:
    """The smaller of the requested budget (in resources of the device) and a share of the device."""
    if device is None:
        return requested_budget
    requested, share_of_device = _in_cost(requested_budget, device), budget_of(device, share)
    parts = zip(requested.limits, share_of_device.limits, strict=True)
    lut, dsp, bram, ff = (min(number for number in pair if number is not None) for pair in parts)
    return Budget(lut, dsp, bram, ff, device.family.lut_per_ff)


def too_large(
    needs: Needs, requested_budget: Budget, device: Device | None, *, searched_for: bool, smallest: str
) -> list[Diagnostic]:
    """HG070 if a network exceeds the requested budget or its device.

    A network that a search has found may use SHARE of the device. HG090 warns if another network exceeds SHARE.
    smallest: the network in words.
    """
    counts, names = in_kinds(needs.cost, device), resource_names(device)
    limits = {"lut": requested_budget.lut, "dsp": requested_budget.dsp, "bram": requested_budget.bram}
    exceeded = [kind for kind in limits if (limit := limits[kind]) is not None and counts[kind] > limit]
    diagnostics = []
    if exceeded:
        used = ", ".join(f"{counts[kind]} {names[kind]}" for kind in limits)
        text = f"{smallest} needs about {used}; the budget is {', '.join(f'{limits[k]} {names[k]}' for k in exceeded)}."
        text += _largest(needs, device, exceeded[0])
        diagnostics.append(Diagnostic("HG070", "--max-lut, --max-dsp, --max-bram", text, _HINT))
    if device is not None:
        available = {"lut": device.lut, "dsp": device.dsp, "bram": device.bram, "ff": device.ff}
        share = SHARE if searched_for else 1.0
        used = ", ".join(f"{counts[kind]} {names[kind]}" for kind in names)
        exceeded = [kind for kind in names if counts[kind] > available[kind] * share]
        nearly_full = [f"{available[k]} {names[k]}" for k in names if counts[k] > available[k] * SHARE]
        share_text = f"{100 * SHARE:.0f} % of " if searched_for else ""
        if exceeded:
            capacity = ", ".join(f"{available[kind]} {names[kind]}" for kind in exceeded)
            text = f"{smallest} needs about {used}; {device.name} has {share_text}{capacity}."
            text += _weights(needs, device) or _largest(needs, device, exceeded[0])
            diagnostics.append(Diagnostic("HG070", "--device", text, _HINT))
        elif nearly_full:
            text = f"the network needs about {used}, of {', '.join(nearly_full)}. A device this full is hard to route."
            diagnostics.append(
                Diagnostic("HG090", "--device", text, "hlsgen synth shows if routing succeeds.", "warning")
            )
    return diagnostics


def _weights(needs: Needs, device: Device) -> str:
    """A sentence if the weights alone exceed the block RAM of the device; else an empty string."""
    blocks = device.bram * device.family.bram_bits
    if needs.weight_bits <= blocks:
        return ""
    tables = device.lut << device.family.lut_inputs
    sizes = f"{_mbit(blocks)} in {device.family.bram} and at most {_mbit(tables)} in {device.family.lut}"
    return f" The weights alone are {_mbit(needs.weight_bits)}; the device has {sizes}."


def _mbit(bits: int) -> str:
    return f"{bits / 1e6:{'.1f' if bits >= 1e6 else '.2g'}} Mbit"


def _largest(needs: Needs, device: Device | None, kind: str) -> str:
    """A sentence that names the layers with the most of a resource."""
    used = {layer: in_kinds(cost, device)[kind] for layer, cost in needs.by_layer.items()}
    largest = sorted((layer for layer in used if used[layer]), key=lambda layer: -used[layer])[:NAMED]
    if len(used) < 2 or not largest:
        return ""
    layers = ", ".join(f"{layer} {used[layer]}" for layer in largest)
    return f" Layers with the most {resource_names(device)[kind]}: {layers}."


def _in_cost(budget: Budget, device: Device) -> Budget:
    """Converts a budget in resources of a device to resources of a cost."""
    family = device.family
    lut = None if budget.lut is None else int(budget.lut / family.lut_per_counted)
    bram = None if budget.bram is None else budget.bram * family.bram_bits // family.counted_bits
    return Budget(lut, budget.dsp, bram, budget.ff, family.lut_per_ff)
