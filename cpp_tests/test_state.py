"""hg/state.hpp: each step, or frame, starts with the state at the end of the previous one; bits of TUSER."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from cpp_bench import DIALECTS, FLAGS, SANITIZE

from hlsgen.library import library_text
from hlsgen.simulation.cpp_headers import include_folders

#: Program with three states of four beats, each of which is emitted twice.
_PROGRAM = """
#include <cstdio>
#include "hg/state.hpp"
typedef hg::vec<ap_int<5>, 2> beat;
int main() {
    hls::stream<beat> s("s"), m("m");
    beat found[4], left[4];
    for (int state = 0; state < 3; state++) {
        for (int n = 0; n < 4; n++) s.write(beat{{ap_int<5>(state * 4 + n), ap_int<5>(-n)}});
        hg::remember(s, left);
        if (state) hg::recall<4>(found, m);
        hg::renew(left, found);
        hg::recall<4 /* BEATS */>(found, m);
    }
    while (m.size()) {
        const beat x = m.read();
        std::printf("%d,%d ", static_cast<int>(x[0].to_int64()), static_cast<int>(x[1].to_int64()));
    }
}
"""
#: Program with a port of frames of three words, whose bits of TUSER go to a state of two beats. The frame leaves the
#: elements of its first two words. A second port has no TUSER.
_FRAMES = """
#include <cstdio>
#include "hg/ports.hpp"
#include "hg/state.hpp"
typedef hg::vec<ap_int<5>, 2> beat;
typedef hg::vec<ap_uint<1>, 1> flag;
static const HG_ROM(signed char, ap_int<5>) initial[2][2] = {{-16, 15}, {1, -1}};
int main() {
    hls::stream<hg::word_with_start<ap_uint<16> > > port("port");
    hls::stream<beat> s("s"), copy("copy"), other("other"), m("m"), n("n");
    hls::stream<flag> b("b"), starts("starts"), firsts("firsts");
    beat found[2], left[2], other_found[2];
    bool later = false, other_later = false;
    const char tuser[] = "000" "011" "100" "110" "000";
    for (int frame = 0; frame < 5; frame++) {
        for (int word = 0; word < 3; word++) {
            hg::word_with_start<ap_uint<16> > sends;
            sends.data = ap_uint<16>((frame + 3 * word) | (frame << 5) | 0xfc00);
            sends.last = word == 2;
            sends.user = tuser[3 * frame + word] == '1';
            port.write(sends);
        }
        hg::port_in_starts<ap_uint<16> /* WORD */, 3 /* BEATS */>(port, s, b);
        for (int word = 0; word < 3; word++) {
            const beat x = s.read();
            copy.write(x);
            other.write(x);
            if (word < 2) left[word] = x;
        }
        hg::frame_start<3 /* BEATS */>(copy, b, starts, later);
        hg::first_frame<3 /* BEATS */>(other, firsts, other_later);
        hg::find<2 /* BEATS */>(found, starts, m, initial);
        hg::find<2 /* BEATS */>(other_found, firsts, n, initial);
        hg::renew(left, found);
        hg::renew(left, other_found);
        while (m.size()) {
            const beat x = m.read(), y = n.read();
            for (int e = 0; e < 2; e++) std::printf("%d,%d ", int(x[e].to_int64()), int(y[e].to_int64()));
        }
    }
}
"""


@pytest.mark.parametrize("dialect", DIALECTS)
def test_states(dialect: str, tmp_path: Path) -> None:
    expected = [f"{4 * state + n},{-n}" for state in (0, 0, 1, 1, 2) for n in range(4)]
    assert printed(_PROGRAM, dialect, tmp_path) == expected


@pytest.mark.parametrize("dialect", DIALECTS)
def test_frames(dialect: str, tmp_path: Path) -> None:
    """Frames 0, 2 and 3 start a sequence: the first one without TUSER. TUSER of later words is ignored."""
    initial = [-16, 15, 1, -1]
    left = [[frame, frame, frame + 3, frame] for frame in range(5)]
    with_tuser = [initial, left[0], initial, initial, left[3]]
    without = [initial, *left[:4]]
    pairs = zip(np.ravel(with_tuser), np.ravel(without), strict=True)
    assert printed(_FRAMES, dialect, tmp_path) == [f"{x},{y}" for x, y in pairs]


def printed(program: str, dialect: str, tmp_path: Path) -> list[str]:
    """The words that the program prints, compiled with sanitizers in this dialect."""
    names = ("hg/state.hpp", "hg/ports.hpp", "hg/types.hpp", "csim/hls_stream.h", "csim/ap_axi_sdata.h")
    for name in (*names, "csim_ac/ap_int.h", "csim_ac/ap_fixed.h"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(library_text(f"cpp/{Path(name).parent}", Path(name).name))
    (tmp_path / "main.cpp").write_text(program)
    headers = [flag for path in include_folders(dialect) for flag in ("-isystem", str(path))]  # type: ignore[arg-type]
    dialect_folders = ["-I.", "-Icsim", *(["-Icsim_ac"] if dialect == "ac" else [])]
    compiler = ["ccache", "g++"] if shutil.which("ccache") else ["g++"]
    flags = [*FLAGS.split(), *SANITIZE[dialect], *dialect_folders, *headers]
    subprocess.run([*compiler, *flags, "main.cpp", "-o", "main"], cwd=tmp_path, check=True)
    completed = subprocess.run([tmp_path / "main"], capture_output=True, text=True)
    assert completed.returncode == 0, completed.stderr
    return completed.stdout.split()
