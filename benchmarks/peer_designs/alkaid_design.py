"""Verilog of alkaid for a network of mixed_widths.py: `python alkaid_design.py saturates|wraps CUTOFF FOLDER`.

A register stands where the delay of adders, each counted as 1, reaches CUTOFF. Outputs are held against NumPy first.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from alkaid.codegen import RTLModel

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mixed_widths import MIXED, MIXED_WRAPS


def main() -> None:
    network = {"saturates": MIXED, "wraps": MIXED_WRAPS}[sys.argv[1]]
    cutoff, folder = float(sys.argv[2]), Path(sys.argv[3])
    program = network.traced()
    _, _, bits, points = network.parameters
    rng = np.random.default_rng(9)
    codes = rng.integers(-(2 ** (bits[0] - 1)), 2 ** (bits[0] - 1), (1000, len(bits[0])))
    x = codes * 2.0 ** -points[0]
    equal = bool((program.predict(x) == network.numbers(x)).all())
    with tempfile.TemporaryDirectory() as made:
        clock = {"clock_period": 1.0, "clock_uncertainty": 0.0}
        RTLModel(program, made, "top", flavor="verilog", latency_cutoff=cutoff, **clock).write()
        facts = json.loads(Path(made, "metadata.json").read_text())
        for path in Path(made, "src").rglob("*.v"):
            if "wrapper" not in path.name:
                (folder / path.name).write_text(path.read_text())
    print(json.dumps({"latency": int(facts["latency"]), "cycles": 1, "equal": equal}))


if __name__ == "__main__":
    main()
