"""`hlsgen package --for vitis`: a kernel between memory and a host of cocotbext-axi; its XML, script and driver."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import onnx
import pytest
from host_code import module_of
from package_bench import complaints, run_bench
from paths import ROOT, needs_icarus
from small_models import two_ports
from state_models import recurrent
from tcl import in_tcl

import hlsgen
from hlsgen.diagnostics import HlsgenError
from hlsgen.driver.build_directory import reopen
from hlsgen.interpreter.frame_states import as_sequence, without_states
from hlsgen.interpreter.graph import encode_input, run_output
from hlsgen.numerics.fixed import Array
from hlsgen.testbench.sample_vectors import port_words

DIGITS = ROOT / "examples" / "digits" / "digits_mlp.onnx"
FRAMES = 3


def built(case: str, folder: Path) -> Path:
    """A build: the example digits, or a cell with a state."""
    options = {"bus_width": "32", "tkeep": True, "target_cycles": 600}
    model = DIGITS
    if case == "state":
        model, options = folder / "cell.onnx", {"bus_width": "64", "state": ["h=h_out"], "reset_active_low": True}
        onnx.save(recurrent(), model)
    hlsgen.build(model, folder / "build", hlsgen.Options(**options))  # type: ignore[arg-type]
    return folder / "build"


@needs_icarus
@pytest.mark.sim
@pytest.mark.parametrize("case", ["digits", "state"])
def test_against_cocotbext_axi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    """Jobs as XRT runs them, with random pauses of memory and resets: the outputs are those of the model."""
    build, package = built(case, tmp_path), tmp_path / "package"
    hlsgen.package(build, package, ["vitis"])
    manifest = json.loads((build / "manifest.json").read_text())
    shape = manifest["input"]["frame_shape"][1:]
    inputs = np.random.default_rng(1).random((FRAMES, *shape), np.float32)
    job = {
        "frames": hlsgen.pack(build, inputs).hex(),
        "count": FRAMES,
        "output_bytes": manifest["output"]["bus"]["words"] * manifest["output"]["bus"]["width"] // 8,
        "answers": str(tmp_path / "answers.bin"),
        "cycles": 2 * manifest["cycles"]["latency"] + 50,
        "resets": 2,
        "state": case == "state",
    }
    run_bench(f"{manifest['top']['module']}_kernel", "vitis_bench", package, job, monkeypatch)
    outputs = hlsgen.unpack(build, (tmp_path / "answers.bin").read_bytes())
    np.testing.assert_array_equal(outputs, hlsgen.run(build, inputs, backend="reference"))


@needs_icarus
@pytest.mark.sim
def test_several_ports(tmp_path: Path) -> None:
    """An argument for each port, in the registers that kernel.xml names; everything is connected."""
    onnx.save(two_ports(), tmp_path / "two.onnx")
    hlsgen.build(tmp_path / "two.onnx", tmp_path / "build", hlsgen.Options(ports="separate", bus_width="32"))
    package = tmp_path / "package"
    hlsgen.package(tmp_path / "build", package, ["vitis"])
    assert not complaints("two_kernel", package)
    kernel = ElementTree.parse(package / "kernel.xml").getroot()[0]
    ports = [port.get("name") for port in kernel.iter("port")]
    arguments = [(a.get("name"), a.get("id"), a.get("port"), a.get("offset")) for a in kernel.iter("arg")]
    assert ports == ["s_axi_control", "m_axi_gmem_0", "m_axi_gmem_1"]
    assert arguments == [
        ("source", "0", "m_axi_gmem_0", "0x10"),
        ("target_y", "1", "m_axi_gmem_0", "0x1C"),
        ("target_z", "2", "m_axi_gmem_1", "0x28"),
        ("frames", "3", "s_axi_control", "0x34"),
    ]


@pytest.mark.sweep
@pytest.mark.parametrize("case", ["digits", "state"])
def test_driver_and_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    """The driver with a stand-in for XRT gives the integers of the reference; the script packages all sources."""
    build = built(case, tmp_path)
    hlsgen.package(build, tmp_path / "out", ["vitis"])
    name = json.loads((build / "manifest.json").read_text())["top"]["module"]
    kernel = ElementTree.parse(tmp_path / "out" / "kernel.xml").getroot()[0]
    names = [argument.get("name") for argument in kernel.iter("arg")]
    assert names == ["source", "target", "frames", *(["sequence"] if case == "state" else [])]
    x = np.random.default_rng(3).random((5, *_frame_shape(build)), np.float32)
    y = hlsgen.run(build, x)
    sent, answer = hlsgen.pack(build, x), _answer(build, x)
    stand_in = _stand_in(names, sent, answer)
    monkeypatch.setitem(sys.modules, "pyxrt", stand_in)
    monkeypatch.setitem(sys.modules, name, module_of(tmp_path / "out", name))
    driver = module_of(tmp_path / "out", f"{name}_xrt").Driver()
    np.testing.assert_array_equal(driver(x).reshape(y.shape), y)
    if shutil.which("tclsh"):
        packaged = in_tcl("package_kernel.tcl", tmp_path / "out")
        assert set(re.findall(r"(rtl/[\w.]+)", packaged)) == {f"rtl/{p.name}" for p in (tmp_path / "out/rtl").iterdir()}
        assert f"set_property top {name}_kernel" in packaged
        assert "package_xo -force" in packaged


@pytest.mark.sweep
def test_a_core_with_registers(tmp_path: Path) -> None:
    hlsgen.build(DIGITS, tmp_path / "build", hlsgen.Options(bus_width="32", control=True, target_cycles=600))
    with pytest.raises(HlsgenError, match=r"HG040 --for vitis: the core has the AXI4-Lite port s_axil_ctrl"):
        hlsgen.package(tmp_path / "build", tmp_path / "package", ["vitis"])


def _frame_shape(build: Path) -> list[int]:
    shape: list[int] = json.loads((build / "manifest.json").read_text())["input"]["frame_shape"][1:]
    return shape


def _answer(build: Path, x: Array) -> bytes:
    """Bytes of the output port for the frames of a sequence, by the interpreter."""
    opened = reopen(build)
    graph = opened.graph
    codes = encode_input(graph.host_graph, x)
    codes = as_sequence(graph, codes, np.arange(len(x)) == 0)
    outputs = without_states(run_output(graph, codes), graph.host_graph.output.shape)
    return port_words(opened.network.outputs[0], outputs).tobytes()


def _stand_in(names: list[Any], sent: bytes, answer: bytes) -> ModuleType:
    """pyxrt with a kernel that expects `sent` in its first buffer and puts `answer` into its second one."""

    class Bo:
        normal = 0

        def __init__(self, device: object, size: int, flags: int, group: int) -> None:
            self.size, self.group, self.data, self.came = size, group, b"", b""

        def write(self, data: bytes, offset: int) -> None:
            self.data = bytes(data)

        def sync(self, direction: str, size: int, offset: int) -> None:
            assert size == self.size
            if direction == "to":
                assert self.data == sent
            else:
                self.data = self.came

        def read(self, size: int, offset: int) -> Any:
            return np.frombuffer(self.data, np.uint8)

    class Kernel:
        shared = 1

        def __init__(self, device: object, identifier: str, name: str, mode: int) -> None: ...

        def group_id(self, place: int) -> int:
            return 10 + place

        def __call__(self, *arguments: Any) -> Any:
            given = dict(zip(names, arguments, strict=True))
            assert (given["source"].group, given["target"].group) == (10, 11)
            assert given["frames"] == 5
            assert given.get("sequence", 1) == 1
            given["target"].came = answer
            return SimpleNamespace(wait=lambda: None)

    module = ModuleType("pyxrt")
    vars(module).update(
        device=lambda index: SimpleNamespace(load_xclbin=lambda path: path),
        kernel=Kernel,
        bo=Bo,
        xclBOSyncDirection=SimpleNamespace(XCL_BO_SYNC_BO_TO_DEVICE="to", XCL_BO_SYNC_BO_FROM_DEVICE="from"),
    )
    return module
