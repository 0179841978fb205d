// hg_stages: Control of a pipeline with an enable.
//
// Purpose     Tracks which stages of generated arithmetic hold a beat, and when they advance.
// Parameters  STAGES  Registers from s to m.
//             JOINED  1: the stages advance only with those of the consumer, as if they belonged to it.
// Latency     STAGES enabled cycles; one beat per cycle.
// Contract    The data registers alongside advance on en. They stall while m_valid is not accepted. With
//             JOINED, the consumer's ready must not wait for m_valid.
`default_nettype none
module hg_stages #(
    parameter integer STAGES = 3,
    parameter integer JOINED = 0
) (
    input  wire clk,
    input  wire rst,
    input  wire s_valid,
    output wire s_ready,
    output wire m_valid,
    input  wire m_ready,
    output wire en
);
    reg  [STAGES-1:0] valid_reg;
    wire [STAGES:0]   valid_in = {valid_reg, s_valid};
    assign en = m_ready || (JOINED == 0 && !m_valid);
    assign s_ready = en;
    assign m_valid = valid_reg[STAGES-1];
    always @(posedge clk) begin
        if (en)  valid_reg <= valid_in[STAGES-1:0];
        if (rst) valid_reg <= {STAGES{1'b0}};
    end
    wire unused = &{1'b0, valid_in[STAGES]};
endmodule
`default_nettype wire
