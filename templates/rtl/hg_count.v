// hg_count: how many bits of x are 1, plus a number and a carry.
//
// Purpose     a counter of generated modules that count agreements. The number of x is tables of five bits,
//             which fit into those of the carry chain that adds it: nine bits become four with three tables.
// Parameters  COUNTED  bits of x, at most five
//             PLACES   bits of a; those of a number up to COUNTED at least
//             SUM_W    bits of the sum, at most PLACES + 1: it is modulo 2^SUM_W
// Latency     combinational
// Contract    sum = a + carry + count of x
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

    // Gates: of a table tools would make a memory, into which registers in front go; of a sum, more carries.
    wire       odd  = bits[0] ^ bits[1] ^ bits[2];
    wire       most = (bits[0] & bits[1]) | (bits[0] & bits[2]) | (bits[1] & bits[2]);
    wire       one  = bits[3] ^ bits[4];
    wire       two  = bits[3] & bits[4];
    wire       over = odd & one;
    wire [2:0] all  = {(most & two) | (most & over) | (two & over), most ^ two ^ over, odd ^ one};
    wire [PLACES-1:0] count = all[PLACES-1:0];

    // Minus a complement, so that tools do not swap the operands: the chain takes a as it is, and the carry
    // from the place below.
    wire [PLACES+1:0] total = {1'b0, a, carry} - {1'b1, ~count, ~carry};
    assign sum = total[SUM_W:1];
    wire unused = &{1'b0, all, total};
endmodule
`default_nettype wire
