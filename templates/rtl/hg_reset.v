// hg_reset: Reset input of a core.
//
// Purpose     Gives the core its synchronous, active-high reset.
// Parameters  ACTIVE_LOW  1: the port is low during reset.
// Latency     1 cycle.
// Contract    The port is sampled with clk. Hold it for at least two cycles.
`default_nettype none
module hg_reset #(
    parameter integer ACTIVE_LOW = 0
) (
    input  wire clk,
    input  wire reset_in,
    output wire rst
);
    reg rst_reg;
    always @(posedge clk) rst_reg <= (ACTIVE_LOW != 0) ? !reset_in : reset_in;
    assign rst = rst_reg;
endmodule
`default_nettype wire
