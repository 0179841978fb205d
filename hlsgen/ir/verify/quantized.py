"""Types and dtypes of codes: what quantizers give."""

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
    """The dtype that codes are decoded to."""
    return item.dtype if isinstance(item, IntegerEncoding) else "float32"


def verify_type(place: Place, found: IntType, expected: IntType) -> None:
    """The type of a result is the one that follows from the layer."""
    place.require(found == expected, "result.type", found, expected)


def verify_quantized(place: Place, quantizer: Quantizer, dtype: str | None, result: Value) -> None:
    """The codes of a quantizer, in its type and with its meaning. Of Trunc and integer functions the type may be narrower."""
    verify_op(place, quantizer, result.shape, dtype)
    full = code_type(quantizer)
    narrowed = isinstance(quantizer, IntegerActivation | IntegerRatio)
    if narrowed or (isinstance(quantizer, Trunc) and quantizer.type is None):
        inside = full.lo <= result.type.lo and result.type.hi <= full.hi
        place.require(inside, "result.type", result.type, f"within {full}")
    else:
        verify_type(place, result.type, full)
    same = same_encoding(result.encoding, decoding(quantizer))
    place.require(same, "result.encoding", result.encoding, decoding(quantizer))
