"""Numbers and names of the public TFLite schema (schema.fbs, version 3), as far as the reader needs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

#: Four bytes behind the first offset of every file.
IDENTIFIER = b"TFL3"
#: Names of the element types by number.
TYPES = (
    "float32 float16 int32 uint8 int64 string bool int16 complex64 int8 float64 complex128 uint64 resource variant "
    "uint32 uint16 int4 bfloat16 int2 uint4 float8_e4m3fn float8_e5m2"
).split()
#: Types whose elements are whole bytes that numpy has by the same name.
PLAIN_TYPES = frozenset("float32 float16 int32 uint8 int64 bool int16 int8 float64 uint64 uint32 uint16".split())
#: Types without elements in the file.
HANDLES = frozenset({"resource"})
#: Kinds of `QuantizationParameters.details` beside none.
QUANTIZATION_DETAILS = {1: "custom", 2: "of blocks", 3: "of several axes"}
PADDINGS = ("SAME", "VALID")
ACTIVATIONS = ("NONE", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "SIGN_BIT")
WEIGHTS_FORMATS = ("DEFAULT", "SHUFFLED4x16INT8")
MIRROR_MODES = ("REFLECT", "SYMMETRIC")
#: Names of the operators by number.
OPERATORS = """
    ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE EMBEDDING_LOOKUP FLOOR
    FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION LOGISTIC LSH_PROJECTION
    LSTM MAX_POOL_2D MUL RELU RELU_N1_TO_1 RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH SVDF TANH
    CONCAT_EMBEDDINGS SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD UNIDIRECTIONAL_SEQUENCE_RNN GATHER
    BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE
    BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM
    ARG_MAX MINIMUM LESS NEG PADV2 GREATER GREATER_EQUAL LESS_EQUAL SELECT SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE
    TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT RSQRT SHAPE POW ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK
    LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT UNPACK REDUCE_MIN FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD
    RANGE RESIZE_NEAREST_NEIGHBOR LEAKY_RELU SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N
    GATHER_ND COS WHERE RANK ELU REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND HARD_SWISH IF WHILE
    NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM BATCH_MATMUL
    PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D IMAG REAL COMPLEX_ABS HASHTABLE
    HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE
    ASSIGN_VARIABLE BROADCAST_ARGS RANDOM_STANDARD_NORMAL BUCKETIZE RANDOM_UNIFORM MULTINOMIAL GELU
    DYNAMIC_UPDATE_SLICE RELU_0_TO_1 UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM ATAN2
    UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR RIGHT_SHIFT STABLEHLO_LOGISTIC STABLEHLO_ADD STABLEHLO_DIVIDE
    STABLEHLO_MULTIPLY STABLEHLO_MAXIMUM STABLEHLO_RESHAPE STABLEHLO_CLAMP STABLEHLO_CONCATENATE
    STABLEHLO_BROADCAST_IN_DIM STABLEHLO_CONVOLUTION STABLEHLO_SLICE STABLEHLO_CUSTOM_CALL STABLEHLO_REDUCE
    STABLEHLO_ABS STABLEHLO_AND STABLEHLO_COSINE STABLEHLO_EXPONENTIAL STABLEHLO_FLOOR STABLEHLO_LOG STABLEHLO_MINIMUM
    STABLEHLO_NEGATE STABLEHLO_OR STABLEHLO_POWER STABLEHLO_REMAINDER STABLEHLO_RSQRT STABLEHLO_SELECT
    STABLEHLO_SUBTRACT STABLEHLO_TANH STABLEHLO_SCATTER STABLEHLO_COMPARE STABLEHLO_CONVERT STABLEHLO_DYNAMIC_SLICE
    STABLEHLO_DYNAMIC_UPDATE_SLICE STABLEHLO_PAD STABLEHLO_IOTA STABLEHLO_DOT_GENERAL STABLEHLO_REDUCE_WINDOW
    STABLEHLO_SORT STABLEHLO_WHILE STABLEHLO_GATHER STABLEHLO_TRANSPOSE DILATE STABLEHLO_RNG_BIT_GENERATOR
    REDUCE_WINDOW STABLEHLO_COMPOSITE STABLEHLO_SHIFT_LEFT STABLEHLO_CBRT STABLEHLO_CASE
""".split()
#: Kind of an option's value. "name": one of `names`, by its number as int8.
OptionKind = Literal["int32", "bool", "float32", "name", "text", "int32s"]


@dataclass(frozen=True)
class Option:
    """A field of an operator's options. names: of a value of kind "name"."""

    number: int
    kind: OptionKind
    default: Any
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Options:
    """The options of an operator. type: their number in the union `BuiltinOptions`."""

    type: int
    fields: dict[str, Option]


def _int32(number: int, default: int = 0) -> Option:
    return Option(number, "int32", default)


