"""The rewrites of onnxruntime's optimizer before it fuses groups of nodes (`onnxruntime_groups`), in its order.

- Nodes without effect are removed, also pairs of Transpose that cancel each other.
- Two consecutive pairs of QuantizeLinear and DequantizeLinear become one.
- A MatMul and its bias become a Gemm.
- Quantizers move past operators that only move elements.
- Float biases get the grid of the sum.
- Every use of a DequantizeLinear gets a DequantizeLinear of its own.

Source: graph_transformer_utils.cc and qdq_transformer/ of onnxruntime 1.31.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import onnx
from onnx import helper

from hlsgen.frontend.node_graph import DEQUANTIZE, QUANTIZE, NodeGraph, attribute, named_like
from hlsgen.numerics.fixed import Array

#: Operators past which quantizers move.
_MOVES = frozenset(["MaxPool", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Slice"])
#: Operators of one tensor, or of tensors of equal shapes, past which a Transpose moves.
_ELEMENTWISE = frozenset(
    [
        *(QUANTIZE, DEQUANTIZE),
        *"Add Sub Mul Div Pow Max Min Relu Clip LeakyRelu ThresholdedRelu Elu Selu Celu".split(),
        *"Sigmoid HardSigmoid HardSwish Tanh Softplus Softsign Exp Log Sqrt Reciprocal Erf".split(),
        *"Abs Neg Sign Round Floor Ceil Cast Identity".split(),
    ]
)
#: Constants that do not change the other operand.
_NEUTRAL = {"Add": 0, "Sub": 0, "Mul": 1, "Div": 1}
#: Maximum number of repetitions of all rewrites.
_ROUNDS = 10
#: Scales that differ by less are equal when onnxruntime merges two pairs.
_EQUAL_SCALES = 1e-20


class Optimized:
    """A graph rewritten as onnxruntime does before it fuses groups.

    inserted  ids of the quantizers inserted at the other end of operators that only move elements
    names     name of the original quantizer, by id of an inserted QuantizeLinear
    copies    (DequantizeLinear for one use, tensor of the node that it copies)
    gemms     (Gemm, MatMul, Add) by id of the Gemm that replaces the other two
    flat      ids of Gemms whose data have more or fewer than two axes; onnxruntime puts a Reshape before and after
    """

    def __init__(self, graph: NodeGraph, opset: int) -> None:
        self.graph, self.opset = graph, opset
        self.inserted: set[int] = set()
        self.names: dict[int, str] = {}
        self.copies: list[tuple[onnx.NodeProto, str]] = []
        self.gemms: dict[int, tuple[onnx.NodeProto, onnx.NodeProto, onnx.NodeProto]] = {}
        self.flat: set[int] = set()
        operators = {node.op_type for node in graph.nodes.values()}
        needs_shapes = operators >= {"MatMul", "Add"} or operators & {*_NEUTRAL, "Expand"}
        self._shapes = inferred_shapes(graph.graph, opset) if needs_shapes else {}
        self._split_dequantizers()
        rewrites: list[Callable[[], bool]] = [
            self._drop_nodes_without_effect,
            self._cancel_transposes,
            self._merge_pairs,
            self._merge_equal_pairs,
            self._merge_equal,
            self._make_gemms,
            self._move_quantizers,
            self._move_dequantizers,
            self._quantize_biases,
            self._split_dequantizers,
            self._transpose_weights,
        ]
        for _ in range(_ROUNDS):
            changes = [rewrite() for rewrite in rewrites]
            if not any(changes):
                break

    def parameters(self, node: onnx.NodeProto) -> tuple[Array, Array] | None:
        """Scale and zero point of a quantizer if both are present, constant and of one element; else None."""
        if len(node.input) != 3 or not node.input[2]:
            return None
        scale, zero = (self.graph.constant(name) for name in node.input[1:3])
        if scale is None or zero is None or scale.size != 1 or zero.size != 1 or max(scale.ndim, zero.ndim) > 1:
            return None
        return scale, zero

    def same_parameters(self, first: onnx.NodeProto, second: onnx.NodeProto) -> bool:
        """True if two quantizers have equal scales and zero points, of equal types (see `parameters`)."""
        a, b = self.parameters(first), self.parameters(second)
        if a is None or b is None or a[1].dtype != b[1].dtype or a[0].dtype != b[0].dtype:
            return False
        return bool(a[0].ravel() == b[0].ravel() and a[1].ravel() == b[1].ravel())

    def shape(self, name: str) -> tuple[int | None, ...] | None:
        """The shape of a tensor by ONNX's shape inference, or None if it is unknown."""
        constant = self.graph.constant(name)
        return constant.shape if constant is not None else self._shapes.get(name)

    def _copy_shape(self, new: str, old: str) -> None:
        """Record that a new tensor has the shape of an old one."""
        shape = self.shape(old)
        if shape is not None:
            self._shapes[new] = shape

    def undo_unused(self) -> None:
        """Undo the rewrites of nodes that are in no group, after groups were fused."""
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
            if copy in graph and copy.output[0] in graph.pinned:
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
                graph.add(named_like(product, "MatMul", gemm.input[:2], sums))
                graph.add(named_like(addition, "Add", [sums, gemm.input[2]], gemm.output[0]))

    def _move_codes(self, quantizer: onnx.NodeProto) -> None:
        """Remove a DequantizeLinear and a QuantizeLinear with equal parameters and only moves between them."""
        graph, name = self.graph, quantizer.input[0]
        moves = []
        while (producer := graph.producer.get(name)) is not None and _only_moves(producer):
            if graph.only_consumer(name) is None:
                return
            moves.append(producer)
            name = producer.input[0]
        if producer is None or producer.op_type != DEQUANTIZE or graph.only_consumer(name) is None:
            return
        if moves and self.same_parameters(producer, quantizer):
            graph.remove(producer)
            graph.remove(quantizer)
            graph.set_input(moves[-1], 0, producer.input[0])
            graph.set_output(moves[0], quantizer.output[0])

    # ----------------------------------------------------------------------- rewrites; each returns True after a change

    def _drop_nodes_without_effect(self) -> bool:
        """Remove them, of those that give a graph output only Identity."""
        graph, changed = self.graph, False
        for node in graph.in_order():
            source = None if node.domain else self._unchanged(node)
            if source not in graph.producer:
                continue
            result = node.output[0]
            if result not in graph.pinned:
                graph.remove(node)
                graph.redirect(result, source)
                changed = True
            elif (
                node.op_type == "Identity"
                and graph.only_consumer(source) is node
                and not graph.consumers.get(result)
                and len(graph.producer[source].output) == 1
            ):
                graph.remove(node)
                graph.set_output(graph.producer[source], result)
                changed = True
        return changed

    def _cancel_transposes(self) -> bool:
        """Remove each Transpose whose input only depends on one or more of the inverse order, and these."""
        graph, changed = self.graph, False
        for node in graph.in_order():
            if node not in graph or node.op_type != "Transpose" or node.domain or node.output[0] in graph.pinned:
                continue
            firsts = self._inverses_before(node)
            if firsts:
                for transpose in (*firsts, node):
                    graph.remove(transpose)
                    graph.redirect(transpose.output[0], transpose.input[0])
                changed = True
        return changed

    def _inverses_before(self, last: onnx.NodeProto) -> list[onnx.NodeProto]:
        """The nodes that transpose all that `last` depends on, in the inverse order; empty if it depends on more.

        Between are elementwise operators whose results are not used elsewhere.
        """
        graph, order = self.graph, attribute(last, "perm", None)
        if not isinstance(order, list):
            return []
        inverse = np.argsort(order).tolist()
        firsts: dict[int, onnx.NodeProto] = {}
        between, names = {id(last): last}, [last.input[0]]
        while names:
            producer = graph.producer.get(names.pop())
            if producer is None or producer.domain or producer.output[0] in graph.pinned:
                return []
            if id(producer) in between or id(producer) in firsts:
                continue
            if producer.op_type == "Transpose" and attribute(producer, "perm", None) == inverse:
                firsts[id(producer)] = producer
                continue
            tensors = [name for name in producer.input if name and graph.constant(name) is None]
            constants = [graph.constant(name) for name in producer.input if name]
            if producer.op_type not in _ELEMENTWISE or not tensors:
                return []
            if any(constant is not None and constant.size > 1 for constant in constants):
                return []
            between[id(producer)] = producer
            names += tensors
        inside = {*between, *firsts}
        results = [node.output[0] for node in (*between.values(), *firsts.values()) if node is not last]
        if any(id(user) not in inside for result in results for user, _ in graph.consumers.get(result, [])):
            return []
        return list(firsts.values())

    def _unchanged(self, node: onnx.NodeProto) -> str | None:
        """The input that the only result of a node equals, if onnxruntime knows that; else None."""
        graph, name = self.graph, node.input[0] if node.input else ""
        used = [output for output in node.output if output in graph.pinned or graph.consumers.get(output)]
        if node.op_type == "Identity":
            return name
        if node.op_type == "Dropout" and used == [node.output[0]]:
            return name if all(graph.constant(n) is not None for n in node.input[1:] if n) else None
        if node.op_type == "Cast" and attribute(node, "to", 0) == onnx.TensorProto.FLOAT:
            producer = graph.producer.get(name)
            is_float = producer is not None and producer.op_type == DEQUANTIZE and self._has_float32_scale(producer)
            return name if is_float else None
        if node.op_type == "Expand":
            shape, target = self.shape(name), graph.constant(node.input[-1])
            return name if shape and target is not None and _broadcasts(target.tolist(), shape) else None
        return self._beside_neutral(node) if node.op_type in _NEUTRAL else None

    def _has_float32_scale(self, node: onnx.NodeProto) -> bool:
        scales = [self.graph.constant(name) for name in node.input[1:2]]
        return any(scale is not None and scale.dtype == np.float32 for scale in scales)

    def _beside_neutral(self, node: onnx.NodeProto) -> str | None:
        """The other operand of an addition of 0 or a product with 1, if that constant does not add axes to it."""
        places = [place for place, name in enumerate(node.input) if self.graph.constant(name) is not None]
        if len(node.input) != 2 or len(places) != 1 or (places == [0] and node.op_type in ("Sub", "Div")):
            return None
        constant, name = self.graph.constant(node.input[places[0]]), node.input[1 - places[0]]
        assert constant is not None
        if constant.size != 1 or constant.item() != _NEUTRAL[node.op_type]:
            return None
        shape = self.shape(name)
        return name if constant.ndim == 0 or (shape is not None and constant.ndim <= len(shape)) else None

    def _merge_pairs(self) -> bool:
        """Merge two consecutive pairs of QuantizeLinear and DequantizeLinear to one pair of their common range."""
        return self._merge(equal_only=False)

    def _merge_equal_pairs(self) -> bool:
        """The same for pairs of equal parameters, if the codes of the first pair have other uses, too."""
        return self._merge(equal_only=True)

    def _merge(self, equal_only: bool) -> bool:
        graph, changed = self.graph, False
        for dequantizer in graph.in_order():
            if dequantizer not in graph or dequantizer.op_type != DEQUANTIZE:
                continue
            first = graph.producer.get(dequantizer.input[0])
            second = graph.only_consumer(dequantizer.output[0])
            if first is None or first.op_type != QUANTIZE or second is None or second.op_type != QUANTIZE:
                continue
            equal = self.same_parameters(dequantizer, second)
            is_alone = graph.only_consumer(first.output[0]) is dequantizer
            if not (equal if equal_only else is_alone):
                continue
            lasts = [user for user, _ in graph.consumers.get(second.output[0], [])]
            if not lasts or second.output[0] in graph.pinned or any(user.op_type != DEQUANTIZE for user in lasts):
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
            for node in () if equal else (first, *lasts):
                for number, parameter in enumerate(merged, 1):
                    graph.set_input(node, number, graph.add_constant(f"{node.name}_merged", parameter))
            changed = True
        return changed

    def _merge_equal(self) -> bool:
        """Merge equal QuantizeLinear nodes of one tensor; scales are compared by value, zero points by name."""
        graph, changed = self.graph, False
        codes_by_key: dict[tuple[str, ...], str] = {}
        for node in graph.in_order():
            if node.op_type != QUANTIZE or node.output[0] in graph.pinned:
                continue
            scale = graph.constant(node.input[1])
            text = node.input[1] if scale is None else f"{scale.dtype} {scale.tolist()}"
            key = (node.input[0], text, *node.input[2:], *(a.SerializeToString().hex() for a in node.attribute))
            if key in codes_by_key:
                graph.remove(node)
                graph.redirect(node.output[0], codes_by_key[key])
                changed = True
            else:
                codes_by_key[key] = node.output[0]
        return changed

    def _common_range(self, first: onnx.NodeProto, second: onnx.NodeProto) -> tuple[Array, Array] | None:
        """Scale and zero point of the pair that replaces two, or None if onnxruntime does not merge them.

        They are computed in float32, as in onnxruntime's DoubleQDQPairsRemover.
        """
        a, b = self.parameters(first), self.parameters(second)
        assert a is not None
        assert b is not None
        dtype = a[1].dtype
        if dtype != b[1].dtype or dtype not in (np.int8, np.uint8) or a[0].dtype != np.float32:
            return None
        if b[0].dtype != np.float32 or not (a[0] > 0).all() or not (b[0] > 0).all():
            return None
        info = np.iinfo(dtype)
        scales, zeros = (np.float32(a[0].item()), np.float32(b[0].item())), (a[1].item(), b[1].item())
        if zeros[0] == zeros[1] and abs(float(scales[0]) - float(scales[1])) < _EQUAL_SCALES:
            return a
        lows, highs = (
            [np.float32(end - zero) * scale for zero, scale in zip(zeros, scales, strict=True)]
            for end in (int(info.min), int(info.max))
        )
        low, high = max(lows), min(highs)
        scale = (high - low) / np.float32(int(info.max) - int(info.min))
        zero = np.float32(info.min) - low / scale
        rounded = np.copysign(np.floor(np.abs(zero) + np.float32(0.5)), zero)  # std::round: ties away from zero
        return np.array(scale, np.float32), np.array(np.clip(rounded, info.min, info.max)).astype(dtype)

    def _make_gemms(self) -> bool:
        """Replace a MatMul by a matrix and the Add of a bias by a Gemm."""
        graph, changed = self.graph, False
        for node in graph.in_order():
            if node.op_type != "MatMul" or node.domain or not self._is_quantized(node) or self._follows_softmax(node):
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
            gemm = named_like(node, "Gemm", [*node.input, bias], addition.output[0])
            graph.remove(node)
            graph.remove(addition)
            graph.add(gemm)
            self.gemms[id(gemm)] = (gemm, node, addition)
            if flat:
                self.flat.add(id(gemm))
            changed = True
        return changed

    def _is_quantized(self, node: onnx.NodeProto) -> bool:
        """True if both operands come from a DequantizeLinear, with only moves between; other MatMuls stay MatMuls."""
        for name in node.input:
            producer = self.graph.producer.get(name)
            while producer is not None and producer.op_type in _MOVES:
                producer = self.graph.producer.get(producer.input[0])
            if producer is None or producer.op_type != DEQUANTIZE:
                return False
        return True

    def _follows_softmax(self, node: onnx.NodeProto) -> bool:
        """True for the product after an attention: Softmax, MatMul, Transpose, Reshape before its data."""
        name = node.input[0]
        for op_type in ("Reshape", "Transpose", "MatMul", "Softmax"):
            producer = self.graph.producer.get(name)
            if producer is None or producer.op_type != op_type:
                return False
            name = producer.input[0]
        return True

    def _quantizers_per_tensor(self, op_type: str) -> Iterator[onnx.NodeProto]:
        """The nodes of this type with a constant scale and zero point of one element, in order."""
        for node in self.graph.in_order():
            parameters = [self.graph.constant(name) for name in node.input[1:3] if name]
            if node.op_type == op_type and all(p is not None and p.size == 1 and p.ndim <= 1 for p in parameters):
                yield node

    def _move_quantizers(self) -> bool:
        """Insert a pair before operators that only move elements, for a QuantizeLinear after them."""
        graph, changed = self.graph, False
        for node in self._quantizers_per_tensor(QUANTIZE):
            name = node.input[0]
            if graph.only_consumer(name) is not node:
                continue
            while (move := graph.producer.get(name)) is not None and _only_moves(move):
                name = move.input[0]
                producer = graph.producer.get(name)
                if producer is None or producer.op_type == DEQUANTIZE or graph.only_consumer(name) is not move:
                    break
                self._insert(name, [(move, 0)], node)
                changed = True
        return changed

    def _move_dequantizers(self) -> bool:
        """Insert a pair after operators that only move elements, for a DequantizeLinear before them."""
        graph, changed = self.graph, False
        for node in self._quantizers_per_tensor(DEQUANTIZE):
            tensors = [node.output[0]] if graph.only_consumer(node.output[0]) is not None else []
            while tensors:
                uses = graph.consumers.get(tensors.pop(), [])
                move = uses[0][0]
                if not _only_moves(move) or uses[0][1] != 0 or move.output[0] in graph.pinned:
                    continue
                result = move.output[0]
                targets = [use for use in graph.consumers.get(result, []) if use[0].op_type != QUANTIZE]
                if not targets:
                    continue
                self._insert(result, targets, node)
                changed = True
                tensors += [target.input[number] for target, number in targets]
        return changed

    def _insert(self, name: str, uses: list[tuple[onnx.NodeProto, int]], like: onnx.NodeProto) -> None:
        """Quantize tensor `name` with the parameters of quantizer `like`, and dequantize it for each of the uses."""
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
            self._copy_shape(real, name)

    def kind_of_codes(self, node: onnx.NodeProto) -> np.dtype[np.generic] | None:
        """The type of a quantizer's codes, by its zero point or the codes themselves, or None if it is unknown."""
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
        producer = self.graph.producer.get(node.input[0])
        return self.kind_of_codes(producer) if producer is not None and producer.op_type == QUANTIZE else None

    def _quantize_biases(self) -> bool:
        """Replace a float bias of a Conv or Gemm between quantizers by int32 codes in units of the sum."""
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
            if weights.size != 1 and (weights.shape != bias.shape or not self.has_scales_per_output(node, weight)):
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
            dequantizer = helper.make_node(DEQUANTIZE, names, [real], name=graph.fresh(f"{node.name}_bias"))
            if weights.size > 1:
                dequantizer.attribute.append(helper.make_attribute("axis", 0))
            graph.add(dequantizer)
            graph.set_input(node, 2, real)
            changed = True
        return changed

    def _transpose_weights(self) -> bool:
        """Move a Transpose of constants with a scale per channel before their DequantizeLinear."""
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
            if attribute(source, "block_size", 0) or graph.depends_on_input(source.input[0]):
                continue
            axis = attribute(source, "axis", 1)
            assert isinstance(axis, int)
            codes, result = graph.fresh(f"{source.input[0]}_transposed"), node.output[0]
            shape = self.shape(source.input[0])
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
        """True if a node has a single consumer, a QuantizeLinear, with at most Relu and Clip between."""
        after = self.graph.only_consumer(node.output[0])
        while after is not None and after.op_type in ("Relu", "Clip") and id(node) not in self.flat:
            after = self.graph.only_consumer(after.output[0])
        return after is not None and after.op_type == QUANTIZE

    def has_scales_per_output(self, node: onnx.NodeProto, weight: onnx.NodeProto) -> bool:
        """True if the DequantizeLinear `weight` has its scales along the outputs of the layer `node`."""
        shape = self.shape(weight.input[0])
        if not shape or attribute(weight, "block_size", 0):
            return False
        axis = attribute(weight, "axis", 1)
        assert isinstance(axis, int)
        if node.op_type in ("Conv", "ConvTranspose") or (node.op_type == "Gemm" and attribute(node, "transB", 0)):
            return axis % len(shape) == 0
        return len(shape) == 2 and axis % len(shape) == 1

    def _split_dequantizers(self) -> bool:
        """Give each use of a DequantizeLinear its own copy."""
        graph, changed = self.graph, False
        for node in graph.in_order():
            if node.op_type != DEQUANTIZE:
                continue
            result = node.output[0]
            uses = list(graph.consumers.get(result, []))
            for target, position in uses if result in graph.pinned else uses[1:]:
                copy = onnx.NodeProto()
                copy.CopyFrom(node)
                copy.output[0] = graph.fresh(f"{result}_again")
                graph.add(copy)
                self.copies.append((copy, result))
                self._copy_shape(copy.output[0], result)
                if id(node) in self.inserted:
                    self.inserted.add(id(copy))
                graph.set_input(target, position, copy.output[0])
                changed = True
        return changed


def _broadcasts(target: object, shape: tuple[int | None, ...]) -> bool:
    """True if a tensor of the shape keeps it where it is expanded to the target."""
    if not isinstance(target, list) or len(target) > len(shape):
        return False
    return all(size in (1, axis) for size, axis in zip(reversed(target), reversed(shape), strict=False))


def _only_moves(node: onnx.NodeProto) -> bool:
    return node.op_type in _MOVES and not node.domain


def inferred_shapes(graph: onnx.GraphProto, opset: int) -> dict[str, tuple[int | None, ...]]:
    """Shapes by tensor; an axis without a number is None."""
    try:
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        inferred = onnx.shape_inference.infer_shapes(model).graph
    except Exception:  # onnx raises different types for a wrong file; the importer reports the error at the node
        inferred = graph
    return {
        info.name: tuple(d.dim_value if d.HasField("dim_value") else None for d in info.type.tensor_type.shape.dim)
        for info in (*inferred.input, *inferred.value_info, *inferred.output)
        if info.type.tensor_type.HasField("shape")
    }
