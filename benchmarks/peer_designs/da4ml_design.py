"""Verilog of da4ml for a network of workloads.py: `python da4ml_design.py dense|jets CUTOFF FOLDER [keep]`.

A register stands where the delay of adders, each counted as 1, reaches CUTOFF. keep: wires of sums keep Yosys from
adding three numbers at once. Sums are held against integers of NumPy first; da4ml rounds halves up where the network
rounds to even.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
from da4ml.codegen import RTLModel
from da4ml.trace import FixedVariableArray, HWConfig, comb_trace
from da4ml.trace.ops import quantize, relu

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from workloads import DENSE, JETS, Layers


def traced(layers: Layers):
    """The network as da4ml's graph, behind codes of int8."""
    codes = np.ones(layers.sizes[0], int)
    start = FixedVariableArray.from_kif(codes, 7 * codes, 0 * codes, HWConfig(1, -1, -1), solver_options={"hard_dc": 2})
    value = start
    for n, weight in enumerate(layers.weights()):
        value = value @ weight.astype(float)
        if n < len(layers.sizes) - 2:
            ones, shift = np.ones(value.shape, int), layers.shifts()[n]
            kept = quantize(relu(value), 0 * ones, (layers.x_bits + shift) * ones, -shift * ones, "SAT", "RND")
            value = kept * 2.0**-shift
    return comb_trace(start, value)


def expected(layers: Layers, codes):
    for n, weight in enumerate(layers.weights()):
        codes = codes @ weight.astype(np.int64)
        if n < len(layers.sizes) - 2:
            shift = layers.shifts()[n]
            codes = np.clip((codes + (1 << shift >> 1)) >> shift, 0, 2**layers.x_bits - 1)
    return codes


def main() -> None:
    name, cutoff, folder = sys.argv[1], float(sys.argv[2]), Path(sys.argv[3])
    layers = {"dense": DENSE, "jets": JETS}[name]
    graph = traced(layers)
    codes = np.random.default_rng(9).integers(-128, 128, (1000, layers.sizes[0]))
    equal = bool((graph.predict(codes.astype(float)) == expected(layers, codes)).all())
    with tempfile.TemporaryDirectory() as made:
        RTLModel(graph, "top", made, flavor="verilog", latency_cutoff=cutoff).write()
        for path in (*Path(made, "src").glob("*.v"), *Path(made, "src/static").glob("*.v")):
            text = path.read_text()
            if "keep" in sys.argv[4:]:
                text = re.sub(r"^( *)(wire \[\d+:0\] v\d+; shift_adder)", r"\1(* keep *) \2", text, flags=re.M)
            if path.name != "top_wrapper.v":
                (folder / path.name).write_text(text)
    stages = len(list(folder.glob("top_stage*.v")))
    print(json.dumps({"latency": stages + 1, "cycles": 1, "equal": equal}))


if __name__ == "__main__":
    main()
