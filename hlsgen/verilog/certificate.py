"""The certificate.json of the Verilog target: each layer's function and instances, with hashes of all files."""

from __future__ import annotations

import hashlib
from typing import Any

from hlsgen.dataflow.layer_statements import (
    FORMAT,
    certificate_text,
    layer_statements,
    removed_elements,
    state_instances,
)
from hlsgen.dataflow.network import Network
from hlsgen.dataflow.units import Node
from hlsgen.verilog.binding.memory_files import Bits
from hlsgen.verilog.netlist import Design, Instance
from hlsgen.verilog.render import constant


def emit(design: Design, network: Network, model: dict[str, str], rtl: dict[str, bytes]) -> str:
    """The text of certificate.json. `rtl`: all files below rtl/, by relative path."""
    instances = {instance.name: instance for instance in design.instances}

    def described(node: Node) -> dict[str, Any]:
        return _instance(design, instances[node.name])

    certificate = {
        "certificate": FORMAT,
        "model": model,
        "rtl": {name: hashlib.sha256(data).hexdigest() for name, data in sorted(rtl.items())},
        "layers": list(layer_statements(network, described)),
        **removed_elements(network.graph),
        **({"states": state_instances(network, described)} if network.graph.states else {}),
    }
    return certificate_text(certificate) + "\n"


def _instance(design: Design, instance: Instance) -> dict[str, Any]:
    stem = str(instance.parameters.get("FILE", ""))
    return {
        "instance": instance.name,
        "module": instance.module,
        "parameters": {
            name: constant(value) if isinstance(value, Bits) else value for name, value in instance.parameters.items()
        },
        "memories": sorted(name for name in design.memories if stem and (name == stem or name.startswith(f"{stem}_"))),
    }
