"""Functions of some bits as networks of lookup tables with six inputs.

`LutNetworkBuilder` decomposes the functions, `LutNetwork` is the result. docs/rescaling.md describes how they are
decomposed.
"""

from __future__ import annotations

from hlsgen.lut_network.build import LutNetworkBuilder
from hlsgen.lut_network.decompose import LUT_INPUTS
from hlsgen.lut_network.network import LutFunction, LutNetwork

__all__ = ["LUT_INPUTS", "LutFunction", "LutNetwork", "LutNetworkBuilder"]
