// hg_join_pair: Two streams side by side, element by element.
//
// Purpose     m = {b, a}, a in the low bits.
// Parameters  LANES     Elements of a beat, of both inputs and the output.
//             A_W, B_W  Bits of an element of a, and of b.
// Latency     2 cycles, one beat per cycle. Both beats are consumed in the same cycle. All registers
//             advance in cycles in which the output is free or accepted; otherwise they stall. Signal
//             a_ready depends on b_valid, and b_ready on a_valid.
// Contract    An element of m has A_W + B_W bits.
`default_nettype none
module hg_join_pair #(
    parameter integer LANES = 2,
    parameter integer A_W   = 4,
    parameter integer B_W   = 5
) (
    input  wire                       clk,
    input  wire                       rst,
    input  wire [LANES*A_W-1:0]       a_data,
    input  wire                       a_valid,
    output wire                       a_ready,
    input  wire [LANES*B_W-1:0]       b_data,
    input  wire                       b_valid,
    output wire                       b_ready,
    output wire [LANES*(A_W+B_W)-1:0] m_data,
    output wire                       m_valid,
    input  wire                       m_ready
);
    localparam integer OUT_W = A_W + B_W;

    reg [1:0] valid_reg;
    wire      en = m_ready || !valid_reg[1];

    assign a_ready = en && b_valid;
    assign b_ready = en && a_valid;
    assign m_valid = valid_reg[1];

    always @(posedge clk) begin
        if (en) valid_reg <= {valid_reg[0], a_valid && b_valid};
        if (rst) valid_reg <= 2'b00;
    end

    genvar g;
    generate
        for (g = 0; g < LANES; g = g + 1) begin : lane
            reg [OUT_W-1:0] first_reg, second_reg;
            always @(posedge clk) if (en) begin
                first_reg  <= {b_data[g*B_W +: B_W], a_data[g*A_W +: A_W]};
                second_reg <= first_reg;
            end
            assign m_data[g*OUT_W +: OUT_W] = second_reg;
        end
    endgenerate
endmodule
`default_nettype wire
