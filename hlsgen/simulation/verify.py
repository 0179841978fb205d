"""Verifies a build: its integers, its files, its host code, and its hardware in simulation, against the ONNX model."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hlsgen.dataflow.network import Network, Timing
from hlsgen.dataflow.workload import works_of
from hlsgen.diagnostics import counted, fail
from hlsgen.driver.build_directory import changes
from hlsgen.frontend.file_kind import model_file_of
from hlsgen.frontend.runtimes import version_note
from hlsgen.hls.core import Core
from hlsgen.interpreter.equivalence import Comparison, compare
from hlsgen.interpreter.frame_sequence import in_sequence
from hlsgen.interpreter.frame_states import as_sequence, drawn_starts, starts_of
from hlsgen.ir import Graph, Model
from hlsgen.numerics.fixed import Array
from hlsgen.simulation.cocotb_runner import Limits
from hlsgen.simulation.core_copy import core_files
from hlsgen.simulation.directed import affordable_frames, directed
from hlsgen.simulation.file_oracle import check_choice, compare_file
from hlsgen.simulation.file_verdict import OracleVerdict
from hlsgen.simulation.host_selftest import check_host
from hlsgen.simulation.isolate_layer import check_cut, write_cut
from hlsgen.simulation.simulators import CPP, VERILOG
from hlsgen.simulation.verdict import SimulatorVerdict, Verdict
from hlsgen.simulation.verify_cpp import note_on_synthesis, verify_cpp
from hlsgen.simulation.verify_verilog import PrepareWeights, no_weights, verify_verilog
from hlsgen.simulation.vitis import VITIS, cosimulate, require_vitis
from hlsgen.testbench.stimuli import stimuli
from hlsgen.verilog.netlist import Design

#: Most frames that run in an executor of ONNX models.
ORACLE_FRAMES = 40
#: Share of a simulator's time in which frames are sent at full rate. The other tests need the rest.
PACE = 0.4
#: Fewest frames that show the interval.
MIN_FRAMES = 4
#: Multiplications that a simulator computes in about ten seconds.
_BUDGET = {"verilator": 200_000_000, "icarus": 3_000_000, "ap_types": 200_000_000, "ac_types": 1_000_000_000}


@dataclass(frozen=True)
class VerifyRequest:
    """Settings of a verification.

    - simulators: names from `VERILOG` and `CPP`.
    - frames: for each simulator, or None for a number that fits the network. A quarter of them are directed.
    - seed: of stimuli and stalls.
    - oracle: executor of the ONNX model, one of `oracles.CHOICES`.
    - allow_changed: files of the build directory are simulated even if they differ from the build's.
    - cut: a new folder for the first layer of Verilog that differs.
    - cosim: Vitis synthesizes the C++ and simulates the result.
    - budget: seconds for everything. The test at full rate then has fewer frames. A simulation that does not end in
      time is not ok.
    - waves: a file .vcd or .fst for the waves of the only simulator, which is one of `VERILOG`.
    """

    simulators: Sequence[str]
    frames: int | None = None
    seed: int = 1
    oracle: str = "auto"
    allow_changed: bool = False
    cut: Path | None = None
    cosim: bool = False
    budget: float | None = None
    waves: Path | None = None


def verify_build(
    model: Model,
    network: Network,
    timing: Timing,
    files: Mapping[str, bytes],
    directory: Path,
    request: VerifyRequest,
    *,
    design: Design | None = None,
    cpp: Core | None = None,
    prepare_weights: PrepareWeights = no_weights,
    progress: Callable[[str], None] = lambda text: None,
    report: Callable[[str, object], None] = lambda name, part: None,
) -> Verdict:
    """Compares a build with its model, and with its file in an executor; then simulates its Verilog and C++.

    - files: contents of the build's files by relative path, which the files in `directory` must equal.
    - design, cpp: the Verilog and C++ of the build, for the requested simulators.
    - prepare_weights: writes other weights for the testbench of a core with loadable weights.
    - report: called with each part of the verdict as soon as it is known. Parts are "model", "oracle", "host",
      "changed", and the names of simulators.

    Raises HG040, HG052, HG059.
    """
    _check_request(request)
    end = None if request.budget is None else time.monotonic() + request.budget
    progress("the model, step by step")
    aimed = directed(network.graph, affordable_frames(network.graph), request.seed)
    equivalence = compare_with_model(model, network, aimed, request.seed)
    report("model", equivalence)
    path = model_file_of(directory)
    counts = {
        name: max(MIN_FRAMES, request.frames or default_frames(network.graph, timing, name))
        for name in request.simulators
    }
    sequence = sequence_of(network, aimed, max(counts.values(), default=0), request.seed)
    file = compare_with_file(path, model, network, aimed, request.seed, request.oracle, progress, sequence)
    report("oracle", file)
    host = check_host(model, network, path, request.seed, request.oracle, progress)
    report("host", host)
    changed = changes(files, directory)
    report("changed", changed)
    if changed and not request.allow_changed:
        return Verdict(False, equivalence, file, changed, timing.cycles, notes=host.notes, host=host)
    core = core_files(files, directory, allow_changed=bool(changed))
    verdicts: dict[str, SimulatorVerdict] = {}
    codes_by_simulator: dict[str, Array] = {}
    starts_by = design.starts_by if design is not None else cpp.starts_by if cpp is not None else ""
    for number, simulator in enumerate(request.simulators):
        count = counts[simulator]
        codes = frames_of(network, aimed, count, request.seed, starts_by) if sequence is None else sequence[:count]
        codes_by_simulator[simulator] = codes
        progress(f"{simulator}: {counted(len(codes), 'frame')}")
        limits = _limits(end, len(request.simulators) - number, request.waves)
        if limits is None:
            late = ["not run: the time was up before"]
            verdicts[simulator] = SimulatorVerdict(0, 0, None, late, None, asked=len(codes), late=True)
        elif simulator in CPP:
            assert cpp is not None
            verdicts[simulator] = verify_cpp(cpp, network, core, codes, simulator, progress)
        else:
            assert design is not None
            verdicts[simulator] = verify_verilog(
                design, network, timing, core, codes, simulator, request.seed, progress, limits, prepare_weights
            )
        report(simulator, verdicts[simulator])
    if request.cosim:
        assert cpp is not None
        verdicts[VITIS] = cosimulate(cpp, files, core, progress)
        report(VITIS, verdicts[VITIS])
    if request.cut is not None:
        assert design is not None
        divergence = _first_in_verilog(verdicts)
        if divergence is not None:
            simulator, place = divergence
            progress(f"cutting out {place['layer']}")
            codes = codes_by_simulator[simulator][place["frame"] : place["frame"] + 1]
            write_cut(design, network, timing, core, request.cut, place["layer"], codes)
            place["cut"] = str(request.cut)
    ok = equivalence.ok and file.ok and host.ok and not changed and all(v.ok for v in verdicts.values())
    note = version_note(model.runtime)
    notes = [*host.notes, *([f"{note}."] if note else []), *_notes(request, verdicts)]
    return Verdict(ok, equivalence, file, changed, timing.cycles, verdicts, notes, host)


def _check_request(request: VerifyRequest) -> None:
    """Raises HG040, HG052, HG059 for a request that cannot be met."""
    if request.cut is not None:
        check_cut(request.cut)
        if not set(request.simulators) & set(VERILOG):
            raise fail("HG040", "--cut", "cuts a layer out of Verilog, and no Verilog is simulated.", "Leave it out.")
    if request.waves is not None:
        if len(request.simulators) != 1 or request.simulators[0] not in VERILOG:
            hint = f"Name it: --sim {' or --sim '.join(VERILOG)}."
            raise fail("HG040", "--waves", "needs a single simulator of Verilog.", hint)
        if request.waves.suffix not in (".vcd", ".fst") or not request.waves.parent.is_dir():
            raise fail(
                "HG040", "--waves", f"{str(request.waves)!r}.", "Name a file .vcd or .fst in an existing folder."
            )
    check_choice(request.oracle)
    if request.cosim:
        require_vitis()


def _limits(end: float | None, simulators_left: int, waves: Path | None) -> Limits | None:
    """Limits of the next simulation, which gets an equal share of the time until `end`, or None if the time is up."""
    if end is None:
        return Limits(waves=waves)
    now = time.monotonic()
    if now >= end:
        return None
    share = (end - now) / simulators_left
    return Limits(now + share, now + share * PACE, waves)


def _first_in_verilog(verdicts: Mapping[str, SimulatorVerdict]) -> tuple[str, dict[str, Any]] | None:
    """The first Verilog simulator that found a divergence in a layer, and the place, or None without one."""
    for name, verdict in verdicts.items():
        if name in VERILOG and verdict.first_divergence:
            return (name, verdict.first_divergence) if verdict.first_divergence["layer"] else None
    return None


def _notes(request: VerifyRequest, verdicts: Mapping[str, SimulatorVerdict]) -> list[str]:
    """Sentences on checks that were not made."""
    notes = [note_on_synthesis()] if set(request.simulators) & set(CPP) and not request.cosim else []
    notes += [
        f"{name}: the time sufficed for {verdict.samples} of {verdict.asked} frames."
        for name, verdict in verdicts.items()
        if 0 < verdict.samples < verdict.asked
    ]
    return notes


def default_frames(graph: Graph, timing: Timing, simulator: str) -> int:
    """Frames for a verification: many small ones, a few large ones."""
    macs = sum(work.macs for work in works_of(graph).values())
    by_cycles = 100_000 // max(1, timing.interval)
    return max(6, min(200, by_cycles, _BUDGET[simulator] // max(1, macs)))


def frames_of(network: Network, aimed: Array, count: int, seed: int, starts_by: str = "") -> Array:
    """The frames to simulate: random ones, then directed frames from `aimed`, at most a quarter.

    In a build with states they are one sequence or, if tuser starts one (`starts_by`), several.
    """
    directed_frames = _spread(aimed, count // 4)
    codes = np.concatenate([stimuli(network, count - len(directed_frames), seed), directed_frames])
    starts = drawn_starts(len(codes), seed) if starts_by == "tuser" else starts_of(None, len(codes))
    return as_sequence(network.graph, codes, starts)


def sequence_of(network: Network, aimed: Array, count: int, seed: int) -> Array | None:
    """Such frames in any order, as one sequence, of a file with variables. Other files have none.

    The file runs all of them, a simulator the first ones.
    """
    if not network.graph.model.variables or network.graph.states:
        return None
    frames = frames_of(network, aimed, max(count, _oracle_frames(network.graph)), seed)
    return in_sequence(network.graph, np.random.default_rng(seed).permutation(frames))


def _oracle_frames(graph: Graph) -> int:
    """The number of frames for an executor of the file."""
    return min(affordable_frames(graph), ORACLE_FRAMES)


def compare_with_model(model: Model, network: Network, aimed: Array, seed: int) -> Comparison:
    """Compares the integer graph with the model of the file, on directed frames and on random ones."""
    count = affordable_frames(network.graph)
    random_frames = stimuli(network, count, seed)
    return compare(model, network.graph, np.concatenate([aimed, _spread(random_frames, count)]))


def compare_with_file(
    path: Path,
    model: Model,
    network: Network,
    aimed: Array,
    seed: int,
    oracle: str = "auto",
    progress: Callable[[str], None] = lambda text: None,
    sequence: Array | None = None,
) -> OracleVerdict:
    """Compares with the model file in an independent executor, on fewer such frames, or on a sequence of frames.

    Raises HG001 to HG004.
    """
    count = _oracle_frames(network.graph) // 2
    random_frames = stimuli(network, count, seed)
    codes = np.concatenate([_spread(aimed, count), _spread(random_frames, count)]) if sequence is None else sequence
    return compare_file(path, model, network.graph, codes, oracle, progress)


def _spread(frames: Array, count: int) -> Array:
    """At most `count` of the frames, evenly spaced from the first to the last."""
    if not len(frames) or not count:
        return frames[:0]
    places = np.unique(np.linspace(0, len(frames) - 1, count).astype(int))
    return np.asarray(frames[places])
