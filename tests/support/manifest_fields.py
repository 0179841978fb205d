"""The fields of manifest.json, other values of them, and those that no proof derives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

#: Statements that nothing but the compiler gives; docs/certificate.md names them.
NOT_PROVEN = re.compile(
    r"files\.(report\.(md|html)|folding\.yaml|(tb|host)/.*)|host\.left\.(head|tail).*|cycles\.(latency|interval)|cpp\..*|layers\[\d+\]\.(cycles|tried.*)|fifos\[\d+\]\.critical|(layers\[\d+\]\.)?estimate\.\w+"
    r"|units\[\d+\]\.(unit|layer|lanes|beats|cycles|lut|ff|dsp|bram)"
    r"|options\.(target|prefer|folding.*|realize.*|lanes|(target|latency)_cycles|max_\w+|add|input|source|name|top|loadable|merge_layers|reset_active_low"
    r"|bus_width|tkeep|control|clock_name|reset_name|clock_mhz|state|state_start)"
)


def leaves(value: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """(place, container, key) of everything that holds nothing else."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        place = f"{where}[{key}]" if isinstance(value, list) else f"{where}.{key}" if where else key
        if isinstance(item, dict | list) and item:
            yield from leaves(item, place)
        else:
            yield place, value, key


def lie(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case float():
            return value * 1.5 + 1
        case str():
            return value + "s"
        case None:
            return 1
        case _:
            return {"x": 1} if isinstance(value, dict) else [1]
