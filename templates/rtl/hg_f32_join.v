// hg_f32_join: Streaming float32 operation on two streams, element by element.
//
// Purpose     Adds, multiplies or subtracts the elements of two streams.
// Parameters  OP     0: ADD a + b; 1: MUL a * b; 5: SUB a - b.
//             LANES  Elements of a beat, lane 0 in the low bits.
// Latency     ADD and SUB 7, MUL 6: beats accepted at clock edge t can leave at edge t + latency. One beat
//             per cycle, no bubbles. Both beats are consumed in the same cycle. All registers advance in
//             cycles in which the output is free or accepted; otherwise they stall. Signal a_ready depends
//             on b_valid, and b_ready on a_valid.
// Contract    As hg_f32_add and hg_f32_mul; a - b is a + (-b).
`default_nettype none

module hg_f32_join #(
    parameter OP    = 0,
    parameter LANES = 1
) (
    input  wire                clk,
    input  wire                rst,
    input  wire [LANES*32-1:0] a_data,
    input  wire                a_valid,
    output wire                a_ready,
    input  wire [LANES*32-1:0] b_data,
    input  wire                b_valid,
    output wire                b_ready,
    output wire [LANES*32-1:0] m_data,
    output wire                m_valid,
    input  wire                m_ready
);
  localparam LATENCY = (OP == 1) ? 6 : 7;

  generate
    if ((OP != 0 && OP != 1 && OP != 5) || LANES < 1) begin : g_bad
      hg_parameter_error_f32_join u_bad ();
    end
  endgenerate

  // Control: the whole pipeline advances or stalls.
  reg [LATENCY-1:0] valid_reg;
  wire en = m_ready || !m_valid;
  assign a_ready = en && b_valid;
  assign b_ready = en && a_valid;
  assign m_valid = valid_reg[LATENCY-1];
  always @(posedge clk) begin
    if (rst) valid_reg <= {LATENCY{1'b0}};
    else if (en) valid_reg <= {valid_reg[LATENCY-2:0], a_valid && b_valid};
  end

  // Data: operands, then the function.
  reg [LANES*32-1:0] a_reg;
  reg [LANES*32-1:0] b_reg;
  always @(posedge clk) begin
    if (en) begin
      a_reg <= a_data;
      b_reg <= b_data;
    end
  end

  genvar i;
  generate
    for (i = 0; i < LANES; i = i + 1) begin : g_lane
      wire [31:0] b = {b_reg[32*i+31] ^ (OP == 5), b_reg[32*i+:31]};
      if (OP == 1) begin : g_mul
        hg_f32_mul #(
            .PIPE(1)
        ) u_mul (
            .clk(clk),
            .en (en),
            .a  (a_reg[32*i+:32]),
            .b  (b),
            .y  (m_data[32*i+:32])
        );
      end else begin : g_add
        hg_f32_add #(
            .PIPE(1)
        ) u_add (
            .clk(clk),
            .en (en),
            .a  (a_reg[32*i+:32]),
            .b  (b),
            .y  (m_data[32*i+:32])
        );
      end
    end
  endgenerate
endmodule

`default_nettype wire
