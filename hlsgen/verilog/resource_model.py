"""What units cost: what they are made of, times factors that are fitted to Yosys' results (benchmarks/estimates.py)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib import resources

from hlsgen.dataflow.resources import Cost
from hlsgen.dataflow.units import Node, Port
from hlsgen.rescale import Choice
from hlsgen.verilog.parts import Parts
from hlsgen.verilog.unit_parts import node_parts, unit_parts

#: How weights are held, by option: STYLE of hg_weights.
STYLES = {"auto": 0, "lutram": 1, "bram": 2}
#: (LUT, FF) of hg_control with one port each way, of a further port, and of hg_axil_weights, as Yosys makes them.
_LITE = {
    "xc7": ((159, 117), (64, 37), (24, 112)),
    "ecp5": ((196, 117), (96, 37), (66, 112)),
    "ice40": ((158, 117), (88, 37), (38, 112)),
    "gowin": ((191, 117), (90, 37), (78, 112)),
}


@lru_cache(maxsize=1)
def _factors() -> dict[str, dict[str, dict[str, dict[str, float]]]]:
    """Family -> unit -> lut or ff -> part -> what it is multiplied by; of parts that are not named, 1."""
    text = resources.files("hlsgen.verilog").joinpath("unit_factors.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def cost_of(parts: Parts, family: str = "xc7") -> Cost:
    """Cost of a unit, by the factors that were fitted for a family of devices."""
    own = _factors().get(family, {}).get(parts.unit, {})
    lut, ff = (
        sum(number * own.get(what, {}).get(name, 1.0) for name, number in expected.items())
        for what, expected in (("lut", parts.lut), ("ff", parts.ff))
    )
    return Cost(lut, parts.dsp, parts.bram, ff)


def node_cost(node: Node, *, dsp: int, style: int) -> Cost:
    """Cost of one unit, that of a quantizer without its tables."""
    return cost_of(unit_parts(node, dsp=dsp, style=style))


def lite_cost(nodes: Iterable[Node], *, control: bool, loadable: bool, family: str = "xc7") -> Cost:
    """Cost of the ports of AXI4-Lite of a network that has these stream ports; of none where there are no ports."""
    ports = sum(isinstance(node.unit, Port) for node in nodes)
    one, further, weights = _LITE.get(family, _LITE["xc7"])
    watched = tuple(own + (ports - 2) * more for own, more in zip(one, further, strict=True)) if control else (0, 0)
    lut, ff = (a + b for a, b in zip(watched, weights if loadable else (0, 0), strict=True))
    return Cost(lut=lut, ff=ff) if ports else Cost()


def network_cost(
    nodes: Iterable[Node], choices: Mapping[str, Choice], *, dsp: int, style: int, family: str = "xc7"
) -> Cost:
    """Cost of units, and of the realizations of the quantizers among them, in the kinds of a family of devices."""
    counted: set[str] = set()
    parts = (node_parts(node, choices, counted, dsp=dsp, style=style, family=family) for node in nodes)
    found = (cost_of(each, family) for each in parts)
    return sum(found, Cost())
