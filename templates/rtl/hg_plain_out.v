// hg_plain_out: Output port of a core without handshake.
//
// Purpose     Passes data and valid from the last unit, and accepts every beat.
// Parameters  WIDTH  Bits of a word, which is a frame.
// Latency     0: wires.
// Contract    s_ready is always 1. Units that take a beat whenever their consumer does then never wait, and
//             synthesis removes what they need for waiting.
`default_nettype none
module hg_plain_out #(
    parameter integer WIDTH = 12
) (
    input  wire [WIDTH-1:0] s_data,
    input  wire             s_valid,
    output wire             s_ready,
    output wire             out_valid,
    output wire [WIDTH-1:0] out_data
);
    assign s_ready   = 1'b1;
    assign out_data  = s_data;
    assign out_valid = s_valid;
endmodule
`default_nettype wire
