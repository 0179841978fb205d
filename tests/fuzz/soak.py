"""Random stalls and resets on random designs, compiled by Verilator: every output beat is compared, for hours.

    python tests/fuzz/soak.py --seconds 3600 --seed 1 --keep findings

Each design is a random model with random folding, ports, reset polarity, and register values at power-up. Some have
states between frames, and start sequences at random. Half of the designs with weights and without states load other
weights over AXI4-Lite before every chunk. A difference is written with its seed and the
command that repeats it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import attention_nets
import image_nets
import numpy as np
import onnx
import state_models
from random_graphs import datapath, perceptron
from recurrent_cells import random_scan

import hlsgen
from hlsgen.dataflow.network import Network
from hlsgen.dataflow.workload import works_of
from hlsgen.diagnostics import HlsgenError
from hlsgen.driver.weight_update import current_weights, load_sequence, other_weights, reweighted
from hlsgen.interpreter.frame_states import as_sequence, drawn_starts
from hlsgen.interpreter.graph import run_layers
from hlsgen.simulation.verilator_library import NativeCore
from hlsgen.testbench.stimuli import stimuli

#: Cycles between two looks at the clock, and frames that are sent in a circle.
CYCLES, FRAMES = 200_000, 64
#: Products of a frame above which a design is left out: it compiles and runs for too long.
PRODUCTS = 20_000
#: Sets of weights that a core with loadable ones gets in turn, its own first.
SETS = 4


#: Models with states between frames.
STATE_MODELS = (
    state_models.streaming,
    state_models.recurrent,
    state_models.summed,
    state_models.coupled,
    state_models.delays,
)


def states_of(proto: onnx.ModelProto) -> list[str]:
    """The pairs of inputs and outputs that are states, for --state."""
    outputs = {output.name for output in proto.graph.output}
    return [f"{source.name}={source.name}_out" for source in proto.graph.input if f"{source.name}_out" in outputs]


def model(seed: int) -> onnx.ModelProto:
    """The same for the same seed: a perceptron, an image or attention network, a loop, or a chain of quantizers.

    One in ten has states between frames.
    """
    draw = np.random.default_rng([seed, 2])
    if draw.random() < 0.1:
        return STATE_MODELS[int(draw.integers(len(STATE_MODELS)))](seed)
    rng = np.random.default_rng([seed, 0])
    kind = rng.random()
    if kind < 0.3:
        return perceptron(seed, powers=bool(rng.random() < 0.5))
    if kind < 0.45:
        return attention_nets.network(seed, 6)
    if kind < 0.55:
        return random_scan(seed)
    if kind < 0.9:
        return image_nets.network(str(rng.choice(list(image_nets.NETWORKS))), seed, size=int(rng.integers(4, 7)))
    return datapath(seed)


def design(seed: int, folder: Path) -> hlsgen.Build | None:
    """A build of the model in `folder`/core, or None if it is rejected, too large, or its output is constant."""
    rng = np.random.default_rng([seed, 1])
    folder.mkdir(parents=True, exist_ok=True)
    proto = model(seed)
    states = states_of(proto)
    onnx.save(proto, folder / "model.onnx")
    cycles = [None, 1, 1, 1, 4, 16, 64][int(rng.integers(7))]
    low, lanes = bool(rng.random() < 0.5), int(rng.integers(1, 5))
    try:
        planned = hlsgen.check(folder / "model.onnx", hlsgen.Options(target_cycles=cycles, state=states))
        if sum(work.macs for work in works_of(planned.graph).values()) > PRODUCTS:
            return None
        frames = run_layers(planned.graph, stimuli(planned.network, FRAMES, seed))[-1]
        if (frames == frames[0]).all():
            return None
        folding = None if rng.random() < 0.5 else _folding(rng, planned)
        loadable = not states and bool(works_of(planned.graph)) and bool(rng.random() < 0.5)
        options = hlsgen.Options(
            target_cycles=None if folding else cycles,
            folding=folding or {},
            reset_active_low=low,
            loadable=loadable,
            top="soak",
            lanes=None if works_of(planned.graph) else lanes,
            recurrence="once" if rng.random() < 0.5 else "unrolled",
            state=states,
        )
        return hlsgen.build(folder / "model.onnx", folder / "core", options)
    except HlsgenError:
        return None


def soak(seed: int, seconds: float, folder: Path, total: Counter[str], chunks: int | None = None) -> str:
    """Run the design of this seed. Returns the failure or "", and adds counts to `total`."""
    build = design(seed, folder)
    if build is None:
        total["left out"] += 1
        return ""
    return run(build, folder / "core", folder / "sim", seed, seconds, total, chunks)


def run(
    build: hlsgen.Build, core: Path, work: Path, seed: int, seconds: float, total: Counter[str], chunks: int | None
) -> str:
    """Run the hardware in `core` for a number of seconds, or for `chunks` times CYCLES cycles."""
    codes = as_sequence(build.graph, stimuli(build.network, FRAMES, seed), drawn_starts(FRAMES, seed))
    sets = _weights(build, seed) if build.design.loads else []
    with NativeCore(build, core, work, seed % (1 << 30)) as native:
        total["designs"] += 1
        end, chunk = time.monotonic() + seconds, 0
        while (chunk < chunks) if chunks is not None else (chunk == 0 or time.monotonic() < end):
            number = seed * 100_000 + chunk
            network, writes = sets[chunk % SETS] if sets else (build.network, [])
            if writes and chunk:
                native.write(writes, number + 1)
                total["writes"] += len(writes)
            soaked = native.soak(codes, CYCLES, number, network)
            beats = soaked.input_beats + soaked.output_beats
            frames = soaked.output_beats // network.outputs[0].layout.words
            total.update(cycles=soaked.cycles, beats=beats, resets=soaked.resets, frames=frames)
            if soaked.error:
                return f"chunk {chunk}: {soaked.error}"
            chunk += 1
    return ""


def _weights(build: hlsgen.Build, seed: int) -> list[tuple[Network, list[tuple[int, int]]]]:
    """Networks for the same hardware with other weights, and their writes. The first has the original weights."""
    own_values = current_weights(build)
    networks = []
    for n in range(SETS):
        weights = own_values | (other_weights(build, own_values, seed + n) if n else {})
        writes = [write for load in load_sequence(build, weights) for write in load.writes]
        networks.append((replace(build.network, graph=reweighted(build, weights)), writes))
    return networks


def main() -> int:
    parser = argparse.ArgumentParser(description="Random stalls and resets on random designs.")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first design; the next ones follow")
    parser.add_argument("--designs", type=int, default=None, help="at most so many")
    parser.add_argument("--each", type=float, default=30.0, help="seconds for a design, beside its compilation")
    parser.add_argument("--chunks", type=int, default=None, help=f"so many times {CYCLES} cycles for each, instead")
    parser.add_argument("--keep", type=Path, default=Path("findings"), help="folder for designs that differ")
    args = parser.parse_args()
    total: Counter[str] = Counter()
    start, seed = time.monotonic(), args.seed
    while args.designs is None or seed < args.seed + args.designs:
        remaining = args.seconds - (time.monotonic() - start)
        if remaining <= 0:
            break
        with tempfile.TemporaryDirectory(prefix="hlsgen-") as folder:
            try:
                wrong = soak(seed, min(args.each, remaining), Path(folder), total, args.chunks)
            except Exception:
                wrong = traceback.format_exc()
            if wrong:
                total["findings"] += 1
                _keep(args.keep, seed, wrong)
        seed += 1
        print(f"{seed - args.seed} seeds, {time.monotonic() - start:.0f} s: {line(total)}", flush=True)
    return int(total["findings"] > 0)


def line(total: Counter[str]) -> str:
    return (
        f"{total['designs']} designs ({total['left out']} left out), {total['frames']:,} frames, {total['beats']:,} beats, {total['cycles']:,} "
        f"cycles, {total['resets']:,} resets, {total['writes']:,} writes of weights, {total['findings']} findings"
    )


def _keep(folder: Path, seed: int, wrong: str) -> None:
    """Write a finding: the model, the failure, and the command that repeats it."""
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model(seed), folder / f"soak-{seed}.onnx")
    chunks = f" --chunks {int(wrong.split()[1].rstrip(':')) + 1}" if wrong.startswith("chunk ") else ""
    command = f"python tests/fuzz/soak.py --seed {seed} --designs 1{chunks}"
    (folder / f"soak-{seed}.txt").write_text(f"seed {seed}: {wrong}\n{command}\n")
    print(f"seed {seed}: {wrong}\n{command}", flush=True)


def _folding(rng: np.random.Generator, build: hlsgen.Build) -> dict[str, dict[str, int]]:
    """PE and SIMD of every layer that has them, any divisors."""
    result = {}
    for layer in json.loads(build.files["manifest.json"])["layers"]:
        if "pe" in layer and "rows" in layer:
            pe, simd = (
                int(rng.choice([d for d in range(1, layer[side] + 1) if layer[side] % d == 0]))
                for side in ("rows", "columns")
            )
            result[layer["name"]] = {"pe": pe, "simd": simd}
    return result


if __name__ == "__main__":
    sys.exit(main())
