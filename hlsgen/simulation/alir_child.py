"""Child process that runs an ALIR file in alkaid's interpreter, in a folder with its files.

Reads model.alir.json and input.npy (frames, elements); writes output.npy. It imports nothing of hlsgen, as the
interpreter is native code that trusts its file.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np

#: Largest memory of the process, in bytes.
_MEMORY = 4 << 30


def main() -> None:
    """Runs all frames and writes the outputs."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    except ImportError:  # Windows has no such limit
        pass
    program = importlib.import_module("alkaid.types").CombLogic.load(Path("model.alir.json"))
    np.save("output.npy", program.predict(np.load("input.npy"), n_threads=1))


if __name__ == "__main__":
    main()
