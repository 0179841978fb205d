"""Reading of TFLite files: all that was written is read back, and hostile files give diagnostics."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tflite_random import KINDS, KINDS_INT16, KINDS_UINT8, random_file
from tflite_writer import OPERATORS, Scalar, Table, Writer, encode

from hlsgen.diagnostics import HlsgenError
from hlsgen.frontend.tflite.file import TfliteFile, read_file
from hlsgen.frontend.tflite.flatbuffer import MAX_VISITS
from hlsgen.frontend.tflite.schema import OPERATORS as NAMES
from hlsgen.frontend.tflite.schema import OPTIONS

#: Bounds for one file of any content.
MAX_BYTES, MAX_SECONDS = 200e6, 1.0


def _compare(file: TfliteFile, writer: Writer) -> None:
    assert len(file.graphs) == len(writer.graphs)
    for graph, written in zip(file.graphs, writer.graphs, strict=True):
        assert (graph.inputs, graph.outputs) == (tuple(written.inputs), tuple(written.outputs))
        for tensor, expected in zip(graph.tensors, written.tensors, strict=True):
            assert (tensor.name, tensor.shape, tensor.type) == (expected.name, expected.shape, expected.type)
            assert tensor.is_variable == expected.is_variable
            if expected.scale is None:
                assert tensor.quantization is None
            else:
                assert tensor.quantization is not None
                assert np.array_equal(tensor.quantization.scale, np.atleast_1d(np.float32(expected.scale)))
                assert np.all(tensor.quantization.zero_point == expected.zero_point)
                assert tensor.quantization.axis == expected.axis
            if expected.buffer:
                assert tensor.data is not None
                assert tensor.data.tobytes() == writer.buffers[expected.buffer]
            else:
                assert tensor.data is None or not tensor.data.size
        for operator, expected_operator in zip(graph.operators, written.operators, strict=True):
            assert (operator.name, operator.version) == (expected_operator.name, 1)
            assert operator.inputs == tuple(expected_operator.inputs)
            assert operator.outputs == tuple(expected_operator.outputs)
            assert operator.intermediates == tuple(expected_operator.intermediates)
            for key, value in expected_operator.options.items():
                read = operator.options[key]
                assert read == (
                    tuple(value) if isinstance(read, tuple) else np.float32(value) if isinstance(read, float) else value
                )


@pytest.mark.parametrize("kind", [*KINDS, *KINDS_INT16, *KINDS_UINT8])
def test_all_that_was_written_is_read(kind: str) -> None:
    for seed in range(3):
        written = random_file(kind, seed)
        _compare(read_file(written.data, "model.tflite"), written.writer)


def test_numbers_of_the_schema_are_those_of_the_writer() -> None:
    for name, (number, kind, fields) in OPERATORS.items():
        assert NAMES[number] == name
        if name in OPTIONS:
            assert OPTIONS[name].type == kind
            assert all(OPTIONS[name].fields[key].number == field for key, (field, _, _) in fields.items()), name


def _small() -> Writer:
    """Two operators: a dense layer and RELU."""
    writer = Writer()
    graph = writer.graph()
    x = graph.tensor((1, 3), "int8", 0.5, name="x")
    weights = graph.tensor((2, 3), "int8", [0.5, 0.25], data=np.ones((2, 3)), name="weights")
    bias = graph.tensor((2,), "int32", [0.25, 0.125], data=[1, 2], name="bias")
    inner = graph.tensor((1, 2), "int8", 0.5, name="inner")
    y = graph.tensor((1, 2), "int8", 0.5, name="y")
    graph.operator("FULLY_CONNECTED", [x, weights, bias], [inner])
    graph.operator("RELU", [inner], [y])
    graph.inputs, graph.outputs = [x], [y]
    return writer


def test_operators_are_named_after_their_results() -> None:
    writer = _small()
    assert [operator.node for operator in read_file(writer.bytes(), "f").graphs[0].operators] == ["inner", "y"]
    writer.graphs[0].tensors[4].name = "inner"
    assert [operator.node for operator in read_file(writer.bytes(), "f").graphs[0].operators] == ["OP_0", "OP_1"]


def test_inputs_and_outputs_have_distinct_names() -> None:
    writer = _small()
    file = read_file(writer.bytes(), "f")
    assert (file.input_names, file.output_names) == (("x",), ("y",))
    writer.signature = (["signal"], ["signal"])
    file = read_file(writer.bytes(), "f")
    assert (file.input_names, file.output_names) == (("signal",), ("signal_2",))
    writer.signature = None
    writer.graphs[0].tensors[0].name = ""
    assert read_file(writer.bytes(), "f").input_names == ("input_0",)


def test_a_wrong_axis_and_scale_that_nothing_uses_are_read() -> None:
    writer = _small()
    bias = writer.graphs[0].tensors[2]
    bias.axis, bias.scale = 3, np.array([np.nan, -1.0])
    quantization = read_file(writer.bytes(), "f").graphs[0].tensors[2].quantization
    assert quantization is not None
    assert quantization.axis == 3


Change = Callable[[Table], object]


def _tensor(root: Table, number: int) -> Table:
    return root[2][0][0][number]


def _operator(root: Table, number: int) -> Table:
    return root[2][0][3][number]


def _set(table: Table, field: int, value: object) -> None:
    table[field] = value


def _call_itself(root: Table) -> None:
    code = {0: Scalar("b", 127), 3: Scalar("i", 129)}
    root[1].append(code)
    operator = {0: Scalar("I", 2), 3: Scalar("B", 103), 4: {0: Scalar("i", 1)}}
    root[2][0][3].append(operator)
    root[2].append({3: [operator]})


_INT = np.int32
#: Changes of the small file: name -> (change of its tables, code, part of the message).
HOSTILE: dict[str, tuple[Change, str, str]] = {
    "version": (lambda r: _set(r, 0, Scalar("I", 4)), "HG002", "version 4"),
    "no graph": (lambda r: _set(r, 2, []), "HG002", "no graph"),
    "no operator": (lambda r: _set(r[2][0], 3, []), "HG002", "no graph with at least one operator"),
    "negative size": (lambda r: _set(_tensor(r, 0), 0, _INT([1, -3])), "HG002", "negative"),
    "product of sizes": (lambda r: _set(_tensor(r, 0), 0, _INT([1 << 30] * 8)), "HG004", "elements"),
    "nine sizes": (lambda r: _set(_tensor(r, 0), 0, _INT([1] * 9)), "HG002", "9 dimensions"),
    "type": (lambda r: _set(_tensor(r, 0), 1, Scalar("b", 99)), "HG002", "type 99"),
    "negative type": (lambda r: _set(_tensor(r, 0), 1, Scalar("b", -1)), "HG002", "type -1"),
    "buffer number": (lambda r: _set(_tensor(r, 0), 2, Scalar("I", 7)), "HG002", "buffer 7"),
    "data in buffer 0": (lambda r: _set(r[4][0], 0, np.uint8([1])), "HG002", "buffer 0"),
    "short buffer": (lambda r: _set(r[4][1], 0, np.uint8([1] * 5)), "HG002", "needs 6"),
    "long buffer": (lambda r: _set(r[4][1], 0, np.uint8([1] * 7)), "HG002", "needs 6"),
    "data behind": (lambda r: _set(r[4][1], 1, Scalar("Q", 1 << 63)), "HG003", "behind"),
    "size behind": (lambda r: _set(r[4][1], 2, Scalar("Q", 64)), "HG003", "behind"),
    "operator code": (lambda r: _set(_operator(r, 1), 0, Scalar("I", 2)), "HG002", "operator code is 2"),
    "input number": (lambda r: _set(_operator(r, 1), 1, _INT([5])), "HG002", "tensor 5"),
    "input -2": (lambda r: _set(_operator(r, 1), 1, _INT([-2])), "HG002", "tensor -2"),
    "absent output": (lambda r: _set(_operator(r, 1), 2, _INT([-1])), "HG002", "tensor -1"),
    "absent graph input": (lambda r: _set(r[2][0], 1, _INT([-1])), "HG002", "tensor -1"),
    "absent graph output": (lambda r: _set(r[2][0], 2, _INT([-1])), "HG002", "tensor -1"),
    "other options": (lambda r: _set(_operator(r, 0), 3, Scalar("B", 5)), "HG002", "options of kind 5"),
    "activation": (lambda r: _set(_operator(r, 0), 4, {0: Scalar("b", 9)}), "HG002", "fused_activation_function is 9"),
    "before its origin": (lambda r: r[2][0][3].reverse(), "HG002", "before any operator computes it"),
    "written twice": (lambda r: _set(_operator(r, 1), 2, _INT([3])), "HG002", "written before"),
    "constant result": (lambda r: _set(_operator(r, 1), 2, _INT([2])), "HG002", "a constant or a variable"),
    "no origin of the output": (lambda r: r[2][0][3].pop(), "HG002", "before any operator computes it"),
    "shuffled weights": (lambda r: _set(_operator(r, 0), 4, {1: Scalar("b", 1)}), "HG013", "SHUFFLED"),
    "sparse weights": (lambda r: _set(_tensor(r, 1), 6, {}), "HG026", "FULLY_CONNECTED: 'weights' has sparse"),
    "int4 weights": (lambda r: _set(_tensor(r, 1), 1, Scalar("b", 17)), "HG026", "type int4"),
    "blocks": (lambda r: _tensor(r, 1)[4].update({4: Scalar("B", 2), 5: {}}), "HG026", "quantization of blocks"),
    "external": (lambda r: _set(_tensor(r, 1), 10, Scalar("I", 1)), "HG026", "another file"),
    "open dimension": (lambda r: _set(_tensor(r, 0), 7, _INT([-1, -1])), "HG012", "open"),
    "recursion": (_call_itself, "HG015", "CALL_ONCE in it"),
    "shared table": (lambda r: _set(r, 4, [{}] * (MAX_VISITS + 1)), "HG002", "refers to more than"),
    "shared tensor": (lambda r: _set(r[2][0], 0, [_tensor(r, 0)] * 200_000), "HG002", "refers to more than"),
    "shared operator": (lambda r: _set(r[2][0], 3, [_operator(r, 0)] * 120_000), "HG002", ""),
    "long name": (lambda r: _set(_tensor(r, 0), 3, "x" * 70_000), "HG002", "70000 bytes"),
    "many inputs": (lambda r: _set(_operator(r, 0), 1, np.full(5_000_000, -1, _INT)), "HG002", "refers to more than"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_by_name(name: str) -> None:
    change, code, message = HOSTILE[name]
    root = _small().table()
    change(root)
    data = encode(root)
    started = time.process_time()
    with pytest.raises(HlsgenError) as caught:
        read_file(data, "model.tflite")
    assert time.process_time() - started < MAX_SECONDS
    assert caught.value.diagnostics[0].code == code, caught.value
    assert message in str(caught.value)


def test_a_name_that_is_not_utf8_is_shown_with_escapes() -> None:
    data = _small().bytes().replace(b"weights\0", b"w\xff\xfeghts\0")
    assert read_file(data, "f").graphs[0].tensors[1].name == "w\\xff\\xfeghts"


def test_options_of_custom_operators_are_not_parsed() -> None:
    root = _small().table()
    root[1].append({0: Scalar("b", 32), 1: "Flex", 3: Scalar("i", 32)})
    _operator(root, 1)[0] = Scalar("I", 2)
    _operator(root, 1)[5] = np.uint8([255] * 64)
    operator = read_file(encode(root), "f").graphs[0].operators[1]
    assert (operator.name, operator.custom, dict(operator.options)) == ("CUSTOM", "Flex", {})


def test_only_files_with_the_identifier_are_read(tmp_path: Path) -> None:
    for data in (b"", b"TFL3", b"\0" * 7, b"\x08\0\0\0TFL3", b"\xff\xff\xff\xffTFL3\0\0\0\0", b"\x08\x03\x12\x04" * 9):
        with pytest.raises(HlsgenError) as caught:
            read_file(data, "model.tflite")
        assert caught.value.diagnostics[0].code == "HG002"
    with pytest.raises(HlsgenError, match="HG001"):
        read_file(tmp_path / "absent.tflite", "absent.tflite")


def _mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """The bytes with some changed, moved, cut off or replaced by numbers at the borders of their types."""
    mutated = bytearray(data)
    for _ in range(int(rng.choice([1, 1, 2, 8, 40]))):
        place = int(rng.integers(8 if rng.random() < 0.9 else 0, len(mutated) - 4))
        match int(rng.integers(5)):
            case 0:
                mutated[place] = int(rng.integers(256))
            case 1:
                mutated[place] ^= 1 << int(rng.integers(8))
            case 2:
                border = int(rng.choice([0, 1, 4, 2**31 - 1, 2**31, 2**32 - 1, len(mutated), len(mutated) - place]))
                mutated[place : place + 4] = border.to_bytes(4, "little")
            case 3:
                start = int(rng.integers(0, len(mutated) - 4))
                mutated[place : place + 4] = mutated[start : start + 4]
            case _:
                if rng.random() < 0.1 and place > 64:
                    del mutated[place:]
    return bytes(mutated)


@pytest.mark.sweep
def test_mutated_files_give_diagnostics_only() -> None:
    rng = np.random.default_rng(7)
    kinds = ("NET", "LSTM", "STATE", "CONV_2D", "STRIDED_SLICE", "SVDF", "SPLIT", "SOFTMAX")
    refused = read = 0
    for seed in range(640):
        data = _mutated(random_file(kinds[seed % len(kinds)], seed // 40).data, rng)
        tracemalloc.start()
        started = time.process_time()
        try:
            read_file(data, "model.tflite")
            read += 1
        except HlsgenError:
            refused += 1
        assert time.process_time() - started < MAX_SECONDS
        assert tracemalloc.get_traced_memory()[1] < MAX_BYTES
        tracemalloc.stop()
    assert refused > 200
    assert read > 100
