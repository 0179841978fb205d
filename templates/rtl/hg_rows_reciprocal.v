// hg_rows_reciprocal: Reciprocal of the significand of an integer, in the fixed point of gemmlowp.
//
// Purpose     Statistic of a row in hg_rows_fixed_share.
// Parameters  SUM_W  Bits of the integer, 1 to 31.
//             GAP    Cycles between integers, at least. More cycles need fewer multipliers: 7 with 1 to 7,
//                    one from 28 on.
// Latency     30 cycles, never stalled.
// Contract    s > 0. place is the number of its highest bit. r, with 31 fraction bits, is near 2^place / s:
//             seven steps of hg_rows_newton with h = s * 2^(30 - place), then 2 * x, at most 2^31 - 1.
`default_nettype none
module hg_rows_reciprocal #(
    parameter integer SUM_W = 28,
    parameter integer GAP   = 1
) (
    input  wire             clk,
    input  wire             rst,
    input  wire             s_valid,
    input  wire [SUM_W-1:0] s,
    output wire [4:0]       place,
    output wire [30:0]      r
);
    localparam integer STEPS = 7;
    localparam integer TIME  = GAP / 4;
    localparam integer TURNS = (TIME < 1) ? 1 : (TIME > STEPS) ? STEPS : TIME;
    localparam integer UNITS = (STEPS + TURNS - 1) / TURNS;

    reg [4:0]        place_now, place1_reg, place2_reg;
    reg [30:0]       s1_reg, h_reg;
    reg              valid1_reg, valid2_reg;
    wire [30:0]      wide = {{31-SUM_W{1'b0}}, s};
    integer          k;
    always @* begin
        place_now = 5'd0;
        for (k = 0; k < SUM_W; k = k + 1) if (s[k]) place_now = k[4:0];
    end
    always @(posedge clk) begin
        valid1_reg <= s_valid && !rst;
        valid2_reg <= valid1_reg && !rst;
        s1_reg     <= wide;
        place1_reg <= place_now;
        h_reg      <= s1_reg << (5'd30 - place1_reg);
        place2_reg <= place1_reg;
    end

    wire [UNITS:0]          valid;
    wire [(UNITS+1)*5-1:0]  place_link;
    wire [(UNITS+1)*32-1:0] h_link, x_link, e_link;
    assign valid[0]         = valid2_reg;
    assign place_link[4:0]  = place2_reg;
    assign h_link[31:0]     = {1'b0, h_reg};
    assign x_link[31:0]     = 32'd0;
    assign e_link[31:0]     = 32'd0;
    genvar u;
    generate
        for (u = 0; u < UNITS; u = u + 1) begin : unit
            localparam integer REST = STEPS - u * TURNS;
            hg_rows_newton #(.FIRST(u * TURNS), .STEPS((REST < TURNS) ? REST : TURNS), .TAG_W(5)) newton (
                .clk(clk), .rst(rst), .s_valid(valid[u]), .s_tag(place_link[5*u +: 5]),
                .s_h(h_link[32*u +: 32]), .s_x(x_link[32*u +: 32]), .s_e(e_link[32*u +: 32]),
                .m_valid(valid[u+1]), .m_tag(place_link[5*(u+1) +: 5]), .m_h(h_link[32*(u+1) +: 32]),
                .m_x(x_link[32*(u+1) +: 32]), .m_e(e_link[32*(u+1) +: 32]));
        end
    endgenerate
    wire [31:0] x = x_link[32*UNITS +: 32];
    assign place  = place_link[5*UNITS +: 5];
    assign r      = x[30] ? 31'h7fffffff : {x[29:0], 1'b0};
    wire unused = &{1'b0, valid[UNITS], h_link[32*UNITS +: 32], e_link[32*UNITS +: 32], x[31]};
endmodule
`default_nettype wire
