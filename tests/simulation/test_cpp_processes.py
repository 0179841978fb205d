"""C simulation with bounded streams: a depth that is too small ends in a deadlock, which is reported."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import attention_nets
import image_nets
import onnx
import pytest
import recurrent_cells

import hlsgen
from hlsgen.simulation.cpp_processes import with_processes

TEXT = """// A function without streams.
static void one(hls::stream<a> &s, hls::stream<b> &m) {
    hg::move(s, m);
}

template <int N>
void two(hls::stream<a> &s,
         hls::stream<b> &m) {
#pragma HLS INLINE
    hls::stream<pair<int, 3> > x("x");
#pragma HLS STREAM variable=x depth=7
    hls::stream<pair<int, 3>, 2 * N + 2> y("y");
    hls::stream<a> z("z");

    first<N>(s, x);
    last(x, m);
}
"""


def test_calls_become_processes() -> None:
    lines = with_processes(TEXT).split("\n")
    assert lines[:8] == TEXT.split("\n")[:8]
    assert [line.strip() for line in lines[8:-1]] == [
        "hg::native::Region region;",
        "#pragma HLS INLINE",
        'hls::stream<pair<int, 3> > x("x");',
        "x.bound(2);",
        "x.bound(7);",
        'hls::stream<pair<int, 3>, 2 * N + 2> y("y");',
        'hls::stream<a> z("z");',
        "z.bound(2);",
        "",
        "region.add([&] { first<N>(s, x); });",
        "region.add([&] { last(x, m); });",
        "region.run();",
        "}",
    ]


@pytest.fixture(scope="module")
def residual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("build")
    onnx.save(image_nets.network("residual", 1, size=6), folder / "m.onnx")
    hlsgen.build(folder / "m.onnx", folder / "core", hlsgen.Options(target="hls"))
    return folder / "core"


@pytest.mark.slow
@pytest.mark.sim
def test_a_depth_that_is_too_small_is_reported(residual: Path, tmp_path: Path) -> None:
    """All beats are equal if streams are unbounded; `verify` names the stream that is full."""
    assert hlsgen.verify(residual, ["ac_types"], 6, oracle="none").simulators["ac_types"].failures == []
    core = Path(shutil.copytree(residual, tmp_path / "core"))
    text = (core / "hls" / "m.cpp").read_text()
    name, depth = max(re.findall(r"variable=(\w+) depth=(\d+)", text), key=lambda result: int(result[1]))
    assert int(depth) > 8
    (core / "hls" / "m.cpp").write_text(text.replace(f"variable={name} depth={depth}", f"variable={name} depth=2"))
    result = hlsgen.verify(core, ["ac_types"], 6, oracle="none", allow_changed=True)
    assert not result.ok
    verdict = result.simulators["ac_types"]
    assert verdict.mismatches == 0
    (failure,) = verdict.failures
    assert f" {name} is full with 2," in failure


@pytest.mark.sim
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["attention", "loop"])
def test_nested_processes_have_sufficient_depths(kind: str, tmp_path: Path) -> None:
    model = attention_nets.network(3, 6) if kind == "attention" else recurrent_cells.random_scan(4)
    onnx.save(model, tmp_path / "m.onnx")
    options = hlsgen.Options(target="hls", recurrence="once" if kind == "loop" else "unrolled")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "core", options)
    verdict = hlsgen.verify(tmp_path / "core", ["ac_types"], 6, oracle="none").simulators["ac_types"]
    assert (verdict.mismatches, verdict.failures) == (0, [])
