"""The interface of a target: functions that emit files from a Network and estimate its costs."""

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
    """The options of an emission besides the network.

    `top`: name of the top level. `clock`, `reset`: names of its ports. `keep`: with tkeep. `control`: with a port for
    control and status. `weights`: one of the target's `memories`. `prefer`: "lut" or "dsp" for multiplications.
    `dsp_factor_bits`: bits of the wider factor of a DSP block. `loadable`: weights can be written at run time.
    `starts_by`: as in Options. `model`: name and SHA-256 of the model's file, for files that state them.
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
    dsp_factor_bits: int = 25
    loadable: bool = False
    starts_by: str = ""
    model: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Emitted:
    """The files and descriptions that a target emits for a network.

    `files`: text by relative path. `top`, `weights`: entries of the manifest for the top level and for weights that can
    be written at run time. `design`: the target's own description, for simulators. `note`: a line shown beside cycles
    and estimate. `schedule`: the target's own prediction of cycles, an entry of the manifest.
    """

    files: dict[str, str]
    top: dict[str, Any] = field(default_factory=dict)
    weights: list[dict[str, Any]] = field(default_factory=list)
    design: object = None
    note: str = ""
    schedule: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Backend:
    """A target. All functions are pure: equal arguments give equal results.

    - `memories`: kinds of weight memories that a user can request.
    - `prices`: prices by which realizations of quantizers are chosen. `folding_price`: compares foldings.
    - `folded_cost`: rough cost of the multiplying layers of a folding, before there are nodes. `network_cost`: cost of
      nodes and realizations.
    - `size_buffers`: the nodes with the depths of all FIFOs and windows, and their timing. The second argument limits
      the search for smaller depths, in beats that are simulated; 0: no search, None: the target's own limit.
    - `emit`: all files of the target.
    - `load_pieces`: other weights of a unit, in the layer's order, as 32-bit pieces in the order in which its memory
      accepts them; None if weights cannot be written at run time.
    - `unsupported`: build options that the target does not have, by field name, and the reason.
    - `reserved`: True for a legal name that its top level cannot have.
    - `adders_pay`: True if a node of products costs more than one with AdderMatVec in its place; None: there is none.
    - `tables_of`: the distributed arithmetic tables that make a MatVec cheaper; None: there are none.
    - `unit_lut`: estimated LUTs of a node in a family of devices, without a quantizer.
    - `choose_dsp_layers`: the layers of a folding that get the available DSP blocks; None: there is no choice.
    """

    memories: tuple[str, ...]
    prices: Prices
    folding_price: FoldingPrice
    folded_cost: Callable[[Mapping[str, Workload], Folding, Targets], Cost]
    network_cost: Callable[[Iterable[Node], Mapping[str, Choice], Targets], Cost]
    size_buffers: Callable[[Sequence[Node], int | None], tuple[tuple[Node, ...], Timing]]
    emit: Callable[[Network, Timing, Request], Emitted]
    load_pieces: Callable[[WeightedUnit, Array], Iterator[int]] | None = None
    adders_pay: Callable[[Node, Node], bool] | None = None
    tables_of: Callable[[Node, Targets], SumTables | None] | None = None
    choose_dsp_layers: Callable[[Mapping[str, Workload], Folding, Targets, int], frozenset[str]] | None = None
    unit_lut: Callable[[Node, str], float] = lambda node, family: 0.0
    unsupported: Mapping[str, str] = field(default_factory=dict)
    reserved: Callable[[str], bool] = lambda name: False
