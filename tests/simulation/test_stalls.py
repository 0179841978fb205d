"""Units that ignore back-pressure, beats in reset, misplaced tlast: the bench of every build finds them.

The builds have an interval of one cycle, at which nothing stalls by itself.
"""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from branches import network
from models import Net
from paths import needs_icarus

import hlsgen
from hlsgen.simulation.cocotb_runner import simulate
from hlsgen.simulation.verify_verilog import prepare
from hlsgen.testbench.stimuli import stimuli

pytestmark = [needs_icarus, pytest.mark.sim]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> hlsgen.Build:
    """Three branches that begin at a fork and are joined after FIFOs, with a frame each cycle."""
    folder = tmp_path_factory.mktemp("branches")
    onnx.save(network([0.5, 0.25, 0.5], "Add Sub"), folder / "model.onnx")
    build = hlsgen.build(folder / "model.onnx", folder / "core", hlsgen.Options(target_cycles=1, reset_active_low=True))
    assert build.timing.interval == 1
    return build


def bench(build: hlsgen.Build, folder: Path, *tests: str) -> tuple[bool, dict[str, object], str]:
    """Runs tests of the bench on the files in `folder`; returns whether they passed, their record, and the log."""
    work = prepare(build.design, build.network, build.timing, stimuli(build.network, 16, 1), folder / "work")
    outcome = simulate(folder, work, work, folder / "sim", "icarus", list(tests))
    return outcome.passed, outcome.result, outcome.log


def written(build: hlsgen.Build, folder: Path, module: str = "", old_text: str = "", new_text: str = "") -> Path:
    """The files of the build, one line of a module replaced."""
    spoilt = f"rtl/{build.design.top}_{module}.v"
    assert not module or spoilt in build.files
    for name, data in build.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name == spoilt:
            assert data.count(old_text.encode()) == 1
            data = data.replace(old_text.encode(), new_text.encode())
        path.write_bytes(data)
    return folder


def test_every_stream_is_accounted_for(built: hlsgen.Build, tmp_path: Path) -> None:
    passed, result, log = bench(built, written(built, tmp_path), "long_stalls", "offers_in_reset", "frame_errors")
    assert passed, log
    coverage = result["coverage"]
    assert isinstance(coverage, dict)
    assert coverage["streams"] == 2 + sum(len(node.outputs) for node in built.network.nodes[:-1])
    # The FIFOs of the shorter branches never fill up.
    assert not {"port_in", "port_out", "MatMul_t2", "MatMul_t5", "MatMul_t8", "Add_t10", "last"} & set(
        coverage["never_stalled"]
    )
    assert not {"port_in", "port_out", "s_axis", "MatMul_t2", "MatMul_t5", "MatMul_t8"} & set(coverage["never_starved"])


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "module, old_text, new_text",
    [
        ("hg_stages", "en = m_ready || (JOINED == 0 && !m_valid);", "en = 1'b1;"),
        ("hg_axis_in", "ready   = m_ready || !valid_reg;", "ready   = 1'b1;"),
        ("hg_fifo", "s_ready = ready_reg;", "s_ready = 1'b1;"),
        ("hg_fork", "done = done_reg | m_ready;", "done = {COUNT{1'b1}};"),
        (
            "hg_slice",
            "full_reg, free_reg;\n            assign s_ready = free_reg;",
            "full_reg, free_reg; assign s_ready = 1'b1;",
        ),
        ("hg_correct", "en = m_ready || !valid_reg[LATENCY-1];", "en = 1'b1;"),
    ],
)
def test_a_unit_that_ignores_stalls_is_found(
    built: hlsgen.Build, tmp_path: Path, module: str, old_text: str, new_text: str
) -> None:
    assert not bench(built, written(built, tmp_path, module, old_text, new_text), "long_stalls")[0]


def test_ranks_that_ignore_stalls_are_found(tmp_path: Path) -> None:
    onnx.save(network([0.5, 0.25, 0.5], "Add Sub"), tmp_path / "model.onnx")
    options = hlsgen.Options(target_cycles=1, realize={"IntQuant -> t3": "rank"})
    build = hlsgen.build(tmp_path / "model.onnx", tmp_path / "core", options)
    passed, _, log = bench(build, written(build, tmp_path / "good"), "long_stalls")
    assert passed, log
    spoilt = written(build, tmp_path / "spoilt", "hg_rank", "en = m_ready || !valid_reg[LEVELS-1];", "en = 1'b1;")
    assert not bench(build, spoilt, "long_stalls")[0]


