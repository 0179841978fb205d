// hg_norm_root_start: Radicand of a row's root.
//
// Purpose     First stage of hg_norm_root, shared by all its root units: W = moment * FACTOR + ADDEND.
// Parameters  all  As in hg_norm_root.
// Latency     1 cycle, ceil(M_W / DIGIT) + 2 more unless FACTOR is a power of two.
// Contract    Exact; a moment every GAP cycles or fewer. Output w is valid in the cycle of m_valid.
`default_nettype none
module hg_norm_root_start #(
    parameter integer   M_W    = 12,
    parameter integer   W_W    = 14,
    parameter [W_W-1:0] FACTOR = 1,
    parameter [W_W-1:0] ADDEND = 5,
    parameter integer   GAP    = 20
) (
    input  wire           clk,
    input  wire           rst,
    input  wire [M_W-1:0] moment,
    input  wire           s_valid,
    output wire [W_W-1:0] w,
    output wire           m_valid
);
    // A factor of 2^SHIFT is a shift; the product with another one is computed in digits.
    function integer highest_one(input [W_W-1:0] value);
        integer i;
        begin
            highest_one = 0;
            for (i = 0; i < W_W; i = i + 1) if (value[i]) highest_one = i;
        end
    endfunction
    localparam integer SHIFT  = highest_one(FACTOR);
    localparam integer SERIAL = ((FACTOR & (FACTOR - 1'b1)) != {W_W{1'b0}}) ? 1 : 0;
    localparam integer DIGIT  = (M_W + GAP - 1) / GAP;
    localparam integer DIGITS = (M_W + DIGIT - 1) / DIGIT;
    localparam integer FRONT  = (SERIAL != 0) ? DIGITS + 3 : 1;

    reg  [FRONT-1:0] valid_reg;
    wire [FRONT:0]   valid_in = {valid_reg, s_valid};
    reg  [W_W-1:0]   w_reg;
    assign w = w_reg;
    assign m_valid = valid_reg[FRONT-1];
    always @(posedge clk) begin
        valid_reg <= valid_in[FRONT-1:0];
        if (rst) valid_reg <= {FRONT{1'b0}};
    end
    generate
        if (SERIAL != 0) begin : product
            // The highest digit first.
            reg  [DIGITS*DIGIT-1:0] moment_reg;
            reg  [W_W-1:0]          part_reg, sum_reg;
            wire [DIGITS*DIGIT+M_W-1:0] wide = {{DIGITS*DIGIT{1'b0}}, moment};
            wire [W_W+DIGIT-1:0]    digit = {{W_W{1'b0}}, moment_reg[DIGITS*DIGIT-1 -: DIGIT]};
            wire [W_W+DIGIT-1:0]    part  = digit * {{DIGIT{1'b0}}, FACTOR};
            wire [W_W+DIGIT-1:0]    above = {sum_reg, {DIGIT{1'b0}}};
            always @(posedge clk) begin
                moment_reg <= s_valid ? wide[DIGITS*DIGIT-1:0] : moment_reg << DIGIT;
                part_reg   <= part[W_W-1:0];
                sum_reg    <= (valid_reg[1] ? {W_W{1'b0}} : above[W_W-1:0]) + part_reg;
                w_reg      <= sum_reg + ADDEND;
            end
            wire unused_product = &{1'b0, wide, part, above};
        end else begin : shift
            wire [M_W+W_W-1:0] shifted = {{W_W{1'b0}}, moment} << SHIFT;
            always @(posedge clk) w_reg <= shifted[W_W-1:0] + ADDEND;
            wire unused_shift = &{1'b0, shifted};
        end
    endgenerate
    wire unused = &{1'b0, valid_in[FRONT]};
endmodule
`default_nettype wire
