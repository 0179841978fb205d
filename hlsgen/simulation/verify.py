"""Verifies a build: its integers, its files, its host code, and its hardware in simulation, against the ONNX model."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hlsgen.dataflow.network import Network, Timing
from hlsgen.diagnostics import counted, fail
from hlsgen.driver.build_directory import changes
from hlsgen.frontend.file_kind import model_file_of
from hlsgen.frontend.runtimes import version_note
from hlsgen.hls.core import Core
from hlsgen.interpreter.equivalence import Comparison, compare
from hlsgen.ir import Model
from hlsgen.numerics.fixed import Array
from hlsgen.simulation.cocotb_runner import Limits
from hlsgen.simulation.core_copy import core_files
from hlsgen.simulation.directed import affordable_frames, directed
from hlsgen.simulation.file_oracle import check_choice, compare_file
from hlsgen.simulation.file_verdict import OracleVerdict
from hlsgen.simulation.frames import MIN_FRAMES, default_frames, frames_of, oracle_frames, sequence_of, spread
from hlsgen.simulation.host_selftest import check_host
from hlsgen.simulation.isolate_layer import check_cut, write_cut
from hlsgen.simulation.simulators import CPP, VERILOG
from hlsgen.simulation.verdict import SimulatorVerdict, Verdict
from hlsgen.simulation.verify_cpp import note_on_synthesis, verify_cpp
from hlsgen.simulation.verify_verilog import PrepareWeights, no_weights, verify_verilog
from hlsgen.simulation.vitis import VITIS, cosimulate, require_vitis
from hlsgen.testbench.stimuli import stimuli
from hlsgen.verilog.netlist import Design

#: Share of a simulator's time in which frames are sent at full rate. The other tests need the rest.
PACE = 0.4


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
    hardware = _Hardware(network, timing, core, request, design, cpp, prepare_weights, progress)
    verdicts: dict[str, SimulatorVerdict] = {}
    codes_by_simulator: dict[str, Array] = {}
    for number, simulator in enumerate(request.simulators):
        count = counts[simulator]
        codes = hardware.frames(aimed, count) if sequence is None else sequence[:count]
        codes_by_simulator[simulator] = codes
        verdicts[simulator] = hardware.simulate(
            simulator, codes, _limits(end, len(request.simulators) - number, request.waves)
        )
        report(simulator, verdicts[simulator])
    if request.cosim:
        assert cpp is not None
        verdicts[VITIS] = cosimulate(cpp, files, core, progress)
        report(VITIS, verdicts[VITIS])
    if request.cut is not None:
        hardware.cut_out(request.cut, verdicts, codes_by_simulator)
    ok = equivalence.ok and file.ok and host.ok and not changed and all(v.ok for v in verdicts.values())
    note = version_note(model.runtime)
    notes = [*host.notes, *([f"{note}."] if note else []), *_notes(request, verdicts)]
    return Verdict(ok, equivalence, file, changed, timing.cycles, verdicts, notes, host)


@dataclass(frozen=True)
class _Hardware:
    """The hardware of a build, for the simulations of a request. Fields: see `verify_build`."""

    network: Network
    timing: Timing
    core: Mapping[str, bytes]
    request: VerifyRequest
    design: Design | None
    cpp: Core | None
    prepare_weights: PrepareWeights
    progress: Callable[[str], None]

    def frames(self, aimed: Array, count: int) -> Array:
        """The frames of a simulation. `aimed`: directed frames."""
        core = self.cpp if self.design is None else self.design
        return frames_of(self.network, aimed, count, self.request.seed, "" if core is None else core.starts_by)

    def simulate(self, simulator: str, codes: Array, limits: Limits | None) -> SimulatorVerdict:
        """Runs the frames in a simulator, or says that the time was up (no `limits`)."""
        self.progress(f"{simulator}: {counted(len(codes), 'frame')}")
        if limits is None:
            late = ["not run: the time was up before"]
            return SimulatorVerdict(0, 0, None, late, None, asked=len(codes), late=True)
        if simulator in CPP:
            assert self.cpp is not None
            return verify_cpp(self.cpp, self.network, self.core, codes, simulator, self.progress)
        assert self.design is not None
        return verify_verilog(
            self.design,
            self.network,
            self.timing,
            self.core,
            codes,
            simulator,
            self.request.seed,
            self.progress,
            limits,
            self.prepare_weights,
        )

    def cut_out(
        self, folder: Path, verdicts: Mapping[str, SimulatorVerdict], codes_by_simulator: Mapping[str, Array]
    ) -> None:
        """Writes the first layer of Verilog that differs to a new folder, and the folder's name to its verdict."""
        assert self.design is not None
        divergence = _first_in_verilog(verdicts)
        if divergence is None:
            return
        simulator, place = divergence
        self.progress(f"cutting out {place['layer']}")
        codes = codes_by_simulator[simulator][place["frame"] : place["frame"] + 1]
        write_cut(self.design, self.network, self.timing, self.core, folder, place["layer"], codes)
        place["cut"] = str(folder)


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


def compare_with_model(model: Model, network: Network, aimed: Array, seed: int) -> Comparison:
    """Compares the integer graph with the model of the file, on directed frames and on random ones."""
    count = affordable_frames(network.graph)
    random_frames = stimuli(network, count, seed)
    return compare(model, network.graph, np.concatenate([aimed, spread(random_frames, count)]))


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
    count = oracle_frames(network.graph) // 2
    random_frames = stimuli(network, count, seed)
    codes = np.concatenate([spread(aimed, count), spread(random_frames, count)]) if sequence is None else sequence
    return compare_file(path, model, network.graph, codes, oracle, progress)
