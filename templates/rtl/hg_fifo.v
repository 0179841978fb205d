// hg_fifo: synchronous first-word-fall-through FIFO for a valid/ready stream.
//
// Purpose     decouples the rates of two units.
// Parameters  WIDTH  bits of a beat
//             DEPTH  beats it can hold, at least 2
// Latency     1 cycle; full throughput
// Contract    beats leave in order and unchanged; s_ready does not depend on m_ready.
`default_nettype none
module hg_fifo #(
    parameter integer WIDTH = 8,
    parameter integer DEPTH = 16
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
    localparam integer AW = (DEPTH <= 1) ? 1 : $clog2(DEPTH);
    localparam integer CW = $clog2(DEPTH + 1);
    localparam [AW-1:0] LAST = DEPTH[AW-1:0] - 1'b1;
    localparam [CW-1:0] FULL = DEPTH[CW-1:0];

    reg [WIDTH-1:0] mem [0:DEPTH-1];
    reg [AW-1:0]    write_reg, read_reg;
    reg [CW-1:0]    count_reg;

    wire push = s_valid && s_ready;
    wire pop  = m_valid && m_ready;

    assign s_ready = count_reg != FULL;
    assign m_valid = count_reg != {CW{1'b0}};
    assign m_data  = mem[read_reg];

    always @(posedge clk) begin
        if (push) begin
            mem[write_reg] <= s_data;
            write_reg <= (write_reg == LAST) ? {AW{1'b0}} : write_reg + 1'b1;
        end
        if (pop) read_reg <= (read_reg == LAST) ? {AW{1'b0}} : read_reg + 1'b1;
        if (push && !pop) count_reg <= count_reg + 1'b1;
        else if (pop && !push) count_reg <= count_reg - 1'b1;
        if (rst) begin
            write_reg <= {AW{1'b0}};
            read_reg  <= {AW{1'b0}};
            count_reg <= {CW{1'b0}};
        end
    end
endmodule
`default_nettype wire
