"""The site of the documentation is built without a warning, such as a dead link, and has every page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

import hlsgen

pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install 'hlsgen[docs]'")
pytest.importorskip("mkdocstrings", reason="mkdocstrings is not installed: pip install 'hlsgen[docs]'")


@pytest.mark.sweep
def test_the_site(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-f", ROOT / "mkdocs.yml", "-d", tmp_path]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    result = subprocess.run(command, capture_output=True, text=True, env=env)
    assert result.returncode == 0, result.stderr
    pages = {f"{path.stem}.html" for path in (ROOT / "docs").glob("*.md")} | {"index.html", "CHANGELOG.html"}
    texts = {
        path.relative_to(tmp_path).as_posix(): path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.html")
    }
    assert pages <= texts.keys()
    assert "examples/index.html" in texts
    for name in pages:
        assert f'href="{name}"' in texts["index.html"] or name == "index.html", f"{name} is not in the navigation"
        loaded = re.findall(r"<(?:script|link|img)[^>]* (?:src|href)=\"(https?://[^\"]+)", texts[name])
        assert not loaded, "the site loads nothing from elsewhere"
    docstring = " ".join((hlsgen.verify.__doc__ or "").split()[:3])
    for words in ("hlsgen.verify", docstring, "hlsgen.driver.options.Options"):
        assert words in texts["api.html"], words
    assert ":::" not in texts["api.html"]
