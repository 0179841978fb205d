"""Carried delays of loops, estimated from LLVM IR: known recurrences first, then the loops of emitted cores."""

from __future__ import annotations

import json
import math
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hls_intervals import interval_of
from hls_schedule import BUDGET, LoopDelay, clang_command, loop_delays
from paths import ROOT, shared_model

import hlsgen
from hlsgen.cycle_model.line_buffers import min_depth
from hlsgen.dataflow.flow import WordWindows
from hlsgen.dataflow.norm_units import NormRoot, RootConstants
from hlsgen.dataflow.units import Node, PoolUnit, SlidingWindow, Stream
from hlsgen.hls.binding.windows import bind_pool, bind_sliding, window_shape
from hlsgen.hls.process import Process
from hlsgen.hls.rates import rate_of
from hlsgen.hls.read_order import window_order
from hlsgen.ir.window import Reduction, Window
from hlsgen.library import headers_used, library_text
from hlsgen.numerics.fixed import IntType
from hlsgen.simulation.cpp_headers import include_folders

pytestmark = pytest.mark.skipif(clang_command() is None, reason="no clang: pip install ziglang")
DIGITS_CNN = ROOT / "examples" / "digits_cnn" / "digits_cnn.onnx"
#: Models of whose cores every loop is examined.
MODELS = (
    "brevitas/jsc_mlp_w4a4",
    "brevitas/dscnn_w4a4_po2",
    "brevitas/resnet8_w4a4",
    "public/mlperf_kws_w3a3",
    "public/radioml_vgg10_w8a8",
    "attention/attn_w4a4_qonnx",
    "attention/attn_w8a8_rawscore_qonnx",
    "attention/block_layernorm_w8a8_qonnx",
    "attention/block_ort_qdq_s8",
    "attention/mlp_layernorm_gelu_w4a4_qonnx",
)

#: A loop body and the delay of its slowest recurrence in ns: operators of 32 bits unless a type says another width.
RECURRENCES = {
    "counter": ("at = at == 99 ? 0 : at + 1;", 2.55 + 0.70),
    "two additions": ("at = (at ^ s.read()) + 1;", 0.97 + 2.55),
    "no recurrence": ("m.write(s.read() * 3);", 2.55),
    "masked comparison": ("const int x = s.read(); at = (at & 65535) < 60001 ? x : x * 3;", 2.08 + 0.70),
    "difference": ("at = ((at - s.read()) << 1) + 16;", 2.55),
    "sum": ("const int x = s.read(); at += x * x + 5 * x + 7;", 2.55),
}


def delays(folder: Path, body: str) -> LoopDelay:
    text = f"""#include <hls_stream.h>
void core(hls::stream<int> &s, hls::stream<int> &m) {{
    int at = 0, other = 1;
    for (int n = 0; n < 1000; n++) {{
        {body}
        m.write(at);
    }}
}}
"""
    (folder / "core.cpp").write_text(text)
    (loop,) = loop_delays(folder, "core")
    return loop


@pytest.mark.parametrize("name", RECURRENCES)
def test_known_recurrences(name: str, tmp_path: Path) -> None:
    body, expected = RECURRENCES[name]
    assert delays(tmp_path, body).ratio == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize(("kind", "expected"), [("ap_int<38>", 2.73 + 0.70), ("long long", 3.52 + 0.70)])
def test_a_sum_has_the_width_of_its_type(kind: str, expected: float, tmp_path: Path) -> None:
    """clang adds numbers of 38 bits in 64. One sum fits in a cycle, the other does not."""
    (tmp_path / "core.cpp").write_text(f"""#include <ap_int.h>
#include <hls_stream.h>
void core(hls::stream<{kind} > &s, hls::stream<{kind} > &m) {{
    {kind} sum = 0;
    for (int n = 0; n < 1000; n++) {{
        const {kind} x = s.read();
        const {kind} next = sum + x;
        sum = x > 99 ? x : next;
        m.write(sum);
    }}
}}
""")
    (loop,) = loop_delays(tmp_path, "core")
    assert loop.ratio == pytest.approx(expected, abs=0.02)


def test_registers_may_move_between_two_additions(tmp_path: Path) -> None:
    """Two registers in a circle have two cycles for it."""
    loop = delays(tmp_path, "const int old = at; at = (other ^ s.read()) + 1; other = old;")
    assert loop.ratio < loop.path


def library_loops(
    folder: Path, headers: set[str], parameters: list[str], calls: list[str], shapes: str = ""
) -> list[LoopDelay]:
    """Loops of calls of functions of the library. `shapes`: structures that the calls name."""
    (folder / "hg").mkdir(exist_ok=True)
    for name in headers_used(headers):
        (folder / "hg" / name).write_text(library_text("cpp/hg", name))
    includes = "".join(f'#include "hg/{header}"\n' for header in sorted(headers))
    text = f"{includes}{shapes}void core({', '.join(parameters)}) {{\n{''.join(calls)}\n}}\n"
    (folder / "core.cpp").write_text(text)
    return loop_delays(folder, "core")


