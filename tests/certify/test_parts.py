"""Parts of the checker that builds of other tests rarely reach: windows, exact lines, joins."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from hlsgen.certify import affine_operands, stream_contents
from hlsgen.certify.binary_functions import JoinModel
from hlsgen.certify.connectivity import network
from hlsgen.certify.models import line_buffer, routing
from hlsgen.certify.monotone import pieces
from hlsgen.certify.monotone_ops import ACTIVATIONS
from hlsgen.certify.netlist_reader import Cell, SizedConstant, parse
from hlsgen.certify.port_wiring import PortOptions
from hlsgen.certify.stream_contents import ANYTHING, EMPTY, StreamContents, constant_element
from hlsgen.cycle_model.line_buffers import min_depth
from hlsgen.dataflow.units import PoolUnit
from hlsgen.diagnostics import HlsgenError
from hlsgen.ir import Accumulator, Affine, FloatKey, IntegerEncoding, Pooling, Value
from hlsgen.ir.binary_function import BinaryFunction
from hlsgen.ir.evaluate import KEY_POS_INF, float_to_key, key_to_float
from hlsgen.ir.ops import Activation, Add, BinaryKind, Cast, Div, IntQuant, Max, Mul
from hlsgen.ir.step_function import StepFunction
from hlsgen.ir.window import Reduction, Window
from hlsgen.numerics.activations import KINDS
from hlsgen.numerics.fixed import IntType, Rounding, int_type
from hlsgen.rescale.binary import affine

Array = Any
SETS = 3


# --------------------------------------------------------------------------- windows


@pytest.mark.parametrize("seed", range(200))
def test_least_depth(seed: int) -> None:
    """The checker's own code agrees with the compiler."""
    rng = np.random.default_rng(seed)
    height, width = rng.integers(1, 9, 2).tolist()
    while True:
        kernel, strides, dilations = (tuple(rng.integers(1, 4, 2).tolist()) for _ in range(3))
        window = Window(kernel, strides, dilations, tuple(rng.integers(0, 5, 4).tolist()))
        size = window.size(height, width)
        if min(size) > 0:
            break
    source = Value((1, height, width, 2), IntType(0, 3), Affine(np.ones(1), np.zeros(1)))
    result = Value((1, *size, 2), IntType(0, 3), source.encoding)
    layer = Pooling("p", Reduction.MAX, window, 0, source, result, (0,))
    rows, columns = line_buffer.sizes(layer)
    assert 2 * line_buffer.depth(rows, columns) == min_depth(PoolUnit(Reduction.MAX, window, height, width, 2, 0, 0))
    places = itertools.product(range(size[0]), range(kernel[0]), range(size[1]), range(kernel[1]))
    outside = [
        not (
            0 <= y * strides[0] - window.pads[0] + i * dilations[0] < height
            and 0 <= x * strides[1] - window.pads[1] + j * dilations[1] < width
        )
        for y, i, x, j in places
    ]
    assert line_buffer.has_border(layer) == any(outside)


# --------------------------------------------------------------------------- lines


def offsets(rng: np.random.Generator, magnitude: int) -> Array:
    """One for each set, most often equal for all sets."""
    return rng.integers(-magnitude, magnitude + 1, SETS if rng.random() < 0.3 else 1) + np.zeros(SETS, np.int64)


def branch(rng: np.random.Generator) -> tuple[Any, tuple[Any, ...], IntType]:
    """A decoding and operations that are exact, most of the time."""
    codes = int_type(int(rng.integers(3, 9)), bool(rng.random() < 0.6))
    kind = int(rng.integers(3))
    unit = np.full(SETS, 2.0 ** int(rng.integers(-4, 3))) * (rng.integers(1, 4) if rng.random() < 0.9 else 1.1)
    if kind == 0:
        source: Any = Affine(unit.astype(np.float32), offsets(rng, 4).astype(np.float32))
    elif kind == 1:
        source = Accumulator(2, 2 * offsets(rng, 5), unit)
    else:
        return IntegerEncoding("int32", offsets(rng, 50)), (), codes
    ops: list[Any] = []
    for _ in range(int(rng.integers(0, 3))):
        value = np.float32(rng.integers(1, 6)) * np.ones(SETS, np.float32)
        ops.append([Mul(value), Add(value), Div(value * 0 + 4), Max(value * 0 - 999), Cast("float32")][rng.integers(5)])
    return source, tuple(ops), codes


