"""The command that installs an extra, by the way in which the package was installed."""

from __future__ import annotations

from typing import Any

import pytest

from hlsgen.installation import installed_from

FOLDER = {"url": "file:///home/me/my%20code/hlsgen", "dir_info": {"editable": True}}


@pytest.mark.parametrize(
    ("direct_url", "command"),
    [
        (None, "hlsgen[sim]"),
        (FOLDER, "-e /home/me/my code/hlsgen[sim]"),
        ({**FOLDER, "dir_info": {}}, "/home/me/my code/hlsgen[sim]"),
        ({"url": "file:///a/hlsgen-1-py3-none-any.whl", "archive_info": {}}, "/a/hlsgen-1-py3-none-any.whl[sim]"),
        ({"url": "https://a/hlsgen-1-py3-none-any.whl"}, "hlsgen[sim] @ https://a/hlsgen-1-py3-none-any.whl"),
        (
            {"url": "https://a/hlsgen", "vcs_info": {"vcs": "git", "commit_id": "1f"}},
            "hlsgen[sim] @ git+https://a/hlsgen@1f",
        ),
    ],
    ids=["unknown", "editable", "checkout", "wheel", "url", "repository"],
)
def test_requirement(direct_url: dict[str, Any] | None, command: str) -> None:
    assert "".join(installed_from(direct_url, "sim")) == command
