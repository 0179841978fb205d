"""Rules of quantizer results: types and dtypes of codes."""

from __future__ import annotations

from hlsgen.ir.encoding import Encoding, IntegerEncoding
from hlsgen.ir.evaluate import code_type, decoding
from hlsgen.ir.graph import Value
from hlsgen.ir.ops import IntegerActivation, IntegerRatio, Quantizer, Trunc
from hlsgen.ir.verify.elementwise import verify_op
from hlsgen.ir.verify.encoding import same_encoding
from hlsgen.ir.verify.violations import Place
from hlsgen.numerics.fixed import IntType


def dtype_of(item: Encoding) -> str:
    """The dtype of decoded codes."""
    return item.dtype if isinstance(item, IntegerEncoding) else "float32"


def verify_type(place: Place, type_: IntType, expected: IntType) -> None:
    """Check that the type of a result is the one that follows from the layer."""
    place.require(type_ == expected, "result.type", type_, expected)


def verify_quantized(place: Place, quantizer: Quantizer, dtype: str | None, result: Value) -> None:
    """Check that the codes have the quantizer's type and encoding.

    The type may be narrower after a Trunc without a type and after integer functions.
    """
    verify_op(place, quantizer, result.shape, dtype)
    widest = code_type(quantizer)
    narrowed = isinstance(quantizer, IntegerActivation | IntegerRatio)
    if narrowed or (isinstance(quantizer, Trunc) and quantizer.type is None):
        inside = widest.lo <= result.type.lo and result.type.hi <= widest.hi
        place.require(inside, "result.type", result.type, f"within {widest}")
    else:
        verify_type(place, result.type, widest)
    matches = same_encoding(result.encoding, decoding(quantizer))
    place.require(matches, "result.encoding", result.encoding, decoding(quantizer))
