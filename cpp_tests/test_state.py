"""hg/state.hpp: each step starts with the state at the end of the previous one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

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


@pytest.mark.parametrize("dialect", DIALECTS)
def test_states(dialect: str, tmp_path: Path) -> None:
    for name in ("hg/state.hpp", "hg/types.hpp", "csim/hls_stream.h", "csim_ac/ap_int.h", "csim_ac/ap_fixed.h"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(library_text(f"cpp/{Path(name).parent}", Path(name).name))
    (tmp_path / "main.cpp").write_text(_PROGRAM)
    headers = [flag for path in include_folders(dialect) for flag in ("-isystem", str(path))]  # type: ignore[arg-type]
    dialect_folders = ["-I.", "-Icsim", *(["-Icsim_ac"] if dialect == "ac" else [])]
    compiler = ["ccache", "g++"] if shutil.which("ccache") else ["g++"]
    flags = [*FLAGS.split(), *SANITIZE[dialect], *dialect_folders, *headers]
    subprocess.run([*compiler, *flags, "main.cpp", "-o", "main"], cwd=tmp_path, check=True)
    completed = subprocess.run([tmp_path / "main"], capture_output=True, text=True)
    expected = [f"{4 * state + n},{-n}" for state in (0, 0, 1, 1, 2) for n in range(4)]
    assert completed.stdout.split() == expected, completed.stderr
