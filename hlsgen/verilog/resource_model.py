"""Cost of units: the resources of their parts, times factors fitted to Yosys' results (benchmarks/estimates.py)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib import resources

from hlsgen.dataflow.resources import Cost
from hlsgen.dataflow.units import Node, Port
from hlsgen.rescale import Choice
from hlsgen.verilog.parts import Parts
from hlsgen.verilog.unit_table import node_parts, unit_parts

#: STYLE of hg_weights for each option value.
STYLES = {"auto": 0, "lutram": 1, "bram": 2}
#: (LUT, FF) as synthesized by Yosys: hg_control with one port each way, one further port, and hg_axil_weights.
_LITE = {
    "xc7": ((159, 117), (64, 37), (24, 112)),
    "ecp5": ((196, 117), (96, 37), (66, 112)),
    "ice40": ((158, 117), (88, 37), (38, 112)),
    "gowin": ((191, 117), (90, 37), (78, 112)),
}


@lru_cache(maxsize=1)
def _factors() -> dict[str, dict[str, dict[str, dict[str, float]]]]:
    """Family -> unit -> lut or ff -> part -> its factor; the factor is 1 for parts that are not listed."""
    text = resources.files("hlsgen.verilog").joinpath("unit_factors.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def cost_of(parts: Parts, family: str = "xc7") -> Cost:
    """Cost of a unit, by the factors that were fitted for a family of devices."""
    unit_factors = _factors().get(family, {}).get(parts.unit, {})
    lut, ff = (
        sum(number * unit_factors.get(resource, {}).get(name, 1.0) for name, number in expected.items())
        for resource, expected in (("lut", parts.lut), ("ff", parts.ff))
    )
    return Cost(lut, parts.dsp, parts.bram, ff)


def node_cost(node: Node, *, dsp: int, style: int, family: str = "xc7") -> Cost:
    """Cost of one unit; a quantizer without its lookup tables."""
    return cost_of(unit_parts(node, dsp=dsp, style=style, family=family), family)


def lite_cost(nodes: Iterable[Node], *, control: bool, loadable: bool, family: str = "xc7") -> Cost:
    """Cost of the AXI4-Lite ports of a network with these nodes; zero if it has no ports."""
    ports = sum(isinstance(node.unit, Port) for node in nodes)
    first_ports, further, weights = _LITE.get(family, _LITE["xc7"])
    control_cost = (
        tuple(base + (ports - 2) * per_port for base, per_port in zip(first_ports, further, strict=True))
        if control
        else (0, 0)
    )
    lut, ff = (a + b for a, b in zip(control_cost, weights if loadable else (0, 0), strict=True))
    return Cost(lut=lut, ff=ff) if ports else Cost()


def network_cost(
    nodes: Iterable[Node], choices: Mapping[str, Choice], *, dsp: int, style: int, family: str = "xc7"
) -> Cost:
    """Cost of units, and of the realizations of the quantizers among them, in the resources of a device family."""
    counted: set[str] = set()
    parts = (node_parts(node, choices, counted, dsp=dsp, style=style, family=family) for node in nodes)
    costs = (cost_of(unit_parts_, family) for unit_parts_ in parts)
    return sum(costs, Cost())
