"""The command that installs an extra of this package, in the way in which the package itself was installed."""

from __future__ import annotations

import json
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any
from urllib.parse import unquote, urlparse


def install_command(*extras: str) -> str:
    """The `pip install` command for extras of this package.

    hlsgen is on no package index. The command names the checkout, the wheel or the repository that the installed
    package came from; pip records it in `direct_url.json` (PEP 610).
    """
    options, requirement = installed_from(_direct_url(), ",".join(extras))
    return f"pip install {options}'{requirement}'"


def installed_from(direct_url: dict[str, Any] | None, extras: str) -> tuple[str, str]:
    """pip's options and requirement for `extras`, by the content of `direct_url.json`, or None."""
    if direct_url is None:
        return "", f"hlsgen[{extras}]"
    url = str(direct_url.get("url", ""))
    if "vcs_info" in direct_url:
        repository = direct_url["vcs_info"]
        return "", f"hlsgen[{extras}] @ {repository['vcs']}+{url}@{repository['commit_id']}"
    parsed = urlparse(url)
    if parsed.scheme != "file":
        return "", f"hlsgen[{extras}] @ {url}"
    options = "-e " if direct_url.get("dir_info", {}).get("editable") else ""
    return options, f"{unquote(parsed.path)}[{extras}]"


def pinned_repository(extras: str) -> str | None:
    """The requirement that installs this commit from its repository, or None for other installations."""
    direct_url = _direct_url()
    return installed_from(direct_url, extras)[1] if direct_url and "vcs_info" in direct_url else None


@cache
def _direct_url() -> dict[str, Any] | None:
    try:
        text = distribution("hlsgen").read_text("direct_url.json")
        content = json.loads(text) if text else None
    except (PackageNotFoundError, ValueError):
        return None
    return content if isinstance(content, dict) else None
