// hg_count: Number of ones in x, plus a number and a carry.
//
// Purpose     Counter of the generated modules that count agreements. The count of x is a LUT of five
//             inputs per bit, merged into the LUTs of the carry chain that adds it. Three LUTs reduce nine
//             bits to four.
// Parameters  COUNTED  Bits of x, at most five.
//             PLACES   Bits of a, at least those of a number up to COUNTED.
//             SUM_W    Bits of the sum, at most PLACES + 1. The sum is modulo 2^SUM_W.
// Latency     Combinational.
// Contract    sum = a + carry + count of x.
`default_nettype none
module hg_count #(
    parameter integer COUNTED = 5,
    parameter integer PLACES  = 3,
    parameter integer SUM_W   = 4
) (
    input  wire [COUNTED-1:0] x,
    input  wire [PLACES-1:0]  a,
    input  wire               carry,
    output wire [SUM_W-1:0]   sum
);
    wire [4:0] bits;
    assign bits[COUNTED-1:0] = x;
    generate
        if (COUNTED < 5) begin : rest
            assign bits[4:COUNTED] = {5-COUNTED{1'b0}};
        end
    endgenerate

    // Written as gates: tools turn an array into a memory that absorbs upstream registers, and a sum into
    // more carries.
    wire       odd  = bits[0] ^ bits[1] ^ bits[2];
    wire       most = (bits[0] & bits[1]) | (bits[0] & bits[2]) | (bits[1] & bits[2]);
    wire       one  = bits[3] ^ bits[4];
    wire       two  = bits[3] & bits[4];
    wire       over = odd & one;
    wire [2:0] all  = {(most & two) | (most & over) | (two & over), most ^ two ^ over, odd ^ one};
    wire [PLACES-1:0] count = all[PLACES-1:0];

    // Subtract a complement, so that tools do not swap the operands. The chain then uses a unchanged and
    // the carry from the place below.
    wire [PLACES+1:0] total = {1'b0, a, carry} - {1'b1, ~count, ~carry};
    assign sum = total[SUM_W:1];
    wire unused = &{1'b0, all, total};
endmodule
`default_nettype wire
