"""Functions of some bits as networks of lookup tables with six inputs.

`NetworkBuilder` decomposes the functions, `LutNetwork` is the result. docs/library.md describes how they are
decomposed.
"""

from __future__ import annotations

from hlsgen.lut_network.build import NetworkBuilder
from hlsgen.lut_network.decompose import LUT_INPUTS
from hlsgen.lut_network.network import Function, LutNetwork

__all__ = ["LUT_INPUTS", "Function", "LutNetwork", "NetworkBuilder"]
