// hg_f32_mul: float32 multiplication.
//
// Purpose     y = a * b.
// Parameters  PIPE  0: combinational (clk and en unused); 1: pipelined.
// Latency     0 (PIPE = 0), 5 (PIPE = 1).
// Contract    IEEE-754 binary32, round to nearest even, subnormals in and out, infinities. inf * 0 is NaN.
//             Every NaN result is 32'h7FC00000.
`default_nettype none

module hg_f32_mul #(
    parameter PIPE = 0
) (
    input  wire        clk,
    input  wire        en,
    input  wire [31:0] a,
    input  wire [31:0] b,
    output wire [31:0] y
);
  // Stage 1. Significand of a times the two halves of the significand of b; 24 x 12 bits fit one DSP each.
  // Subnormal operands are not normalized here: the packer shifts the product.
  wire a_normal = (a[30:23] != 8'd0);
  wire b_normal = (b[30:23] != 8'd0);
  wire a_top = (a[30:23] == 8'hFF);
  wire b_top = (b[30:23] == 8'hFF);
  wire a_zero = (a[30:0] == 31'd0);
  wire b_zero = (b[30:0] == 31'd0);
  wire sign = a[31] ^ b[31];
  wire inf = a_top || b_top;
  wire nan = (a_top && (a[22:0] != 23'd0 || b_zero)) || (b_top && (b[22:0] != 23'd0 || a_zero));
  wire [7:0] e_a = {a[30:24], a[23] | ~a_normal};
  wire [7:0] e_b = {b[30:24], b[23] | ~b_normal};
  wire [8:0] e_sum = {1'b0, e_a} + {1'b0, e_b};
  wire [23:0] sig_a = {a_normal, a[22:0]};
  (* use_dsp = "no", multstyle = "logic", syn_multstyle = "logic" *)
  wire [35:0] low;
  assign low = {12'd0, sig_a} * {24'd0, b[11:0]};
  (* use_dsp = "no", multstyle = "logic", syn_multstyle = "logic" *)
  wire [35:0] high;
  assign high = {12'd0, sig_a} * {24'd0, b_normal, b[22:12]};

  wire [83:0] s1_next = {sign, inf, nan, e_sum, high, low};
  wire [83:0] s1;
  wire sign_1, inf_1, nan_1;
  wire [8:0] e_sum_1;
  wire [35:0] high_1, low_1;
  assign {sign_1, inf_1, nan_1, e_sum_1, high_1, low_1} = s1;

  // Stage 2. Product. Its top bit, 2^47, has the biased exponent e_a + e_b - 126.
  wire [47:0] product = {high_1, 12'd0} + {12'd0, low_1};
  wire [12:0] e_top = {4'd0, e_sum_1} - 13'd126;

  wire [63:0] s2_next = {sign_1, inf_1, nan_1, e_top, product};
  wire [63:0] s2;

  hg_f32_pack #(
      .PIPE(PIPE),
      .N   (48),
      .PRE (25)
  ) u_pack (
      .clk  (clk),
      .en   (en),
      .sign (s2[63]),
      .inf  (s2[62]),
      .nan  (s2[61]),
      .e_top(s2[60:48]),
      .sig  (s2[47:0]),
      .y    (y)
  );

  generate
    if (PIPE != 0) begin : g_pipe
      reg [83:0] s1_reg;
      reg [63:0] s2_reg;
      always @(posedge clk) begin
        if (en) begin
          s1_reg <= s1_next;
          s2_reg <= s2_next;
        end
      end
      assign s1 = s1_reg;
      assign s2 = s2_reg;
    end else begin : g_comb
      assign s1 = s1_next;
      assign s2 = s2_next;
    end
  endgenerate
endmodule

`default_nettype wire
