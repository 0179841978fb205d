"""FloatQuant of QONNX: minifloats, whose values are integers in units of the smallest step.

The import follows the operator in qonnx. Numbers are always signed and have subnormals, independent of the
attributes. has_inf and has_nan have an effect only without saturation, which is refused. The largest value is
the smaller one of max_val and the largest number of the given bits without reserved codes.
"""

from __future__ import annotations

import numpy as np

from hlsgen.frontend.node_context import Imported, NodeContext, elementwise
from hlsgen.frontend.quantizer_parameters import QuantizerParameters
from hlsgen.ir.ops import FloatQuant
from hlsgen.numerics.fixed import Array, Rounding

#: Maximum width of a code without its sign: the mantissa of float32.
MAX_CODE_BITS = 24
#: Smallest and largest exponent of float32.
_LOWEST, _HIGHEST = -126, 127
_MAX_BIAS = 300
_INPUTS = ("scale", "exponent_bitwidth", "mantissa_bitwidth", "exponent_bias", "max_val")


def float_quant(node: NodeContext) -> Imported:
    """FloatQuant. Raises HG013, HG014, HG020 to HG027."""
    with QuantizerParameters(node, list(_INPUTS)) as p:
        mode = p.mode("ROUND")
        for key in ("has_inf", "has_nan", "has_subnormal"):
            p.flag(key, 0)
        if not p.flag("saturation", 1):
            p.error("HG013", "attribute saturation is 0.", "Infinity and NaN have no integer code: set it to 1.")
        scale = p.scale(0)
        exponent, mantissa = p.bits(1, 0, 8), p.bits(2, 0, 23)
        bias = p.bits(3, -_MAX_BIAS, _MAX_BIAS)
        limit = _limit(p)
        _check_types(p, mode)
    with QuantizerParameters(node, list(_INPUTS)) as p:
        largest = min((2 - 2.0**-mantissa) * 2.0 ** (2**exponent - 1 - bias), limit)
        step = 1 - bias - mantissa
        units = largest / 2.0**step
        if units != np.floor(units):
            text = f"max_val is {largest:g}, no multiple of the smallest step 2^{step}."
            p.error("HG021", text, "It must be a multiple: change max_val.")
        elif units >= 1 << MAX_CODE_BITS:
            p.error(
                "HG021",
                f"values up to {largest:g} in steps of 2^{step} need {int(units).bit_length() + 1} bits as integers.",
                f"At most {MAX_CODE_BITS + 1} are supported: use fewer exponent bits, or a smaller max_val.",
            )
        smallest = np.ldexp(np.append(scale.astype(np.float64), 1), step)
        if smallest.min() < 2.0**_LOWEST or smallest.max() * units >= 2.0 ** (_HIGHEST + 1):
            text = f"the smallest step 2^{step} or the largest value {largest:g}, or their product with the scale, "
            p.error("HG022", text + "is out of float32's range.", "Change scale or exponent_bias.")
    return elementwise(node, FloatQuant(scale, mantissa, 1 - bias, largest, True, mode))


def _limit(p: QuantizerParameters) -> float:
    """The value of max_val; 1 after an error."""
    array: Array = p.array(4)
    if array.size != 1:
        p.error("HG021", f"max_val has the shape {list(array.shape)}.", "It must be a single number.")
        return 1.0
    value = float(array.reshape(()))
    if np.isnan(value):
        p.error("HG027", "max_val is NaN.", "It must be a number greater than 0.")
    elif value <= 0:
        p.error("HG021", f"max_val is {value:g}.", "It must be greater than 0.")
    return value if value > 0 else 1.0


def _check_types(p: QuantizerParameters, mode: Rounding) -> None:
    """Refuse input types for which numpy would compute another result. Reports HG026."""
    for i, name in enumerate(_INPUTS):
        if p.raw(i).dtype == np.float16:
            p.error("HG026", f"input {name} is of type float16.", "Store it as float32.")
    not_single = [name for i, name in enumerate(_INPUTS[2:4], 2) if p.raw(i).dtype not in (np.float16, np.float32)]
    if not_single and mode not in (Rounding.ROUND, Rounding.DOWN):
        text = f"{' and '.join(not_single)} of another type than float32 make numpy round in float64."
        p.error("HG026", text, "Store them as float32.")
