// hg_norm_square: Square of an integer.
//
// Purpose     Squares codes in LUTs with few inputs. DSP blocks are for wider numbers.
// Parameters  Q_W  Bits of q (two's complement). 1 to 9 bits use LUTs; wider ones use a product.
// Latency     0.
// Contract    Exact.
`default_nettype none
module hg_norm_square #(
    parameter integer Q_W = 8
) (
    input  wire [Q_W-1:0]   q,
    output wire [2*Q_W-1:0] square
);
    // Above 5 bits q = 16 * high + low.
    localparam integer H_W  = (Q_W > 9) ? 1 : (Q_W > 5) ? Q_W - 4 : Q_W;
    localparam integer PART = H_W + 2;

    // Lookup tables with words of 32 bits: squares of high, of high extended by a number of 0 to 3, and of
    // low.
    function [(32<<H_W)-1:0] squares(input zero);
        integer k;
        begin
            squares = {(32<<H_W){zero}};
            for (k = 0; k < (1 << H_W); k = k + 1)
                squares[32*k +: 32] = ((k < (1 << (H_W - 1))) ? k : (1 << H_W) - k) ** 2;
        end
    endfunction
    function [(32<<PART)-1:0] products(input zero);
        integer k;
        begin
            products = {(32<<PART){zero}};
            for (k = 0; k < (1 << PART); k = k + 1)
                products[32*k +: 32] = ((k >> 2) - ((k < (1 << (PART - 1))) ? 0 : (1 << H_W))) * (k & 3);
        end
    endfunction
    function [511:0] lows(input zero);
        integer k;
        begin
            lows = {512{zero}};
            for (k = 0; k < 16; k = k + 1) lows[32*k +: 32] = k * k;
        end
    endfunction
    localparam [(32<<H_W)-1:0]  SQUARES  = squares(1'b0);
    localparam [(32<<PART)-1:0] PRODUCTS = products(1'b0);
    localparam [511:0]          LOWS     = lows(1'b0);

    generate
        if (Q_W > 9) begin : product
            wire signed [Q_W-1:0]   own  = q;
            wire signed [2*Q_W-1:0] both = own * own;
            assign square = both;
        end else if (Q_W <= 5) begin : whole
            assign square = SQUARES[32*q +: 2*Q_W];
        end else begin : parts
            wire [H_W-1:0]  high = q[Q_W-1:4];
            wire [7:0]      low  = LOWS[32*q[3:0] +: 8];
            wire [PART-1:0] one  = PRODUCTS[32*{high, q[1:0]} +: PART];
            wire [PART-1:0] four = PRODUCTS[32*{high, q[3:2]} +: PART];
            wire [PART+2:0] between = {{3{one[PART-1]}}, one} + {four[PART-1], four, 2'b00};
            wire [2*Q_W-6:0] wide = {{2*Q_W-8-PART{between[PART+2]}}, between};
            assign square = {{SQUARES[32*high +: 2*H_W], low[7:5]} + wide, low[4:0]};
        end
    endgenerate
endmodule
`default_nettype wire
