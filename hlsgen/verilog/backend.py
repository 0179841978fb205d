"""The Verilog target as a `Backend` record: the functions that the driver calls."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from hlsgen.cycle_model.fifo_sizing import size
from hlsgen.dataflow.backend import Backend, Emitted, Request
from hlsgen.dataflow.folding import Targets
from hlsgen.dataflow.folding_search import FoldingPrice
from hlsgen.dataflow.network import Network, Timing
from hlsgen.dataflow.plain_ports import fixed_latency, has_plain_ports
from hlsgen.dataflow.resources import Cost
from hlsgen.dataflow.units import MatVec, Node, SumTables
from hlsgen.dataflow.weighted_units import weight_bits
from hlsgen.dataflow.workload import Folding, Workload
from hlsgen.library import library_text, licensed
from hlsgen.rescale import LIBRARY, Choice
from hlsgen.verilog import certificate, emit
from hlsgen.verilog.bench_config import testbench_config
from hlsgen.verilog.folding_prices import (
    block_price,
    constant_price,
    consumer_price,
    folded_cost,
    folding_price,
    most_saving,
    regrouping_price,
)
from hlsgen.verilog.inverted_sums import without_inverters
from hlsgen.verilog.load_map import weight_table
from hlsgen.verilog.netlist import elaborate
from hlsgen.verilog.read_bits import with_read_bits
from hlsgen.verilog.ready_chains import cut_ready_chains
from hlsgen.verilog.resource_model import STYLES, lite_cost, network_cost, node_cost
from hlsgen.verilog.sum_tables import SMALL_LUTS, first_codes, table_row_luts, tables_pay, unit_sizes
from hlsgen.verilog.unit_table import latency
from hlsgen.verilog.unread_sums import with_unread_bits
from hlsgen.verilog.weight_packing import load_pieces


def _block(targets: Targets) -> int:
    """Bits of the wider factor of a DSP block, or 0 if products must not use DSP blocks."""
    return targets.dsp_factor_bits if targets.prefer == "dsp" else 0


def _folded_cost(works: Mapping[str, Workload], folding: Folding, targets: Targets) -> Cost:
    def block(layer: str) -> int:
        return targets.dsp_factor_bits if targets.uses_dsp(layer) else 0

    style, constants = STYLES[targets.weights], not targets.loadable
    budget = targets.budget if targets.free_memories else None
    return folded_cost(
        works, folding, dsp=block, style=style, family=targets.family, constants=constants, budget=budget
    )


def _blocks(works: Mapping[str, Workload], folding: Folding, targets: Targets, max_blocks: int) -> frozenset[str]:
    """The layers that save most LUT in DSP blocks, in at most `max_blocks` of them."""
    without_blocks, all_blocks = replace(targets, dsp_layers=frozenset()), replace(targets, dsp_layers=None)
    costs = {
        name: (_folded_cost({name: work}, folding, without_blocks), _folded_cost({name: work}, folding, all_blocks))
        for name, work in works.items()
    }
    return most_saving(costs, max_blocks)


def _network_cost(nodes: Iterable[Node], choices: Mapping[str, Choice], targets: Targets) -> Cost:
    dsp, style = _block(targets), STYLES[targets.weights]
    nodes = list(nodes)
    lite_ports = lite_cost(nodes, control=targets.control, loadable=targets.loadable, family=targets.family)
    return network_cost(nodes, choices, dsp=dsp, style=style, family=targets.family) + lite_ports


def _adders_pay(products: Node, adders: Node) -> bool:
    return node_cost(adders, dsp=0, style=0).lut < node_cost(products, dsp=0, style=0).lut


def _tables_of(node: Node, targets: Targets) -> SumTables | None:
    """The distributed arithmetic tables of a matrix unit, if they cost less than its products; else None."""
    unit, x, small = node.unit, node.source.type, targets.family in SMALL_LUTS
    if not isinstance(unit, MatVec):
        return None
    firsts = first_codes(unit.folds, x, unit.product, small=small)
    sizes = [unit_sizes(replace(unit, sums=SumTables(first, x.bits))) for first in firsts]
    best = min(sizes, key=lambda candidate: table_row_luts(unit.simd, x.bits, candidate, small=small), default=None)
    shape = unit.simd, x.bits, weight_bits(unit), unit.product, unit.folds
    extra_register = small and targets.pipelining.adders_per_stage == 1
    return SumTables(best.first, x.bits, extra_register) if best and tables_pay(*shape, best, small=small) else None


def _size_buffers(nodes: Sequence[Node], effort: int | None) -> tuple[tuple[Node, ...], Timing]:
    ready = with_unread_bits(with_read_bits(without_inverters(cut_ready_chains(nodes))))
    if has_plain_ports(nodes):
        return tuple(ready), Timing(fixed_latency(ready, latency), 1, fixed=True)
    sized = size(ready, latency, effort)
    return tuple(sized.nodes), Timing(sized.latency, sized.interval, tuple(sized.critical), sized.spare, sized.exact)


def _emit(network: Network, timing: Timing, request: Request) -> Emitted:
    """The files of rtl/, the testbench without its vectors, and the certificate."""
    design = elaborate(network, request, STYLES[request.weights])
    files = emit.emit(design, timing)
    rtl = {name: text.encode() for name, text in files.items() if name.startswith("rtl/")}
    files["certificate.json"] = certificate.emit(design, network, dict(request.model), rtl)
    files["tb/config.json"] = json.dumps(testbench_config(design, network, timing), indent=2) + "\n"
    files |= licensed({f"tb/{name}": library_text("tb", name) for name in ("test_top.py", "run.py", "Makefile")})
    reset = {"name": design.reset, "active": "low" if design.reset_active_low else "high", "kind": "synchronous"}
    top = {"module": design.top, "clock": design.clock, "reset": reset, "sources": "files.f"}
    return Emitted(files, top, weight_table(design, network) if design.loads else [], design)


VERILOG = Backend(
    memories=tuple(STYLES),
    prices=LIBRARY,
    folding_price=FoldingPrice(folding_price, regrouping_price, constant_price, block_price, consumer_price),
    folded_cost=_folded_cost,
    network_cost=_network_cost,
    size_buffers=_size_buffers,
    emit=_emit,
    load_pieces=load_pieces,
    adders_pay=_adders_pay,
    tables_of=_tables_of,
    choose_dsp_layers=_blocks,
    unit_lut=lambda node, family: node_cost(node, dsp=0, style=0, family=family).lut,
)
