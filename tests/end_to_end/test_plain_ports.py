"""Cores without handshake: integers, the same latency for every word with gaps and resets, certified."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from builds import assert_verified
from certified import neurons
from paths import DATA, needs_icarus

import hlsgen
from tests.support.alir_files import random_alir

pytestmark = pytest.mark.sim
#: Tests of the testbench that a core without handshake runs.
TESTS = {"full_rate", "random_stalls", "reset_mid_frame", "words_in_reset"}


def model(name: str, folder: Path) -> Path:
    """The file of a model: neurons, alir, or a file of tests/data."""
    if name == "neurons":
        onnx.save(neurons(3, 3), folder / "net.onnx")
    elif name == "alir":
        (folder / "net.alir.json").write_bytes(random_alir(5))
        return folder / "net.alir.json"
    else:
        return DATA / f"{name}.onnx"
    return folder / "net.onnx"


@pytest.mark.cases(2)
@needs_icarus
@pytest.mark.parametrize(
    "name, simulator", [("neurons", "icarus"), ("bin_tern", "verilator"), ("alir", "icarus"), ("asym_tensor", "icarus")]
)
def test_verified_and_certified(name: str, simulator: str, tmp_path: Path) -> None:
    options = hlsgen.Options(ports="plain", reset_active_low=name == "neurons")
    hlsgen.build(model(name, tmp_path), tmp_path / "core", options)
    assert hlsgen.certify(tmp_path / "core").problems == []
    assert_verified(tmp_path / "core", simulator, 32)


@needs_icarus
def test_a_core_that_waits_is_found(tmp_path: Path) -> None:
    """An output port that refuses words makes the core lose or delay some of them."""
    hlsgen.build(model("neurons", tmp_path), tmp_path / "core", hlsgen.Options(ports="plain", top="top"))
    port = tmp_path / "core" / "rtl" / "top_hg_plain_out.v"
    port.write_text(port.read_text().replace("s_ready   = 1'b1", "s_ready   = s_data[0] || !s_valid"))
    verdict = hlsgen.verify(tmp_path / "core", ["icarus"], 32, oracle="none", allow_changed=True)
    icarus = verdict.simulators["icarus"]
    assert set(icarus.tests) == TESTS
    assert not icarus.tests["full_rate"]
    assert not icarus.tests["random_stalls"]


@needs_icarus
@pytest.mark.parametrize("value", ["1'b0", "reset_in"])
def test_a_wrong_reset_is_found(value: str, tmp_path: Path) -> None:
    """A core that keeps words in a reset, and one whose reset has no register."""
    hlsgen.build(model("neurons", tmp_path), tmp_path / "core", hlsgen.Options(ports="plain", top="top"))
    path = tmp_path / "core" / "rtl" / "top_hg_reset.v"
    text = path.read_text()
    assert "rst = rst_reg" in text
    path.write_text(text.replace("rst = rst_reg", f"rst = {value}"))
    verdict = hlsgen.verify(tmp_path / "core", ["icarus"], 32, oracle="none", allow_changed=True)
    assert not verdict.simulators["icarus"].tests["words_in_reset"]


def test_numbers_through_the_simulated_core(tmp_path: Path) -> None:
    """A word in files has whole bytes; in Verilator the core gives the numbers of the reference."""
    build = hlsgen.build(model("alir", tmp_path), tmp_path / "core", hlsgen.Options(ports="plain"))
    x = np.zeros((5, *build.model.input_shape[1:]), np.float32)
    bits = build.network.inputs[0].data_bits
    assert bits % 8
    assert len(hlsgen.pack(tmp_path / "core", x)) == 5 * -(-bits // 8)
    expected, actual = (hlsgen.run(tmp_path / "core", x, backend=kind) for kind in ("reference", "verilator"))
    assert np.array_equal(expected, actual)
