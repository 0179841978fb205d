"""Parallelism of the layers that multiply: PE rows by SIMD columns a cycle."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache

from hlsgen import ir
from hlsgen.dataflow.folding_search import FoldingPrice, cheapest
from hlsgen.dataflow.pipelining import PLAIN, Pipelining
from hlsgen.dataflow.resources import Budget
from hlsgen.dataflow.workload import Folding, Workload, several_windows, work_of, works_of
from hlsgen.diagnostics import Collector
from hlsgen.rescale import Preference, Prices

#: Multiplications a cycle that the default folding aims at: about 6,000 LUT at 4 bits, 17,000 at 8.
DEFAULT_PARALLELISM = 256
#: Most multiplications a cycle of a layer that the search folds to several windows at once.
MOST_PRODUCTS = 1 << 14
#: Most taps of a pool that processes all taps at once.
MOST_TAPS = 64


@dataclass(frozen=True)
class Targets:
    """The user's requirements.

    - `folding` maps layer names to {"pe": ..., "simd": ...}, `realize` maps quantizers to a realization.
    - `loadable`: weights can be written at run time. `control`: there is a port for control and status.
    - `bus`: bits of tdata of both ports; 0: as few as the interval allows; None: the width of a beat.
    - `family`: the device family whose resources costs and budget count.
    - `dsp_factor_bits`: bits of the wider factor of a DSP block: rows may share a block that has room for two.
    - `dsp_layers`: layers with products in DSP blocks; None: all, if DSP blocks are preferred.
    - `plain`: quantizers use no DSP blocks.
    - `pipelining`: for the target clock. `latency`: most cycles from the first word in to the last word out.
    - `plain_ports`: the ports have no handshake, and a frame comes in every cycle.
    - `settled`: weights are in their cheapest memory, regardless of the budget.
    """

    cycles: int | None = None
    lanes: int | None = None
    folding: dict[str, dict[str, int]] = field(default_factory=dict)
    prefer: str = "lut"
    realize: dict[str, str] = field(default_factory=dict)
    weights: str = "auto"
    loadable: bool = False
    control: bool = False
    budget: Budget = field(default_factory=Budget)
    bus: int | None = None
    family: str = "xc7"
    dsp_factor_bits: int = 25
    dsp_layers: frozenset[str] | None = None
    plain: bool = False
    pipelining: Pipelining = PLAIN
    latency: int | None = None
    settled: bool = False
    plain_ports: bool = False

    @property
    def free_memories(self) -> bool:
        """True if the kind of each weight memory may be chosen to meet the budget."""
        return self.weights == "auto" and not self.loadable and not self.settled

    @property
    def wires_weights(self) -> bool:
        """True if weights of all layers may be part of the circuit."""
        return not self.loadable and self.prefer != "dsp"

    def uses_dsp(self, layer: str) -> bool:
        """True if products of that layer are in DSP blocks, as far as they are worth it."""
        return self.prefer == "dsp" and (self.dsp_layers is None or layer in self.dsp_layers)

    def wires(self, layer: str) -> bool:
        """True if weights of that layer may be part of the circuit."""
        return not self.loadable and not self.uses_dsp(layer)

    def preference(self, layer: str, prices: Prices) -> Preference:
        """The requested implementation of the quantizer with this name; the name "" applies to all."""
        return Preference("lut" if self.plain else self.prefer, self.realize.get(layer, self.realize.get("")), prices)


def choose_folding(graph: ir.Graph, targets: Targets, price: FoldingPrice) -> Folding:
    """(PE, SIMD) of each layer that multiplies: the user's choice, which must be legal, or the cheapest for the
    target."""
    return priced_folding(graph, targets, price)[1]


def priced_folding(
    graph: ir.Graph, targets: Targets, price: FoldingPrice, only: Folding | None = None
) -> tuple[float, Folding]:
    """As `choose_folding`, with the cost of the layers. `only`: the folding to take instead of the cheapest."""
    target = max(targets.cycles or default_target(graph), least_cycles(graph, targets))
    if not targets.wires_weights:
        price = replace(price, constants=None)
    if targets.prefer == "dsp":
        price = _with_dsp(price, targets.dsp_factor_bits)

    def options(work: Workload) -> list[tuple[int, int]]:
        if only is not None:
            return [only[work.layer.name]]
        requested = targets.folding.get(work.layer.name)
        return fitting(work, target) if requested is None else [(requested["pe"], requested["simd"])]

    return cheapest(graph, works_of(graph), options, target, price)


@lru_cache(maxsize=16)
def _with_dsp(price: FoldingPrice, factor_bits: int) -> FoldingPrice:
    """Prices of layers with products in DSP blocks."""
    dsp_layer = price.dsp_layer
    if dsp_layer is None:
        return price
    return replace(price, layer=lambda work, pe, simd: dsp_layer(work, pe, simd, factor_bits))


def check_folding(graph: ir.Graph, folding: dict[str, dict[str, int]], problems: Collector) -> None:
    """Adds HG041 for each entry of a layer that the graph does not have, or of an illegal PE and SIMD."""
    layers = works_of(graph)
    for name, requested in folding.items():
        if name not in layers:
            problems.error("HG041", name, "no such linear layer.", "Layers: " + (", ".join(layers) or "none") + ".")
        elif not layers[name].legal(requested["pe"], requested["simd"]):
            message = f"pe = {requested['pe']}, simd = {requested['simd']}."
            problems.error("HG041", name, message, f"Possible: {_possible(layers[name])}.")


def _possible(work: Workload) -> str:
    """All legal foldings, in words."""
    max_simd = work.taps * work.columns
    text = f"pe 1 to {work.rows}, simd 1 to {work.columns}"
    if work.unrolls and work.groups > 1:
        text += f"; pe {work.rows} to {work.outputs} in steps of {work.rows} with simd {max_simd}"
    elif work.unrolls:
        text += f"; simd {work.taps} to {max_simd} in steps of {work.taps}"
    if window_counts := work.window_counts:
        counts = ", ".join(map(str, window_counts[:8])) + (" ..." if len(window_counts) > 8 else "")
        text += f"; {counts} times pe {work.outputs} with simd {max_simd}"
    return text


def default_target(graph: ir.Graph) -> int:
    """Cycles a frame at the default number of multiplications a cycle, and at most one window a cycle."""
    works = works_of(graph).values()
    macs = sum(work.macs for work in works)
    pixels = (max(work.places, work.arrivals // work.groups) for work in works)
    return max(-(-macs // DEFAULT_PARALLELISM), pixels_moved(graph), *pixels)


def pixels_moved(graph: ir.Graph) -> int:
    """Pixels of the largest image that a Rearrange layer reads or produces."""
    moves = [layer for layer in graph.layers if isinstance(layer, ir.Rearrange)]
    return max([1, *(v.size // v.shape[-1] for layer in moves for v in (layer.source, layer.result))])


def least_cycles(graph: ir.Graph, targets: Targets) -> int:
    """Lower bound of the cycles a frame, from the slowest layer or the bus: faster layers would not help."""
    min_cycles = 1
    if targets.bus:
        ports = (*graph.streamed_inputs, *graph.streamed_outputs)
        min_cycles = max(-(-_port_bits(value) // targets.bus) for _, _, value in ports)
    for layer in graph.layers:
        match layer:
            case ir.Linear() | ir.MatrixProduct() | ir.Convolution() if layer.name not in targets.folding:
                work = work_of(layer)
                min_cycles = max(min_cycles, work.cycles(*fastest(work)))
            case ir.SoftmaxRows(in_order=in_order, result=result):
                min_cycles = max(min_cycles, result.size if in_order else result.size // result.shape[-1])
            case ir.Rearrange(op=ir.Pad()):
                min_cycles = max(min_cycles, *(value.size // value.shape[-1] for value in (layer.source, layer.result)))
            case ir.Pooling() if at_once(layer) is None:
                min_cycles = max(min_cycles, layer.source.size // layer.source.shape[-1])
            case _:
                pass
    return min_cycles


def _port_bits(value: ir.Value) -> int:
    """Bits of a frame on a port, without padding."""
    return value.size * (32 if isinstance(value.encoding, ir.FloatKey) else value.type.bits)


def at_once(layer: ir.Pooling) -> list[int] | None:
    """Numbers of windows of a pool that can be processed at once with all their taps, or None if not even one."""
    if layer.window.taps > MOST_TAPS:
        return None
    height, width, channels = layer.source.shape[-3:]
    max_windows = MOST_PRODUCTS // (layer.window.taps * channels)
    return [1, *(n for n in several_windows(layer.window, height, width) if n <= max_windows)]


def fastest(work: Workload) -> tuple[int, int]:
    """(PE, SIMD) with the fewest cycles that the search considers."""
    counts = [1, *_window_counts(work)] if work.unrolls or work.window_counts else []
    full_windows = [(n * work.outputs, work.taps * work.columns) for n in counts]
    return min((work.cycles(*x), *x) for x in [(work.rows, work.columns), *full_windows])[1:]


def _window_counts(work: Workload) -> list[int]:
    """Numbers of windows at once, above 1, that the search tries."""
    products = work.outputs * work.taps * work.columns
    return [n for n in work.window_counts if n * products <= MOST_PRODUCTS]


def fitting(work: Workload, target: int) -> list[tuple[int, int]]:
    """(PE, SIMD) pairs that process a frame in `target` cycles; the fastest pair if none does."""
    fits = [x for x in work.foldings() if work.cycles(*x) <= target]
    if fits:
        return fits + work.uneven(target)
    full_windows = [(n * work.outputs, work.taps * work.columns) for n in _window_counts(work)]
    return [next((x for x in full_windows if work.cycles(*x) <= target), fastest(work))]


def even_intervals(work: Workload) -> set[int]:
    """Cycles a frame of the foldings that the search tries, except those with empty rows or columns."""
    full_windows = [(n * work.outputs, work.taps * work.columns) for n in _window_counts(work)]
    return {work.cycles(*pair) for pair in [*work.foldings(), *full_windows]}


def intervals(work: Workload) -> set[int]:
    """Cycles a frame of all foldings that the search tries, with empty rows or columns too."""
    return even_intervals(work) | {work.cycles(*pair) for pair in work.all_uneven()}
