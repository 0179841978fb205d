// hg_f32_round: Rounds a float32 to an integer-valued float32.
//
// Purpose     y = integer nearest to x in the direction of MODE.
// Parameters  PIPE  0: combinational (clk and en unused); 1: pipelined.
//             MODE  0: ROUND (half to even); 1: CEIL; 2: FLOOR; 3: UP (away from zero); 4: DOWN (toward
//                   zero); 5: HALF_UP; 6: HALF_DOWN.
// Latency     0 (PIPE = 0), 2 (PIPE = 1).
// Contract    HALF_UP is sign(x) * floor(fl32(|x| + 0.5)) and HALF_DOWN is sign(x) * ceil(fl32(|x| - 0.5)).
//             Here fl32 rounds to float32 (nearest even). That sum is exact except in two cases, so both
//             modes are an exact rounding with these cases added: 0.5 - 2^-25 rounds HALF_UP to 1, and an
//             odd integer in [2^23, 2^24) moves by one. Zero results keep the sign of x. Infinities stay.
//             NaN gives 32'h7FC00000.
`default_nettype none

module hg_f32_round #(
    parameter PIPE = 0,
    parameter MODE = 0
) (
    input  wire        clk,
    input  wire        en,
    input  wire [31:0] x,
    output wire [31:0] y
);
  generate
    if (MODE < 0 || MODE > 6) begin : g_bad
      hg_parameter_error_f32_round_mode u_bad ();
    end
  endgenerate

  // Stage 1. The fraction bits below the integer's unit, and how they round.
  wire sign = x[31];
  wire [7:0] e = x[30:23];
  wire nan = (x[30:0] > 31'h7F800000);
  wire whole = (e >= 8'd150);  // |x| >= 2^23
  wire below_one = (e < 8'd127);   // |x| < 1
  wire [7:0] n = 8'd150 - e;   // fraction bits, 1..23 when neither
  wire [22:0] mask = whole ? 23'd0 : ~(23'h7FFFFF << n[4:0]);
  wire [22:0] below_half = {1'b0, mask[22:1]};
  // Bit 23 of x is the low exponent bit: 1 for 1 <= |x| < 2, like the hidden bit there.
  wire odd_bit = ((x[23:0] & {mask, 1'b1} & ~{1'b0, mask}) != 24'd0);
  wire odd = !below_one && odd_bit && (!whole || e == 8'd150);
  wire half_bit = ((x[22:0] & mask & ~below_half) != 23'd0);
  wire rest_bit = ((x[22:0] & below_half) != 23'd0);
  wire half = below_one ? (e == 8'd126) : half_bit;
  wire rest = below_one ? (x[22:0] != 23'd0 || (e != 8'd126 && e != 8'd0)) : rest_bit;
  wire just_below_half = (x[30:0] == 31'h3EFFFFFF);

  wire inc = (MODE == 0) ? half && (rest || odd) :
      (MODE == 1) ? !sign && (half || rest) :
      (MODE == 2) ? sign && (half || rest) :
      (MODE == 3) ? half || rest :
      (MODE == 4) ? 1'b0 :
      (MODE == 5) ? half || just_below_half || (whole && odd) :
      half && rest;
  // HALF_DOWN subtracts one from an odd integer above 2^23 by clearing its low bit.
  wire [22:0] clear = (MODE == 6) ? mask | {22'd0, whole && odd} : mask;

  wire [57:0] s1_next = {nan, below_one, inc, clear, x};
  wire [57:0] s1;
  wire nan_1, below_one_1, inc_1;
  wire [22:0] clear_1;
  wire [31:0] x_1;
  assign {nan_1, below_one_1, inc_1, clear_1, x_1} = s1;

  // Stage 2. Fill the fraction with ones and add one: the carry enters the integer part.
  wire [30:0] filled = inc_1 ? {x_1[30:23], x_1[22:0] | clear_1} : x_1[30:0];
  wire [30:0] sum = filled + {30'd0, inc_1};
  wire [30:0] rounded = sum & ~{8'd0, clear_1};
  wire [31:0] y_next = nan_1 ? 32'h7FC00000 :
      below_one_1 ? {x_1[31], inc_1 ? 31'h3F800000 : 31'd0} : {x_1[31], rounded};

  generate
    if (PIPE != 0) begin : g_pipe
      reg [57:0] s1_reg;
      reg [31:0] y_reg;
      always @(posedge clk) begin
        if (en) begin
          s1_reg <= s1_next;
          y_reg  <= y_next;
        end
      end
      assign s1 = s1_reg;
      assign y  = y_reg;
    end else begin : g_comb
      wire unused = &{1'b0, clk, en};
      assign s1 = s1_next;
      assign y  = y_next;
    end
  endgenerate
  wire unused_n = &{1'b0, n[7:5]};
endmodule

`default_nettype wire
