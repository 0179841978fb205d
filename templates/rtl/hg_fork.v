// hg_fork: One stream to several consumers.
//
// Purpose     Every output carries every beat of the input.
// Parameters  WIDTH  Bits of a beat.
//             COUNT  Outputs. m_valid[i] and m_ready[i] belong to output i, m_data to all.
// Latency     0: m_valid follows s_valid and s_ready follows m_ready in the same cycle.
// Contract    Every output consumes a beat at its own time: m_valid[i] = s_valid until output i consumed
//             the beat, then 0 until the next one. The input is consumed in the cycle in which the last
//             output consumes it. Signal s_ready does not depend on s_valid, and m_valid not on m_ready.
`default_nettype none
module hg_fork #(
    parameter integer WIDTH = 8,
    parameter integer COUNT = 2
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [WIDTH-1:0] s_data,
    input  wire             s_valid,
    output wire             s_ready,
    output wire [WIDTH-1:0] m_data,
    output wire [COUNT-1:0] m_valid,
    input  wire [COUNT-1:0] m_ready
);
    reg  [COUNT-1:0] done_reg;
    wire [COUNT-1:0] done = done_reg | m_ready;

    assign m_data  = s_data;
    assign m_valid = {COUNT{s_valid}} & ~done_reg;
    assign s_ready = &done;

    always @(posedge clk) begin
        if (s_valid) done_reg <= s_ready ? {COUNT{1'b0}} : done;
        if (rst) done_reg <= {COUNT{1'b0}};
    end
endmodule
`default_nettype wire
