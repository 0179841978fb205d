"""Compiles a model file to all files of a build, in memory. Equal models and options give equal files."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

from hlsgen.artifacts import project_files
from hlsgen.artifacts.layer_table import Estimator
from hlsgen.cycle_model.timing_models import busy
from hlsgen.dataflow.backend import Emitted, Request
from hlsgen.dataflow.folding import Targets
from hlsgen.dataflow.merge_layers import merged_layers
from hlsgen.dataflow.network import Network, Timing
from hlsgen.dataflow.pipelining import PLAIN
from hlsgen.dataflow.resources import Cost
from hlsgen.dataflow.units import Node
from hlsgen.devices import Device
from hlsgen.diagnostics import Collector, Diagnostic, HlsgenError, counted, fail
from hlsgen.driver.backends import backends_of, planning_backend
from hlsgen.driver.fit import Needs, counting_family, in_kinds, too_large
from hlsgen.driver.options import (
    Options,
    check_options,
    default_top,
    parse_inputs,
    reset_port,
    sources_of,
)
from hlsgen.driver.schedule import Progress
from hlsgen.driver.smaller_networks import check_requests, plan_smallest
from hlsgen.frontend import import_model, self_contained
from hlsgen.frontend.file_kind import model_entry, model_name
from hlsgen.frontend.runtimes import recorded
from hlsgen.hls.core import Core
from hlsgen.host.plan import check_sources
from hlsgen.ir import Convolution, Delay, Graph, Linear, Model
from hlsgen.library import tool_version
from hlsgen.numerics.fixed import IntType
from hlsgen.passes import lower, numeric_inputs
from hlsgen.passes.frame_states import states_last, with_default, with_states
from hlsgen.passes.shared_loop_bodies import builds_once, lower_once
from hlsgen.rescale import Choice
from hlsgen.verilog.netlist import Design


@dataclass(frozen=True, eq=False, repr=False)
class Build:
    """A compiled model: the model, its network and cycles, and the content of every file.

    designs: the description of the emitted design, by name of the target. notes: remarks of targets on cycles and
    estimates.
    """

    options: Options
    model: Model
    network: Network
    timing: Timing
    files: dict[str, bytes]
    warnings: list[Diagnostic]
    designs: Mapping[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        layers, timing = len(self.graph.layers), self.timing
        cycles = f"latency {timing.latency}, interval {timing.interval} cycles"
        return f"<Build {self.options.name}: {counted(layers, 'layer')}, {cycles}, {counted(len(self.files), 'file')}>"

    def _repr_html_(self) -> str:
        """The report in a frame, for notebooks."""
        page = html.escape(self.files["report.html"].decode())
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 40em; border: 0"></iframe>'

    @property
    def graph(self) -> Graph:
        return self.network.graph

    @property
    def design(self) -> Design:
        """The Verilog of the build. Raises HG040 if it has none."""
        design = self.designs.get("verilog")
        if not isinstance(design, Design):
            raise self._missing_target("Verilog", "verilog")
        return design

    @property
    def cpp(self) -> Core:
        """The C++ of the build. Raises HG040 if it has none."""
        core = self.designs.get("hls")
        if not isinstance(core, Core):
            raise self._missing_target("C++", "hls")
        return core

    @property
    def tops(self) -> dict[str, str]:
        """Names of the top levels by kind: "module" and "function"."""
        names = {}
        if isinstance(self.designs.get("verilog"), Design):
            names["module"] = self.design.top
        if isinstance(self.designs.get("hls"), Core):
            names["function"] = self.cpp.top
        return names

    def _missing_target(self, language: str, target: str) -> HlsgenError:
        text = f"the build of {self.options.target!r} has no {language}."
        return fail("HG040", "--target", text, f"Build with --target {target}.")


def compile_model(path: Path, options: Options, progress: Progress | None = None) -> Build:
    """Compiles a model file. Raises HlsgenError with every problem."""
    problems = Collector()
    with problems.catching():
        check_options(options)
    options, model, graph = lowered(path, options, problems)
    check_requests(graph, options, targets_of(options))
    backends = backends_of(options.target)
    targets, planning = targets_of(options), planning_backend(options.target)
    network, timing = plan_smallest(graph, targets, planning, progress)
    if options.target_cycles and timing.interval > options.target_cycles:
        slowest = max(network.nodes, key=lambda node: (busy(node), bool(node.layer)))
        loops = any(isinstance(layer, Delay) for layer in graph.layers)
        reason = "the sequential steps of the loop need" if loops else f"{slowest.layer or slowest.name} needs"
        if graph.states and busy(slowest) < timing.interval:
            reason = "the loop of a state needs"
        problems.warn(
            "HG090",
            "--target-cycles",
            f"{options.target_cycles} cycles cannot be met; the interval is {timing.interval}, which {reason}.",
        )
    problems.items += size_diagnostics(
        options, needs_of(network, lambda nodes: planning.network_cost(nodes, network.choices, targets))
    )
    problems.finish()
    data = self_contained(path, options.outputs)
    top = options.top or default_top(model_name(path), options.target)
    options = replace(options, name=_title(options.name or model_name(path)), top=top)
    about_model = {**model_entry(data), **recorded(model.runtime)}
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
        dsp_factor_bits=block_bits(options),
        loadable=options.loadable,
        starts_by=options.starts_by,
        model=about_model,
    )
    emitted = {name: backend.emit(network, timing, request) for name, backend in backends.items()}
    sources = {name: text.encode() for part in emitted.values() for name, text in part.files.items()}
    files = project_files.emit(
        network,
        timing,
        merge_emitted(emitted),
        options.name or top,
        asdict(options),
        about_model,
        tool_version(),
        {**sources, about_model["file"]: data},
        estimator_of(options),
    )
    designs = {name: part.design for name, part in emitted.items()}
    notes = tuple(part.note for part in emitted.values() if part.note)
    return Build(options, model, network, timing, files, problems.warnings, designs, notes)


def imported(path: Path, problems: Collector, options: Options, once: bool = False) -> Model | None:
    """The model of a file as the options import it, or None if an error was added to `problems`.

    `once`: one body for all iterations of a loop.
    """
    return import_model(
        path,
        problems,
        options.add == "fixed-point",
        numeric_inputs(parse_inputs(options.input)),
        once=once,
        pairs=not options.separate and not options.states,
        runtime=options.runtime,
        outputs=options.outputs,
        softmax=options.softmax,
    )


def lowered(path: Path, options: Options, problems: Collector) -> tuple[Options, Model, Graph]:
    """The options, with the states of the file; its model, with states between frames last; its graph.

    Raises every problem.

    Loops are unrolled or built once, by `options.recurrence`.
    """
    model = imported(path, problems, options)
    if model is None:
        problems.finish()
    assert model is not None
    modes = parse_inputs(options.input)
    with problems.catching():
        options = replace(options, state=with_default(model, options.state))
        check_options(options)
        model, pairs = states_last(model, options.states)
        has_ports = options.separate or bool(options.states)
        if builds_once(options.recurrence, model, options.loadable):
            graph = lower_once(model, partial(_shared, path, options), modes, problems, has_ports)
        else:
            graph = lower(model, modes, problems, has_ports)
        graph = with_states(graph, pairs, not options.separate)
        graph = with_sources(graph, options.source)
        if options.merge_layers and not problems.errors:
            graph = merged_layers(graph)
    problems.finish()
    return options, model, graph


def with_sources(graph: Graph, sources: str | Mapping[str, str] | None) -> Graph:
    """The graph with the integers that the host has for inputs. Raises HG040."""
    inputs = [source.name for source in graph.host_graph.model.all_inputs]
    graph = replace(graph, model=replace(graph.model, sources=sources_of(sources, inputs)))
    check_sources(graph)
    return graph


def _shared(path: Path, options: Options, problems: Collector) -> Model | None:
    """The model of a file with one body for all steps of a loop, and states between frames last."""
    model = imported(path, problems, options, once=True)
    return model and states_last(model, options.states)[0]


def needs_of(network: Network, cost: Callable[[Sequence[Node]], Cost]) -> Needs:
    """Resources of a network, in total and by layer."""
    layers: dict[str, list[Node]] = {}
    for node in network.nodes:
        layers.setdefault(node.layer or node.name, []).append(node)
    weights = [layer.weight for layer in network.graph.layers if isinstance(layer, Linear | Convolution)]
    bits = sum(weight.size * IntType(min(-1, int(weight.min())), max(0, int(weight.max()))).bits for weight in weights)
    return Needs(cost(network.nodes), {layer: cost(nodes) for layer, nodes in layers.items()}, bits)


def size_diagnostics(options: Options, needs: Needs) -> list[Diagnostic]:
    """Diagnostics of the size of a network: HG070 if it does not fit, HG090 as a warning."""
    device, search = options.chosen_device, options.searches
    subject = "the smallest network found" if search else "the requested network"
    diagnostics = too_large(needs, options.asked_budget, device, searched_for=search, smallest=subject)
    if options.max_dsp and options.prefer != "dsp" and not needs.cost.dsp:
        text = "no DSP blocks are used, because multiplications use LUT."
        diagnostics.append(Diagnostic("HG090", "--max-dsp", text, "--prefer dsp uses them.", "warning"))
    return diagnostics


def targets_of(options: Options) -> Targets:
    """Targets of the network, from the options."""
    return Targets(
        cycles=options.cycles,
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
        dsp_factor_bits=block_bits(options),
        latency=options.latency_cycles,
        plain_ports=options.plain,
        pipelining=options.pipelining if "verilog" in backends_of(options.target) else PLAIN,
    )


def block_bits(options: Options) -> int:
    """Bits of the wider operand of a DSP block of the device; of Xilinx 7 series without a device."""
    return 25 if options.chosen_device is None else options.chosen_device.family.dsp_bits


def network_cost(build: Build, family: str = "xc7") -> Cost:
    """Estimated cost of the network in the first target of the build, counted in resources of a family."""
    return _cost(build.options, family, build.network.nodes, build.network.choices)


def device_estimate(build: Build, device: Device | None) -> dict[str, int]:
    """Estimated LUT, registers, block RAM and DSP blocks of a device, or of Xilinx 7 series without one."""
    return in_kinds(network_cost(build, counting_family(device)), device)


def estimator_of(options: Options) -> Estimator:
    """Estimates nodes and realizations in the first target, in the resources of the chosen device if there is one."""
    device = options.chosen_device
    return lambda nodes, choices: in_kinds(_cost(options, counting_family(device), nodes, choices), device)


def _cost(options: Options, family: str, nodes: Iterable[Node], choices: Mapping[str, Choice]) -> Cost:
    backend, targets = planning_backend(options.target), replace(targets_of(options), family=family)
    return backend.network_cost(nodes, choices, targets)


def merge_emitted(emitted: Mapping[str, Emitted]) -> Emitted:
    """Merges the emitted targets for the manifest: each field from the first target that has it, Verilog first."""
    parts = sorted(emitted.values(), key=lambda part: "module" not in part.top)
    top = next((part.top for part in parts if part.top), {})
    weights = next((part.weights for part in parts if part.weights), [])
    schedule = next((part.schedule for part in parts if part.schedule), {})
    return Emitted({}, top, weights, note=" ".join(part.note for part in parts if part.note), schedule=schedule)


def _title(name: str) -> str:
    return "".join(c if c.isprintable() and c not in "/*\\" else " " for c in name)[:80]
