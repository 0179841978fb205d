"""Checks that certificate.json has exactly the fields, of the types, that the other checks read."""

from __future__ import annotations

from typing import Any

from hlsgen.certify.netlist_reader import broken

FORMAT = 2
_TYPE = {"bits": int, "signed": bool, "lo": int, "hi": int}
_INSTANCE: dict[str, Any] = {"instance": str, "module": str, "parameters": {str: (int, str)}, "memories": [str]}
_COMMON: dict[str, Any] = {
    "layer": str,
    "kind": str,
    "instances": [_INSTANCE],
    "inputs": [_TYPE],
    "output": _TYPE,
}
_WINDOW: dict[str, Any] = {"kernel": [int], "strides": [int], "dilations": [int], "pads": [int], "pad": int}
_SUMS: dict[str, Any] = {"lo": [int], "hi": [int]}
_FUNCTION: dict[str, Any] = {"realization": str, "form": str, "period": int}
_KINDS: dict[str, dict[str, Any]] = {
    "linear": {"rows": int, "columns": int, **_SUMS},
    "convolution": {"weights": [int], "groups": int, **_WINDOW, **_SUMS},
    "product": {"columns": int, "factors": [int], "offsets": [int], **_SUMS},
    "pool": {"reduction": str, **_WINDOW},
    "quantizer": _FUNCTION,
    "merge": {"way": str, **_FUNCTION},
    "pair": {},
    "float joint": {},
    "rearrangement": {},
    "concatenation": {},
    "state": {},
    "argmax": {},
    "integer rows": {},
    "normalization": {},
    "softmax": {},
}
#: Of the kinds with sets: what a set has besides its steps, and what with them.
_SETS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "quantizer": ({"positions": [int], "interval": [int]}, {"thresholds": [int], "codes": [int]}),
    "merge": ({"positions": [int], "a": [int], "b": [int]}, {"interval": [int], "thresholds": [int], "codes": [int]}),
}


def check(certificate: dict[str, Any], folder: str) -> None:
    """Raises HG055 at the first field that is missing, too much, or of another type. `folder`: whose files it lists."""
    if certificate.get("certificate") != FORMAT:
        raise broken("certificate.json", f"has the form {certificate.get('certificate')!r}; known is {FORMAT}.")
    top = {
        "certificate": int,
        "model": dict.fromkeys(("file", "sha256", "runtime", "runtime_version"), str),
        folder: {str: str},
        "layers": [dict],
    }
    _is(certificate, top, "certificate.json")
    for layer in certificate["layers"]:
        name = f"certificate.json, layer {layer.get('layer')}"
        kind = layer.get("kind")
        if not isinstance(kind, str) or kind not in _KINDS:
            raise broken(name, f"kind is {kind!r}.")
        rest = dict(layer)
        plain, steps = _SETS.get(kind, ({}, {}))
        sets = rest.pop("sets", []) if plain else []
        _is(rest, _COMMON | _KINDS[kind], name)
        _is(sets, [dict], name)
        if plain and (not sets or layer["period"] < 1):
            raise broken(name, "has no sets, or no period.")
        for s in sets:
            _is(s, plain | (steps if layer["form"] == "steps" else {}), f"{name}, set")


def _is(value: Any, wanted: Any, where: str) -> None:
    if isinstance(wanted, dict) and set(wanted) == {str}:
        if not isinstance(value, dict):
            raise broken(where, "is no object.")
        for key, item in value.items():
            _is(item, wanted[str], f"{where}, {key}")
    elif isinstance(wanted, dict):
        if not isinstance(value, dict) or set(value) != set(wanted):
            odd = sorted(set(value) ^ set(wanted)) if isinstance(value, dict) else ""
            raise broken(where, f"has other fields than it should: {odd}.")
        for key, item in value.items():
            _is(item, wanted[key], f"{where}, {key}")
    elif isinstance(wanted, list):
        if not isinstance(value, list):
            raise broken(where, "is no list.")
        for item in value:
            _is(item, wanted[0], where)
    else:
        kinds = wanted if isinstance(wanted, tuple) else (wanted,)
        if type(value) not in kinds:
            raise broken(where, f"is {value!r}, of another type than it should be.")
