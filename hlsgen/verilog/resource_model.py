"""What units cost: what they are made of, times factors that are fitted to Yosys' results (benchmarks/estimates.py)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from importlib import resources

from hlsgen.dataflow.resources import Cost
from hlsgen.dataflow.units import Node, Product
from hlsgen.dataflow.weighted_units import product_of
from hlsgen.dataflow.workload import Folding, Workload
from hlsgen.ir import MatrixProduct
from hlsgen.numerics.fixed import IntType
from hlsgen.rescale import Choice
from hlsgen.verilog.dot_sizes import dot_tables
from hlsgen.verilog.memory_sizes import buffer, memory
from hlsgen.verilog.parts import Parts
from hlsgen.verilog.unit_parts import multipliers, node_parts, unit_parts

#: How weights are held, by option: STYLE of hg_weights.
STYLES = {"auto": 0, "lutram": 1, "bram": 2}
#: Tables of a family for one of Xilinx 7 series, roughly, before anything is planned.
ROUGHLY = {"ecp5": 1.5, "gowin": 1.6, "ice40": 1.4}
#: Widest input beat of a layer, in bits, that costs nothing but its registers.
WIDE_BEAT = 1024


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


def network_cost(
    nodes: Iterable[Node], choices: Mapping[str, Choice], *, dsp: int, style: int, family: str = "xc7"
) -> Cost:
    """Cost of units, and of the realizations of the quantizers among them, in the kinds of a family of devices."""
    counted: set[str] = set()
    parts = (node_parts(node, choices, counted, dsp=dsp, style=style, family=family) for node in nodes)
    found = (cost_of(each, family) for each in parts)
    return sum(found, Cost())


def folded_cost(works: Mapping[str, Workload], folding: Folding, *, dsp: int, style: int, family: str = "xc7") -> Cost:
    """What the multiplying layers of a folding cost, roughly, before anything is planned.

    Behind every result lane a quantizer of its code's bits is counted.
    """
    total = Cost()
    for name, work in works.items():
        pe, simd = folding[name]
        layer = work.layer
        if isinstance(layer, MatrixProduct):
            x, bits = layer.operand(0), _factor_bits(layer)
            words, width = 2 * -(-layer.sources[1].size // (pe * simd)), pe * simd * layer.sources[1].type.bits
            total += multipliers(x, bits, Product.INTEGER, pe, simd, dsp, family, pe)
            total += buffer(words, width, family)
            total += Cost(lut=110 + pe * (layer.result.type.bits + 40) + 2 * simd * x.bits)
            continue
        product = product_of(layer)
        low, high = int(layer.weight.min()), int(layer.weight.max())
        bits = IntType(min(low, -1), high).bits if product is Product.INTEGER else 1
        together = 1 if work.depthwise else pe // work.windows(pe)
        total += multipliers(layer.source.type, bits, product, pe, simd, dsp, family, together)
        total += memory(-(-layer.weight.size // (pe * simd)), pe * simd * bits, style, family)
        total += Cost(lut=110 + pe * (layer.result.type.bits + 40) + 2 * simd * layer.source.type.bits)
        total += Cost(lut=_rotation(work, pe, simd))
    return replace(total, lut=total.lut * ROUGHLY.get(family, 1.0))


def folding_price(work: Workload, pe: int, simd: int) -> float:
    """Tables of a layer with this folding, roughly, in order to compare it with other foldings of the layer."""
    layer = work.layer
    if isinstance(layer, MatrixProduct):
        left, bits = layer.operand(0).bits, _factor_bits(layer)
        beat = simd * left + pe * simd * layer.sources[1].type.bits
        tables = pe * dot_tables(simd, left, bits, Product.INTEGER) + pe * layer.result.type.bits * 3
        return tables + beat / 4 + max(0, beat - WIDE_BEAT) * 2
    x_bits, product = layer.source.type.bits, product_of(layer)
    low, high = int(layer.weight.min()), int(layer.weight.max())
    w_bits = IntType(low, high).bits if product is Product.INTEGER else 1
    beat = work.columns_at_once(simd) * x_bits
    tables = pe * dot_tables(simd, x_bits, w_bits, product)
    tables += pe * layer.result.type.bits * 3 + max(0, beat - WIDE_BEAT) * 2
    return tables + _rotation(work, pe, simd)


def _factor_bits(layer: MatrixProduct) -> int:
    """Bits of the second operand of a product, as a signed number."""
    type_ = layer.operand(1)
    return IntType(min(-1, type_.lo), max(0, type_.hi)).bits


def _rotation(work: Workload, pe: int, simd: int) -> float:
    """Tables that put the taps of a window in their places in hg_unfold, 0 if they come one by one."""
    assert not isinstance(work.layer, MatrixProduct)
    lanes = work.elements(pe, simd) * work.taps * work.windows(pe) if work.at_once(pe, simd) else 0
    return 2.0 * lanes * work.layer.source.type.bits
