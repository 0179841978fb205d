"""The streams of the top level: from s_axis through one instance after the other to m_axis."""

from __future__ import annotations

from dataclasses import dataclass

from hlsgen.certify.verilog import Cell, Top, broken

_STREAM = ("s_data", "s_valid", "s_ready"), ("m_data", "m_valid", "m_ready")
_AXIS = ("tdata", "tvalid", "tready", "tlast")
#: Parameters of the modules that do not follow LANES, IN_W, OUT_W: elements and bits on both sides.
_SHAPES: dict[str, tuple[str, str | int, str, str | int]] = {
    "hg_float_key": ("LANES", 32, "LANES", 32),
    "hg_f32_unit": ("LANES", 32, "LANES", 32),
    "hg_f32_round_unit": ("LANES", 32, "LANES", 32),
    "hg_f32_decode": ("LANES", "IN_W", "LANES", 32),
    "hg_f32_encode": ("LANES", 32, "LANES", "OUT_W"),
    "hg_width": ("IN", "UNIT", "OUT", "UNIT"),
    "hg_mvu": ("SIMD", "X_W", "PE", "ACC_W"),
    "hg_pair_add": ("LANES", 16, "LANES", 8),
    "hg_pair_scale": ("LANES", 16, "LANES", "OUT_W"),
    "hg_argmax": ("LANES", "IN_W", "", "INDEX_W"),
}


@dataclass(frozen=True)
class Port:
    """One side of a unit: elements of a beat and their bits."""

    lanes: int
    bits: int

    @property
    def width(self) -> int:
        return self.lanes * self.bits


def ports(cell: Cell) -> tuple[Port, Port]:
    """Both sides of a unit."""
    names = _SHAPES.get(cell.module, ("LANES", "IN_W", "LANES", "OUT_W"))
    missing = [name for name in names if isinstance(name, str) and name and name not in cell.parameters]
    if missing:
        raise broken(cell.name, f"{cell.module} has no parameter {missing[0]}.")
    lanes, bits, out_lanes, out_bits = (
        x if isinstance(x, int) else cell.number(x, 1) if x else 1 for x in names
    )  # fmt: skip
    return Port(lanes, bits), Port(out_lanes, out_bits)


def chain(top: Top, name: str, reset_active_low: bool) -> tuple[Cell, list[Cell], Cell]:
    """(hg_axis_in, the units in order, hg_axis_out). Raises HG055 if anything else is connected."""
    by_module: dict[str, list[Cell]] = {}
    for cell in top.cells.values():
        by_module.setdefault(cell.module, []).append(cell)
    single = []
    for module in ("hg_reset", "hg_axis_in", "hg_axis_out"):
        cells = by_module.get(module, [])
        if len(cells) != 1:
            raise broken(top.name, f"has {len(cells)} instances of {module}, not one.")
        single.append(cells[0])
    reset, first, last = single
    _frame(top, name, "rst_n" if reset_active_low else "rst", first, last)
    _connected(reset, {"clk": "clk", "reset_in": "rst_n" if reset_active_low else "rst", "rst": "rst_core"})
    if reset.parameters != {"ACTIVE_LOW": int(reset_active_low)}:
        raise broken(reset.name, f"parameters {reset.parameters} do not fit the option reset_active_low.")
    for end, names in ((first, {"WIDTH", "TDATA_W", "BEATS"}), (last, {"WIDTH", "TDATA_W", "BEATS"})):
        if set(end.parameters) != names:
            raise broken(end.name, f"{end.module} has other parameters than its model.")
    takers = {cell.ports.get("s_data", ""): cell for cell in top.cells.values()}
    wires, cells, at = {"rst_core": 1}, [], first
    while at is not last:
        nets = [at.ports.get(port, "") for port in _STREAM[1]]
        following = takers.pop(nets[0], None)
        if following is None or len(cells) > len(top.cells):
            raise broken(top.name, f"nothing takes what {at.name} sends.")
        width = at.number("WIDTH", 1) if at is first else ports(at)[1].width
        takes = following.number("WIDTH", 1) if following is last else ports(following)[0].width
        wires |= {nets[0]: width, nets[1]: 1, nets[2]: 1}
        if width != takes or top.wires.get(nets[0]) != width:
            raise broken(
                top.name, f"{at.name} sends {width} bits, wire {nets[0]} has {top.wires.get(nets[0])}, "
                f"{following.name} takes {takes}.",
            )  # fmt: skip
        if [following.ports.get(port) for port in _STREAM[0]] != nets:
            raise broken(top.name, f"{following.name} takes other streams than {at.name} sends.")
        if at is not first:
            cells.append(at)
        at = following
    for cell in cells:
        _connected(cell, {"clk": "clk", "rst": "rst_core"} | {p: cell.ports[p] for side in _STREAM for p in side})
    if wires != top.wires or len(set(wires)) != 1 + 3 * (len(cells) + 1):
        raise broken(
            top.name, f"has other wires than its streams: {sorted(set(wires.items()) ^ set(top.wires.items()))[:4]}."
        )
    if len(cells) + 3 != len(top.cells):
        raise broken(top.name, "has instances that are not between s_axis and m_axis.")
    return first, cells, last


def _frame(top: Top, name: str, reset: str, first: Cell, last: Cell) -> None:
    """The ports of the core and of the instances that face them."""
    widths = first.number("TDATA_W", 1), last.number("TDATA_W", 1)
    wanted = (
        ("input", 1, "clk"), ("input", 1, reset),
        ("input", widths[0], "s_axis_tdata"), ("input", 1, "s_axis_tvalid"),
        ("output", 1, "s_axis_tready"), ("input", 1, "s_axis_tlast"),
        ("output", widths[1], "m_axis_tdata"), ("output", 1, "m_axis_tvalid"),
        ("input", 1, "m_axis_tready"), ("output", 1, "m_axis_tlast"), ("output", 1, "frame_error"),
    )  # fmt: skip
    if top.name != name or top.ports != wanted:
        raise broken(top.name, "its name or ports are not those of a core with this port width and reset.")
    clocks = {"clk": "clk", "rst": "rst_core"}
    inner = {port: first.ports.get(port, "") for port in _STREAM[1]}
    _connected(first, clocks | inner | {f"s_axis_{p}": f"s_axis_{p}" for p in _AXIS} | {"frame_error": "frame_error"})
    inner = {port: last.ports.get(port, "") for port in _STREAM[0]}
    _connected(last, clocks | inner | {f"m_axis_{p}": f"m_axis_{p}" for p in _AXIS})


def _connected(cell: Cell, wanted: dict[str, str]) -> None:
    if cell.ports != wanted:
        odd = sorted(set(cell.ports.items()) ^ set(wanted.items()))
        raise broken(cell.name, f"{cell.module} is connected otherwise than it should be: {odd[:4]}.")
