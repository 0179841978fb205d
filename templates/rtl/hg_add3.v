// hg_add3: a sum of three numbers and a carry.
//
// Purpose     a sum of generated modules of adders. A full adder for each bit makes two numbers of three, and
//             a carry chain adds these. Written so, each bit has one table between the numbers and the chain:
//             of a + b + c tools make two for some bits, one behind the other.
// Parameters  WIDTH  bits of the numbers and of the sum
//             CARRY  0 to 2; the complement of a sum is that of the complements, with 2 - CARRY
// Latency     combinational
// Contract    sum = a + b + c + CARRY modulo 2^WIDTH
`default_nettype none
module hg_add3 #(
    parameter integer WIDTH = 8,
    parameter integer CARRY = 0
) (
    input  wire [WIDTH-1:0] a,
    input  wire [WIDTH-1:0] b,
    input  wire [WIDTH-1:0] c,
    output wire [WIDTH-1:0] sum
);
    wire [WIDTH+1:0] parity   = {2'b00, a ^ b ^ c};
    wire [WIDTH:0]   majority = {1'b0, (a & b) | (a & c) | (b & c)};
    wire [WIDTH+1:0] total;
    generate
        if (CARRY == 2) begin : two
            // The two lowest bits beside the chain: were its first carry always 1, its first bit would be
            // the complement of what leads into it, and tools would put an inverter between.
            wire over = parity[1] | majority[0];
            wire [WIDTH:0] above = {majority[WIDTH:1], over} - ~{parity[WIDTH+1:2], over};
            assign total = {above[WIDTH:1], ~(parity[1] ^ majority[0]), parity[0]};
            wire unused_two = above[0];
        end else begin : one
            assign total = {majority, CARRY[0]} + parity;
        end
    endgenerate
    assign sum = total[WIDTH-1:0];
    wire unused = &{1'b0, total[WIDTH+1:WIDTH]};
endmodule
`default_nettype wire
