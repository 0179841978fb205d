"""Every input of quantizers of 16 bits; all 2^32 floats in the slow suite. Compiled, through ctypes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from qonnx.custom_op.general.intquant import int_quant
from random_graphs import Graph

import hlsgen
from hlsgen.interpreter import graph as reference
from hlsgen.ir.evaluate import KEY_NEG_INF, KEY_POS_INF, key_to_float
from hlsgen.numerics.fixed import Rounding
from hlsgen.simulation.verilator_library import NativeCore

pytestmark = pytest.mark.sim

Array = NDArray[Any]
LANES = 16


def core(tmp_path: Path, lanes: int, input_: str, *quant: Any, kind: str = "", **attributes: Any) -> NativeCore:
    """A single IntQuant, built as this kind of implementation and compiled; channels are on the last axis."""
    g = Graph((1, lanes))
    g.quant(*quant, **attributes)
    onnx.save(g.model(), tmp_path / "model.onnx")
    options = hlsgen.Options(input=input_, lanes=lanes, realize={"": kind} if kind else {})
    build = hlsgen.build(tmp_path / "model.onnx", tmp_path / "out", options)
    return NativeCore(build, tmp_path / "out", tmp_path / "native")


def every_code(bits: int, lanes: int) -> Array:
    """All signed integers of this width in every lane, (frames, 1, lanes)."""
    codes = np.arange(-(1 << (bits - 1)), 1 << (bits - 1))
    return np.repeat(codes[:, None, None], lanes, axis=2)


@pytest.mark.cases(1)
@pytest.mark.parametrize("mode", list(Rounding))
def test_every_16_bit_input_in_every_rounding_mode(mode: Rounding, tmp_path: Path) -> None:
    """A lane for each kind of scale and zero point, against qonnx itself."""
    scale = np.array([[0.25, 0.25, 0.25, 0.5, 1, 2, 0.3, 0.037, 1 / 3, 3.7, 0.25, 0.25, 0.1, 0.25, 4, 0.7]], np.float32)
    zero = np.array([[0, 3, -2, 0.5, 0, 0.25, 0, 0, 0, 0, 1.5, -0.75, 0.3, 0, -3, 2]], np.float32)
    with core(tmp_path, LANES, "fixed:16,10", scale, zero, 6.0, signed=1, narrow=0, rounding_mode=mode.name) as native:
        codes = every_code(16, LANES)
        x = (codes / 64).astype(np.float32)
        expected = int_quant(x, scale, zero, np.float32(6), True, False, mode.name)
        assert np.array_equal(
            reference.decode_output(native.build.graph, native.run(codes)), expected.reshape(-1, LANES)
        )


@pytest.mark.cases(1)
@pytest.mark.parametrize("mode", list(Rounding))
def test_powers_of_two_can_be_shifts(mode: Rounding, tmp_path: Path) -> None:
    attributes = {"signed": 1, "narrow": 1, "rounding_mode": mode.name}
    with core(tmp_path, 4, "fixed:16,8", 0.125, 2.0, 8.0, kind="shift", **attributes) as native:
        codes = every_code(16, 4)
        expected = int_quant(
            (codes / 256).astype(np.float32), np.float32(0.125), np.float32(2), np.float32(8), 1, 1, mode.name
        )
        assert np.array_equal(reference.decode_output(native.build.graph, native.run(codes)), expected.reshape(-1, 4))


def test_wide_codes_go_through_float_units(tmp_path: Path) -> None:
    """16 bits with a scale that is no power of two: float32 hardware, every input."""
    with core(tmp_path, 2, "fixed:16,2", np.array([[3e-5, 0.00011]]), 0.7, 16.0, signed=1, narrow=0) as native:
        assert [c.name for c in native.build.network.choices.values()] == ["float-units"]
        codes = every_code(16, 2)
        assert np.array_equal(native.run(codes), reference.run_layers(native.build.graph, codes)[-1])


def all_keys(start: int, stop: int, lanes: int) -> Array:
    keys = np.arange(start, stop)
    return np.concatenate([keys, np.full(-len(keys) % lanes, KEY_POS_INF)]).reshape(-1, 1, lanes)


def test_floats_around_every_threshold(tmp_path: Path) -> None:
    """float32 input: 4096 floats on both sides of each threshold, and the ends of the range."""
    with core(tmp_path, LANES, "float32", 0.3, 0.0, 4.0, signed=1, narrow=0, rounding_mode="HALF_UP") as native:
        build = native.build
        steps = next(iter(build.network.choices.values())).steps
        assert steps is not None
        table = steps.table[:, 0]
        points = [*table, KEY_NEG_INF, 0x7FFFFFFF, KEY_POS_INF - 4096]
        for point in points:
            keys = all_keys(max(int(point) - 4096, KEY_NEG_INF), min(int(point) + 4096, KEY_POS_INF + 1), LANES)
            expected = int_quant(key_to_float(keys), np.float32(0.3), np.float32(0), np.float32(4), 1, 0, "HALF_UP")
            result = reference.decode_output(build.graph, native.run(keys))
            assert np.array_equal(result, expected.reshape(-1, LANES))


#: `test_all_floats` has this many parts of equal size.
FLOAT_PARTS = 16


@pytest.fixture(scope="module")
def float_core(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NativeCore]:
    """A 4-bit IntQuant of 64 lanes with a float32 port, compiled once for all parts."""
    attributes = {"signed": 1, "narrow": 0, "rounding_mode": "ROUND"}
    with core(tmp_path_factory.mktemp("floats"), 64, "float32", 0.3, 1.25, 4.0, **attributes) as native:
        yield native


@pytest.mark.slow
@pytest.mark.parametrize("part", range(FLOAT_PARTS))
def test_all_floats(part: int, float_core: NativeCore) -> None:
    """All 2^32 - 2^24 + 2 numbers that a float32 port can carry, one part of them, and a NaN."""
    bounds = np.linspace(KEY_NEG_INF, KEY_POS_INF + 1, FLOAT_PARTS + 1).astype(np.int64)
    chunk = 1 << 22
    for start in range(bounds[part], bounds[part + 1], chunk):
        keys = all_keys(start, min(start + chunk, bounds[part + 1]), 64)
        x = key_to_float(keys)
        with np.errstate(all="ignore"):
            y = np.clip(np.float32(1.25) + x / np.float32(0.3), -8, 7)
        assert np.array_equal(float_core.run(keys), np.round(y).astype(np.int64)), hex(start)
    assert (float_core.run(np.zeros((1, 1, 64), np.int64)) == -8).all()
