"""Shared code of the module tests: jobs for stream_cocotb.py, packing of beats, memory files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hlsgen.verilog.binding.memory_files import Bits

#: The library under test.
RTL = Path(__file__).resolve().parent.parent / "templates" / "rtl"
SIMULATORS = ("icarus", "verilator")


@dataclass(frozen=True)
class Stream:
    """Beats for a module with a valid/ready input and output.

    `inputs` and `outputs` map the ports of each side to their words, the data port first. Output beat i is complete
    after input beat completes[i].
    """

    inputs: Mapping[str, Sequence[int]]
    outputs: Mapping[str, Sequence[int]]
    latency: int
    #: By default one output beat for each input beat.
    completes: Sequence[int] | None = None
    #: The side on which there is no bubble at full rate, and the cycles from output to output.
    continuous: Literal["input", "output"] = "input"
    gap: int = 1
    #: Beats that it accepts while nothing is taken, if that is fixed.
    capacity: int | None = None
    #: s_ready and m_* depend on registers only.
    registered: bool = False
    #: s_ready is low during reset.
    waits_for_reset: bool = False
    #: Beats of the slow runs.
    short: int = 250
    #: Other output ports: value by number of input beats.
    levels: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def job(self) -> dict[str, Any]:
        count = len(next(iter(self.outputs.values())))
        completes = range(count) if self.completes is None else self.completes
        assert len(completes) == count
        return {**_job(self), "kind": "stream", "completes": list(completes)}


@dataclass(frozen=True)
class Pipeline:
    """Rows for a module without handshake that advances on `enable`, if it has such a port."""

    inputs: Mapping[str, Sequence[int]]
    outputs: Mapping[str, Sequence[int]]
    latency: int
    enable: str | None = "en"
    #: First rows whose outputs are not looked at.
    unknown: int = 0

    def job(self) -> dict[str, Any]:
        return {**_job(self), "kind": "pipeline"}


def _job(job: Stream | Pipeline) -> dict[str, Any]:
    words = {
        side: {port: [f"{int(word):x}" for word in column] for port, column in getattr(job, side).items()}
        for side in ("inputs", "outputs")
    }
    return {**asdict(job), **words}


def sweep(cases: Sequence[Any], verilator: int = 2) -> list[tuple[str, Any]]:
    """Every case on Icarus, the first few also on Verilator, whose builds take longer."""
    return [("icarus", case) for case in cases] + [("verilator", case) for case in cases[:verilator]]


def pack(values: npt.NDArray[Any], bits: int) -> list[int]:
    """Rows of integers (rows, lanes) as words, the first lane in the low bits."""
    mask = (1 << bits) - 1
    rows = [[int(value) & mask for value in row] for row in np.asarray(values)]
    return [sum(value << (k * bits) for k, value in enumerate(row)) for row in rows]


def memory(words: Iterable[int]) -> str:
    """Text of a $readmemh file."""
    return "".join(f"{word:x}\n" for word in words)


def integers(rng: np.random.Generator, bits: int, signed: bool, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Uniform integers of that type, a third of them at or near its ends."""
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    values = rng.integers(low, high, shape, endpoint=True)
    edges = rng.choice([low, min(low + 1, high), max(high - 1, low), high, min(max(0, low), high)], shape)
    return np.where(rng.random(shape) < 1 / 3, edges, values)


