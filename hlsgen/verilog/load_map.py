"""The manifest's table of units whose weights the host can write at run time."""

from __future__ import annotations

from typing import Any

from hlsgen.dataflow.network import Network
from hlsgen.verilog.netlist import Design, Instance


def weight_table(design: Design, network: Network) -> list[dict[str, Any]]:
    """One entry for each unit, in the order of the unit numbers that the host uses as addresses."""
    layers = {node.name: node.layer for node in network.nodes}
    units = [instance for instance in design.instances if "LOAD_UNIT" in instance.parameters]
    return [_unit(design, instance, layers[instance.name]) for instance in units]


def _unit(design: Design, instance: Instance, layer: str) -> dict[str, Any]:
    numbers = {name: value for name, value in instance.parameters.items() if isinstance(value, int)}
    columns = numbers.get("SIMD", numbers.get("TAPS", 1) * numbers.get("COLUMNS", 1))
    bits = numbers["PE"] * columns * numbers["W_W"]
    file = str(instance.parameters["FILE"])
    encoding = {0: "two's complement", 1: "0 means -1, 1 means 1", 2: "0 means -1, 1 means 1"}[numbers["MODE"]]
    return {
        "unit": numbers["LOAD_UNIT"],
        "layer": layer,
        "instance": instance.name,
        "file": f"rtl/{file}",
        "words": design.memories[file].count("\n"),
        "word_bits": bits,
        "pieces": -(-bits // 32),
        "rows": numbers["PE"],
        "columns": columns,
        "weight_bits": numbers["W_W"],
        "layout": "words in the order of the file; each word in pieces, low 32 bits first; the weight of row r and "
        f"column c of a word is in bits [(r * {columns} + c) * {numbers['W_W']} +: {numbers['W_W']}], {encoding}",
    }
