"""The table of supported operators: one row each, with its importing function.

A new operator needs one row and one function from a `NodeContext` to an `Imported`. `Rule(function)` is for a function
of single elements of float data: input 0 is the data, the others are constants. `operator_rule` describes all fields
of a row. The functions before the table build rows of the same kind.
"""

from __future__ import annotations

import numpy as np
import onnx

from hlsgen.diagnostics import HlsgenError, fail
from hlsgen.frontend import (
    constants,
    deeploy_rows,
    dialect_deeploy,
    dialect_float8,
    dialect_integer,
    dialect_qlinear,
    dialect_qonnx,
    im2col,
    norm_patterns,
    ops_broadcast,
    ops_bytes,
    ops_compare_select,
    ops_conv,
    ops_einsum,
    ops_gather,
    ops_image,
    ops_linear,
    ops_matrix_product,
    ops_multi_operand,
    ops_norm,
    ops_pool,
    ops_resize,
    ops_shape,
    ops_standard,
    ops_states,
    qdq_softmax,
    two_inputs,
)
from hlsgen.frontend.constants import evaluated, quantized_by, rearranged, refused
from hlsgen.frontend.dialect_qonnx_floatquant import float_quant
from hlsgen.frontend.domains import CHANNELS_LAST, HLSGEN, MICROSOFT, ONNX, QONNX
from hlsgen.frontend.folded_groups import fold_by_steps
from hlsgen.frontend.foreign_domains import unknown_domain
from hlsgen.frontend.node_context import Imported, NodeContext
from hlsgen.frontend.onnx_graph import all_nodes, inner_nodes
from hlsgen.frontend.operator_rule import Convert, Dtypes, Fold, Operands, Role, Rule
from hlsgen.frontend.ops_activations import activation, celu, gelu, power, prelu, swish
from hlsgen.frontend.ops_attention import ATTENTION, MULTI_HEAD
from hlsgen.frontend.ops_host import arg_max, arg_min, on_host, top_k
from hlsgen.frontend.ops_multi_operand import joined
from hlsgen.frontend.ops_standard import with_constant
from hlsgen.frontend.quant_lstm import QUANT_LSTM
from hlsgen.frontend.shared_loop_body import PREVIOUS, STATE
from hlsgen.ir.ops import BinaryKind, Mul, Relation

ANY = Dtypes.ANY

# --------------------------------------------------------------------------- kinds of rows


def qonnx_quantizer(convert: Convert) -> Rule:
    """A quantizer of QONNX, which also quantizes constants."""
    convert_all = dialect_qonnx.accepting_integers(convert)
    return Rule(convert_all, ANY, Operands.PARAMETERS, fold=quantized_by(convert), role=Role.QUANTIZER)


def quantized(node: NodeContext) -> Imported:
    """QuantizeLinear to integers, or to floats of 8 or 4 bits."""
    kind = dialect_float8.kind_of_result(node)
    return dialect_integer.quantize_linear(node) if kind is None else dialect_float8.quantize_linear(node, kind)


def dequantized(node: NodeContext) -> Imported:
    """DequantizeLinear of integers, or of floats of 8 or 4 bits."""
    if node.dtype in dialect_float8.FORMATS:
        return dialect_float8.dequantize_linear(node)
    return dialect_integer.dequantize_linear(node)


def rescaling(convert: Convert, operands: Operands, join: Convert | None = None, fold: Fold = refused) -> Rule:
    """An integer quantizer whose result has the type of the data."""
    return Rule(convert, ANY, operands, join, fold, role=Role.QUANTIZER)


def retyping(convert: Convert, operands: Operands, fold: Fold = refused) -> Rule:
    """A quantizer or dequantizer whose result has another type than the data."""
    return Rule(convert, ANY, operands, fold=fold, role=Role.QUANTIZER, keeps_type=False)


def linear(convert: Convert, operands: Operands, fold: Fold = refused, join: Convert | None = None) -> Rule:
    """A layer that multiplies data with weights; `join`: for two computed matrices."""
    return Rule(convert, ANY, operands, join, fold, Role.LAYER, keeps_type=False)


