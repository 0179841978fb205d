"""hg_plain_in, hg_plain_out: ports without handshake pass data and valid, and always accept."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from streams import SIMULATORS, Pipeline

#: The modules are wires: the bench registers their outputs.
BENCH = """module plain #(parameter WIDTH = 1) (
    input wire clk, input wire valid, input wire [WIDTH-1:0] data, input wire accepted,
    output reg inner_valid, output reg [WIDTH-1:0] inner, output reg outer_valid, output reg [WIDTH-1:0] outer,
    output reg ready
);
    wire [WIDTH-1:0] first_data, last_data;
    wire             first_valid, last_valid, last_ready;
    hg_plain_in #(.WIDTH(WIDTH)) first (
        .in_valid(valid), .in_data(data), .m_data(first_data), .m_valid(first_valid), .m_ready(accepted)
    );
    hg_plain_out #(.WIDTH(WIDTH)) last (
        .s_data(data), .s_valid(valid), .s_ready(last_ready), .out_valid(last_valid), .out_data(last_data)
    );
    always @(posedge clk) begin
        {inner_valid, inner, outer_valid, outer} <= {first_valid, first_data, last_valid, last_data};
        ready <= last_ready;
    end
endmodule
"""


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize("width", [1, 9])
def test_plain(simulate: Callable[..., None], simulator: str, width: int) -> None:
    rng = random.Random(width)
    data = [rng.getrandbits(width) for _ in range(100)]
    valid, accepted = ([rng.getrandbits(1) for _ in data] for _ in range(2))
    inputs = {"valid": valid, "data": data, "accepted": accepted}
    outputs = {"inner_valid": valid, "inner": data, "outer_valid": valid, "outer": data, "ready": [1] * len(data)}
    job = Pipeline(inputs, outputs, latency=1, enable=None)
    simulate(simulator, "plain", {"WIDTH": width}, job, {"plain.v": BENCH})
