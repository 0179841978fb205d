"""The second reading of TFLite files: it agrees with Models made by the numerics, and finds each changed number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from tflite_model import made_model
from tflite_random import RandomFile, random_file, steep_function
from tflite_writer import Writer, encode

from hlsgen.certify.second_reading.tflite import compare
from hlsgen.certify.second_reading.tflite.records import Operator, Tensor
from hlsgen.certify.second_reading.tflite.softmax import exponentials
from hlsgen.diagnostics import Collector
from hlsgen.frontend import import_model
from hlsgen.ir import HostOp, Model, Op, RowStep, Slice, Step, Transpose, Window
from hlsgen.ir.ops import Cast, Lookup, Requantize
from hlsgen.ir.row_functions import BelowLargest, FixedPointShare
from hlsgen.numerics.fixed import IntType
from hlsgen.numerics.tflite.softmax import exponentials_in_floats, exponentials_in_integers

LAYERS = ["FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D"]
FUNCTIONS = ["LOGISTIC", "TANH", "HARD_SWISH", "RELU", "RELU6", "LEAKY_RELU", "QUANTIZE"]
MOVES = ["RESHAPE", "TRANSPOSE", "CONCATENATION", "SPLIT"]
#: Kinds of random files, each with the runtimes whose meaning the hand-made Model has.
CASES = [
    *((kind, runtime) for kind in LAYERS for runtime in ("tflm", "litert-ref", "litert")),
    *((f"{kind}:int16", runtime) for kind in LAYERS for runtime in ("tflm", "litert-ref")),
    *((f"{kind}:uint8", "litert-ref") for kind in LAYERS),
    *((kind, runtime) for kind in ("ADD", "SUB") for runtime in ("tflm", "litert")),
    *(("MUL", runtime) for runtime in ("tflm", "litert-ref")),
    *((kind, runtime) for kind in FUNCTIONS for runtime in ("tflm", "litert-ref", "litert")),
    *((f"{kind}:int16", runtime) for kind in ("LOGISTIC", "TANH", "LEAKY_RELU") for runtime in ("tflm", "litert")),
    ("AVERAGE_POOL_2D", "tflm"),
    ("MAX_POOL_2D", "litert"),
    ("MEAN", "tflm"),
    *((kind, "tflm") for kind in MOVES),
]


def _cases(kind: str, runtime: str, number: int) -> Iterator[tuple[RandomFile, Model]]:
    """The first files of a kind that have a hand-made Model: two computed inputs, or a mean over an image."""
    seed = 0
    while number:
        file = random_file(kind, seed)
        operator = file.writer.graphs[0].operators[0]
        is_made = len(file.writer.graphs[0].inputs) == 2 if kind in ("ADD", "SUB", "MUL") else True
        if kind == "MEAN":
            is_made = sorted(np.frombuffer(file.writer.buffers[-1], np.int32)) == [1, 2]
        if is_made:
            yield file, made_model(file, runtime)
            number -= 1
        seed += 1
        assert operator.name == kind.partition(":")[0]


@pytest.mark.parametrize(("kind", "runtime"), CASES)
def test_models_of_the_numerics_agree(kind: str, runtime: str) -> None:
    for file, model in _cases(kind, runtime, 3):
        result = compare(file.data, model)
        assert result.problems == ()
        assert result.once == ()


#: Kinds whose operators are all read a second time.
IMPORTED = """
    FULLY_CONNECTED CONV_2D DEPTHWISE_CONV_2D TRANSPOSE_CONV ADD SUB MUL AVERAGE_POOL_2D MAX_POOL_2D MEAN CONCATENATION
    PAD PADV2 STRIDED_SLICE SPLIT SPLIT_V TRANSPOSE RESHAPE RESIZE_NEAREST_NEIGHBOR STATE CONV_2D:uint8
    TRANSPOSE_CONV:uint8 ADD:uint8 MEAN:uint8 MAX_POOL_2D:int16 CONCATENATION:int16 LOGISTIC TANH HARD_SWISH RELU RELU6
    LEAKY_RELU PRELU QUANTIZE LOGISTIC:uint8 RESIZE_BILINEAR SOFTMAX SOFTMAX:uint8 SOFTMAX:int16 SOFTMAX:8to16 NET LOGISTIC:int16 TANH:int16
    RELU:int16 RELU6:int16 LEAKY_RELU:int16 PRELU:int16 QUANTIZE:16 QUANTIZE:8to16 QUANTIZE:16to16 QUANTIZE:f
    QUANTIZE:f16 SLICE GATHER PACK UNPACK SLICE:uint8 GATHER:uint8 PACK:uint8 UNPACK:uint8 DEQUANTIZE
    DEQUANTIZE:int16 DEQUANTIZE:uint8 ATTENTION ATTENTION:uint8 LSTM SVDF
