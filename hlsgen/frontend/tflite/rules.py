"""The operators of TFLite that can be imported: one row each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hlsgen.frontend.tflite import (
    ops_binary,
    ops_functions,
    ops_layers,
    ops_lstm,
    ops_moves,
    ops_pool,
    ops_resize,
    ops_softmax,
    ops_state,
    ops_svdf,
)
from hlsgen.frontend.tflite.operator_node import OperatorNode

#: Types of codes.
_BYTES = frozenset({"int8", "uint8"})
_CODES = _BYTES | {"int16"}
_INT8 = frozenset({"int8"})
_HANDLES = frozenset({"resource"})
_WITHOUT_UINT8 = frozenset({"int8", "int16", "float32"}) | _HANDLES


@dataclass(frozen=True)
class Rule:
    """How an operator is imported: `convert` makes its steps.

    types: of the data that it takes, empty if it has none. micro: types of tflite-micro's kernels.
    data: number of the input that is the data.
    """

    convert: Callable[[OperatorNode], None]
    types: frozenset[str]
    data: int = 0
    micro: frozenset[str] = _WITHOUT_UINT8


RULES: dict[str, Rule] = {
    # layers
    "CONV_2D": Rule(ops_layers.conv_2d, _CODES),
    "DEPTHWISE_CONV_2D": Rule(ops_layers.depthwise_conv_2d, _CODES),
    "FULLY_CONNECTED": Rule(ops_layers.fully_connected, _CODES),
    "TRANSPOSE_CONV": Rule(ops_layers.transpose_conv, _CODES, data=2),
    # pools, means and sums of neighbours
    "AVERAGE_POOL_2D": Rule(ops_pool.average_pool_2d, _CODES),
    "MAX_POOL_2D": Rule(ops_pool.max_pool_2d, _CODES),
    "MEAN": Rule(ops_pool.mean, _CODES),
    "RESIZE_BILINEAR": Rule(ops_resize.resize_bilinear, _BYTES),
    # two inputs
    "ADD": Rule(ops_binary.add, _CODES),
    "SUB": Rule(ops_binary.sub, _CODES),
    "MUL": Rule(ops_binary.mul, _CODES),
    # functions of one code
    **{name: Rule(ops_functions.function, _CODES) for name in ("LEAKY_RELU", "LOGISTIC", "RELU", "RELU6", "TANH")},
    "DEQUANTIZE": Rule(ops_functions.dequantize, _CODES, micro=_CODES),
    **{name: Rule(ops_functions.function, _BYTES) for name in ("HARD_SWISH", "RELU_N1_TO_1")},
    "PRELU": Rule(ops_functions.prelu, _CODES, micro=_INT8),
    "QUANTIZE": Rule(ops_functions.quantize, _CODES | {"float32"}, micro=_CODES | {"float32"}),
    # rows
    "SOFTMAX": Rule(ops_softmax.softmax, _CODES),
    # recurrent
    "UNIDIRECTIONAL_SEQUENCE_LSTM": Rule(ops_lstm.unidirectional_sequence_lstm, _INT8),
    "SVDF": Rule(ops_svdf.svdf, _INT8),
    # moves
    "CONCATENATION": Rule(ops_moves.concatenation, _CODES),
    "EXPAND_DIMS": Rule(ops_moves.reshape, _CODES),
    "GATHER": Rule(ops_moves.gather, _CODES, micro=_INT8),
    "PACK": Rule(ops_moves.pack, _CODES),
    "PAD": Rule(ops_moves.pad, _CODES),
    "PADV2": Rule(ops_moves.pad_v2, _CODES),
    "RESHAPE": Rule(ops_moves.reshape, _CODES),
    "RESIZE_NEAREST_NEIGHBOR": Rule(ops_moves.resize_nearest_neighbor, _CODES),
    "SLICE": Rule(ops_moves.slice_, _CODES),
    "SPLIT": Rule(ops_moves.split, _CODES, data=1),
    "SPLIT_V": Rule(ops_moves.split_v, _CODES),
    "SQUEEZE": Rule(ops_moves.reshape, _CODES),
    "STRIDED_SLICE": Rule(ops_moves.strided_slice, _CODES),
    "TRANSPOSE": Rule(ops_moves.transpose, _CODES),
    "UNPACK": Rule(ops_moves.unpack, _CODES),
    # variables
    "ASSIGN_VARIABLE": Rule(ops_state.assign_variable, _HANDLES),
    "CALL_ONCE": Rule(ops_state.call_once, frozenset()),
    "READ_VARIABLE": Rule(ops_state.read_variable, _HANDLES),
    "VAR_HANDLE": Rule(ops_state.var_handle, frozenset()),
}
