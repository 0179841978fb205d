"""`hlsgen certify`: no number of a build can be changed unnoticed."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builds import LazyBuilds
from certified import CASES, for_cores, messages, sign

import hlsgen
from hlsgen.certify import quantizers as layers_
from hlsgen.certify.netlist_reader import broken
from hlsgen.certify.proof import Proof
from hlsgen.certify.proof import runs as runs_
from hlsgen.interpreter.graph import run_layer


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> LazyBuilds:
    folder = tmp_path_factory.mktemp("builds")
    return LazyBuilds(lambda name: CASES[name].build(folder / name))


@pytest.fixture
def core(built: LazyBuilds, request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of a build that can be spoilt."""
    shutil.copytree(built[request.param], tmp_path / "core")
    return tmp_path / "core"


def numbers(text: str) -> list[re.Match[str]]:
    """Constants of Verilog text, without comments: plain, sized hexadecimal, in names."""
    comments = [match.span() for match in re.finditer(r"//[^\n]*", text)]
    constants = re.finditer(r"(?<=')h[0-9a-f]+|\d+", text)
    return [m for m in constants if not any(a <= m.start() < b for a, b in comments)]


def by_one(number: str, rng: np.random.Generator) -> str:
    """A constant, one more or less; hexadecimal with a leading h."""
    step = int(rng.choice([-1, 1]))
    if number.startswith("h"):
        return f"h{abs(int(number[1:], 16) + step):x}"
    return str(abs(int(number) + step))


def spoilt(path: Path, rng: np.random.Generator) -> Callable[[], None]:
    """Change one constant of a file by one; returns a function that undoes it."""
    original = path.read_text()
    if path.suffix == ".mem":
        lines = original.splitlines()
        n = int(rng.integers(len(lines)))
        digits = len(lines[n])
        # A word has several fields: one more or less at any digit, most often the last.
        place = int(rng.integers(digits)) if rng.random() < 0.5 else 0
        value = (int(lines[n], 16) + int(rng.choice([-1, 1])) * 16**place) % 16**digits
        lines[n] = f"{value:0{digits}x}"
        path.write_text("\n".join(lines) + "\n")
    else:
        match = numbers(original)[int(rng.integers(len(numbers(original))))]
        path.write_text(original[: match.start()] + by_one(match[0], rng) + original[match.end() :])
    assert path.read_text() != original
    return lambda: ignore(path.write_text(original))


def ignore(_: object) -> None:
    pass


def files(directory: Path, suffix: str, library: bool = False) -> list[Path]:
    paths = sorted((directory / "rtl").glob(f"*{suffix}"))
    return [path for path in paths if suffix == ".mem" or ("_hg_" in path.name) == library]


@pytest.mark.cases(1)
@pytest.mark.sweep
@for_cores()
def test_hashes_of_all_files(core: Path) -> None:
    """Each changed file is reported: alone, and if all are changed."""
    rng = np.random.default_rng(1)
    paths = sorted((core / "rtl").iterdir())
    for chosen in (*([paths[n]] for n in rng.choice(len(paths), 3, replace=False)), paths):
        undone = [spoilt(path, rng) for path in chosen]
        reported = messages(core)
        assert all(any(f"rtl/{path.name}: has another hash" in text for text in reported) for path in chosen), reported
        for undo in undone:
            undo()
    assert messages(core) == []


@pytest.mark.sweep
@pytest.mark.cases(3)
@for_cores()
def test_every_constant_of_the_top_level(core: Path) -> None:
    """The hash is updated."""
    rng = np.random.default_rng(2)
    signed = (core / "certificate.json").read_text()
    top = files(core, ".v")[0]
    for _ in range(24):
        undo = spoilt(top, rng)
        sign(core, f"rtl/{top.name}")
        assert messages(core), top.read_text()
        undo()
        (core / "certificate.json").write_text(signed)


