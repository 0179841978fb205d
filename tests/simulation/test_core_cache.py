"""Compiled cores in the user's cache folder: found again if nothing changed and nobody else could write them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from models import mlp, save

import hlsgen
from hlsgen.simulation import core_cache, verilator_library
from hlsgen.simulation.core_cache import cached_library, key_of, store_library


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HLSGEN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    (tmp_path / "core.so").write_bytes(b"library")
    return tmp_path / "core.so"


def test_a_stored_library_is_found(cache: Path, library: Path) -> None:
    assert cached_library("a") is None
    store_library("a", library)
    cached = cached_library("a")
    assert cached == cache / "a.so"
    assert cached.read_bytes() == b"library"
    assert [path.name for path in cache.iterdir()] == ["a.so"]
    assert cache.stat().st_mode & 0o077 == 0


def test_a_library_that_others_may_write_is_not_used(cache: Path, library: Path) -> None:
    store_library("a", library)
    (cache / "a.so").chmod(0o666)
    assert cached_library("a") is None
    (cache / "a.so").unlink()
    (cache / "a.so").symlink_to(library)
    assert cached_library("a") is None


def test_the_least_recently_used_libraries_are_removed(
    cache: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core_cache, "MAX_LIBRARIES", 2)
    for key in ("a", "b"):
        store_library(key, library)
    assert cached_library("a")
    store_library("c", library)
    assert cached_library("a")
    assert cached_library("b") is None
    assert cached_library("c")


def test_a_cache_that_cannot_be_written_is_no_error(
    tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HLSGEN_CACHE", str(library / "cache"))
    store_library("a", library)
    assert cached_library("a") is None


def test_the_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HLSGEN_CACHE")
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert core_cache.cache_folder() == Path("/home/me/.cache/hlsgen")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert core_cache.cache_folder() == Path("/caches/hlsgen")


def test_keys_depend_on_the_bounds_of_parts() -> None:
    assert key_of([b"ab", b"c"]) != key_of([b"a", b"bc"])
    assert key_of([b"ab", b"c"]) == key_of([b"ab", b"c"])


@pytest.mark.sim
def test_the_second_run_does_not_compile(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run does not change the build. Changed RTL is compiled again; changed memories are read by the same library."""
    out = tmp_path / "out"
    hlsgen.build(save(mlp().model(), tmp_path / "m.onnx"), out, hlsgen.Options(input="fixed:8,4"))
    x = np.random.default_rng(1).integers(-100, 100, (5, 4)).astype(np.float32) / 16
    expected = hlsgen.run(out, x)
    np.testing.assert_array_equal(hlsgen.run(out, x, "verilator"), expected)
    assert len(list(cache.iterdir())) == 1
    assert hlsgen.certify(out).ok

    run_tool = verilator_library.run_tool

    def without_compilation(*arguments: object) -> object:
        assert arguments[5] != "the compilation"
        return run_tool(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(verilator_library, "run_tool", without_compilation)
    np.testing.assert_array_equal(hlsgen.run(out, x, "verilator"), expected)
    for memory in (out / "rtl").glob("*.mem"):
        words = memory.read_text().split()
        memory.write_text("\n".join("0" * len(word) for word in words) + "\n")
    assert (hlsgen.run(out, x, "verilator", allow_changed=True) != expected).any()
    top = out / "rtl" / "m.v"
    top.write_text(top.read_text() + "\n")
    with pytest.raises(AssertionError):
        hlsgen.run(out, x, "verilator", allow_changed=True)
