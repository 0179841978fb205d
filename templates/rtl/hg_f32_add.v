// hg_f32_add: float32 addition.
//
// Purpose     y = a + b.
// Parameters  PIPE  0: combinational (clk and en unused); 1: pipelined.
// Latency     0 (PIPE = 0), 6 (PIPE = 1).
// Contract    IEEE-754 binary32, round to nearest even, subnormals in and out, infinities. x + (-x) is +0.
//             Every NaN result is 32'h7FC00000.
`default_nettype none

module hg_f32_add #(
    parameter PIPE = 0
) (
    input  wire        clk,
    input  wire        en,
    input  wire [31:0] a,
    input  wire [31:0] b,
    output wire [31:0] y
);
  // Stage 1. Order by magnitude. NaN is above infinity, so `big` holds any NaN.
  wire swap = b[30:0] > a[30:0];
  wire [31:0] big = swap ? b : a;
  wire [31:0] lesser = swap ? a : b;
  wire big_normal = (big[30:23] != 8'd0);
  wire lesser_normal = (lesser[30:23] != 8'd0);
  wire [7:0] e_big = {big[30:24], big[23] | ~big_normal};
  wire [7:0] e_lesser = {lesser[30:24], lesser[23] | ~lesser_normal};
  wire [7:0] distance = e_big - e_lesser;
  wire unused_sign = lesser[31];
  wire sub = a[31] ^ b[31];
  wire same = (a[30:0] == b[30:0]);
  wire sign = big[31] && !(sub && same);
  wire inf = (big[30:23] == 8'hFF);
  wire nan = inf && ((big[22:0] != 23'd0) || (sub && same));

  wire [67:0] s1_next = {
    sign, inf, nan, sub, e_big, distance, big_normal, big[22:0], lesser_normal, lesser[22:0]
  };
  wire [67:0] s1;
  wire sign_1, inf_1, nan_1, sub_1;
  wire [7:0] e_1, distance_1;
  wire [23:0] big_1, lesser_1;
  assign {sign_1, inf_1, nan_1, sub_1, e_1, distance_1, big_1, lesser_1} = s1;

  // Stage 2. Align the smaller operand to 24 bits, guard, round and sticky. At a distance of 26 or more it
  // is below a quarter of the last place of `big` and changes no rounding. The sticky bit therefore needs
  // no more than 25 bits below.
  wire [48:0] wide = {lesser_1, 25'd0} >> distance_1[4:0];
  wire far = (distance_1[7:5] != 3'd0);
  wire [26:0] aligned = far ? 27'd0 : {wide[48:23], wide[22:0] != 23'd0};

  wire [62:0] s2_next = {sign_1, inf_1, nan_1, sub_1, e_1, big_1, aligned};
  wire [62:0] s2;
  wire sign_2, inf_2, nan_2, sub_2;
  wire [7:0] e_2;
  wire [23:0] big_2;
  wire [26:0] aligned_2;
  assign {sign_2, inf_2, nan_2, sub_2, e_2, big_2, aligned_2} = s2;

  // Stage 3. Add or subtract. The top bit of the sum weighs one exponent more than `big`.
  wire [27:0] operand = sub_2 ? ~{1'b0, aligned_2} : {1'b0, aligned_2};
  wire [27:0] sum = {1'b0, big_2, 3'd0} + operand + {27'd0, sub_2};
  wire [8:0] e_top = {1'b0, e_2} + 9'd1;

  wire [39:0] s3_next = {sign_2, inf_2, nan_2, e_top, sum};
  wire [39:0] s3;

  hg_f32_pack #(
      .PIPE(PIPE),
      .N   (28),
      .PRE (0)
  ) u_pack (
      .clk  (clk),
      .en   (en),
      .sign (s3[39]),
      .inf  (s3[38]),
      .nan  (s3[37]),
      .e_top({4'd0, s3[36:28]}),
      .sig  (s3[27:0]),
      .y    (y)
  );

  generate
    if (PIPE != 0) begin : g_pipe
      reg [67:0] s1_reg;
      reg [62:0] s2_reg;
      reg [39:0] s3_reg;
      always @(posedge clk) begin
        if (en) begin
          s1_reg <= s1_next;
          s2_reg <= s2_next;
          s3_reg <= s3_next;
        end
      end
      assign s1 = s1_reg;
      assign s2 = s2_reg;
      assign s3 = s3_reg;
    end else begin : g_comb
      assign s1 = s1_next;
      assign s2 = s2_next;
      assign s3 = s3_next;
    end
  endgenerate
endmodule

`default_nettype wire
