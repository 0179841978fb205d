// hg_dot_packed: Dot products of the same codes with the weights of several rows, in shared DSP blocks.
//
// Purpose     Rows of hg_mac_products with products so short that one block product has room for several
//             of them: x * (w0 + w1 * 2^F) = x * w0 + (x * w1) * 2^F.
// Parameters  SIMD      Columns.
//             ROWS      Rows, at least 2.
//             X_W       Bits of a code x.
//             X_SIGNED  1: x is two's complement; 0: unsigned.
//             W_W       Bits of a weight w, two's complement, at least 2.
//             GUARD     0 to 2: 2^GUARD products are summed before they are separated. F = X_W + W_W +
//                       GUARD. A block multiplies x with (ROWS - 1) * F + W_W + 1 bits.
//             EVERY     Pipeline registers, see hg_adder_tree. Here 0 means 1. With 1, a block has an
//                       output register before any addition.
// Latency     The latency of hg_dot_plain from x. Each w arrives one enabled cycle before its x.
// Contract    Exact two's complement sums of X_W + W_W + 1 + ceil(log2(SIMD)) bits. Row r, column s of w is
//             at bit (r * SIMD + s) * W_W. A product of a row fits F - GUARD bits. It passes a borrow of 1
//             to the next row, equal to its sign bit.
`default_nettype none
module hg_dot_packed #(
    parameter integer SIMD     = 4,
    parameter integer ROWS     = 2,
    parameter integer X_W      = 4,
    parameter integer X_SIGNED = 0,
    parameter integer W_W      = 4,
    parameter integer GUARD    = 2,
    parameter integer EVERY    = 2
) (
    input  wire                                 clk,
    input  wire                                 en,
    input  wire [SIMD*X_W-1:0]                  x,
    input  wire [ROWS*SIMD*W_W-1:0]             w,
    output wire [ROWS*(X_W+W_W+1+$clog2(SIMD))-1:0] sums
);
    localparam integer F      = X_W + W_W + GUARD;
    localparam integer K_W    = (ROWS - 1) * F + W_W + 1;
    localparam integer P_W    = ROWS * F;
    localparam integer DIGITS = (W_W + 1) / 2;
    localparam integer GROUPS = (SIMD + 3) / 4;
    localparam integer SUB    = 1 << GUARD;
    localparam integer T_W    = X_W + W_W + 2;
    localparam integer S_W    = T_W + $clog2(GROUPS);
    localparam integer OUT_W  = X_W + W_W + 1 + $clog2(SIMD);
    localparam integer STEP   = (EVERY == 0) ? 1 : EVERY;
    localparam integer CYCLES = (STEP > 1) ? ((SIMD <= 2) ? 1 : 2) : (SIMD > 4) ? 4 : SIMD;
    // Products summed directly after the blocks (ONE), and whether later additions take separate cycles
    // (SPREAD).
    localparam integer ONE    = (STEP == 1) ? 1 : SUB;
    localparam integer SPREAD = (STEP == 1 && SIMD >= 4) ? 1 : 0;

    // The weights of a column as one number.
    function signed [K_W-1:0] packed_weights;
        input [ROWS*W_W-1:0] ws;
        integer i;
        reg signed [K_W-1:0] one;
        begin
            packed_weights = {K_W{1'b0}};
            for (i = 0; i < ROWS; i = i + 1) begin
                one = {{K_W-W_W{ws[i*W_W + W_W - 1]}}, ws[i*W_W +: W_W]};
                packed_weights = packed_weights + (one <<< (i * F));
            end
        end
    endfunction

    // The sums of the rows, of F bits each.
    function [P_W-1:0] apart;
        input [P_W-1:0] p;
        integer i;
        reg [P_W-1:0] left;
        begin
            left = p;
            for (i = 0; i < ROWS; i = i + 1) begin
                apart[i*F +: F] = left[F-1:0];
                left = (left >> F) + {{P_W-1{1'b0}}, left[F-1]};
            end
        end
    endfunction

    // The sum of ONE products; where there are fewer, x is zero.
    function signed [P_W-1:0] products;
        input [ONE*X_W-1:0] xs;
        input [ONE*K_W-1:0] ks;
        integer i;
        reg signed [P_W-1:0] xi, ki;
        begin
            products = {P_W{1'b0}};
            for (i = 0; i < ONE; i = i + 1) begin
                xi = {{P_W-X_W{(X_SIGNED != 0) && xs[i*X_W + X_W - 1]}}, xs[i*X_W +: X_W]};
                ki = {{P_W-K_W{ks[i*K_W + K_W - 1]}}, ks[i*K_W +: K_W]};
                products = products + xi * ki;
            end
        end
    endfunction

    // Zeros extend the columns to a multiple of four.
    wire [4*GROUPS*X_W:0]      x_all = {{4*GROUPS*X_W-SIMD*X_W+1{1'b0}}, x};
    reg  [4*GROUPS*K_W-1:0]    k_reg;
    wire [GROUPS*ROWS*T_W-1:0] parts;
    wire unused_x = x_all[4*GROUPS*X_W];
    genvar g, i, k, r;
    generate
        for (i = 0; i < 4 * GROUPS; i = i + 1) begin : column
            if (i < SIMD) begin : used
                wire [ROWS*W_W-1:0] ws;
                for (r = 0; r < ROWS; r = r + 1) begin : row
                    assign ws[r*W_W +: W_W] = w[(r*SIMD + i)*W_W +: W_W];
                end
                always @(posedge clk) if (en) k_reg[i*K_W +: K_W] <= packed_weights(ws);
            end else begin : none
                always @(posedge clk) if (en) k_reg[i*K_W +: K_W] <= {K_W{1'b0}};
            end
        end
        for (g = 0; g < GROUPS; g = g + 1) begin : group
            wire [4/SUB*P_W-1:0] fields;
            for (i = 0; i < 4 / SUB; i = i + 1) begin : sub
                wire [SUB/ONE*P_W-1:0]          made;
                wire [P_W+$clog2(SUB/ONE)-1:0]  added;
                for (k = 0; k < SUB / ONE; k = k + 1) begin : block
                    localparam integer AT = 4*g + SUB*i + ONE*k;
                    (* use_dsp = "yes", multstyle = "dsp", syn_multstyle = "block_mult" *)
                    wire signed [P_W-1:0] now;
                    reg  signed [P_W-1:0] now_reg;
                    assign now = products(x_all[AT*X_W +: ONE*X_W], k_reg[AT*K_W +: ONE*K_W]);
                    always @(posedge clk) if (en) now_reg <= now;
                    assign made[k*P_W +: P_W] = now_reg;
                end
                hg_adder_tree #(.N(SUB/ONE), .IN_W(P_W), .SIGNED(0), .EVERY(SPREAD)) sums (
                    .clk(clk), .en(en), .terms(made), .sum(added)
                );
                hg_delay #(.WIDTH(P_W), .CYCLES(SPREAD)) once (
                    .clk(clk), .en(en), .d(apart(added[P_W-1:0])), .q(fields[i*P_W +: P_W])
                );
                wire unused_sub = &{1'b0, added};
            end
            for (r = 0; r < ROWS; r = r + 1) begin : row
                wire [4/SUB*F-1:0] own;
                wire [T_W-1:0]     part;
                for (i = 0; i < 4 / SUB; i = i + 1) begin : field
                    assign own[i*F +: F] = fields[i*P_W + r*F +: F];
                end
                hg_adder_tree #(.N(4/SUB), .IN_W(F), .SIGNED(1), .EVERY(SPREAD)) sums (
                    .clk(clk), .en(en), .terms(own), .sum(part)
                );
                hg_delay #(.WIDTH(T_W), .CYCLES((SPREAD != 0) ? 0 : CYCLES - 1)) others (
                    .clk(clk), .en(en), .d(part), .q(parts[(r*GROUPS + g)*T_W +: T_W])
                );
            end
        end
        for (r = 0; r < ROWS; r = r + 1) begin : row
            wire [S_W-1:0] total;
            hg_adder_tree #(
                .N(GROUPS), .IN_W(T_W), .SIGNED(1), .EVERY(STEP), .CLOSED(1)
            ) tree (
                .clk(clk), .en(en), .terms(parts[r*GROUPS*T_W +: GROUPS*T_W]), .sum(total)
            );
            // Match the register count of the other dot products, which sum digits here.
            wire [S_W+OUT_W-1:0] extended = {{OUT_W{total[S_W-1]}}, total};
            wire [DIGITS*OUT_W+OUT_W-1:0] digits = {{DIGITS*OUT_W{1'b0}}, extended[OUT_W-1:0]};
            hg_digits #(
                .N(DIGITS), .IN_W(OUT_W), .SIGNED(1), .OUT_W(OUT_W), .EVERY(STEP)
            ) merge (
                .clk(clk), .en(en), .digits(digits[DIGITS*OUT_W-1:0]), .sum(sums[r*OUT_W +: OUT_W])
            );
            wire unused_row = &{1'b0, extended, digits};
        end
    endgenerate
endmodule
`default_nettype wire
