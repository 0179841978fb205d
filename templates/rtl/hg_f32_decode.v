// hg_f32_decode: Streaming integer to float32, with constants per channel.
//
// Purpose     y = ((x << SHIFT) + B) * M * 2^E, with the constants of every channel from a ROM.
// Parameters  IN_W, IN_SIGNED  Type of the input integers.
//             SHIFT           Left shift before B is added.
//             B_W             Width of the signed B.
//             M_W             Width of the unsigned M, 1..48.
//             LANES           Elements of a beat, lane 0 in the low bits.
//             FOLDS           Words in the ROM, used in turn, one per accepted beat.
//             FILE            $readmemh file, one word per line, lane 0 in the low bits. A lane is
//                             {E[11:0], M[M_W-1:0], B[B_W-1:0]} with signed E.
// Latency     8: a beat accepted at clock edge t can leave at edge t + 8. One beat per cycle, no bubbles.
// Contract    As hg_f32_scale: one rounding, to nearest even. The sum is as wide as its operands need, at
//             most 64 bits, and never overflows.
`default_nettype none

module hg_f32_decode #(
    parameter IN_W      = 8,
    parameter IN_SIGNED = 1,
    parameter SHIFT     = 0,
    parameter B_W       = 8,
    parameter M_W       = 24,
    parameter LANES     = 1,
    parameter FOLDS     = 1,
    parameter FILE      = ""
) (
    input  wire                  clk,
    input  wire                  rst,
    input  wire [LANES*IN_W-1:0] s_data,
    input  wire                  s_valid,
    output wire                  s_ready,
    output wire [LANES*32-1:0]   m_data,
    output wire                  m_valid,
    input  wire                  m_ready
);
  localparam LATENCY = 8;
  localparam FOLD_W = (FOLDS > 1) ? $clog2(FOLDS) : 1;
  localparam C_W = B_W + M_W + 12;
  localparam X_W = IN_W + ((IN_SIGNED != 0) ? 0 : 1) + SHIFT;  // x << SHIFT, signed
  localparam V_W = ((X_W > B_W) ? X_W : B_W) + 1;
  localparam X_PAD = V_W - IN_W - SHIFT;  // at least 1

  generate
    if (IN_W < 1 || SHIFT < 0 || B_W < 1 || V_W > 64 || LANES < 1 || FOLDS < 1) begin : g_bad
      hg_parameter_error_f32_decode u_bad ();
    end
  endgenerate

  reg [LANES*C_W-1:0] rom[0:FOLDS-1];
  initial if (FILE != "") $readmemh(FILE, rom);

  // Control: the whole pipeline advances or stalls.
  reg [LATENCY-1:0] valid_reg;
  wire [FOLD_W-1:0] fold, unused_next;
  wire en = m_ready || !m_valid;
  assign s_ready = en;
  assign m_valid = valid_reg[LATENCY-1];
  always @(posedge clk) begin
    if (en) valid_reg <= {valid_reg[LATENCY-2:0], s_valid};
    if (rst) valid_reg <= {LATENCY{1'b0}};
  end

  hg_index #(
      .N(FOLDS)
  ) turn (
      .clk  (clk),
      .rst  (rst),
      .step (s_valid && en),
      .index(fold),
      .next (unused_next)
  );

  // Data: operands, then the sum, then the scale.
  reg [LANES*IN_W-1:0] x_reg;
  reg [LANES*C_W-1:0] c_reg;
  always @(posedge clk) begin
    if (en) begin
      x_reg <= s_data;
      c_reg <= rom[fold];
    end
  end

  genvar i;
  generate
    for (i = 0; i < LANES; i = i + 1) begin : g_lane
      wire [IN_W-1:0] x = x_reg[IN_W*i+:IN_W];
      wire [C_W-1:0] c = c_reg[C_W*i+:C_W];
      wire fill = (IN_SIGNED != 0) && x[IN_W-1];
      wire [V_W-1:0] x_wide = {{X_PAD{fill}}, x, {SHIFT{1'b0}}};
      wire [V_W-1:0] b_wide = {{(V_W - B_W) {c[B_W-1]}}, c[B_W-1:0]};
      reg [V_W-1:0] v_reg;
      reg [M_W+11:0] me_reg;
      always @(posedge clk) begin
        if (en) begin
          v_reg  <= x_wide + b_wide;
          me_reg <= c[C_W-1:B_W];
        end
      end
      hg_f32_scale #(
          .PIPE(1),
          .W   (V_W),
          .M_W (M_W)
      ) u_scale (
          .clk(clk),
          .en (en),
          .v  (v_reg),
          .m  (me_reg[M_W-1:0]),
          .e  (me_reg[M_W+11:M_W]),
          .y  (m_data[32*i+:32])
      );
    end
  endgenerate
endmodule

`default_nettype wire
