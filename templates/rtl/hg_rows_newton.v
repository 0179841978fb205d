// hg_rows_newton: Some steps of a reciprocal by Newton's method, in the fixed point of gemmlowp.
//
// Purpose     Part of hg_rows_reciprocal: one multiplier that does several steps in turn.
// Parameters  FIRST  Number of the first step.
//             STEPS  Steps.
//             TAG_W  Bits of a tag, which leaves unchanged.
// Latency     4 * STEPS cycles from s_valid to m_valid, never stalled. Inputs come at least 4 * STEPS
//             cycles apart; with one step, every cycle.
// Contract    P(a, b) = floor(a * b / 2^31 + 1/2). Step 0: x = 1515870810 + P(h, -1010580540). Odd steps: e
//             = 2^29 - P(h, x). Even steps: x = x + 4 * P(x, e). Numbers are two's complement of 32 bits;
//             the caller proves that none overflows.
`default_nettype none
module hg_rows_newton #(
    parameter integer FIRST = 0,
    parameter integer STEPS = 7,
    parameter integer TAG_W = 5
) (
    input  wire                    clk,
    input  wire                    rst,
    input  wire                    s_valid,
    input  wire        [TAG_W-1:0] s_tag,
    input  wire signed [31:0]      s_h,
    input  wire signed [31:0]      s_x,
    input  wire signed [31:0]      s_e,
    output wire                    m_valid,
    output wire        [TAG_W-1:0] m_tag,
    output wire signed [31:0]      m_h,
    output wire signed [31:0]      m_x,
    output wire signed [31:0]      m_e
);
    localparam signed [31:0] START = 32'sd1515870810, SLOPE = -32'sd1010580540, ONE = 32'sd536870912;
    localparam integer FINAL = FIRST + STEPS - 1;

    // Four stages. A number that needs another step enters again.
    reg                    valid1_reg, valid2_reg, valid3_reg, valid4_reg;
    reg        [2:0]       step1_reg, step2_reg, step3_reg, step4_reg;
    reg        [TAG_W-1:0] tag1_reg, tag2_reg, tag3_reg, tag4_reg;
    reg signed [31:0]      h1_reg, h2_reg, h3_reg, h4_reg, x1_reg, x2_reg, x3_reg, x4_reg, e4_reg;
    reg signed [31:0]      a_reg, b_reg;
    reg signed [48:0]      low_reg;
    reg signed [47:0]      high_reg;
    reg signed [63:0]      product_reg;

    wire               last  = step4_reg == FINAL[2:0];
    wire               again = valid4_reg && !last;
    wire        [2:0]  step  = s_valid ? FIRST[2:0] : step4_reg + 3'd1;
    wire signed [31:0] h     = s_valid ? s_h : h4_reg;
    wire signed [31:0] x     = s_valid ? s_x : x4_reg;
    wire signed [31:0] e     = s_valid ? s_e : e4_reg;
    wire               even  = !step[0];

    // The product to the nearest; 32 bits hold it.
    wire signed [63:0] raised = product_reg + 64'sd1073741824;
    wire signed [31:0] p      = raised[62:31];

    assign m_valid = valid4_reg && last;
    assign m_tag   = tag4_reg;
    assign m_h     = h4_reg;
    assign m_x     = x4_reg;
    assign m_e     = e4_reg;

    always @(posedge clk) begin
        valid1_reg  <= s_valid || again;
        step1_reg   <= step;
        tag1_reg    <= s_valid ? s_tag : tag4_reg;
        h1_reg      <= h;
        x1_reg      <= x;
        a_reg       <= (even && step != 3'd0) ? x : h;
        b_reg       <= !even ? x : (step == 3'd0) ? SLOPE : e;

        valid2_reg  <= valid1_reg;
        step2_reg   <= step1_reg;
        tag2_reg    <= tag1_reg;
        h2_reg      <= h1_reg;
        x2_reg      <= x1_reg;
        low_reg     <= a_reg * $signed({1'b0, b_reg[15:0]});
        high_reg    <= a_reg * $signed(b_reg[31:16]);

        valid3_reg  <= valid2_reg;
        step3_reg   <= step2_reg;
        tag3_reg    <= tag2_reg;
        h3_reg      <= h2_reg;
        x3_reg      <= x2_reg;
        product_reg <= {high_reg, 16'd0} + {{15{low_reg[48]}}, low_reg};

        valid4_reg  <= valid3_reg;
        step4_reg   <= step3_reg;
        tag4_reg    <= tag3_reg;
        h4_reg      <= h3_reg;
        x4_reg      <= (step3_reg == 3'd0) ? START + p : step3_reg[0] ? x3_reg : x3_reg + (p <<< 2);
        e4_reg      <= ONE - p;
        if (rst) begin
            valid1_reg <= 1'b0;
            valid2_reg <= 1'b0;
            valid3_reg <= 1'b0;
            valid4_reg <= 1'b0;
        end
    end
    wire unused = &{1'b0, raised};
endmodule
`default_nettype wire
