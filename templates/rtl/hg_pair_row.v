// hg_pair_row: Sum of products, bit by bit of the weights and two codes at a time.
//
// Purpose     One row of hg_dot_pairs. One bit of each of two weights selects which of 0, a, b and a + b is
//             added. This is a function of five bits, which fits into the LUT of the adder that sums it.
// Parameters  SIMD      Terms.
//             X_W       Bits of a code x.
//             X_SIGNED  1: x is two's complement; 0: unsigned.
//             W_W       Bits of a weight w in two's complement. With W_W = 1, bit 0 means -1 and bit 1
//                       means +1.
//             EVERY     Pipeline registers, see hg_adder_tree. Here 0 means 1.
//             TURNS     Cycles in which pairs are consumed, see hg_dot_pairs.
// Latency     TURNS from pairs, and 1 + TURNS from w; plus ceil(log2(ceil(SIMD / 4))) / EVERY of a tree,
//             rounded up. All registers advance on en.
// Contract    Exact two's complement sum of X_W + W_W + 1 + ceil(log2(SIMD)) bits. Input pairs holds the
//             pair sums that hg_dot_pairs computes from the codes of one cycle before, the newest at bit 0.
//             Pair k is at bit 3 * (X_W + 1) * k: a + b, above it a, then b, each of X_W + 1 bits. If W_W =
//             1, a - b replaces a. Four terms are summed from the lowest weight bit upwards: the result
//             bits below the current weight bit are final, and the pairs are added to the bits above. The
//             identity 2a - ~2b = 2 (a + b) + 1 makes tools merge the selection within a pair into the
//             adder's LUT. For delayed bits see hg_delay.
`default_nettype none
module hg_pair_row #(
    parameter integer SIMD     = 4,
    parameter integer X_W      = 4,
    parameter integer X_SIGNED = 0,
    parameter integer W_W      = 3,
    parameter integer EVERY    = 2,
    parameter integer TURNS    = 3
) (
    input  wire                                    clk,
    input  wire                                    en,
    input  wire [TURNS*((SIMD+1)/2)*3*(X_W+1)-1:0] pairs,
    input  wire [SIMD*W_W-1:0]                     w,
    output wire [X_W+W_W+$clog2(SIMD):0]           sum
);
    localparam integer COUNT  = (SIMD + 1) / 2;
    localparam integer GROUPS = (COUNT + 1) / 2;
    localparam integer EACH   = (COUNT > 1) ? 2 : 1;
    localparam integer STEPS  = W_W * EACH;
    localparam integer PER    = (EVERY < 2) ? 1 : 2;
    localparam integer STEP   = (EVERY == 0) ? 1 : EVERY;
    localparam integer BOTH   = (W_W == 1) ? 1 : 0;  // weights of one bit add or take away
    localparam integer T_W    = X_W + 1;
    localparam integer S_W    = T_W + EACH;
    localparam integer G_W    = S_W + W_W - 1;
    localparam integer D_W    = G_W + $clog2(GROUPS);
    localparam integer OUT_W  = X_W + W_W + 1 + $clog2(SIMD);

    wire [GROUPS*G_W-1:0] parts;
    genvar g, r;
    generate
        for (g = 0; g < GROUPS; g = g + 1) begin : group
            for (r = 0; r < STEPS; r = r + 1) begin : step
                localparam integer BIT  = r / EACH;
                localparam integer PAIR = g * EACH + r % EACH;
                localparam integer LAST = (BIT == W_W - 1) ? 1 : 0;
                // Bits of the upper addend, above the final bits.
                localparam integer U_W  = (r == 0) ? T_W + BOTH : (r < 3 && BOTH == 0) ? T_W + 1 : S_W;
                wire [G_W-1:0] so_far;
                wire [U_W-1:0] upper;
                if (r == 0) begin : lowest
                    assign so_far = {G_W{1'b0}};
                end else begin : on_top
                    assign so_far = step[r-1].sent;
                end
                if (PAIR < COUNT) begin : taken
                    wire [3*T_W-1:0] now = pairs[((r/PER)*COUNT + PAIR)*3*T_W +: 3*T_W];
                    wire             second, first;
                    if (2*PAIR + 1 < SIMD) begin : two
                        hg_delay #(.WIDTH(2), .CYCLES(1 + r/PER)) turn (
                            .clk(clk), .en(en),
                            .d({w[(2*PAIR+1)*W_W+BIT], w[2*PAIR*W_W+BIT]}), .q({second, first})
                        );
                    end else begin : one
                        hg_delay #(.WIDTH(1), .CYCLES(1 + r/PER)) turn (
                            .clk(clk), .en(en), .d(w[2*PAIR*W_W+BIT]), .q(first)
                        );
                        assign second = (BOTH != 0) && first;
                    end
                    wire [T_W-1:0] s = now[T_W-1:0], a = now[2*T_W-1:T_W], b = now[3*T_W-1:2*T_W];
                    wire [T_W:0]   term;
                    (* keep *) wire [U_W:0] added;
                    if (BOTH != 0) begin : signs
                        assign term  = (first == second) ? {(X_SIGNED != 0) && s[T_W-1], s} : {a[T_W-1], a};
                        wire [U_W:0] wide = {{U_W+1-T_W{term[T_W]}}, term[T_W-1:0]} ^ {U_W+1{!first}};
                        assign added = {so_far[U_W-1:0], 1'b0} - ~{wide[U_W-1:0], !first};
                        wire unused_wide = &{1'b0, wide[U_W], b};
                    end else begin : bits
                        // Register the first selection. Written as gates, so that tools do not infer a
                        // reset.
                        wire [T_W-1:0] gated = ({T_W{first && second}} & s) | ({T_W{first && !second}} & a)
                                             | ({T_W{!first && second}} & b);
                        wire [T_W-1:0] some = (r == 0) ? gated
                            : (first && second) ? s : first ? a : second ? b : {T_W{1'b0}};
                        assign term = {(X_SIGNED != 0) && some[T_W-1], some};
                        wire [U_W:0] wide = {{U_W+1-T_W{term[T_W]}}, term[T_W-1:0]};
                        if (LAST != 0) begin : minus
                            assign added = {so_far[BIT +: U_W] - wide[U_W-1:0], 1'b0};
                        end else begin : plus
                            assign added = {so_far[BIT +: U_W], 1'b0} - ~{wide[U_W-1:0], 1'b0};
                        end
                        wire unused_wide = wide[U_W];
                    end
                    assign upper = added[U_W:1];
                    wire unused = &{1'b0, added[0]};
                end else begin : none
                    assign upper = so_far[BIT +: U_W];
                end
                // Above it, the sign of the sum, if it can be negative.
                wire sign = (X_SIGNED != 0 || LAST != 0) && upper[U_W-1];
                wire [2*G_W-1:0] wide_sum;
                if (BIT == 0) begin : whole
                    assign wide_sum = {{2*G_W-U_W{sign}}, upper};
                end else begin : above
                    assign wide_sum = {{2*G_W-U_W-BIT{sign}}, upper, so_far[BIT-1:0]};
                end
                wire [G_W-1:0] sent;
                if (r % PER == PER - 1 || r == STEPS - 1) begin : pipe
                    localparam integer R_W = U_W + BIT;
                    reg  [R_W-1:0]   sum_reg;
                    wire             minus = (X_SIGNED != 0 || LAST != 0) && sum_reg[R_W-1];
                    wire [2*G_W-1:0] sum_wide = {{2*G_W-R_W{minus}}, sum_reg};
                    if (BIT % 3 == 2) begin : own
                        (* keep *) always @(posedge clk) if (en) sum_reg <= wide_sum[R_W-1:0];
                    end else begin : any
                        always @(posedge clk) if (en) sum_reg <= wide_sum[R_W-1:0];
                    end
                    assign sent = sum_wide[G_W-1:0];
                    wire unused_sum = &{1'b0, sum_wide};
                end else begin : wired
                    assign sent = wide_sum[G_W-1:0];
                end
                wire unused_step = &{1'b0, so_far, wide_sum};
            end
            assign parts[g*G_W +: G_W] = step[STEPS-1].sent;
        end
    endgenerate

    wire [D_W-1:0] total;
    hg_adder_tree #(
        .N(GROUPS), .IN_W(G_W), .SIGNED(1), .EVERY(STEP), .CLOSED(1)
    ) tree (
        .clk(clk), .en(en), .terms(parts), .sum(total)
    );
    wire [OUT_W+D_W-1:0] total_wide = {{OUT_W{total[D_W-1]}}, total};
    assign sum = total_wide[OUT_W-1:0];
    wire unused_total = &{1'b0, total_wide};
endmodule
`default_nettype wire
