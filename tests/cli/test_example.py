"""`hlsgen example`: the model that is installed with the package."""

from pathlib import Path

from tests.cli.test_commands import call_json

MODEL = Path(__file__).parents[2] / "examples" / "digits" / "digits_mlp.onnx"


def test_writes_the_model_and_keeps_files_that_exist(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    assert call_json("example", file) == {"ok": True, "output": str(file)}
    assert file.read_bytes() == MODEL.read_bytes()
    file.write_bytes(b"mine")
    assert call_json("example", file, code=1)["diagnostics"][0]["code"] == "HG001"
    assert file.read_bytes() == b"mine"
