"""What has a bound: bits of C++ streams, bytes of files, names of ports, work of the search for buffers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from models import DOMAIN, Net, save
from onnx import helper

import hlsgen
from hlsgen import HlsgenError, Options
from hlsgen.cycle_model.fifo_sizing import size
from hlsgen.cycle_model.simulate import measure
from hlsgen.dataflow.network import Network
from hlsgen.driver.options import MOST_FOLDING_BYTES, read_folding
from hlsgen.verilog.latency import latency


def test_beats_that_hls_tools_do_not_have(tmp_path: Path) -> None:
    net = Net((1, 600)).quant(scale=0.1, bits=8.0, signed=1)
    net.linear(4, 600, weight=np.full((600, 4), 0.01, np.float32), scale=0.01, bits=4.0, name="fc")
    path = save(net.model(), tmp_path / "m.onnx")
    with pytest.raises(HlsgenError, match="fc has beats of 4800 bits; streams of --target hls have at most 4096"):
        hlsgen.check(path, Options(target="hls", target_cycles=1))
    assert hlsgen.check(path, Options(target="hls", target_cycles=2)).timing.interval == 2


def test_a_folding_file_that_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "folding.yaml"
    path.write_text("layers: {}\n" + "#" * MOST_FOLDING_BYTES)
    with pytest.raises(HlsgenError, match=r"HG041.*more than"):
        read_folding(path)


@pytest.mark.parametrize("other", ["a_fork_0", "a_fork", "A", "a_slice", "a__fork_0", "a fork 0"])
def test_ports_with_the_names_of_what_is_added_to_streams(other: str, tmp_path: Path) -> None:
    """The first input has two users, so a fork; the second input has the name of one of its streams, or nearly."""
    net = Net((1, 4)).quant(scale=0.1, bits=4.0, signed=1)
    net.inputs = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 4]) for name in ("a", other)]
    net.nodes.clear()
    codes = [
        net.add("IntQuant", (name, np.float32(0.1), np.float32(0), np.float32(4)), domain=DOMAIN, signed=1)
        for name in ("a", other)
    ]
    ends = []
    for left, right in ((codes[0], codes[0]), (codes[0], codes[1])):
        total = net.add("Add", (left, right))
        ends.append(
            net.add("IntQuant", (total, np.float32(0.2), np.float32(0), np.float32(4)), domain=DOMAIN, signed=1)
        )
    net.outputs = ends
    path = save(net.model(), tmp_path / "m.onnx")
    nodes = hlsgen.check(path, Options(ports="separate")).network.nodes
    wires = [wire for node in nodes for wire in node.outputs]
    assert len({wire.lower() for wire in wires}) == len(wires)


def test_the_search_for_buffers_ends(tmp_path: Path) -> None:
    """With no work left, the depths are sound and the network says that they may be too large."""
    build = hlsgen.check(save(forked(), tmp_path / "m.onnx"), Options())
    network: Network = build.network
    assert size(network.nodes, latency).complete
    bounded = size(network.nodes, latency, effort=1)
    assert not bounded.complete
    assert measure(bounded.nodes, latency) == (bounded.latency, bounded.interval)


def forked() -> onnx.ModelProto:
    """A layer and a path around it."""
    net = Net((1, 4)).quant(scale=0.1, bits=4.0, signed=1)
    codes = net.last
    net.linear(4, 4).quant(scale=0.1, bits=4.0, signed=1)
    return net.node("Add", net.last, codes).quant(scale=0.2, bits=4.0, signed=1).model()
