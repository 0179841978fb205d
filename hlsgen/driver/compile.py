"""Model file -> all files of a build, in memory; the same for the same model and options."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from hlsgen.artifacts import certificate, project_files
from hlsgen.cycle_model.latency import busy
from hlsgen.dataflow.folding import Targets
from hlsgen.dataflow.network import Schedule
from hlsgen.dataflow.resources import Budget
from hlsgen.diagnostics import Collector, Diagnostic, fail
from hlsgen.driver.options import Options, check_options, parse_input, tool_version
from hlsgen.driver.schedule import plan
from hlsgen.frontend import import_model, self_contained
from hlsgen.ir import Graph, Model
from hlsgen.passes import lower
from hlsgen.verilog import emit
from hlsgen.verilog.netlist import Design, elaborate
from hlsgen.verilog.render import identifier
from hlsgen.verilog.resource_model import STYLES, network_cost

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, eq=False)
class Build:
    """A compiled model: what its file says, schedule, design, and text or bytes of every file."""

    options: Options
    model: Model
    schedule: Schedule
    design: Design
    files: dict[str, bytes]
    warnings: list[Diagnostic]

    @property
    def graph(self) -> Graph:
        return self.schedule.graph


def compile_model(path: Path, options: Options, progress: Progress | None = None) -> Build:
    """The whole way from a file to a build. Raises HlsgenError with every problem found."""
    problems = Collector()
    mode = None
    with problems.catching():
        check_options(options)
    with problems.catching():
        mode = parse_input(options.input)
    model = import_model(path, problems, options.add == "fixed-point")
    if model is None:
        problems.finish()
    assert model is not None
    with problems.catching():
        graph = lower(model, mode, problems)
    problems.finish()
    budget = Budget(options.max_lut, options.max_dsp, options.max_bram)
    targets = Targets(
        options.target_cycles, options.lanes, options.folding, options.prefer, options.realize, options.weights, budget
    )
    schedule = plan(graph, targets, progress)
    if options.target_cycles and schedule.interval > options.target_cycles:
        slowest = max(schedule.nodes, key=lambda node: (busy(node), bool(node.layer)))
        problems.warn(
            "HG090", "--target-cycles", f"{options.target_cycles} cycles cannot be met; taken: {schedule.interval}, "
            f"what {slowest.layer or slowest.name} needs.",
        )  # fmt: skip
    data = self_contained(path)
    options = replace(options, name=_title(options.name or path.stem))
    about = {"file": "model.onnx", "sha256": hashlib.sha256(data).hexdigest()}
    design = elaborate(
        schedule, identifier(options.top), options.reset_active_low, options.name or "", STYLES[options.weights],
        loadable=options.loadable,
    )  # fmt: skip
    if options.loadable and not design.loads:
        raise fail("HG040", "--loadable-weights", "the model has no layer with weights.", "Leave the option out.")
    if budget.given:
        cost = network_cost(
            schedule.nodes, schedule.choices, dsp=options.prefer == "dsp", style=STYLES[options.weights]
        )
        if budget.excess(cost) > 1:
            problems.warn(
                "HG090", "--max-lut, --max-dsp, --max-bram",
                f"the smallest network found takes about {cost.lut:.0f} LUT, {cost.dsp} DSP, {cost.bram} BRAM.",
            )  # fmt: skip
    texts = emit.emit(design, schedule)
    texts |= project_files.emit(design, schedule, asdict(options), about, tool_version())
    files = {name: text.encode() for name, text in texts.items()}
    files["model.onnx"] = data
    rtl = {name: content for name, content in files.items() if name.startswith("rtl/")}
    files["certificate.json"] = certificate.emit(design, schedule, about, rtl).encode()
    return Build(options, model, schedule, design, dict(sorted(files.items())), problems.warnings)


def _title(name: str) -> str:
    return "".join(c if c.isprintable() and c not in "/*\\" else " " for c in name)[:80]
