// hg_dot: dot product of SIMD codes with SIMD integer weights.
//
// Purpose     the multiplying part of one processing element of hg_mvu.
// Parameters  SIMD      terms
//             X_W       bits of a code x
//             X_SIGNED  1: x is two's complement, 0: unsigned
//             W_W       bits of a weight w; two's complement, except that W_W = 1 with
//                       W_BIPOLAR = 1 means bit 0 = -1, bit 1 = +1
//             W_BIPOLAR see above
//             EVERY     pipeline registers, see hg_adder_tree
// Latency     1 + ceil(log2(ceil(SIMD / 4))) / EVERY cycles, all advancing on en
// Contract    exact two's complement sum of X_W + W_W + 3 + ceil(log2(ceil(SIMD / 4))) bits.
//             Four products are summed before the first register.
`default_nettype none
module hg_dot #(
    parameter integer SIMD      = 4,
    parameter integer X_W       = 4,
    parameter integer X_SIGNED  = 0,
    parameter integer W_W       = 3,
    parameter integer W_BIPOLAR = 0,
    parameter integer EVERY     = 2
) (
    input  wire                                       clk,
    input  wire                                       en,
    input  wire [SIMD*X_W-1:0]                        x,
    input  wire [SIMD*W_W-1:0]                        w,
    output wire [X_W+W_W+2+$clog2((SIMD+3)/4):0]      sum
);
    localparam integer GROUPS = (SIMD + 3) / 4;
    localparam integer P_W    = X_W + W_W + 3;

    wire [GROUPS*P_W-1:0] parts;

    genvar g;
    generate
        for (g = 0; g < GROUPS; g = g + 1) begin : group
            localparam integer COUNT = (SIMD - 4*g < 4) ? SIMD - 4*g : 4;
            wire [COUNT*X_W-1:0] xg = x[4*g*X_W +: COUNT*X_W];
            wire [COUNT*W_W-1:0] wg = w[4*g*W_W +: COUNT*W_W];
            reg signed [P_W-1:0] xi, wi, part, part_reg;
            integer i;
            always @* begin
                part = {P_W{1'b0}};
                for (i = 0; i < COUNT; i = i + 1) begin
                    xi = {{P_W-X_W{(X_SIGNED != 0) && xg[i*X_W + X_W - 1]}}, xg[i*X_W +: X_W]};
                    wi = {{P_W-W_W{wg[i*W_W + W_W - 1]}}, wg[i*W_W +: W_W]};
                    if (W_BIPOLAR != 0) part = wg[i*W_W] ? part + xi : part - xi;
                    else                part = part + xi * wi;
                end
            end
            always @(posedge clk) if (en) part_reg <= part;
            assign parts[g*P_W +: P_W] = part_reg;
        end
    endgenerate

    hg_adder_tree #(
        .N(GROUPS), .IN_W(P_W), .SIGNED(1), .EVERY(EVERY)
    ) tree (
        .clk(clk), .en(en), .terms(parts), .sum(sum)
    );
endmodule
`default_nettype wire
