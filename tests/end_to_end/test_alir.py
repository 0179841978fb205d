"""ALIR files end to end: a network that alkaid traces, and random programs, in simulation."""

from pathlib import Path

import numpy as np
import pytest

import hlsgen
from tests.support.alir_files import random_alir


def traced(folder: Path) -> Path:
    """A small sparse network with a width for each element, traced by alkaid."""
    trace = pytest.importorskip("alkaid.trace", reason="alkaid is not installed: no network is traced")
    ops = pytest.importorskip("alkaid.trace.ops")
    rng = np.random.default_rng(0)
    x = trace.FVArrayInput((8,), hwconf=trace.HWConfig(1, -1, -1))
    bits = rng.integers(2, 6, 8)
    t = ops.quantize(x, 1, bits - 2, np.ones(8, int), "WRAP", "TRN")
    for columns, overflow in ((6, "SAT"), (3, "WRAP")):
        weights = rng.integers(-7, 8, (t.shape[0], columns)) * (rng.random((t.shape[0], columns)) < 0.5) / 4
        t = ops.quantize(ops.relu(t @ weights + rng.integers(-3, 4, columns) / 2), 0, 3, 2, overflow, "RND")
    path = folder / "tagger.alir.json"
    trace.trace(x, t).save(path)
    return path


@pytest.mark.sim
def test_a_traced_network_in_verilator(tmp_path: Path) -> None:
    hlsgen.build(traced(tmp_path), tmp_path / "out")
    verdict = hlsgen.verify(tmp_path / "out", ["verilator"], frames=40)
    assert verdict.ok
    assert verdict.oracle is not None
    assert verdict.oracle.ran.startswith("alkaid")
    assert hlsgen.certify(tmp_path / "out").ok


@pytest.mark.slow
@pytest.mark.sim
@pytest.mark.parametrize("seed", [*range(3, 12), 13, 14])  # program 12 does not depend on its input
def test_random_programs_in_a_simulator(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "net.alir.json"
    path.write_bytes(random_alir(seed))
    hlsgen.build(path, tmp_path / "out")
    assert hlsgen.verify(tmp_path / "out", ["icarus" if seed % 2 else "verilator"], frames=60).ok
    assert hlsgen.certify(tmp_path / "out").ok
