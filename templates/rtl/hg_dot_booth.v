// hg_dot_booth: dot product of SIMD codes with SIMD weights, digit by digit of the weights.
//
// Purpose     a row of hg_mac, unless its products fit into tables.
// Parameters  SIMD      terms
//             X_W       bits of a code x
//             X_SIGNED  1: x is two's complement, 0: unsigned
//             W_W       bits of a weight w; two's complement, but W_W = 1 means bit 0 = -1, bit 1 = +1
//             EVERY     pipeline registers, see hg_adder_tree; 0 is 1 here
// Latency     1 for SIMD up to 2, else 2, or with EVERY = 1 one for each of up to four terms; and
//             ceil(log2(ceil(SIMD / 4))) / EVERY of a tree, and that of hg_digits, each rounded up; all
//             advancing on en
// Contract    exact two's complement sum of X_W + W_W + 1 + ceil(log2(SIMD)) bits.
//             A signed digit of two bits, -2 to 2 (Booth), takes x or 2x, inverted if it is negative: a
//             function of five bits, which fits into the table of the adder that sums it.
//             2a - ~(2b + neg) = 2 (a + b + neg) + !neg makes tools put the logic of b there, and adds the
//             one that inverting leaves out. Four terms are summed in two cycles, or in four.
`default_nettype none
module hg_dot_booth #(
    parameter integer SIMD     = 4,
    parameter integer X_W      = 4,
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
    localparam integer S_W    = X_W + 4 + $clog2(GROUPS);
    localparam integer OUT_W  = X_W + W_W + 1 + $clog2(SIMD);
    localparam integer STEP   = (EVERY == 0) ? 1 : EVERY;
    // Terms of a group that are added in a cycle, and cycles of a group.
    localparam integer PER    = (STEP == 1) ? 1 : 2;
    localparam integer CYCLES = (((SIMD > 4) ? 4 : SIMD) + PER - 1) / PER;

    wire [DIGITS*S_W-1:0] totals;
    genvar d, g, i;
    generate
        // Elements of a group wait for those in front of them.
        for (i = 0; i < SIMD; i = i + 1) begin : element
            wire [X_W-1:0] x_now;
            wire [W_W-1:0] w_now;
            hg_delay #(.WIDTH(X_W + W_W), .CYCLES((i % 4) / PER)) turn (
                .clk(clk), .en(en), .d({x[i*X_W +: X_W], w[i*W_W +: W_W]}), .q({x_now, w_now})
            );
        end
        for (d = 0; d < DIGITS; d = d + 1) begin : digit
            // A last digit that only one bit is left for is -1 to 1.
            localparam integer T_W = (2*d + 1 == W_W) ? X_W + 1 : X_W + 2;
            localparam integer P_W = T_W + 2;
            localparam integer D_W = P_W + $clog2(GROUPS);
            wire [GROUPS*P_W-1:0] parts;
            for (g = 0; g < GROUPS; g = g + 1) begin : group
                localparam integer COUNT = (SIMD - 4*g < 4) ? SIMD - 4*g : 4;
                for (i = 0; i < COUNT; i = i + 1) begin : row
                    // Bits of the sum up to here.
                    localparam integer W = (i == 0) ? T_W : (i == 1) ? T_W + 1 : P_W;
                    wire [X_W-1:0] xi   = element[4*g+i].x_now;
                    wire [W_W-1:0] wi   = element[4*g+i].w_now;
                    wire [W_W+2:0] rest = {{2{wi[W_W-1]}}, wi, 1'b0} >> (2 * d);
                    wire           sign = (X_SIGNED != 0) && xi[X_W-1];
                    wire           one  = (W_W == 1) || (rest[1] ^ rest[0]);
                    wire           two  = (W_W != 1) && (rest[2:0] == 3'b011 || rest[2:0] == 3'b100);
                    wire           neg  = (W_W == 1) ? !wi[0] : rest[2];
                    wire [X_W+1:0] some = {{2{sign}}, xi} & {X_W+2{one}} | {sign, xi, 1'b0} & {X_W+2{two}};
                    wire [T_W-1:0] term = some[T_W-1:0] ^ {T_W{neg}};
                    wire [P_W-1:0] wide = {{2{term[T_W-1]}}, term};
                    wire [P_W-1:0] so_far;
                    if (i == 0) begin : first
                        assign so_far = {P_W{1'b0}};
                    end else begin : next
                        assign so_far = row[i-1].sent;
                    end
                    (* keep *) wire [W:0] added;
                    assign added = {so_far[W-1:0], 1'b0} - ~{wide[W-1:0], neg};
                    wire [2*P_W-1:0] extended = {{2*P_W-W{added[W]}}, added[W:1]};
                    wire [P_W-1:0]   sent;
                    if (i % PER == PER - 1 || i == COUNT - 1) begin : pipe
                        reg  [W-1:0]     sum_reg;
                        wire [2*P_W-1:0] sum_wide = {{2*P_W-W{sum_reg[W-1]}}, sum_reg};
                        always @(posedge clk) if (en) sum_reg <= extended[W-1:0];
                        assign sent = sum_wide[P_W-1:0];
                        wire unused_sum = &{1'b0, sum_wide};
                    end else begin : wired
                        assign sent = extended[P_W-1:0];
                    end
                    wire unused_rest = &{1'b0, rest, some, wide, so_far, added[0], extended};
                end
                // A group of fewer terms waits for the others.
                hg_delay #(.WIDTH(P_W), .CYCLES(CYCLES - (COUNT + PER - 1) / PER)) others (
                    .clk(clk), .en(en), .d(row[COUNT-1].sent), .q(parts[g*P_W +: P_W])
                );
            end
            wire [D_W-1:0] total;
            hg_adder_tree #(
                .N(GROUPS), .IN_W(P_W), .SIGNED(1), .EVERY(STEP), .CLOSED(1)
            ) tree (
                .clk(clk), .en(en), .terms(parts), .sum(total)
            );
            wire [S_W+D_W-1:0] total_wide = {{S_W{total[D_W-1]}}, total};
            assign totals[d*S_W +: S_W] = total_wide[S_W-1:0];
            wire unused_total = &{1'b0, total_wide};
        end
    endgenerate

    hg_digits #(
        .N(DIGITS), .IN_W(S_W), .SIGNED(1), .OUT_W(OUT_W), .EVERY(STEP)
    ) merge (
        .clk(clk), .en(en), .digits(totals), .sum(sum)
    );
endmodule
`default_nettype wire