def arithmetic(convert: Convert, kind: BinaryKind, fold: Fold = evaluated) -> Rule:
    """An operator on two operands, one of them constant; `kind`: the operation on two computed ones."""
    return Rule(convert, ANY, Operands.EITHER, joined(kind), fold)


def comparison(data_first: Relation, data_second: Relation, fold: Fold = evaluated) -> Rule:
    """A comparison; the relation of data to constant for the data as first operand, and as second."""
    convert = ops_compare_select.compared(data_first, data_second)
    return Rule(convert, ANY, Operands.EITHER, ops_multi_operand.compared(data_first), fold, keeps_type=False)


def of_bytes(function: ops_bytes.Function, convert: Convert | None = None) -> Rule:
    """A function of 8-bit integers as a lookup table; `convert`: importing function for a constant operand."""
    convert = convert or ops_bytes.with_constant(function)
    return Rule(convert, ANY, Operands.EITHER, ops_bytes.of_two_tensors(function), evaluated)


def logic(convert: Convert, join: Convert | None = None) -> Rule:
    """A function of booleans."""
    return Rule(convert, ANY, Operands.EITHER, join, evaluated, keeps_type=False)


def renaming(convert: Convert) -> Rule:
    """An operator that only moves elements."""
    return Rule(convert, ANY, fold=rearranged, keeps_type=False)


def image(convert: Convert, fold: Fold = refused, role: Role = Role.ELEMENTS) -> Rule:
    """An operator on images; before the first quantizer or layer the host computes it, with all attributes."""
    return Rule(convert, ANY, fold=fold, role=role, host_first=True, keeps_type=False)


def normalization(convert: Convert, fold: Fold = refused) -> Rule:
    """A normalization of float32; before the first quantizer or layer the host computes it."""
    return Rule(convert, fold=fold, role=Role.LAYER, host_first=True)


def host(fold: Fold = refused) -> Rule:
    """An operator that only the host computes."""
    return Rule(on_host, fold=fold, role=Role.HOST)


# --------------------------------------------------------------------------- the table

#: Domains of rows, besides ONNX and QONNX: sets of node.domain.
ORT = frozenset([MICROSOFT])
QONNX_OR_NONE = QONNX | {""}
IMAGES = ONNX | QONNX | {CHANNELS_LAST}
OWN = frozenset([HLSGEN])
#: Nodes that the importer has fused.
PATTERN = frozenset([norm_patterns.DOMAIN])
#: Operators whose names mean the same in every domain.
ANYWHERE = ONNX | frozenset(["*"])

