"""--ports plain: the networks that have a fixed latency, and the reason why others have none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from certified import neurons
from models import Net, save
from paths import DATA, ROOT

import hlsgen
from hlsgen.cycle_model.simulate import measure
from hlsgen.dataflow.flow import KeepFlow, QueueFlow, flow_of
from hlsgen.dataflow.plain_ports import fixed_latency
from hlsgen.dataflow.units import Port
from hlsgen.verilog.unit_table import latency

PLAIN = hlsgen.Options(ports="plain")


def refused(path: Path, options: hlsgen.Options = PLAIN) -> dict[str, str]:
    """The message of each node that is refused."""
    with pytest.raises(hlsgen.HlsgenError) as caught:
        hlsgen.check(path, options)
    assert {problem.code for problem in caught.value.diagnostics} == {"HG044"}
    return {problem.node: problem.message for problem in caught.value.diagnostics}


@pytest.mark.parametrize("name", ["bin_tern", "floor_ceil", "asym_tensor"])
def test_fewer_cycles_than_streams(name: str) -> None:
    """The latency is that of the cycle model; there is neither a slice nor a register at a port."""
    build = hlsgen.check(DATA / f"{name}.onnx", PLAIN)
    packed = hlsgen.check(DATA / f"{name}.onnx", hlsgen.Options(target_cycles=1))
    assert build.timing.cycles == {"latency": build.timing.latency, "interval": 1, "fixed": True}
    assert measure(build.network.nodes, latency) == (build.timing.latency, 1)
    assert build.timing.latency <= packed.timing.latency - 2
    assert not any(isinstance(flow_of(node), QueueFlow) for node in build.network.nodes)
    assert isinstance(flow_of(build.network.nodes[0]), KeepFlow)


@pytest.mark.sweep
def test_a_frame_in_each_cycle_is_implied(tmp_path: Path) -> None:
    onnx.save(neurons(), tmp_path / "net.onnx")
    for options in (PLAIN, hlsgen.Options(ports="plain", device="ecp5-25k"), hlsgen.Options(ports="plain", max_dsp=0)):
        assert hlsgen.check(tmp_path / "net.onnx", options).timing.interval == 1


def test_all_elements_of_a_quantizer_in_a_word(tmp_path: Path) -> None:
    path = save(Net((1, 3, 5)).quant(0.5, bits=4.0, name="q").model(), tmp_path / "net.onnx")
    build = hlsgen.check(path, hlsgen.Options(ports="plain", input="fixed:8,4"))
    assert [port.data_bits for port in (*build.network.inputs, *build.network.outputs)] == [120, 60]
    assert refused(path, hlsgen.Options(ports="plain", input="fixed:8,4", lanes=5)).keys() == {"q"}


def test_layers_that_take_several_cycles() -> None:
    messages = refused(ROOT / "examples" / "digits_cnn" / "digits_cnn.onnx")
    assert "a frame takes 8 cycles here" in messages["conv1"]


def test_folding(tmp_path: Path) -> None:
    path = save(Net((1, 4)).quant(name="q").linear(6, 4, name="fc").quant(4.0, name="r").model(), tmp_path / "net.onnx")
    folded = hlsgen.Options(ports="plain", folding={"fc": {"pe": 2, "simd": 4}})
    assert set(refused(path, folded)) >= {"fc"}


def test_products_in_dsp_blocks(tmp_path: Path) -> None:
    path = save(Net((1, 4)).quant(name="q").linear(6, 4, name="fc").quant(4.0, name="r").model(), tmp_path / "net.onnx")
    assert "its products in DSP blocks" in refused(path, hlsgen.Options(ports="plain", prefer="dsp"))["fc"]


def test_branches(tmp_path: Path) -> None:
    net = Net((1, 4)).quant(name="q", signed=1)
    before = net.last
    net.linear(weight=np.eye(4, dtype=np.float32) * 3, name="fc").quant(1.0, name="r", signed=1)
    net.then("Add", before, name="sum").quant(1.0, name="s", signed=1)
    path = save(net.model(), tmp_path / "net.onnx")
    assert any("a tensor has 2 consumers" in text for text in refused(path).values())


def test_nothing_between_the_ports() -> None:
    nodes = hlsgen.check(DATA / "bin_tern.onnx", PLAIN).network.nodes
    with pytest.raises(hlsgen.HlsgenError, match=r"HG044 --ports: plain: .* there is no register"):
        fixed_latency([nodes[0], nodes[-1]], latency)


OPTIONS = {
    "--bus-width": {"bus_width": "32"},
    "--tkeep": {"tkeep": True},
    "--control": {"control": True},
    "--loadable-weights": {"loadable": True},
    "--state": {"state": ["h=h_out"]},
    "--target-cycles": {"target_cycles": 4},
    "--ports": {"target": "verilog,hls"},
}


@pytest.mark.parametrize("flag", OPTIONS)
def test_options_of_streams(flag: str) -> None:
    with pytest.raises(hlsgen.HlsgenError) as caught:
        hlsgen.check(DATA / "bin_tern.onnx", hlsgen.Options(ports="plain", **OPTIONS[flag]))  # type: ignore[arg-type]
    assert (flag, "HG040") in {(problem.node, problem.code) for problem in caught.value.diagnostics}


def test_ports_cost_nothing() -> None:
    ports = [node for node in hlsgen.check(DATA / "bin_tern.onnx", PLAIN).network.nodes if isinstance(node.unit, Port)]
    assert [latency(node.unit) for node in ports] == [0, 0]
