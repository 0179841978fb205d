"""Whole random graphs: a start, some phrases, a quantizer."""

from __future__ import annotations

import numpy as np
from fuzz_layers import broadcast, channels_last, minifloat, qlinear, repeated, shifted_average, transposed
from fuzz_phrases import FRAMES, Sketch, Unfit, dequantized, quantized
from fuzz_steps import (
    Phrase,
    average,
    branches,
    chain,
    codes,
    concatenated,
    cut,
    layer,
    max_pool,
    moved,
    one_tensor,
    per_channel,
    pool_and_run,
    requantized,
)
from onnx import TensorProto

PHRASES: dict[Phrase, float] = {
    pool_and_run: 4,
    chain: 3,
    moved: 2,
    requantized: 2,
    per_channel: 2,
    concatenated: 2,
    branches: 2.5,
    one_tensor: 1.5,
    layer: 2,
    average: 1,
    cut: 2.5,
    codes: 1.2,
    max_pool: 1,
    quantized: 1.5,
    qlinear: 1.2,
    transposed: 0.5,
    channels_last: 0.8,
    shifted_average: 0.3,
    minifloat: 0.3,
    broadcast: 0.7,
    repeated: 0.5,
}


def random_sketch(seed: int, attempt: int) -> Sketch:
    """A whole graph, the same for the same seed and attempt."""
    rng = np.random.default_rng([seed, attempt])
    s = _start(rng)
    t = "x"
    if s.dialect == "qonnx":
        t = _tried(s, chain, t) if s.chance(0.3) else t
        t = _tried(s, quantized, t)
    elif s.dialect == "qdq" and s.kind(t).startswith("float"):
        t = _tried(s, quantized, t)
    elif s.dialect == "qdq":
        t = _tried(s, dequantized, t)
    odds = np.asarray(list(PHRASES.values()))
    candidates = [t]
    for _ in range(s.pick(1, 2, 2, 3, 3, 4, 4, 7)):
        start = t if s.chance(0.85) else s.pick(*candidates)
        t = _tried(s, list(PHRASES)[int(rng.choice(len(odds), p=odds / odds.sum()))], start)
        candidates.append(t)
    if s.chance(0.6) or len(s.nodes) < 3:
        t = _tried(s, quantized, t)
    if s.chance(0.15):
        t = _tried(s, chain, t)
    if s.kind(t) == "bool":
        t = s.add("Cast", t, to=TensorProto.FLOAT)
    while not s.nodes or t not in s.nodes[-1].output:
        s.nodes.pop()
        if not s.nodes:
            t = s.add("Relu", "x")
    return s


def _tried(s: Sketch, phrase: Phrase, t: str) -> str:
    """The phrase, or the tensor as far as it came."""
    first_node = len(s.nodes)
    for _ in range(3):
        try:
            return phrase(s, t)
        except Unfit:
            del s.nodes[first_node:]
    return t


def _start(rng: np.random.Generator) -> Sketch:
    """Input and dialect."""
    rank = int(rng.choice([2, 3, 4], p=[0.25, 0.25, 0.5]))
    shape = (FRAMES, int(rng.integers(1, 6)), *rng.integers(2, 7, rank - 2).tolist())
    if rank == 2:
        shape = (FRAMES, int(rng.choice([1, 4, 6, 8, 12])))
    dialect = str(rng.choice(["qonnx", "qdq", "integer"], p=[0.6, 0.2, 0.2]))
    powers = bool(rng.random() < 0.7)
    if dialect == "qonnx" or (dialect == "qdq" and rng.random() < 0.6):
        kind = "float32" if rng.random() < 0.95 else str(rng.choice(["float16", "float64"]))
        how = rng.random(shape)
        steps, spread = np.round(rng.normal(size=shape) * 16) / 8, rng.normal(size=shape) * 3
        x = np.where(how < 0.5, steps, np.where(how < 0.97, spread, spread * 1e3)).astype(kind)
        port = "codes" if kind == "float64" else None
        if rng.random() < 0.3 and kind == "float32":
            fraction = int(rng.integers(0, 5))
            port = f"fixed:{fraction + 5},5"
            x = (np.clip(np.round(x * 2.0**fraction), -16 * 2**fraction, 16 * 2**fraction - 1) / 2.0**fraction).astype(
                kind
            )
        elif rng.random() < 0.2:
            port = "float32"
        return Sketch(rng, x, dialect, powers, port)
    kind = str(rng.choice(["int8", "uint8", "int8", "uint8", "int16", "uint16", "int32"]))
    kind = kind if dialect == "integer" else str(rng.choice(["int8", "uint8"]))
    info = np.iinfo(kind)
    x = rng.integers(info.min, int(info.max) + 1, shape)
    if rng.random() < 0.3:
        x = np.clip(x, -100, 100)
    return Sketch(rng, x.astype(kind), dialect, powers)
