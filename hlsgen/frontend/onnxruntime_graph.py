"""What onnxruntime's optimizer does to quantizers before it fuses groups of nodes (`onnxruntime_groups`).

In its order: nodes without effect go; two pairs of QuantizeLinear and DequantizeLinear in a row become one; a MatMul and
its bias become a Gemm; quantizers move past operators that only move elements; float biases get the grid of the sum;
every use of a DequantizeLinear gets one of its own.

Source: graph_transformer_utils.cc and qdq_transformer/ of onnxruntime 1.31.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import helper

from hlsgen.frontend.node_graph import DEQUANTIZE, QUANTIZE, NodeGraph, attribute, made
from hlsgen.numerics.fixed import Array

#: Operators past which quantizers move.
_MOVES = frozenset(["MaxPool", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Slice"])
#: How often all steps are repeated at most.
_ROUNDS = 10


class Optimized:
    """A graph as it is before groups are fused.

    inserted  ids of the quantizers that moved past other nodes
    names     by id of such a QuantizeLinear: the name of the one that it stands for
    copies    DequantizeLinear nodes of one use, each with the tensor of the node that it is a copy of
    gemms     by id: Gemm nodes with the MatMul and the Add that they stand for
    flat      ids of those whose data have other axes than two: onnxruntime puts a Reshape before and after
    """

    def __init__(self, graph: NodeGraph, opset: int) -> None:
        self.graph, self.opset = graph, opset
        self.inserted: set[int] = set()
        self.names: dict[int, str] = {}
        self.copies: list[tuple[onnx.NodeProto, str]] = []
        self.gemms: dict[int, tuple[onnx.NodeProto, onnx.NodeProto, onnx.NodeProto]] = {}
        self.flat: set[int] = set()
        operators = {node.op_type for node in graph.nodes.values()}
        self._shapes = _inferred(graph.graph, opset) if operators >= {"MatMul", "Add"} else {}
        self._split_dequantizers()
        steps: list[Callable[[], bool]] = [
            self._drop_identities, self._merge_pairs, self._merge_equal, self._make_gemms, self._move_quantizers, self._move_dequantizers,
            self._quantize_biases, self._split_dequantizers, self._transpose_weights,
        ]  # fmt: skip
        for _ in range(_ROUNDS):
            changes = [step() for step in steps]
            if not any(changes):
                break

    def parameters(self, node: onnx.NodeProto) -> tuple[Array, Array] | None:
        """Scale and zero point of a quantizer: constants of one element each, both given; None otherwise."""
        if len(node.input) != 3 or not node.input[2]:
            return None
        scale, zero = (self.graph.constant(name) for name in node.input[1:3])
        if scale is None or zero is None or scale.size != 1 or zero.size != 1 or max(scale.ndim, zero.ndim) > 1:
            return None
        return scale, zero

    def same_parameters(self, first: onnx.NodeProto, second: onnx.NodeProto) -> bool:
        left, right = self.parameters(first), self.parameters(second)
        if left is None or right is None or left[1].dtype != right[1].dtype or left[0].dtype != right[0].dtype:
            return False
        return bool(left[0].ravel() == right[0].ravel() and left[1].ravel() == right[1].ravel())

    def shape(self, name: str) -> tuple[int | None, ...] | None:
        """The shape of a tensor as ONNX infers it; None if it is not known."""
        value = self.graph.constant(name)
        return value.shape if value is not None else self._shapes.get(name)

    def _same_shape(self, new: str, old: str) -> None:
        """A new tensor has the shape of another one."""
        shape = self.shape(old)
        if shape is not None:
            self._shapes[new] = shape

    def undo_unused(self) -> None:
        """Takes back what changed only the form: after groups were fused, for what is in none."""
        graph = self.graph
        for node in graph.in_order():
            uses = graph.consumers.get(node.output[0], [])
            if (
                node.op_type == QUANTIZE
                and id(node) in self.inserted
                and all(id(user) in self.inserted for user, _ in uses)
            ):
                for user, _ in uses:
                    graph.remove(user)
                    graph.redirect(user.output[0], node.input[0])
                graph.remove(node)
            elif node.op_type == QUANTIZE and id(node) in self.inserted:
                self._move_codes(node)
        for copy, tensor in self.copies:
            if copy in graph and copy.output[0] in graph.held:
                copy.name = graph.fresh(copy.name)
            elif copy in graph and tensor in graph.producer:
                graph.remove(copy)
                graph.redirect(copy.output[0], tensor)
            elif copy in graph:
                result = copy.output[0]
                graph.set_output(copy, tensor)
                graph.redirect(result, tensor)
        for gemm, product, addition in self.gemms.values():
            if gemm in graph:
                graph.remove(gemm)
                sums = graph.fresh(product.output[0])
                graph.add(made("MatMul", gemm.input[:2], sums, product))
                graph.add(made("Add", [sums, gemm.input[2]], gemm.output[0], addition))

    def _move_codes(self, quantizer: onnx.NodeProto) -> None:
        """Operators between a DequantizeLinear and its like move codes, and both go."""
        graph, name = self.graph, quantizer.input[0]
        moves = []
        while (maker := graph.producer.get(name)) is not None and maker.op_type in _MOVES and not maker.domain:
            if graph.only_consumer(name) is None:
                return
            moves.append(maker)
            name = maker.input[0]
        if maker is None or maker.op_type != DEQUANTIZE or graph.only_consumer(name) is None:
            return
        if moves and self.same_parameters(maker, quantizer):
            graph.remove(maker)
            graph.remove(quantizer)
            graph.set_input(moves[-1], 0, maker.input[0])
            graph.set_output(moves[0], quantizer.output[0])

    # ----------------------------------------------------------------------- the steps, each says if it changed something

    def _drop_identities(self) -> bool:
        graph, changed = self.graph, False
        for node in graph.in_order():
            if node.op_type != "Identity" or node.domain or node.input[0] not in graph.producer:
                continue
            source, result = node.input[0], node.output[0]
            if result not in graph.held:
                graph.remove(node)
                graph.redirect(result, source)
                changed = True
            elif (
                graph.only_consumer(source) is node
                and not graph.consumers.get(result)
                and len(graph.producer[source].output) == 1
            ):
                graph.remove(node)
                graph.set_output(graph.producer[source], result)
                changed = True
        return changed

    def _merge_pairs(self) -> bool:
        """QuantizeLinear, DequantizeLinear, QuantizeLinear, DequantizeLinear: the pair in the middle goes, the outer ones
        get the range that both have."""
        graph, changed = self.graph, False
        for dequantizer in graph.in_order():
            if dequantizer not in graph or dequantizer.op_type != DEQUANTIZE:
                continue
            first = graph.producer.get(dequantizer.input[0])
            second = graph.only_consumer(dequantizer.output[0])
            if first is None or first.op_type != QUANTIZE or second is None or second.op_type != QUANTIZE:
                continue
            alike = self.same_parameters(dequantizer, second)
            if not alike and graph.only_consumer(first.output[0]) is not dequantizer:
                continue
            lasts = [user for user, _ in graph.consumers.get(second.output[0], [])]
            if not lasts or second.output[0] in graph.held or any(user.op_type != DEQUANTIZE for user in lasts):
                continue
            pairs = [(first, dequantizer), *((second, last) for last in lasts)]
            if not all(self.same_parameters(*pair) for pair in pairs):
                continue
            merged = self._common_range(dequantizer, second)
            if merged is None:
                continue
            graph.remove(second)
            graph.remove(dequantizer)
            for last in lasts:
                graph.set_input(last, 0, first.output[0])
            for node in () if alike else (first, *lasts):
                for number, value in enumerate(merged, 1):
                    graph.set_input(node, number, graph.add_constant(f"{node.name}_merged", value))
            changed = True
        return changed

    def _merge_equal(self) -> bool:
        """Equal QuantizeLinear nodes of one tensor become one: scales by value, zero points by name."""
        graph, changed = self.graph, False
        known: dict[tuple[str, ...], str] = {}
        for node in graph.in_order():
            if node.op_type != QUANTIZE or node.output[0] in graph.held:
                continue
            scale = graph.constant(node.input[1])
            text = node.input[1] if scale is None else f"{scale.dtype} {scale.tolist()}"
            key = (node.input[0], text, *node.input[2:], *(a.SerializeToString().hex() for a in node.attribute))
            if key in known:
                graph.remove(node)
                graph.redirect(node.output[0], known[key])
                changed = True
            else:
                known[key] = node.output[0]
        return changed

    def _common_range(self, first: onnx.NodeProto, second: onnx.NodeProto) -> tuple[Array, Array] | None:
        """Scale and zero point of one pair for two, in float32 as DoubleQDQPairsRemover computes them."""
        left, right = self.parameters(first), self.parameters(second)
        assert left is not None
        assert right is not None
        if left[1].dtype != right[1].dtype or left[1].dtype not in (np.int8, np.uint8) or left[0].dtype != np.float32:
            return None
        if right[0].dtype != np.float32 or not (left[0] > 0).all() or not (right[0] > 0).all():
            return None
        info = np.iinfo(left[1].dtype)
        scales, zeros = (np.float32(left[0].item()), np.float32(right[0].item())), (left[1].item(), right[1].item())
        if zeros[0] == zeros[1] and abs(float(scales[0]) - float(scales[1])) < 1e-20:
            return left
        lows, highs = (
            [np.float32(end - zero) * scale for zero, scale in zip(zeros, scales, strict=True)]
            for end in (int(info.min), int(info.max))
        )
        low, high = max(lows), min(highs)
        scale = (high - low) / np.float32(int(info.max) - int(info.min))
        zero = np.float32(info.min) - low / scale
        rounded = np.copysign(np.floor(np.abs(zero) + np.float32(0.5)), zero)  # std::round: ties away from zero
        return np.array(scale, np.float32), np.array(np.clip(rounded, info.min, info.max)).astype(left[1].dtype)

    def _make_gemms(self) -> bool:
        """MatMul by a matrix and an Add of a bias: a Gemm, of rows if the data have more axes than two."""
        graph, changed = self.graph, False
        for node in graph.in_order():
            if node.op_type != "MatMul" or node.domain or not self._is_quantized(node) or self._of_attention(node):
                continue
            addition = graph.only_consumer(node.output[0])
            if addition is None or addition.op_type != "Add" or addition.domain:
                continue
            bias = addition.input[1 - list(addition.input).index(node.output[0])]
            data, weight, term = (self.shape(name) for name in (*node.input, bias))
            if data is None or weight is None or term is None or len(weight) != 2 or weight[1] is None:
                continue
            flat = len(data) != 2
            if (flat and None in data) or term not in ((weight[1],), *([] if flat else [(1, weight[1])])):
                continue
            gemm = made("Gemm", [*node.input, bias], addition.output[0], node)
            graph.remove(node)
            graph.remove(addition)
            graph.add(gemm)
            self.gemms[id(gemm)] = (gemm, node, addition)
            if flat:
                self.flat.add(id(gemm))
            changed = True
        return changed

    def _is_quantized(self, node: onnx.NodeProto) -> bool:
        """Whether a DequantizeLinear comes before both operands, moves in between; of others the meaning stays."""
        for name in node.input:
            maker = self.graph.producer.get(name)
            while maker is not None and maker.op_type in _MOVES:
                maker = self.graph.producer.get(maker.input[0])
            if maker is None or maker.op_type != DEQUANTIZE:
                return False
        return True

    def _of_attention(self, node: onnx.NodeProto) -> bool:
        """Whether the data are those of attention: Softmax, MatMul, Transpose, Reshape before."""
        name = node.input[0]
        for op_type in ("Reshape", "Transpose", "MatMul", "Softmax"):
            maker = self.graph.producer.get(name)
            if maker is None or maker.op_type != op_type:
                return False
            name = maker.input[0]
        return True

    def _move_quantizers(self) -> bool:
        """A QuantizeLinear after operators that only move elements also stands before them."""
        graph, changed = self.graph, False
        for node in graph.in_order():
            if node.op_type != QUANTIZE or self.parameters_of_dequantizer(node) is None:
                continue
            name = node.input[0]
            if graph.only_consumer(name) is not node:
                continue
            while (move := graph.producer.get(name)) is not None and move.op_type in _MOVES and not move.domain:
                name = move.input[0]
                maker = graph.producer.get(name)
                if maker is None or maker.op_type == DEQUANTIZE or graph.only_consumer(name) is not move:
                    break
                self._insert(name, [(move, 0)], node)
                changed = True
        return changed

    def _move_dequantizers(self) -> bool:
        """A DequantizeLinear before operators that only move elements also stands after them."""
        graph, changed = self.graph, False
        for node in graph.in_order():
            if node.op_type != DEQUANTIZE or self.parameters_of_dequantizer(node) is None:
                continue
            ways = [node.output[0]] if graph.only_consumer(node.output[0]) is not None else []
            while ways:
                uses = graph.consumers.get(ways.pop(), [])
                move = uses[0][0]
                if move.op_type not in _MOVES or move.domain or uses[0][1] != 0 or move.output[0] in graph.held:
                    continue
                result = move.output[0]
                targets = [use for use in graph.consumers.get(result, []) if use[0].op_type != QUANTIZE]
                if not targets:
                    continue
                self._insert(result, targets, node)
                changed = True
                ways += [target.input[number] for target, number in targets]
        return changed

    def parameters_of_dequantizer(self, node: onnx.NodeProto) -> tuple[str, str] | None:
        """The names of constant scale and zero point of one element each, "" where the zero point is left out."""
        zero = node.input[2] if len(node.input) > 2 else ""
        parts = [self.graph.constant(name) for name in (node.input[1], zero) if name]
        if any(part is None or part.size != 1 or part.ndim > 1 for part in parts):
            return None
        return node.input[1], zero

    def _insert(self, name: str, uses: list[tuple[onnx.NodeProto, int]], like: onnx.NodeProto) -> None:
        """A QuantizeLinear of a tensor with the parameters of a quantizer, and a DequantizeLinear for each of the uses."""
        graph = self.graph
        codes = graph.fresh(f"{name}_codes")
        quantizer = helper.make_node(
            QUANTIZE, [name, *like.input[1:]], [codes], name=graph.fresh(f"{name}_quantized"), domain=like.domain
        )
        if len(like.input) < 3 and (kind := self.kind_of_codes(like)) is not None:
            quantizer.input.append(graph.add_constant(f"{name}_zero", np.zeros((), kind)))
        graph.add(quantizer)
        self.inserted.add(id(quantizer))
        self.names[id(quantizer)] = like.name
        for target, position in uses:
            real = graph.fresh(f"{name}_real")
            node = helper.make_node(
                DEQUANTIZE,
                [codes, *quantizer.input[1:]],
                [real],
                name=graph.fresh(f"{name}_dequantized"),
                domain=like.domain,
            )
            graph.add(node)
            self.inserted.add(id(node))
            graph.set_input(target, position, real)
            self._same_shape(real, name)

    def kind_of_codes(self, node: onnx.NodeProto) -> np.dtype[np.generic] | None:
        """The type of the codes of a quantizer: that of its zero point, or of the codes themselves; None if not known."""
        if len(node.input) > 2 and node.input[2]:
            zero = self.graph.constant(node.input[2])
            return None if zero is None else zero.dtype
        if node.op_type == QUANTIZE:
            kind = attribute(node, "output_dtype", 0)
            return (
                np.dtype(helper.tensor_dtype_to_np_dtype(kind))
                if isinstance(kind, int) and kind
                else np.dtype(np.uint8)
            )
        codes = self.graph.constant(node.input[0])
        if codes is not None:
            return codes.dtype
        maker = self.graph.producer.get(node.input[0])
        return self.kind_of_codes(maker) if maker is not None and maker.op_type == QUANTIZE else None

    def _quantize_biases(self) -> bool:
        """A float bias of a Conv or Gemm between quantizers becomes int32 codes in units of the sum."""
        graph, changed = self.graph, False
        for node in graph.in_order():
            if node.op_type not in ("Conv", "ConvTranspose", "Gemm") or node.domain or len(node.input) < 3:
                continue
            data, weight = (graph.producer.get(name) for name in node.input[:2])
            bias = graph.constant(node.input[2]) if node.input[2] else None
            if data is None or data.op_type != DEQUANTIZE or weight is None or weight.op_type != DEQUANTIZE:
                continue
            if bias is None or bias.ndim != 1 or bias.dtype != np.float32 or not self._ends_in_quantizer(node):
                continue
            scale, weights = graph.constant(data.input[1]), graph.constant(weight.input[1])
            if scale is None or scale.size != 1 or scale.dtype != np.float32 or weights is None:
                continue
            if weights.size != 1 and (weights.shape != bias.shape or not self._per_output(node, weight)):
                continue
            unit = (scale.reshape(()) * weights).astype(np.float32)
            with np.errstate(all="ignore"):
                codes = np.rint(bias / unit).astype(np.float32)
            if not np.isfinite(codes).all() or np.abs(codes).max(initial=0) >= 2.0**31:
                continue
            names = [
                graph.add_constant(f"{node.name}_bias_codes", codes.astype(np.int32)),
                graph.add_constant(f"{node.name}_bias_scale", unit if weights.size > 1 else unit.reshape(())),
            ]
            real = graph.fresh(f"{node.name}_bias")
            node_of_bias = helper.make_node(DEQUANTIZE, names, [real], name=graph.fresh(f"{node.name}_bias"))
            if weights.size > 1:
                node_of_bias.attribute.append(helper.make_attribute("axis", 0))
            graph.add(node_of_bias)
            graph.set_input(node, 2, real)
            changed = True
        return changed

    def _transpose_weights(self) -> bool:
        """A Transpose of constants with a scale for each channel moves before their DequantizeLinear."""
        graph, changed = self.graph, False
        for node in graph.in_order():
            source = graph.producer.get(node.input[0]) if node.op_type == "Transpose" and not node.domain else None
            if source is None or source.op_type != DEQUANTIZE or graph.only_consumer(source.output[0]) is not node:
                continue
            scale = graph.constant(source.input[1])
            order = attribute(node, "perm", None)
            if scale is None or scale.ndim != 1 or scale.size < 2 or not isinstance(order, list):
                continue
            if not order or sorted(order) != list(range(len(order))):
                continue
            if attribute(source, "block_size", 0) or graph.varies(source.input[0]):
                continue
            axis = attribute(source, "axis", 1)
            assert isinstance(axis, int)
            codes, result, shape = (
                graph.fresh(f"{source.input[0]}_transposed"),
                node.output[0],
                self.shape(source.input[0]),
            )
            graph.remove(node)
            graph.remove(source)
            graph.add(helper.make_node("Transpose", [source.input[0]], [codes], name=node.name, perm=order))
            parameters = [codes, *source.input[1:]]
            place = order.index(axis % len(order))
            graph.add(
                helper.make_node(DEQUANTIZE, parameters, [result], name=source.name, domain=source.domain, axis=place)
            )
            if shape is not None:
                self._shapes[codes] = tuple(shape[n] for n in order)
            changed = True
        return changed

    def _ends_in_quantizer(self, node: onnx.NodeProto) -> bool:
        """Whether nothing but Relu and Clip stands between a node and the only QuantizeLinear after it."""
        after = self.graph.only_consumer(node.output[0])
        while after is not None and after.op_type in ("Relu", "Clip") and id(node) not in self.flat:
            after = self.graph.only_consumer(after.output[0])
        return after is not None and after.op_type == QUANTIZE

    def _per_output(self, node: onnx.NodeProto, weight: onnx.NodeProto) -> bool:
        """Whether the scales of weights run along their outputs."""
        codes = self.shape(weight.input[0])
        if attribute(weight, "block_size", 0) or not codes:
            return False
        axis = attribute(weight, "axis", 1)
        assert isinstance(axis, int)
        expected = 0 if node.op_type != "Gemm" or attribute(node, "transB", 0) else 1
        return axis % len(codes) == expected

    def _split_dequantizers(self) -> bool:
        """Each use of a DequantizeLinear gets a node of its own."""
        graph, changed = self.graph, False
        for node in graph.in_order():
            if node.op_type != DEQUANTIZE:
                continue
            result = node.output[0]
            uses = list(graph.consumers.get(result, []))
            for target, position in uses if result in graph.held else uses[1:]:
                copy = onnx.NodeProto()
                copy.CopyFrom(node)
                copy.output[0] = graph.fresh(f"{result}_again")
                graph.add(copy)
                self.copies.append((copy, result))
                self._same_shape(copy.output[0], result)
                if id(node) in self.inserted:
                    self.inserted.add(id(copy))
                graph.set_input(target, position, copy.output[0])
                changed = True
        return changed


def _inferred(graph: onnx.GraphProto, opset: int) -> dict[str, tuple[int | None, ...]]:
    """Shapes by tensor, None where an axis has no number."""
    try:
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        known = onnx.shape_inference.infer_shapes(model).graph
    except Exception:  # whatever onnx makes of a file; what is wrong is reported where the node is read
        known = graph
    return {
        one.name: tuple(d.dim_value if d.HasField("dim_value") else None for d in one.type.tensor_type.shape.dim)
        for one in (*known.input, *known.value_info, *known.output)
        if one.type.tensor_type.HasField("shape")
    }