RULES: dict[tuple[frozenset[str], str], Rule] = {
    # Quantizers of QONNX, which exporters also put into the default domain.
    (QONNX_OR_NONE, "IntQuant"): qonnx_quantizer(dialect_qonnx.int_quant),
    (QONNX_OR_NONE, "Quant"): qonnx_quantizer(dialect_qonnx.int_quant),
    (QONNX_OR_NONE, "BipolarQuant"): qonnx_quantizer(dialect_qonnx.bipolar_quant),
    (QONNX_OR_NONE, "Trunc"): qonnx_quantizer(dialect_qonnx.trunc),
    (QONNX_OR_NONE, "MultiThreshold"): qonnx_quantizer(dialect_qonnx.multi_threshold),
    (QONNX_OR_NONE, "FloatQuant"): qonnx_quantizer(float_quant),
    # Quantizers of integer ONNX, of Deeploy, of hlsgen itself.
    (ONNX | ORT, "QuantizeLinear"): retyping(quantized, Operands.INTEGER, constants.quantize_linear),
    (ONNX | ORT, "DequantizeLinear"): retyping(dequantized, Operands.INTEGER, constants.dequantize_linear),
    (ANYWHERE, "RequantShift"): rescaling(dialect_deeploy.requant_shift, Operands.INTEGER),
    (ANYWHERE, "iGELU"): rescaling(dialect_deeploy.integer_gelu, Operands.INTEGER),
    (ANYWHERE, "iHardswish"): rescaling(dialect_deeploy.integer_hardswish, Operands.INTEGER),
    (ANYWHERE, "iNoNorm"): rescaling(dialect_deeploy.integer_no_norm, Operands.INTEGER),
    (ANYWHERE, "IntegerDiv"): rescaling(dialect_deeploy.integer_division, Operands.EITHER),
    (ANYWHERE, "TrueIntegerDiv"): rescaling(dialect_deeploy.integer_division, Operands.EITHER),
    (ANYWHERE, "iSoftmax"): linear(deeploy_rows.integer_softmax, Operands.INTEGER),
    (ANYWHERE, "ITAMax"): linear(deeploy_rows.ita_max, Operands.INTEGER),
    (ANYWHERE, "ITAPartialMax"): linear(deeploy_rows.ita_partial_max, Operands.INTEGER),
    (ANYWHERE, "iLayerNorm"): linear(deeploy_rows.layer_norm, Operands.INTEGER),
    (ANYWHERE, "iRMSNorm"): linear(deeploy_rows.rms_norm, Operands.INTEGER),
    (ANYWHERE, "IntegerMean"): retyping(dialect_deeploy.integer_mean, Operands.INTEGER),
    (OWN, "Requantize"): retyping(dialect_integer.requantize, Operands.EITHER),
    (OWN, "QuantizedAdd"): rescaling(two_inputs.quantized_add, Operands.EITHER, ops_multi_operand.quantized_add),
    # Layers.
    (ONNX, "MatMul"): linear(ops_linear.matmul, Operands.EITHER, evaluated, ops_matrix_product.matmul),
    (ONNX, "Einsum"): linear(ops_einsum.einsum, Operands.EITHER, join=ops_einsum.einsum_of_two),
    (ORT, "FusedMatMul"): linear(ops_einsum.fused_matmul, Operands.LAYER, join=ops_einsum.fused_of_two),
    (ONNX, "Gemm"): linear(ops_linear.gemm, Operands.EITHER, evaluated, ops_matrix_product.gemm),
    (ONNX, "MatMulInteger"): linear(
        dialect_integer.matmul_integer, Operands.INTEGER, join=ops_matrix_product.matmul_integer
    ),
    (IMAGES, "Conv"): linear(ops_conv.conv, Operands.LAYER),
    (IMAGES, "ConvInteger"): linear(ops_conv.conv_integer, Operands.LAYER),
    (IMAGES, "ConvTranspose"): linear(ops_conv.conv_transpose, Operands.LAYER),
    (IMAGES, "Im2Col"): linear(im2col.im2col, Operands.LAYER),
    # 8-bit operators of onnxruntime, some of which are standard.
    (ONNX | ORT, "QLinearMatMul"): linear(
        dialect_qlinear.qlinear_matmul,
        Operands.QLINEAR_TERM,
        fold_by_steps(dialect_qlinear.qlinear_matmul),
        ops_matrix_product.qlinear_matmul,
    ),
    (IMAGES | ORT, "QLinearConv"): linear(ops_conv.qlinear_conv, Operands.QLINEAR_LAYER),
    (ORT, "QGemm"): linear(dialect_qlinear.qgemm, Operands.QLINEAR, fold_by_steps(dialect_qlinear.qgemm)),
    (ORT, "MatMulIntegerToFloat"): linear(
        dialect_qlinear.matmul_integer_to_float,
        Operands.QLINEAR_FACTOR,
        fold_by_steps(dialect_qlinear.matmul_integer_to_float),
        ops_matrix_product.matmul_integer_to_float,
    ),
    (ONNX | ORT, "QLinearAdd"): rescaling(
        dialect_qlinear.qlinear_add,
        Operands.QLINEAR_TERM,
        ops_multi_operand.qlinear_add,
        fold_by_steps(dialect_qlinear.qlinear_add),
    ),
    (ONNX | ORT, "QLinearMul"): rescaling(
        dialect_qlinear.qlinear_mul,
        Operands.QLINEAR_TERM,
        ops_multi_operand.qlinear_mul,
        fold_by_steps(dialect_qlinear.qlinear_mul),
    ),
    (ORT, "QLinearSigmoid"): rescaling(dialect_qlinear.qlinear_activation, Operands.QLINEAR),
    (ORT, "QLinearLeakyRelu"): rescaling(dialect_qlinear.qlinear_activation, Operands.QLINEAR),
    (ORT, "QLinearSoftmax"): Rule(qdq_softmax.qlinear_softmax, ANY, Operands.QLINEAR, role=Role.HOST),
    (IMAGES | ORT, "QLinearAveragePool"): image(ops_pool.qlinear_average_pool),
    (IMAGES | ORT, "QLinearGlobalAveragePool"): image(ops_pool.qlinear_global_average_pool),
    (ONNX | ORT, "QLinearConcat"): Rule(on_host, ANY, join=ops_multi_operand.qlinear_concat, keeps_type=False),
    # Arithmetic with constants; of two computed tensors.
    (ONNX, "Add"): arithmetic(ops_standard.add, BinaryKind.ADD, constants.limited),
    (ONNX, "Sub"): arithmetic(ops_standard.sub, BinaryKind.SUB, constants.limited),
    (ONNX, "Mul"): arithmetic(with_constant(Mul), BinaryKind.MUL, constants.multiplied),
    (ONNX, "Div"): arithmetic(ops_bytes.division, BinaryKind.DIV, constants.divided),
    (ONNX, "Mod"): of_bytes(ops_bytes.remainder, ops_bytes.modulo),
    (ONNX, "BitShift"): of_bytes(ops_bytes.shifted),
    (ONNX, "BitwiseAnd"): of_bytes(ops_bytes.bitwise(np.bitwise_and)),
    (ONNX, "BitwiseNot"): Rule(ops_bytes.bitwise_not, ANY),
    (ONNX, "BitwiseOr"): of_bytes(ops_bytes.bitwise(np.bitwise_or)),
    (ONNX, "BitwiseXor"): of_bytes(ops_bytes.bitwise(np.bitwise_xor)),
    (ONNX, "BitCast"): Rule(ops_standard.bit_cast, ANY, keeps_type=False),
    (ONNX, "Max"): Rule(
        ops_standard.maximum, ANY, Operands.EITHER, join=joined(BinaryKind.MAX), fold=constants.limited
    ),
    (ONNX, "Min"): Rule(
        ops_standard.minimum, ANY, Operands.EITHER, join=joined(BinaryKind.MIN), fold=constants.limited
    ),
    (ONNX, "Sum"): Rule(on_host, ANY, join=joined(BinaryKind.ADD), fold=evaluated),
    (ONNX, "Clip"): Rule(ops_standard.clip, ANY, fold=constants.limited),
    (ONNX, "Neg"): Rule(ops_standard.neg, ANY, fold=constants.negated),
    (ONNX, "Relu"): Rule(ops_standard.relu, ANY, fold=constants.limited),
    (ONNX, "Cast"): Rule(ops_standard.cast, ANY, fold=constants.limited, keeps_type=False),
    (ONNX, "BatchNormalization"): Rule(ops_standard.batch_norm, fold=evaluated),
    (frozenset([CHANNELS_LAST]), "BatchNormalization"): Rule(ops_standard.batch_norm_channels_last, fold=evaluated),
    # Normalization of rows.
    (ONNX, "GroupNormalization"): normalization(ops_norm.group_normalization, evaluated),
    (ONNX, "InstanceNormalization"): normalization(ops_norm.instance_normalization, evaluated),
    (ONNX, "LayerNormalization"): normalization(ops_norm.layer_normalization, evaluated),
    (ONNX, "RMSNormalization"): normalization(ops_norm.rms_normalization, evaluated),
    (ONNX | ORT, "SimplifiedLayerNormalization"): normalization(ops_norm.rms_normalization),
    (PATTERN, norm_patterns.OPERATOR): normalization(ops_norm.fused),
    (PATTERN, PREVIOUS): Rule(ops_states.previous, role=Role.LAYER),
    (PATTERN, STATE): Rule(ops_states.state, join=ops_states.output_with_states, role=Role.LAYER),
    # Activations.
    (ONNX, "Abs"): Rule(activation(), ANY, fold=evaluated),
    (ONNX, "Ceil"): Rule(activation(), fold=evaluated),
    (ONNX, "Celu"): Rule(celu),
    (ONNX, "Elu"): Rule(activation(alpha=1.0)),
    (ONNX, "Erf"): Rule(activation()),
    (ONNX, "Exp"): Rule(activation(), fold=evaluated),
    (ONNX, "Floor"): Rule(activation(), fold=evaluated),
    (ONNX, "Gelu"): Rule(gelu),
    (ONNX, "HardSigmoid"): Rule(activation(alpha=0.2, beta=0.5)),
    (ONNX, "HardSwish"): Rule(activation()),
    (ONNX, "LeakyRelu"): Rule(activation(alpha=0.01)),
    (ONNX, "Log"): Rule(activation(), fold=evaluated),
    (ONNX, "Mish"): Rule(activation()),
    (ONNX, "PRelu"): Rule(prelu),
    (ONNX, "Pow"): Rule(power, fold=evaluated),
    (ONNX, "Reciprocal"): Rule(activation(), fold=evaluated),
    (ONNX, "Round"): Rule(activation(), fold=evaluated),
    (ONNX, "Selu"): Rule(activation(alpha=1.67326319217681884765625, gamma=1.05070102214813232421875)),
    (ONNX, "Shrink"): Rule(ops_compare_select.shrink, keeps_type=False),
    (ONNX, "Sigmoid"): Rule(activation()),
    (ONNX, "Sign"): Rule(activation(), ANY, fold=evaluated),
    (ONNX, "Softplus"): Rule(activation()),
    (ONNX, "Softsign"): Rule(activation()),
    (ONNX, "Sqrt"): Rule(activation(), fold=evaluated),
    (ONNX, "Swish"): Rule(swish),
    (ONNX, "Tanh"): Rule(activation()),
    (ONNX, "ThresholdedRelu"): Rule(ops_compare_select.thresholded_relu, keeps_type=False),
    # Comparisons, logic, choice.
    (ONNX, "Equal"): comparison(Relation.EQUAL, Relation.EQUAL),
    (ONNX, "Greater"): comparison(Relation.GREATER, Relation.LESS),
    (ONNX, "GreaterOrEqual"): comparison(Relation.NOT_LESS, Relation.NOT_GREATER),
    (ONNX, "Less"): comparison(Relation.LESS, Relation.GREATER),
    (ONNX, "LessOrEqual"): comparison(Relation.NOT_GREATER, Relation.NOT_LESS),
    (ONNX, "And"): logic(ops_compare_select.logical_and, joined(BinaryKind.MIN)),
    (ONNX, "Or"): logic(ops_compare_select.logical_or, joined(BinaryKind.MAX)),
    (ONNX, "Xor"): logic(ops_compare_select.exclusive_or, ops_multi_operand.exclusive_or),
    (ONNX, "Not"): logic(ops_compare_select.logical_not),
    (ONNX, "Trilu"): Rule(ops_compare_select.trilu, ANY, fold=constants.filled),
    (ONNX, "Where"): Rule(
        ops_compare_select.selection,
        ANY,
        Operands.EITHER,
        ops_multi_operand.selection,
        constants.filled,
        keeps_type=False,
    ),
    # Elements keep their values.
    (ONNX, "Flatten"): renaming(ops_shape.flatten),
    (ONNX, "Reshape"): renaming(ops_shape.reshape),
    (ONNX, "Squeeze"): renaming(ops_shape.reshape),
    (ONNX, "Transpose"): renaming(ops_shape.transpose),
    (ONNX, "Unsqueeze"): renaming(ops_shape.reshape),
    (ONNX, "Identity"): Rule(ops_shape.identity, ANY, fold=rearranged),
    (ONNX, "Dropout"): Rule(ops_shape.dropout, ANY, fold=rearranged),
    (ONNX, "Shape"): Rule(ops_shape.shape_of, ANY, fold=evaluated, keeps_type=False),
    (ONNX, "Concat"): Rule(
        ops_multi_operand.concat,
        ANY,
        Operands.EITHER,
        ops_multi_operand.concat,
        constants.filled,
        host_first=True,
        keeps_type=False,
    ),
    # Pools and reductions; pixels and channels that are moved, cut, repeated.
    (IMAGES, "AveragePool"): image(ops_pool.average_pool),
    (IMAGES, "GlobalAveragePool"): image(ops_pool.global_average_pool),
    (IMAGES, "GlobalMaxPool"): image(ops_pool.global_max_pool),
    (IMAGES, "MaxPool"): image(ops_pool.max_pool),
    (IMAGES, "MaxPoolNHWC"): image(ops_pool.max_pool),
    (IMAGES, "QuantAvgPool2d"): image(ops_pool.quant_avg_pool),
    (IMAGES, "ReduceMax"): image(ops_pool.reduction, evaluated, Role.HOST),
    (IMAGES, "ReduceMean"): image(ops_pool.reduction, evaluated, Role.HOST),
    (IMAGES, "ReduceMin"): image(ops_pool.reduction, evaluated, Role.HOST),
    (IMAGES, "ReduceSum"): image(ops_pool.reduction, evaluated, Role.HOST),
    (IMAGES, "DepthToSpace"): image(ops_image.depth_to_space, rearranged),
    (IMAGES, "Expand"): image(ops_broadcast.expand, rearranged),
    (ONNX, "Gather"): image(ops_gather.gather, rearranged),
    (IMAGES | ORT, "Pad"): image(ops_image.pad, constants.filled),
    (IMAGES, "Resize"): image(ops_resize.resize),
    (IMAGES, "Slice"): image(ops_image.slice_, rearranged),
    (IMAGES, "SpaceToDepth"): image(ops_image.space_to_depth, rearranged),
    (IMAGES, "Split"): image(ops_image.split, rearranged),
    (IMAGES, "Tile"): image(ops_broadcast.tile, rearranged),
    (IMAGES, "Upsample"): image(ops_resize.resize),
    # At the end of a network: by hardware over the last axis, else by the host.
    (ONNX, "ArgMax"): Rule(arg_max, ANY, role=Role.HOST),
    (ONNX, "TopK"): Rule(top_k, ANY, role=Role.HOST),
    # Only on the host.
    (ONNX, "ArgMin"): Rule(arg_min, role=Role.HOST),
    (ONNX, "Hardmax"): host(),
    (ONNX, "LogSoftmax"): host(),
    (ONNX, "Softmax"): host(evaluated),
    # Constants; the host computes them for one computed input.
    (ONNX, "Constant"): Rule(on_host, fold=evaluated),
    (ONNX, "ConstantOfShape"): Rule(on_host, fold=evaluated),
    (ONNX, "Range"): Rule(on_host, fold=evaluated),
    (ONNX, "ReduceProd"): Rule(on_host, fold=evaluated),
}

