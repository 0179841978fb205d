// hg_f32_unit: Streaming float32 operation of every element with a constant from a ROM.
//
// Purpose     Applies one float32 operation with constants per channel.
// Parameters  OP     0: ADD x + c; 1: MUL x * c; 2: DIV x / c; 3: MAX(x, c); 4: MIN(x, c).
//             LANES  Elements of a beat, lane 0 in the low bits.
//             FOLDS  Words in the ROM, used in turn, one per accepted beat.
//             FILE   $readmemh file, a word of LANES * 32 bits per line, lane 0 in the low bits.
// Latency     ADD 7, MUL 6, DIV 19, MAX and MIN 2: a beat accepted at clock edge t can leave at edge t +
//             latency. One beat per cycle, no bubbles.
// Contract    As hg_f32_add, hg_f32_mul, hg_f32_div, hg_f32_minmax.
`default_nettype none

module hg_f32_unit #(
    parameter OP    = 0,
    parameter LANES = 1,
    parameter FOLDS = 1,
    parameter FILE  = ""
) (
    input  wire                clk,
    input  wire                rst,
    input  wire [LANES*32-1:0] s_data,
    input  wire                s_valid,
    output wire                s_ready,
    output wire [LANES*32-1:0] m_data,
    output wire                m_valid,
    input  wire                m_ready
);
  localparam LATENCY = (OP == 0) ? 7 : (OP == 1) ? 6 : (OP == 2) ? 19 : 2;
  localparam FOLD_W = (FOLDS > 1) ? $clog2(FOLDS) : 1;

  generate
    if (OP < 0 || OP > 4 || LANES < 1 || FOLDS < 1) begin : g_bad
      hg_parameter_error_f32_unit u_bad ();
    end
  endgenerate

  reg [LANES*32-1:0] rom[0:FOLDS-1];
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
  reg [LANES*32-1:0] c_reg;
  always @(posedge clk) begin
    if (en) begin
      x_reg <= s_data;
      c_reg <= rom[fold];
    end
  end

  genvar i;
  generate
    for (i = 0; i < LANES; i = i + 1) begin : g_lane
      if (OP == 0) begin : g_add
        hg_f32_add #(
            .PIPE(1)
        ) u_add (
            .clk(clk),
            .en (en),
            .a  (x_reg[32*i+:32]),
            .b  (c_reg[32*i+:32]),
            .y  (m_data[32*i+:32])
        );
      end else if (OP == 1) begin : g_mul
        hg_f32_mul #(
            .PIPE(1)
        ) u_mul (
            .clk(clk),
            .en (en),
            .a  (x_reg[32*i+:32]),
            .b  (c_reg[32*i+:32]),
            .y  (m_data[32*i+:32])
        );
      end else if (OP == 2) begin : g_div
        hg_f32_div #(
            .PIPE(1)
        ) u_div (
            .clk(clk),
            .en (en),
            .a  (x_reg[32*i+:32]),
            .b  (c_reg[32*i+:32]),
            .y  (m_data[32*i+:32])
        );
      end else begin : g_minmax
        hg_f32_minmax #(
            .PIPE(1),
            .MAX (OP == 3)
        ) u_minmax (
            .clk(clk),
            .en (en),
            .a  (x_reg[32*i+:32]),
            .b  (c_reg[32*i+:32]),
            .y  (m_data[32*i+:32])
        );
      end
    end
  endgenerate
endmodule

`default_nettype wire