def _bool(number: int, default: bool = False) -> Option:
    return Option(number, "bool", default)


def _float32(number: int) -> Option:
    return Option(number, "float32", 0.0)


def _activation(number: int) -> Option:
    return Option(number, "name", "NONE", ACTIVATIONS)


_WINDOW = {"padding": Option(0, "name", "SAME", PADDINGS), "stride_w": _int32(1), "stride_h": _int32(2)}
_POOL = Options(
    5, {**_WINDOW, "filter_width": _int32(3), "filter_height": _int32(4), "fused_activation_function": _activation(5)}
)
_REDUCER = Options(27, {"keep_dims": _bool(0)})
#: Options of the operators whose options the importer reads. Other options are not parsed.
OPTIONS: dict[str, Options] = {
    "CONV_2D": Options(
        1,
        {
            **_WINDOW,
            "fused_activation_function": _activation(3),
            "dilation_w_factor": _int32(4, 1),
            "dilation_h_factor": _int32(5, 1),
        },
    ),
    "DEPTHWISE_CONV_2D": Options(
        2,
        {
            **_WINDOW,
            "depth_multiplier": _int32(3),
            "fused_activation_function": _activation(4),
            "dilation_w_factor": _int32(5, 1),
            "dilation_h_factor": _int32(6, 1),
        },
    ),
    "AVERAGE_POOL_2D": _POOL,
    "MAX_POOL_2D": _POOL,
    "SVDF": Options(
        6, {"rank": _int32(0), "fused_activation_function": _activation(1), "asymmetric_quantize_inputs": _bool(2)}
    ),
    "FULLY_CONNECTED": Options(
        8,
        {
            "fused_activation_function": _activation(0),
            "weights_format": Option(1, "name", "DEFAULT", WEIGHTS_FORMATS),
            "keep_num_dims": _bool(2),
            "asymmetric_quantize_inputs": _bool(3),
        },
    ),
    "SOFTMAX": Options(9, {"beta": _float32(0)}),
    "CONCATENATION": Options(10, {"axis": _int32(0), "fused_activation_function": _activation(1)}),
    "ADD": Options(11, {"fused_activation_function": _activation(0), "pot_scale_int16": _bool(1, True)}),
    "RESIZE_BILINEAR": Options(15, {"align_corners": _bool(2), "half_pixel_centers": _bool(3)}),
    "RESHAPE": Options(17, {"new_shape": Option(0, "int32s", ())}),
    "MUL": Options(21, {"fused_activation_function": _activation(0)}),
    "GATHER": Options(23, {"axis": _int32(0), "batch_dims": _int32(1)}),
    "MEAN": _REDUCER,
    "SUM": _REDUCER,
    "REDUCE_MAX": _REDUCER,
    "REDUCE_MIN": _REDUCER,
    "SUB": Options(28, {"fused_activation_function": _activation(0), "pot_scale_int16": _bool(1, True)}),
    "SQUEEZE": Options(30, {"squeeze_dims": Option(0, "int32s", ())}),
    "STRIDED_SLICE": Options(
        32,
        {
            "begin_mask": _int32(0),
            "end_mask": _int32(1),
            "ellipsis_mask": _int32(2),
            "new_axis_mask": _int32(3),
            "shrink_axis_mask": _int32(4),
            "offset": _bool(5),
        },
    ),
    "SPLIT": Options(35, {"num_splits": _int32(0)}),
    "TRANSPOSE_CONV": Options(49, {**_WINDOW, "fused_activation_function": _activation(3)}),
    "PACK": Options(59, {"values_count": _int32(0), "axis": _int32(1)}),
    "UNPACK": Options(64, {"num": _int32(0), "axis": _int32(1)}),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": Options(
        71,
        {
            "fused_activation_function": _activation(0),
            "cell_clip": _float32(1),
            "proj_clip": _float32(2),
            "time_major": _bool(3),
            "asymmetric_quantize_inputs": _bool(4),
            "diagonal_recurrent_tensors": _bool(5),
        },
    ),
    "RESIZE_NEAREST_NEIGHBOR": Options(74, {"align_corners": _bool(0), "half_pixel_centers": _bool(1)}),
    "LEAKY_RELU": Options(75, {"alpha": _float32(0)}),
    "MIRROR_PAD": Options(77, {"mode": Option(0, "name", "REFLECT", MIRROR_MODES)}),
    "SPLIT_V": Options(79, {"num_splits": _int32(0)}),
    "CALL_ONCE": Options(103, {"init_subgraph_index": _int32(0)}),
    "VAR_HANDLE": Options(111, {"container": Option(0, "text", ""), "shared_name": Option(1, "text", "")}),
}


def is_tflite(data: bytes) -> bool:
    """True if the bytes name themselves a TFLite file."""
    return data[4:8] == IDENTIFIER
