// hg_slice: Register slice for a valid/ready stream.
//
// Purpose     Breaks the combinational paths of data, valid and ready.
// Parameters  WIDTH  Bits of a beat.
//             FULL   1: one beat per cycle (skid buffer). 0: a beat every other cycle, with one register
//                    and no multiplexers.
// Latency     1 cycle.
// Contract    Beats leave in order and unchanged. Output m_data is stable while m_valid && !m_ready.
`default_nettype none
module hg_slice #(
    parameter integer WIDTH = 8,
    parameter integer FULL  = 1
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [WIDTH-1:0] s_data,
    input  wire             s_valid,
    output wire             s_ready,
    output wire [WIDTH-1:0] m_data,
    output wire             m_valid,
    input  wire             m_ready
);
    reg [WIDTH-1:0] data_reg;
    reg             valid_reg;

    assign m_valid = valid_reg;
    assign m_data  = data_reg;

    generate
        if (FULL != 0) begin : two
            reg [WIDTH-1:0] skid_reg;
            // free_reg is !full_reg as a separate register, because of its high fan-out. All are 0 where
            // registers start at 0.
            reg             full_reg, free_reg;
            assign s_ready = free_reg;
            always @(posedge clk) begin
                if (m_ready || !valid_reg) begin
                    data_reg  <= full_reg ? skid_reg : s_data;
                    valid_reg <= full_reg || s_valid;
                    {full_reg, free_reg} <= 2'b01;
                end else if (s_valid && !full_reg) begin
                    {full_reg, free_reg} <= 2'b10;
                end
                if (!full_reg) skid_reg <= s_data;
                if (rst) begin
                    valid_reg <= 1'b0;
                    {full_reg, free_reg} <= 2'b01;
                end
            end
        end else begin : one
            reg free_reg;  // !valid_reg, for the stages upstream
            assign s_ready = free_reg;
            always @(posedge clk) begin
                if (!valid_reg) data_reg <= s_data;
                {valid_reg, free_reg} <= (valid_reg ? !m_ready : s_valid) ? 2'b10 : 2'b01;
                if (rst) {valid_reg, free_reg} <= 2'b01;
            end
        end
    endgenerate
endmodule
`default_nettype wire