_BY_NODE = {(domain, op_type): rule for (domains, op_type), rule in RULES.items() for domain in domains}
#: Operators that become layers without a row.
_EXPANDED = (QUANT_LSTM, ATTENTION, MULTI_HEAD)
_FUSED_NAMES = (
    "RequantizedAdd",
    "RequantizedConv",
    "RequantizedDWConv",
    "RequantizedGemm",
    "RequantizedMatMul",
    "RequantizediGELU",
    "RequantizediHardswish",
    "RQIntegerDiv",
    "MHSA",
    "LinearAttention",
    "CLCA",
)
_FUSED = "Build from the model before Deeploy fuses its nodes with their RequantShift."
_FLOAT_CELL = (
    "Its gates and states are floats without quantizers, so that no integers are defined for them. Export the cell "
    "with quantizers, its steps unrolled or in a Scan (docs/recurrent.md)."
)
_FUSED_ATTENTION = (
    "Its queries, keys and scores are floats without quantizers, so that no integers are defined for them. Quantize "
    "the model before attention is fused, with quantizers before both products (docs/attention.md)."
)
_DYNAMIC = (
    "Its scale depends on the data of each frame, so no integers are defined. `hlsgen quantize MODEL --calibrate X.npy "
    "-o QUANTIZED` sets its scales by a sample of inputs, or quantizes the float model."
)
_HINTS = {
    **dict.fromkeys(("QAttention", "QOrderedAttention", "LongformerAttention", "PackedAttention"), _FUSED_ATTENTION),
    **dict.fromkeys(("DynamicQuantizeLSTM", "DynamicQuantizeLinear", "DynamicQuantizeMatMul"), _DYNAMIC),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), _FLOAT_CELL),
    **dict.fromkeys(_FUSED_NAMES, _FUSED),
}