@pytest.mark.sweep
@pytest.mark.parametrize("kind", [BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL])
def test_join_of_lines(kind: BinaryKind) -> None:
    """The join of two lines is a function of one integer, for all pairs; other constants are rejected."""
    rng = np.random.default_rng([5, list(BinaryKind).index(kind)])
    accepted = rejected = 0
    for _ in range(150):
        (first, first_ops, a), (second, second_ops, b) = branch(rng), branch(rng)
        lo, hi = np.array([[a.lo] * SETS, [b.lo] * SETS]), np.array([[a.hi] * SETS, [b.hi] * SETS])
        scale = rng.uniform(0.3, 4, SETS).astype(np.float32)
        end = IntQuant(scale, np.zeros(SETS, np.float32), int_type(6, True), Rounding.ROUND)
        f = BinaryFunction(
            "f", kind, (first, second), (first_ops, second_ops), (), end, np.arange(SETS), lo, hi, (a, b), end.type
        )
        solution = affine.find(f)
        if isinstance(solution, str):
            with pytest.raises(HlsgenError, match=r"too many to try|operands"):
                affine_operands.as_function_of_join(f, "product" if kind is BinaryKind.MUL else "sum", (1, 1))
            continue
        operation, pair = ("sum", solution.factors) if solution.factors else ("product", solution.zeros)
        g = affine_operands.as_function_of_join(f, operation, pair)
        x, y = np.arange(a.lo, a.hi + 1)[:, None, None], np.arange(b.lo, b.hi + 1)[None, :, None]
        t = x * pair[0] + y * pair[1] if operation == "sum" else (x - pair[0]) * (y - pair[1])
        assert (g.evaluate(np.broadcast_to(t, (*t.shape[:2], SETS))) == f.evaluate(x + 0 * y, y + 0 * x)).all()
        assert (g.lo <= t.min()).all()
        assert (g.hi >= t.max()).all()
        accepted += 1
        with pytest.raises(HlsgenError, match=r"the operands (have|are 0 at other)"):
            affine_operands.as_function_of_join(f, operation, (pair[0] + 1, pair[1]))
        rejected += 1
    assert accepted > 20
    assert rejected == accepted


# --------------------------------------------------------------------------- modules


def cell(module: str, **parameters: Any) -> Cell:
    return Cell(module, "u", parameters, {})


def stream(elements: Any, bits: int = 4, lo: int = 0, hi: int = 15) -> StreamContents:
    return StreamContents(np.asarray(elements), bits, lo, hi)


def test_width_drops_and_adds_empty_lanes() -> None:
    pixels = stream([[0, 1], [2, ANYTHING], [3, 4], [5, ANYTHING]])
    widened = routing.move(cell("hg_width", UNIT=4, IN=2, OUT=4, IN_GROUP=3, OUT_GROUP=3), [pixels], False)
    assert widened.elements.tolist() == [[0, 1, 2, EMPTY], [3, 4, 5, EMPTY]]
    dense = routing.move(cell("hg_width", UNIT=4, IN=4, OUT=3, IN_GROUP=3, OUT_GROUP=6), [widened], False)
    assert dense.elements.tolist() == [[0, 1, 2], [3, 4, 5]]
    # If there are no groups, the contents of empty lanes are passed on.
    mixed = routing.move(cell("hg_width", UNIT=4, IN=2, OUT=4), [pixels], False)
    assert mixed.elements.tolist() == [[0, 1, 2, ANYTHING], [3, 4, 5, ANYTHING]]
    with pytest.raises(HlsgenError, match="no multiple of that"):
        routing.move(cell("hg_width", UNIT=4, IN=2, OUT=3), [stream([[0, 1]])], False)


def test_a_border_keeps_empty_lanes() -> None:
    image = stream([[0, ANYTHING], [1, ANYTHING]], 4, -8, 7)
    sizes = {"HEIGHT": 1, "COLUMNS": 2, "FOLDS": 1, "TOP": 0, "BOTTOM": 1, "LEFT": 1, "RIGHT": 0}
    padded = routing.move(cell("hg_pad", UNIT=4, LANES=2, VALUE=SizedConstant(4, 15), **sizes), [image], True)
    border = [constant_element(-1), ANYTHING]
    assert padded.elements.tolist() == [border, [0, ANYTHING], [1, ANYTHING], border, border, border]
    assert (padded.lo, padded.hi) == (-8, 7)


