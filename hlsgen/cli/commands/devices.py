"""`hlsgen devices`."""

from __future__ import annotations

from hlsgen.cli.console import emit
from hlsgen.cli.hardware import print_devices
from hlsgen.cli.options import Json
from hlsgen.devices import devices as known_devices


def devices(as_json: Json = False) -> None:
    listed = list(known_devices().values())
    if as_json:
        emit({"ok": True, "devices": [device.as_dict() for device in listed]})
    else:
        print_devices(listed)
