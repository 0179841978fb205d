"""Cores on a bus of any width: layout of frames, cycles, stalls, tkeep, control, names, certificates."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from builds import assert_verified
from certified import pair
from models import mlp, quantizer, samples, save
from paths import DATA, needs_icarus

import hlsgen
from hlsgen.dataflow.bus import AUTO_WIDTHS, WIDTHS, bus_layout
from hlsgen.diagnostics import HlsgenError
from hlsgen.testbench.stream_codec import from_bus, to_bus

SIMULATORS = [pytest.param("icarus", marks=needs_icarus), "verilator"]
AXI = {"clock_name": "aclk", "reset_name": "aresetn", "reset_active_low": True}
MLP, FLOORS, WIDE = DATA / "bin_tern.onnx", DATA / "floor_ceil.onnx", DATA / "asym_tensor.onnx"


def _bytes_of(beats: list[int], bits: int, width: int) -> tuple[int, list[int]]:
    """(bytes of a slot, words of a frame), by the rule as docs/commands.md has it."""
    size, word = -(-bits // 8), width // 8
    slot = next(n for n in (1, 2, 4, 8, 16, 32, 64, 128) if n >= size) if size <= word else -(-size // word) * word
    data = b"".join(beat.to_bytes(slot, "little") for beat in beats)
    data += bytes(-len(data) % word)
    return slot, [int.from_bytes(data[k : k + word], "little") for k in range(0, len(data), word)]


def test_layout() -> None:
    rng = random.Random(1)
    for _ in range(400):
        bits, count, width = rng.randint(1, 700), rng.randint(1, 20), rng.choice(WIDTHS)
        bus = bus_layout(bits, count, width)
        frames = [[rng.getrandbits(bits) for _ in range(count)] for _ in range(3)]
        slot, words = _bytes_of(frames[0], bits, width)
        assert (bus.slot_bytes, bus.words) == (slot, len(words))
        assert bus.last_bytes == count * slot - (len(words) - 1) * width // 8
        table = [list(beat.to_bytes(-(-bits // 8), "little")) for frame in frames for beat in frame]
        data = np.array(table, np.uint8)
        words_on_bus = to_bus(data, bus)
        assert [int.from_bytes(word.tobytes(), "little") for word in words_on_bus] == [
            word for frame in frames for word in _bytes_of(frame, bits, width)[1]
        ]
        assert np.array_equal(from_bus(words_on_bus, bus), data)
    plain = bus_layout(12, 5, None)
    assert (plain.width, plain.slot_bytes, plain.words, plain.last_bytes) == (16, 2, 5, 2)


#: Model, options, so that slots are parts of a word, words, several words; frames end within words.
CASES = {
    "a word holds a frame": (MLP, {"bus_width": "64"}),
    "beats of three bytes": (MLP, {"bus_width": "8"}),
    "a beat of several words": (FLOORS, {"bus_width": "8", "tkeep": True}),
    "several beats a word": (FLOORS, {"bus_width": "128", "tkeep": True, "target_cycles": 24}),
    "as few as keep the rate": (WIDE, {"bus_width": "auto", "target_cycles": 16, **AXI}),
    "elements of a quantizer": (FLOORS, {"bus_width": "32", "input": "float32", "control": True, "tkeep": True}),
    "words that are beats": (MLP, {"bus_width": "32", "control": True, "tkeep": True, **AXI}),
    "tkeep without a bus": (FLOORS, {"tkeep": True, "control": True, "loadable": True, "target_cycles": 20}),
}


@pytest.mark.sim
@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize("name", CASES)
def test_verified_and_certified(name: str, simulator: str, tmp_path: Path) -> None:
    path, options = CASES[name]
    hlsgen.build(path, tmp_path / "core", hlsgen.Options(**options))
    assert_verified(tmp_path / "core", simulator, 12)
    certified = hlsgen.certify(tmp_path / "core", path)
    assert certified.ok, certified.problems
    manifest = json.loads((tmp_path / "core" / "manifest.json").read_text())
    for port in (manifest["input"], manifest["output"]):
        assert port["tdata_bits"] == port["bus"]["width"]
        assert port["bus"]["keep"] == bool(options.get("tkeep"))


@pytest.mark.slow
@pytest.mark.sim
def test_two_inputs(tmp_path: Path) -> None:
    onnx.save(pair("QuantizedAdd"), tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "core", hlsgen.Options(bus_width="32", tkeep=True))
    assert_verified(tmp_path / "core", "verilator", 40)
    assert hlsgen.certify(tmp_path / "core", tmp_path / "m.onnx").ok
    x = dict(zip("ab", np.random.default_rng(1).integers(-128, 128, (2, 30, 4)).astype(np.int8), strict=True))
    assert np.array_equal(hlsgen.run(tmp_path / "core", x, "verilator"), hlsgen.run(tmp_path / "core", x))


@pytest.mark.cases(1)
@pytest.mark.sim
@pytest.mark.parametrize("lanes", [1, 3])
def test_quantizers_and_run(lanes: int, tmp_path: Path) -> None:
    """Elements of a graph of quantizers, in Verilator's library."""
    path = save(quantizer().model(), tmp_path / "q.onnx")
    hlsgen.build(path, tmp_path / "core", hlsgen.Options(bus_width="64", lanes=lanes, tkeep=True, **AXI))
    x = samples(20, 4)
    expected = hlsgen.run(tmp_path / "core", x)
    assert np.array_equal(hlsgen.run(tmp_path / "core", x, "verilator"), expected)
    assert np.array_equal(hlsgen.run(tmp_path / "core", x, "icarus"), expected)


