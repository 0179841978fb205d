// hg_next: Next value of a counter.
//
// Purpose     next = 0 if wrap, else at - 1 if down, else at + 1.
// Parameters  W      Bits of the counter.
//             SMALL  Largest number of bits without a carry chain.
// Latency     0.
// Contract    Sums are modulo 2^W. Each bit of a small counter is a LUT of the counter's bits, which also
//             detects the last value. A carry chain would need LUTs before and after it.
`default_nettype none
module hg_next #(
    parameter integer W     = 4,
    parameter integer SMALL = 6
) (
    input  wire [W-1:0] at,
    input  wire         down,
    input  wire         wrap,
    output wire [W-1:0] next
);
    function [W-1:0] moved(input [W-1:0] from, input less);
        integer i;
        reg     carry;
        begin
            carry = 1'b1;
            for (i = 0; i < W; i = i + 1) begin
                moved[i] = from[i] ^ carry;
                carry    = carry && (from[i] ^ less);
            end
        end
    endfunction

    wire [W-1:0] step = {W{down}} | {{W-1{1'b0}}, 1'b1};
    assign next = wrap ? {W{1'b0}} : (W <= SMALL) ? moved(at, down) : at + step;
endmodule
`default_nettype wire
