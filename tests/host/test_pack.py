"""Bus bytes of whole builds: `hlsgen pack` and `unpack`, both host codes, and the vectors of the test bench."""

from __future__ import annotations

import ctypes
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from host_code import module_of, self_tests
from models import Net, mlp, quantizer, save
from onnx import TensorProto, helper, numpy_helper
from paths import DATA, ROOT
from typer.testing import CliRunner

import hlsgen
from hlsgen.cli import app
from hlsgen.diagnostics import HlsgenError

Array = Any


def two_inputs() -> onnx.ModelProto:
    quantizer_constants = [
        numpy_helper.from_array(np.asarray(v), k) for k, v in [("s", np.float32(0.1)), ("z", np.uint8(3))]
    ]
    node = helper.make_node("QLinearAdd", ["a", "s", "z", "b", "s", "z", "s", "z"], ["c"], domain="com.microsoft")
    tensors = [helper.make_tensor_value_info(n, TensorProto.UINT8, [1, 6]) for n in "abc"]
    graph = helper.make_graph([node], "pair", tensors[:2], tensors[2:], quantizer_constants)
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def image() -> onnx.ModelProto:
    net = Net((1, 3, 4, 4)).quant(scale=np.array([0.5, 0.25, 0.1], np.float32).reshape(1, 3, 1, 1), bits=5.0, name="q")
    return net.then("MaxPool", kernel_shape=[2, 2], strides=[2, 2]).then("Mul", np.float32(0.3)).model()


def classifier() -> onnx.ModelProto:
    return mlp().then("ArgMax", axis=1, keepdims=0).model()


BUILDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "float32": (lambda: quantizer().model(), {"input": "float32", "lanes": 3}),
    "fixed": (lambda: quantizer(scale=0.3, bits=5.0).model(), {"input": "fixed:9,4", "lanes": 2}),
    "mlp": (lambda: mlp().model(), {"target_cycles": 4}),
    "hls": (lambda: mlp().model(), {"target": "hls", "top": "net"}),
    "two": (two_inputs, {"lanes": 4}),
    "image": (image, {"input": "codes"}),
}


@pytest.fixture(scope="module", params=BUILDS)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, hlsgen.Build]:
    folder = tmp_path_factory.mktemp(request.param)
    make, options = BUILDS[request.param]
    model = save(make(), folder / "m.onnx")
    return request.param, folder / "out", hlsgen.build(model, folder / "out", hlsgen.Options(**options))


def inputs_of(build: hlsgen.Build, frames: int = 9) -> Any:
    model, rng = build.model, np.random.default_rng(5)
    shape = (frames, *model.input_shape[1:])
    if model.second_input:
        return {n: rng.integers(0, 256, shape).astype(np.uint8) for n in (model.input_name, model.second_input)}
    if build.options.input == "fixed:9,4":
        return (rng.integers(-256, 256, shape) / 32).astype(np.float32)
    return (rng.integers(-40, 40, shape) / 8).astype(np.float32)


def test_python_c_and_the_commands_agree(built: tuple[str, Path, hlsgen.Build]) -> None:
    _, folder, build = built
    name = next(iter(build.tops.values()))
    host, x = module_of(folder, name), inputs_of(build)
    arrays = list(x.values()) if isinstance(x, dict) else [x]
    data = hlsgen.pack(folder, x)
    assert host.encode(*arrays) == data
    # The bytes are the words of the test bench. Its expected words unpack to the interpreter's results.
    bench = [bytes.fromhex(line)[::-1] for line in (folder / "tb" / "input.hex").read_text().split()]
    expected_bytes = b"".join(
        bytes.fromhex(line)[::-1] for line in (folder / "tb" / "expected.hex").read_text().split()
    )
    assert len(bench[0]) * build.network.inputs[0].stream.beats == len(data) // 9
    assert b"".join(bench) == host.pack(_codes(host, b"".join(bench)))
    codes = hlsgen.unpack(folder, expected_bytes, codes=True)
    np.testing.assert_array_equal(host.unpack(expected_bytes), codes)
    values = hlsgen.unpack(folder, expected_bytes)
    np.testing.assert_array_equal(host.decode(expected_bytes).reshape(values.shape), values)
    assert values.dtype == host.decode(expected_bytes).dtype
    c, python = self_tests(folder, name)
    assert c == python
    assert c.endswith(" 0 differences\n")