def test_the_bus_bounds_the_interval(tmp_path: Path) -> None:
    """No layer is faster than the bus; auto is the narrowest that keeps the interval."""
    path = save(mlp().model(), tmp_path / "m.onnx")
    free = hlsgen.check(path, hlsgen.Options(target_cycles=1))
    assert free.timing.interval == 1
    narrow = hlsgen.check(path, hlsgen.Options(target_cycles=1, bus_width="8"))
    words = max(port.layout.words for port in (*narrow.network.inputs, *narrow.network.outputs))
    assert narrow.timing.interval == words > 1
    auto = hlsgen.check(MLP, hlsgen.Options(bus_width="auto"))
    assert auto.timing.interval == hlsgen.check(MLP, hlsgen.Options()).timing.interval
    width = auto.network.inputs[0].layout.width
    assert width in AUTO_WIDTHS
    for narrower in AUTO_WIDTHS[: AUTO_WIDTHS.index(width)]:
        on_narrower_bus = hlsgen.check(MLP, hlsgen.Options(bus_width=str(narrower)))
        assert on_narrower_bus.timing.interval > auto.timing.interval


def test_clock_and_reset_are_two() -> None:
    with pytest.raises(HlsgenError, match="HG040 --clock-name: 'rst' is the name of the reset"):
        hlsgen.check(MLP, hlsgen.Options(clock_name="rst"))
    with pytest.raises(HlsgenError, match="HG040 --clock-name: 'clk' is the name of the reset"):
        hlsgen.check(MLP, hlsgen.Options(reset_name="clk"))


@pytest.mark.parametrize(
    "name", ["s_axis_tdata", "rst_core", "node_linear", "node_linear_data", "port_in", "frame_error", "rst"]
)
def test_names_that_the_core_has(name: str) -> None:
    with pytest.raises(HlsgenError, match=r"HG040 --(clock|reset)-name: "):
        hlsgen.check(MLP, hlsgen.Options(clock_name=name, reset_name="rst"))


def test_attributes(tmp_path: Path) -> None:
    """Each port of the interfaces names its interface; the clock names them all."""
    build = hlsgen.check(FLOORS, hlsgen.Options(control=True, tkeep=True, loadable=True, **AXI, top="core"))
    text = build.files["rtl/core.v"].decode()
    assert "ASSOCIATED_BUSIF s_axis:m_axis:s_axil:s_axil_ctrl, ASSOCIATED_RESET aresetn" in text
    assert '"POLARITY ACTIVE_LOW" *)\n    input  wire aresetn,' in text
    declared = re.findall(r"^    (?:input |output) wire (?:\[\d+:0\] )?(\w+),?$", text, re.M)
    named = re.findall(r'X_INTERFACE_INFO = "xilinx.com:[\w:]+:1.0 (\w+) (\w+)" \*\)', text)
    named_signals = {f"{bus}_{part.lower()}" for bus, part in named if part not in ("CLK", "RST")}
    assert named_signals == set(declared) - {"aclk", "aresetn", "frame_error"}
