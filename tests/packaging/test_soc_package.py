"""`hlsgen package --for soc`: the library functions of the firmware, and the system in Verilator."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from models import mlp, save
from onnx.parser import parse_model
from paths import ROOT
from state_models import recurrent

import hlsgen
from hlsgen.diagnostics import HlsgenError
from hlsgen.simulation.verilator_library import tool_environment

OPTIONS = {"bus_width": "32", "tkeep": True, "control": True, "target_cycles": 600}
NEEDED = ["pythondata_cpu_picorv32", "ziglang", "verilator"]
MISSING = [name for name in NEEDED if find_spec(name) is None]
MATH = ["rint", "floor", "ceil", "frexp", "ldexp", "nextafter"]
MEMORY = ["memcpy", "memmove", "memset", "memcmp"]


def packaged(folder: Path, model: Path, options: dict[str, Any]) -> Path:
    hlsgen.build(model, folder / "build", hlsgen.Options(**options))
    hlsgen.package(folder / "build", folder / "package", ["soc"])
    return folder / "package"


def small(folder: Path) -> Path:
    save(mlp().model(), folder / "small.onnx")
    return folder / "small.onnx"


def bare_library(firmware: Path, folder: Path) -> ctypes.CDLL:
    """bare.c as a shared library for this processor, with a prefix before the names of its functions."""
    names = [*(name + suffix for name in MATH for suffix in ("", "f")), *MEMORY]
    renamed = [f"-D{name}=bare_{name}" for name in names]
    library = folder / "bare.so"
    command = ["cc", "-O2", "-fno-builtin", "-shared", "-fPIC", f"-I{firmware}", *renamed, str(firmware / "bare.c")]
    subprocess.run([*command, "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def numbers_for(dtype: str) -> npt.NDArray[Any]:
    """Random bit patterns, halves and quarters, neighbours of powers of two, and special values."""
    rng = np.random.default_rng(1)
    unsigned = np.dtype(f"u{dtype[1:]}")
    patterns = rng.integers(0, np.iinfo(unsigned).max, 4000, unsigned, endpoint=True).view(dtype)
    quarters = (rng.integers(-2000, 2000, 2000) / rng.choice([1, 2, 4, 8], 2000)).astype(dtype)
    powers = np.array([2.0**k + d for k in range(-5, 70) for d in (0, 0.5, -0.5, 1, 0.25)], dtype)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, np.finfo(dtype).tiny, np.finfo(dtype).max], dtype)
    return np.concatenate([patterns, quarters, powers, -powers, special])


def same(first: float, second: float, dtype: str) -> bool:
    return (first != first and second != second) or np.array(first, dtype).tobytes() == np.array(
        second, dtype
    ).tobytes()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_functions_of_the_firmware(tmp_path: Path, dtype: str) -> None:
    """Functions of bare.c return what those of the C library of this machine return."""
    bare = bare_library(packaged(tmp_path, small(tmp_path), OPTIONS) / "soc" / "firmware", tmp_path)
    libm = ctypes.CDLL("libm.so.6")
    suffix, c_type = ("f", ctypes.c_float) if dtype == "f4" else ("", ctypes.c_double)
    numbers = numbers_for(dtype)
    rng = np.random.default_rng(2)
    limit = 300 if dtype == "f4" else 2200
    powers = rng.integers(-limit, limit, len(numbers))
    others = np.where(rng.random(len(numbers)) < 0.2, numbers, rng.permutation(numbers))
    seconds: dict[str, tuple[list[Any], list[Any]]] = {
        **{name: ([], []) for name in ("rint", "floor", "ceil")},
        "nextafter": ([c_type], list(others)),
        "ldexp": ([ctypes.c_int], [int(power) for power in powers]),
    }
    for name, (types, arguments) in seconds.items():
        functions = [getattr(bare, f"bare_{name}{suffix}"), getattr(libm, f"{name}{suffix}")]
        for function in functions:
            function.restype, function.argtypes = c_type, [c_type, *types]
        for place, number in enumerate(numbers):
            got, expected = (function(number, *arguments[place : place + 1]) for function in functions)
            assert same(got, expected, dtype), (name, number, arguments[place : place + 1], got, expected)
    functions = [getattr(bare, f"bare_frexp{suffix}"), getattr(libm, f"frexp{suffix}")]
    for function in functions:
        function.restype, function.argtypes = c_type, [c_type, ctypes.POINTER(ctypes.c_int)]
    for number in numbers:
        exponents = [ctypes.c_int(), ctypes.c_int()]
        got, expected = (function(number, place) for function, place in zip(functions, exponents, strict=True))
        assert same(got, expected, dtype), number
        assert not np.isfinite(number) or exponents[0].value == exponents[1].value, number


def test_memory_functions(tmp_path: Path) -> None:
    bare = bare_library(packaged(tmp_path, small(tmp_path), OPTIONS) / "soc" / "firmware", tmp_path)
    data = bytes(range(1, 33))
    for target, source, count in ((0, 8, 20), (8, 0, 20), (3, 3, 9), (0, 1, 0)):
        place = ctypes.create_string_buffer(data, 32)
        begin = ctypes.addressof(place)
        bare.bare_memmove(ctypes.c_void_p(begin + target), ctypes.c_void_p(begin + source), count)
        expected = bytearray(data)
        expected[target : target + count] = data[source : source + count]
        assert place.raw == bytes(expected)
    place = ctypes.create_string_buffer(32)
    bare.bare_memcpy(place, data, 32)
    assert place.raw == data
    place = ctypes.create_string_buffer(data, 32)
    bare.bare_memset(place, 0x1AB, 5)
    assert place.raw == b"\xab" * 5 + data[5:]
    for first, second, sign in ((b"abc", b"abd", -1), (b"b\xff", b"b\x01", 1), (b"same", b"same", 0)):
        assert bare.bare_memcmp(first, second, len(first)) == sign


def run(package: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = tool_environment()
    command = ["make", "-C", str(package / "soc"), *arguments, f"PYTHON={sys.executable}"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.sim
@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}; pip install 'hlsgen[soc]'")
def test_digits_in_the_system(tmp_path: Path) -> None:
    """Each byte and number is equal; a changed byte of the expected output is found."""
    package = packaged(tmp_path, ROOT / "examples" / "digits" / "digits_mlp.onnx", OPTIONS)
    done = run(package, "sim")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    frames = re.findall(r"^frame \d+: codes (.*?); cycles: .* core (\d+) .*; equal$", done.stdout, re.MULTILINE)
    assert len(frames) == 8
    assert all(int(cycles) < 2000 for _, cycles in frames)
    assert re.search(r"^digits_mlp: frames 16, differences 0, cycles \d+$", done.stdout, re.MULTILINE)
    vectors = package / "soc" / "firmware" / "vectors.bin"
    changed = bytearray(vectors.read_bytes())
    changed[64 * 4 + 64] ^= 1  # the first byte of the first output
    vectors.write_bytes(changed)
    failed = run(package, "sim")
    assert failed.returncode != 0
    assert "differences 2," in failed.stdout  # as a frame of its own, and in the job of all frames


def two_ports() -> onnx.ModelProto:
    """y = W (a + b) and z = a + b, quantized; a and b have 6 elements."""
    return parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> net (float[1, 6] a, float[1, 6] b) => '
        "(int32[1, 2] y, float[1, 6] z) <float s = {0.3}, uint8 p = {7}, "
        "int8[6, 2] w = {1, -2, 3, 5, -7, 4, 2, 2, 9, -8, 6, 1}> "
        "{ t = QuantizeLinear(a, s, p) u = QuantizeLinear(b, s, p) "
        "c = DequantizeLinear(t, s, p) d = DequantizeLinear(u, s, p) h = Add(c, d) "
        "q = QuantizeLinear(h, s, p) y = MatMulInteger(q, w, p) z = DequantizeLinear(q, s, p) }"
    )


#: By case: the model, and options of the build.
CASES: dict[str, tuple[Callable[[], onnx.ModelProto], dict[str, Any]]] = {
    "a port each": (two_ports, {"ports": "separate", "bus_width": "32", "control": True}),
    "wide words": (lambda: mlp().model(), {"bus_width": "128", "tkeep": True}),
    "a state, tuser": (recurrent, {"state": ["h=h_out:0.5"], "bus_width": "32"}),
    "a state, register": (recurrent, {"state": ["h=h_out:0.5"], "bus_width": "64", "control": True}),
}


@pytest.mark.slow
@pytest.mark.sim
@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}; pip install 'hlsgen[soc]'")
@pytest.mark.parametrize("case", CASES)
def test_ports_and_states_in_the_system(tmp_path: Path, case: str) -> None:
    """All frames, one by one and in one job, which starts a sequence of a core with a state."""
    model, options = CASES[case]
    save(model(), tmp_path / "m.onnx")
    done = run(packaged(tmp_path, tmp_path / "m.onnx", options), "sim")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert re.search(r"^frames in one job: 8, .*; equal$", done.stdout, re.MULTILINE)
    assert re.search(r"^m: frames 16, differences 0, cycles \d+$", done.stdout, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("pythondata_cpu_picorv32") is None, reason="pythondata-cpu-picorv32 is not installed")
@pytest.mark.skipif(shutil.which("riscv64-unknown-elf-gcc") is None, reason="no GCC for RISC-V")
def test_firmware_by_gcc(tmp_path: Path) -> None:
    package = packaged(tmp_path, small(tmp_path), OPTIONS)
    command = ["make", "-C", str(package / "soc"), "build/firmware.hex", "HAS_ZIG=", f"PYTHON={sys.executable}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_refused(tmp_path: Path) -> None:
    hlsgen.build(small(tmp_path), tmp_path / "build", hlsgen.Options(target_cycles=4))
    with pytest.raises(HlsgenError, match=r"HG040.*--bus-width 32"):
        hlsgen.package(tmp_path / "build", tmp_path / "package", ["soc"])