""".split()


#: Kinds without a kernel in the runtime, or with one that rounds by the position in the tensor.
REFUSED = {("tflm", "PRELU:int16"), ("litert", "QUANTIZE:f16"), ("litert", "ATTENTION")}


@pytest.mark.parametrize("runtime", ["tflm", "litert-ref", "litert"])
@pytest.mark.parametrize("kind", IMPORTED)
def test_imported_files_agree(kind: str, runtime: str, tmp_path: Path) -> None:
    path, agreed = tmp_path / "m.tflite", 0
    for seed in range(4):
        path.write_bytes(random_file(kind, seed).data)
        problems = Collector()
        model = import_model(path, problems, runtime=runtime)
        if model is not None:
            result = compare(path.read_bytes(), model)
            assert (result.problems, result.once) == ((), ())
            agreed += 1
        else:
            assert problems.errors[0].code in ("HG013", "HG026", "HG030")
    is_micro_of_uint8 = (runtime, kind[-5:]) == ("tflm", "uint8")
    assert agreed or (runtime, kind.partition(":uint8")[0]) in REFUSED or is_micro_of_uint8


@pytest.mark.parametrize("runtime", ["tflm", "litert-ref", "litert"])
@pytest.mark.parametrize("kind", ["LOGISTIC", "TANH"])
def test_functions_of_large_scales_agree(kind: str, runtime: str, tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(steep_function(kind, 100.0).data)
    model = import_model(path, Collector(), runtime=runtime)
    assert model is not None
    assert compare(path.read_bytes(), model).problems == ()


def test_what_nothing_uses_is_not_read(tmp_path: Path) -> None:
    """An unused buffer that points outside the file, as the frontend accepts it."""
    file = random_file("RELU", 0)
    path = tmp_path / "m.tflite"
    root = file.writer.table()
    root[4].append({0: np.uint8([77] * 3)})
    data = encode(root)
    place = data.rindex(b"\x03\0\0\0" + b"MMM")
    path.write_bytes(data[:place] + b"\xff\xff\xff\x7f" + data[place + 4 :])
    model = import_model(path, Collector(), runtime="tflm")
    assert model is not None
    assert compare(path.read_bytes(), model).problems == ()


def test_an_output_that_is_the_input_is_refused(tmp_path: Path) -> None:
    writer = Writer()
    graph = writer.graph()
    x, y = (graph.tensor((1, 3), "int8", 0.5) for _ in range(2))
    graph.operator("RESHAPE", [x], [y])
    graph.inputs, graph.outputs = [x], [y]
    path, problems = tmp_path / "m.tflite", Collector()
    path.write_bytes(writer.bytes())
    assert import_model(path, problems, runtime="tflm") is None
    assert [(error.code, error.message) for error in problems.errors] == [("HG015", "the output is the input.")]


#: Changes inside a sum of two inputs that no pair of codes shows: 28 bits precede its last rounding.
HIDDEN = {("Mul", "value"), ("Requantize", "add"), ("Requantize", "zero_point")}


def _is_hidden(kind: str, model: Model, position: int, name: str) -> bool:
    op = model.steps[position].op
    is_sum = kind in ("ADD", "SUB", "MUL")
    is_last = position == len(model.steps) - 1
    return is_sum and (
        (type(op).__name__, name) in HIDDEN - ({("Requantize", "zero_point")} if is_last else set())
        or (not is_last and name.endswith("code"))
    )


def _changed(op: object, rng: np.random.Generator) -> Iterator[tuple[str, object]]:
    """The operation with one of its numbers changed by 1, for each of its fields."""
    for field in fields(op):  # type: ignore[arg-type]
        value = getattr(op, field.name)
        if isinstance(value, np.ndarray) and value.size and not isinstance(op, Lookup):
            changed = value.copy()
            place = tuple(int(rng.integers(size)) for size in value.shape)
            if value.dtype == np.float32:
                changed[place] = np.nextafter(changed[place], np.float32(np.inf))
            else:
                changed[place] += 1
            yield field.name, replace(op, **{field.name: changed})  # type: ignore[type-var]
        elif isinstance(op, Lookup):
            for place in (0, len(value) // 2, len(value) - 1):
                changed = value.copy()
                changed[place] -= np.sign(changed[place].astype(int) or -1).astype(changed.dtype)
                yield f"entry {place}", replace(op, values=changed)
        elif isinstance(value, IntType):
            yield "first code", replace(op, **{field.name: IntType(value.lo + 1, value.hi)})  # type: ignore[type-var]
            yield "last code", replace(op, **{field.name: IntType(value.lo, value.hi - 1)})  # type: ignore[type-var]
        elif isinstance(value, Window) and value.pads[0] + value.pads[2]:
            top, *sides, bottom, right = value.pads
            pads = (top + 1, *sides, bottom - 1, right) if bottom else (top - 1, *sides, 1, right)
            moved = replace(value, pads=pads)  # type: ignore[arg-type]
            yield "pads", replace(op, **{field.name: moved})  # type: ignore[type-var]


@pytest.mark.parametrize(("kind", "runtime"), [case for case in CASES if case[0] not in MOVES])
def test_each_changed_number_is_found(kind: str, runtime: str) -> None:
    rng = np.random.default_rng(3)
    tried = 0
    missed = []
    for file, model in _cases(kind, runtime, 2):
        for position, step in enumerate(model.steps):
            if isinstance(step.op, Cast):
                continue
            for name, op in _changed(step.op, rng):
                steps = list(model.steps)
                steps[position] = replace(step, op=op)
                if _is_hidden(kind, model, position, name):
                    continue
                tried += 1
                if not compare(file.data, replace(model, steps=tuple(steps))).problems:
                    missed.append((type(step.op).__name__, name))
    assert tried
    assert not missed


@pytest.mark.parametrize("runtime", ["tflm", "litert"])
@pytest.mark.parametrize("kind", ["RESIZE_BILINEAR", "RELU:int16", "RELU6:int16", "QUANTIZE:f", "DEQUANTIZE"])
def test_each_changed_number_of_an_imported_file_is_found(kind: str, runtime: str, tmp_path: Path) -> None:
    rng, path, tried = np.random.default_rng(5), tmp_path / "m.tflite", 0
    for seed in range(4):
        path.write_bytes(random_file(kind, seed).data)
        model = import_model(path, Collector(), runtime=runtime)
        assert model is not None
        for position, step in enumerate(model.steps):
            for name, op in _changed(step.op, rng) if not isinstance(step.op, Transpose) else ():
                if name in ("multiplier", "last code") and kind.endswith(":int16"):
                    continue  # The last bit of 31 changes no code of 16 bits, and some results end before 32767.
                steps = list(model.steps)
                steps[position] = replace(step, op=op)
                tried += 1
                assert compare(path.read_bytes(), replace(model, steps=tuple(steps))).problems, (seed, name)
    assert tried >= 8


@pytest.mark.sweep
@pytest.mark.parametrize("runtime", ["tflm", "litert-ref"])
@pytest.mark.parametrize("kind", ["LSTM", "SVDF"])
def test_each_changed_number_of_a_recurrent_operator_is_found(kind: str, runtime: str, tmp_path: Path) -> None:
    rng, path, missed = np.random.default_rng(5), tmp_path / "m.tflite", set()
    path.write_bytes(random_file(kind, 3).data)
    model = import_model(path, Collector(), runtime=runtime)
    assert model is not None
    changes = [
        (position, name, op)
        for position, step in enumerate(model.steps)
        for name, op in (_changed(step.op, rng) if not isinstance(step.op, Transpose | Slice) else ())
        if name not in ("first code", "last code")
    ]
    for number in rng.permutation(len(changes))[:20]:
        position, name, op = changes[number]
        steps = list(model.steps)
        steps[position] = replace(model.steps[position], op=op)
        if not compare(path.read_bytes(), replace(model, steps=tuple(steps))).problems:
            missed.add((type(op).__name__, name))
    assert not missed


def _softmax_changes(op: HostOp) -> Iterator[tuple[str, HostOp]]:
    """The operation with one entry of a table changed by the least step, another type, shape or kind of table."""

    def changed(change: Callable[[onnx.ModelProto], object]) -> HostOp:
        model = onnx.ModelProto.FromString(op.model)
        change(model)
        return HostOp(op.op_type, model.SerializeToString())

    def with_table(number: int, table: np.ndarray) -> HostOp:
        name = model.graph.initializer[number].name
        return changed(lambda m: m.graph.initializer[number].CopyFrom(numpy_helper.from_array(table, name)))

    model = onnx.ModelProto.FromString(op.model)
    for number, tensor in enumerate(model.graph.initializer):
        table = numpy_helper.to_array(tensor)
        for place in {0, 1, min(17, len(table) - 1), len(table) - 1}:
            entries = table.copy()
            entries[place] += 1 if table.dtype == np.int64 else np.spacing(max(entries[place], np.float32(1e-30)))
            yield f"entry {place} of {number}", with_table(number, entries)
        kind = np.float32 if table.dtype == np.int64 else np.int64
        yield f"kind {number}", with_table(number, table.astype(kind))
    ends = model.graph.input[0].type.tensor_type, model.graph.output[0].type.tensor_type
    other = TensorProto.UINT8 if ends[0].elem_type != TensorProto.UINT8 else TensorProto.INT8
    yield "type", changed(lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", other))
    yield "type of the result", changed(lambda m: setattr(m.graph.output[0].type.tensor_type, "elem_type", other))
    yield "attribute", changed(lambda m: setattr(m.graph.node[0].attribute[0], "s", b"int32"))
    yield "shape", changed(lambda m: m.graph.input[0].type.tensor_type.shape.dim.add(dim_value=1))
    model.graph.node[0].op_type = "HARDMAX"
    yield "operator", HostOp(op.op_type, model.SerializeToString())
    yield "name", HostOp("HARDMAX", op.model)


@pytest.mark.parametrize("runtime", ["tflm", "litert-ref", "litert"])
@pytest.mark.parametrize("kind", ["SOFTMAX", "SOFTMAX:uint8", "SOFTMAX:int16", "SOFTMAX:8to16"])
def test_each_changed_number_of_a_softmax_is_found(kind: str, runtime: str, tmp_path: Path) -> None:
    path, tried = tmp_path / "m.tflite", 0
    for seed in range(6):
        path.write_bytes(random_file(kind, seed).data)
        model = import_model(path, Collector(), runtime=runtime)
        if model is None:
            continue
        step = model.steps[-1]
        assert isinstance(step.op, HostOp)
        for name, op in _softmax_changes(step.op):
            changed = replace(model, steps=(*model.steps[:-1], replace(step, op=op)))
            tried += 1
            assert compare(path.read_bytes(), changed).problems, (seed, name)
    assert tried or (kind, runtime) == ("SOFTMAX:uint8", "tflm")


def _row_changes(op: Op) -> Iterator[tuple[str, Op]]:
    match op:
        case RowStep(FixedPointShare(exponentials, bits)):
            for place in (0, 1, 17, 255):
                changed = exponentials.copy()
                changed[place] += 1
                yield f"entry {place}", RowStep(FixedPointShare(changed, bits))
            yield "bits", RowStep(FixedPointShare(exponentials, bits + 1))
        case Requantize():
            yield from ((name, changed) for name, changed in _changed(op, np.random.default_rng(0)))  # type: ignore[misc]


@pytest.mark.sweep
@pytest.mark.parametrize(("kind", "runtime"), [("ATTENTION", "tflm"), ("ATTENTION:uint8", "litert-ref")])
def test_each_changed_number_of_a_softmax_in_hardware_is_found(kind: str, runtime: str, tmp_path: Path) -> None:
    path, tried = tmp_path / "m.tflite", 0
    for seed in range(3):
        path.write_bytes(random_file(kind, seed).data)
        model = import_model(path, Collector(), runtime=runtime)
        assert model is not None
        (first,) = (n for n, step in enumerate(model.steps) if _is_below(step))
        for position in range(first, first + 4):
            step = model.steps[position]
            for name, op in _row_changes(step.op):
                steps = list(model.steps)
                steps[position] = replace(step, op=op)
                tried += 1
                assert compare(path.read_bytes(), replace(model, steps=tuple(steps))).problems, (seed, position, name)
    assert tried > 20


def _is_below(step: Step) -> bool:
    return isinstance(step.op, RowStep) and isinstance(step.op.function, BelowLargest)


@pytest.mark.sweep
@pytest.mark.parametrize("runtime", ["tflm", "litert"])
def test_exponentials_of_all_scales_agree(runtime: str) -> None:
    """The tables of both derivations, also where the largest distance is cut, or differences round to 0."""
    rng = np.random.default_rng(0)
    scales = [*(2.0**n for n in range(-25, 8)), *np.exp(rng.uniform(np.log(1e-7), np.log(200.0), 150))]
    of = exponentials_in_integers if runtime == "tflm" else exponentials_in_floats
    for scale in map(np.float32, scales):
        for beta in (1.0, float(np.float32(rng.uniform(0.6, 2)))):
            data = Tensor("x", (1, 4), "int8", np.array([scale]), np.zeros(1, np.int64), 0, None)
            operator = Operator("SOFTMAX", "y", (0,), (1,), {"beta": beta})
            assert np.array_equal(exponentials(operator, data, runtime), of(float(scale), beta)), (scale, beta)
