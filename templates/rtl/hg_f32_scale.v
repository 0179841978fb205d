// hg_f32_scale: Integer to float32 with an exact scale.
//
// Purpose     y = v * m * 2^e.
// Parameters  PIPE  0: combinational (clk and en unused); 1: pipelined.
//             W     Width of the signed integer v, 1..64.
//             M_W   Width of the unsigned multiplier m, 1..48.
// Latency     0 (PIPE = 0), 6 (PIPE = 1).
// Contract    The exact product is rounded once, to nearest even, with subnormal results and overflow to
//             infinity. v = 0 or m = 0 gives +0. Input e is a signed 12-bit integer. m = 1 and e = 0 is the
//             plain conversion.
`default_nettype none

module hg_f32_scale #(
    parameter PIPE = 0,
    parameter W    = 32,
    parameter M_W  = 24
) (
    input  wire                  clk,
    input  wire                  en,
    input  wire signed [W-1:0]   v,
    input  wire        [M_W-1:0] m,
    input  wire signed [11:0]    e,
    output wire        [31:0]    y
);
  localparam P_W = W + M_W;
  localparam S1W = P_W + 13;
  localparam S2W = 3 * P_W + 13;
  localparam S3W = P_W + 14;
  // The multiplier is cut in three, 16 + 16 + 16 bits, to pipeline the product.
  localparam [P_W-1:0] LOW = ~({P_W{1'b1}} << 16);
  localparam [P_W-1:0] MID = ~({P_W{1'b1}} << 32) & ({P_W{1'b1}} << 16);
  localparam [P_W-1:0] HIGH = {P_W{1'b1}} << 32;
  localparam [31:0] TOP_EXPONENT = P_W + 126;  // biased exponent of 2^(P_W - 1)

  generate
    if (W < 1 || W > 64 || M_W < 1 || M_W > 48) begin : g_bad
      hg_parameter_error_f32_scale_width u_bad ();
    end
  endgenerate

  // Stage 1. Sign and magnitude.
  wire negative = v[W-1];
  wire [W-1:0] magnitude = negative ? -v : v;

  wire [S1W-1:0] s1_next = {negative && (m != {M_W{1'b0}}), e, m, magnitude};
  wire [S1W-1:0] s1;
  wire [P_W-1:0] v_1 = {{M_W{1'b0}}, s1[W-1:0]};
  wire [P_W-1:0] m_1 = {{W{1'b0}}, s1[P_W-1:W]};

  // Stage 2. Partial products.
  (* use_dsp = "no", multstyle = "logic", syn_multstyle = "logic" *)
  wire [P_W-1:0] p0;
  assign p0 = v_1 * (m_1 & LOW);
  (* use_dsp = "no", multstyle = "logic", syn_multstyle = "logic" *)
  wire [P_W-1:0] p1;
  assign p1 = v_1 * (m_1 & MID);
  (* use_dsp = "no", multstyle = "logic", syn_multstyle = "logic" *)
  wire [P_W-1:0] p2;
  assign p2 = v_1 * (m_1 & HIGH);

  wire [S2W-1:0] s2_next = {s1[S1W-1:P_W], p2, p1, p0};
  wire [S2W-1:0] s2;
  wire signed [11:0] e_2 = s2[S2W-2-:12];

  // Stage 3. Product and exponent.
  wire [P_W-1:0] product = s2[P_W-1:0] + s2[2*P_W-1:P_W] + s2[3*P_W-1:2*P_W];
  wire signed [12:0] e_top = $signed({e_2[11], e_2}) + $signed(TOP_EXPONENT[12:0]);

  wire [S3W-1:0] s3_next = {s2[S2W-1], e_top, product};
  wire [S3W-1:0] s3;

  hg_f32_pack #(
      .PIPE(PIPE),
      .N   (P_W),
      .PRE (25)
  ) u_pack (
      .clk  (clk),
      .en   (en),
      .sign (s3[S3W-1]),
      .inf  (1'b0),
      .nan  (1'b0),
      .e_top(s3[S3W-2-:13]),
      .sig  (s3[P_W-1:0]),
      .y    (y)
  );

  generate
    if (PIPE != 0) begin : g_pipe
      reg [S1W-1:0] s1_reg;
      reg [S2W-1:0] s2_reg;
      reg [S3W-1:0] s3_reg;
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
