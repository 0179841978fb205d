// hg_chain: Sums of COUNT products in a chain of DSP blocks, for one row or for rows that share each block.
//
// Purpose     One chain of hg_dot_chain. Rows share a block where one product has room for several: x * (w0
//             + w1 * 2^F) = x * w0 + (x * w1) * 2^F.
// Parameters  COUNT     Products, up to 8.
//             START     Cycles until the first product. START + COUNT is at most 8.
//             ROWS      Number of rows.
//             SHARED    1: the latency is that of several rows, even if ROWS is 1.
//             X_W       Bits of a code x.
//             X_SIGNED  1: x is two's complement; 0: unsigned.
//             W_W       Bits of a weight w, two's complement, at least 2.
//             GUARD     F = X_W + W_W + GUARD. A block multiplies x with (ROWS - 1) * F + W_W + 1 bits.
//             CONSTANT  1: w never changes.
// Latency     START + COUNT + 1 from x, with SHARED 2 more; all advancing on en. The k-th x arrives START +
//             k - 1 cycles later, if that is more than 0. Each w arrives one cycle before its x.
// Contract    Exact two's complement sums of X_W + W_W + 3 bits. For several rows they hold for up to 4 *
//             2^GUARD products, or 8 * 2^GUARD - 1 with X_SIGNED. A sum then has at most two bits more than
//             a field. Row r, column k of w is at bit (r * COUNT + k) * W_W.
`default_nettype none
module hg_chain #(
    parameter integer COUNT    = 4,
    parameter integer START    = 0,
    parameter integer ROWS     = 2,
    parameter integer SHARED   = 1,
    parameter integer X_W      = 8,
    parameter integer X_SIGNED = 0,
    parameter integer W_W      = 8,
    parameter integer GUARD    = 0,
    parameter integer CONSTANT = 0
) (
    input  wire                        clk,
    input  wire                        en,
    input  wire [COUNT*X_W-1:0]        x,
    input  wire [ROWS*COUNT*W_W-1:0]   w,
    output wire [ROWS*(X_W+W_W+3)-1:0] sums
);
    localparam integer F     = X_W + W_W + GUARD, C_W = X_W + W_W + 3;
    localparam integer K_W   = (ROWS == 1) ? W_W : (ROWS - 1) * F + W_W + 1, M_W = X_W + K_W;
    localparam integer P_W   = (ROWS - 1) * F + C_W, ALL_W = ROWS * W_W;
    localparam integer HIGHS = (ROWS == 1) ? 1 : ROWS - 1, H_W = (ROWS == 1) ? W_W + 1 : K_W - F;

    // The weights of all rows but the first, as one number.
    function signed [H_W-1:0] high_weights;
        input [HIGHS*W_W-1:0] ws;
        integer i;
        reg signed [H_W-1:0] one;
        begin
            high_weights = {H_W{1'b0}};
            for (i = 0; i < HIGHS; i = i + 1) begin
                one = {{H_W-W_W{ws[i*W_W + W_W - 1]}}, ws[i*W_W +: W_W]};
                high_weights = high_weights + (one <<< (i * F));
            end
        end
    endfunction

    // A number plus a product, modulo 4.
    function [1:0] with_product;
        input [1:0] s, a, b;
        with_product = s ^ {(a[1] && b[0]) ^ (a[0] && b[1]) ^ (s[0] && a[0] && b[0]), a[0] && b[0]};
    endfunction

    // Separate the sums of the rows. For each row except the last, the low bits are a field of the blocks'
    // sum. The field must be corrected by the carry from the fields below, -2 to 1. `side` holds two bits
    // of each following sum, which gives this carry modulo 4, for all fields at once.
    function [ROWS*C_W-1:0] apart;
        input [P_W-1:0] all;
        input [2*HIGHS-1:0] side;
        integer i, j;
        reg [C_W-1:0] own;
        reg [1:0] passed, below;
        begin
            passed = 2'd0;
            for (i = 0; i < ROWS; i = i + 1) begin
                own   = all[i*F +: C_W];
                below = passed;
                if (i < ROWS - 1) begin
                    passed = all[(i+1)*F +: 2] - side[2*i +: 2];
                    for (j = F; j < C_W; j = j + 1) own[j] = passed[(j > F) ? 1 : 0];
                end
                apart[i*C_W +: C_W] = own - {{C_W-2{below[1]}}, below};
            end
        end
    endfunction

    genvar k, r;
    generate
        for (k = 0; k < COUNT; k = k + 1) begin : block
            localparam integer PLACE = START + k;
            // Delayed to match the sum of the previous block. The last registers are the block's own.
            wire [ALL_W-1:0]        given, late;
            wire signed [K_W-1:0]   factor;
            wire signed [X_W:0]     code;
            wire signed [P_W-1:0]   carried;
            reg  [X_W-1:0]          x_reg;
            (* use_dsp = "yes", multstyle = "dsp", syn_multstyle = "block_mult" *)
            reg  signed [M_W-1:0]   m_reg;
            (* use_dsp = "yes" *)
            reg  signed [P_W-1:0]   p_reg;
            for (r = 0; r < ROWS; r = r + 1) begin : row
                assign given[r*W_W +: W_W] = w[(r*COUNT+k)*W_W +: W_W];
            end
            if (CONSTANT != 0) begin : fixed
                assign late = given;
            end else begin : changing
                // Two parts, so that no shift register is inferred: it would cost LUTs for each row.
                localparam integer FREE = (ROWS == 1) ? 1 : 0, HELD = (PLACE > FREE) ? PLACE - FREE : 0;
                wire [ALL_W-1:0] half, most;
                hg_delay #(.WIDTH(ALL_W), .CYCLES(HELD/2)) one (.clk(clk), .en(en), .d(given), .q(half));
                hg_delay #(.WIDTH(ALL_W), .CYCLES(HELD-HELD/2)) two (.clk(clk), .en(en), .d(half), .q(most));
                reg [ALL_W-1:0] w_reg;
                always @(posedge clk) if (en) w_reg <= most;
                assign late = (PLACE == HELD) ? most : w_reg;
                wire unused_w = &{1'b0, w_reg};
            end
            always @(posedge clk) if (en) x_reg <= x[k*X_W +: X_W];
            wire [X_W-1:0] x_now = (PLACE == 0) ? x[k*X_W +: X_W] : x_reg;
            if (ROWS == 1) begin : alone
                reg [W_W-1:0] b_reg;
                always @(posedge clk) if (en) b_reg <= late;
                assign factor = b_reg;
                assign code   = {(X_SIGNED != 0) && x_now[X_W-1], x_now};
            end else begin : several
                reg  signed [W_W-1:0] low_reg;
                reg  signed [H_W-1:0] high_reg;
                reg  signed [K_W-1:0] sum_reg;
                reg         [X_W-1:0] code_reg;
                wire signed [K_W-1:0] high = {high_reg, {F{1'b0}}};
                wire signed [K_W-1:0] low  = {{K_W-W_W{low_reg[W_W-1]}}, low_reg};
                always @(posedge clk) if (en) begin
                    low_reg  <= late[W_W-1:0];
                    high_reg <= high_weights(late[ROWS*W_W-1:W_W]);
                    sum_reg  <= high + low;
                    code_reg <= x_now;
                end
                assign factor = sum_reg;
                assign code   = {(X_SIGNED != 0) && code_reg[X_W-1], code_reg};
                // Low bits of the other rows' sums.
                wire [X_W+1:0]     x_more = {{2{(X_SIGNED != 0) && x[k*X_W+X_W-1]}}, x[k*X_W +: X_W]};
                reg  [1:0]         x_low_reg;
                wire [1:0]         x_low = (PLACE == 0) ? x_more[1:0] : x_low_reg;
                reg  [2*HIGHS-1:0] w_low_reg, side_reg;
                wire [2*HIGHS-1:0] onto;
                always @(posedge clk) if (en) x_low_reg <= x_more[1:0];
                for (r = 0; r < HIGHS; r = r + 1) begin : side
                    always @(posedge clk) if (en) begin
                        w_low_reg[2*r +: 2] <= late[(r+1)*W_W +: 2];
                        side_reg[2*r +: 2]  <= with_product(onto[2*r +: 2], x_low, w_low_reg[2*r +: 2]);
                    end
                end
                if (k == 0) begin : none
                    assign onto = {2*HIGHS{1'b0}};
                end else begin : some
                    assign onto = block[k-1].several.side_reg;
                end
                wire unused_several = &{1'b0, x_more};
            end
            if (k == 0) begin : zero
                assign carried = {P_W{1'b0}};
            end else begin : sum
                assign carried = block[k-1].p_reg;
            end
            wire signed [M_W:0]   x_wide  = {{K_W{code[X_W]}}, code};
            wire signed [M_W:0]   f_wide  = {{X_W+1{factor[K_W-1]}}, factor};
            wire signed [M_W:0]   product = x_wide * f_wide;
            wire signed [P_W-1:0] m_wide  = {{P_W-M_W{m_reg[M_W-1]}}, m_reg};
            always @(posedge clk) if (en) begin
                m_reg <= product[M_W-1:0];
                p_reg <= carried + m_wide;
            end
            wire unused_block = &{1'b0, product};
        end
        if (ROWS == 1) begin : one
            hg_delay #(.WIDTH(C_W), .CYCLES((SHARED != 0) ? 2 : 0)) others (
                .clk(clk), .en(en), .d(block[COUNT-1].p_reg), .q(sums)
            );
        end else begin : fields
            wire [2*HIGHS-1:0]  side;
            reg  [ROWS*C_W-1:0] sums_reg;
            hg_delay #(.WIDTH(2*HIGHS), .CYCLES(2)) others (
                .clk(clk), .en(en), .d(block[COUNT-1].several.side_reg), .q(side)
            );
            always @(posedge clk) if (en) sums_reg <= apart(block[COUNT-1].p_reg, side);
            assign sums = sums_reg;
        end
    endgenerate
endmodule
`default_nettype wire
