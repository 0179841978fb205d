"""Sets that change from beat to beat as one function, behind an offset for each set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from certified import messages
from onnx import TensorProto, helper, numpy_helper
from step_tables import bundle, every, intervals, rising

import hlsgen
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale import Shared
from hlsgen.rescale.realize import shared, shift
from hlsgen.rescale.threshold_table import ThresholdTable

#: The factor of each position: three different ones.
STRIDES = np.repeat([8, 16, 32], [200, 60, 20]).astype(np.float32)
#: Options with which no other realization is taken.
FORCED: dict[str, Any] = {"realize": {"": "shared-table"}}


def model(dtype: str, strides: Array) -> onnx.ModelProto:
    """Codes times a factor for each position, quantized again. With float32, the first quantizer is in the model."""
    values = {
        "s": np.float32(0.05),
        "z": np.zeros((), np.int8 if dtype == "float32" else dtype),
        "factor": strides,
        "s2": np.float32(1.3),
        "z2": np.int8(0),
    }
    codes = "x" if dtype != "float32" else "codes"
    nodes = [
        helper.make_node("DequantizeLinear", [codes, "s", "z"], ["d"]),
        helper.make_node("Mul", ["d", "factor"], ["m"]),
        helper.make_node("QuantizeLinear", ["m", "s2", "z2"], ["y"]),
    ]
    if dtype == "float32":
        nodes.insert(0, helper.make_node("QuantizeLinear", ["x", "s", "z"], ["codes"]))
    shape = [1, 2, len(strides)]
    x = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
    y = helper.make_tensor_value_info("y", TensorProto.INT8, shape)
    constants = [numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()]
    graph = helper.make_graph(nodes, "strides", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def save(dtype: str, strides: Array, folder: Path) -> Path:
    onnx.save(model(dtype, strides), folder / "model.onnx")
    return folder / "model.onnx"


@pytest.mark.parametrize("seed", range(4))
def test_every_input_of_every_set(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for lo, hi in intervals(rng):
        if len(lo) == 1:
            continue
        for steps in (bundle(rng, lo, hi, 9), rising(rng, lo, hi, 6), rising(rng, lo, hi, 5, falling=True)):
            found = [shared.find_table(steps), shared.find_indexed(steps)]
            assert any(isinstance(each, Shared) for each in found), found
            for each in found:
                if isinstance(each, Shared):
                    every(each, steps)
                    sums = each.offset.apply(np.stack([steps.lo, steps.hi]))
                    assert each.index.lo <= sums.min() <= sums.max() <= each.index.hi
                    order = np.argsort(sums[0])
                    assert (sums[1, order[:-1]] < sums[0, order[1:]]).all(), "two sets have a sum in common"


def test_sums_of_too_many_bits() -> None:
    lo = np.zeros(4, np.int64)
    steps = ThresholdTable("f", lo, lo + (1 << 46), lo[None] + 5, np.stack([lo, lo + 3]))
    for find in (shared.find_table, shared.find_indexed):
        assert find(steps) == "inputs with the number of their set have 49 bits; at most 48"


def test_memory_of_offsets_is_as_wide_as_the_number_of_a_set() -> None:
    """The low bits of all offsets are 0, and nothing is added to them."""
    lo, source = np.zeros(3, np.int64), IntType(0, 255)
    steps = ThresholdTable("f", lo, lo + 255, lo[None] + np.array([5, 9, 77]), np.stack([lo, lo + 1]))
    found, table = shared.find_table(steps), np.zeros((1 << 14, 2), np.int64)
    assert isinstance(found, Shared)
    assert shift.cost(found.offset, table, source, found.index)[2] == 2 * 2 << 14


@pytest.mark.parametrize(
    ("dtype", "name", "wishes"),
    [
        ("float32", "shared-indexed", {}),
        ("int8", "shared-table", FORCED),
        ("uint8", "shared-table", FORCED | {"target_cycles": 280}),
    ],
)
def test_few_functions_at_many_positions(dtype: str, name: str, wishes: dict[str, Any], tmp_path: Path) -> None:
    """Each function is stored once, whatever the number of positions; the proof of both targets agrees."""
    options = hlsgen.Options(target="verilog,hls", **wishes)
    build = hlsgen.build(save(dtype, STRIDES, tmp_path), tmp_path / "core", options)
    (choice,) = build.network.choices.values()
    assert choice.name == name
    sizes = {path.name: len(path.read_text().split()) for path in (tmp_path / "core" / "rtl").glob("*.mem")}
    lanes = build.network.nodes[-2].result.lanes
    (offsets,) = (name for name in sizes if name.endswith("_set.mem"))
    assert sizes.pop(offsets) * lanes == len(STRIDES)
    assert max(sizes.values()) <= 1024
    assert not messages(tmp_path / "core", listed=False)


def test_another_factor_at_each_position(tmp_path: Path) -> None:
    """There is nothing to share."""
    options = hlsgen.Options(**FORCED)
    with pytest.raises(hlsgen.HlsgenError, match="HG037"):
        hlsgen.check(save("int8", np.arange(8, 32).astype(np.float32), tmp_path), options)


def test_certify_sees_an_offset_of_another_set(tmp_path: Path) -> None:
    for dtype in ("int8", "float32"):
        core = tmp_path / dtype
        hlsgen.build(save(dtype, STRIDES, tmp_path), core, hlsgen.Options(**(FORCED if dtype == "int8" else {})))
        (path,) = (core / "rtl").glob("model_*_set.mem")
        words = path.read_text().split()
        words[199], words[200] = words[200], words[199]
        path.write_text("\n".join(words) + "\n")
        assert any("at x = " in problem for problem in messages(core)), dtype
