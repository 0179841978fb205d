// hg_f32_pack: Packs the magnitude of a float operation into float32.
//
// Purpose     Normalizes, rounds and packs an exact (or sticky-extended) magnitude into IEEE-754 binary32.
//             Shared by add, mul, div and scale.
// Parameters  PIPE  0: combinational; 1: pipelined.
//             N     Width of sig, N + PRE >= 27 and N + PRE <= 256.
//             PRE   Zero bits put above sig before normalizing: 25 if e_top can be below 1 (the result can
//                   underflow), otherwise 0.
// Latency     0 (PIPE = 0), 3 (PIPE = 1).
// Contract    The value is (-1)^sign * sig * 2^(e_top - 127 - (N-1)): e_top is the biased exponent of the
//             weight of sig's top bit. Output y is the value rounded to nearest even, with subnormal
//             results and overflow to infinity. A low bit of sig may mean "anything non-zero below"
//             (sticky) if it lies below the guard bit. Input nan has priority over inf; both override the
//             value.
`default_nettype none

module hg_f32_pack #(
    parameter PIPE = 0,
    parameter N    = 48,
    parameter PRE  = 25
) (
    input  wire               clk,
    input  wire               en,
    input  wire               sign,
    input  wire               inf,
    input  wire               nan,
    input  wire signed [12:0] e_top,
    input  wire [N-1:0]       sig,
    output wire [31:0]        y
);
  localparam NB  = (N + PRE + 15) / 16;     // groups of 16 bits
  localparam VP  = NB * 16;                 // sig, left-justified below PRE zeros
  localparam K   = (VP <= 48) ? VP : 48;    // width that the coarse shift keeps exactly
  localparam S1W = VP + 16 + 4 + 12 + 3;
  localparam S2W = K + 1 + 4 + 13 + 3;
  localparam signed [12:0] PRE_S = PRE;
  localparam [VP-1:0] TOP = {1'b1, {(VP - 1) {1'b0}}};

  generate
    if (N + PRE < 27 || NB > 16) begin : g_bad
      hg_parameter_error_f32_pack_width u_bad ();
    end
  endgenerate

  // Stage 1. room: how far sig may move left before its exponent field would pass 1. A mark at that place
  // makes the leading-zero count of `seen` equal min(zeros, room).
  wire signed [12:0] e_pre = $signed(e_top) + $signed(PRE_S);
  wire signed [12:0] e_less = $signed(e_pre) - $signed(13'sd1);
  wire [11:0] room = e_less[12] ? 12'd0 : e_less[11:0];
  reg [VP-1:0] v;
  reg [VP-1:0] seen;
  reg [3:0] coarse;
  reg [15:0] block;
  integer i;
  always @* begin
    v = {VP{1'b0}};
    v[VP-1-PRE-:N] = sig;
    seen = v | (TOP >> room);
    coarse = 4'd0;
    block = seen[VP-1-:16];
    for (i = NB - 1; i >= 0; i = i - 1) begin
      if (seen[VP-1-16*i-:16] != 16'd0) begin
        coarse = i[3:0];
        block = seen[VP-1-16*i-:16];
      end
    end
  end

  wire [S1W-1:0] s1_next = {sign, inf, nan, room, coarse, block, v};
  wire [S1W-1:0] s1;
  wire sign_1, inf_1, nan_1;
  wire [11:0] room_1;
  wire [3:0] coarse_1;
  wire [15:0] block_1;
  wire [VP-1:0] v_1;
  assign {sign_1, inf_1, nan_1, room_1, coarse_1, block_1, v_1} = s1;

  // Stage 2. The zeros inside the leading 16-bit group, and the shift by whole groups.
  reg [3:0] fine;
  reg [7:0] b8;
  reg [3:0] b4;
  always @* begin
    fine[3] = (block_1[15:8] == 8'd0);
    b8 = fine[3] ? block_1[7:0] : block_1[15:8];
    fine[2] = (b8[7:4] == 4'd0);
    b4 = fine[2] ? b8[3:0] : b8[7:4];
    fine[1] = (b4[3:2] == 2'd0);
    fine[0] = fine[1] ? ~b4[1] : ~b4[3];
  end
  wire unused_b4 = b4[0];  // only the zeros above a one are counted
  wire [VP-1:0] vc = v_1 << {coarse_1, 4'd0};
  wire [K-1:0] kept = vc[VP-1-:K];
  wire lost;
  generate
    if (VP > K) begin : g_lost
      assign lost = |vc[VP-K-1:0];
    end else begin : g_whole
      assign lost = 1'b0;
    end
  endgenerate
  wire [12:0] e_c = {1'b0, room_1} - {5'd0, coarse_1, 4'd0};

  wire [S2W-1:0] s2_next = {sign_1, inf_1, nan_1, e_c, fine, lost, kept};
  wire [S2W-1:0] s2;
  wire sign_2, inf_2, nan_2, lost_2;
  wire [12:0] e_c_2;
  wire [3:0] fine_2;
  wire [K-1:0] kept_2;
  assign {sign_2, inf_2, nan_2, e_c_2, fine_2, lost_2, kept_2} = s2;

  // Stage 3. The last shift, and the rounding. A carry out of the fraction moves into the exponent by
  // itself: subnormal to normal, and the largest finite number to infinity.
  wire [K-1:0] vf = kept_2 << fine_2;
  wire [12:0] e = e_c_2 - {9'd0, fine_2} + 13'd1;
  wire normal = vf[K-1];
  wire over = normal && (e >= 13'd255);
  wire up = vf[K-25] && (vf[K-24] || lost_2 || (vf[K-26:0] != {(K - 25) {1'b0}}));
  wire [30:0] magnitude = {normal ? e[7:0] : 8'd0, vf[K-2-:23]} + {30'd0, up};
  wire [31:0] y_next = nan_2 ? 32'h7FC00000 :
      (inf_2 || over) ? {sign_2, 31'h7F800000} : {sign_2, magnitude};

  generate
    if (PIPE != 0) begin : g_pipe
      reg [S1W-1:0] s1_reg;
      reg [S2W-1:0] s2_reg;
      reg [31:0] y_reg;
      always @(posedge clk) begin
        if (en) begin
          s1_reg <= s1_next;
          s2_reg <= s2_next;
          y_reg  <= y_next;
        end
      end
      assign s1 = s1_reg;
      assign s2 = s2_reg;
      assign y  = y_reg;
    end else begin : g_comb
      wire unused = &{1'b0, clk, en};
      assign s1 = s1_next;
      assign s2 = s2_next;
      assign y  = y_next;
    end
  endgenerate
endmodule

`default_nettype wire
