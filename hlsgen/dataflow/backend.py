"""What a target is: functions that make files of a Network and say beforehand what they cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hlsgen.dataflow.folding import Targets
from hlsgen.dataflow.folding_search import FoldingPrice
from hlsgen.dataflow.network import Network, Timing
from hlsgen.dataflow.resources import Cost
from hlsgen.dataflow.units import Node, SumTables, WeightedUnit
from hlsgen.dataflow.workload import Folding, Workload
from hlsgen.numerics.fixed import Array
from hlsgen.rescale import Choice, Prices


@dataclass(frozen=True)
class Request:
    """What a build asks for besides the network.

    `top`: name of the top level. `clock`, `reset`: names of its ports. `keep`: with tkeep. `control`: with a port for
    control and status. `weights`: one of the target's `memories`. `prefer`: "lut" or "dsp" for multiplications.
    `block`: bits of the wider factor of a multiplier block.
    `loadable`: weights can be written at run time. `model`: name and SHA-256 of the model's file, for files that state
    them.
    """

    title: str
    top: str
    clock: str = "clk"
    reset: str = "rst"
    reset_active_low: bool = False
    keep: bool = False
    control: bool = False
    weights: str = "auto"
    prefer: str = "lut"
    block: int = 25
    loadable: bool = False
    model: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Emitted:
    """What a target makes of a network.

    `files`: text by relative path. `top`, `weights`: what the manifest says of the top level and of weights that
    can be written at run time. `design`: the target's own description, for those who run it. `note`: a line that
    goes with cycles and estimate.
    """

    files: dict[str, str]
    top: dict[str, Any] = field(default_factory=dict)
    weights: list[dict[str, Any]] = field(default_factory=list)
    design: object = None
    note: str = ""


@dataclass(frozen=True)
class Backend:
    """A target. All functions give the same for the same arguments.

    `memories`: kinds of weight memories that can be asked for.
    `prices`: by which realizations of quantizers are chosen. `folding_price`: compares foldings.
    `folded_cost`: what the multiplying layers of a folding cost, roughly, before there are nodes. `network_cost`: what
    nodes and realizations cost.
    `size_buffers`: nodes with the depths of all FIFOs and windows, and the cycles that they take then.
    `emit`: all files of the target. `load_pieces`: other weights of a unit, in the layer's order, as pieces of 32
    bits in the order in which its memory takes them; None if weights cannot be written at run time.
    `without`: options of a build that it does not have, by the names of their fields, and why.
    `reserved`: whether a name that is legal otherwise is none for its top level.
    `adders_pay`: whether a node of products costs more than one with AdderMatVec in its place; None: there is none.
    `tables_of`: tables of sums that a MatVec costs less with; None: there are none.
    `blocks`: the layers of a folding whose products are to be in no more than so many multiplier blocks, so that they
    save most; None: it has no choice.
    """

    memories: tuple[str, ...]
    prices: Prices
    folding_price: FoldingPrice
    folded_cost: Callable[[Mapping[str, Workload], Folding, Targets], Cost]
    network_cost: Callable[[Iterable[Node], Mapping[str, Choice], Targets], Cost]
    size_buffers: Callable[[Sequence[Node]], tuple[tuple[Node, ...], Timing]]
    emit: Callable[[Network, Timing, Request], Emitted]
    load_pieces: Callable[[WeightedUnit, Array], Iterator[int]] | None = None
    adders_pay: Callable[[Node, Node], bool] | None = None
    tables_of: Callable[[Node, Targets], SumTables | None] | None = None
    blocks: Callable[[Mapping[str, Workload], Folding, Targets, int], frozenset[str]] | None = None
    without: Mapping[str, str] = field(default_factory=dict)
    reserved: Callable[[str], bool] = lambda name: False
