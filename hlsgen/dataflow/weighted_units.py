"""The units that multiply codes by weights. They hold the layer's weights; a target decides how a memory stores
them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from hlsgen.adder_graph import AdderGraph, AgreementGraph
from hlsgen.ir import Convolution, Linear
from hlsgen.ir.window import Window
from hlsgen.numerics.fixed import Array, IntType


class Product(Enum):
    """How a unit multiplies codes and weights.

    A weight of one bit cannot be 0. The lanes of a beat without an element must then hold the code 0.
    """

    INTEGER = "integer"  # any weights
    BIPOLAR = "bipolar"  # weights of -1 and 1, a bit each
    AGREEMENTS = "agreements"  # codes and weights are bits; counts equal bits


def product_of(layer: Linear | Convolution, *, empty_zero: bool = True) -> Product:
    """The narrowest product that the layer's weights allow; `empty_zero`: empty lanes can be made to hold 0."""
    if layer.binary:
        return Product.AGREEMENTS
    return Product.BIPOLAR if empty_zero and (np.abs(layer.weight) == 1).all() else Product.INTEGER


def worth_a_dsp_block(x: IntType, bits: int, product: Product) -> bool:
    """True if products of codes and weights of `bits` bits go to DSP blocks, if these are preferred."""
    return product is Product.INTEGER and bits > 2 and x.bits > 2


@dataclass(frozen=True)
class DspProducts:
    """Products in DSP blocks. `factor_bits`: bits of the wider factor of a block. `x`: the type of a code."""

    factor_bits: int
    x: IntType


@dataclass(frozen=True)
class SumTables:
    """Constant weights as distributed arithmetic (DA) tables: there are no products, and no weight memory.

    `first`: codes of the first DA table of each four; the others have one less. `x_bits`: bits of a code. `cut`: there
    is a register between the tables and their adders.
    """

    first: int
    x_bits: int
    cut: bool = False


@dataclass(frozen=True, eq=False)
class MatVec:
    """Products of a matrix with `vectors` vectors a frame.

    weight int64 (rows, taps, columns) as in the layer; order int64 (columns,): the column that arrives k-th. PE rows
    and SIMD elements are processed at once. A vector arrives in `col_folds` beats, each with SIMD / taps columns of
    every tap in turn, and is used `row_folds` times. If `windows` is above 1, a beat has the same columns of that
    number of vectors, tap by tap. `adders_per_stage`, `memory`: see `pipelining` and `weight_memories`. `sums`: DA
    tables instead of products. `dsp`: products in DSP blocks.
    """

    weight: Array
    order: Array
    product: Product
    pe: int
    simd: int
    vectors: int
    windows: int = 1
    adders_per_stage: int = 2
    memory: str = ""
    sums: SumTables | None = None
    dsp: DspProducts | None = None

    @property
    def taps(self) -> int:
        return int(self.weight.shape[1])

    @property
    def row_folds(self) -> int:
        return -(-len(self.weight) // self.pe)

    @property
    def col_folds(self) -> int:
        return -(-int(self.weight.shape[2]) // (self.simd // self.taps))

    @property
    def folds(self) -> int:
        """Cycles per vector."""
        return self.row_folds * self.col_folds

    @property
    def lanes(self) -> int:
        """Weights used in a cycle."""
        return self.pe * self.simd


@dataclass(frozen=True, eq=False)
class AdderMatVec:
    """The products of a matrix with constant weights that processes whole vectors, one a beat.

    - `adders_per_stage`: see Pipelining.
    - `consumer_ps`: delay of the consumer before its first register, in picoseconds, if the sums reach it unregistered.
      It is None if they are registered. `producer_ps`: picoseconds from a register to the input codes.
    - `joined`: it shares its enable with the next quantizer only.
    - `omits_inverters`: sums leave without inverters, and the consumer inverts their bits.
    - `unread`: low bits of each sum that the consumer ignores, for estimates: synthesis removes them. Empty: none.
    """

    matrix: MatVec
    graph: AdderGraph | AgreementGraph
    adders_per_stage: float = 2
    consumer_ps: int | None = None
    producer_ps: int = 0
    joined: bool = False
    omits_inverters: bool = False
    unread: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class ConvUnit:
    """A convolution tap by tap, on images of height x width pixels that it buffers while a window needs them.

    weight int64 (outputs, taps, columns) as in the layer, with the columns of a group; order int64 (columns,): the
    column that arrives k-th. A pixel is `groups` * `folds` words of SIMD elements. Every group of a window is read
    `repeat` times, for PE outputs each time: (kernel row, kernel column, fold), one word a cycle. If `depthwise`, every
    element is a group: then SIMD = PE, `groups` counts words, and each lane has its own sum. `pad`: the code outside of
    the image. `depth`: words in the buffer. `adders_per_stage`, `memory`: see `pipelining` and `weight_memories`.
    `dsp`: products in DSP blocks.
    """

    weight: Array
    order: Array
    product: Product
    window: Window
    height: int
    width: int
    groups: int
    folds: int
    repeat: int
    pe: int
    simd: int
    depthwise: bool
    pad: int
    depth: int
    adders_per_stage: int = 2
    memory: str = ""
    dsp: DspProducts | None = None

    @property
    def period(self) -> int:
        """Cycles per window."""
        return self.groups * self.repeat * self.window.taps * self.folds

    @property
    def lanes(self) -> int:
        """Weights used in a cycle."""
        return self.pe if self.depthwise else self.pe * self.simd


@dataclass(frozen=True, eq=False)
class GroupedMatVec:
    """Sums over groups of elements with all their taps at once: PE / rows groups, or groups of several windows.

    weight int64 (outputs, taps, columns) as in the layer; `rows` outputs and `columns` elements a tap belong to a
    group. Depthwise: groups of one element. `adders_per_stage`, `memory`: see `pipelining` and `weight_memories`.
    `dsp`: products in DSP blocks.
    """

    weight: Array
    product: Product
    pe: int
    rows: int = 1
    adders_per_stage: int = 2
    memory: str = ""
    dsp: DspProducts | None = None

    @property
    def taps(self) -> int:
        return int(self.weight.shape[1])

    @property
    def columns(self) -> int:
        return int(self.weight.shape[2])

    @property
    def simd(self) -> int:
        return self.taps * self.columns

    @property
    def folds(self) -> int:
        """Beats per window."""
        return -(-len(self.weight) // self.pe)

    @property
    def lanes(self) -> int:
        """Weights used in a cycle."""
        return self.pe * self.simd


#: Units with weights.
WeightedUnit = MatVec | ConvUnit | GroupedMatVec


def weight_bits(unit: WeightedUnit) -> int:
    """Bits of a weight: one, or the two's complement width that holds all weights and 0."""
    if unit.product is not Product.INTEGER:
        return 1
    return IntType(min(-1, int(unit.weight.min())), max(0, int(unit.weight.max()))).bits


def has_weight_memory(unit: object) -> bool:
    """True for a unit with weights that reads them from a memory; DA tables hold sums of weights instead."""
    return isinstance(unit, WeightedUnit) and not (isinstance(unit, MatVec) and unit.sums is not None)


def weight_words(unit: WeightedUnit) -> int:
    """Words of `lanes` weights that a frame uses in a repeating sequence."""
    return unit.period if isinstance(unit, ConvUnit) else unit.folds
