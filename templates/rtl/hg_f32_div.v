// hg_f32_div: float32 division.
//
// Purpose     y = a / b, by a restoring array of 26 quotient rows.
// Parameters  PIPE  0: combinational (clk and en unused); 1: pipelined, two rows per stage.
// Latency     0 (PIPE = 0), 18 (PIPE = 1): 2 to normalize, 13 for the rows, 3 to pack.
// Contract    IEEE-754 binary32, correctly rounded to nearest even, subnormals in and out, infinities. x /
//             0 is infinity; 0 / 0 and inf / inf are NaN. Every NaN result is 32'h7FC00000.
`default_nettype none

module hg_f32_div #(
    parameter PIPE = 0
) (
    input  wire        clk,
    input  wire        en,
    input  wire [31:0] a,
    input  wire [31:0] b,
    output wire [31:0] y
);
  localparam STAGES = 13;

  function [4:0] leading_zeros;  // of a 24-bit significand; 24 for zero
    input [23:0] x;
    reg [15:1] x16;
    reg [7:1] x8;
    reg [3:1] x4;
    begin
      leading_zeros[4] = (x[23:8] == 16'd0);
      x16 = leading_zeros[4] ? {x[7:0], 7'h40} : x[23:9];
      leading_zeros[3] = (x16[15:8] == 8'd0);
      x8 = leading_zeros[3] ? x16[7:1] : x16[15:9];
      leading_zeros[2] = (x8[7:4] == 4'd0);
      x4 = leading_zeros[2] ? x8[3:1] : x8[7:5];
      leading_zeros[1] = (x4[3:2] == 2'd0);
      leading_zeros[0] = leading_zeros[1] ? ~x4[1] : ~x4[3];
    end
  endfunction

  // Two rows on {remainder (25 bits), quotient so far (26 bits)}; remainder < 2 * divisor.
  function [50:0] two_rows;
    input [50:0] state;
    input [23:0] divisor;
    reg [24:0] r, t;
    reg [25:0] q;
    integer k;
    begin
      {r, q} = state;
      for (k = 0; k < 2; k = k + 1) begin
        t = r - {1'b0, divisor};
        q = {q[24:0], ~t[24]};
        r = t[24] ? {r[23:0], 1'b0} : {t[23:0], 1'b0};
      end
      two_rows = {r, q};
    end
  endfunction

  // Stage 1. Classify, and count the leading zeros of subnormal operands.
  wire a_top = (a[30:23] == 8'hFF);
  wire b_top = (b[30:23] == 8'hFF);
  wire a_zero = (a[30:0] == 31'd0);
  wire b_zero = (b[30:0] == 31'd0);
  wire nan = (a_top && (a[22:0] != 23'd0 || b_top)) || (b_top && b[22:0] != 23'd0)
      || (a_zero && b_zero);
  wire inf = a_top || b_zero;
  wire [23:0] sig_a = {a[30:23] != 8'd0, a[22:0]};
  wire [23:0] sig_b = {b[30:23] != 8'd0, b[22:0]};
  wire [7:0] e_a = {a[30:24], a[23] | ~sig_a[23]};
  wire [7:0] e_b = {b[30:24], b[23] | ~sig_b[23]};
  // An infinite divisor gives zero, like a zero dividend.
  wire [23:0] dividend = b_top ? 24'd0 : sig_a;

  wire [76:0] s1_next = {
    a[31] ^ b[31], inf, nan, e_a, e_b, leading_zeros(sig_a), leading_zeros(sig_b), dividend, sig_b
  };
  wire [76:0] s1;
  wire sign_1, inf_1, nan_1;
  wire [7:0] e_a_1, e_b_1;
  wire [4:0] z_a, z_b;
  wire [23:0] sig_a_1, sig_b_1;
  assign {sign_1, inf_1, nan_1, e_a_1, e_b_1, z_a, z_b, sig_a_1, sig_b_1} = s1;

  // Stage 2. Normalize.
  wire [12:0] e_top = {5'd0, e_a_1} - {8'd0, z_a} - {5'd0, e_b_1} + {8'd0, z_b} + 13'd127;
  wire [23:0] norm_a = sig_a_1 << z_a;
  wire [23:0] norm_b = sig_b_1 << z_b;

  // s2 and s_row: {sign, inf, nan, e_top}, divisor, {remainder, quotient}
  wire [90:0] s2_next = {sign_1, inf_1, nan_1, e_top, norm_b, 1'b0, norm_a, 26'd0};
  wire [90:0] s_row;

  hg_f32_pack #(
      .PIPE(PIPE),
      .N   (27),
      .PRE (25)
  ) u_pack (
      .clk  (clk),
      .en   (en),
      .sign (s_row[90]),
      .inf  (s_row[89]),
      .nan  (s_row[88]),
      .e_top(s_row[87:75]),
      .sig  ({s_row[25:0], s_row[50:26] != 25'd0}),
      .y    (y)
  );
  wire unused = &{1'b0, s_row[74:51]};

  generate
    if (PIPE != 0) begin : g_pipe
      reg [76:0] s1_reg;
      reg [91*(STAGES+1)-1:0] row_reg;  // slice i: the state before rows 2i and 2i+1
      integer i;
      always @(posedge clk) begin
        if (en) begin
          s1_reg <= s1_next;
          row_reg[90:0] <= s2_next;
          for (i = 0; i < STAGES; i = i + 1) begin
            row_reg[91*(i+1)+51+:40] <= row_reg[91*i+51+:40];
            row_reg[91*(i+1)+:51] <= two_rows(row_reg[91*i+:51], row_reg[91*i+51+:24]);
          end
        end
      end
      assign s1 = s1_reg;
      assign s_row = row_reg[91*STAGES+:91];
    end else begin : g_comb
      reg [50:0] state;
      integer i;
      always @* begin
        state = s2_next[50:0];
        for (i = 0; i < STAGES; i = i + 1) state = two_rows(state, s2_next[74:51]);
      end
      assign s1 = s1_next;
      assign s_row = {s2_next[90:51], state};
    end
  endgenerate
endmodule

`default_nettype wire
