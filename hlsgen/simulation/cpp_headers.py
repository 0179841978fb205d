"""Finds the headers ap_int.h, ap_fixed.h, ac_int.h and ac_fixed.h in a package that C simulation installs."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from hlsgen.diagnostics import fail
from hlsgen.installation import install_command

#: Integer types of Vitis (ap), and of Catapult (ac).
DIALECTS = ("ap", "ac")
#: Packages that carry the headers, and their folders of each dialect. The first package that is installed is taken.
_FOLDERS = {
    "alkaid": {"ap": "codegen/hls/source/ap_types/include", "ac": "codegen/hls/source/ac_types/include"},
    "hls4ml": {"ap": "templates/vivado/ap_types", "ac": "templates/catapult/ac_types/include"},
}
_HEADERS = {"ap": "ap_fixed.h", "ac": "ac_fixed.h"}


def include_folders(dialect: str) -> list[Path]:
    """The folder with the headers of a dialect, in alkaid or hls4ml, which are not imported. Raises HG052."""
    for package, folders in _FOLDERS.items():
        spec = find_spec(package)
        for root in (spec.submodule_search_locations or []) if spec else []:
            folder = Path(root) / folders[dialect]
            if (folder / _HEADERS[dialect]).is_file():
                return [folder]
    raise fail("HG052", _HEADERS[dialect], "is not installed.", f"{install_command('csim')}, which brings the headers.")
