// hg_f32_to_code: Clamps a float32, rounds it and saturates the integer to a code.
//
// Purpose     code = saturate(round(clamp(x, lo, hi))).
// Parameters  PIPE        0: combinational (clk and en unused); 1: pipelined.
//             MODE        0..6 as in hg_f32_round; 7: BIPOLAR.
//             OUT_W       Width of the code, 1..33.
//             OUT_SIGNED  1: two's complement; 0: unsigned.
// Latency     0 (PIPE = 0), 5 (PIPE = 1).
// Contract    y = x; y = hi if y > hi; y = lo if y < lo. The integer round(y) is then saturated to OUT_W
//             bits. lo <= hi. Neither bound is NaN; both may be infinite (no clamp). A NaN x gives the code
//             of lo. BIPOLAR is (x >= 0) ? 1 : 0 on the unclamped x, 0 for NaN and 1 for -0, saturated the
//             same way.
`default_nettype none

module hg_f32_to_code #(
    parameter PIPE       = 0,
    parameter MODE       = 0,
    parameter OUT_W      = 8,
    parameter OUT_SIGNED = 1
) (
    input  wire             clk,
    input  wire             en,
    input  wire [31:0]      x,
    input  wire [31:0]      lo,
    input  wire [31:0]      hi,
    output wire [OUT_W-1:0] code
);
  // Magnitudes of the largest and of the smallest code.
  localparam [33:0] MAX_CODE =
      (34'd1 << ((OUT_SIGNED != 0) ? OUT_W - 1 : OUT_W)) - 34'd1;
  localparam [33:0] MIN_CODE = (OUT_SIGNED != 0) ? (34'd1 << (OUT_W - 1)) : 34'd0;

  generate
    if (OUT_W < 1 || OUT_W > 33 || MODE < 0 || MODE > 7) begin : g_bad
      hg_parameter_error_f32_to_code u_bad ();
    end
  endgenerate

  // Stage 1. Clamp, on keys that order like the floats do (-0 below +0 changes no code).
  wire [31:0] key_x = x[31] ? ~x : {1'b1, x[30:0]};
  wire [31:0] key_lo = lo[31] ? ~lo : {1'b1, lo[30:0]};
  wire [31:0] key_hi = hi[31] ? ~hi : {1'b1, hi[30:0]};
  wire nan = (x[30:0] > 31'h7F800000);
  wire above = (key_x > key_hi) && !nan;
  wire below = (key_x < key_lo) || nan;
  wire one = !nan && (!x[31] || x[30:0] == 31'd0);
  wire [31:0] bipolar = one ? 32'h3F800000 : 32'd0;
  wire [31:0] y_next = (MODE == 7) ? bipolar : above ? hi : below ? lo : x;
  wire [31:0] y;

  // Stages 2 and 3. Round. BIPOLAR is already an integer.
  wire [31:0] r;
  hg_f32_round #(
      .PIPE(PIPE),
      .MODE((MODE == 7) ? 4 : MODE)
  ) u_round (
      .clk(clk),
      .en (en),
      .x  (y),
      .y  (r)
  );

  // Stage 4. The integer's magnitude: 33 bits hold all values below 2^33.
  wire [7:0] right = 8'd159 - r[30:23];
  wire beyond = (r[30:23] >= 8'd160);
  wire [32:0] shifted = {1'b1, r[22:0], 9'd0} >> right[5:0];
  wire [33:0] magnitude = {beyond, (r[30:23] < 8'd127) ? 33'd0 : shifted};

  wire [34:0] s4_next = {r[31], magnitude};
  wire [34:0] s4;

  // Stage 5. Saturate and apply the sign.
  wire [33:0] bound = s4[34] ? MIN_CODE : MAX_CODE;
  wire [33:0] bounded = (s4[33:0] > bound) ? bound : s4[33:0];
  wire [33:0] value = s4[34] ? -bounded : bounded;
  wire [OUT_W-1:0] code_next = value[OUT_W-1:0];

  generate
    if (PIPE != 0) begin : g_pipe
      reg [31:0] y_reg;
      reg [34:0] s4_reg;
      reg [OUT_W-1:0] code_reg;
      always @(posedge clk) begin
        if (en) begin
          y_reg <= y_next;
          s4_reg <= s4_next;
          code_reg <= code_next;
        end
      end
      assign y = y_reg;
      assign s4 = s4_reg;
      assign code = code_reg;
    end else begin : g_comb
      assign y = y_next;
      assign s4 = s4_next;
      assign code = code_next;
    end
  endgenerate
  wire unused = &{1'b0, right[7:6], value[33:OUT_W], bipolar, above, below};
endmodule

`default_nettype wire
