"""No number of a process on rows can be changed unnoticed: arguments of its call, and its tables."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from certified_cpp import others, problems
from models import Net, newer
from norm_nets import norm_net
from row_models import CASES, model
from score_models import attention
from tflite_random import random_file

import hlsgen

#: Arguments that may have other values: types with bits to spare, and how many steps there are in a cycle.
SPARE = {"SUM": 2, "SQUARES": 4, "NUMBER": 12, "AT_ONCE": 0, "Q": 1, "GONE": -1}
FUNCTIONS = r"hg::(?:softmax\w*|norm_\w+|rows_\w+)"


def net(name: str) -> onnx.ModelProto:
    """A network with one of the functions."""
    if name == "softmax":
        network = Net((1, 2, 4)).quant(0.3, bits=4.0).then("Softmax", axis=-1, name="soft")
        return newer(network.quant(1 / 15, bits=4.0, signed=0).model())
    if name == "norm":
        return norm_net("LayerNormalization", length=6, bits=4, rows=2)
    if name == "raw scores":
        return attention((1, 2, 2), 0.03)
    if name == "masked":
        return attention((1, 2, 2), 0.3, mask="m = Add(s, k)", k=np.float32([[0, -np.inf], [-3e38, -3e38]]))
    if name == "masked raw scores":
        return attention((1, 2, 2), 0.03, mask="m = Add(s, k)", k=np.float32([[0, -np.inf], [0, 0]]))
    op, attributes, constants, _ = CASES[name]
    return model(op, [1, 12], attributes, constants)


@pytest.fixture(
    scope="module",
    params=["norm", "softmax", "raw scores", "masked", "masked raw scores", "layer", "steep softmax", "TFLite"],
)
def core(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    path = folder / ("m.tflite" if request.param == "TFLite" else "m.onnx")
    if request.param == "TFLite":
        path.write_bytes(random_file("SOFTMAX", 3).data)
    else:
        onnx.save(net(request.param), path)
    input_ = "int8" if request.param in CASES else None
    hlsgen.build(path, folder / "core", hlsgen.Options(target="hls", top="top", input=input_, softmax="hardware"))
    return folder / "core"


@pytest.mark.sweep
@pytest.mark.cases(2)
def test_arguments(core: Path) -> None:
    path = core / "hls" / "top.cpp"
    text = path.read_text()
    assert problems(core) == []
    calls = list(re.finditer(rf"{FUNCTIONS}<([^;]*)>\(", text))
    assert calls
    for call in calls:
        for argument in re.finditer(r"(-?\d+|true|false)(?:, \d+)?(>?) /\* (\w+) \*/", call[1]):
            value, _, name = argument.groups()
            spare = SPARE.get(name, 1)
            neighbour = {"true": "false", "false": "true"}.get(value) or str(int(value) - spare)
            start, end = (call.start(1) + n for n in argument.span(1))
            for changed in (neighbour, "999999999") if spare else ():
                path.write_text(text[:start] + changed + text[end:])
                assert problems(core) != [], (call[0][:30], name, changed)
    path.write_text(text)


def test_tables(core: Path) -> None:
    """The first number of each table, and one in the middle."""
    path = core / "hls" / "weights.hpp"
    text = path.read_text()
    names = "powers|numerators|mantissas|shifts|lows|constants|weights|numbers|biases|masks|exponentials"
    for table in re.finditer(rf"static const [^{{]*?(\w+_(?:{names}))(?:\[\d+\])+ =\n    (\{{[^;]*\}});", text):
        numbers = list(re.finditer(r"-?\d+(?:\.\d*e[+-]\d+)?", table[2]))
        for number in {0: numbers[0], 1: numbers[len(numbers) // 2]}.values():
            at = table.start(2) + number.start()
            path.write_text(text[:at] + others(number[0])[0] + text[at + len(number[0]) :])
            assert problems(core) != [], (table[1], number[0])
    path.write_text(text)
