// hg_f32_round_unit: Streaming rounding of float32 elements to integer-valued float32.
//
// Purpose     Applies hg_f32_round to every element.
// Parameters  MODE   As in hg_f32_round.
//             LANES  Elements of a beat, lane 0 in the low bits.
// Latency     2: a beat accepted at clock edge t can leave at edge t + 2. One beat per cycle, no bubbles.
// Contract    As hg_f32_round.
`default_nettype none

module hg_f32_round_unit #(
    parameter MODE  = 0,
    parameter LANES = 1
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
  localparam LATENCY = 2;

  generate
    if (LANES < 1) begin : g_bad
      hg_parameter_error_f32_round_unit u_bad ();
    end
  endgenerate

  // Control: the whole pipeline advances or stalls.
  reg [LATENCY-1:0] valid_reg;
  wire en = m_ready || !m_valid;
  assign s_ready = en;
  assign m_valid = valid_reg[LATENCY-1];
  always @(posedge clk) begin
    if (rst) valid_reg <= {LATENCY{1'b0}};
    else if (en) valid_reg <= {valid_reg[LATENCY-2:0], s_valid};
  end

  genvar i;
  generate
    for (i = 0; i < LANES; i = i + 1) begin : g_lane
      hg_f32_round #(
          .PIPE(1),
          .MODE(MODE)
      ) u_round (
          .clk(clk),
          .en (en),
          .x  (s_data[32*i+:32]),
          .y  (m_data[32*i+:32])
      );
    end
  endgenerate
endmodule

`default_nettype wire
