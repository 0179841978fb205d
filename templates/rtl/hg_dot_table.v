// hg_dot_table: dot product of SIMD codes with SIMD weights whose products fit into tables.
//
// Purpose     a row of hg_mac where a code and a weight together are few bits.
// Parameters  SIMD      terms
//             X_W       bits of a code x; X_W + W_W at most 6
//             X_SIGNED  1: x is two's complement, 0: unsigned
//             W_W       bits of a weight w, two's complement, at least 2
//             EVERY     pipeline registers, see hg_adder_tree; 0 is 1 here
// Latency     that of hg_dot_booth, all advancing on en
// Contract    exact two's complement sum of X_W + W_W + 1 + ceil(log2(SIMD)) bits.
//             A product is a table of all x and w. Four of them are summed in two cycles, or with EVERY = 1,
//             in which products have a register, in four.
`default_nettype none
module hg_dot_table #(
    parameter integer SIMD     = 4,
    parameter integer X_W      = 3,
    parameter integer X_SIGNED = 0,
    parameter integer W_W      = 3,
    parameter integer EVERY    = 2
) (
    input  wire                          clk,
    input  wire                          en,
    input  wire [SIMD*X_W-1:0]           x,
    input  wire [SIMD*W_W-1:0]           w,
    output wire [X_W+W_W+$clog2(SIMD):0] sum
);
    localparam integer DIGITS = (W_W + 1) / 2;
    localparam integer GROUPS = (SIMD + 3) / 4;
    localparam integer T_W    = X_W + W_W;
    localparam integer P_W    = T_W + 2;
    localparam integer S_W    = P_W + $clog2(GROUPS);
    localparam integer OUT_W  = X_W + W_W + 1 + $clog2(SIMD);
    localparam integer STEP   = (EVERY == 0) ? 1 : EVERY;
    localparam integer ALONE  = (STEP == 1 && SIMD > 1) ? 1 : 0;   // products have a register
    localparam integer SPARE  = (STEP == 1 && SIMD > 3) ? 1 : 0;   // cycles without work

    // The product without an adder: each bit of it is a function of all bits of a and b, and becomes a table.
    function [T_W-1:0] product(input [X_W-1:0] a, input [W_W-1:0] b);
        integer k, j;
        reg [T_W-1:0] row;
        reg           carry, bit_in;
        begin
            product = {T_W{1'b0}};
            for (k = 0; k < W_W; k = k + 1) begin
                // The sign of b takes a away: inverted, and one more.
                row   = {{W_W{(X_SIGNED != 0) && a[X_W-1]}}, a} << k;
                row   = (row & {T_W{b[k]}}) ^ {T_W{(k == W_W - 1) && b[k]}};
                carry = (k == W_W - 1) && b[k];
                for (j = 0; j < T_W; j = j + 1) begin
                    bit_in     = product[j];
                    product[j] = bit_in ^ row[j] ^ carry;
                    carry      = (bit_in & row[j]) | (bit_in & carry) | (row[j] & carry);
                end
            end
        end
    endfunction

    wire [4*GROUPS*T_W-1:0] products, terms;
    wire [GROUPS*P_W-1:0]   sums, parts;
    hg_delay #(.WIDTH(4*GROUPS*T_W), .CYCLES(ALONE)) first (.clk(clk), .en(en), .d(products), .q(terms));
    hg_delay #(.WIDTH(GROUPS*P_W), .CYCLES(SPARE)) last (.clk(clk), .en(en), .d(sums), .q(parts));
    genvar g, i;
    generate
        for (i = 0; i < 4 * GROUPS; i = i + 1) begin : element
            if (i < SIMD) begin : used
                assign products[i*T_W +: T_W] = product(x[i*X_W +: X_W], w[i*W_W +: W_W]);
            end else begin : none
                assign products[i*T_W +: T_W] = {T_W{1'b0}};
            end
        end
        for (g = 0; g < GROUPS; g = g + 1) begin : group
            wire [T_W-1:0] a = terms[(4*g)*T_W +: T_W];
            wire [T_W-1:0] b = terms[(4*g+1)*T_W +: T_W];
            wire [T_W-1:0] c = terms[(4*g+2)*T_W +: T_W];
            wire [T_W-1:0] d = terms[(4*g+3)*T_W +: T_W];
            reg  [T_W:0]   low_reg, high_reg;
            always @(posedge clk) if (en) begin
                low_reg  <= {a[T_W-1], a} + {b[T_W-1], b};
                high_reg <= {c[T_W-1], c} + {d[T_W-1], d};
            end
            if (SIMD <= 2) begin : short
                assign sums[g*P_W +: P_W] = {low_reg[T_W], low_reg};
                wire unused_high = &{1'b0, high_reg};
            end else begin : long
                reg [P_W-1:0] part_reg;
                always @(posedge clk) if (en) part_reg <= {low_reg[T_W], low_reg} + {high_reg[T_W], high_reg};
                assign sums[g*P_W +: P_W] = part_reg;
            end
        end
    endgenerate

    wire [S_W-1:0] total;
    hg_adder_tree #(
        .N(GROUPS), .IN_W(P_W), .SIGNED(1), .EVERY(STEP), .CLOSED(1)
    ) tree (
        .clk(clk), .en(en), .terms(parts), .sum(total)
    );
    // As many registers as the other forms have, which sum digits here.
    wire [OUT_W+S_W-1:0] total_wide = {{OUT_W{total[S_W-1]}}, total};
    wire [(DIGITS+1)*OUT_W-1:0] digits = {{DIGITS*OUT_W{1'b0}}, total_wide[OUT_W-1:0]};
    hg_digits #(
        .N(DIGITS), .IN_W(OUT_W), .SIGNED(1), .OUT_W(OUT_W), .EVERY(STEP)
    ) merge (
        .clk(clk), .en(en), .digits(digits[DIGITS*OUT_W-1:0]), .sum(sum)
    );
    wire unused = &{1'b0, total_wide, digits};
endmodule
`default_nettype wire
