"""Carried delays of loops, estimated from LLVM IR: known recurrences first, then the loops of emitted cores."""

from __future__ import annotations

from pathlib import Path

import pytest
from hls_schedule import LoopDelay, clang_command, loop_delays

pytestmark = pytest.mark.skipif(clang_command() is None, reason="no clang: pip install ziglang")

#: A loop body and the delay of its slowest recurrence in ns: operators of 32 bits unless a type says another width.
RECURRENCES = {
    "counter": ("at = at == 99 ? 0 : at + 1;", 2.55 + 0.70),
    "two additions": ("at = (at ^ (int)s.empty()) + 1;", 0.97 + 2.55),
    "no recurrence": ("m.write(s.read() * 3);", 2.55),
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


def test_registers_may_move_between_two_additions(tmp_path: Path) -> None:
    """Two registers in a circle have two cycles for it."""
    loop = delays(tmp_path, "const int old = at; at = (other ^ (int)s.empty()) + 1; other = old;")
    assert loop.ratio < loop.path
