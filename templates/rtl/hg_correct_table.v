// hg_correct_table: Lookup table as logic.
//
// Purpose     word = entry number `address` of a constant lookup table.
// Parameters  ADDR_W  Bits of the address.
//             WIDTH   Bits of an entry.
//             FILE    $readmemh file of WIDTH words of 2^ADDR_W bits. Word i holds bit i of all entries,
//                     entry 0 in the low bit.
// Latency     0 cycles.
// Contract    Never a memory block. With at most six address bits, each bit is one LUT, or less where a
//             consuming LUT has room for the address.
`default_nettype none
module hg_correct_table #(
    parameter integer ADDR_W = 2,
    parameter integer WIDTH  = 4,
    parameter         FILE   = ""
) (
    input  wire [ADDR_W-1:0] address,
    output wire [WIDTH-1:0]  word
);
    reg [(1<<ADDR_W)-1:0] rom [0:WIDTH-1];
    initial if (FILE != "") $readmemh(FILE, rom);

    genvar i;
    generate
        for (i = 0; i < WIDTH; i = i + 1) begin : bits
            wire [(1<<ADDR_W)-1:0] column = rom[i];
            assign word[i] = column[address];
        end
    endgenerate
endmodule
`default_nettype wire