@pytest.mark.parametrize("active_low", [False, True])
def test_a_port_that_accepts_beats_in_reset_is_found(active_low: bool, tmp_path: Path) -> None:
    model = Net((1, 4)).quant(0.25)
    onnx.save(model.model(), tmp_path / "model.onnx")
    options = hlsgen.Options(reset_active_low=active_low, input="fixed:6,3")
    build = hlsgen.build(tmp_path / "model.onnx", tmp_path / "core", options)
    spoilt = written(build, tmp_path / "spoilt", "hg_axis_in", "ready && !rst;", "ready;")
    passed, _, log = bench(build, spoilt, "offers_in_reset")
    assert not passed, log


def test_a_port_that_pads_with_ones_is_found(tmp_path: Path) -> None:
    onnx.save(Net((1, 3)).quant(0.25).model(), tmp_path / "model.onnx")
    build = hlsgen.build(tmp_path / "model.onnx", tmp_path / "core", hlsgen.Options(input="fixed:6,3"))
    spoilt = written(build, tmp_path / "spoilt", "hg_axis_out", "{TDATA_W+1-WIDTH{1'b0}}", "{TDATA_W+1-WIDTH{1'b1}}")
    passed, _, log = bench(build, spoilt, "full_rate")
    assert not passed
    assert "padding of m_axis_tdata" in log


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "old_text, new_text",
    [
        ("tlast_reg != last;", "tlast_reg && !last;"),
        ("tlast_reg != last;", "!tlast_reg && last;"),
        ("            error_reg <= 1'b0;\n", "            if (^error_reg === 1'bx) error_reg <= 1'b0;\n"),
    ],
)
def test_a_port_that_misjudges_tlast_is_found(old_text: str, new_text: str, tmp_path: Path) -> None:
    model = Net((1, 5)).quant(0.25)
    onnx.save(model.model(), tmp_path / "model.onnx")
    build = hlsgen.build(tmp_path / "model.onnx", tmp_path / "core", hlsgen.Options(input="fixed:6,3"))
    spoilt = written(build, tmp_path / "spoilt", "hg_axis_in", old_text, new_text)
    assert not bench(build, spoilt, "frame_errors")[0]


#: (module, a text in it, its replacement, the test that must fail, a text in its message)
SPOILT = [
    ("hg_bus_in", "s_axis_tdata[g*SLOT +: WIDTH]", "s_axis_tdata[g*WIDTH +: WIDTH]", "full_rate", "first divergence"),
    ("hg_bus_out", "[g*SLOT +: SLOT] = filled", "[(SLOTS-1-g)*SLOT +: SLOT] = filled", "full_rate", "padding"),
    ("hg_bus_out", "{SLOT+1-WIDTH{1'b0}}, word", "{SLOT+1-WIDTH{1'b1}}, word", "full_rate", "padding"),
    ("hg_bus_out", ".BEATS(WORDS)", ".BEATS(WORDS+1)", "full_rate", "tlast wrong"),
    ("hg_keep_out", "ALL >> (BYTES - LAST)", "ALL", "full_rate", "tkeep wrong"),
    ("hg_keep_in", "(tlast ? SOME : ALL)", "SOME", "missing_bytes", "lacks byte"),
    ("hg_keep_in", "(tlast ? SOME : ALL)", "ALL", "full_rate", "frame_error after well-formed"),
    ("hg_control_starts", "out_valid & out_ready & out_last", "out_valid & out_ready", "control_port", "counters"),
    ("hg_control_starts", "bad_reg <= !end_reg && (bad_reg || wrong_reg)", "bad_reg <= 1'b0", "control_port", "counters"),
    ("hg_control_starts", "if (rst || clear) begin", "if (rst) begin", "control_port", "while CONTROL is 1"),
]  # fmt: skip


@pytest.mark.cases(1)
@pytest.mark.parametrize("module, old_text, new_text, test, word", SPOILT)
def test_spoilt_ports_on_a_bus_are_found(
    module: str, old_text: str, new_text: str, test: str, word: str, tmp_path: Path
) -> None:
    """Frames of five elements of six bits, two in a bus word."""
    onnx.save(Net((1, 5)).quant(0.25).model(), tmp_path / "model.onnx")
    options = hlsgen.Options(input="fixed:6,3", bus_width="16", tkeep=True, control=True)
    build = hlsgen.build(tmp_path / "model.onnx", tmp_path / "core", options)
    good = bench(build, written(build, tmp_path / "good"), test)
    assert good[0], good[2]
    passed, _, log = bench(build, written(build, tmp_path / "spoilt", module, old_text, new_text), test)
    assert not passed
    assert word in log, log
