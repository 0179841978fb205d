"""The units that multiply codes by weights. The weights are the layer's own: how a memory holds them is up to a target."""

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

    Where a weight is a bit it cannot be 0. The lanes of a beat that have no element must hold the code 0 there.
    """

    INTEGER = "integer"  # any weights
    BIPOLAR = "bipolar"  # weights of -1 and 1, a bit each
    AGREEMENTS = "agreements"  # codes and weights are bits, and those that are equal are counted


def product_of(layer: Linear | Convolution, *, empty_zero: bool = True) -> Product:
    """The narrowest form that the layer's weights allow; `empty_zero`: empty lanes can be made to hold 0."""
    if layer.binary:
        return Product.AGREEMENTS
    return Product.BIPOLAR if empty_zero and (np.abs(layer.weight) == 1).all() else Product.INTEGER


def worth_a_block(x: IntType, bits: int, product: Product) -> bool:
    """Whether products of codes and weights of `bits` go to multiplier blocks, where those are to be used."""
    return product is Product.INTEGER and bits > 2 and x.bits > 2


@dataclass(frozen=True)
class Blocks:
    """Products in multiplier blocks. `factor`: bits of the wider factor of a block. `x`: the type of a code."""

    factor: int
    x: IntType


@dataclass(frozen=True)
class SumTables:
    """Weights that never change as tables of their sums: there are no products, and no memory of weights.

    `first`: codes of the first table of each four, of which the others have one less. `x_bits`: of a code. `cut`: a register
    stands between tables and what adds them.
    """

    first: int
    x_bits: int
    cut: bool = False


@dataclass(frozen=True, eq=False)
class MatVec:
    """Products of a matrix with `vectors` vectors a frame.

    weight int64 (rows, taps, columns) as the layer has it; order int64 (columns,): the column that comes k-th.
    PE rows and SIMD elements are worked on at once. A vector comes in `col_folds` beats, each with SIMD / taps
    columns of every tap in turn, and is used `row_folds` times. Or `windows` vectors come in a beat: then
    the same columns of all of them, tap by tap. `every`, `memory`: see `pipelining` and `weight_memories`. `sums`: tables of sums instead of products.
    `blocks`: where products are in blocks.
    """

    weight: Array
    order: Array
    product: Product
    pe: int
    simd: int
    vectors: int
    windows: int = 1
    every: int = 2
    memory: str = ""
    sums: SumTables | None = None
    blocks: Blocks | None = None

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
        """Cycles of a vector."""
        return self.row_folds * self.col_folds

    @property
    def lanes(self) -> int:
        """Weights that are used in a cycle."""
        return self.pe * self.simd


@dataclass(frozen=True, eq=False)
class AdderMatVec:
    """The same products as those of a matrix that works on whole vectors, one a beat, with weights that never change.

    `every`: see Pipelining. `behind`: picoseconds in front of the first register of a unit that takes sums of adders
    before they are in registers; None: they are in registers. `before`: picoseconds from a register to the codes of adders.
    `joined`: it stands still with the quantizer behind it only. `bare`: sums leave without inverters, see `inverted_bits`.
    """

    matrix: MatVec
    graph: AdderGraph | AgreementGraph
    every: int = 2
    behind: int | None = None
    before: int = 0
    joined: bool = False
    bare: bool = False


@dataclass(frozen=True, eq=False)
class ConvUnit:
    """A convolution tap by tap, on images of height x width pixels that it keeps as long as a window needs them.

    weight int64 (outputs, taps, columns) as the layer has it, with the columns of a group; order int64
    (columns,): the column that comes k-th. A pixel is `groups` * `folds` words of SIMD elements. Every group of
    a window is read `repeat` times, for PE outputs each time: (kernel row, kernel column, fold), one word a
    cycle. If `depthwise`, every element is a group: then SIMD = PE, `groups` counts words, and each lane has a
    sum of its own. `pad`: the code outside of the image. `depth`: words in the buffer.
    `every`, `memory`: see `pipelining` and `weight_memories`. `blocks`: where products are in blocks.
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
    every: int = 2
    memory: str = ""
    blocks: Blocks | None = None

    @property
    def period(self) -> int:
        """Cycles of a window."""
        return self.groups * self.repeat * self.window.taps * self.folds

    @property
    def lanes(self) -> int:
        """Weights that are used in a cycle."""
        return self.pe if self.depthwise else self.pe * self.simd


@dataclass(frozen=True, eq=False)
class GroupedMatVec:
    """Sums over groups of elements with all their taps at once: PE / rows groups, or those of several windows.

    weight int64 (outputs, taps, columns) as the layer has it, `rows` outputs and `columns` elements a tap belong
    to a group. Depthwise: groups of one element. `every`, `memory`: see `pipelining` and `weight_memories`. `blocks`: where products are in blocks.
    """

    weight: Array
    product: Product
    pe: int
    rows: int = 1
    every: int = 2
    memory: str = ""
    blocks: Blocks | None = None

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
        """Beats of a window."""
        return -(-len(self.weight) // self.pe)

    @property
    def lanes(self) -> int:
        """Weights that are used in a cycle."""
        return self.pe * self.simd


#: Units with weights.
WeightedUnit = MatVec | ConvUnit | GroupedMatVec


def weight_bits(unit: WeightedUnit) -> int:
    """Bits of a weight: one, or those of the two's complement that holds all of them and 0."""
    if unit.product is not Product.INTEGER:
        return 1
    return IntType(min(-1, int(unit.weight.min())), max(0, int(unit.weight.max()))).bits


def weight_words(unit: WeightedUnit) -> int:
    """Sets of `lanes` weights that a frame uses one after the other, again and again."""
    return unit.period if isinstance(unit, ConvUnit) else unit.folds
