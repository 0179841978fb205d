// hg_softmax_table: the word of a distance, for every lane from a memory of its own.
//
// Purpose     powers of e in a Softmax.
// Parameters  LANES  elements of a beat
//             D_W    bits of a distance
//             WORDS  words; a distance is less
//             W      bits of a word
//             BLOCK  1: block memory, 0: the tools choose
//             FILE   file name stem; FILE with TAIL behind it is the $readmemh file of the words
//             TAIL   end of the file's name
// Latency     2 cycles, advancing on en: a registered read and a register behind it, as block RAM has
// Contract    exact.
`default_nettype none
module hg_softmax_table #(
    parameter integer LANES = 2,
    parameter integer D_W   = 7,
    parameter integer WORDS = 101,
    parameter integer W     = 32,
    parameter integer BLOCK = 0,
    parameter         FILE  = "",
    parameter         TAIL  = ".mem"
) (
    input  wire                 clk,
    input  wire                 en,
    input  wire [LANES*D_W-1:0] distance,
    output wire [LANES*W-1:0]   word
);
    genvar i;
    generate
        for (i = 0; i < LANES; i = i + 1) begin : lane
            wire [D_W-1:0] place = distance[i*D_W +: D_W];
            reg  [W-1:0]   value_reg, held_reg;
            if (BLOCK != 0) begin : block
                (* rom_style = "block" *) reg [W-1:0] rom [0:WORDS-1];
                initial if (FILE != "") $readmemh({FILE, TAIL}, rom);
                always @(posedge clk) if (en) value_reg <= rom[place];
            end else begin : any
                (* rom_style = "auto" *) reg [W-1:0] rom [0:WORDS-1];
                initial if (FILE != "") $readmemh({FILE, TAIL}, rom);
                always @(posedge clk) if (en) value_reg <= rom[place];
            end
            always @(posedge clk) if (en) held_reg <= value_reg;
            assign word[i*W +: W] = held_reg;
        end
    endgenerate
endmodule
`default_nettype wire
