"""Runs an unmodified ONNX model in a runtime, end to end, and returns the tensors of the same run.

A runtime is one of `oracles.PACKAGES`. onnxruntime gets the bytes of the file and a default session. Its optimized
graph, executed without further optimization, gives the inner tensors. onnx's reference implementation and qonnx run a
file node by node.
"""

from __future__ import annotations

import importlib
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from hlsgen.frontend.onnx_graph import all_nodes
from hlsgen.frontend.quant_lstm import QUANT_LSTM
from hlsgen.numerics.fixed import Array
from hlsgen.simulation.defined_operators import DEFINED
from hlsgen.simulation.exact_values import all_equal
from hlsgen.simulation.oracles import ARM, Unable, constant_of, executor_of, one_line, run_node
from hlsgen.simulation.reference_evaluator import reference_evaluator
from hlsgen.simulation.unrolled_file import unroll

#: Session entry that makes onnxruntime fuse int8 Q/DQ groups on x86, as it does by default on ARM.
_INT8 = ("session.qdqisint8allowed", "1")


class WholeFile(ABC):
    """One file in one runtime.

    runtime: its name. executor: the executor of its single nodes. any_numbers: one frame of the inputs by name, for
    unrolling loops.
    """

    def __init__(self, proto: onnx.ModelProto, runtime: str, any_numbers: Mapping[str, Array]) -> None:
        self.proto, self.runtime, self.any_numbers = proto, runtime, any_numbers
        self.executor = executor_of(runtime)
        self.outputs = [o.name for o in proto.graph.output]

    @abstractmethod
    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """The file's outputs for one frame, by name. Raises Unable."""

    @cached_property
    @abstractmethod
    def executed(self) -> onnx.ModelProto:
        """The nodes that the runtime executes, with loops unrolled. Raises Unable."""

    @abstractmethod
    def _tensors(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """All tensors of `executed` that depend on an input. Raises Unable."""

    def trace(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """All tensors of one frame, by name. Raises Unable if its outputs are not bit-identical to those that `run`
        returns."""
        tensors = {**feeds, **self._tensors(feeds)}
        for name, value in self.run(feeds).items():
            if name not in tensors or not all_equal(value, tensors[name]):
                raise Unable(f"{self.runtime} gives another {name} node by node than for the whole file")
        return tensors


def open_file(proto: onnx.ModelProto, runtime: str, any_numbers: Mapping[str, Array]) -> WholeFile:
    """The file in a runtime of this name. Raises Unable if it cannot be loaded."""
    if executor_of(runtime) == "onnxruntime":
        return _InSession(proto, runtime, any_numbers)
    defined = any(node.op_type in DEFINED or node.op_type == QUANT_LSTM for node in all_nodes(proto.graph))
    if runtime == "onnx" and not defined and not any(n.op_type == "GlobalMaxPool" for n in all_nodes(proto.graph)):
        return _InReference(proto, runtime, any_numbers)
    return _NodeByNode(proto, runtime, any_numbers)


def _unrolled(proto: onnx.ModelProto, executor: str, any_numbers: Mapping[str, Array]) -> onnx.ModelProto:
    """A copy of the file with loops unrolled. Raises Unable."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    unroll(copy.graph, executor, any_numbers, {o.domain: o.version for o in copy.opset_import})
    return copy


class _NodeByNode(WholeFile):
    """Runs a file one node after the other: for qonnx, and for files with operators of `defined_operators`."""

    @cached_property
    def executed(self) -> onnx.ModelProto:
        return _unrolled(self.proto, self.executor, self.any_numbers)

    @cached_property
    def _constants(self) -> dict[str, Array]:
        return {t.name: constant_of(t) for t in self.executed.graph.initializer}

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        tensors = {**feeds, **self._tensors(feeds)}
        return {name: tensors[name] for name in self.outputs if name in tensors}

    def trace(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        return {**feeds, **self._tensors(feeds)}

    def _tensors(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        values, opsets = {**self._constants, **feeds}, {o.domain: o.version for o in self.executed.opset_import}
        for node in self.executed.graph.node:
            missing = next((i for i in node.input if i and i not in values), None)
            if missing is not None:
                raise Unable(f"{node.op_type}: no earlier node produces {missing}")
            results = run_node(self.executor, node, [values[i] for i in node.input if i], opsets)
            values.update(zip([o for o in node.output if o], results, strict=False))
        return values


class _InReference(WholeFile):
    """onnx's reference implementation, which runs whole files."""

    @cached_property
    def _evaluator(self) -> Any:
        return _attempt(lambda: reference_evaluator(self.proto))

    @cached_property
    def executed(self) -> onnx.ModelProto:
        return _unrolled(self.proto, self.executor, self.any_numbers)

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        with np.errstate(all="ignore"):
            values = _attempt(lambda: self._evaluator.run(None, dict(feeds)))
        return {name: np.asarray(value) for name, value in zip(self.outputs, values, strict=True)}

    def _tensors(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        if len(self.executed.graph.node) != len(self.proto.graph.node):  # the evaluator returns no tensors within loops
            return _NodeByNode(self.executed, self.runtime, self.any_numbers)._tensors(feeds)
        with np.errstate(all="ignore"):
            values = _attempt(lambda: self._evaluator.run(None, dict(feeds), intermediate=True))
        return {name: np.asarray(value) for name, value in values.items() if value is not None}


class _InSession(WholeFile):
    """onnxruntime: one default session on the file's bytes."""

    def __init__(self, proto: onnx.ModelProto, runtime: str, any_numbers: Mapping[str, Array]) -> None:
        super().__init__(proto, runtime, any_numbers)
        self._bytes = bytes(proto.SerializeToString(deterministic=True))
        self._session = _attempt(lambda: self._opened(self._bytes))

    def _opened(self, text: bytes, save: Path | None = None, optimize: bool = True) -> Any:
        """A session for a serialized model; `save`: path for the optimized model."""
        package = importlib.import_module("onnxruntime")
        options = package.SessionOptions()
        options.log_severity_level = 4
        if self.runtime == ARM:
            options.add_session_config_entry(*_INT8)
        if save is not None:
            options.optimized_model_filepath = str(save)
        if not optimize:
            options.graph_optimization_level = package.GraphOptimizationLevel.ORT_DISABLE_ALL
        return package.InferenceSession(text, options, providers=["CPUExecutionProvider"])

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        values = _attempt(lambda: self._session.run(None, dict(feeds)))
        return {name: np.asarray(value) for name, value in zip(self.outputs, values, strict=True)}

    @cached_property
    def executed(self) -> onnx.ModelProto:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "optimized.onnx")
            _attempt(lambda: self._opened(self._bytes, save=path))
            optimized = onnx.ModelProto.FromString(path.read_bytes())
        return _unrolled(optimized, self.executor, self.any_numbers)

    @cached_property
    def _traced_session(self) -> tuple[Any, list[str]]:
        """A session of the optimized graph with all tensors as outputs, and their names."""
        copy = onnx.ModelProto()
        copy.CopyFrom(self.executed)
        names = [o for node in copy.graph.node for o in node.output if o]
        ends = {o.name for o in copy.graph.output}
        copy.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names if name not in ends)
        session = _attempt(lambda: self._opened(bytes(copy.SerializeToString()), optimize=False))
        return session, [o.name for o in session.get_outputs()]

    def _tensors(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        session, names = self._traced_session
        values = _attempt(lambda: session.run(None, dict(feeds)))
        return dict(zip(names, map(np.asarray, values), strict=True))


def _attempt(action: Any) -> Any:
    """The result of an action. Raises Unable for any exception."""
    try:
        return action()
    except Exception as error:  # runtimes raise any exception
        raise Unable(one_line(error)) from None