@pytest.mark.sweep
def test_gearboxes_emit_a_beat_every_cycle(tmp_path: Path) -> None:
    """Lanes and groups of all kinds, with last beats that are whole and that are not."""
    rng = np.random.default_rng(3)
    streams, calls = [], []
    for n in range(40):
        a, b, group, groups = (int(value) for value in rng.integers(2, (25, 25, 90, 5)))
        a += b % a == 0 or a % b == 0
        group = [a * groups - 1, b * groups + 1, group][n % 3]
        streams.append(f"hls::stream<hg::vec<ap_int<4>, {a}> > &s{n}, hls::stream<hg::vec<ap_int<4>, {b}> > &m{n}")
        calls.append(f"hg::gearbox<1, {group}, {group}, {groups}>(s{n}, m{n});")
    loops = library_loops(tmp_path, {"width.hpp"}, streams, calls)
    assert len(loops) > 20
    assert max(loop.ratio for loop in loops) < BUDGET


def test_windows_advance_every_cycle(tmp_path: Path) -> None:
    """Line buffers and pools of random windows: one row or column, gaps, borders wider than the kernel."""
    rng = np.random.default_rng(3)
    streams, calls, shapes = [], [], []
    for n in range(24):
        flow = windows(rng)
        pool = PoolUnit(Reduction.MAX, flow.window, flow.height, flow.width, flow.folds, 0, 0)
        sliding = SlidingWindow(flow.window, flow.height, flow.width, flow.folds, 0, 0, 0)
        for kind, call, lanes in (
            ("pool", bind_pool(replace(pool, depth=min_depth(pool))), 1),
            ("sliding", bind_sliding(sliding.with_depth(min_depth(sliding))), flow.window.taps),
        ):
            shapes.append(call.shape_text(f"{kind}_{n}_shape"))
            s, m = f"{kind}_{n}_s", f"{kind}_{n}_m"
            streams.append(f"hls::stream<hg::vec<ap_int<4>, 1> > &{s}, hls::stream<hg::vec<ap_int<4>, {lanes}> > &{m}")
            calls.append(f"{call.head(f'{kind}_{n}_shape')}({s}, {m});")
    loops = library_loops(tmp_path, {"pool.hpp", "sliding.hpp"}, streams, calls, "".join(shapes))
    assert len(loops) == 48
    assert max(loop.ratio for loop in loops) < BUDGET


@pytest.mark.sweep
@pytest.mark.parametrize("bits", [24, 35, 36, 64, 80, 99, 100, 101, 140])
def test_interval_of_roots(bits: int, tmp_path: Path) -> None:
    """The stated interval is that of the loop, or a cycle more, for numbers and steps per cycle of all sizes."""
    moment_bits, sum_bits, steps = 16, 12, 25 + bits // 4
    constants = RootConstants(1, (1 << bits) - (1 << moment_bits), 1, 0, steps)
    stream = Stream(IntType(0, 1), 1, 1, 1)
    for at_once in (1, 2, 3, 8):
        root = NormRoot(constants, moment_bits, sum_bits, at_once, 1)
        row, found = moment_bits + sum_bits, 24 + sum_bits + constants.step_bits
        streams = [f"hls::stream<hg::vec<ap_uint<{row}>, 1> > &s, hls::stream<hg::vec<ap_uint<{found}>, 1> > &m"]
        streams.append(f"const unsigned (&constants)[3][{-(-bits // 32)}]")
        numbers = f"{moment_bits}, {sum_bits}, {constants.step_bits}, {bits}, {steps}, {at_once}, 16"
        (loop,) = library_loops(tmp_path, {"norm.hpp"}, streams, [f"hg::norm_root<{numbers}>(s, m, constants);"])
        needed = math.ceil(loop.ratio / BUDGET)
        stated = rate_of(Node("r", root, ("a",), (stream,), ("b",), stream)).interval
        assert needed <= stated <= needed + 1


def unstated(build: hlsgen.Build, folder: Path) -> list[LoopDelay]:
    """Loops whose recurrences take more cycles than the manifest states for the processes with their function."""
    cycles: dict[str, int] = {}
    for part in build.cpp.parts:
        interval = rate_of(part.node).interval
        for header in headers_used({f"{part.call.header}.hpp"}):
            for name in re.findall(r"^void (\w+)\(", library_text("cpp/hg", header), re.MULTILINE):
                cycles[name] = max(interval, cycles.get(name, 1))
    return [d for d in loop_delays(folder / "hls", build.cpp.top) if d.ratio > BUDGET * cycles.get(d.function, 1)]


