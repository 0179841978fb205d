"""How a build presents itself: one line in a shell, the report in a notebook; options by the names of the command
line.
"""

from __future__ import annotations

import re

import pytest
from paths import ROOT

import hlsgen

DIGITS = ROOT / "examples" / "digits" / "digits_mlp.onnx"


def test_a_build_is_one_line() -> None:
    build = hlsgen.check(DIGITS)
    pattern = r"<Build digits_mlp: \d+ layers, latency \d+, interval \d+ cycles, \d+ files>"
    assert re.fullmatch(pattern, repr(build))
    page = build._repr_html_()
    assert page.startswith('<iframe srcdoc="&lt;!')
    assert page.count('"') == 4


def test_options_have_the_names_of_the_command_line() -> None:
    options = hlsgen.Options(fps=1000, reset="low", loadable_weights=True)
    assert options == hlsgen.Options(target_cycles=200_000, reset_active_low=True, loadable=True)
    assert hlsgen.Options(fps=1e6, clock_mhz=50).target_cycles == 50
    assert hlsgen.Options(fps=1e6, device="ice40-up5k").target_cycles == int(
        hlsgen.Options(device="ice40-up5k").rate_mhz
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"fps": 0}, "HG040 --fps: 0"),
        ({"fps": 10, "target_cycles": 5}, "HG040 --fps: given together with --target-cycles"),
        ({"fps": 1e9}, "HG040 --fps: .* is less than a cycle a frame"),
        ({"reset": "mid"}, "HG040 --reset: 'mid'"),
    ],
)
def test_wrong_rates(arguments: dict[str, float], text: str) -> None:
    with pytest.raises(hlsgen.HlsgenError, match=text):
        hlsgen.Options(**arguments)