def test_join() -> None:
    streams = stream([[0, 1]], 3, -4, 3), stream([[2, 3]], 4)
    common = {"LANES": 2, "A_W": 3, "A_SIGNED": 1, "B_W": 4, "B_SIGNED": 0, "OUT_W": 12}
    a, b = np.array([-4, 3, -1]), np.array([15, 0, 7])
    assert JoinModel(cell("hg_join_sum", FA=3, FB=-2, **common), streams).apply(a, b).tolist() == [-42, 9, -17]
    assert JoinModel(cell("hg_join_product", ZA=-1, ZB=5, **common), streams).apply(a, b).tolist() == [-30, -20, 0]
    packed = JoinModel(cell("hg_join_pair", LANES=2, A_W=3, B_W=4), streams)
    assert packed.apply(a, b).tolist() == [4 + 8 * 15, 3, 7 + 8 * 7]
    unsigned = JoinModel(cell("hg_join_sum", FA=1, FB=0, **{**common, "A_SIGNED": 0}), streams)
    assert unsigned.apply(a, b).tolist() == [4, 3, 7]
    assert packed.out_bits == 7
    for module, change in (
        ("hg_join_pair", {}),
        ("hg_join_product", {"FA": 1, "FB": 1}),
        ("hg_join_sum", {"LANES": 1, "FA": 1, "FB": 1}),
        ("hg_join_sum", {"STYLE": 1, "FA": 1, "FB": 1}),
    ):
        with pytest.raises(HlsgenError, match="HG055"):
            JoinModel(cell(module, **{**common, **change}), streams)


def test_codes_that_a_unit_reads() -> None:
    codes = stream([[0]], 4, -3, 7)
    stream_contents.check_codes("u", codes, IntType(-8, 7), 4, 1)
    for type_, bits, signed in ((IntType(-8, 7), 5, 1), (IntType(-8, 7), 4, 0), (IntType(0, 15), 4, 0)):
        with pytest.raises(HlsgenError, match="HG055"):
            stream_contents.check_codes("u", codes, type_, bits, signed)


# --------------------------------------------------------------------------- wiring

_PORTS = """
module top (
    input wire clk, input wire rst, input wire [7:0] s_axis_tdata, input wire s_axis_tvalid, output wire s_axis_tready,
    input wire s_axis_tlast, output wire [7:0] m_axis_tdata, output wire m_axis_tvalid, input wire m_axis_tready,
    output wire m_axis_tlast, output wire frame_error
);
    wire rst_core;
    top_hg_reset #(.ACTIVE_LOW(0)) reset (.clk(clk), .reset_in(rst), .rst(rst_core));
    top_hg_axis_in #(.WIDTH(8), .TDATA_W(8), .BEATS(1)) port_in (
        .clk(clk), .rst(rst_core), .s_axis_tdata(s_axis_tdata), .s_axis_tvalid(s_axis_tvalid),
        .s_axis_tready(s_axis_tready), .s_axis_tlast(s_axis_tlast), .m_data(a_data), .m_valid(a_valid),
        .m_ready(a_ready), .frame_error(frame_error)
    );
    top_hg_axis_out #(.WIDTH(8), .TDATA_W(8), .BEATS(1)) port_out (
        .clk(clk), .rst(rst_core), .s_data(LAST_data), .s_valid(LAST_valid), .s_ready(LAST_ready),
        .m_axis_tdata(m_axis_tdata), .m_axis_tvalid(m_axis_tvalid), .m_axis_tready(m_axis_tready),
        .m_axis_tlast(m_axis_tlast)
    );
"""


def streams_of(last: str, names: str, *cells: str) -> Any:
    wires = "".join(f"wire [7:0] {n}_data; wire {n}_valid; wire {n}_ready;\n" for n in names.split())
    text = _PORTS.replace("LAST", last) + wires + "\n".join(cells) + "\nendmodule\n"
    return network(parse(text, "top.v"), "top", PortOptions(), "0" * 64)


def fifo(name: str, source: str) -> str:
    ends = "".join(f", .s_{k}({source}_{k}), .m_{k}({name}_{k})" for k in ("data", "valid", "ready"))
    return f"top_hg_fifo #(.WIDTH(8), .DEPTH(2)) {name} (.clk(clk), .rst(rst_core){ends});"


def fork(name: str, source: str, valid: str, ready: str) -> str:
    ends = "".join(f", .s_{k}({source}_{k})" for k in ("data", "valid", "ready"))
    sends = f", .m_data({name}_data), .m_valid({{{valid}}}), .m_ready({{{ready}}})"
    return f"top_hg_fork #(.WIDTH(8), .COUNT(2)) {name} (.clk(clk), .rst(rst_core){ends}{sends});"


