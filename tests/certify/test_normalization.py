"""`hlsgen certify` of normalizations: proven as built, and no constant of their units can be changed unnoticed."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import onnx
import pytest
from certified import messages, sign
from norm_nets import norm_net

import hlsgen


@pytest.fixture(scope="module", params=["LayerNormalization", "rms one over"])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("norm")
    onnx.save(norm_net(request.param, length=6, bits=4, rows=2), folder / "norm.onnx")
    hlsgen.build(folder / "norm.onnx", folder / "out", hlsgen.Options(target_cycles=12))
    return folder / "out"


def test_it_is_certified(built: Path) -> None:
    certified = hlsgen.certify(built)
    assert certified.ok, certified.problems


#: (module, parameter, change, message), for LayerNormalization and rms.
CHANGES = [
    ("moments", "CENTERED", "not", "CENTERED is"),
    ("moments", "M_W", -3, "a moment can be|bits on stream|differs from the|bits a beat"),
    ("moments", "OFFSET", 1, "the model has code"),
    ("moments", "SHIFT", 1, "the model has code"),
    ("moments", "Q_W", -1, "sized constant|too small|OFFSET"),
    ("root", "STEPS", -2, "fewer than 25 bits"),
    ("root", "ADDEND", 1, "is not the model's"),
    ("root", "FACTOR", 2, "is not the model's"),
    ("root", "START", 1, "is not 4"),
    ("scale", "BIAS", 1, "is not 4"),
    ("scale", "BEATS", 1, "a row has"),
    ("scale", "OFFSET", 1, "the model has code"),
    ("scale", "A_W", -2, "an element can be"),
]


@pytest.mark.parametrize(("module", "name", "change", "message"), CHANGES)
def test_no_constant_can_be_changed(
    built: Path, tmp_path: Path, module: str, name: str, change: int | str, message: str
) -> None:
    core = tmp_path / "core"
    shutil.copytree(built, core)
    top = core / "rtl" / "norm.v"
    text = top.read_text()
    start = text.index(f"hg_norm_{module} #(")
    head, body = text[:start], text[start:]
    parameter = re.search(rf"\.{name}\((?:(\d+)'h)?([0-9a-f]+)\)", body)
    assert parameter is not None
    value = int(parameter[2], 16 if parameter[1] else 10)
    value = 1 - value if change == "not" else value + int(change)
    shown = f"{parameter[1]}'h{value:x}" if parameter[1] else str(value)
    top.write_text(head + body[: parameter.start()] + f".{name}({shown})" + body[parameter.end() :])
    certificate = json.loads((core / "certificate.json").read_text())
    for layer in certificate["layers"]:
        for instance in layer["instances"]:
            if instance["module"].endswith(f"hg_norm_{module}"):
                instance["parameters"][name] = shown if parameter[1] else value
    (core / "certificate.json").write_text(json.dumps(certificate))
    sign(core, f"rtl/{top.name}")
    problems = messages(core)
    assert problems
    assert any(re.search(message, problem) for problem in problems), problems
