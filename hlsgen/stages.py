"""The pipeline that carries a frame: streams and the units between them. Pure data."""

from __future__ import annotations

from dataclasses import dataclass

from hlsgen.fixed import Array, IntType
from hlsgen.rescale import Single
from hlsgen.rescale.floats import Unit

#: Adder levels between pipeline registers (parameter EVERY of the library).
TREE_LEVELS = 2
FLOAT_WORD = IntType(0, 0xFFFFFFFF)


@dataclass(frozen=True)
class Stream:
    """`beats` a frame of `lanes` elements of a type."""

    type: IntType
    lanes: int
    beats: int

    @property
    def bits(self) -> int:
        return self.type.bits * self.lanes


@dataclass(frozen=True)
class Port:
    """hg_axis_in or hg_axis_out."""


@dataclass(frozen=True)
class KeyStage:
    """hg_float_key."""


@dataclass(frozen=True)
class WidthStage:
    """hg_width."""


@dataclass(frozen=True, eq=False)
class RescaleStage:
    """A realization of step functions; table (folds, lanes) holds the function set of each lane."""

    found: Single
    table: Array


@dataclass(frozen=True, eq=False)
class FloatStage:
    """One hg_f32_* unit."""

    unit: Unit
    table: Array


@dataclass(frozen=True, eq=False)
class MatrixStage:
    """hg_mvu: `vectors` a frame, weight int64 with columns in stream order; mode as in hg_mvu."""

    weight: Array
    mode: int
    pe: int
    simd: int
    vectors: int

    @property
    def row_folds(self) -> int:
        return len(self.weight) // self.pe

    @property
    def col_folds(self) -> int:
        return int(self.weight.shape[1]) // self.simd

    @property
    def dot_latency(self) -> int:
        terms = -(-self.simd // (6 if self.mode == 2 else 4))
        return 1 + (terms - 1).bit_length() // TREE_LEVELS


@dataclass(frozen=True)
class WinnerStage:
    """hg_argmax."""

    beats: int


Work = Port | KeyStage | WidthStage | RescaleStage | FloatStage | MatrixStage | WinnerStage


@dataclass(frozen=True, eq=False)
class Stage:
    """A unit between two streams. `layer`: name of the model node it works for, "" for plumbing.

    `position`: index of the graph's layer whose result this stage delivers, -1 if none.
    """

    name: str
    unit: Work
    source: Stream
    result: Stream
    layer: str = ""
    position: int = -1
