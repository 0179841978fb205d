"""Quantizers built as C++ and run in C simulation: every input against qonnx, every realization against the model."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from qonnx.custom_op.general.intquant import int_quant
from random_graphs import Graph

import hlsgen
from hlsgen.driver.compile import compile_model
from hlsgen.interpreter import graph as reference
from hlsgen.ir.evaluate import KEY_NEG_INF, KEY_POS_INF, float_to_key
from hlsgen.numerics.fixed import Rounding
from hlsgen.simulation.core_copy import write_core
from hlsgen.simulation.cpp_library import CppCore
from hlsgen.testbench.sample_vectors import output_codes

pytestmark = pytest.mark.sim

Array = NDArray[Any]
SCALES = np.array([[0.3, 0.037, 1 / 3, 1.7]], np.float32)
ZEROS = np.array([[0, 1, -2, 0.5]], np.float32)


def simulated(
    folder: Path, input_: str, codes: Array, *quant: Any, simulator: str = "ac_types", kind: str = "", **attributes: Any
) -> tuple[hlsgen.Build, Array]:
    """An IntQuant with the shape of a frame, two elements a beat, built as C++: its codes for these inputs.

    Input "codes" are codes of a preceding quantizer with 12 bits; a product with `SCALES` follows.
    """
    g = Graph(codes.shape[1:])
    if input_ == "codes":
        g.quant(0.25, 0.0, 12.0, signed=1, narrow=0)
        g.then("Mul", SCALES)
    g.quant(*quant, **attributes)
    onnx.save(g.model(), folder / "model.onnx")
    options = hlsgen.Options(input=input_, lanes=2, realize={"": kind} if kind else {}, target="hls")
    build = compile_model(folder / "model.onnx", options)
    work = folder / "work"
    work.mkdir()
    outputs = CppCore(build.cpp, build.network, write_core(build.files, work), work, simulator).run(codes)
    return build, output_codes(build.network, outputs.words)


def every_code(bits: int, lanes: int) -> Array:
    """All signed integers of this width in every lane, (frames, 1, lanes)."""
    codes = np.arange(-(1 << (bits - 1)), 1 << (bits - 1))
    return np.repeat(codes[:, None, None], lanes, axis=2)


def functions(build: hlsgen.Build) -> list[str]:
    return [part.call.function.removeprefix("hg::") for part in build.cpp.parts]


QUANTIZERS = list(product(Rounding, (0, 1), (0, 1)))


@pytest.mark.cases(1)
@pytest.mark.parametrize("number", range(len(QUANTIZERS)))
def test_every_quantizer(number: int, tmp_path: Path) -> None:
    """All roundings, signed or not, narrow or not, with three fraction bits; ap_fixed is used wherever it has the
    rounding."""
    mode, signed, narrow = QUANTIZERS[number]
    scale, bits = np.float32(2 ** (number % 2 - 1)), np.float32(5)
    codes = every_code(12, 2)
    build, codes_out = simulated(
        tmp_path,
        "fixed:12,8",
        codes,
        scale,
        0.0,
        bits,
        kind="shift",
        simulator=("ac_types", "ap_types")[number % 2],
        signed=signed,
        narrow=narrow,
        rounding_mode=mode.name,
    )
    expected = int_quant((codes / 16).astype(np.float32), scale, np.float32(0), bits, signed, narrow, mode.name)
    assert (reference.decode_output(build.graph, codes_out) == expected.reshape(-1, 2)).all()
    # UP is CEIL where no code is negative.
    fixed = mode != Rounding.UP if signed else not narrow
    assert functions(build) == (["quantize"] if fixed else ["shift"])


def test_point_of_the_result(tmp_path: Path) -> None:
    """Input and result are the fixed-point types that a reader expects."""
    attributes = {"signed": 1, "narrow": 1, "rounding_mode": "HALF_UP"}
    build, _ = simulated(tmp_path, "fixed:12,6", every_code(4, 2), 0.25, 0.0, 5.0, **attributes)
    (part,) = build.cpp.parts
    assert dict(part.call.arguments) == {
        "SUM": "ap_fixed<12, 6>",
        "RESULT": "ap_fixed<5, 3, AP_RND_INF, AP_SAT_SYM>",
        "BEATS": "1",
    }


FLOATS = ["f32_convert", "f32_unit", "f32_unit", "f32_encode"]
KINDS = [
    ("shift", ["quantize"], 4, (0.5, 3.0)),
    ("scale", ["scale"], 4, (0.3, 0.0)),
    ("float-scale", ["scale_f32"], 4, (2.0, 0.0)),
    ("correct", ["correct"], 4, (SCALES, ZEROS)),
    ("compare", ["compare"], 4, (SCALES, ZEROS)),
    ("thresholds", ["thresholds"], 4, (SCALES, ZEROS)),
    ("rank", ["rank"], 2, (0.3, 1.0)),
    ("table", ["table"], 4, (SCALES, ZEROS)),
    ("float-units", FLOATS, 4, (SCALES, ZEROS)),
]


@pytest.mark.cases(2)
@pytest.mark.parametrize("kind, expected, lanes, quant", KINDS)
def test_every_realization(kind: str, expected: list[str], lanes: int, quant: tuple[Any, Any], tmp_path: Path) -> None:
    codes = every_code(12, lanes)
    input_ = "codes" if kind == "float-scale" else "fixed:12,6"
    build, codes_out = simulated(tmp_path, input_, codes, *quant, 5.0, kind=kind, signed=1, narrow=0)
    assert functions(build) == expected
    assert (codes_out == reference.run_layers(build.graph, codes)[-1].reshape(codes_out.shape)).all()


@pytest.mark.cases(1)
@pytest.mark.parametrize("kind, expected", [("", ["float_key", "thresholds"]), ("float-units", FLOATS[1:])])
def test_float32_input(kind: str, expected: list[str], tmp_path: Path) -> None:
    """Numbers of all sizes, NaN, and the neighbours of every tie."""
    rng = np.random.default_rng(1)
    ties = (np.arange(-20, 20)[:, None] + 0.5) * SCALES
    keys = float_to_key(ties.astype(np.float32))
    next_to_ties = (keys[:, None] + np.arange(-3, 4)[:, None]).reshape(-1, 4)
    random_keys = rng.integers(KEY_NEG_INF, KEY_POS_INF, (3000, 4), endpoint=True)
    ends = np.repeat([[0], [KEY_NEG_INF], [KEY_POS_INF], [0x7FFFFFFF], [0x80000000]], 4, axis=1)
    codes = np.concatenate([next_to_ties, random_keys, ends])[:, None]
    build, codes_out = simulated(
        tmp_path, "float32", codes, SCALES, ZEROS, 5.0, kind=kind, signed=1, narrow=1, rounding_mode="HALF_UP"
    )
    assert functions(build) == expected
    assert (codes_out == reference.run_layers(build.graph, codes)[-1].reshape(codes_out.shape)).all()
