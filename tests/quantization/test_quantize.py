"""`hlsgen quantize`: float models quantized with a sample, dynamic scales frozen, both built afterwards."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from paths import ROOT
from typer.testing import CliRunner

import hlsgen
from hlsgen import cli

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

RNG = np.random.default_rng(5)
SAMPLE = RNG.uniform(0, 1, (48, 6)).astype(np.float32)


def float_model(path: Path) -> Path:
    """Two dense layers of 6 inputs, 8 neurons, 3 classes."""
    weights = {
        "w1": RNG.normal(size=(6, 8)).astype(np.float32),
        "b1": RNG.normal(size=(1, 8)).astype(np.float32),
        "w2": RNG.normal(size=(8, 3)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["sum"], "dense1"),
        helper.make_node("Relu", ["sum"], ["relu"], "relu1"),
        helper.make_node("MatMul", ["relu", "w2"], ["y"], "dense2"),
    ]
    return _saved(nodes, weights, path)


def dynamic_model(path: Path) -> Path:
    """A dense layer whose input onnx quantizes by its range in each run."""
    constants = {
        "w": RNG.integers(-127, 128, (6, 3)).astype(np.int8),
        "w_scale": np.float32(0.02),
        "bias": np.array([0.5, -0.25, 0.125], np.float32),
    }
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["codes", "scale", "zero"], "dynamic"),
        helper.make_node("MatMulInteger", ["codes", "w", "zero"], ["sum"], "dense"),
        helper.make_node("Cast", ["sum"], ["float_sum"], "cast", to=TensorProto.FLOAT),
        helper.make_node("Mul", ["scale", "w_scale"], ["sum_scale"], "scales"),
        helper.make_node("Mul", ["float_sum", "sum_scale"], ["scaled"], "rescale"),
        helper.make_node("Add", ["scaled", "bias"], ["y"], "add"),
    ]
    return _saved(nodes, constants, path)


def _saved(nodes: list[onnx.NodeProto], constants: dict[str, np.ndarray], path: Path) -> Path:
    graph = helper.make_graph(
        nodes,
        "m",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def scales_of(path: Path) -> dict[str, np.ndarray]:
    """Arrays of all scales of quantizers in a file."""
    graph = onnx.load(path).graph
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    quantizers = [node for node in graph.node if node.op_type in ("QuantizeLinear", "DequantizeLinear")]
    return {node.input[1]: arrays[node.input[1]] for node in quantizers}


def codes_of_weights(path: Path) -> np.ndarray:
    graph = onnx.load(path).graph
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    names = [node.input[0] for node in graph.node if node.op_type == "DequantizeLinear" and node.input[0] in arrays]
    return np.concatenate([arrays[name].ravel() for name in names if arrays[name].dtype == np.int8])


@pytest.mark.parametrize(
    "options",
    [
        hlsgen.QuantizeOptions(),
        hlsgen.QuantizeOptions(weight_bits=3, per_tensor=True),
        hlsgen.QuantizeOptions(weight_bits=4),
        hlsgen.QuantizeOptions(power_of_two=True),
        hlsgen.QuantizeOptions(activation_bits=16, method="percentile"),
    ],
    ids=["default", "3 bits", "4 bits per channel", "power of two", "16 bits"],
)
def test_a_float_model_builds_afterwards(options: hlsgen.QuantizeOptions, tmp_path: Path) -> None:
    model, output = float_model(tmp_path / "float.onnx"), tmp_path / "quantized.onnx"
    result = hlsgen.quantize(model, SAMPLE, output, options)
    assert result.frozen is None
    assert result.frames == 48
    assert result.outputs[0].snr_db > (5 if options.weight_bits == 3 else 10 if options.weight_bits == 4 else 25)
    limit = 2 ** (options.weight_bits - 1) - 1
    codes = codes_of_weights(output)
    assert limit / 2 < np.abs(codes.astype(int)).max() <= limit
    sizes = [scale.size for scale in scales_of(output).values()]
    assert max(sizes) == (1 if options.per_tensor or options.power_of_two else 8)
    if options.power_of_two:
        assert all((np.frexp(scale)[0] == 0.5).all() for scale in scales_of(output).values())
    build = hlsgen.check(output)
    assert build.graph.model.runtime == "onnxruntime"
    if options.power_of_two:
        text = CliRunner().invoke(cli.app, ["check", str(output)]).stdout
        assert text.count("* shift:") + text.count("* lane-shift:") == 2, text


def test_the_scales_of_a_dynamic_model_are_frozen(tmp_path: Path) -> None:
    """Scale and zero point are those that DynamicQuantizeLinear gives for the whole sample."""
    import onnxruntime

    model, output = dynamic_model(tmp_path / "dynamic.onnx"), tmp_path / "frozen.onnx"
    sample = SAMPLE * 3 - 1
    result = hlsgen.quantize(model, sample, output)
    assert result.frozen == 1
    assert not {node.op_type for node in result.model.graph.node} & {"DynamicQuantizeLinear"}
    # In one run of all frames the dynamic file takes the same scales: the outputs are equal.
    runs = [onnxruntime.InferenceSession(str(path)).run(None, {"x": sample})[0] for path in (model, output)]
    assert np.array_equal(*runs)
    hlsgen.check(output)


def test_the_command(tmp_path: Path) -> None:
    model, output = float_model(tmp_path / "float.onnx"), tmp_path / "q.onnx"
    np.save(tmp_path / "x.npy", SAMPLE)
    command = ["quantize", str(model), "--calibrate", str(tmp_path / "x.npy"), "-o", str(output)]
    result = CliRunner().invoke(cli.app, command)
    assert result.exit_code == 0, result.output
    assert "y: largest difference" in result.output
    assert "hlsgen check" in result.output
    # onnxruntime prints its progress for this method.
    answer = json.loads(CliRunner().invoke(cli.app, [*command, "--json", "--method", "percentile"]).stdout)
    assert answer["ok"]
    assert answer["runs"] == 48
    assert answer["outputs"][0]["name"] == "y"


@pytest.mark.parametrize(
    "arguments, sample, code, text",
    [
        (["--weight-bits", "9"], SAMPLE, "HG040", "2 to 8"),
        (["--activation-bits", "4"], SAMPLE, "HG040", "8, 16"),
        (["--method", "mean"], SAMPLE, "HG040", "minmax, entropy, percentile"),
        ([], SAMPLE[:, :5], "HG054", "[?, 6]"),
        ([], SAMPLE * np.nan, "HG054", "float32"),
        ([], SAMPLE[0, 0], "HG054", "[?, 6]"),
    ],
)
def test_wrong_arguments(arguments: list[str], sample: np.ndarray, code: str, text: str, tmp_path: Path) -> None:
    model, output = float_model(tmp_path / "float.onnx"), tmp_path / "q.onnx"
    np.save(tmp_path / "x.npy", sample)
    command = ["quantize", str(model), "--calibrate", str(tmp_path / "x.npy"), "-o", str(output), *arguments]
    result = CliRunner().invoke(cli.app, command)
    assert result.exit_code in (1, 2)
    assert code in result.stderr, result.stderr
    assert text in result.stderr, result.stderr
    assert not output.exists()


def test_a_quantized_model_is_refused(tmp_path: Path) -> None:
    output = tmp_path / "q.onnx"
    hlsgen.quantize(float_model(tmp_path / "float.onnx"), SAMPLE, output)
    with pytest.raises(hlsgen.HlsgenError, match=r"HG040 .*quantized already"):
        hlsgen.quantize(output, SAMPLE, tmp_path / "again.onnx")


def test_names_of_inputs_are_checked(tmp_path: Path) -> None:
    with pytest.raises(hlsgen.HlsgenError, match=r"HG054 .*'a'.*Inputs of the model: x"):
        hlsgen.quantize(float_model(tmp_path / "float.onnx"), {"a": SAMPLE}, tmp_path / "q.onnx")


@pytest.mark.sweep
def test_the_example_of_scikit_learn_runs(tmp_path: Path) -> None:
    pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    script = ROOT / "examples" / "quantize" / "scikit_learn.py"
    result = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    accuracy = re.search(r"accuracy of the hardware: ([\d.]+)%", result.stdout)
    assert accuracy, result.stdout
    assert float(accuracy[1]) > 85


def test_the_model_is_not_overwritten(tmp_path: Path) -> None:
    model = float_model(tmp_path / "float.onnx")
    before = model.read_bytes()
    with pytest.raises(hlsgen.HlsgenError, match=r"HG040 --output: the same file"):
        hlsgen.quantize(model, SAMPLE, model)
    assert model.read_bytes() == before


def test_options_do_not_apply_to_dynamic_models(tmp_path: Path) -> None:
    model = dynamic_model(tmp_path / "dynamic.onnx")
    with pytest.raises(hlsgen.HlsgenError, match=r"HG040 .*only its dynamic scales are frozen"):
        hlsgen.quantize(model, SAMPLE, tmp_path / "q.onnx", hlsgen.QuantizeOptions(weight_bits=4))


def test_a_model_that_fails_at_run_time(tmp_path: Path) -> None:
    """A Reshape that does not fit the sample: the reason of onnxruntime, and no file."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["sum"], "dense"),
        helper.make_node("Reshape", ["sum", "shape"], ["y"], "reshape"),
    ]
    constants = {"w": np.ones((6, 3), np.float32), "shape": np.array([5, 2])}
    model = _saved(nodes, constants, tmp_path / "m.onnx")
    with pytest.raises(hlsgen.HlsgenError, match=r"HG010 .*onnxruntime cannot"):
        hlsgen.quantize(model, SAMPLE, tmp_path / "q.onnx")
    assert not (tmp_path / "q.onnx").exists()
