"""The library and emitted cores keep the rules of HLS tools, and each rule detects a violation."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import pytest
from hls_lint import complaints
from paths import ROOT
from recurrent_cells import elman

import hlsgen

HEADERS = sorted((ROOT / "templates" / "cpp" / "hg").glob("*.hpp"))
GOOD = """template <int N, typename T>
void copy(hls::stream<T> &s, hls::stream<T> &m) {
    T kept[N];
#pragma HLS ARRAY_PARTITION variable=kept complete
    for (int n = 0; n < N; n++) {
#pragma HLS PIPELINE II=1 style=flp
        kept[n] = s.read();
        m.write(kept[n]);
    }
}
"""


@pytest.mark.parametrize("path", HEADERS, ids=lambda path: path.name)
def test_headers(path: object) -> None:
    text = path.read_text()  # type: ignore[attr-defined]
    assert complaints(text) == []
    head = text.split("#ifndef")[0]
    assert re.match(r"// [\w, ]+[:.]|// [A-Z]", head)
    assert all(line.startswith("//") for line in head.splitlines())
    assert "Purpose" in head
    assert "Contract" in head


@pytest.mark.parametrize("options", [{}, {"target_cycles": 64}, {"realize": {"conv2_quant": "float-units"}}], ids=str)
def test_cores(options: dict[str, object]) -> None:
    model = ROOT / "examples" / "digits_cnn" / "digits_cnn.onnx"
    build = hlsgen.check(model, hlsgen.Options(target="hls", **options))
    for name in ("hls/digits_cnn.cpp", "hls/digits_cnn.hpp"):
        assert complaints(build.files[name].decode()) == []


def test_a_loop(tmp_path: Path) -> None:
    onnx.save(elman(4), tmp_path / "m.onnx")
    build = hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(target="hls", recurrence="once"))
    assert "int step = 0" in (text := build.files["hls/m.cpp"].decode())
    # Names of layers may make lines long.
    assert [complaint for complaint in complaints(text) if "columns" not in complaint] == []


@pytest.mark.parametrize(
    "old_text, new_text, message",
    [
        ("T kept[N];", "T *kept = new T[N];", "memory"),
        ("T kept[N];", "std::vector<T> kept;", "standard library"),
        ("T kept[N];", "static T kept[N];", "keeps its value"),
        ("T kept[N];", "T kept[N]; double x;", "double"),
        ("T kept[N];", "T kept[N]; try { } catch (...) { }", "exceptions"),
        ("T kept[N];", "T kept[N];" + " " * 120, "columns"),
        ("T kept[N];", "T kept[N]; // é", "ASCII"),
        ("m.write(kept[n]);", "m.write(kept[n]); goto end;", "control"),
        ("m.write(kept[n]);", 'printf("%d", n);', "output"),
        ("variable=kept", "variable=keep", "nowhere above"),
        ("II=1 style=flp", "II=2", "directive"),
        ("for (int n = 0; n < N; n++) {", "for (;;) {", "without an end"),
        ("for (int n = 0; n < N; n++) {", "while (true) {", "without an end"),
        ("template <int N, typename T>", "struct base { virtual void run(); };", "at run time"),
    ],
)
def test_rules(old_text: str, new_text: str, message: str) -> None:
    assert complaints(GOOD) == []
    assert old_text in GOOD
    assert any(message in text for text in complaints(GOOD.replace(old_text, new_text, 1)))
