// hg_f32_minmax: float32 maximum or minimum.
//
// Purpose     y = maximum or minimum of a and b.
// Parameters  PIPE  0: combinational (clk and en unused); 1: pipelined.
//             MAX   1: maximum; 0: minimum.
// Latency     0 (PIPE = 0), 1 (PIPE = 1).
// Contract    NaN (32'h7FC00000) if either operand is NaN. -0 is below +0: max(-0, +0) is +0 and min(-0,
//             +0) is -0.
`default_nettype none

module hg_f32_minmax #(
    parameter PIPE = 0,
    parameter MAX  = 1
) (
    input  wire        clk,
    input  wire        en,
    input  wire [31:0] a,
    input  wire [31:0] b,
    output wire [31:0] y
);
  // Keys that order like the floats do.
  wire [31:0] key_a = a[31] ? ~a : {1'b1, a[30:0]};
  wire [31:0] key_b = b[31] ? ~b : {1'b1, b[30:0]};
  wire nan = (a[30:0] > 31'h7F800000) || (b[30:0] > 31'h7F800000);
  wire take_a = (key_a > key_b) == (MAX != 0);
  wire [31:0] y_next = nan ? 32'h7FC00000 : take_a ? a : b;

  generate
    if (PIPE != 0) begin : g_pipe
      reg [31:0] y_reg;
      always @(posedge clk) begin
        if (en) y_reg <= y_next;
      end
      assign y = y_reg;
    end else begin : g_comb
      wire unused = &{1'b0, clk, en};
      assign y = y_next;
    end
  endgenerate
endmodule

`default_nettype wire
