// hg_weights_table: Some columns of a memory of weights, as separately mapped logic.
//
// Purpose     Part of hg_weights with STYLE = 3.
// Parameters  FILE         $readmemh file of WORDS words of WIDTH bits.
//             WORDS        Words.
//             WIDTH        Bits of a word in the file.
//             FROM, COUNT  First bit and number of the bits in this module.
// Latency     1 cycle, as hg_weights.
// Contract    A separate module with its own address. Tools that map a flat design share logic among
//             columns, however distant, as long as the design's longest path allows it.
`default_nettype none
(* keep_hierarchy = "yes" *)
module hg_weights_table #(
    parameter         FILE  = "",
    parameter integer WORDS = 4,
    parameter integer WIDTH = 8,
    parameter integer FROM  = 0,
    parameter integer COUNT = 8
) (
    input  wire             clk,
    input  wire             rst,
    input  wire             en,
    input  wire             step,
    output wire [COUNT-1:0] data
);
    wire [((WORDS <= 1) ? 1 : $clog2(WORDS))-1:0] addr, unused_next;
    hg_index #(.N(WORDS)) turn (.clk(clk), .rst(rst), .step(step), .index(addr), .next(unused_next));

    (* ROM_STYLE = "distributed", syn_romstyle = "logic" *) reg [WIDTH-1:0] mem [0:WORDS-1];
    initial if (FILE != "") $readmemh(FILE, mem);
    wire [WIDTH-1:0] word = mem[addr];
    reg  [COUNT-1:0] data_reg;
    always @(posedge clk) if (en) data_reg <= word[FROM +: COUNT];
    assign data = data_reg;
    wire unused = &{1'b0, unused_next, word};
endmodule
`default_nettype wire