def all_inputs(bits: int, signed: bool, lanes: int) -> npt.NDArray[np.int64]:
    """All integers of that type, (rows, lanes), in an order in which neighbours are unrelated."""
    values = np.arange(1 << bits) - ((1 << (bits - 1)) if signed else 0)
    shuffled = np.random.default_rng(bits).permutation(values)
    return shuffled[: len(shuffled) // lanes * lanes].reshape(-1, lanes)


def verilog(parameters: object) -> dict[str, object]:
    """Constants as the simulators' command lines take them."""
    assert isinstance(parameters, dict)
    sized = {n: f"{v.width}'d{v.value & ((1 << v.width) - 1)}" for n, v in parameters.items() if isinstance(v, Bits)}
    return {**parameters, **sized, "FILE": f'"{parameters["FILE"]}"'}


def dot_latency(terms: int, w_bits: int, each: int) -> int:
    """Latency of products in DSP blocks or by constants: up to four terms, one or two per cycle, a tree, and digits."""
    tree, merge = (-(-terms // 4) - 1).bit_length(), ((w_bits + 1) // 2 - 1).bit_length()
    return -(-min(terms, 4) // (1 if each <= 1 else 2)) - (-tree // max(each, 1)) - (-merge // max(each, 1))


def pairs_latency(terms: int, w_bits: int, each: int) -> int:
    """Latency of hg_dot_pairs: pair sums, weight bits of one or two pairs, one or two per cycle, and a tree."""
    steps, tree = w_bits * (2 if terms > 2 else 1), (-(-terms // 4) - 1).bit_length()
    return 1 - (-steps // (1 if each <= 1 else 2)) - (-tree // max(each, 1))


def sharing(x_bits: int, w_bits: int, rows: int, block: int) -> tuple[int, int]:
    """Rows that share a DSP block, at most three, and guard bits between their products, at most two."""
    fit = [n for n in (2, 3) if (n - 1) * (x_bits + w_bits) + w_bits < block]
    packs = -(-rows // max([1, *fit]))
    rows_per_block = -(-rows // packs)
    return rows_per_block, min(
        2, (block - w_bits - 1) // (rows_per_block - 1) - x_bits - w_bits
    ) if rows_per_block > 1 else 0


def chain_latency(terms: int, rows_per_block: int, signed: bool, guard: int, each: int) -> int:
    """Latency of hg_dot_chain: a cycle per block, registers, separation of rows, and a tree over chains."""
    products_per_chain = 8 if rows_per_block == 1 else min(8, 4 * 2**guard * (2 if signed else 1) - signed)
    chains = -(-terms // products_per_chain)
    length = -(-terms // chains)
    tree = (-(-terms // length) - 1).bit_length()
    return length + (1 if rows_per_block == 1 else 3) - (-tree // max(each, 1))


def mac_latency(
    terms: int, w_bits: int, mode: int, each: int, dsp: int = 0, rows: int = 1, x: tuple[int, int] = (4, 0)
) -> int:
    """Latency of hg_mac. For DSP blocks: `rows` share the same codes, and `x` is their bits and sign."""
    if mode == 2:
        return 3 + (-(-((terms - 1) // 4).bit_length() // each) if each else 0)
    bits = max(w_bits, 2) if mode == 0 else w_bits
    if dsp >= 25 and mode == 0:
        return 2 + chain_latency(terms, *_chained(x, bits, rows, dsp), each)
    return 2 + max(dot_latency(terms, bits, each), pairs_latency(terms, bits, each))


def _chained(x: tuple[int, int], w_bits: int, rows: int, block: int) -> tuple[int, bool, int]:
    rows_per_block, guard = sharing(x[0], w_bits, rows, block)
    return rows_per_block, bool(x[1]), guard


def sum_tables(weights: npt.NDArray[np.int64], first: int, stem: str) -> tuple[dict[str, str], dict[str, int]]:
    """Files of hg_mvu_words for weights (words, rows, columns), and its parameters FIRST, T_W and S_W."""
    words, rows, columns = weights.shape
    starts, at = [], 0
    while at < columns:
        starts.append((at, first if len(starts) % 4 == 0 else first - 1))
        at += starts[-1][1]
    address = (words - 1).bit_length()
    sums: dict[tuple[int, int, int], int] = {}
    for row in range(rows):
        for t, (start, size) in enumerate(starts):
            for word in range(words):
                for bits in range(1 << size):
                    weights_of_table = weights[word, row, start : start + size]
                    entry = bits << address | word
                    sums[row, t, entry] = int(sum(w for k, w in enumerate(weights_of_table) if bits >> k & 1))
    min_sum, products_per_chain = np.minimum(weights, 0).sum(axis=2).min(), np.maximum(weights, 0).sum(axis=2).max()
    entry_bits, sum_bits = (
        max(int(high).bit_length(), int(~low).bit_length()) + 1
        for low, high in ((min(sums.values()), max(sums.values())), (min_sum, products_per_chain))
    )
    files = {}
    for row in range(rows):
        lines = []
        for t in range(len(starts)):
            for n in range(entry_bits):
                column = sum((sums.get((row, t, e), 0) >> n & 1) << e for e in range(1 << (first + address)))
                lines.append(column)
        files[f"{stem}_{row:04d}.mem"] = memory(lines)
    return files, {"FIRST": first, "T_W": entry_bits, "S_W": max(entry_bits, sum_bits)}


def words_latency(terms: int, x_bits: int, first: int, each: int, cut: int = 0) -> int:
    """Latency of hg_words_row in cycles.

    It has one register for two DA tables. Four DA tables need one more, or two if a cycle has only one addition. `cut`
    adds a register after the DA tables. A tree over sums of four DA tables and the sum over bit positions follow.
    """
    tree, merge = (-(-terms // (4 * first - 3)) - 1).bit_length(), (x_bits - 1).bit_length()
    four = 1 if terms < 2 * first else 2 if cut or each > 1 else 3
    return cut + four - (-tree // max(each, 1)) - (-merge // max(each, 1))