@for_cores("network", "float")
def test_every_file_of_the_library(core: Path) -> None:
    """Each changed file is reported: alone, and if all are changed."""
    rng = np.random.default_rng(3)
    paths = files(core, ".v", library=True)
    for chosen in (*([paths[n]] for n in rng.choice(len(paths), 3, replace=False)), paths):
        undone = [spoilt(path, rng) for path in chosen]
        for path in chosen:
            sign(core, f"rtl/{path.name}")
        reported = [text for text in messages(core) if "is not the module of this version" in text]
        assert all(any(f"rtl/{path.name}:" in text for text in reported) for path in chosen), reported
        for undo in undone:
            undo()


def all_constants(value: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of every number of a JSON value, and of sized constants and hashes."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if isinstance(item, int) or (isinstance(item, str) and re.fullmatch(r"\d+'h[0-9a-f]+|[0-9a-f]{64}", item)):
            yield value, key
        yield from all_constants(item)


@pytest.mark.cases(2)
@for_cores()
@pytest.mark.sweep
def test_every_number_of_the_certificate(core: Path) -> None:
    rng = np.random.default_rng(4)
    path = core / "certificate.json"
    original = path.read_text()
    count = len(list(all_constants(json.loads(original))))
    for n in rng.choice(count, min(count, 24), replace=False):
        certificate = json.loads(original)
        container, key = list(all_constants(certificate))[n]
        value = container[key]
        if isinstance(value, bool):
            container[key] = not value
        elif isinstance(value, int):
            container[key] = value + int(rng.choice([-1, 1]))
        else:
            container[key] = value[:-1] + f"{(int(value[-1], 16) + 1) % 16:x}"
        path.write_text(json.dumps(certificate))
        assert messages(core) or widened(certificate, container, key, value), (key, value, container[key])
    for n in range(3):  # one entry less, and one that is no number
        certificate = json.loads(original)
        lists = [c for c, k in all_constants(certificate) if isinstance(c, list)]
        if lists:
            lists[int(rng.integers(len(lists)))].pop() if n else lists[0].__setitem__(0, "1")
            path.write_text(json.dumps(certificate))
            assert messages(core)


def widened(certificate: dict[str, Any], container: Any, key: Any, value: Any) -> bool:
    """True if the number is a bound of the interval of a set, which is wider now.

    Units with numbers for each lane are proven on the intervals that the certificate states; these contain all codes.
    One that is wider by one input, for which the unit is right as well, is as true.
    """
    if not any(
        container is entry.get("interval") for layer in certificate["layers"] for entry in layer.get("sets", [])
    ):
        return False
    return (key == 0 and container[key] < value) or (key == 1 and container[key] > value)


def exhaustive(f: Any, module: Any, uses: Any, cell: str, places: list[str]) -> Proof:
    """Replaces the proof: evaluates every input of every set."""
    runs_of_sets: list[Any] = [None] * f.sets
    for (fold, lane), sets in uses.items():
        for s in sets:
            x = np.arange(f.lo[s], f.hi[s] + 1)
            bits = f.output_type.bits
            code = module.apply(fold, lane, x) & ((1 << bits) - 1)
            if f.output_type.signed:
                code = code - ((code >> (bits - 1)) << bits)
            function_of_set = f.take(np.array([s]), f.lo[[s]], f.hi[[s]])
            if (function_of_set.evaluate(x[:, None])[:, 0] != code).any():
                raise broken(f.name, "differs")
            runs_of_sets[s] = runs_(module, fold, lane, f, s)
            # The changes that the module's model lists are complete.
            assert (runs_of_sets[s].at(x) == code).all()
    return Proof(runs_of_sets, 0, 0)


@pytest.mark.cases(1)
@pytest.mark.sweep
@for_cores("network", "float", "table", "keys", "scale", "product of float32", "correct", "sum", "product")
def test_a_parameter_in_both_top_level_and_certificate(
    core: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """It fails if and only if the function changes: not for other registers, or room for bits that are zero."""
    rng = np.random.default_rng(5)
    top, path = files(core, ".v")[0], core / "certificate.json"
    text, original = top.read_text(), path.read_text()
    instances = [x for layer in json.loads(original)["layers"] for x in layer["instances"]]
    tried = passed = 0
    for x in instances:
        for name, value in x["parameters"].items():
            if isinstance(value, str) and "'h" not in value:
                continue
            width, _, digits = str(value).rpartition("'")
            new = f"{width}'{by_one(digits, rng)}" if width else by_one(digits, rng)
            changed = json.loads(original)
            for y in (y for layer in changed["layers"] for y in layer["instances"] if y["instance"] == x["instance"]):
                y["parameters"][name] = new if width else int(new)
            block = re.search(rf"{x['module']} #\([^;]*?\) {x['instance']} \(", text)
            assert block
            top.write_text(text.replace(block[0], block[0].replace(f".{name}({value})", f".{name}({new})")))
            assert top.read_text() != text
            path.write_text(json.dumps(changed))
            sign(core, f"rtl/{top.name}")
            reported = messages(core)
            tried, passed = tried + 1, passed + (not reported)
            if request.node.callspec.params["core"] == "keys":  # 2^32 inputs
                assert reported or name == "FALLING", (x["instance"], name, value, new)
                continue
            with monkeypatch.context() as patch:
                patch.setattr(layers_, "prove", exhaustive)
                assert (reported == []) == (messages(core) == []), (x["instance"], name, value, new, reported)
    assert passed <= tried / 3
    top.write_text(text)
    path.write_text(original)
    assert messages(core) == []


# --------------------------------------------------------------------------- memories


@pytest.mark.cases(1)
@pytest.mark.sweep
@for_cores(*(name for name in CASES if name not in ("float", "keys", "sum", "product")))
def test_words_of_memories(core: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed word with a right hash fails if and only if a reachable input gets another code.

    Words that no reachable input addresses, or that compare equally, may change. Examples are thresholds that are never
    reached, states of a cascade that do not occur, and table entries outside the interval.
    """
    rng = np.random.default_rng(6)
    signed = (core / "certificate.json").read_text()
    memories = files(core, ".mem")
    certificate = json.loads(signed)
    weights = {
        name
        for layer in certificate["layers"]
        for x in layer["instances"]
        if "PE" in x["parameters"]
        for name in x["memories"]
    }
    for kind, count in (("weights", 5), ("quantizer", 20)):
        chosen = [p for p in memories if (p.name in weights) == (kind == "weights")]
        passed = 0
        for _ in range(count if chosen else 0):
            path = chosen[int(rng.integers(len(chosen)))]
            undo = spoilt(path, rng)
            sign(core, f"rtl/{path.name}")
            reported = messages(core)
            with monkeypatch.context() as patch:
                patch.setattr(layers_, "prove", exhaustive)
                assert (reported == []) == (messages(core) == []), (path, reported)
            undo()
            (core / "certificate.json").write_text(signed)
            passed += not reported
        assert passed <= (0 if kind == "weights" else count - 2), (kind, passed)
    assert messages(core) == []


@pytest.mark.sweep
@for_cores("keys", "float")
def test_words_of_memories_for_float32(core: Path) -> None:
    rng = np.random.default_rng(7)
    memories, failed = files(core, ".mem"), 0
    for _ in range(30):
        path = memories[int(rng.integers(len(memories)))]
        undo = spoilt(path, rng)
        sign(core, f"rtl/{path.name}")
        failed += messages(core) != []
        undo()
        sign(core, f"rtl/{path.name}")
    assert failed >= 20


def threshold_layer(core: Path) -> tuple[dict[str, Any], dict[str, Any], list[Path]]:
    """The certificate, a layer of hg_threshold, its files."""
    certificate = json.loads((core / "certificate.json").read_text())
    layer = next(x for x in certificate["layers"] if x["instances"][-1]["module"] == "hg_threshold")
    return certificate, layer, [core / "rtl" / name for name in layer["instances"][-1]["memories"]]


@pytest.mark.parametrize("step", [-1, 1])
@for_cores("folded", "integer")
def test_a_consistent_cheat(core: Path, step: int) -> None:
    """All thresholds of a layer moved by one, in memories and certificate, with updated hashes."""
    certificate, layer, memories = threshold_layer(core)
    parameters = layer["instances"][-1]["parameters"]
    width = parameters["IN_W"] + (1 if parameters["IN_SIGNED"] else 2)
    for path in memories:
        words = [(int(word, 16) + step) % (1 << width) for word in path.read_text().split()]
        path.write_text("".join(f"{word:0{-(-width // 4)}x}\n" for word in words))
    for s in layer["sets"]:
        s["thresholds"] = [t + step for t in s["thresholds"] if t + step <= s["interval"][1]]
    (core / "certificate.json").write_text(json.dumps(certificate))
    for path in memories:
        sign(core, f"rtl/{path.name}")
    reported = messages(core)
    pattern = (
        r"HG055 (\S+): channel (\d+) \(stream position \d+\), \w+, .*: at x = (-?\d+) "
        r"the model gives (-?\d+), the hardware (-?\d+)\."
    )
    match = re.fullmatch(pattern, reported[0])
    assert match, reported
    name, channel, x, model, hardware = match[1], *(int(v) for v in match.groups()[1:])
    assert name == layer["layer"]
    assert model != hardware
    # The reported code of the model is right.
    graph = hlsgen.check(core / "model.onnx").graph
    position = next(i for i, other_layer in enumerate(graph.layers) if other_layer.name == name)
    codes = np.full((1, *graph.layers[position].source.shape), x)
    assert (
        run_layer(graph.layers[position], codes).reshape(-1, graph.layers[position].result.shape[-1])[0, channel]
        == model
    )


@for_cores("folded")
def test_a_cheat_with_a_weight(core: Path) -> None:
    """A weight and its intervals are changed."""
    path = core / "rtl" / "top_node_linear.mem"
    lines = path.read_text().splitlines()
    lines[0] = lines[0][:-1] + f"{int(lines[0][-1], 16) ^ 1:x}"
    path.write_text("\n".join(lines) + "\n")
    sign(core, "rtl/top_node_linear.mem")
    reported = messages(core)
    assert re.search(
        r"row \(channel\) 0, column 0: the model's weight is -?\d+, the weight of node_linear is -?\d+", reported[0]
    ), reported


@for_cores("network")
def test_files_that_are_missing_or_too_many(core: Path) -> None:
    (core / "rtl" / "extra.mem").write_text("0\n")
    assert any("rtl/extra.mem: is not in certificate.json" in text for text in messages(core))
    sign(core, "rtl/extra.mem")
    assert any("rtl/extra.mem: is read by no instance" in text for text in messages(core))
    (core / "rtl" / "extra.mem").unlink()
    assert any("rtl/extra.mem: is missing" in text for text in messages(core))


@for_cores("network")
def test_another_model_or_option(core: Path) -> None:
    data = (core / "model.onnx").read_bytes()
    (core / "model.onnx").write_bytes(data + b"\x1a\x00")
    assert any("model.onnx: has another hash" in text for text in messages(core))
    (core / "model.onnx").write_bytes(data)
    manifest = json.loads((core / "manifest.json").read_text())
    for option, value in (("input", "fixed:6,6"), ("reset_active_low", True), ("top", "other"), ("input", "fixed:99")):
        changed = {**manifest, "options": {**manifest["options"], option: value}}
        (core / "manifest.json").write_text(json.dumps(changed))
        assert messages(core)
    (core / "manifest.json").write_text("{")
    with pytest.raises(hlsgen.HlsgenError, match="HG050"):
        hlsgen.certify(core)


@for_cores("network")
def test_the_top_level_has_only_wires_and_instances(core: Path) -> None:
    """A top level with logic, a second driver, swapped streams, or an instance aside."""
    top = core / "rtl" / "top.v"
    text = top.read_text()
    aside = "    top_hg_slice #(\n        .WIDTH(1)\n    ) aside (\n        .clk(clk)\n    );\nendmodule"
    for old, new in (
        ("endmodule", "    assign frame_error = rst;\nendmodule"),
        ("endmodule", aside),
        ("    wire rst_core;", "    wire rst_core;\n    wire other;"),
        (".s_valid(node_symbolic_2_valid)", ".s_valid(node_symbolic_4_valid)"),
        (".rst(rst_core)", ".rst(rst)"),
        ("// layer", "// synthesis translate_off"),
    ):
        assert old in text
        top.write_text(text.replace(old, new, 1))
        sign(core, "rtl/top.v")
        assert messages(core), new