def test_wiring() -> None:
    assert streams_of("b", "a b", fifo("b", "a")).streams_in == {"b": ("a_valid",)}
    wires = "wire [7:0] f_data; wire x_valid; wire x_ready; wire y_valid; wire y_ready;"
    ends = "".join(
        f".{p}_data(f_data), .{p}_valid({n}_valid), .{p}_ready({n}_ready), " for p, n in (("a", "x"), ("b", "y"))
    )
    joined = (
        f"top_hg_join_sum #(.LANES(1)) j ({ends}.clk(clk), .rst(rst_core), .m_data(j_data), .m_valid(j_valid), "
        ".m_ready(j_ready));"
    )
    netlist = streams_of("j", "a j", wires, fork("f", "a", "y_valid, x_valid", "y_ready, x_ready"), joined)
    assert netlist.streams_out == {"f": ("x_valid", "y_valid"), "j": ("j_valid",)}
    assert netlist.streams_in["j"] == ("x_valid", "y_valid")
    for pattern, arguments in {
        "not belong to stream": ("j", "a j", wires, fork("f", "a", "y_valid, x_valid", "x_ready, y_ready"), joined),
        "has no valid and ready": ("j", "a j", wires, fork("f", "a", "x_valid", "x_ready"), joined),
        "not an unused wire": ("j", "a j", wires, fork("f", "a", "x_valid, x_valid", "y_ready, x_ready"), joined),
        "form a cycle": ("b", "a b c d", fifo("b", "a"), fifo("c", "d"), fifo("d", "c")),
        "which b also reads": ("b", "a b c", fifo("b", "a"), fifo("c", "a")),
        "nothing reads stream": (
            "x",
            "a",
            wires.replace("f_data", "x_data"),
            fork("x", "a", "y_valid, x_valid", "y_ready, x_ready"),
        ),
        "nothing sends stream": ("b", "a b c", fifo("b", "c")),
        "other wires": ("b", "a b c", fifo("b", "a")),
    }.items():
        with pytest.raises(HlsgenError, match=pattern):
            streams_of(*arguments)


# --------------------------------------------------------------------------- activations


def test_the_checker_knows_every_activation() -> None:
    """An activation without an entry is not certified. The value None means that nothing is known."""
    missing, unknown = KINDS - set(ACTIVATIONS), set(ACTIVATIONS) - KINDS
    assert not missing, f"certify/monotone_ops.py, ACTIVATIONS: add {sorted(missing)}, or None if unknown"
    assert not unknown, f"certify/monotone_ops.py, ACTIVATIONS: {sorted(unknown)} are no activations"


def of_floats(*ops: Activation) -> StepFunction:
    """Quantizes every float32 number; in its third set, of numbers from -4 to 4, with fine steps."""
    ones, type_ = np.ones(3, np.float32), IntType(0, KEY_POS_INF)
    last = IntQuant(ones / np.float32([16, 1, 4096]), 0 * ones, IntType(-32767, 32767), Rounding.FLOOR)
    lo, hi = float_to_key(np.array([[-np.inf, -np.inf, -4], [np.inf, np.inf, 4]], np.float32))
    return StepFunction("f", FloatKey(), ops, last, np.arange(3), lo, hi, type_, IntType(-32767, 32767))


PARAMETERS = [(0.0, 0.0), (0.7, 0.4), (-0.7, 0.4), (2.0, -1.0), (1.5, 0.0), (-2.0, 0.0), (-1.0, 1.0), (-0.5, 0.5)]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_activations_are_monotone_in_the_pieces_of_the_checker(kind: str) -> None:
    """At zeros, infinities and turning points, evenly, and at random. Some inputs are not left to be evaluated."""
    rng = np.random.default_rng(5)
    points = np.float32([-np.inf, -1.1924312, -0.75246143, -0.7517915, -1e-30, -0.0, 1e-30, 1, 88, np.inf])
    at_points = (float_to_key(points)[:, None] + np.arange(-40, 41)).ravel()
    even = float_to_key(np.linspace(-4, 4, 600, dtype=np.float32))
    x = np.concatenate([at_points, even, rng.integers(0, KEY_POS_INF + 1, 600)]).clip(0, KEY_POS_INF)
    for alpha, beta in PARAMETERS:
        f = of_floats(Activation(kind, alpha, beta))
        cut = pieces(f)
        inputs = np.unique(np.concatenate([x, cut.lo, cut.hi]))
        codes = f.evaluate(inputs[:, None])
        for s, lo, hi in zip(*(v[~cut.unknown] for v in (cut.s, cut.lo, cut.hi)), strict=True):
            step = np.diff(codes[(inputs >= lo) & (inputs <= hi), s])
            assert (step >= 0).all() or (step <= 0).all(), (alpha, beta, key_to_float(np.array([lo, hi])))
    assert ACTIVATIONS[kind] is None or not cut.unknown.all()


def test_unknown_activations_are_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ACTIVATIONS, "Tanh", None)
    cut = pieces(of_floats(Activation("Tanh")))
    assert cut.unknown[cut.lo < cut.hi].all()
