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
#: Kind with sets -> (fields of a set, additional fields if its steps are listed).
_SETS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "quantizer": ({"positions": [int], "interval": [int]}, {"thresholds": [int], "codes": [int]}),
    "merge": ({"positions": [int], "a": [int], "b": [int]}, {"interval": [int], "thresholds": [int], "codes": [int]}),
}


def check(certificate: dict[str, Any], folder: str) -> None:
    """Raises HG055 at the first field that is missing, unknown, or of another type. `folder`: lists its files."""
    if certificate.get("certificate") != FORMAT:
        raise broken("certificate.json", f"has the format {certificate.get('certificate')!r}; only {FORMAT} is known.")
    top = {
        "certificate": int,
        "model": dict.fromkeys(("file", "sha256", "runtime", "runtime_version"), str),
        folder: {str: str},
        "layers": [dict],
    }
    if "states" in certificate:
        top["states"] = [_INSTANCE]
    if "removed" in certificate:
        top["removed"] = [{"value": int, "positions": [[int]]}]
    _check_type(certificate, top, "certificate.json")
    for layer in certificate["layers"]:
        name = f"certificate.json, layer {layer.get('layer')}"
        kind = layer.get("kind")
        if not isinstance(kind, str) or kind not in _KINDS:
            raise broken(name, f"kind is {kind!r}.")
        other_fields = dict(layer)
        set_fields, steps = _SETS.get(kind, ({}, {}))
        sets = other_fields.pop("sets", []) if set_fields else []
        fields = _COMMON | _KINDS[kind]
        if kind == "integer rows" and "program" in layer:
            fields["program"] = [[(int, str)]]
        _check_type(other_fields, fields, name)
        _check_type(sets, [dict], name)
        if set_fields and (not sets or layer["period"] < 1):
            raise broken(name, "has no sets, or no period.")
        for s in sets:
            _check_type(s, set_fields | (steps if layer["form"] == "steps" else {}), f"{name}, set")


def _check_type(value: Any, expected: Any, place: str) -> None:
    if isinstance(expected, dict) and set(expected) == {str}:
        if not isinstance(value, dict):
            raise broken(place, "is no object.")
        for key, item in value.items():
            _check_type(item, expected[str], f"{place}, {key}")
    elif isinstance(expected, dict):
        if not isinstance(value, dict) or set(value) != set(expected):
            unexpected = sorted(set(value) ^ set(expected)) if isinstance(value, dict) else ""
            raise broken(place, f"has missing or unknown fields: {unexpected}.")
        for key, item in value.items():
            _check_type(item, expected[key], f"{place}, {key}")
    elif isinstance(expected, list):
        if not isinstance(value, list):
            raise broken(place, "is no list.")
        for item in value:
            _check_type(item, expected[0], place)
    else:
        kinds = expected if isinstance(expected, tuple) else (expected,)
        if type(value) not in kinds:
            raise broken(place, f"is {value!r}, which has the wrong type.")
