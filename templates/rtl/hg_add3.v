// hg_add3: Sum of three numbers and a carry.
//
// Purpose     Adder of the generated adder modules. A full adder per bit reduces three numbers to two, and
//             a carry chain adds these two. Each bit then needs one LUT before the chain. For a + b + c,
//             tools use two LUTs in series for some bits.
// Parameters  WIDTH  Bits of the numbers and of the sum.
//             CARRY  0 to 2. The complement of a sum is the sum of the complements with carry 2 - CARRY.
// Latency     Combinational.
// Contract    sum = a + b + c + CARRY modulo 2^WIDTH.
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
            // The two lowest bits stay out of the chain. With a constant first carry of 1, the first sum
            // bit would be the complement of its input. Tools would insert an inverter there.
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