def _codes(host: Any, data: bytes) -> Array:
    """Codes of input words, bit by bit, by the rule of docs/commands.md."""
    port, order = host._INPUT, host._INPUT_ORDER
    frames = np.frombuffer(data, np.uint8).reshape(-1, port["beats"], port["slot"])
    size = int(np.prod(host.INPUT_SHAPE))
    codes = np.zeros((len(frames), size), np.int64)
    for place in range(size):
        group, inner = divmod(place, port["group"])
        beat = group * -(-port["group"] // port["lanes"]) + inner // port["lanes"]
        code = np.zeros(len(frames), np.int64)
        for bit in range(port["bits"]):
            bit_place = inner % port["lanes"] * port["bits"] + bit
            code |= (frames[:, beat, bit_place // 8].astype(np.int64) >> bit_place % 8 & 1) << bit
        signed = host.INPUT_CODES[0] < 0
        code -= (code >> (port["bits"] - 1) << port["bits"]) if signed else 0
        codes[:, place if order is None else order[place]] = code
    return codes.reshape(-1, *host.INPUT_SHAPE)


def test_head_and_tail_around_the_interpreter_give_the_model(tmp_path: Path) -> None:
    """The head's codes, run by the interpreter, then the tail, give the model's outputs; the model ends with ArgMax."""
    hlsgen.build(save(classifier(), tmp_path / "m.onnx"), tmp_path / "out")
    build = hlsgen.check(tmp_path / "m.onnx")
    x = inputs_of(build, 20)
    host = module_of(tmp_path / "out", "m")
    from hlsgen.interpreter.graph import run_output

    codes = run_output(build.graph, host.head(x))
    classes = host.tail(codes)
    np.testing.assert_array_equal(classes.ravel(), hlsgen.run(tmp_path / "out", x).ravel())
    assert classes.dtype == np.int64


@pytest.mark.parametrize("flags", ["-O3 -std=gnu99 -march=native -ffp-contract=fast", "-x c++ -std=c++11 -O1"])
def test_fusing_compilers_and_cpp_compilers(flags: str, tmp_path: Path) -> None:
    """Compilers do not fuse products and sums. C++ can include the header."""
    model = ROOT / "examples" / "digits" / "digits_mlp_float_scales.onnx"
    build = hlsgen.check(model, hlsgen.Options(top="top"))
    for name in ("host/top.c", "host/top.h"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(build.files[name])
    if "c++" in flags:
        (tmp_path / "main.cpp").write_text('#include "host/top.h"\nint main() { return TOP_INPUT_BYTES == 0; }\n')
        subprocess.run(
            ["gcc", *flags.split(), "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "main.cpp"],
            cwd=tmp_path,
            check=True,
        )
        return
    library = tmp_path / "top.so"
    subprocess.run(
        ["gcc", *flags.split(), "-shared", "-fPIC", str(tmp_path / "host" / "top.c"), "-lm", "-o", str(library)],
        check=True,
    )
    loaded = ctypes.CDLL(str(library))
    rng = np.random.default_rng(2)
    size = build.graph.output.size
    lo, hi = build.graph.output.type.lo, build.graph.output.type.hi
    codes = rng.integers(lo, hi + 1, (2000, *build.graph.output.shape))
    from hlsgen.interpreter.graph import decode_output

    expected = decode_output(build.graph, codes)
    assert b"int16_t top_output_code" in build.files["host/top.h"]
    results = np.zeros((len(codes), size), np.float32)
    narrow = np.ascontiguousarray(codes.reshape(len(codes), -1).astype(np.int16))
    for n in range(len(codes)):
        loaded.top_tail(narrow[n].ctypes.data_as(ctypes.c_void_p), results[n].ctypes.data_as(ctypes.c_void_p))
    np.testing.assert_array_equal(results, expected.reshape(results.shape))


@pytest.mark.sweep
def test_steps_left_to_the_user_are_named(tmp_path: Path) -> None:
    """Softmax, and Sigmoid with the step after it, are left to the user. The files and the manifest say so."""
    net = (
        mlp()
        .then("Add", np.float32(0.5), name="bias")
        .then("Sigmoid", name="sig")
        .then("Mul", np.float32(2), name="twice")
    )
    build = hlsgen.build(save(net.model(), tmp_path / "m.onnx"), tmp_path / "out")
    assert json.loads(build.files["manifest.json"])["host"]["left"] == {"head": [], "tail": ["sig", "twice"]}
    assert b"LEFT TO YOU, after the tail: sig (libraries round Sigmoid differently)" in build.files["host/m.h"]
    assert b"LEFT TO YOU, after the tail: twice (an earlier step is left to you)" in build.files["host/m.py"]
    self_tests(tmp_path / "out", "m")
    data = b"".join(bytes.fromhex(line)[::-1] for line in build.files["tb/expected.hex"].decode().split())
    logits = module_of(tmp_path / "out", "m").decode(data)
    twice = hlsgen.unpack(tmp_path / "out", data)
    sigmoid = (1 / (1 + np.exp(-logits.astype(np.float64)))).astype(np.float32)
    np.testing.assert_array_equal(sigmoid * np.float32(2), twice.reshape(logits.shape))
    soft = Net((1, 4)).then("Softmax", axis=1, name="soft").quant(name="q").linear(3, 4)
    build = hlsgen.check(save(soft.model(), tmp_path / "s.onnx"))
    assert json.loads(build.files["manifest.json"])["host"]["left"] == {"head": ["soft"], "tail": []}
    assert b"LEFT TO YOU, before the head: soft (Softmax has no bit-exact definition)" in build.files["host/s.h"]


@pytest.mark.sweep
def test_half_precision_has_no_head(tmp_path: Path) -> None:
    """A float16 input has no head; if a Cast follows it, the head begins after the Cast."""
    net = Net((1, 4), TensorProto.FLOAT16).quant(name="q").linear(3, 4)
    build = hlsgen.build(save(net.model(), tmp_path / "m.onnx"), tmp_path / "none")
    assert json.loads(build.files["manifest.json"])["host"]["left"]["head"] == ["input quantizer"]
    assert b"There is no m_head" in build.files["host/m.h"]
    self_tests(tmp_path / "none", "m")
    half = Net((1, 4), TensorProto.FLOAT16).then("Cast", to=TensorProto.FLOAT, name="wide").quant(name="q").linear(3, 4)
    build = hlsgen.build(save(half.model(), tmp_path / "h.onnx"), tmp_path / "half")
    assert json.loads(build.files["manifest.json"])["host"]["left"]["head"] == ["wide"]
    self_tests(tmp_path / "half", "h")


@pytest.mark.sweep
def test_commands_agree_with_the_host_code(tmp_path: Path) -> None:
    hlsgen.build(save(mlp().model(), tmp_path / "m.onnx"), tmp_path / "out")
    x = np.random.default_rng(1).normal(0, 2, (5, 4)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    out, runner = str(tmp_path / "out"), CliRunner()
    piped = runner.invoke(app, ["pack", out, str(tmp_path / "x.npy")])
    assert piped.exit_code == 0
    assert piped.stdout_bytes == hlsgen.pack(out, x)
    written = runner.invoke(app, ["pack", out, str(tmp_path / "x.npy"), "-o", str(tmp_path / "in.bin"), "--json"])
    assert json.loads(written.stdout) == {
        "ok": True,
        "output": str(tmp_path / "in.bin"),
        "bytes": len(piped.stdout_bytes),
    }
    assert (tmp_path / "in.bin").read_bytes() == piped.stdout_bytes
    host = module_of(tmp_path / "out", "m")
    data = (tmp_path / "out" / "tb" / "expected.hex").read_text().split()
    (tmp_path / "out.bin").write_bytes(b"".join(bytes.fromhex(line)[::-1] for line in data))
    for options in ([], ["--codes"]):
        unpacked = runner.invoke(
            app, ["unpack", out, str(tmp_path / "out.bin"), "-o", str(tmp_path / "y.npy"), *options]
        )
        assert unpacked.exit_code == 0, unpacked.output
        y = np.load(tmp_path / "y.npy")
        expected = (
            host.unpack((tmp_path / "out.bin").read_bytes())
            if options
            else host.decode((tmp_path / "out.bin").read_bytes())
        )
        np.testing.assert_array_equal(y.reshape(expected.shape), expected)
    (tmp_path / "out.bin").write_bytes(b"123")
    short = runner.invoke(app, ["unpack", out, str(tmp_path / "out.bin"), "-o", str(tmp_path / "z.npy"), "--json"])
    assert short.exit_code == 1
    assert json.loads(short.stdout)["diagnostics"][0]["code"] == "HG054"
    assert not (tmp_path / "z.npy").exists()
    usage = runner.invoke(app, ["pack", out, str(tmp_path / "x.npy"), "--json"])
    assert usage.exit_code == 2
    with pytest.raises(HlsgenError, match="HG054"):
        hlsgen.unpack(out, b"")


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["pc_float_int16bias_ts", "asym_channel_ts", "flatten_dropout_argmax"])
def test_brevitas_models_leave_no_step_to_the_user(name: str, tmp_path: Path) -> None:
    build = hlsgen.build(DATA / f"{name}.onnx", tmp_path / "out")
    assert not any(json.loads(build.files["manifest.json"])["host"]["left"].values())
    self_tests(tmp_path / "out", name)
    host, x = module_of(tmp_path / "out", name), inputs_of(build, 6)
    assert host.encode(x) == hlsgen.pack(tmp_path / "out", x)
