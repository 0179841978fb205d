// hg_pick: Selects, repeats or reorders the elements of every beat.
//
// Purpose     Element i of m is element MAP[i] of s.
// Parameters  UNIT     Bits of an element.
//             IN, OUT  Elements of a beat of s and of m.
//             MAP      OUT numbers of 32 bits, each less than IN, the number for element 0 in the low bits.
// Latency     0: wires.
// Contract    m_valid is s_valid, s_ready is m_ready.
`default_nettype none
module hg_pick #(
    parameter integer         UNIT = 3,
    parameter integer         IN   = 2,
    parameter integer         OUT  = 3,
    parameter [32*OUT-1:0]    MAP  = 0
) (
    input  wire                clk,
    input  wire                rst,
    input  wire [IN*UNIT-1:0]  s_data,
    input  wire                s_valid,
    output wire                s_ready,
    output wire [OUT*UNIT-1:0] m_data,
    output wire                m_valid,
    input  wire                m_ready
);
    assign m_valid = s_valid;
    assign s_ready = m_ready;
    wire unused = &{1'b0, clk, rst, s_data};
    genvar i;
    generate
        for (i = 0; i < OUT; i = i + 1) begin : element
            localparam integer FROM = MAP[32*i +: 32];
            assign m_data[i*UNIT +: UNIT] = s_data[FROM*UNIT +: UNIT];
        end
    endgenerate
endmodule
`default_nettype wire