def assert_interval_is_reached(folder: Path) -> None:
    """The interval of the manifest is not shorter than that of the loops, and the latency stated is not much longer."""
    manifest = json.loads((folder / "manifest.json").read_text())
    interval, slowest, _ = interval_of(folder / "hls", manifest["top"]["function"], folder / "tb")
    stated = manifest["cpp"]
    assert interval <= stated["interval"], slowest
    assert stated["interval"] <= 1.2 * interval + stated["emptying"]


@pytest.mark.sim
@pytest.mark.slow
def test_interval_of_a_loop_over_time_steps(tmp_path: Path) -> None:
    """The longest path through the processes of a step, and the copies of its states."""
    options = hlsgen.Options(target="hls", recurrence="once")
    hlsgen.build(shared_model("attention/gru_scan_w8a8_qdq"), tmp_path / "out", options)
    assert_interval_is_reached(tmp_path / "out")


@pytest.mark.sim
@pytest.mark.slow
def test_interval_of_normalizations(tmp_path: Path) -> None:
    """With many cycles, a root makes one step at a time."""
    options = hlsgen.Options(target="hls", target_cycles=4000)
    hlsgen.build(ROOT / "examples/digits_sequences/digits_vit.onnx", tmp_path / "out", options)
    assert json.loads((tmp_path / "out/manifest.json").read_text())["cpp"]["slowest"].endswith("_root")
    assert_interval_is_reached(tmp_path / "out")


@pytest.mark.sim
@pytest.mark.parametrize(
    "cycles", [64, pytest.param(576, marks=pytest.mark.slow), pytest.param(1600, marks=pytest.mark.slow)]
)
def test_loops_of_an_image_network(cycles: int, tmp_path: Path) -> None:
    """Windows of all taps at once, and tap by tap."""
    options = hlsgen.Options(target="hls", target_cycles=cycles)
    build = hlsgen.build(DIGITS_CNN, tmp_path / "out", options)
    assert unstated(build, tmp_path / "out") == []
    assert_interval_is_reached(tmp_path / "out")


@pytest.mark.sim
@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_loops_of_models(name: str, tmp_path: Path) -> None:
    build = hlsgen.build(shared_model(name), tmp_path / "out", hlsgen.Options(target="hls"))
    assert unstated(build, tmp_path / "out") == []
    assert_interval_is_reached(tmp_path / "out")


def test_a_slow_loop_is_found(tmp_path: Path) -> None:
    """The windows decided in one cycle whether to read, from numbers that they compared in the same cycle."""
    body = "if (at < n + 7) { at = at + (at > 50 ? 3 : 5) - (s.read() > 0 ? 0 : 1); }"
    assert delays(tmp_path, body).ratio > 2 * BUDGET


def windows(rng: np.random.Generator) -> WordWindows:
    size = [int(n) for n in rng.integers(1, 9, 2)]
    kernel, strides, dilations = ([int(n) for n in rng.integers(1, 4, 2)] for _ in range(3))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    pads = [max(0, r - n) + int(rng.integers(0, 3)) for r, n in zip(reach, size, strict=True)]
    window = Window((kernel[0], kernel[1]), (strides[0], strides[1]), (dilations[0], dilations[1]), (*pads, *pads))
    return WordWindows(window, size[0], size[1], int(rng.integers(1, 4)))


@pytest.mark.sim
def test_iterations_are_those_of_the_library(tmp_path: Path) -> None:
    """Random windows, with the least buffer and with larger ones: the number that the compiler computes."""
    rng = np.random.default_rng(7)
    lines = ['#include "hg/windows.hpp"']
    for n in range(60):
        flow = windows(rng)
        unit = SlidingWindow(flow.window, flow.height, flow.width, flow.folds, 0, 0, 0)
        uses, depth = int(rng.integers(1, 9)), min_depth(unit) + int(rng.integers(0, 3) * rng.integers(0, 9))
        order = window_order(flow, uses, uses, depth)
        shape = window_shape(flow.window, flow.height, flow.width, 0, FOLDS=flow.folds)
        lines.append(Process("", "", (), "", shape=shape).shape_text(f"shape{n}"))
        text = f"hg::window<shape{n}>, {flow.folds}, {uses}, {depth}"
        lines.append(f'static_assert(hg::window_flow<{text}>::iterations == {order.iterations}, "");')
    (tmp_path / "hg").mkdir()
    for name in headers_used({"windows.hpp"}):
        (tmp_path / "hg" / name).write_text(library_text("cpp/hg", name))
    (tmp_path / "hls_stream.h").write_text(library_text("cpp/csim", "hls_stream.h"))
    (tmp_path / "order.cpp").write_text("\n".join([*lines, ""]))
    (include,) = include_folders("ap")
    command = ["g++", "-std=c++14", "-fsyntax-only", "-w", "-I.", "-isystem", str(include), "order.cpp"]
    completed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stderr[:3000]
