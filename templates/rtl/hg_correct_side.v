// hg_correct_side: Detects inputs of a lane of hg_correct outside its buckets.
//
// Purpose     side[0] = x < FIRST, side[1] = x > LAST.
// Parameters  IN_W       Bits of x.
//             IN_SIGNED  1: x is two's complement; 0: unsigned.
//             FIRST      Bits of the smallest x in a bucket.
//             LAST       Bits of the largest x in a bucket.
// Latency     0.
// Contract    None.
`default_nettype none
module hg_correct_side #(
    parameter integer    IN_W      = 10,
    parameter integer    IN_SIGNED = 1,
    parameter [IN_W-1:0] FIRST     = 0,
    parameter [IN_W-1:0] LAST      = 0
) (
    input  wire [IN_W-1:0] x,
    output wire [1:0]      side
);
    localparam [IN_W:0]   FLIP = {(IN_SIGNED != 0), {IN_W{1'b0}}};
    localparam [IN_W-1:0] SIGN = FLIP[IN_W:1];

    // a < b. With a constant: a chain of AND and OR, starting at the constant's lowest one.
    function less(input [IN_W-1:0] a, input [IN_W-1:0] b);
        integer i;
        begin
            less = 1'b0;
            for (i = 0; i < IN_W; i = i + 1) less = b[i] ? (!a[i] || less) : (!a[i] && less);
        end
    endfunction

    assign side = {less(LAST ^ SIGN, x ^ SIGN), less(x ^ SIGN, FIRST ^ SIGN)};
endmodule
`default_nettype wire
