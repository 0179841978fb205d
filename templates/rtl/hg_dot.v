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
// Latency     1 + ceil(log2(SIMD)) / EVERY cycles, all advancing on en
// Contract    exact two's complement sum of X_W + W_W + 1 + ceil(log2(SIMD)) bits.
`default_nettype none
module hg_dot #(
    parameter integer SIMD      = 4,
    parameter integer X_W       = 4,
    parameter integer X_SIGNED  = 0,
    parameter integer W_W       = 3,
    parameter integer W_BIPOLAR = 0,
    parameter integer EVERY     = 2
) (
    input  wire                                     clk,
    input  wire                                     en,
    input  wire [SIMD*X_W-1:0]                      x,
    input  wire [SIMD*W_W-1:0]                      w,
    output wire [X_W+W_W+$clog2(SIMD):0]            sum
);
    localparam integer P_W = X_W + W_W + 1;

    reg [SIMD*P_W-1:0] product, product_reg;
    reg signed [P_W-1:0]  xi, wi;
    integer i;

    always @* begin
        product = {SIMD*P_W{1'b0}};
        for (i = 0; i < SIMD; i = i + 1) begin
            xi = {{P_W-X_W{(X_SIGNED != 0) && x[i*X_W + X_W - 1]}}, x[i*X_W +: X_W]};
            wi = {{P_W-W_W{w[i*W_W + W_W - 1]}}, w[i*W_W +: W_W]};
            if (W_BIPOLAR != 0)
                product[i*P_W +: P_W] = w[i*W_W] ? xi : -xi;
            else
                product[i*P_W +: P_W] = xi * wi;
        end
    end

    always @(posedge clk) if (en) product_reg <= product;

    hg_adder_tree #(
        .N(SIMD), .IN_W(P_W), .SIGNED(1), .EVERY(EVERY)
    ) tree (
        .clk(clk), .en(en), .terms(product_reg), .sum(sum)
    );
endmodule
`default_nettype wire
