"""`hlsgen package` of cores without handshake: flows that connect no streams."""

from __future__ import annotations

import pytest
from paths import DATA

import hlsgen
from hlsgen.packaging.kinds import KINDS, PLAIN_KINDS
from hlsgen.packaging.package import package_files


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> hlsgen.Build:
    return hlsgen.check(DATA / "bin_tern.onnx", hlsgen.Options(ports="plain", top="core"))


@pytest.mark.parametrize("kind", PLAIN_KINDS)
def test_packages(build: hlsgen.Build, kind: str) -> None:
    """No file names a pin of a stream."""
    files = package_files(build, [kind], None, None)
    instance = files["core_instance.v"].decode()
    assert all(f".{pin}({pin})" in instance for pin in ("clk", "rst", "in_valid", "in_data", "out_valid", "out_data"))
    assert not [path for path, data in files.items() if not path.startswith("rtl/") and b"tready" in data]
    assert "data and a valid bit in and out" in files["README.md"].decode()


@pytest.mark.parametrize("kind", sorted(set(KINDS) - set(PLAIN_KINDS)))
def test_flows_of_streams_are_refused(build: hlsgen.Build, kind: str) -> None:
    with pytest.raises(hlsgen.HlsgenError, match=f"HG040 --for {kind}: needs streams"):
        package_files(build, ["yosys", kind], None, None)
