// hg_f32_encode: Streaming float32 to integer code, with bounds per channel.
//
// Purpose     Clamps, rounds and saturates, with the bounds of every channel from a ROM.
// Parameters  MODE            Rounding, as in hg_f32_to_code.
//             OUT_W, OUT_SIGNED  Type of the codes.
//             LANES           Elements of a beat, lane 0 in the low bits.
//             FOLDS           Words in the ROM, used in turn, one per accepted beat.
//             FILE            $readmemh file, one word per line, lane 0 in the low bits. A lane is
//                             {hi[31:0], lo[31:0]}, both float32.
// Latency     6: a beat accepted at clock edge t can leave at edge t + 6. One beat per cycle, no bubbles.
// Contract    As hg_f32_to_code.
`default_nettype none

module hg_f32_encode #(
    parameter MODE       = 0,
    parameter OUT_W      = 8,
    parameter OUT_SIGNED = 1,
    parameter LANES      = 1,
    parameter FOLDS      = 1,
    parameter FILE       = ""
) (
    input  wire                   clk,
    input  wire                   rst,
    input  wire [LANES*32-1:0]    s_data,
    input  wire                   s_valid,
    output wire                   s_ready,
    output wire [LANES*OUT_W-1:0] m_data,
    output wire                   m_valid,
    input  wire                   m_ready
);
  localparam LATENCY = 6;
  localparam FOLD_W = (FOLDS > 1) ? $clog2(FOLDS) : 1;

  generate
    if (LANES < 1 || FOLDS < 1) begin : g_bad
      hg_parameter_error_f32_encode u_bad ();
    end
  endgenerate

  reg [LANES*64-1:0] rom[0:FOLDS-1];
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

  // Data: operands, then the function.
  reg [LANES*32-1:0] x_reg;
  reg [LANES*64-1:0] c_reg;
  always @(posedge clk) begin
    if (en) begin
      x_reg <= s_data;
      c_reg <= rom[fold];
    end
  end

  genvar i;
  generate
    for (i = 0; i < LANES; i = i + 1) begin : g_lane
      hg_f32_to_code #(
          .PIPE      (1),
          .MODE      (MODE),
          .OUT_W     (OUT_W),
          .OUT_SIGNED(OUT_SIGNED)
      ) u_to_code (
          .clk (clk),
          .en  (en),
          .x   (x_reg[32*i+:32]),
          .lo  (c_reg[64*i+:32]),
          .hi  (c_reg[64*i+32+:32]),
          .code(m_data[OUT_W*i+:OUT_W])
      );
    end
  endgenerate
endmodule

`default_nettype wire
