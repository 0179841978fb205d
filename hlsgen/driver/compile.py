"""Model file -> all files of a build, in memory; the same for the same model and options."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

from hlsgen.artifacts import project_files
from hlsgen.artifacts.layer_table import Pricer
from hlsgen.cycle_model.units import busy
from hlsgen.dataflow.backend import Emitted, Request
from hlsgen.dataflow.folding import Targets
from hlsgen.dataflow.network import Network, Timing
from hlsgen.dataflow.pipelining import PLAIN
from hlsgen.dataflow.resources import Cost
from hlsgen.dataflow.units import Node
from hlsgen.diagnostics import Collector, Diagnostic, HlsgenError, fail
from hlsgen.driver.backends import backends_of
from hlsgen.driver.fit import Needs, too_large
from hlsgen.driver.options import Options, check_options, check_options_for, default_top, parse_inputs, reset_port
from hlsgen.driver.schedule import Progress, plan
from hlsgen.frontend import import_model, self_contained
from hlsgen.frontend.runtimes import recorded
from hlsgen.hls.core import Core
from hlsgen.ir import Convolution, Delay, Graph, Linear, Model
from hlsgen.library import tool_version
from hlsgen.numerics.fixed import IntType
from hlsgen.passes import lower, typed
from hlsgen.passes.built_once import lower_once
from hlsgen.verilog.netlist import Design


@dataclass(frozen=True, eq=False)
class Build:
    """A compiled model: what its file says, its network with the cycles it takes, and text or bytes of every file.

    `designs`: each target's own description of what it has made, by name of the target. `notes`: what targets say of
    cycles and estimate.
    """

    options: Options
    model: Model
    network: Network
    timing: Timing
    files: dict[str, bytes]
    warnings: list[Diagnostic]
    designs: Mapping[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def graph(self) -> Graph:
        return self.network.graph

    @property
    def design(self) -> Design:
        """The Verilog of the build. Raises HG040 if it has none."""
        found = self.designs.get("verilog")
        if not isinstance(found, Design):
            raise self._without("Verilog", "verilog")
        return found

    @property
    def cpp(self) -> Core:
        """The C++ of the build. Raises HG040 if it has none."""
        found = self.designs.get("hls")
        if not isinstance(found, Core):
            raise self._without("C++", "hls")
        return found

    @property
    def tops(self) -> dict[str, str]:
        """The names of the top levels, by what they are."""
        found = {}
        if isinstance(self.designs.get("verilog"), Design):
            found["module"] = self.design.top
        if isinstance(self.designs.get("hls"), Core):
            found["function"] = self.cpp.top
        return found

    def _without(self, what: str, target: str) -> HlsgenError:
        text = f"the build of {self.options.target!r} has no {what}."
        return fail("HG040", "--target", text, f"Build with --target {target}.")


def compile_model(path: Path, options: Options, progress: Progress | None = None) -> Build:
    """The whole way from a file to a build. Raises HlsgenError with every problem found."""
    problems = Collector()
    with problems.catching():
        check_options(options)
    modes = parse_inputs(options.input)
    model = import_model(
        path,
        problems,
        options.add == "fixed-point",
        typed(modes),
        pairs=not options.separate,
        runtime=options.runtime,
        outputs=options.outputs,
    )
    if model is None:
        problems.finish()
    assert model is not None
    with problems.catching():
        graph = lowered(path, model, options, problems)
    problems.finish()
    check_options_for(options, graph)
    backends = backends_of(options.target)
    targets, planning = targets_of(options), next(iter(backends.values()))
    network, timing = plan(graph, targets, planning, progress)
    if options.target_cycles and timing.interval > options.target_cycles:
        slowest = max(network.nodes, key=lambda node: (busy(node), bool(node.layer)))
        loops = any(isinstance(layer, Delay) for layer in graph.layers)
        what = "the steps of a loop, one after the other, need" if loops else f"{slowest.layer or slowest.name} needs"
        problems.warn(
            "HG090",
            "--target-cycles",
            f"{options.target_cycles} cycles cannot be met; taken: {timing.interval}, what {what}.",
        )
    problems.items += _judged(
        options, needs_of(network, lambda nodes: planning.network_cost(nodes, network.choices, targets))
    )
    problems.finish()
    data = self_contained(path, options.outputs)
    top = options.top or default_top(path.stem, options.target)
    options = replace(options, name=_title(options.name or path.stem), top=top)
    about = {"file": "model.onnx", "sha256": hashlib.sha256(data).hexdigest(), **recorded(model.runtime)}
    request = Request(
        title=options.name or "",
        top=top,
        clock=options.clock_name,
        reset=reset_port(options),
        reset_active_low=options.reset_active_low,
        keep=options.tkeep,
        control=options.control,
        weights=options.weights,
        prefer=options.preferred,
        block=block_bits(options),
        loadable=options.loadable,
        model=about,
    )
    emitted = {name: backend.emit(network, timing, request) for name, backend in backends.items()}
    others = {name: text.encode() for part in emitted.values() for name, text in part.files.items()}
    files = project_files.emit(
        network, timing, _together(emitted), options.name or top, asdict(options), about, tool_version(),
        {**others, "model.onnx": data}, price_of(options),
    )  # fmt: skip
    designs = {name: part.design for name, part in emitted.items()}
    notes = tuple(part.note for part in emitted.values() if part.note)
    return Build(options, model, network, timing, files, problems.warnings, designs, notes)


def lowered(path: Path, model: Model, options: Options, problems: Collector) -> Graph:
    """The graph of a model, which has every step; its loops as the options want them."""
    modes = parse_inputs(options.input)
    if options.recurrence != "once":
        return lower(model, modes, problems, options.separate)
    shared = partial(
        import_model,
        path,
        fixed_point=options.add == "fixed-point",
        typed=typed(modes),
        once=True,
        runtime=options.runtime,
        outputs=options.outputs,
    )
    return lower_once(model, shared, modes, problems)


def needs_of(network: Network, cost: Callable[[Sequence[Node]], Cost]) -> Needs:
    """What a network takes, in all and by layer."""
    layers: dict[str, list[Node]] = {}
    for node in network.nodes:
        layers.setdefault(node.layer or node.name, []).append(node)
    weights = [layer.weight for layer in network.graph.layers if isinstance(layer, Linear | Convolution)]
    bits = sum(weight.size * IntType(min(-1, int(weight.min())), max(0, int(weight.max()))).bits for weight in weights)
    return Needs(cost(network.nodes), {layer: cost(nodes) for layer, nodes in layers.items()}, bits)


def _judged(options: Options, needs: Needs) -> list[Diagnostic]:
    """What is to be said of the size of a network: HG070 if it does not fit, HG090."""
    device, search = options.chosen_device, options.searches
    what = "the smallest network found" if search else "the network that was asked for"
    found = too_large(needs, options.asked_budget, device, searched_for=search, smallest=what)
    if options.max_dsp and options.prefer != "dsp" and not needs.cost.dsp:
        text = "no multiplier blocks are taken, whatever the budget: multiplications take LUT."
        found.append(Diagnostic("HG090", "--max-dsp", text, "--prefer dsp takes them.", "warning"))
    return found


def targets_of(options: Options) -> Targets:
    """What the options ask of the network."""
    return Targets(
        cycles=options.target_cycles,
        lanes=options.lanes,
        folding=options.folding,
        prefer=options.preferred,
        realize=options.realize,
        weights=options.weights,
        loadable=options.loadable,
        control=options.control,
        budget=options.budget,
        bus=None if options.bus_width is None else 0 if options.bus_width == "auto" else int(options.bus_width),
        family="xc7" if options.chosen_device is None else options.chosen_device.family.counted_as,
        block=block_bits(options),
        pipelining=options.pipelining if "verilog" in backends_of(options.target) else PLAIN,
    )


def block_bits(options: Options) -> int:
    """Bits of the wider factor of a multiplier block of the device, or of Xilinx 7 series if none is named."""
    return 25 if options.chosen_device is None else options.chosen_device.family.dsp_bits


def network_cost(build: Build, family: str = "xc7") -> Cost:
    """What the network costs in the build's first target, in the kinds of a family, roughly."""
    return price_of(build.options, family)(build.network.nodes, build.network.choices)


def price_of(options: Options, family: str = "xc7") -> Pricer:
    """What nodes and realizations cost in the first target of a build, in the kinds of a family."""
    backend, targets = next(iter(backends_of(options.target).values())), replace(targets_of(options), family=family)
    return lambda nodes, choices: backend.network_cost(nodes, choices, targets)


def _together(emitted: Mapping[str, Emitted]) -> Emitted:
    """What the manifest says of several targets: the first one that has something to say, Verilog before C++."""
    parts = sorted(emitted.values(), key=lambda part: "module" not in part.top)
    top = next((part.top for part in parts if part.top), {})
    weights = next((part.weights for part in parts if part.weights), [])
    return Emitted({}, top, weights, note=" ".join(part.note for part in parts if part.note))


def _title(name: str) -> str:
    return "".join(c if c.isprintable() and c not in "/*\\" else " " for c in name)[:80]
