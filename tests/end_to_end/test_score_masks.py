"""Constant masks before Softmax: compared with executors, certified, simulated; others are rejected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from builds import assert_verified
from models import Net, newer
from numpy.typing import NDArray
from score_models import attention

import hlsgen
from hlsgen.dataflow.units import SoftmaxUnit
from hlsgen.ir.graph import MASK_REMOVED, MASK_UNIFORM

T = 4
CAUSAL = np.triu(np.ones((T, T), np.bool_), 1)


def added(value: float, mask: NDArray[Any] = CAUSAL) -> NDArray[np.float32]:
    return np.where(mask, np.float32(value), np.float32(0))


def whole_row(value: float) -> NDArray[np.float32]:
    mask = added(value)
    mask[2] = value
    return mask


#: The nodes between scaled scores s and the Softmax of m, and their constants.
MASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "causal, infinite": ("m = Add(s, k)", {"k": added(-np.inf)}),
    "of each head": ("m = Add(k, s)", {"k": np.stack([added(-1e9), added(-np.inf).T])[None]}),
    "of a whole row": ("m = Add(s, k)", {"k": whole_row(-3.4e38)}),
    "Where": ("m = Where(c, n, s)", {"c": CAUSAL, "n": np.float32(-np.inf)}),
    "Where of a whole row": ("m = Where(c, s, n)", {"c": whole_row(-1) == 0, "n": np.float32(-1e9)}),
    "Trilu without the diagonal": (
        "u = Trilu <upper = 1> (o, d)  m = Where(u, n, s)",
        {"o": CAUSAL | True, "d": np.int64(1), "n": np.float32(-np.inf)},
    ),
    "in front of a factor": ("j = Add(s, k)  m = Mul(j, h)", {"k": added(-1e5), "h": np.float32(0.5)}),
    "without effect": ("m = Add(s, k)", {"k": added(0)}),
}


@pytest.mark.sweep
@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "name", ["of each head", "Where of a whole row", "Trilu without the diagonal", "in front of a factor", *MASKS]
)
@pytest.mark.parametrize("step, quant", [(0.02, "QDQ"), (0.3, "QONNX")])
def test_against_executors(name: str, step: float, quant: str, tmp_path: Path) -> None:
    """For raw scores, with lookup tables and with products; differences from the executor are explained."""
    nodes, constants = MASKS[name]
    onnx.save(attention((2, T, 4), step, mask=nodes, quant=quant, share=1 / 300, **constants), tmp_path / "m.onnx")
    build = hlsgen.build(tmp_path / "m.onnx", tmp_path / "out", hlsgen.Options())
    unit = next(node.unit for node in build.network.nodes if isinstance(node.unit, SoftmaxUnit))
    if name == "without effect":
        assert unit.mask is None
    else:
        assert unit.mask is not None
        assert (unit.mask == MASK_REMOVED).any()
        assert (unit.mask == MASK_UNIFORM).any() == ("whole row" in name)
        assert unit.mask.size == T * T * (2 if name == "of each head" else 1)
    assert hlsgen.certify(tmp_path / "out").ok
    verdict = hlsgen.verify(tmp_path / "out", [], 24)
    assert verdict.ok, verdict.oracle


@pytest.mark.sim
@pytest.mark.cases(1)
@pytest.mark.parametrize("seed", range(4))
def test_hardware(seed: int, tmp_path: Path) -> None:
    mask = np.stack([added(-np.inf), whole_row(-3.4e38)])[:, :3, :3]
    proto = attention((2, 3, 2), (0.5, 0.1)[seed // 2], mask="m = Add(s, k)", k=mask)
    onnx.save(proto, tmp_path / "m.onnx")
    folding = {"matmul3": {"pe": (3, 1)[seed % 2], "simd": 2}}
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "out", hlsgen.Options(folding=folding))
    assert_verified(tmp_path / "out", ("icarus", "verilator")[seed % 2], 8)


@pytest.mark.sweep
@pytest.mark.parametrize("value", [-1e9, -np.inf])
def test_after_a_quantizer(value: float, tmp_path: Path) -> None:
    """Codes of a few bits, as the last layer too."""
    net = Net((1, T, T)).quant(0.3, bits=4.0, name="q0").then("Add", added(value), name="mask")
    model = newer(net.then("Softmax", axis=-1, name="soft").quant(1 / 15, bits=4.0, signed=0, name="q1").model())
    onnx.save(model, tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "out", hlsgen.Options())
    assert hlsgen.certify(tmp_path / "out").ok
    assert hlsgen.verify(tmp_path / "out", [], 24).ok


@pytest.mark.parametrize(
    "constant, message",
    [
        (whole_row(-np.inf), r"HG027 softmax6: the mask removes all elements of row \[0, 0, 2\]"),
        (added(-1.0), "HG030 softmax6: -1 is added to scores"),
        (whole_row(-10000.0), "HG030 softmax6: -10000 is added to scores"),
        (added(np.inf), "HG027 add5: .* inf"),
    ],
)
def test_refused(constant: NDArray[np.float32], message: str, tmp_path: Path) -> None:
    onnx.save(attention((2, T, 4), 0.3, mask="m = Add(s, k)", k=constant), tmp_path / "m.onnx")
    with pytest.raises(hlsgen.HlsgenError, match=message):
        hlsgen.check(tmp_path / "m.onnx")


@pytest.mark.slow
@pytest.mark.sim
@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "name, step", [("of each head", 0.02), ("Where of a whole row", 0.3), ("causal, infinite", 0.3)]
)
def test_cpp(name: str, step: float, tmp_path: Path) -> None:
    """Lookup tables, and products of two words."""
    nodes, constants = MASKS[name]
    onnx.save(attention((2, T, 4), step, mask=nodes, share=1 / 300, **constants), tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "out", hlsgen.Options(target="hls"))
    assert hlsgen.certify(tmp_path / "out").ok
    verdict = hlsgen.verify(tmp_path / "out", ["ap_types", "ac_types"], 24)
    assert verdict.ok, verdict


def test_infinity_elsewhere(tmp_path: Path) -> None:
    onnx.save(
        Net((1, 4)).quant().then("Add", np.float32([0, 0, -np.inf, 0]), name="add").quant().model(), tmp_path / "m.onnx"
    )
    with pytest.raises(hlsgen.HlsgenError, match="HG027 add: a constant has the value -inf"):
        hlsgen.check(tmp_path / "m.onnx")
