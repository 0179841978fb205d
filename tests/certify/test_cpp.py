"""`hlsgen certify` on C++: every function of the library is proven, and every change is detected."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import certified_images
import onnx
import pytest
import random_graphs
from certified import CASES, FIXED, Case, forced
from certified_cpp import others, problems
from paths import ROOT

import hlsgen
from hlsgen.certify.cpp.cells import KNOWN
from hlsgen.certify.cpp.process_text import Call
from hlsgen.certify.cpp.rows import ROWS
from hlsgen.library import library_text, licence_line


def rounded(mode: str, scale: float = 2.0, bits: float = 5.0, **options: Any) -> Case:
    """A quantizer of 7-bit integers, unless `input` states other ones."""

    def model() -> onnx.ModelProto:
        g = random_graphs.Graph((1, 2))
        g.quant(scale, 0.0, bits, signed=1, narrow=0, rounding_mode=mode)
        return g.model()

    return Case(model, forced(options.pop("kind"), **FIXED | options))


FUNCTIONS = {
    "shift up": rounded("UP", kind="shift"),
    "scale down": rounded("DOWN", 1.7, kind="scale"),
    "scale half up": rounded("HALF_UP", 1.5, kind="scale"),
    "scale even": rounded("ROUND", 1.5, kind="scale"),
    "float32": rounded("HALF_DOWN", 0.5, kind="float-units"),
    "half a table": rounded("FLOOR", 2.0, kind="table", input="fixed:11,11"),
}
#: Builds by name. Images are built without a target, in few units, and as fast as possible.
BUILDS = (
    {name: case for name, case in CASES.items() if not case.options.reset_active_low and name != "lane table"}
    | FUNCTIONS
    | {
        f"{name}{end}": replace(case, options=replace(case.options, target_cycles=cycles))
        for name, (case, _) in certified_images.IMAGES.items()
        for end, cycles in (("", None), (", small", 5000), (", fast", 1))
    }
)


def build_cpp(name: str, folder: Path, target: str = "hls") -> Path:
    """A build of C++."""
    case = BUILDS[name]
    folder.mkdir(exist_ok=True)
    return replace(case, options=replace(case.options, target=target)).build(folder / "core")


@pytest.mark.cases(15)
@pytest.mark.sweep
@pytest.mark.parametrize("name", BUILDS)
def test_every_build(name: str, tmp_path: Path) -> None:
    """A changed number in each of its tables is detected, in one of three places: others may be out of reach."""
    core = build_cpp(name, tmp_path)
    certified = hlsgen.certify(core)
    assert certified.ok, certified.problems
    assert [x.name for x in certified.proven][:3] == ["cpp-files", "cpp-headers", "cpp-text"]
    path = core / "hls" / "weights.hpp"
    text = path.read_text()
    for table in re.finditer(r"static const [^{]*?(\w+)(?:\[\d+\])+ =\n    (\{[^;]*\});", text):
        numbers = list(re.finditer(r"-?\d+(?:\.\d*e[+-]\d+)?", table[2]))
        is_detected = False
        for number in {0: numbers[0], 1: numbers[len(numbers) // 2], 2: numbers[-1]}.values():
            at = table.start(2) + number.start()
            for changed in others(number[0]):
                path.write_text(text[:at] + changed + text[at + len(number[0]) :])
                is_detected = is_detected or problems(core) != []
        # Cells and codes of a lane that no input reaches may have any numbers.
        assert is_detected or re.search(r"_(count|level|sure|rest|shape)$", table[1]), table[1]
    path.write_text(text)
    assert problems(core) == []


@pytest.mark.sweep
def test_every_function_is_in_some_build(tmp_path: Path) -> None:
    used: set[str] = set()
    for n, name in enumerate(BUILDS):
        text = (build_cpp(name, tmp_path / str(n)) / "hls" / "top.cpp").read_text()
        used |= set(re.findall(r"^    (hg::\w+)<", text, re.M))
    rare = {
        "hg::dynamic_mvu",
        "hg::f32_join",
        "hg::f32_round",
        "hg::f32_sign",
        "hg::f32_unit",
        "hg::scale_nearest",
        "hg::scale_sides",
        "hg::gearbox",
        "hg::lines",
        "hg::join_product",
        "hg::pair_scale_product",
    }
    assert set(KNOWN) - set(ROWS) - used <= rare


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_cpp("residual", tmp_path_factory.mktemp("residual"))


@pytest.fixture
def core(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path / "copy")
    return tmp_path / "copy"


def first(text: str, old: str, new: str) -> str:
    assert old in text, old
    return text.replace(old, new, 1)


def swapped(text: str) -> str:
    """Two neighbouring calls of the top level in the opposite order."""
    calls = re.findall(r"^    \w+\(\w+(?:, \w+)+\);$", text, re.M)
    return text.replace(calls[2], "?").replace(calls[1], calls[2]).replace("?", calls[1])


@pytest.mark.parametrize(
    "change",
    [
        lambda t: first(t, '#include "weights.hpp"\n', '#include "weights.hpp"\n#define depth 1\n'),
        lambda t: first(t, "// Beats of the streams.\n", "// Beats of the streams. \\\n"),
        lambda t: first(t, "// Beats of the streams.\n", "// Beats of the streams. ??/\n"),
        lambda t: first(t, "// Beats of the streams.\n", "// Beats\r of the streams.\n"),
        lambda t: first(t, "// Beats of the streams.\n", "static int n;\n"),
        lambda t: first(t, "/* PE */", "/* SIMD */"),
        lambda t: first(t, "typedef hg::vec<ap_int", "typedef hg::vec<ap_uint"),
        lambda t: first(t, "#pragma HLS INLINE off\n", ""),
        lambda t: first(t, "#pragma HLS DATAFLOW disable_start_propagation\n", "#pragma HLS DATAFLOW\n"),
        lambda t: re.sub(r"depth=\d+", "depth=0", t, count=1),
        lambda t: re.sub(r"(\d+) /\* BEATS \*/", lambda m: f"{int(m[1]) + 1} /* BEATS */", t, count=1),
        lambda t: re.sub(r"(\d+) /\* (PAD|ROUNDS) \*/", lambda m: f"{int(m[1]) + 1} /* {m[2]} */", t, count=1),
        lambda t: re.sub(r"OUT_W = (\d+)", lambda m: f"OUT_W = {int(m[1]) - 1}", t, count=1),
        lambda t: re.sub(r"PAD = (\d+)", lambda m: f"PAD = {int(m[1]) + 1}", t, count=1),
        lambda t: first(t, "static const int HEIGHT", "static const int MORE = 1, HEIGHT"),
        lambda t: re.sub(r"struct \w+_shape", "struct other_shape", t, count=1),
        lambda t: re.sub(r"hg::join_sum<(.*?)(-?\d+) /\* FA \*/", r"hg::join_sum<\g<1>7 /* FA */", t),
        lambda t: first(t, "(a, b, m)", "(b, a, m)"),
        lambda t: first(t, "send_frame(", "if (0) send_frame("),
        swapped,
    ],
)
def test_changes_of_the_core_are_detected(change: Callable[[str], str], core: Path) -> None:
    path = core / "hls" / "top.cpp"
    text = path.read_text()
    path.write_bytes(change(text).encode())
    assert path.read_text() != text
    assert problems(core) != []


@pytest.mark.parametrize(
    "name, change",
    [
        (
            "top.hpp",
            lambda t: first(t, '#include "hg/ports.hpp"\n', '#include "hg/ports.hpp"\n#define ap_int ap_uint\n'),
        ),
        ("top.hpp", lambda t: re.sub(r"ap_uint<(\d+)>", lambda m: f"ap_uint<{int(m[1]) + 8}>", t)),
        ("weights.hpp", lambda t: first(t, "static const HG_ROM(signed char", "static const HG_ROM(unsigned char")),
        ("weights.hpp", lambda t: re.sub(r"ap_int<(\d+)>\)", lambda m: f"ap_int<{int(m[1]) - 1}>)", t, count=1)),
        ("weights.hpp", lambda t: first(t, "#endif\n", "static const int more = 1;\n#endif\n")),
        ("weights.hpp", lambda t: first(t, "},\n    {", ", ")),
        ("hg/types.hpp", lambda t: first(t, "T e[N];", "T e[N + 1];")),
        ("hg/more.hpp", lambda t: "#pragma once\n"),
    ],
)
def test_changes_of_its_files_are_detected(name: str, change: Callable[[str], str], core: Path) -> None:
    path = core / "hls" / name
    text = path.read_text() if path.exists() else ""
    path.write_text(change(text))
    assert path.read_text() != text
    assert problems(core) != []


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    "build, name, pattern",
    [
        ("product of float32", "top.cpp", r"(\d+)( /\* (?:U_BITS|M_BITS|MOST_LEFT|SHIFT|FOLDS) \*/)"),
        ("correct", "weights.hpp", r"_shape\[\d+\]\[8\] =\n    \{\{"),
        ("correct", "top.cpp", r"(\d+)( /\* (?:Y_BITS|FRACTION|FOLDS) \*/)"),
        ("shift up", "top.cpp", r"(\d+)( /\* (?:LEFT|SHIFT|FOLDS) \*/)"),
        ("scale half up", "top.cpp", r"(\d+)( /\* (?:SHIFT|FOLDS) \*/)"),
        ("half a table", "top.cpp", r"(\d+)( /\* (?:SIZE|FOLDS) \*/)"),
        ("rank", "top.cpp", r"(\d+)( /\* (?:LEVELS|LOW|BEATS) \*/)"),
        ("float", "top.cpp", r"(\d+)( /\* (?:SHIFT|M_BITS|FOLDS) \*/)"),
        ("padded", "top.cpp", r"(\d+)( /\* (?:HEIGHT|KH|OUT_W|ROWS|COLUMNS|FOLDS|PE) \*/)"),
        ("padded, small", "top.cpp", r"(\d+)( /\* (?:HEIGHT|KH|OUT_W|GROUPS|REPEAT|FOLDS|VECTORS) \*/)"),
        ("moved", "top.cpp", r"(\d+)( /\* (?:TOP|BLOCK|BLOCKS|WORDS|BEATS) \*/)"),
    ],
)
def test_huge_numbers(build: str, name: str, pattern: str, tmp_path: Path) -> None:
    """They are rejected before any memory is allocated."""
    core = build_cpp(build, tmp_path)
    path = core / "hls" / name
    text = path.read_text()
    matches = list(re.finditer(pattern, text))
    assert matches
    for match in matches:
        at, end = match.span(1) if match.lastindex else (match.end(), match.end() + 1)
        for huge in ("999999999", "99999999999999999"):
            path.write_text(text[:at] + huge + text[end:])
            assert problems(core) != [], match[0]


def test_a_constant_that_nothing_uses(core: Path) -> None:
    path = core / "hls" / "weights.hpp"
    array = "static const HG_ROM(signed char, ap_int<2>) more[1] =\n    {1};\n"
    path.write_text(first(path.read_text(), "\n#endif\n", f"\n{array}\n#endif\n"))
    assert any("more is never used" in text for text in problems(core))


def test_headers_equal_the_installed_ones(core: Path) -> None:
    for path in (core / "hls" / "hg").iterdir():
        assert path.read_text() == licence_line(path.name) + library_text("cpp/hg", path.name)


def test_long_numbers() -> None:
    """Numbers of more than 32 bits have a suffix in C++."""
    call = Call("scaled", "hg::pair_scale_product", {"OFFSET": "-3707766546LL", "LOW": "5L"}, (), (), ())
    assert call.number("OFFSET", -(1 << 40)) == -3707766546
    for name in ("LOW", "HIGH"):
        with pytest.raises(hlsgen.HlsgenError, match="HG055"):
            call.number(name)


@pytest.mark.sweep
@pytest.mark.parametrize("top", ["Core", "my__core", "_x", "K_1"])
def test_tops(top: str, tmp_path: Path) -> None:
    """The function has the name of the Verilog module, for any name."""
    model = ROOT / "examples" / "digits" / "digits_mlp.onnx"
    build = hlsgen.build(model, tmp_path / "core", hlsgen.Options(target="verilog,hls", target_cycles=64, top=top))
    assert build.tops == {"module": top, "function": top}
    assert {f"rtl/{top}.v", f"hls/{top}.cpp", f"hls/{top}.hpp", f"hls/tb/{top}_tb.cpp"} <= set(build.files)
    certified = hlsgen.certify(tmp_path / "core")
    assert certified.ok, certified.problems


def test_both_targets(tmp_path: Path) -> None:
    core = build_cpp("residual", tmp_path, "verilog,hls")
    certified = hlsgen.certify(core)
    assert certified.ok, certified.problems
    assert {"functions", "cpp-functions", "manifest", "numbers"} <= {x.name for x in certified.proven}
    path = core / "hls" / "weights.hpp"
    path.write_text(re.sub(r"\{(-?\d+)", lambda m: f"{{{others(m[1])[0]}", path.read_text(), count=1))
    assert problems(core) != []
