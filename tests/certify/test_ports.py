"""`hlsgen certify`: ports of a core on a bus, tkeep, control, attributes: each change of the wiring is found."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from certified import messages, with_changed_top
from models import Net
from paths import DATA

import hlsgen


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A core with all that its ports can have: an input beat is two words, a word two output beats."""
    path = tmp_path_factory.mktemp("builds") / "core"
    options = hlsgen.Options(
        bus_width="64",
        tkeep=True,
        control=True,
        clock_name="aclk",
        reset_name="aresetn",
        reset_active_low=True,
        top="core",
        prefer="dsp",
    )
    hlsgen.build(DATA / "floor_ceil.onnx", path, options)
    assert messages(path) == []
    return path


def change(built: Path, tmp_path: Path, old: str, new: str) -> list[str]:
    """The problems of a core in whose top level `new` replaces the first match of `old`."""
    return messages(with_changed_top(built, tmp_path, old, new))


CHANGES = {
    "slot of the input": (r"\.SLOT\(128\)", ".SLOT(192)"),
    "slot of the output": (r"\.SLOT\(16\)", ".SLOT(32)"),
    "beats": (r"\.SLOT\(16\), \.BEATS\(2\)", ".SLOT(16), .BEATS(4)"),
    "no slot": (r"\.SLOT\(16\), ", ""),
    "bytes that count": (r"\.LAST\(4\)", ".LAST(8)"),
    "bytes of a word": (r"\.BYTES\(8\)", ".BYTES(4)"),
    "tkeep of the other port": (r"\.tkeep\(s_axis_tkeep\)", ".tkeep(m_axis_tkeep)"),
    "tlast of the other port": (r"\.tlast\(s_axis_tlast\)", ".tlast(m_axis_tlast)"),
    "tlast is not checked": (r"\.error_in\(tlast_error\)", ".error_in(rst_core)"),
    "another clock": (r"\.clk\(aclk\), \.rst\(rst_core\)", ".clk(aresetn), .rst(rst_core)"),
    "clock of the reset": (r"\.clk\(aclk\), \.reset_in", ".clk(aresetn), .reset_in"),
    "version": (r"\.VERSION\(32'h", ".VERSION(32'h1"),
    "model": (r"\.MODEL\(32'h[0-9a-f]", ".MODEL(32'h"),
    "words of a frame": (r"\.WORDS\(32'h2\)", ".WORDS(32'h3)"),
    "ports that are monitored": (r"\.OUTPUTS\(1\)", ".OUTPUTS(2)"),
    "port that is monitored": (r"\.out_last\(m_axis_tlast\)", ".out_last(s_axis_tlast)"),
    "register port": (r"\.s_axil_rdata\(s_axil_ctrl_rdata\)", ".s_axil_rdata(s_axil_ctrl_wdata)"),
    "port of another kind": ("core_hg_bus_in #", "core_hg_axis_in #"),
    "input port without handshake": ("core_hg_bus_in #", "core_hg_plain_in #"),
    "output port without handshake": ("core_hg_bus_out #", "core_hg_plain_out #"),
    "no control": (r"    core_hg_control #\((?s:.*?)\);\n\n", ""),
    "no check of tkeep": (r"\n    core_hg_keep_in #\((?s:.*?)\);\n", ""),
    "attribute of another port": ("1.0 s_axis TDATA", "1.0 m_axis TDATA"),
    "attribute of another kind": ("X_INTERFACE_INFO", "X_INTERFACE_MODE"),
    "polarity": ("ACTIVE_LOW", "ACTIVE_HIGH"),
    "interfaces of the clock": ("s_axis:m_axis:", "s_axis:"),
    "attribute taken away": (r'    \(\* X_INTERFACE_INFO = "[\w:.]+ s_axis TLAST" \*\)\n', ""),
    "attribute of a wire": ("    wire rst_core;", '    (* X_INTERFACE_INFO = "a" *)\n    wire rst_core;'),
    "attribute twice": ("    input  wire aclk,", '    (* X_INTERFACE_INFO = "a" *)\n    input  wire aclk,'),
    "attributes of two ports change places": (
        r"(    \(\*.* s_axis TDATA.*\n)(    input.*\n)(    \(\*.* s_axis TVALID.*\n)",
        r"\3\2\1",
    ),
    "attribute of a tool": ("    wire rst_core;", "    (* keep *) wire rst_core;"),
    "bus in the head": ("// Bus     64", "// Bus     32"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_every_change_is_detected(built: Path, tmp_path: Path, name: str) -> None:
    assert change(built, tmp_path, *CHANGES[name])


def test_a_comment_in_an_attribute_is_refused(built: Path, tmp_path: Path) -> None:
    reported = change(built, tmp_path, "1.0 s_axis TDATA", "1.0 s_axis /* TDATA")
    assert any("more than wires and instances" in text for text in reported)


@pytest.fixture(scope="module")
def early(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A core with wide beats after narrow ones: its input port separates ready from the core."""
    path = tmp_path_factory.mktemp("builds") / "core"
    net = Net((1, 8)).quant(0.5, bits=4.0)
    net.linear(24, 8, name="fc")
    onnx.save(net.model(), path.parent / "net.onnx")
    hlsgen.build(path.parent / "net.onnx", path, hlsgen.Options(target_cycles=1, top="core"))
    assert messages(path) == []
    return path


CUTS = {
    "no end": (r"\.CUT\(1\)", ".CUT(0)"),
    "only the input knows": (r", \.CUT\(0\)", ""),
    "only the output knows": (r", \.CUT\(1\)", ""),
    "both ends": (r"\.CUT\(0\)", ".CUT(1)"),
    "twice": (r"\.CUT\(1\)", ".CUT(2)"),
}


@pytest.mark.parametrize("name", CUTS)
def test_one_end_keeps_ready_apart(early: Path, tmp_path: Path, name: str) -> None:
    assert any("port_" in text for text in change(early, tmp_path, *CUTS[name]))
