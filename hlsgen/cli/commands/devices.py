"""`hlsgen devices`."""

from __future__ import annotations

from hlsgen.cli.console import emit
from hlsgen.cli.hardware import print_devices
from hlsgen.cli.options import Json
from hlsgen.devices import devices as known_devices


def devices(as_json: Json = False) -> None:
    found = list(known_devices().values())
    if as_json:
        emit({"ok": True, "devices": [one.as_dict() for one in found]})
    else:
        print_devices(found)