def rule_of(domain: str, op_type: str, name: str) -> Rule:
    """The rule of a node's operator; `name`: the node's name in diagnostics. Raises HG010 or HG011."""
    rule = known_rule(domain, op_type)
    if rule is None:
        raise _unknown(domain, op_type, name)
    return rule


def known_rule(domain: str, op_type: str) -> Rule | None:
    """The rule of an operator, or None."""
    return _BY_NODE.get((domain, op_type)) or _BY_NODE.get(("*", op_type))


def is_hardware(node: onnx.NodeProto) -> bool:
    """True for a quantizer or a layer, or a node with one in a graph within it."""
    rules = [known_rule(n.domain, n.op_type) for n in (node, *inner_nodes(node))]
    hardware = any(rule is not None and rule.role in (Role.QUANTIZER, Role.LAYER) for rule in rules)
    return hardware or any(n.op_type in _EXPANDED for n in (node, *inner_nodes(node)))


def is_quantized(graph: onnx.GraphProto) -> bool:
    """True if any node is a quantizer, or computes with quantized integers."""
    nodes = list(all_nodes(graph))
    rules = [_BY_NODE.get((node.domain, node.op_type)) for node in nodes]
    integer = {operands for operands in Operands if operands.name.startswith(("INTEGER", "QLINEAR"))}
    op_types = {node.op_type for node in nodes}
    integer_ops = {op for domains, op in RULES if domains == ANYWHERE}
    return bool(op_types & {"ConvInteger", QUANT_LSTM, *integer_ops}) or any(
        rule and (rule.role is Role.QUANTIZER or rule.operands in integer) for rule in rules
    )


def _unknown(domain: str, op_type: str, name: str) -> HlsgenError:
    if domain in ONNX:
        hint = _HINTS.get(op_type, "docs/operators.md lists the supported operators.")
        return fail("HG010", name, f"operator {op_type} is not supported.", hint)
    text = f"operator {op_type} of domain {domain!r}"
    if op_type in _FUSED_NAMES:
        return fail("HG010", name, f"{text} is not supported.", _FUSED)
    if domain in QONNX:
        supported = ", ".join(sorted(op for domains, op in RULES if domains == QONNX_OR_NONE))
        return fail("HG010", name, f"{text} is not supported.", f"Supported operators of QONNX: {supported}.")
    if domain == MICROSOFT and op_type in (ATTENTION, *_HINTS):
        return fail("HG010", name, f"{text} is not supported.", _HINTS.get(op_type, _FUSED_ATTENTION))
    if domain == MICROSOFT:
        supported = ", ".join(sorted(op for domains, op in RULES if domain in domains))
        hint = f"Supported operators of onnxruntime's own domain: {supported}."
        return fail("HG010", name, f"{text} is not supported.", hint)
    return unknown_domain(domain, op_type, name)
