"""Parallelism of the layers that multiply: PE rows by SIMD columns a cycle."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache

from hlsgen.dataflow.folding_search import FoldingPrice, cheapest
from hlsgen.dataflow.pipelining import PLAIN, Pipelining
from hlsgen.dataflow.resources import Budget
from hlsgen.dataflow.workload import Folding, Workload, several_windows, work_of, works_of
from hlsgen.diagnostics import Collector
from hlsgen.ir import (
    Convolution,
    FloatKey,
    Graph,
    Linear,
    MatrixProduct,
    Pad,
    Pooling,
    Rearrange,
    SoftmaxRows,
    Value,
)
from hlsgen.rescale import Preference, Prices

#: Multiplications a cycle that the default folding aims at: some 6,000 LUT at 4 bits, 17,000 at 8.
DEFAULT_PARALLELISM = 256
#: Most multiplications a cycle of a layer that the search makes of several windows at once.
MOST_PRODUCTS = 1 << 14
#: Most taps of a pool that works on all of them at once.
MOST_TAPS = 64


@dataclass(frozen=True)
class Targets:
    """What the user asks for. `folding` maps layer names to {"pe": ..., "simd": ...}, `realize`
    quantizers to a realization. `loadable`: weights can be written at run time.
    `control`: there is a port for control and status. `bus`: bits of tdata of both ports,
    0: as few as keep the interval, None: those of a beat. `family`: the devices in whose kinds costs and budget are.
    `block`: bits of the wider factor of a multiplier block: rows may share one that has room for two.
    `blocks`: layers whose products are in blocks, None: all, if blocks are preferred. `plain`: quantizers take none.
    `pipelining`: for the clock that is asked for. `settled`: weights are where they cost least, whatever the budget."""

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
    block: int = 25
    blocks: frozenset[str] | None = None
    plain: bool = False
    pipelining: Pipelining = PLAIN
    settled: bool = False

    @property
    def free_memories(self) -> bool:
        """Whether each memory of weights may be what the budget wants."""
        return self.weights == "auto" and not self.loadable and not self.settled

    @property
    def wires_weights(self) -> bool:
        """Whether weights of all layers may be part of the circuit."""
        return not self.loadable and self.prefer != "dsp"

    def in_blocks(self, layer: str) -> bool:
        """Whether products of that layer are in multiplier blocks, if they are worth it."""
        return self.prefer == "dsp" and (self.blocks is None or layer in self.blocks)

    def wires(self, layer: str) -> bool:
        """Whether weights of that layer may be part of the circuit."""
        return not self.loadable and not self.in_blocks(layer)

    def preference(self, layer: str, prices: Prices) -> Preference:
        """How the quantizer of that name is to be realized; the name "" stands for all."""
        return Preference("lut" if self.plain else self.prefer, self.realize.get(layer, self.realize.get("")), prices)


def choose_folding(graph: Graph, targets: Targets, price: FoldingPrice) -> Folding:
    """(PE, SIMD) of each layer that multiplies: what the user says, which is legal, or the cheapest for the target."""
    target = max(targets.cycles or default_target(graph), least_cycles(graph, targets))
    if not targets.wires_weights:
        price = replace(price, constants=None)
    if targets.prefer == "dsp":
        price = _with_blocks(price, targets.block)

    def options(work: Workload) -> list[tuple[int, int]]:
        given = targets.folding.get(work.layer.name)
        return fitting(work, target) if given is None else [(given["pe"], given["simd"])]

    return cheapest(graph, works_of(graph), options, target, price)


@lru_cache(maxsize=16)
def _with_blocks(price: FoldingPrice, factor: int) -> FoldingPrice:
    """Prices of layers whose products are in multiplier blocks."""
    blocks = price.blocks
    return price if blocks is None else replace(price, layer=lambda work, pe, simd: blocks(work, pe, simd, factor))


def check_folding(graph: Graph, folding: dict[str, dict[str, int]], problems: Collector) -> None:
    """Adds HG041 for each entry of a layer that the graph does not have, or of a PE and SIMD that it cannot have."""
    layers = works_of(graph)
    for name, given in folding.items():
        if name not in layers:
            problems.error("HG041", name, "no such linear layer.", "Layers: " + (", ".join(layers) or "none") + ".")
        elif not layers[name].legal(given["pe"], given["simd"]):
            message = f"pe = {given['pe']}, simd = {given['simd']}."
            problems.error("HG041", name, message, f"Possible: {_possible(layers[name])}.")


def _possible(work: Workload) -> str:
    """All foldings, in words."""
    most = work.taps * work.columns
    text = f"pe 1 to {work.rows}, simd 1 to {work.columns}"
    if work.unrolls and work.groups > 1:
        text += f"; pe {work.rows} to {work.outputs} in steps of {work.rows} with simd {most}"
    elif work.unrolls:
        text += f"; simd {work.taps} to {most} in steps of {work.taps}"
    if several := work.several:
        text += f"; {', '.join(map(str, several[:8]))}{' ...' if len(several) > 8 else ''} times pe {work.outputs} with simd {most}"
    return text


def default_target(graph: Graph) -> int:
    """Cycles a frame at the default number of multiplications a cycle, and no more than a window a cycle."""
    works = works_of(graph).values()
    macs = sum(work.macs for work in works)
    return max(
        -(-macs // DEFAULT_PARALLELISM), pixels_moved(graph),
        *(max(work.places, work.arrivals // work.groups) for work in works),
    )  # fmt: skip


def pixels_moved(graph: Graph) -> int:
    """Pixels of the largest image of which something is taken, or to which something is added."""
    moves = [layer for layer in graph.layers if isinstance(layer, Rearrange)]
    return max([1, *(v.size // v.shape[-1] for layer in moves for v in (layer.source, layer.result))])


def least_cycles(graph: Graph, targets: Targets) -> int:
    """Cycles a frame that some layer or the bus needs in any case: more speed of the others is of no use."""
    least = 1
    if targets.bus:
        ports = (*graph.streamed_inputs, *graph.streamed_outputs)
        least = max(-(-_port_bits(value) // targets.bus) for _, _, value in ports)
    for layer in graph.layers:
        match layer:
            case Linear() | MatrixProduct() | Convolution() if layer.name not in targets.folding:
                work = work_of(layer)
                least = max(least, work.cycles(*fastest(work)))
            case SoftmaxRows(in_order=in_order, result=result):
                least = max(least, result.size if in_order else result.size // result.shape[-1])
            case Rearrange(op=Pad()):
                least = max(least, *(value.size // value.shape[-1] for value in (layer.source, layer.result)))
            case Pooling() if at_once(layer) is None:
                least = max(least, layer.source.size // layer.source.shape[-1])
            case _:
                pass
    return least


def _port_bits(value: Value) -> int:
    """Bits of a frame on a port, without padding."""
    return value.size * (32 if isinstance(value.encoding, FloatKey) else value.type.bits)


def at_once(layer: Pooling) -> list[int] | None:
    """Counts of windows of a pool that can be worked on at once, all taps of them; None if not even one."""
    if layer.window.taps > MOST_TAPS:
        return None
    height, width, channels = layer.source.shape[-3:]
    most = MOST_PRODUCTS // (layer.window.taps * channels)
    return [1, *(n for n in several_windows(layer.window, height, width) if n <= most)]


def fastest(work: Workload) -> tuple[int, int]:
    """(PE, SIMD) of the fewest cycles that the search takes."""
    counts = [1, *_several(work)] if work.unrolls or work.several else []
    whole = [(n * work.outputs, work.taps * work.columns) for n in counts]
    return min((work.cycles(*x), *x) for x in [(work.rows, work.columns), *whole])[1:]


def _several(work: Workload) -> list[int]:
    """Counts of windows at once, above 1, that the search tries."""
    products = work.outputs * work.taps * work.columns
    return [n for n in work.several if n * products <= MOST_PRODUCTS]


def fitting(work: Workload, target: int) -> list[tuple[int, int]]:
    """(PE, SIMD) that do a frame in `target` cycles; the fastest one if none does."""
    fits = [x for x in work.foldings() if work.cycles(*x) <= target]
    if fits:
        return fits + work.uneven(target)
    whole = [(n * work.outputs, work.taps * work.columns) for n in _several(work)]
    return [next((x for x in whole if work.cycles(*x) <= target), fastest(work))]


def even_paces(work: Workload) -> set[int]:
    """Cycles a frame of the foldings that the search tries and that have no empty rows or columns."""
    whole = [(n * work.outputs, work.taps * work.columns) for n in _several(work)]
    return {work.cycles(*pair) for pair in [*work.foldings(), *whole]}


def paces(work: Workload) -> set[int]:
    """The same, of foldings with empty rows or columns too."""
    return even_paces(work) | {work.cycles(*pair) for pair in work.all_uneven()}
