// hg_plain_in: Input port of a core without handshake.
//
// Purpose     Passes data and valid to the first unit.
// Parameters  WIDTH  Bits of a word, which is a frame.
// Latency     0: wires.
// Contract    The units of the core accept a beat in every cycle, so m_ready is ignored.
`default_nettype none
module hg_plain_in #(
    parameter integer WIDTH = 12
) (
    input  wire             in_valid,
    input  wire [WIDTH-1:0] in_data,
    output wire [WIDTH-1:0] m_data,
    output wire             m_valid,
    input  wire             m_ready
);
    assign m_data  = in_data;
    assign m_valid = in_valid;
    wire unused = &{1'b0, m_ready};
endmodule
`default_nettype wire
